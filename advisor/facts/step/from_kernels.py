"""Steps recomputed from kernels: what step_trace_time.csv says, where it is missing, by interval unions (S20, S80)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from advisor.basics.intervals import Intervals, clip, measure, subtract, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import Timeline, busy, timeline_of
from advisor.facts.recording.iterations import iterations_of
from advisor.facts.recording.tasks_alone import tasks_alone
from advisor.facts.recording.windows import follows
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes, load_trace, trace_source
from advisor.sources.streams.trace import Trace

KINDS = (
    kind("operators.kernel_count", "count", "run rank", "kernels on the device per step",
         formula="kernels ÷ steps, communication included; for the run: mean over ranks", needs="kernels"),
)  # fmt: skip


@dataclass(frozen=True)
class KernelStep:
    """One step on the device. `computing` and `communication` are unions, `exposed` is communication while nothing
    computes, `idle` is neither; computing + exposed + idle = end − start."""

    step: str
    start_ns: int
    end_ns: int
    computing_us: float
    communication_us: float
    exposed_us: float
    idle_us: float
    kernels: int = 0


@dataclass(frozen=True)
class KernelSteps:
    """All steps of one rank."""

    steps: tuple[KernelStep, ...]
    sources: tuple[Source, ...]


KERNEL_STEPS = Reduction("kernels", KernelSteps)


def reduce(rank: Rank) -> KernelSteps | None:
    """Steps from the kernels, else from the profiler's own lanes in the timeline."""
    timeline = timeline_of(rank)
    if timeline is not None and not timeline.whole:
        return None
    if timeline is not None and (timeline.kernels.start >= 0).any():
        windows = timeline.windows
        counts = np.bincount(windows.of, minlength=len(windows.names))
        rows = [
            (name, int(start), int(end), int(count))
            for name, start, end, count in zip(windows.names, windows.start, windows.end, counts, strict=True)
        ]
        source = rank.source("kernels", "start_ns", "duration_us", steps=windows.names)
        return KernelSteps(_steps(rows, *_unions(timeline)), (source,))
    return _from_lanes(rank)


def _unions(timeline: Timeline) -> tuple[Intervals, Intervals]:
    return busy(timeline, ~timeline.communication), busy(timeline, timeline.communication)


def _steps(
    rows: list[tuple[str, int, int, int]], computing: Intervals, communication: Intervals
) -> tuple[KernelStep, ...]:
    exposed = subtract(communication, computing)
    result = []
    for name, start, end, count in rows:
        if end <= start:
            continue
        computed = measure(clip(computing, start, end))
        alone = measure(clip(exposed, start, end))
        both = measure(clip(communication, start, end))
        idle = end - start - computed - alone
        result.append(KernelStep(name, start, end, computed / 1e3, both / 1e3, alone / 1e3, idle / 1e3, count))
    return tuple(result)


def _from_lanes(rank: Rank) -> KernelSteps | None:
    trace = load_trace(rank)
    lanes = device_lanes(rank)
    alone = tasks_alone(rank)
    if trace is None or lanes is None or (alone is not None and not alone.steady.idle_told):
        return None
    computing, communication = union(*lanes[0]), union(*lanes[1])
    low = int(min((computing[0][0], *communication[0][:1])))
    high = int(max((computing[1][-1], *communication[1][-1:])))
    marks = [mark for mark in trace.steps if mark[1] < high]
    if len(marks) > 1 and (behind := _behind(trace, marks, high)) is not None:
        rows = [(name, start, end, 0) for name, start, end in behind]
    elif len(marks) > 1:  # from mark to mark: that the device is behind the host shifts all of them alike
        next_to = follows([name for name, *_ in marks])
        ends = [
            then if near else end for (_, _, end), (_, then, _), near in zip(marks, marks[1:], next_to, strict=False)
        ]
        # nothing was recorded up to the last mark's end, or the host's marks go on alone: the timeline was cut there
        seen = high if marks[-1] != trace.steps[-1] else max(high, int(trace.host.start.max(initial=0)))
        ends.append(min(marks[-1][2], seen))
        rows = [(name, start, end, 0) for (name, start, _), end in zip(marks, ends, strict=True)]
        # where it is behind by whole steps, the first marks lie before all of its work: that is no idle step
        rows = [row for row in rows if row[2] > low] or rows
    elif not marks and (told := iterations_of(rank)) is not None:
        rows = [(name, int(s), int(e), 0) for name, s, e in zip(told.names, told.start, told.end, strict=True)]
    else:
        low = low if alone is None else int(alone.start[0])
        rows = [(marks[0][0] if marks else "0", max(marks[0][1], low) if marks else low, high, 0)]
    return KernelSteps(_steps(rows, computing, communication), (trace_source(rank) or Source(""),))


def _behind(trace: Trace, marks: list[tuple[str, int, int]], high: int) -> list[tuple[str, int, int]] | None:
    """Steps of a device that is behind its host by more than a step: from the start of the first kernel that was
    launched in a mark to that of the next mark. None where the device keeps up, or launches are not told."""
    lasts = float(np.median([end - start for _, start, end in marks]))
    if high - marks[-1][2] <= lasts or not trace.launched.size:
        return None
    order = np.argsort(trace.launched, kind="stable")
    launched = trace.launched[order]
    found = []
    for name, start, end in marks:
        low, stop = np.searchsorted(launched, (start, end))
        if low < stop:
            found.append((name, int(trace.started[order[low:stop]].min())))
    if len(found) < 2 or any(one[1] >= other[1] for one, other in pairwise(found)):
        return None
    return [(name, start, end) for (name, start), (_, end) in pairwise([*found, ("", high)])]


def measure_facts(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Kernels per step."""
    del facts
    means = {}
    for rank, found in run.each(KERNEL_STEPS).items():
        counts = [step.kernels for step in found.steps if step.kernels]
        if counts:
            means[rank] = float(np.mean(counts))
            subject = Subject("rank", str(rank), (rank,))
            yield from fact("operators.kernel_count", subject, means[rank], *found.sources, samples=len(counts))
    if means:
        yield from fact("operators.kernel_count", RUN, float(np.mean(list(means.values()))), samples=len(means))


FAMILIES = (Family("kernels", KINDS, measure_facts, KERNEL_STEPS.by(reduce), ("kernels",)),)
