"""Host time by purpose: waiting, launching, compiling, asking for memory (S39, S62, S82)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Ints
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.host.memory_calls import MemoryCalls, memory_calls, recorded_until
from advisor.facts.recording.counts import is_cut
from advisor.facts.recording.kinds.evidence import RECORDING
from advisor.facts.recording.kinds.kind import recording_of
from advisor.facts.recording.limits import section, told_by
from advisor.facts.recording.sums import statistic_of, tell_totals, whole_time
from advisor.facts.recording.windows import is_marked
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import load_kernels
from advisor.sources.streams.rank_trace import load_trace, trace_source
from advisor.sources.streams.trace import AWAITS_CALLBACKS, COPIES_BACK, SYNCHRONISES, Trace

if TYPE_CHECKING:
    import pandas as pd

_BOTH = "run rank"

_LAUNCH = re.compile(r"^(Node@)?launch$|KernelLaunch|LaunchKernel|aclrtLaunchKernel|rtKernelLaunch")
_COMPILE = re.compile(r"^opCompile$|^aclopCompile$|JitCompile|CompileGraph|Compiler::|::Compile|BuildGraph")
_SLOW_PATH = re.compile(r"aclopCompileAndExecute|aclopExecute")
_CAPTURE = re.compile(r"CaptureBegin$|BeginCapture$")
_REPLAY = re.compile(r"mdl(RI)?Execute(Async)?$|ModelExecute$")
_ALLOCATE = re.compile(
    r"aclMallocMemInner|aclrtMalloc(?!Host)|aclrtFree(?!Host)|aclrtFreePhysical|aclrtMapMem|aclrtUnmapMem"
)

_LOAD = "ModelLoad"
"""Loading a graph, which launches each of its kernels once for all its executions."""
_SETS_UP = re.compile(rf"{_COMPILE.pattern}|{_ALLOCATE.pattern}|Init|Finalize|Create|Destroy|Device$|Load")

KINDS = (
    *(
        item
        for key, meaning in (
            ("synchronize", "waiting for the device (Synchronize…)"),
            ("launch", "launching kernels"),
            ("compile", "compiling operators or graphs"),
            ("single_op", "operators executed one by one through the compiler's interface"),
            ("memory", "asking for and freeing device memory"),
            ("capture", "capturing graphs"),
            ("replay", "executing graphs that were compiled or captured before"),
        )
        for item in (
            kind(f"host_api.{key}_us", "us", _BOTH, f"host time per step in {meaning}", needs="host_api|trace"),
            kind(
                f"host_api.{key}_share",
                "ratio",
                _BOTH,
                "the same, share of the step; threads may overlap",
                needs="host_api|trace",
            ),
            kind(f"host_api.{key}_count", "count", _BOTH, f"calls per step for {meaning}", needs="host_api|trace"),
            kind(f"host_api.{key}_name", "text", _BOTH, f"costliest interface for {meaning}", needs="host_api|trace"),
        )
    ),
    kind(
        "host_api.memory_steps",
        "count",
        _BOTH,
        "steady steps in which the host asks for device memory or frees it; for the run: of the rank with most of them",
        needs="trace",
    ),
    kind(
        "host_api.memory_held_us",
        "us",
        _BOTH,
        "per step, how long the device computes nothing while the host asks for device memory or frees it",
        formula="these calls between the kernels that compute, collectives left out",
        needs="trace",
    ),
    kind("host_api.memory_idle_us", "us", _BOTH, "per step, how long the device runs nothing at all meanwhile",
         needs="trace"),
    kind("host_api.longest_name", "text", _BOTH, "interface that takes most of the host's time", needs="host_api"),
    kind(
        "host_api.longest_us",
        "us",
        _BOTH,
        "host time per step in it",
        formula="of the calls that take no longer than what was recorded; no set-up, tear-down or awaited callbacks",
        needs="host_api",
    ),
    kind("host_api.longest_count", "count", _BOTH, "calls of it per step", needs="host_api"),
    kind("host_api.repeated_us", "us", "run", "host time in the interface that takes most of it in many calls",
         formula="its longest call aside; where as many launches as kernels were counted, and nothing tells how long "
         "the recording is", needs="host_api"),
    kind("host_api.repeated_count", "count", "run", "calls of it", needs="host_api"),
    kind("host_api.repeated_name", "text", "run", "that interface", needs="host_api"),
    kind("host_api.repeated_devices", "count", "run", "devices that the process drives, where they are several: these "
         "calls are the share of one of them", needs="host_api"),
    kind("host_api.repeated_waits", "text", "run", "what its calls wait for, by its name: copies, results or nothing",
         needs="host_api"),
    kind(
        "host_api.synchronize_per_launch",
        "ratio",
        _BOTH,
        "waits for the device per launched kernel",
        needs="host_api|trace",
    ),
)  # fmt: skip


Calls = tuple[float, float, str]
"""Microseconds, calls, costliest interface."""


class HostTime(Struct, frozen=True):
    """Host time by purpose over the profile: purpose -> (microseconds, calls, costliest interface)."""

    by: dict[str, Calls]
    sources: tuple[Source, ...]
    calls: tuple[Calls, ...] = ()
    """Each interface of a statistic, whatever it is for, that takes most time first; none of set-up and tear-down,
    nor of what waits for callbacks."""
    repeated: Calls | None = None
    """The interface that takes most time in many calls, its longest call aside; of the same ones."""
    memory: MemoryCalls | None = None
    """The calls for device memory step by step; None where nothing tells when they are made."""
    devices: int = 1
    """Devices that the host calls for; of several, `repeated` is the share of one."""
    fits: bool = False
    """Whether it counts as many launches as the recording has kernels: the calls are of what was recorded."""


HOST_TIME = Reduction("host_api", HostTime)


_PURPOSES = (
    ("synchronize", SYNCHRONISES),
    ("launch", _LAUNCH),
    ("compile", _COMPILE),
    ("single_op", _SLOW_PATH),
    ("memory", _ALLOCATE),
    ("capture", _CAPTURE),
    ("replay", _REPLAY),
)


_OF_SET_UP = ("compile", "single_op", "memory")


def reduce(rank: Rank) -> HostTime | None:
    """Host time by purpose from api_statistic.csv, else from the timeline (CANN's own events before the framework's,
    which contain them)."""
    columns = ("level", "name", "total_us", "count", "avg_us", "max_us")
    frame = rank.read("host_api", columns) if rank.has("host_api") else None
    if frame is not None and not frame.empty:
        tell_totals(rank, frame, "host_api")
        levels = _levels(rank, frame) if "level" in frame else [""] * len(frame)
        rows = zip(levels, frame["name"], frame["total_us"], frame["count"], strict=True)
        told = [
            (level, name, float(us), float(count))
            for level, name, us, count in rows
            if isinstance(name, str) and us == us and count == count
        ]
        told = _without_loading(told)
        calls, kernels = _by_purpose(told), _kernels(rank) * rank.devices
        if _of_more_than_the_steps(calls, kernels):
            return None
        each = sorted(
            (
                (us, count, name)
                for _, name, us, count in told
                if not (AWAITS_CALLBACKS.search(name) or (_SETS_UP.search(name) and not 0 < kernels <= count))
            ),
            reverse=True,
        )
        sources = (rank.source("host_api", "name", "total_us", "count"),)
        fits = "launch" in calls and kernels > 0
        repeated = _repeated(frame, each) if fits else None
        if rank.devices > 1:  # which calls were for this one, nothing tells: no more than the mean of all of them
            share = repeated and (repeated[0] / rank.devices, repeated[1] / rank.devices, repeated[2])
            return HostTime({}, sources, repeated=share, devices=rank.devices)
        within = _within_steps(rank, calls)
        return HostTime(within, sources, tuple(each), repeated, _memory_calls(rank, within), fits=fits)
    trace = load_trace(rank)
    if trace is None or trace.cut:  # which steps the events before the cut are of, nothing tells
        return None
    found: dict[str, Calls] = {}
    for layer in ("MindSpore", "CANN"):
        found.update(_by_purpose(
            (name.rpartition("@")[0], name.partition("@")[2] or name, seen.total_us, float(seen.count))
            for (process, name), seen in trace.activities.items()
            if process == layer
        ))  # fmt: skip
    if not found:
        return None
    within = _within_steps(rank, found)
    return HostTime(within, (trace_source(rank) or Source(""),), memory=_memory_calls(rank, within))


def _levels(rank: Rank, frame: pd.DataFrame) -> list[str]:
    """The level of each row. Where it is none, nothing tells which calls are made inside which: each interface stands
    for itself, so that no launch counts twice."""
    known = told_by("api_level")
    levels = frame["level"].fillna("").astype(str).str.strip().tolist()
    odd = [level for level in levels if not known(level)]
    if odd and any(levels):  # a table without levels names each interface once
        heading = rank.headings("host_api", "level")[0]
        text = f"{heading} names no layer of software in {len(odd)} of {len(levels)} rows: their calls are not added up"
        rank.note(rank.relative(rank.tables["host_api"].paths[0]), text, ("host_api",))
    return [level if known(level) else f"? {name}" for level, name in zip(levels, frame["name"], strict=True)]


def _repeated(frame: pd.DataFrame, each: Sequence[Calls]) -> Calls | None:
    """The interface that takes most time in many calls, without its longest one: the first call of an interface may
    load or compile."""
    longest = dict(zip(frame["name"], frame["max_us"], strict=True)) if "max_us" in frame else {}
    least = section("host_calls")["many"]
    many = []
    for us, count, name in each:
        if count >= max(least, 1):  # a damaged table may count none
            first = float(longest.get(name, us / count))
            many.append((us - (first if first == first else us / count), count, name))
    return max(many, default=None)


def _of_more_than_the_steps(found: dict[str, Calls], kernels: float) -> bool:
    """Whether the statistic counts many more launches than the recording has kernels: the profiler counts the calls of
    the process from its start to its end, of which the device recorded a part. Nothing tells which calls are of it."""
    if not kernels or "launch" not in found:
        return False
    return found["launch"][1] > section("host_calls")["launches_per_kernel"] * kernels


def _without_loading(told: list[tuple[str, str, float, float]]) -> list[tuple[str, str, float, float]]:
    """The calls without the launches that loading a graph makes: they are set-up, as the load is. Where a load was
    counted, the level below the interfaces counts both kinds of launches, and nothing tells them apart."""
    if not any(name == _LOAD for _, name, _, _ in told):
        return told
    return [row for row in told if not (row[0].lower() == "node" and _LAUNCH.search(row[1]))]


def _kernels(rank: Rank) -> float:
    """How many kernels the recording holds, by their rows, or where those are a part, by the statistic of their types:
    one that lists the largest types alone tells by its shares how many there may be. 0 where neither tells, and where
    the statistic is of one step."""
    timeline, kernels = timeline_of(rank), load_kernels(rank)
    if timeline is not None and kernels is not None and not is_cut(rank, kernels):
        return timeline.kernels.start.size
    types = statistic_of(rank)
    if types is None or "count" not in types or ("steps" in types and (types["steps"] == 1).all()):
        return 0.0
    listed = float(types["total_us"].sum()) if "total_us" in types else 0.0
    whole = whole_time(types) if listed > 0 else None
    return float(types["count"].sum()) * max((whole or 0.0) / (listed or 1.0), 1.0)


def _within_steps(rank: Rank, found: dict[str, Calls]) -> dict[str, Calls]:
    """The same without calls of set-up and tear-down, which ask for memory and compile as a matter of course: their
    part by the timeline, where it holds such calls one by one. Where neither it nor marks of steps tell where they
    lie, they are nobody's."""
    timeline = timeline_of(rank)
    if timeline is None or timeline.placed is None or not (timeline.kernels.start >= 0).any():
        return found
    trace = load_trace(rank)
    marked = bool(timeline.placed.marks) or is_marked(rank)
    begin = trace.steps[0][1] if trace is not None and trace.steps else int(timeline.windows.start[0])
    result = {}
    for purpose, (us, count, name) in found.items():
        if purpose not in _OF_SET_UP:
            result[purpose] = us, count, name
            continue
        spans = None if trace is None else _calls(trace, dict(_PURPOSES)[purpose])
        if spans is None or not spans[0].size:
            if marked:
                result[purpose] = us, count, name
            continue
        start, length = spans
        inside = (start >= begin) & (start < recorded_until(trace, timeline))
        if inside.any():
            result[purpose] = us * float(length[inside].sum() / length.sum()), count * float(inside.mean()), name
    return result


