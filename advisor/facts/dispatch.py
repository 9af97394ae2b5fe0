"""From the host's launch to the device's start: does the host stay ahead, and what holds it up (S39, S58)?

A kernel is starved when the host launched it only after the device had run dry: then the idle time before it is the
host's. A kernel launched earlier lies in the device's queue (slanted links), and idle time before it has other reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.kernel_time import Floats, Ints, timeline_of
from advisor.facts.operators import scale
from advisor.facts.steps import steady
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.trace import Trace, load_trace

_BOTH = "run rank"
_ALL = "run rank step"
STALL_US = 1000.0
"""Idle time before one kernel beyond this is a stall of its own kind, not the cost of launching."""

_SYNC = re.compile(r"[Ss]ynchronize|SyncStream|WaitPipeline|StreamSync")
_LAUNCH = re.compile(r"^(Node@)?launch$|KernelLaunch|LaunchKernel|aclrtLaunchKernel|rtKernelLaunch")
_COMPILE = re.compile(r"^opCompile$|^aclopCompile$|JitCompile|CompileGraph|Compiler::|::Compile|BuildGraph")
_SLOW_PATH = re.compile(r"aclopCompileAndExecute|aclopExecute")
_ALLOCATE = re.compile(
    r"aclMallocMemInner|aclrtMalloc(?!Host)|aclrtFree(?!Host)|aclrtFreePhysical|aclrtMapMem|aclrtUnmapMem"
)

KINDS = (
    kind("dispatch.lead_median_us", "us", _ALL, "from launch on the host to start on the device, median",
         formula="HostToDevice links", needs="trace"),
    kind("dispatch.lead_low_us", "us", _BOTH, "the same, 10th percentile", needs="trace"),
    kind("dispatch.lead_high_us", "us", _BOTH, "the same, 90th percentile", needs="trace"),
    kind("dispatch.starved_share", "ratio", _ALL, "kernels launched only after the device had run dry (vertical links, S39)",
         formula="launch ≥ end of all earlier kernels; communication left out", needs="trace"),
    kind("dispatch.starved_idle_us", "us", _ALL, "idle time per step before such kernels, stalls over 1 ms left out",
         needs="trace"),
    kind("dispatch.starved_idle_share", "ratio", _ALL, "the same, share of the step's window", needs="trace"),
    kind("dispatch.stall_us", "us", _BOTH, "idle time per step before launches that came more than 1 ms late", needs="trace"),
    kind("dispatch.queued_idle_us", "us", _BOTH, "idle time per step before kernels that the host had launched in time",
         needs="trace"),
    kind("dispatch.launch_interval_us", "us", _BOTH, "median time from one launch to the next", needs="trace"),
    kind("dispatch.kernel_us", "us", _BOTH, "mean duration of a launched kernel", needs="trace"),
    kind("dispatch.starved_steps", "text", "run", "steps in which most kernels are starved", needs="trace"),
    kind("dispatch.linked_count", "count", _BOTH, "kernels with a link to their launch", needs="trace"),
    kind("dispatch.mode", "text", "run", "pynative or graph, as MindSpore's host events tell", needs="trace"),
)  # fmt: skip

API_KINDS = tuple(
    item
    for key, meaning in (
        ("synchronize", "waiting for the device (Synchronize…)"), ("launch", "launching kernels"),
        ("compile", "compiling operators or graphs"), ("single_op", "operators executed one by one through the compiler's interface"),
        ("memory", "asking for and freeing device memory"),
    )
    for item in (
        kind(f"host_api.{key}_us", "us", _BOTH, f"host time per step in {meaning}", needs="host_api|trace"),
        kind(f"host_api.{key}_share", "ratio", _BOTH, "the same, share of the step; threads may overlap",
             needs="host_api|trace"),
        kind(f"host_api.{key}_count", "count", _BOTH, f"calls per step for {meaning}", needs="host_api|trace"),
        kind(f"host_api.{key}_name", "text", "run", f"costliest interface for {meaning}", needs="host_api|trace"),
    )
) + (
    kind("host_api.synchronize_per_launch", "ratio", _BOTH, "waits for the device per launched kernel", needs="host_api|trace"),
)  # fmt: skip


@dataclass(frozen=True)
class Links:
    """One rank's launches; arrays hold one value a step."""

    steps: tuple[str, ...]
    window_us: Floats
    linked: Floats
    starved: Floats
    starved_idle_us: Floats
    stall_us: Floats
    queued_idle_us: Floats
    lead_median_us: Floats
    lead: tuple[float, float, float]
    """10th, 50th and 90th percentile over all steps."""
    interval_us: float | None
    kernel_us: float
    mode: str
    sources: tuple[Source, ...]


