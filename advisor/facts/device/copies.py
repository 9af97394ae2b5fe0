"""Time in which a device only copies between memories: batches sent late, weights or states that lie on the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import Intervals, covered_in, intersect
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most
from advisor.facts.device.kernel_time import Timeline, busy, idle_stretches, sums, timeline_of
from advisor.facts.operators.coverage import scale
from advisor.facts.recording.limits import section
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace

_FORMULA = "idle stretches ∩ tasks MEMCPY_* of 100 us and more in the device's lanes"
COVERS = limit("launches", "covers")
KINDS = (
    kind("timeline.copy_idle_us", "us", "run rank", "time per step in which the device only copied between memories",
         formula=_FORMULA, needs="trace kernels"),
    kind("timeline.copy_idle_share", "ratio", "run rank", "the same, share of the step", needs="trace kernels"),
    kind("timeline.copy_beside_us", "us", "run rank", "time per step in which the device copied beside collectives and "
         "computed nothing, where computing went on behind the copy and not behind the collective",
         formula="copies ∩ collectives in stretches without computing of which copies cover half, the last of them "
                 "behind the last collective", needs="trace kernels"),
    kind("timeline.copy_count", "count", "run", "idle stretches with such copies in the recording, on the rank with "
         "most of them", needs="trace kernels"),
    kind("rank.copy_excess_us", "us", "rank", "how much longer it copies so than the median of the other ranks",
         needs="trace kernels"),
)  # fmt: skip


@dataclass(frozen=True)
class Copies:
    """What copies take of one rank's idle time; arrays hold one value a step."""

    steps: tuple[str, ...]
    window_us: Floats
    idle_us: Floats
    """NaN where the recording ends before the copies of a step."""
    beside_us: Floats
    """While a collective ran that ended before them."""
    count: int
    sources: tuple[Source, ...]


_OF_STEP = "step.time", "timeline.idle"
COPIES = Reduction("copies", Copies)


def reduce(rank: Rank) -> Copies | None:
    """None without kernels or the device's own lanes of a timeline."""
    timeline, trace = timeline_of(rank), load_trace(rank)
    if timeline is None or not timeline.whole or trace is None or not (timeline.kernels.start >= 0).any():
        return None
    if not trace.device_tasks and not trace.copies[0].size:
        return None
    windows = timeline.windows
    start, end, step = idle_stretches(busy(timeline), windows.start, windows.end)
    copied = covered_in(trace.copies, start, end) / 1000
    found = sums(step, copied, len(windows.names))
    # copies before a step's first kernel end the window before: none follows the last one
    if len(found) > 1 and found[-1] < section("idle_places")["alike"] * float(np.median(found[:-1])):
        found[-1] = np.nan
    source = rank.source("kernels", "start_ns", "duration_us", steps=windows.names)
    none = np.zeros(len(windows.names))
    beside = sums(*_held_by_copies(timeline, trace.copies), len(windows.names)) if trace.copies[0].size else none
    return Copies(
        windows.names, (windows.end - windows.start) / 1000, found, beside, int((copied > 0).sum()),
        (rank.source("trace"), source) if rank.has("trace") else (source,),
    )  # fmt: skip


def _held_by_copies(timeline: Timeline, copies: Intervals) -> tuple[Ints, Floats]:
    """(window, microseconds that copies and collectives share) of the stretches without computing that a copy holds: it
    covers half of the stretch, and ends behind the last collective. Who ends first holds nobody."""
    windows = timeline.windows
    start, end, step = idle_stretches(busy(timeline, ~timeline.communication), windows.start, windows.end)
    collectives = busy(timeline, timeline.communication)

    def within(intervals: Intervals) -> Ints:
        return covered_in(intervals, start, end)

    def last(intervals: Intervals) -> Ints:
        place = np.searchsorted(intervals[0], end, side="left") - 1
        ends = np.where(place >= 0, intervals[1][np.maximum(place, 0)] if intervals[1].size else 0, 0)
        return np.minimum(ends, end)

    both = within(intersect(copies, collectives))
    held = (both > 0) & (within(copies) >= COVERS * (end - start)) & (last(copies) > last(collectives))
    return step[held], both[held] / 1000


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Of each rank, and what most of them have."""
    rows: dict[int, dict[str, float]] = {}
    found = run.each(COPIES)
    for rank, copies in found.items():
        per = scale(run, rank, copies.steps)
        counted = (per.chosen > 0) & np.isfinite(copies.idle_us)
        if not counted.any():
            continue
        window = per.per_step(copies.window_us)
        us = per.per_step(np.nan_to_num(copies.idle_us, nan=float(copies.idle_us[counted].mean())))
        row = {"timeline.copy_idle_us": us}
        step, idle = (facts.number(f"{name}_us", Subject("rank", str(rank), (rank,))) for name in _OF_STEP)
        if idle is not None:  # the mean of the steps whose copies were recorded is no more than all steps idle
            row["timeline.copy_idle_us"] = min(row["timeline.copy_idle_us"], idle)
        row["timeline.copy_beside_us"] = per.per_step(copies.beside_us)
        if step := step or window:
            row["timeline.copy_idle_share"] = row["timeline.copy_idle_us"] / step
        rows[rank] = row
    if not rows:
        return
    sources = found[next(iter(rows))].sources
    for rank, row in rows.items():
        subject = Subject("rank", str(rank), (rank,))
        for name, value in row.items():
            yield from fact(name, subject, value, *found[rank].sources)
        others = [other["timeline.copy_idle_us"] for peer, other in rows.items() if peer != rank]
        if others:
            above = max(row["timeline.copy_idle_us"] - float(np.median(others)), 0.0)
            yield from fact("rank.copy_excess_us", subject, above, *found[rank].sources)
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows.values():
        for name, value in row.items():
            columns[name].append(value)
    for name, values in columns.items():
        yield from fact(name, RUN, held_by_most(values), *sources, samples=len(values))
    yield from fact("timeline.copy_count", RUN, max(copies.count for copies in found.values()), *sources)


FAMILIES = (Family("copies", KINDS, measure, COPIES.by(reduce), ("trace", "kernels"), uses=(STEPS,)),)
