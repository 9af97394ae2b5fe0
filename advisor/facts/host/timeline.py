"""The device's timeline: stretches in which nothing runs, what the host did in them, and what else time shows
(S13, S38, S80)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import union
from advisor.basics.units import rank_list
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most
from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.facts.data.loading import DATA_PIPELINE
from advisor.facts.device.clock import clock_of, felt_drop
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.device.kernel_time import Timeline, busy, idle_stretches, sums
from advisor.facts.host.functions import GC, Function, function_facts, functions_of, owner_facts, shares_of
from advisor.facts.host.functions import KINDS as FUNCTION_KINDS
from advisor.facts.host.graph_calls import own_code_us
from advisor.facts.host.loader_waits import loader_waits
from advisor.facts.host.owners import COVERS, LOADER, Owners
from advisor.facts.host.pace import CALLS, slow_hosts
from advisor.facts.host.requests import KINDS as REQUEST_KINDS
from advisor.facts.host.requests import may_wait
from advisor.facts.host.synchronised import between_results, synchronised_us
from advisor.facts.operators.access import ACCESS
from advisor.facts.operators.cores import clock_rated
from advisor.facts.operators.coverage import scale
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.recording.limits import section
from advisor.facts.recording.overhang import tell_apart, tell_overhang, tell_steps, tell_unlinked
from advisor.facts.step.from_kernels import reduce as reduce_steps
from advisor.facts.step.in_steps import in_steps
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import operator_name
from advisor.sources.streams.rank_trace import device_lanes, load_trace
from advisor.sources.streams.trace import Trace

GAPS = 10
"""Longest idle stretches of a rank that are kept one by one."""
_SHOWN = 3
"""As many names of functions are told."""
LONG_US = limit("launches", "long_us")
"""An idle stretch this long is no launch that came late: the host did something else, or nothing."""

_BOTH = "run rank"
KINDS = (
    kind(
        "timeline.idle_us",
        "us",
        _BOTH,
        "time per step in which no kernel and no communication ran",
        formula="step window − union of all kernels; windows run from a step's first kernel to the next one's",
        needs="kernels",
    ),
    kind("timeline.idle_share", "ratio", _BOTH, "the same, share of the windows (S13)", needs="kernels"),
    kind("timeline.long_gap_us", "us", _BOTH, "part of it in stretches of 1 ms and more, per step", needs="kernels"),
    kind("timeline.long_gap_share", "ratio", _BOTH, "the same, share of the windows", needs="kernels"),
    kind("timeline.long_gap_count", "count", _BOTH, "idle stretches of 1 ms and more, per step", needs="kernels"),
    kind("timeline.short_gap_us", "us", _BOTH, "idle time in shorter stretches, per step", needs="kernels"),
    kind("timeline.longest_gap_us", "us", _BOTH, "longest stretch in which nothing runs", needs="kernels"),
    kind("timeline.longest_gap_step", "text", _BOTH, "step in which it lies", needs="kernels"),
    kind("timeline.longest_gap_rank", "text", "run", "rank on which it lies, where there are several", needs="kernels"),
    kind("timeline.longest_gap_start", "text", _BOTH, "where it starts, as the timeline shows it, us", needs="kernels"),
    kind("timeline.longest_gap_before", "text", _BOTH, "operator before it", needs="kernels"),
    kind("timeline.longest_gap_after", "text", _BOTH, "operator after it", needs="kernels"),
    kind("timeline.longest_gap_owner", "text", _BOTH, "what the host did meanwhile", needs="trace"),
    kind(
        "timeline.longest_gap_owner_us",
        "us",
        _BOTH,
        "what that covers of the idle stretches of that step, of the ten longest",
        needs="trace",
    ),
    kind(
        "timeline.gap_owner",
        "text",
        _BOTH,
        "what the host did during most of the long stretches",
        formula="shortest host event that covers half of a stretch and during which the device does little else, else "
        "the events of one name that do so together, weighted by length",
        needs="trace",
    ),
    kind("timeline.gap_loader", "text", _BOTH, "the same, where it is a data loader's call", needs="trace"),
    kind("timeline.gap_owner_share", "ratio", _BOTH, "part of the ten longest stretches that it covers", needs="trace"),
    kind(
        "timeline.gap_functions",
        "text",
        _BOTH,
        "the longest of the functions that share them, where none owns one",
        needs="trace",
    ),
    kind("timeline.gap_functions_count", "count", _BOTH, "how many functions do", needs="trace"),
    kind(
        "timeline.gap_functions_share",
        "ratio",
        _BOTH,
        "part of the ten longest stretches that they cover",
        needs="trace",
    ),
    *FUNCTION_KINDS,
    *REQUEST_KINDS,
    kind("timeline.gc_us", "us", _BOTH, "time per step in which Python collected garbage", needs="trace"),
    kind("timeline.gc_share", "ratio", _BOTH, "the same, share of the step", needs="trace"),
    kind(
        "timeline.gc_stall_us",
        "us",
        "run",
        "what it costs a step: the others wait for the rank that collects longest while its device idles",
        formula="mean over steps of the highest rank's lesser of collecting and idling",
        needs="trace",
    ),
    kind(
        "timeline.gc_own_us",
        "us",
        "rank",
        "idle time per step in which one of those ranks collects that alone do so: the others wait for it",
        needs="trace",
    ),
    kind("timeline.gc_ranks", "text", "run", "the ranks that wait for it, where others hardly do", needs="trace"),
    kind("timeline.gc_stall_share", "ratio", "run", "the same, share of the step", needs="trace"),
    kind(
        "timeline.gc_stall_steps",
        "count",
        "run",
        "in how many steps it stalls the device",
        formula="steps with at least half of the mean stall (knowledge_base/recording.yaml, idle_places.alike)",
        needs="trace",
    ),
    kind(
        "timeline.loader_idle_us",
        "us",
        _BOTH,
        "time per step in which nothing ran while the loop waited for the loader's next batch",
        formula="idle stretches ∩ host events of DataLoader.__next__ or GetNext; 0 where the host's events tell of "
        "something else",
        needs="trace",
    ),
    kind(
        "timeline.loader_within_us",
        "us",
        _BOTH,
        "part of it that lies between kernels of the step, not before its first one: the loop fetches its batch after "
        "it has launched something, or several batches a step",
        needs="trace",
    ),
    kind("timeline.loader_idle_share", "ratio", _BOTH, "the same, share of the windows", needs="trace"),
    kind(
        "timeline.loader_stall_us",
        "us",
        "run",
        "what it costs a step: the others wait for the rank whose loader is last",
        formula="mean over steps of the highest rank",
        needs="trace",
    ),
    kind("timeline.loader_stall_share", "ratio", "run", "the same, share of the step", needs="trace"),
    kind(
        "timeline.synchronised_us",
        "us",
        _BOTH,
        "idle time per step around the return of calls in which the host waited for the device, up to 1 ms each",
        formula="idle stretches in which such a call ends",
        needs="trace",
    ),
    kind("timeline.synchronised_share", "ratio", _BOTH, "the same, share of the windows", needs="trace"),
    kind(
        "timeline.own_code_us",
        "us",
        _BOTH,
        "time per step in which nothing ran and the loop was in no call the profiler knows: its own code (S04)",
        formula="idle stretches − host events, workers of the data pipeline left out; with calls of a graph only",
        needs="trace",
    ),
    kind("timeline.own_code_share", "ratio", _BOTH, "the same, share of the windows", needs="trace"),
    kind(
        "timeline.core_mhz",
        "mhz",
        "rank",
        "lowest clock of the AI Core that lasted",
        formula="5th percentile weighted by time",
        needs="trace",
    ),
    kind("timeline.core_mhz_highest", "mhz", "rank", "highest clock of the AI Core seen or rated", needs="trace"),
    kind(
        "timeline.core_mhz_mean",
        "mhz",
        "rank",
        "clock of the AI Core while kernels ran, weighted by time",
        needs="trace",
    ),
    kind(
        "timeline.core_mhz_rated",
        "mhz",
        "rank",
        "clock that the AI Core is rated at",
        formula="device_*/info.json (DeviceInfo, aic_frequency)",
        needs="trace",
    ),
    kind(
        "timeline.core_mhz_drop",
        "ratio",
        "rank",
        "how far the clock was below its highest on average",
        formula="1 − time-weighted mean ÷ highest",
        needs="trace",
    ),
    kind(
        "timeline.core_mhz_felt_drop",
        "ratio",
        "rank",
        "part of the computing time that lower clocks added",
        formula="1 − Σ median at the highest clock ÷ Σ duration, of kernels whose type and shapes ran at both",
        needs="trace kernels",
    ),
)


class Gap(Struct, frozen=True):
    """An idle stretch."""

    step: str
    start_ns: int
    length_us: float
    before: str
    after: str
    host: str | None = None
    """What the host did, where an event owns the stretch; empty where none does, None where none was recorded."""
    host_us: float = 0.0
    """How much of the stretch that event covers."""
    several: Mapping[str, float] = field(default_factory=dict)
    """Where none does: what functions share it, and how much of it each has; empty where they leave most of it."""
    awaits: bool = False
    """Whether it may be waiting for requests, should these be served."""


class Idle(Struct, frozen=True):
    """One rank's idle time; arrays hold one value a step."""

    steps: tuple[str, ...]
    window_us: Floats
    idle_us: Floats
    long_us: Floats
    long_count: Floats
    gaps: tuple[Gap, ...]
    gc_us: Floats | None
    loader_us: Floats | None
    own_us: Floats | None
    clock: tuple[float, float, float] | None
    """(5th percentile, highest, mean) in MHz."""
    sources: tuple[Source, ...]
    felt_drop: float | None = None
    """Part of the computing time that lower clocks added, as its own kernels tell."""
    synchronised_us: Floats | None = None
    loader_within_us: Floats | None = None
    """The part of `loader_us` between kernels of the step."""
    fetches_ahead: bool = False
    """Whether the loop's batches are fetched ahead, beside it."""
    functions: tuple[Function, ...] = ()
    """Functions of the host in which it idles."""
    owners: tuple[Function, ...] = ()
    """Whoever owns one of the longest stretches, with its part of all long ones."""
    awaiting_us: Floats | None = None
    """In stretches that may be waiting for requests, should it serve any …"""
    awaits_in: str = ""
    """… and the host's function that is the longest of these, where one owns it."""
    rated_mhz: float | None = None
    """What the clock is rated at, as the files or the name of the card tell."""