def reduce(rank: Rank) -> Links | None:
    """Launch against start for every linked kernel; None without links."""
    timeline = timeline_of(rank)
    trace = load_trace(rank) if timeline is not None and rank.has("trace") else None
    if timeline is None or trace is None or not timeline.whole or trace.launched.size < 2:
        return None
    kernels = timeline.kernels
    known = np.flatnonzero(kernels.start >= 0)
    at = _matching(kernels.start[known], trace.started)
    found = at >= 0
    index, launched = known[at[found]], trace.launched[found]
    computing = ~timeline.communication[index]
    index, launched = index[computing], launched[computing]
    if not index.size:
        return None
    busy_until = np.maximum.accumulate(kernels.end)
    before = np.where(index > 0, busy_until[np.maximum(index - 1, 0)], kernels.start[index])
    before = np.where(before < 0, kernels.start[index], before)
    gap = np.maximum(kernels.start[index] - before, 0) / 1000
    dry = (launched >= before) & (gap > 0)
    stall = dry & (gap > STALL_US)
    starved = dry & ~stall
    step = timeline.windows.of[index]
    steps = len(timeline.windows.names)
    lead = (kernels.start[index] - launched) / 1000
    interval = np.diff(np.sort(launched)) / 1000
    return Links(
        timeline.windows.names,
        (timeline.windows.end - timeline.windows.start) / 1000,
        np.bincount(step, minlength=steps).astype(float),
        np.bincount(step[dry], minlength=steps).astype(float),
        np.bincount(step[starved], gap[starved], steps),
        np.bincount(step[stall], gap[stall], steps),
        np.bincount(step[~dry], gap[~dry], steps),
        np.array([np.median(lead[step == i]) if (step == i).any() else np.nan for i in range(steps)]),
        (float(np.percentile(lead, 10)), float(np.median(lead)), float(np.percentile(lead, 90))),
        float(np.median(interval)) if interval.size else None,
        float(kernels.duration[index].mean()),
        _mode(trace),
        (rank.source("kernels", "start_ns", "duration_us"), Source(rank.relative(rank.tables["trace"].paths[0]), ("HostToDevice",))),
    )  # fmt: skip


def _matching(starts: Ints, wanted: Ints) -> Ints:
    """Position in sorted `starts` of each wanted start, -1 where there is none within a microsecond."""
    if not starts.size:
        return np.full(wanted.size, -1, np.int64)
    right = np.minimum(np.searchsorted(starts, wanted), starts.size - 1)
    left = np.maximum(right - 1, 0)
    best = np.where(np.abs(starts[left] - wanted) < np.abs(starts[right] - wanted), left, right)
    return np.where(np.abs(starts[best] - wanted) <= 1000, best, -1)