def _memory_calls(rank: Rank, found: Mapping[str, Calls]) -> MemoryCalls | None:
    """The calls for device memory on the time axis, where the timeline holds all of them."""
    trace, timeline = load_trace(rank), timeline_of(rank)
    if "memory" not in found or trace is None or timeline is None or timeline.placed is None:
        return None
    return memory_calls(trace, timeline, *_calls(trace, _ALLOCATE), found["memory"][1])


def _calls(trace: Trace, pattern: re.Pattern[str]) -> tuple[Ints, Ints]:
    """(start, length) of the calls kept one by one whose names match, nanoseconds."""
    host = trace.host
    chosen = np.array([bool(pattern.search(name.partition("@")[2] or name)) for name in host.names], bool)
    mine = chosen[host.name] if chosen.size else np.zeros(0, bool)
    return host.start[mine], np.maximum(host.end[mine] - host.start[mine], 1)


def _by_purpose(rows: Iterable[tuple[str, str, float, float]]) -> dict[str, Calls]:
    """Purpose -> (microseconds, calls, costliest interface) of rows (level, name, microseconds, calls). Calls of one
    level are made inside those of another: the level that tells most counts."""
    result = {}
    rows = list(rows)
    for purpose, pattern in _PURPOSES:
        levels: dict[str, list[tuple[str, float, float]]] = {}
        for level, name, us, count in rows:
            if pattern.search(name):
                levels.setdefault(level, []).append((name, us, count))
        if levels:
            mine = max(levels.values(), key=lambda each: sum(us for _, us, _ in each))
            best = max(mine, key=lambda row: row[1])
            result[purpose] = (sum(us for _, us, _ in mine), sum(count for _, _, count in mine), best[0])
    return result


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Host time by purpose per step."""
    times, recording = steady(run), recording_of(run)
    found = {}
    for rank, host in run.each(HOST_TIME).items():
        step_us = facts.number("step.time_us", Subject("rank", str(rank), (rank,)))
        recorded_us = None if step_us is None else step_us * _recorded(times, rank)
        found[rank] = _that_fit(host, recorded_us, recording.has_steps)
        if recording.is_set_up:  # what compiles and asks for memory before a first launch does so in every run
            found[rank] = _without_set_up(found[rank])
    rows: dict[str, list[float]] = {}
    most_steps: int | None = None
    for rank, host in found.items():
        subject = Subject("rank", str(rank), (rank,))
        steps = _recorded(times, rank)
        step_us = facts.number("step.time_us", subject)
        row: dict[str, float] = {}
        own = times.get(rank)
        if host.memory is not None and own is not None and own.covers == 1:
            told = host.memory.among(own.steps)
            if told is not None:
                most_steps = max(told[0], most_steps or 0)
                yield from fact("host_api.memory_steps", subject, told[0], *host.sources)
                row["host_api.memory_held_us"], row["host_api.memory_idle_us"] = told[1:]
        for purpose, (us, count, _) in host.by.items():
            row[f"host_api.{purpose}_us"], row[f"host_api.{purpose}_count"] = us / steps, count / steps
            if step_us:
                row[f"host_api.{purpose}_share"] = us / steps / step_us
        launches = host.by.get("launch")
        if launches and launches[1] and "synchronize" in host.by:
            row["host_api.synchronize_per_launch"] = host.by["synchronize"][1] / launches[1]
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
            yield from fact(name, subject, value, *host.sources)
        yield from _tell_longest(subject, host, steps)
        for purpose, (_, _, interface) in host.by.items():
            yield from fact(f"host_api.{purpose}_name", subject, interface, *host.sources)
    if not found:
        return
    first = next(iter(found.values()))
    yield from fact("host_api.memory_steps", RUN, most_steps, *first.sources)
    for name, values in rows.items():
        none = [0.0] * (len(found) - len(values))
        yield from fact(name, RUN, held_by_most(values + none), *first.sources, samples=len(values))
    for purpose, (_, _, name) in first.by.items():
        yield from fact(f"host_api.{purpose}_name", RUN, name, *first.sources)
    if facts.number("step.time_us", RUN) is None:
        yield from _tell_repeated(host for host in found.values() if host.repeated is not None)
    rank = next(iter(found))
    yield from _tell_longest(RUN, first, _recorded(times, rank))


def _recorded(times: Mapping[int, StepTimes], rank: int) -> int:
    """How many steps the rank's calls are of."""
    return times[rank].recorded if rank in times else 1