IDLE = Reduction("timeline", Idle)


def reduce(rank: Rank) -> Idle | None:
    """Idle stretches of the device: by its kernels, else by what the timeline draws of it; None where rows are missing
    between kernels."""
    timeline = work_of(rank)
    if timeline is None:
        return _from_lanes(rank)
    if not timeline.whole or not (timeline.kernels.start >= 0).any():
        return None
    trace = load_trace(rank)
    if trace is not None:
        tell_overhang(rank, trace, timeline.kernels)
        tell_steps(rank, trace)
        tell_apart(rank, trace, timeline.kernels)
        tell_unlinked(rank, trace, timeline.kernels)
    windows = timeline.windows
    steps = len(windows.names)
    running = busy(timeline)
    start, end, step = idle_stretches(running, windows.start, windows.end)
    length = (end - start) / 1000
    long = length >= LONG_US
    owners = None if trace is None else Owners(trace, running, int(windows.start[0]), int(windows.end.max()))
    awaiting = may_wait(owners, start, end)
    gaps = tuple(_gaps(timeline, owners, start, end, step, awaiting))
    owned = any(gap.host for gap in gaps)
    waits = None if trace is None else loader_waits(trace, owned, start, end, step, windows.end)
    return Idle(
        windows.names,
        (windows.end - windows.start) / 1000,
        sums(step, length, steps),
        sums(step[long], length[long], steps),
        sums(step[long], None, steps),
        gaps,
        None if trace is None else _collections(timeline, trace),
        None if waits is None else waits.us,
        None if trace is None else own_code_us(trace, start, end, step, steps),
        None if trace is None else clock_of(trace, running),
        (work_source(rank, "start_ns", "duration_us", steps=windows.names),),
        None if trace is None else felt_drop(trace, timeline),
        None if trace is None else synchronised_us(trace, start, end, step, steps, LONG_US),
        None if waits is None else waits.within_us,
        waits is not None and waits.ahead,
        _functions(trace, owners, gaps, (start, end, step), windows.end),
        _owners(trace, gaps, (start, end, step), windows.end),
        sums(step[awaiting], length[awaiting], steps),
        rated_mhz=clock_rated(rank),
    )


