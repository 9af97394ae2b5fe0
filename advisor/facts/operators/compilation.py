"""Compilation: in the first step, where it belongs outside the steady state (S54), and again and again with changing
shapes (S62, S81)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.intervals import measure as length_of
from advisor.basics.intervals import union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.host.timeline import IDLE, Idle
from advisor.facts.operators.reduction import OPERATORS
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace, trace_source

_COMPILE = re.compile(r"(?<!re\.)compile(?!d)", re.IGNORECASE)
_NOT = re.compile(r"CompileAndExecute|/re\.py|sre_compile|\.py\(", re.IGNORECASE)
_OPERATOR = re.compile(r"::|#")
"""Operators and the framework's marks: long in the first step alone, they are compiled or loaded there."""

KINDS = (
    kind(
        "compile.step_ratio",
        "ratio",
        "step",
        "first step's time ÷ median of the steps after it (S54)",
        needs="steps|kernels",
    ),
    kind("compile.step_excess_us", "us", "step", "first step's time above that median", needs="steps|kernels"),
    kind(
        "compile.step_host_us",
        "us",
        "step",
        "time in the first step in which the host compiled",
        formula="union of host events of 100 us and more whose name says compile",
        needs="trace",
    ),
    kind(
        "compile.step_loader_us",
        "us",
        "step",
        "how long nothing ran in the first step while the loop waited for its next batch, on the rank that waits "
        "longest",
        needs="trace",
    ),
    kind(
        "compile.step_owner_us",
        "us",
        "step",
        "how long nothing ran in the first step while the host was in one function, on the rank where that is longest",
        formula="the most that one function has of long idle stretches, less compile.step_host_us; not the loader, "
        "garbage collection, operators or a call of the runtime",
        needs="trace",
    ),
    kind(
        "compile.first_step",
        "text",
        "run",
        "the first step, where a timeline shows its loader or such a function",
        needs="trace",
    ),
    kind("compile.first_owner", "text", "run", "this function", needs="trace"),
    kind("compile.first_owner_us", "us", "run", "compile.step_owner_us of it", needs="trace"),
    kind("compile.first_excess_us", "us", "run", "compile.step_excess_us of it", needs="trace"),
    kind("compile.first_batch_us", "us", "run", "compile.step_loader_us of it", needs="trace"),
    kind("compile.steady_us", "us", "run", "time per steady step in which the host compiled", needs="trace"),
    kind("compile.steady_share", "ratio", "run", "the same, share of the step", needs="trace"),
    kind("compile.steady_count", "count", "run", "compilations of 100 us and more per steady step", needs="trace"),
    kind("compile.step_count", "count", "run", "how many steady steps these are", needs="trace"),
    kind("compile.steps", "text", "run", "steady steps in which the host compiled", needs="trace"),
    kind("compile.name", "text", "run", "costliest of these events", needs="trace"),
    kind(
        "compile.changing_count",
        "count",
        "run",
        "operators called with more than one shape",
        needs="dynamic_shapes|kernels",
    ),
    kind(
        "compile.shape_count",
        "count",
        "operator",
        "shapes the operator was called with",
        needs="dynamic_shapes|kernels",
    ),
    kind(
        "compile.shape_time_ratio",
        "ratio",
        "operator",
        "its mean time at the slowest shape ÷ at the fastest (S81)",
        needs="dynamic_shapes",
    ),
    kind("compile.operator_us", "us", "operator", "its device time per step", needs="dynamic_shapes"),
)


class Compilations(Struct, frozen=True):
    """One rank's compile events by step; -1 step index: before the first one."""

    by_step: dict[str, tuple[float, int]]
    """step -> (microseconds covered, events)"""
    name: str
    sources: tuple[Source, ...]


COMPILATIONS = Reduction("compile", Compilations)


