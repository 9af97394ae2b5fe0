"""GetNext, the operator that takes a batch from the device's data queue: how long, and does it run ahead (S05, S12)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.basics.intervals import intersect, measure, union
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.recording.sums import aicpu_of
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

_GETNEXT = re.compile(r"(?i)(?:^|[/_-])(?:dynamic)?get_?next")
HEAVY = limit("loaders", "heavy")
"""Part of a step that a wait for a batch lasts where its loader is behind: handing one over takes time as well."""
SETTLED = int(limit("queueing", "drained"))
"""Fewer fetches in a row that need not wait are chance."""
_DEVICE_CORES = re.compile(r"(?i)ai_?core|vector|mix|ai_cpu_cube|cube")


class GetNext(Struct, frozen=True):
    """GetNext of one rank: executions, their median time, and the part of all in which compute kernels ran beside it.

    The median: the first executions wait for the pipeline to start.
    """

    count: int
    time_us: float | None
    overlap: float | None
    sources: tuple[Source, ...]
    alone_us: float | None = None
    """Over the profile: no compute kernel ran beside it."""
    starts_us: Floats | None = None
    """When each execution began, in order, on the device's clock."""
    ends_us: Floats | None = None

    @property
    def cold(self) -> int:
        """How many executions at the beginning waited for a pipeline that had only just started, where the rest of
        them, which are most, never wait again. 0 where they do: that is no start."""
        if self.starts_us is None or self.ends_us is None or len(self.starts_us) < 2:
            return 0
        return cold_fetches(self.starts_us, self.ends_us)

    @property
    def start_up_us(self) -> float:
        """What the device waited in these beyond the usual, with nothing beside it: no step to come loses that."""
        if not self.cold or self.starts_us is None or self.ends_us is None:
            return 0.0
        lasts = self.ends_us - self.starts_us
        longer = lasts[: self.cold] - float(np.median(lasts[self.cold :]))
        return float(longer.sum()) * (1 - (self.overlap or 0.0))


GET_NEXT = Reduction("getnext", GetNext)


def _is_getnext(names: Any) -> Any:
    return names.astype("string").fillna("").str.contains(_GETNEXT)


def cold_fetches(starts_us: Floats, ends_us: Floats) -> int:
    """As `GetNext.cold`, of executions with these starts and ends."""
    waited = ends_us - starts_us >= HEAVY * float(np.median(np.diff(starts_us)))
    first = len(waited) - int(waited[::-1].argmax()) if waited.any() else 0
    lasts = 2 * (len(waited) - first) > len(waited) and len(waited) - first >= SETTLED
    return first if lasts and 2 * int(waited[:first].sum()) > first else 0


def reduce(rank: Rank) -> GetNext | None:
    """From the kernels, which also tell what ran beside it; else from the AI CPU operators."""
    return _from_kernels(rank) or _from_aicpu(rank) or _from_queue(rank)


def _fetches(name: str) -> bool:
    return "next" in name.lower() and _GETNEXT.search(name) is not None


def _from_kernels(rank: Rank) -> GetNext | None:
    timeline = work_of(rank)
    if timeline is None:
        return None
    kernels = timeline.kernels
    named = kernels.named(_fetches)
    typed = np.array([_fetches(s.type) for s in kernels.signatures])[kernels.signature]
    known = kernels.start >= 0
    own = (named | typed) & known
    if not own.any():
        return None
    told = any(s.core for s in kernels.signatures)
    device = np.array([not told or bool(_DEVICE_CORES.search(s.core)) for s in kernels.signatures])[kernels.signature]
    compute = known & ~own & device
    mine = union(kernels.start[own], kernels.end[own])
    total = measure(mine)
    overlap = alone = None
    if total and compute.any():
        overlap = measure(intersect(mine, union(kernels.start[compute], kernels.end[compute]))) / total
        alone = total * (1 - overlap) / 1000
    source = work_source(rank, "name", "duration_us")
    starts, ends = np.sort(kernels.start[own]) / 1e3, np.sort(kernels.end[own]) / 1e3
    return GetNext(
        int(own.sum()), float(np.median(kernels.duration[own])), overlap, (source,), alone, starts, ends
    )  # fmt: skip


def _from_aicpu(rank: Rank) -> GetNext | None:
    frame = aicpu_of(rank)
    if frame is None or frame.empty:
        return None
    times = frame.loc[_is_getnext(frame["name"]).to_numpy(bool), "total_us"].dropna()
    if times.empty:
        return None
    return GetNext(len(times), float(times.median()), None, (rank.source("aicpu", "name", "total_us"),))


def _from_queue(rank: Rank) -> GetNext | None:
    """Only that it ran and found the data queue so full; its own time is not in that file."""
    frame = rank.read("data_queue")
    if frame is None or frame.empty:
        return None
    return GetNext(len(frame), None, None, (rank.source("data_queue", "node"),))


_NEEDS = "kernels|aicpu"
KINDS = (
    kind("getnext.count", "count", "operator", "executions of GetNext", needs="kernels|aicpu|data_queue"),
    kind("getnext.time_us", "us", "operator", "median time of GetNext", needs=_NEEDS),
    kind("getnext.share_of_step", "ratio", "operator", "time of GetNext as a share of the step", needs=_NEEDS,
         formula="median time × executions per step ÷ step time"),
    kind("getnext.overlap_share", "ratio", "operator", "part of GetNext's time in which compute kernels ran (S12)",
         formula="|GetNext ∩ kernels on cube and vector cores| ÷ |GetNext|, by interval unions", needs="kernels"),
    kind("getnext.alone_share", "ratio", "run rank", "part of the step in which only GetNext ran: the device waits in "
         "it while its data queue is empty, which step tables count as computing",
         formula="|GetNext − kernels on cube and vector cores| ÷ steps ÷ step time, without waits for a pipeline that "
                 "had only just started; of the run: mean of the ranks",
         needs="kernels"),
)  # fmt: skip


def measure_getnext(run: Run, facts: FactSet) -> Iterator[Fact]:
    """GetNext of every rank as one operator each."""
    alone = []
    for rank, found in run.each(GET_NEXT).items():
        of_rank = Subject("rank", str(rank), (rank,))
        subject = Subject("operator", "GetNext", (rank,))
        step: Any = facts.value("step.time_us", of_rank)
        steps: Any = facts.value("step.count", of_rank)
        excluded: Any = facts.value("step.excluded_count", of_rank, 0)
        recorded = steps + excluded if steps else 1  # without marks of steps, the recording is what shares are of
        each = max(1.0, found.count / recorded)
        spent = None if found.time_us is None else each * found.time_us
        share = spent / step if step and spent is not None else None
        for name, value in (
            ("count", found.count), ("time_us", found.time_us), ("share_of_step", share),
            ("overlap_share", found.overlap),
        ):  # fmt: skip
            yield from fact(f"getnext.{name}", subject, value, *found.sources, samples=found.count)
        if step and found.alone_us is not None:
            alone.append(max(found.alone_us - found.start_up_us, 0.0) / recorded / step)
            yield from fact("getnext.alone_share", of_rank, alone[-1], *found.sources, samples=found.count)
    if alone:
        yield from fact("getnext.alone_share", RUN, float(np.mean(alone)), samples=len(alone))


FAMILIES = (
    Family(
        "getnext",
        KINDS,
        measure_getnext,
        GET_NEXT.by(reduce),
        ("kernels", "aicpu", "data_queue", "trace"),
        after=("steps",),
    ),
)