def _functions(
    trace: Trace | None, owners: Owners | None, gaps: tuple[Gap, ...], idle: tuple[Ints, Ints, Ints], last: Ints
) -> tuple[Function, ...]:
    if trace is None or owners is None:
        return ()
    longest = [(gap.start_ns, gap.start_ns + round(gap.length_us * 1000)) for gap in gaps if gap.length_us >= LONG_US]
    return functions_of(trace, owners, longest, idle, last, LONG_US)


def _owners(
    trace: Trace | None, gaps: tuple[Gap, ...], idle: tuple[Ints, Ints, Ints], last: Ints
) -> tuple[Function, ...]:
    names = {gap.host for gap in gaps if gap.host and gap.length_us >= LONG_US}
    if trace is None or not names:
        return ()
    return shares_of(trace, names, idle, last, LONG_US, results=between_results(trace, idle[0], idle[1], LONG_US))


def _from_lanes(rank: Rank) -> Idle | None:
    """The same where the timeline alone tells of the device: what ran before and after a stretch is not told then."""
    trace, lanes, found = load_trace(rank), device_lanes(rank), reduce_steps(rank)
    if trace is None or lanes is None or found is None or not found.steps:
        return None
    tell_steps(rank, trace)
    rows = found.steps
    first, last = (np.array([getattr(row, name) for row in rows], np.int64) for name in ("start_ns", "end_ns"))
    running = union(*(np.concatenate((lanes[0][at], lanes[1][at])) for at in (0, 1)))
    start, end, step = idle_stretches(running, first, last)
    length = (end - start) / 1000
    long, owners = length >= LONG_US, Owners(trace, running, int(first[0]), int(last.max()))
    awaiting = may_wait(owners, start, end)
    gaps = tuple(
        Gap(rows[int(step[i])].step, int(start[i]), float(length[i]), "", "", *owners.of(int(start[i]), int(end[i])),
            awaits=bool(awaiting[i]))
        for i in np.argsort(start - end, kind="stable")[:GAPS].tolist()
    )  # fmt: skip
    steps, waits = len(rows), loader_waits(trace, any(gap.host for gap in gaps), start, end, step, last)
    return Idle(
        tuple(row.step for row in rows), (last - first) / 1000, sums(step, length, steps),
        sums(step[long], length[long], steps), sums(step[long], None, steps), gaps, None,
        None if waits is None else waits.us, own_code_us(trace, start, end, step, steps),
        clock_of(trace, running), found.sources,
        synchronised_us=synchronised_us(trace, start, end, step, steps, LONG_US),
        loader_within_us=None if waits is None else waits.within_us,
        fetches_ahead=waits is not None and waits.ahead,
        functions=_functions(trace, owners, gaps, (start, end, step), last),
        owners=_owners(trace, gaps, (start, end, step), last),
        awaiting_us=sums(step[awaiting], length[awaiting], steps), rated_mhz=clock_rated(rank),
    )  # fmt: skip


