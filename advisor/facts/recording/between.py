"""What lies between the iterations of a recording that times each on its own: msprof's older timelines.

An iteration that begins when its data come has waited for them, and the wait is a part of the step. Where the data come
long before the iteration begins, or while it runs, nothing says whose the time between is: it belongs to no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.recording.limits import section
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

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


@dataclass(frozen=True)
class Between:
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
