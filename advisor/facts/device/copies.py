"""Time in which a device only copies between memories: batches sent late, weights or states that lie on the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import Intervals, covered_in, intersect, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.cluster.peers import held_by_most, medians_of_others
from advisor.facts.device.kernel_time import busy, idle_stretches, sums, timeline_of
from advisor.facts.operators.coverage import scale
from advisor.facts.recording.limits import section
from advisor.facts.step.from_kernels import reduce as reduce_steps
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes, load_trace
from advisor.sources.streams.trace import LONG_US

_FORMULA = ("idle stretches ∩ tasks MEMCPY_* of 100 us and more in the device's lanes, or rows of shorter ones that "
            "follow one another within 100 us")  # fmt: skip
COVERS = limit("launches", "covers")
KINDS = (
    kind("timeline.copy_idle_us", "us", "run rank", "time per step in which the device only copied between memories",
         formula=_FORMULA, needs="trace"),
    kind("timeline.copy_idle_share", "ratio", "run rank", "the same, share of the step", needs="trace"),
    kind("timeline.copy_pieces_us", "us", "run rank", "of this, time in which short copies follow one another",
         formula="rows of tasks MEMCPY_* below 100 us, from the first to the last", needs="trace"),
    kind("timeline.copy_pieces", "count", "run rank", "short copies per step that follow one another so",
         needs="trace"),
    kind("timeline.copy_beside_us", "us", "run rank", "time per step in which the device copied beside collectives and "
         "computed nothing, where computing went on behind the copy and not behind the collective",
         formula="copies ∩ collectives in stretches without computing of which copies cover half, the last of them "
                 "behind the last collective", needs="trace"),
    kind("timeline.copy_count", "count", "run", "idle stretches with such copies in the recording, on the rank with "
         "most of them", needs="trace"),
    kind("rank.copy_excess_us", "us", "rank", "how much longer it copies so than the median of the other ranks",
         needs="trace"),
)  # fmt: skip


class Copies(Struct, frozen=True):
    """What copies take of one rank's idle time; arrays hold one value a step."""

    steps: tuple[str, ...]
    window_us: Floats
    idle_us: Floats
    """NaN where the recording ends before the copies of a step."""
    pieces_us: Floats
    """Of this, in rows of short copies …"""
    pieces: Floats
    """… and how many those are."""
    beside_us: Floats
    """While a collective ran that ended before them."""
    count: int
    sources: tuple[Source, ...]


_OF_STEP = "step.time", "timeline.idle"
COPIES = Reduction("copies", Copies)


class _Device(Struct, frozen=True):
    """What a rank's device did in its steps, each from `first` to `last`, nanoseconds."""

    steps: tuple[str, ...]
    first: Ints
    last: Ints
    computing: Intervals
    communication: Intervals
    sources: tuple[Source, ...]

    def idle(self, communicates: bool = True) -> tuple[Ints, Ints, Ints]:
        """(start, end, step) of the stretches in which it does not compute, nor `communicates`."""
        running = self.computing
        if communicates:
            running = union(*(np.concatenate((running[at], self.communication[at])) for at in (0, 1)))
        return idle_stretches(running, self.first, self.last)


def _device(rank: Rank) -> _Device | None:
    """By its kernels, else by what the timeline draws of it; None where rows are missing between kernels."""
    timeline = timeline_of(rank)
    if timeline is None:
        return _drawn(rank)
    if not timeline.whole or not (timeline.kernels.start >= 0).any():
        return None
    windows, talks = timeline.windows, timeline.communication
    source = rank.source("kernels", "start_ns", "duration_us", steps=windows.names)
    return _Device(
        windows.names, windows.start, windows.end, busy(timeline, ~talks), busy(timeline, talks),
        (rank.source("trace"), source) if rank.has("trace") else (source,),
    )  # fmt: skip


def _drawn(rank: Rank) -> _Device | None:
    lanes, found = device_lanes(rank), reduce_steps(rank)
    if lanes is None or found is None or not found.steps:
        return None
    first, last = (np.array([getattr(row, at) for row in found.steps], np.int64) for at in ("start_ns", "end_ns"))
    return _Device(tuple(row.step for row in found.steps), first, last, *lanes, (rank.source("trace"),))