def _gaps(
    timeline: Timeline, owners: Owners | None, start: Ints, end: Ints, step: Ints, awaiting: Mask
) -> Iterator[Gap]:
    kernels = timeline.kernels
    known = np.flatnonzero(kernels.start >= 0)
    by_end = known[np.argsort(kernels.end[known], kind="stable")]
    for i in np.argsort(start - end, kind="stable")[:GAPS].tolist():
        at = int(np.searchsorted(kernels.end[by_end], start[i], side="right")) - 1
        nxt = int(np.searchsorted(kernels.start[known], end[i]))
        before = operator_name(kernels.names[kernels.name[by_end[at]]]) if at >= 0 else ""
        after = operator_name(kernels.names[kernels.name[known[nxt]]]) if nxt < known.size else ""
        host = (None, 0.0) if owners is None else owners.of(int(start[i]), int(end[i]))
        names = timeline.windows.names
        several = owners.several(int(start[i]), int(end[i])) if owners is not None and host[0] == "" else {}
        length = float(end[i] - start[i]) / 1000
        yield Gap(names[int(step[i])], int(start[i]), length, before, after, *host, several, bool(awaiting[i]))


def _collections(timeline: Timeline, trace: Trace) -> Floats | None:
    """How long Python collects garbage in each window, microseconds; not before the first kernel of all, which ends no
    window."""
    host = trace.host
    names = np.array([bool(GC.match(name)) for name in host.names], bool)
    if not names.any():
        return None
    windows, kernels = timeline.windows, timeline.kernels
    chosen = names[host.name] & (host.end > windows.start[0])
    step = np.clip(np.searchsorted(windows.start, host.start[chosen], side="right") - 1, 0, len(windows.names) - 1)
    length = (host.end[chosen] - host.start[chosen]) / 1000
    found = sums(step, length, len(windows.names))
    known = (kernels.start >= 0) & (windows.of >= 0)
    last = np.zeros(len(windows.names), np.int64)
    np.maximum.at(last, windows.of[known], kernels.end[known])
    behind = host.start[chosen] >= last[step]
    if len(found) > 1 and behind.sum() > len(behind) - behind.sum():
        # mostly before a step's first kernel, which ends the window before: nothing follows the last, which is as most
        found[-1] = np.nan if np.median(found[:-1]) > 0 else 0.0
    return found