def _mode(trace: Trace) -> str:
    names = [name for process, name in trace.activities if process == "MindSpore"]
    if any(name.startswith("PynativeFramework") for name in names):
        return "pynative"
    if any(name.startswith(("GraphExecutorPy", "RuntimeFramework")) or name == "RunGraph" for name in names):
        return "graph"
    return ""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of steps, ranks and the run."""
    del facts
    found: dict[int, Links] = run.each("dispatch")
    rows: dict[int, dict[str, float]] = {}
    by_step: dict[str, list[tuple[float, float, float, float, float]]] = {}
    for rank, links in found.items():
        per = scale(run, rank, links.steps)
        chosen = per.chosen.astype(bool)
        linked, window = per.per_step(links.linked), per.per_step(links.window_us)
        row = {
            "dispatch.lead_median_us": links.lead[1], "dispatch.lead_low_us": links.lead[0],
            "dispatch.lead_high_us": links.lead[2],
            "dispatch.starved_idle_us": per.per_step(links.starved_idle_us),
            "dispatch.stall_us": per.per_step(links.stall_us),
            "dispatch.queued_idle_us": per.per_step(links.queued_idle_us),
            "dispatch.kernel_us": links.kernel_us, "dispatch.linked_count": linked,
        }  # fmt: skip
        if linked:
            row["dispatch.starved_share"] = per.per_step(links.starved) / linked
        if window:
            row["dispatch.starved_idle_share"] = row["dispatch.starved_idle_us"] / window
        if links.interval_us is not None:
            row["dispatch.launch_interval_us"] = links.interval_us
        rows[rank] = row
        for name, value in row.items():
            yield from fact(
                name, Subject("rank", str(rank), (rank,)), value, *links.sources, samples=int(links.linked.sum())
            )
        for i in np.flatnonzero(chosen & (links.linked > 0)).tolist():
            by_step.setdefault(links.steps[i], []).append((
                links.starved[i] / links.linked[i], links.starved_idle_us[i],
                links.starved_idle_us[i] / max(links.window_us[i], 1e-9), links.lead_median_us[i], links.linked[i],
            ))  # fmt: skip
    if not rows:
        return
    sources = next(iter(found.values())).sources
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = [row[name] for row in rows.values() if name in row]
        yield from fact(name, RUN, float(np.mean(values)), *sources, samples=len(values))
    for step, values_of in by_step.items():
        means = np.mean(np.array(values_of), axis=0)
        keys = ("starved_share", "starved_idle_us", "starved_idle_share", "lead_median_us")
        for key, value in zip(keys, means[:4].tolist(), strict=True):
            yield from fact(f"dispatch.{key}", Subject("step", step), value, *sources, samples=int(means[4]))
    starved = [step for step, values_of in by_step.items() if np.mean([v[0] for v in values_of]) > 0.5]
    shown = ", ".join(starved[:8]) + (f" and {len(starved) - 8} more" if len(starved) > 8 else "")
    yield from fact("dispatch.starved_steps", RUN, shown or None, *sources, samples=len(by_step))
    modes = [links.mode for links in found.values() if links.mode]
    yield from fact("dispatch.mode", RUN, modes[0] if modes else None, *sources)


@dataclass(frozen=True)
class HostTime:
    """Host time by purpose over the profile: purpose -> (microseconds, calls, costliest interface)."""

    by: dict[str, tuple[float, float, str]]
    sources: tuple[Source, ...]


_PURPOSES = (
    ("synchronize", _SYNC),
    ("launch", _LAUNCH),
    ("compile", _COMPILE),
    ("single_op", _SLOW_PATH),
    ("memory", _ALLOCATE),
)


def reduce_api(rank: Rank) -> HostTime | None:
    """Host time by purpose from api_statistic.csv, else from the timeline (CANN's own events before the framework's,
    which contain them)."""
    frame = rank.read("host_api", ("level", "name", "total_us", "count")) if rank.has("host_api") else None
    if frame is not None and not frame.empty:
        rows = zip(frame["name"], frame["total_us"], frame["count"], strict=True)
        usable = [(str(n), float(us), float(c)) for n, us, c in rows if isinstance(n, str) and us == us and c == c]
        return HostTime(_by_purpose(usable), (rank.source("host_api", "name", "total_us", "count"),))
    trace = load_trace(rank) if rank.has("trace") else None
    if trace is None:
        return None
    found: dict[str, tuple[float, float, str]] = {}
    for layer in ("MindSpore", "CANN"):
        found.update(_by_purpose(
            (name.partition("@")[2] or name, seen.total_us, float(seen.count))
            for (process, name), seen in trace.activities.items()
            if process == layer
        ))  # fmt: skip
    return HostTime(found, (Source(rank.relative(rank.tables["trace"].paths[0])),)) if found else None


def _by_purpose(rows: Iterable[tuple[str, float, float]]) -> dict[str, tuple[float, float, str]]:
    result = {}
    rows = list(rows)
    for purpose, pattern in _PURPOSES:
        mine = [row for row in rows if pattern.search(row[0])]
        if mine:
            best = max(mine, key=lambda row: row[1])
            result[purpose] = (sum(us for _, us, _ in mine), sum(count for _, _, count in mine), best[0])
    return result


def measure_api(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Host time by purpose per step."""
    found: dict[int, HostTime] = run.each("host_api")
    times = steady(run)
    rows: dict[str, list[float]] = {}
    for rank, host in found.items():
        subject = Subject("rank", str(rank), (rank,))
        known = times.get(rank)
        steps = len(known.steps) + len(known.excluded) if known is not None else 1
        step_us = facts.value("step.time_us", subject)
        row: dict[str, float] = {}
        for purpose, (us, count, _) in host.by.items():
            row[f"host_api.{purpose}_us"], row[f"host_api.{purpose}_count"] = us / steps, count / steps
            if isinstance(step_us, (int, float)) and step_us > 0:
                row[f"host_api.{purpose}_share"] = us / steps / float(step_us)
        launches = host.by.get("launch")
        if launches and launches[1] and "synchronize" in host.by:
            row["host_api.synchronize_per_launch"] = host.by["synchronize"][1] / launches[1]
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
            yield from fact(name, subject, value, *host.sources)
    if not found:
        return
    first = next(iter(found.values()))
    for name, values in rows.items():
        yield from fact(name, RUN, float(np.mean(values)), *first.sources, samples=len(values))
    for purpose, (_, _, name) in first.by.items():
        yield from fact(f"host_api.{purpose}_name", RUN, name, *first.sources)


FAMILIES = (
    Family("dispatch", KINDS, measure, reduce, ("trace",), uses=("steps",)),
    Family("host_api", API_KINDS, measure_api, reduce_api, ("host_api",), uses=("steps",)),
)