def reduce(rank: Rank) -> Copies | None:
    """None without the device's own lanes of a timeline."""
    trace = load_trace(rank)
    if trace is None or not (trace.device_tasks or trace.copies[0].size) or (device := _device(rank)) is None:
        return None
    start, end, step = device.idle()
    long = trace.copies[1] - trace.copies[0] >= LONG_US * 1000
    copies = trace.copies[0][long], trace.copies[1][long]
    *row, pieces = _rows((trace.copies[0][~long], trace.copies[1][~long]), start, end)
    in_row = covered_in((row[0], row[1]), start, end) / 1000
    copied = in_row + covered_in(copies, start, end) / 1000
    count = len(device.steps)
    at = step[np.searchsorted(start, row[0], side="right") - 1]
    found, pieces_us = sums(step, copied, count), sums(step, in_row, count)
    in_steps = sums(at, pieces.astype(np.float64), count)
    # copies before a step's first kernel end the window before: none follows the last one
    if len(found) > 1 and found[-1] < section("idle_places")["alike"] * float(np.median(found[:-1])):
        found[-1] = pieces_us[-1] = in_steps[-1] = np.nan
    beside = sums(*_held_by_copies(device, copies), count) if copies[0].size else np.zeros(count)
    lasts = (device.last - device.first) / 1000
    often = int((copied > 0).sum())
    return Copies(device.steps, lasts, found, pieces_us, in_steps, beside, often, device.sources)


def _rows(short: Intervals, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """(start, end, copies) of the rows of short copies inside these stretches, each copy less than 100 us behind the
    one before it: what the host sends piece by piece holds the device up as one long copy does."""
    place = np.searchsorted(start, short[0], side="right") - 1
    inside = np.flatnonzero((place >= 0) & (short[1] <= end[place])) if start.size else np.empty(0, np.int64)
    low, high, place = short[0][inside], short[1][inside], place[inside]
    begins = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (low - np.append(low[:1], high[:-1]) >= LONG_US * 1000))
    lasts = np.append(begins[1:], low.size) - 1 if begins.size else begins
    kept = high[lasts] - low[begins] >= LONG_US * 1000
    return low[begins[kept]], high[lasts[kept]], (lasts - begins + 1)[kept]


def _held_by_copies(device: _Device, copies: Intervals) -> tuple[Ints, Floats]:
    """(step, microseconds that copies and collectives share) of the stretches without computing that a copy holds: it
    covers half of the stretch, and ends behind the last collective. Who ends first holds nobody."""
    start, end, step = device.idle(communicates=False)

    def within(intervals: Intervals) -> Ints:
        return covered_in(intervals, start, end)

    def last(intervals: Intervals) -> Ints:
        place = np.searchsorted(intervals[0], end, side="left") - 1
        ends = np.where(place >= 0, intervals[1][np.maximum(place, 0)] if intervals[1].size else 0, 0)
        return np.minimum(ends, end)

    both = within(intersect(copies, device.communication))
    held = (both > 0) & (within(copies) >= COVERS * (end - start)) & (last(copies) > last(device.communication))
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
        row = {
            name: per.per_step(np.nan_to_num(values, nan=float(values[counted].mean())))
            for name, values in (
                ("timeline.copy_idle_us", copies.idle_us),
                ("timeline.copy_pieces_us", copies.pieces_us),
                ("timeline.copy_pieces", copies.pieces),
            )
        }
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
    usual = medians_of_others({rank: row["timeline.copy_idle_us"] for rank, row in rows.items()})
    for rank, row in rows.items():
        subject = Subject("rank", str(rank), (rank,))
        for name, value in row.items():
            yield from fact(name, subject, value, *found[rank].sources)
        if len(usual) > 1:
            above = max(row["timeline.copy_idle_us"] - usual[rank], 0.0)
            yield from fact("rank.copy_excess_us", subject, above, *found[rank].sources)
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows.values():
        for name, value in row.items():
            columns[name].append(value)
    for name, values in columns.items():
        yield from fact(name, RUN, held_by_most(values), *sources, samples=len(values))
    yield from fact("timeline.copy_count", RUN, max(copies.count for copies in found.values()), *sources)


FAMILIES = (Family("copies", KINDS, measure, COPIES.by(reduce), ("trace", "kernels"), uses=(STEPS,)),)
