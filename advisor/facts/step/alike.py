"""The ranks whose steps make one mean and may be compared.

Ranks whose files tell other things of a step are left out: one whose step table is lost and whose steps are recomputed
from kernels, or whose table lacks a column, would differ by what is counted and not by what it did. So is a rank whose
step table cannot be true, unless that is so of most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from advisor.facts.base import Run, computed
from advisor.facts.device.course import COURSE
from advisor.facts.recording.doubts import doubted_ranks
from advisor.facts.recording.limits import section
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS, StepTimes

_MEASURED = ("computing", "fp_bp", "exposed", "idle", "start_gap", "interval")
"""Phases that tell where a step's time goes."""


class Alike(Struct, frozen=True):
    """Steps by rank, and the ranks at hand that are not among them."""

    times: dict[int, StepTimes]
    left_out: tuple[int, ...]
    doubted: tuple[int, ...] = ()
    """Those of the compared whose own step table cannot be true: as many as the others."""


def _shared(times: Mapping[int, StepTimes], most: frozenset[int]) -> frozenset[int]:
    """Other ranks with the same table, of which nothing but the wait before the step is told by another witness (their
    kernels are lost), and whose steps last as long: the table that all of them have compares them."""
    if not most:
        return frozenset()
    one = times[min(most)]
    usual = np.median([times[rank].time.mean() for rank in most])
    return frozenset(
        rank
        for rank, other in times.items()
        if rank not in most and other.table == one.table and other.computing_has_idle == one.computing_has_idle
        and _told(other) == _told(one)
        and abs(other.time.mean() / usual - 1) <= section("start_gap")["telling_share"]
    )  # fmt: skip


def _told(one: StepTimes) -> set[str]:
    """The phases that this rank's files tell."""
    return {phase for phase in _MEASURED if phase in one.phases and np.isfinite(one.phases[phase]).any()}


@computed
def alike(run: Run) -> Alike:
    """The ranks whose steps are measured in the way most are; the others are told."""
    times = steady(run)
    doubted = {table: doubted_ranks(run, table) for table in {one.table for one in times.values()}}
    odd = {rank for rank, one in times.items() if rank in doubted[one.table]}
    believed = {rank: one for rank, one in times.items() if rank not in odd} if 2 * len(odd) < len(times) else times
    courses = run.each(COURSE)
    fetch = {rank for rank, course in courses.items() if np.nansum(course.fetching_us) > 0}
    ways: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, one in believed.items():
        told = frozenset(_told(one))
        ways[one.table, one.computing_has_idle, one.gap_from, told, not fetch or rank in courses].append(rank)
    # of two halves, that which has kernels tells more
    largest: list[int] = max(
        ways.values(), key=lambda ranks: (len(ranks), len(courses.keys() & ranks), -ranks[0]), default=[]
    )
    most = frozenset(largest) | _shared(believed, frozenset(largest))
    for other in run.ranks:
        if other.rank in believed and other.rank not in most:
            text = "its steps are measured in another way than those of most ranks; it is not compared with them"
            other.note(other.relative(other.root), text)
    at_hand = {*times, *run.each(STEPS)}
    compared = {rank: one for rank, one in times.items() if rank in most}
    return Alike(compared, tuple(sorted(at_hand - most)), tuple(sorted(odd & most)))