def _that_fit(host: HostTime, recorded_us: float | None, marked: bool) -> HostTime:
    """A statistic without the calls that take longer than all that was recorded: most of them lie before it or behind
    it, and nothing tells how much of them does not. Sums that cannot be are damage, and told as such, where as many
    launches as kernels say that the calls are those of steps that are marked."""
    if not host.calls or recorded_us is None:
        return replace(host, calls=())
    by = {purpose: calls for purpose, calls in host.by.items() if (marked and host.fits) or calls[0] <= recorded_us}
    return replace(host, by=by, calls=tuple(calls for calls in host.calls if calls[0] <= recorded_us))


def _without_set_up(host: HostTime) -> HostTime:
    """Without the calls that a recording of nothing but set-up makes as a matter of course."""
    return replace(host, by={purpose: calls for purpose, calls in host.by.items() if purpose not in _OF_SET_UP})


def _tell_repeated(hosts: Iterable[HostTime]) -> Iterator[Fact]:
    """The interface in which a host spends most of its time, of the rank where that is most."""
    host = max(hosts, key=lambda each: each.repeated or (0.0, 0.0, ""), default=None)
    if host is None or host.repeated is None:
        return
    us, count, name = host.repeated
    yield from fact("host_api.repeated_us", RUN, us, *host.sources)
    yield from fact("host_api.repeated_count", RUN, count, *host.sources)
    yield from fact("host_api.repeated_name", RUN, name, *host.sources)
    yield from fact("host_api.repeated_devices", RUN, host.devices if host.devices > 1 else None, *host.sources)
    waits = "copies" if COPIES_BACK.search(name) else "results" if SYNCHRONISES.search(name) else "nothing"
    yield from fact("host_api.repeated_waits", RUN, waits, *host.sources)


def _tell_longest(subject: Subject, host: HostTime, steps: int) -> Iterator[Fact]:
    """The costliest interface of all."""
    if not host.calls:
        return
    us, count, name = host.calls[0]
    yield from fact("host_api.longest_name", subject, name, *host.sources)
    yield from fact("host_api.longest_us", subject, us / steps, *host.sources)
    yield from fact("host_api.longest_count", subject, count / steps, *host.sources)


FAMILY = Family("host_api", KINDS, measure, HOST_TIME.by(reduce), ("host_api",), uses=(STEPS, RECORDING))