def _clock_facts(run: Run) -> Iterator[Fact]:
    """Of the AI Core's clock, as counters of the timeline or `msprof op` told it."""
    alone = {rank: (found.clock, found.sources) for rank, found in run.each(ACCESS).items()}
    for rank, (clock, sources) in (alone | {r: (i.clock, ()) for r, i in run.each(IDLE).items()}).items():
        if clock is None:
            continue
        low, highest, mean = clock
        named = {"": low, "_highest": highest, "_drop": 1 - mean / highest, "_mean": mean}
        for name, value in named.items():
            yield from fact(f"timeline.core_mhz{name}", Subject("rank", str(rank), (rank,)), value, *sources)
    for rank, idle in run.each(IDLE).items():
        subject = Subject("rank", str(rank), (rank,))
        yield from fact("timeline.core_mhz_felt_drop", subject, idle.felt_drop)
        yield from fact("timeline.core_mhz_rated", subject, idle.rated_mhz if idle.clock else None)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of each rank and of the run."""
    yield from _clock_facts(run)
    serves = recording_of(run).kind == "inference"
    found = {rank: _serving(idle) if serves else idle for rank, idle in run.each(IDLE).items()}
    rows: dict[int, dict[str, float]] = {}
    parts: dict[int, float] = {}
    for rank, idle in found.items():
        per = scale(run, rank, idle.steps)
        window = per.per_step(idle.window_us)
        row = {
            "timeline.idle_us": per.per_step(idle.idle_us),
            "timeline.long_gap_us": per.per_step(idle.long_us),
            "timeline.long_gap_count": per.per_step(idle.long_count),
        }
        row["timeline.short_gap_us"] = row["timeline.idle_us"] - row["timeline.long_gap_us"]
        if window > 0:
            row["timeline.idle_share"] = row["timeline.idle_us"] / window
            row["timeline.long_gap_share"] = row["timeline.long_gap_us"] / window
        if idle.gc_us is not None and np.isfinite(collects := idle.gc_us[per.chosen.astype(bool)]).any():
            row["timeline.gc_us"] = float(np.nanmean(collects)) * per.chosen.sum() / per.steps
            if window > 0:
                row["timeline.gc_share"] = row["timeline.gc_us"] / window
        if idle.loader_us is not None and np.isfinite(waits := idle.loader_us[per.chosen.astype(bool)]).any():
            row["timeline.loader_idle_us"] = float(np.nanmean(waits)) * per.chosen.sum() / per.steps
            if window > 0:
                row["timeline.loader_idle_share"] = row["timeline.loader_idle_us"] / window
        if idle.loader_within_us is not None:
            row["timeline.loader_within_us"] = per.per_step(idle.loader_within_us)
        told = per.chosen.astype(bool) & np.isfinite(np.nan if idle.own_us is None else idle.own_us)
        if idle.own_us is not None and told.any() and window > 0:
            share = float(idle.own_us[told].sum() / idle.window_us[told].sum())
            row["timeline.own_code_us"], row["timeline.own_code_share"] = share * window, share
        if idle.synchronised_us is not None:
            row["timeline.synchronised_us"] = per.per_step(idle.synchronised_us)
            if window > 0:
                row["timeline.synchronised_share"] = row["timeline.synchronised_us"] / window
        if serves and idle.awaiting_us is not None:
            row["timeline.awaiting_idle_us"] = per.per_step(idle.awaiting_us)
            if window > 0:
                row["timeline.awaiting_idle_share"] = row["timeline.awaiting_idle_us"] / window
        waited = row.get("timeline.loader_idle_us", 0.0)
        rows[rank] = row = in_steps(run, rank, row, window)
        _cap_loading(row)
        parts[rank] = min(row["timeline.idle_us"] / waited, 1.0) if waited > 0 else 1.0
        subject = Subject("rank", str(rank), (rank,))
        samples = int(per.steps)
        for name, value in row.items():
            yield from fact(name, subject, value, *idle.sources, samples=samples)
        yield from _gap_facts(subject, _steady_gaps(idle, per.chosen), idle.sources)
        if serves:
            yield from fact("timeline.awaiting_owner", subject, idle.awaits_in[:200] or None, *idle.sources)
    if not rows:
        return
    first = next(iter(found.values()))
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = [row[name] for row in rows.values() if name in row]
        yield from fact(name, RUN, held_by_most(values), *first.sources, samples=len(values))
    waits_in = next((idle.awaits_in for idle in found.values() if idle.awaits_in), "")
    yield from fact("timeline.awaiting_owner", RUN, waits_in[:200] if serves and waits_in else None, *first.sources)
    yield from _stall_facts(run, found, parts, facts.number("step.time_us", RUN))
    gaps = [(r, gap) for r, idle in found.items() for gap in _steady_gaps(idle, scale(run, r, idle.steps).chosen)]
    gaps.sort(key=lambda of_rank: -of_rank[1].length_us)
    of_run = list(_gap_facts(RUN, [gap for _, gap in gaps], first.sources))
    yield from of_run
    owner = next((str(one.value) for one in of_run if one.name == "timeline.gap_owner"), None)
    if owner is not None:
        owners = {rank: (idle.steps, idle.owners) for rank, idle in found.items()}
        yield from owner_facts(run, owner, owners, first.sources)
    functions = {rank: (idle.steps, idle.functions) for rank, idle in found.items()}
    yield from function_facts(run, functions, owner, facts.number("step.time_us", RUN), first.sources)
    if gaps and len(found) > 1:
        yield from fact("timeline.longest_gap_rank", RUN, str(gaps[0][0]), *first.sources)


def _serving(idle: Idle) -> Idle:
    """The same of a recording that serves requests: what may be waiting for these owns no idle time."""
    waiting = [gap for gap in idle.gaps if gap.awaits]
    names = Counter({gap.host: gap.host_us for gap in waiting if gap.host})
    functions = tuple(each for each in idle.functions if each.name not in names)
    gaps = tuple(gap for gap in idle.gaps if not gap.awaits)
    return replace(idle, gaps=gaps, functions=functions, awaits_in=next(iter(names), ""))


def _cap_loading(row: dict[str, float]) -> None:
    """Keeps the wait for the loader within the idle time, of which it is a part. It is the mean of the waits that end
    in the recording, one fewer than steps, and the step table tells of the last step as well."""
    idle = row["timeline.idle_us"]
    if row.get("timeline.loader_idle_us", 0.0) > idle:
        row["timeline.loader_idle_us"] = idle
        if "timeline.loader_idle_share" in row and "timeline.idle_share" in row:
            row["timeline.loader_idle_share"] = row["timeline.idle_share"]


def _stall_facts(
    run: Run, found: dict[int, Idle], loading: Mapping[int, float], step_us: float | None
) -> Iterator[Fact]:
    """What pauses of single ranks cost a step that all take together: the mean over steps of the longest one. Of each
    rank's waits for its loader the part counts that is idle time of its steps, at the pace of its peers' hosts."""
    sources = next(iter(found.values())).sources
    slow = slow_hosts(run)
    values: dict[str, dict[str, list[float]]] = {"loader": defaultdict(list), "gc": defaultdict(list)}
    collecting: dict[int, list[float]] = defaultdict(list)
    steps = 0
    for rank, idle in found.items():
        per = scale(run, rank, idle.steps)
        part = float(per.chosen.sum()) / per.steps
        steps = max(steps, int(per.chosen.sum()))
        waited = part * loading[rank] / slow.get(rank, 1.0)
        for i in np.flatnonzero(per.chosen).tolist():
            if idle.loader_us is not None and np.isfinite(idle.loader_us[i]):
                values["loader"][idle.steps[i]].append(waited * float(idle.loader_us[i]))
            if idle.gc_us is not None and np.isfinite(idle.gc_us[i]):
                values["gc"][idle.steps[i]].append(part * float(min(idle.gc_us[i], idle.idle_us[i])))
                collecting[rank].append(values["gc"][idle.steps[i]][-1])
    for name, by_step in values.items():
        if by_step:
            stalls = np.array([max(of_ranks) for of_ranks in by_step.values()])
            stall = float(stalls.mean())
            yield from fact(f"timeline.{name}_stall_us", RUN, stall, *sources, samples=len(by_step))
            if step_us:
                yield from fact(f"timeline.{name}_stall_share", RUN, stall / step_us, *sources, samples=len(by_step))
            if name == "gc" and stall > 0:
                often = int((stalls >= section("idle_places")["alike"] * stall).sum())
                often = steps if often == len(by_step) else often  # in all of which it can be told
                yield from fact("timeline.gc_stall_steps", RUN, often, *sources, samples=len(by_step))
                means = {rank: float(np.mean(each)) for rank, each in collecting.items()}
                least = section("idle_places")["alike"] * max(means.values())
                ranks = [rank for rank, mean in means.items() if mean >= least]
                if len(ranks) < len(found):
                    yield from fact("timeline.gc_ranks", RUN, rank_list(tuple(ranks)), *sources, samples=len(by_step))
                    for rank in ranks:
                        subject = Subject("rank", str(rank), (rank,))
                        yield from fact("timeline.gc_own_us", subject, means[rank], *sources, samples=len(by_step))


def _steady_gaps(idle: Idle, chosen: Floats) -> list[Gap]:
    steady = {step for step, keep in zip(idle.steps, chosen, strict=True) if keep}
    return [gap for gap in idle.gaps if gap.step in steady]


def _gap_facts(subject: Subject, gaps: list[Gap], sources: tuple[Source, ...]) -> Iterator[Fact]:
    if not gaps:
        return
    longest = gaps[0]
    start = f"{longest.start_ns // 1000}.{longest.start_ns % 1000:03d}"
    yield from fact("timeline.longest_gap_us", subject, longest.length_us, *sources)
    yield from fact("timeline.longest_gap_step", subject, longest.step, *sources)
    yield from fact("timeline.longest_gap_start", subject, start, *sources)
    yield from fact("timeline.longest_gap_before", subject, longest.before or None, *sources)
    yield from fact("timeline.longest_gap_after", subject, longest.after or None, *sources)
    yield from fact("timeline.longest_gap_owner", subject, (longest.host or "")[:200] or None, *sources)
    if longest.host:
        alike = sum(gap.host_us for gap in gaps if (gap.step, gap.host) == (longest.step, longest.host))
        yield from fact("timeline.longest_gap_owner_us", subject, alike, *sources)
    owners: dict[str, float] = defaultdict(float)
    for gap in gaps:
        if gap.host:
            owners[gap.host] += gap.host_us
    if not owners and any(gap.host is not None for gap in gaps):
        yield from fact("timeline.gap_owner_share", subject, 0.0, *sources)
        yield from _shared_facts(subject, gaps, sources)
    if owners:
        name, covered = Counter(owners).most_common(1)[0]
        share = covered / sum(gap.length_us for gap in gaps)
        if share >= COVERS:
            yield from fact("timeline.gap_owner", subject, name[:200], *sources)
            yield from fact("timeline.gap_loader", subject, name[:200] if LOADER.search(name) else None, *sources)
        yield from fact("timeline.gap_owner_share", subject, share, *sources)


def _shared_facts(subject: Subject, gaps: list[Gap], sources: tuple[Source, ...]) -> Iterator[Fact]:
    """Of functions that share the stretches, none of which owns one: the longest by name, and what all cover."""
    lasts: Counter[str] = Counter()
    for gap in gaps:
        lasts.update(gap.several)
    share = sum(lasts.values()) / sum(gap.length_us for gap in gaps)
    if share >= COVERS:
        shown = ", ".join(name[:60] for name, _ in lasts.most_common(_SHOWN))
        yield from fact("timeline.gap_functions", subject, shown, *sources)
        yield from fact("timeline.gap_functions_count", subject, len(lasts), *sources)
        yield from fact("timeline.gap_functions_share", subject, share, *sources)


_USES = (STEPS, ACCESS, CALLS, RECORDING, DATA_PIPELINE, EXCHANGES)
FAMILIES = (Family("timeline", KINDS, measure, IDLE.by(reduce), ("kernels", "trace"), uses=_USES),)
