"""What lies between iterations: in a recording that times each on its own (msprof's older timelines), and on the host
between groups of launches.

An iteration that begins when its data come has waited for them, and the wait is a part of the step. Where the data come
long before the iteration begins, or while it runs, nothing says whose the time between is: it belongs to no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints
from advisor.basics.intervals import covered_in, union
from advisor.basics.intervals import measure as length_of
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.recording.limits import section
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank
from advisor.sources.streams.trace import Trace

KINDS = (
    kind("step.between_us", "us", "run rank", "between iterations, in none of them",
         formula="start of an iteration − end of the one before, in the middle; only where each is timed on its own "
         "and does not begin when its data come; for the run: mean over ranks", needs="iterations"),
    kind("step.period_us", "us", "run rank", "from one iteration's start to the next one's",
         formula="middle distance of starts, where something lies between iterations", needs="iterations"),
    kind("step.data_bound_us", "us", "run rank", "iterations waited for their data, as their marks tell",
         formula="end of the wait for data − end of the iteration before, in the middle; only where iterations begin "
         "when their data come; for the run: mean over ranks", needs="iterations"),
)  # fmt: skip


class Between(Struct, frozen=True):
    """Microseconds in the middle; `awaited` says that iterations begin when their data come, `apart` that each is timed
    on its own; `count` is the number of pairs of iterations."""

    gap_us: float
    period_us: float
    awaited: bool
    apart: bool
    count: int
    sources: tuple[Source, ...]


BETWEEN = Reduction("between", Between)


def between_iterations(rank: Rank) -> Between | None:
    """What lies between one iteration and the next; None where they follow one another at once, or nothing tells."""
    return rank.once(between_iterations, lambda: _measured(rank))


def awaits_data(rank: Rank) -> bool:
    """Whether the rank's iterations begin when their data come, so that the wait before them is a part of the step."""
    found = between_iterations(rank)
    return found is not None and found.awaited


def _measured(rank: Rank) -> Between | None:
    frame: Any = rank.read("iterations") if rank.has("iterations") else None
    needed = ("iteration", "begin_ns", "data_us")
    if frame is None or not all(name in frame and frame[name].notna().any() for name in needed):
        return None
    if "graph" in frame and frame["graph"].nunique() > 1:
        return None  # graphs that take turns lie between one another's executions
    frame = frame[frame["iteration"].astype("string").str.fullmatch(r"[0-9]{1,9}").fillna(False).astype(bool)]
    number = frame["iteration"].astype(int).to_numpy()
    end, begin = (frame[name].to_numpy(float, na_value=np.nan) for name in ("end_ns", "begin_ns"))
    data = frame["data_us"].to_numpy(float, na_value=np.nan)[1:]
    gap, period = (begin[1:] - end[:-1]) / 1000, np.diff(begin) / 1000
    told, limits = (np.diff(number) == 1) & np.isfinite(gap) & np.isfinite(period), section("between")
    gap, period, data = gap[told], period[told], data[told]
    if not gap.size or np.median(gap) <= limits["step_share"] * np.median(period):
        return None
    known = np.isfinite(data) & (gap > 0)
    met = np.abs(data - gap)[known] <= limits["met_share"] * gap[known]
    awaited = bool(met.size) and float(met.mean()) >= limits["most"]
    apart = rank.tables["iterations"].reader == "timelines.iterations"
    source = rank.source("iterations", "begin_ns", "end_ns", "data_us")
    return Between(float(np.median(gap)), float(np.median(period)), awaited, apart, len(gap), (source,))


FRAMEWORKS = frozenset(("Python", "MindSpore", "PyTorch", "Torch"))
"""Processes of a timeline that hold what the framework and the script do."""


def host_works(trace: Trace, start: Ints, end: Ints) -> bool:
    """Whether the host does work of its own between groups of launches, which then fills most of the device's long
    pauses: the kernels (in order of start, nanoseconds) are a program's, however alike they are. What holds launches as
    well, as the frame of a whole script does, is no such work."""
    set_up, limits = section("set_up"), section("repetition")
    if not start.size:  # a timeline whose kernels lost their starts
        return False
    free = np.maximum.accumulate(end)[:-1]
    long = start[1:] - free >= set_up["gap_us"] * 1000
    pauses = free[long], start[1:][long]
    paused, whole = length_of(pauses), int(end.max() - start[0])
    if not limits["executions"] <= long.sum() <= len(start) / 2 or paused < set_up["idle_share"] * whole:
        return False
    names = {name for process, name in trace.activities if process in FRAMEWORKS}
    host = trace.host
    own = np.array([name in names for name in host.names], bool)[host.name]
    first, last = host.start[own], host.end[own]
    place = np.maximum(np.searchsorted(pauses[0], (first + last) // 2, side="right") - 1, 0)
    within = np.minimum(last, pauses[1][place]) - np.maximum(first, pauses[0][place])
    inside = within >= limits["steady_share"] * (last - first)
    work = union(first[inside], last[inside])
    return int(covered_in(work, *pauses).sum()) >= set_up["idle_share"] * paused


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The time between iterations: spent waiting for data, or nobody's."""
    del facts
    told: dict[str, list[float]] = {}
    for rank, one in run.each(BETWEEN).items():
        found = {"step.data_bound_us": one.gap_us} if one.awaited else {}
        if one.apart and not one.awaited:
            found = {"step.between_us": one.gap_us, "step.period_us": one.period_us}
        for name, value in found.items():
            subject = Subject("rank", str(rank), (rank,))
            yield from fact(name, subject, value, *one.sources, samples=one.count)
            told.setdefault(name, []).append(value)
    for name, values in told.items():
        yield from fact(name, RUN, float(np.mean(values)), samples=len(values))


FAMILIES = (Family("between", KINDS, measure, BETWEEN.by(between_iterations), ("iterations",)),)