def reduce(rank: Rank) -> Compilations | None:
    """Host events that compile, by the step in which they start; None without a timeline."""
    trace = load_trace(rank)
    if trace is None:
        return None
    host = trace.host
    compiling = np.array([bool(_COMPILE.search(n)) and not _NOT.search(n) for n in host.names], bool)
    sources = (trace_source(rank) or Source(""),)
    chosen = compiling[host.name] if host.names else np.zeros(0, bool)
    if not chosen.any():
        return Compilations({}, "", sources)
    start, end, name = host.start[chosen], host.end[chosen], host.name[chosen]
    names, edges = _steps(rank, trace.steps)
    of = np.searchsorted(edges, start, side="right") - 1
    by_step: dict[str, tuple[float, int]] = {}
    for i in np.unique(of).tolist():
        mine = of == i
        covered = length_of(union(start[mine], end[mine])) / 1000
        by_step[names[i] if i >= 0 else ""] = (covered, int(mine.sum()))
    total = np.bincount(name, (end - start) / 1000, len(host.names))
    return Compilations(by_step, host.names[int(total.argmax())], sources)


def _steps(rank: Rank, steps: list[tuple[str, int, int]]) -> tuple[list[str], np.ndarray]:
    if steps:
        return [s for s, _, _ in steps], np.array([start for _, start, _ in steps])
    timeline = timeline_of(rank)
    if timeline is not None:
        return list(timeline.windows.names), timeline.windows.start
    return ["0"], np.zeros(1, np.int64)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The first step against the others, and compilation in the others."""
    found = run.each(COMPILATIONS)
    yield from _first_step(run, found)
    if not found or recording_of(run).is_set_up:  # before a first launch every run compiles: no steady part to tell of
        return
    times = steady(run)
    per_rank, counts, where = [], [], []
    for rank, seen in found.items():
        own = times.get(rank)
        names = own.steps if own else tuple(s for s in seen.by_step if s)
        mine = {s: seen.by_step[s] for s in names if s in seen.by_step}
        if own:  # what takes longer than its step lay before the step's first kernel: set-up
            mine = {s: told for s, told in mine.items() if told[0] <= own.time[own.places[s]] * own.covers}
        steps = max(len(names), 1) * (own.covers if own else 1)
        per_rank.append(sum(us for us, _ in mine.values()) / steps)
        counts.append(sum(n for _, n in mine.values()) / steps)
        where += list(mine)
    sources = next(iter(found.values())).sources
    mean = float(np.mean(per_rank))
    step = facts.number("step.time_us", RUN)
    yield from fact("compile.steady_us", RUN, mean, *sources, samples=len(per_rank))
    if step:
        yield from fact("compile.steady_share", RUN, mean / step, *sources, samples=len(per_rank))
    yield from fact("compile.steady_count", RUN, float(np.mean(counts)), *sources, samples=len(per_rank))
    yield from fact("compile.step_count", RUN, len(set(where)) or None, *sources)
    yield from fact("compile.steps", RUN, ", ".join(dict.fromkeys(where)) or None, *sources)
    names_of = [seen.name for seen in found.values() if seen.name]
    yield from fact("compile.name", RUN, names_of[0] if names_of and where else None, *sources)


def _first_step(run: Run, found: dict[int, Compilations]) -> Iterator[Fact]:
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    sources: dict[str, tuple[Source, ...]] = {}
    for times in steady(run).values():
        warm = [(name, us) for name, reason, us in times.excluded if reason == "warm-up"]
        usual = float(np.median(times.time)) if len(times.time) else 0.0
        if warm and usual > 0:
            name, us = warm[0]
            ratios[name].append((us / usual, us - usual))
            sources[name] = times.sources
    for name, rows in ratios.items():
        subject = Subject("step", name)
        ratio, excess = np.median(np.array(rows), axis=0).tolist()
        yield from fact("compile.step_ratio", subject, ratio, *sources[name], samples=len(rows))
        yield from fact("compile.step_excess_us", subject, excess, *sources[name], samples=len(rows))
        host = [seen.by_step[name][0] for seen in found.values() if name in seen.by_step]
        if found:
            yield from fact("compile.step_host_us", subject, float(np.median(host)) if host else 0.0)
        idles = [idle for idle in run.each(IDLE).values() if name in idle.steps]
        waits = [w for idle in idles if (w := _awaiting_batch(idle, name)) is not None]
        owner, owned = max((_owner(idle, name) for idle in idles), key=lambda each: each[1], default=("", 0.0))
        owned -= float(np.median(host)) if host else 0.0
        if waits:
            yield from fact("compile.step_loader_us", subject, max(waits), *sources[name], samples=len(waits))
        if owned > 0:
            yield from fact("compile.step_owner_us", subject, owned, *sources[name], samples=len(idles))
        if len(ratios) == 1 and (waits or owned > 0):
            yield from fact("compile.first_step", RUN, name, *sources[name])
            yield from fact("compile.first_excess_us", RUN, excess, *sources[name], samples=len(rows))
            yield from fact("compile.first_batch_us", RUN, max(waits, default=None), *sources[name], samples=len(waits))
            if owned > 0:
                yield from fact("compile.first_owner", RUN, owner, *sources[name])
                yield from fact("compile.first_owner_us", RUN, owned, *sources[name], samples=len(idles))


def _awaiting_batch(idle: Idle, step: str) -> float | None:
    """What a rank's timeline shows of waiting for its loader in this step, microseconds."""
    if idle.loader_us is None:
        return None
    us = float(idle.loader_us[idle.steps.index(step)])
    return us if us == us else None


