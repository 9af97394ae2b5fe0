"""Steps recomputed from kernels: what step_trace_time.csv says, where it is missing, by interval unions (S20, S80)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints
from advisor.basics.intervals import Intervals, clip, measure, subtract, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.kernel_time import Timeline, busy, timeline_of
from advisor.facts.recording.iterations import iterations_of
from advisor.facts.recording.limits import section
from advisor.facts.recording.tasks_alone import tasks_alone
from advisor.facts.recording.windows import follows
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes, load_trace, trace_source
from advisor.sources.streams.trace import Trace

_BEHIND = section("set_up")["ahead_share"]
_ROUNDING_NS = 1000
"""Links and lanes tell one start with their own rounding."""

KINDS = (
    kind("operators.kernel_count", "count", "run rank", "kernels on the device per step",
         formula="kernels ÷ steps, communication included; for the run: mean over ranks", needs="kernels"),
)  # fmt: skip


class KernelStep(Struct, frozen=True):
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


class KernelSteps(Struct, frozen=True):
    """All steps of one rank."""

    steps: tuple[KernelStep, ...]
    sources: tuple[Source, ...]
    leads_us: tuple[float, ...] = ()
    """Idle before each step's first kernel, which stands in the row before it; NaN where nothing precedes the step.
    Empty where the steps do not begin with their first kernels, or kernels one by one tell it."""
    passes: int = 0
    """How often the same kernels run one after the other where nothing marks steps; 0 where something does, or nothing
    repeats."""


KERNEL_STEPS = Reduction("kernels", KernelSteps)


def reduce(rank: Rank) -> KernelSteps | None:
    """Steps from the kernels, else from the profiler's own lanes in the timeline; kept until the rank forgets."""
    return rank.once(reduce, lambda: _place(rank))


def _place(rank: Rank) -> KernelSteps | None:
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
        steady = timeline.placed.steady if timeline.placed is not None else None
        passes = steady.repetition.executions if steady is not None and steady.repetition is not None else 0
        return KernelSteps(_steps(rows, *_unions(timeline)), (source,), passes=passes)
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
    running = union(*map(np.concatenate, zip(computing, communication, strict=True)))
    if len(marks) > 1 and (begun := _begun(trace, marks, running)) is not None:
        names, firsts, waits = zip(*begun, strict=True)
        near = follows(names, firsts, [then - wait for then, wait in zip(firsts[1:], waits[1:], strict=True)])
        ends = [
            then if together else then - wait for then, wait, together in zip(firsts[1:], waits[1:], near, strict=True)
        ]
        ends.append(_end_of_last(trace, marks[-1], running))
        rows = [(name, start, end, 0) for name, start, end in zip(names, firsts, ends, strict=True)]
        leads = [wait / 1000 if together else np.nan for wait, together in zip(waits[1:], near, strict=True)]
        source = trace_source(rank) or Source("")
        return KernelSteps(_steps(rows, computing, communication), (source,), (np.nan, *leads))
    if len(marks) > 1 and _is_behind(marks[-1][2], running):  # each step's share of the work is all that is known
        cuts = np.linspace(low, high, len(marks) + 1).astype(np.int64).tolist()
        rows = [(name, start, end, 0) for (name, *_), (start, end) in zip(marks, pairwise(cuts), strict=True)]
    elif len(marks) > 1:  # from mark to mark: that the device is behind the host shifts all of them alike
        next_to = follows(*zip(*marks, strict=True))
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


def _is_behind(end: int, running: Intervals) -> bool:
    """Whether most of the device's work runs after the last mark's end: the host had run ahead, and its marks tell how
    many steps there are, not when they are."""
    later = np.maximum(running[1] - np.maximum(running[0], end), 0).sum()
    return bool(later > _BEHIND * (running[1] - running[0]).sum())


def _begun(trace: Trace, marks: list[tuple[str, int, int]], running: Intervals) -> list[tuple[str, int, int]] | None:
    """(step, start of the first kernel that was asked for in its mark, idle before that), nanoseconds: steps of the
    device, however far it is behind its host. None where launches are not told."""
    asked = _asked(trace)
    order = np.argsort(asked, kind="stable")
    launched, found = asked[order], list[tuple[str, int, int]]()
    for name, start, end in marks:
        low, stop = np.searchsorted(launched, (start, end))
        first = int(trace.started[order[low:stop]].min()) if low < stop else int(running[1][-1])
        place = int(np.searchsorted(running[1], first, "right"))
        if place < len(running[0]):
            begins = int(running[0][place])
            idle = begins - int(running[1][place - 1]) if place and first <= begins + _ROUNDING_NS else 0
            found.append((name, max(first, begins), idle))
    if len(found) < 2 or any(one[1] >= other[1] for one, other in pairwise(found)):
        return None
    return found


def _asked(trace: Trace) -> Ints:
    """When the loop asked for each task: a queue hands the last operators of a step to the launching thread when the
    loop is in the next step already."""
    return trace.called if trace.called.size else trace.launched


def _end_of_last(trace: Trace, mark: tuple[str, int, int], running: Intervals) -> int:
    """When the last step's kernels end: what is launched a whole step behind its mark is none of it."""
    _, start, end = mark
    later = trace.started[_asked(trace) > 2 * end - start]
    until = np.searchsorted(running[0], later.min(initial=running[1][-1]))
    return int(running[1][max(until - 1, 0)])


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