def _owner(idle: Idle, step: str) -> tuple[str, float]:
    """The function of the host in which the device idles longest in this step, and how long, microseconds."""
    at = idle.steps.index(step)
    own = [each for each in idle.functions if not _OPERATOR.search(each.name)]
    told = [(each.name, float(np.nan_to_num(each.us[at]))) for each in own]
    return max((each for each in told if each[1] > 0), key=lambda each: each[1], default=("", 0.0))


class Changing(Struct, frozen=True):
    """Operators with several shapes on one rank: name -> (shapes, slowest ÷ fastest mean, microseconds per step)."""

    operators: dict[str, tuple[int, float, float]]
    sources: tuple[Source, ...]


CHANGING = Reduction("shapes", Changing)


MOST = 20


def reduce_shapes(rank: Rank) -> Changing | None:
    """From the older table of dynamic-shape networks."""
    frame = rank.read("dynamic_shapes") if rank.has("dynamic_shapes") else None
    if frame is None or frame.empty:
        return None
    frame = frame[frame["duration_us"].notna() & frame["name"].notna() & frame["shapes"].notna()]
    steps = max(frame["step"].nunique(), 1)
    operators = {}
    for name, rows in frame.groupby("name"):
        means = rows.groupby("shapes")["duration_us"].mean()
        if len(means) > 1 and means.min() > 0:
            total = float(rows["duration_us"].sum()) / steps
            operators[str(name)] = (len(means), float(means.max() / means.min()), total)
    best = sorted(operators, key=lambda n: -operators[n][2])[:MOST]
    source = rank.source("dynamic_shapes")
    return Changing({n: operators[n] for n in best}, (source,))


def measure_shapes(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Operators whose shape changes, from the older table, else from the kernels of graph nodes."""
    del facts
    rows: dict[str, tuple[int, float | None, float | None]] = {}
    sources: tuple[Source, ...] = ()
    for changing in run.each(CHANGING).values():
        rows.update(changing.operators)
        sources = changing.sources
    if not rows:
        for found in run.each(OPERATORS).values():
            rows.update({name: (count, None, None) for name, count, _ in found.changing})
            sources = found.sources
            if found.shapes_per_operator is None:
                return
        if not run.each(OPERATORS):
            return
    yield from fact("compile.changing_count", RUN, len(rows), *sources)
    for name, (count, ratio, us) in rows.items():
        subject = Subject("operator", name)
        yield from fact("compile.shape_count", subject, count, *sources)
        yield from fact("compile.shape_time_ratio", subject, ratio, *sources)
        yield from fact("compile.operator_us", subject, us, *sources)


_TRACE = tuple(k for k in KINDS if k.name not in (
    "compile.changing_count", "compile.shape_count", "compile.shape_time_ratio", "compile.operator_us"))  # fmt: skip

FAMILIES = (
    Family("compile", _TRACE, measure, COMPILATIONS.by(reduce), ("trace",), uses=(STEPS, IDLE, RECORDING)),
    Family(
        "shapes", tuple(k for k in KINDS if k not in _TRACE), measure_shapes, CHANGING.by(reduce_shapes),
        ("dynamic_shapes",), fallbacks=(OPERATORS,),
    ),
)  # fmt: skip
