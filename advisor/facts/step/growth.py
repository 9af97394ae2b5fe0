"""Steps that grow longer and longer, or run the same kernels at one of two speeds: no single one stands out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.basics.units import rank_list
from advisor.facts.base import FactSet, Family, Run, fact, kind
from advisor.facts.device.course import COURSE, Course
from advisor.facts.step.apart import FEWEST
from advisor.facts.step.steps import steady
from advisor.facts.step.times import STEPS, StepTimes
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Subject

STEADILY = limit("growth", "steadily")
"""Rank correlation of the steps' order and their lengths from which on they grow rather than vary."""

FEW = int(limit("growth", "few"))
"""So many steps show growth where the same kernels take longer from each to the next."""
MOST = limit("growth", "most")
"""Part of the growth that these kernels account for then."""

BESIDE = int(limit("growth", "beside"))
"""So many steps at least are fast, and so many slow, where steps run at two speeds."""
APART = limit("growth", "apart")
"""And so many times what the steps of either differ by lie between them."""

KINDS = (
    kind("step.pace_ratio", "number", "run", "how many times as long the same kernels take in the slow steps as in the "
         "fast ones, where steps run at two speeds; 1 where they run at one",
         formula="median over the ranks of a step's kernels ÷ what each usually takes by its type and shapes; the "
         "widest gap in their order parts the steps, on most ranks and in that median", needs="kernels"),
    kind("step.pace_ranks", "count", "run", "ranks whose own steps run at two speeds", needs="kernels"),
    kind("step.pace_slow_count", "count", "run", "slow steps of these", needs="kernels"),
    kind("step.pace_cost_us", "us", "run", "what the slow ones take longer, on average over all steps",
         needs="kernels"),
    kind("step.growth_share", "ratio", "run", "how much longer the last steps are than the first, where they grow",
         formula="median of the last quarter of the steps ÷ that of the first − 1; 0 where order and length have a "
         "rank correlation below knowledge_base/measuring.yaml; eight steps at least, or five of which each takes "
         "longer for the same kernels than the one before", needs="steps|kernels"),
    kind("step.growth_cost_us", "us", "run", "what a step takes beyond those of the first quarter, on average",
         needs="steps|kernels"),
    kind("step.growth_computing_share", "ratio", "run", "part of the growth that is computation",
         formula="growth of computing ÷ growth of the step: of the middle rank, or, where that one waits for others "
                 "that compute longer, of the rank whose computing grows most", needs="steps|kernels"),
    kind("step.growth_computing_ratio", "number", "run", "how many times as long the ranks that the growth comes from "
         "compute in the last steps as in the first", needs="steps|kernels"),
    kind("step.growth_kernel_ratio", "number", "run", "how many times as long their same kernels take in the last "
         "steps as in the first", formula="median over these ranks; kernels are the same by type and shapes, attention "
         "over a cache apart: where it stays at 1, each step has other or more of them", needs="kernels"),
    kind("step.growth_ranks", "text", "run", "ranks that the growth comes from, where their peers only wait for them",
         formula="fewer than half of the ranks, whose computing grows by half of what the step does, as that of the "
                 "middle rank does not", needs="steps|kernels"),
    kind("step.growth_rank_count", "count", "run", "how many ranks these are, where each computes the same for longer",
         needs="steps|kernels"),
    kind("rank.growth_share", "ratio", "rank", "how much longer the only rank that the growth comes from computes in "
         "the last steps than in the first", needs="steps|kernels"),
    kind("rank.growth_us", "us", "rank", "what a step takes beyond the first ones because of it, on average",
         formula="the lesser of its mean computing beyond that of the first quarter and step.growth_cost_us",
         needs="steps|kernels"),
    kind("rank.growth_kernel_ratio", "number", "rank", "how many times as long its same kernels take in the last steps "
         "as in the first", needs="kernels"),
)  # fmt: skip


def rises(lengths: Floats, fewest: int = FEWEST) -> bool:
    """Whether so many values at least grow from one to the next nearly always (Spearman's rank correlation)."""
    if len(lengths) < fewest or not np.isfinite(lengths).all() or not np.ptp(lengths) > 0:
        return False
    places = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")
    return float(np.corrcoef(np.arange(len(lengths)), places)[0, 1]) >= STEADILY


def same_kernels_slow_down(courses: Sequence[Course], steps: Sequence[str], lengths: Floats) -> bool:
    """Whether on most ranks the same kernels take longer in each step than in the one before, and that is most of what
    the steps grow by: five steps in random order are so once in 120 runs, and of hundreds of kernels each is a witness.
    """
    if len(steps) < FEW or not np.isfinite(lengths).all() or not lengths[-1] > lengths[0]:
        return False
    paces = [course.pace(steps) for course in courses]
    slower = [
        bool((np.diff(pace) > 0).all()) and pace[-1] / pace[0] - 1 >= MOST * (lengths[-1] / lengths[0] - 1)
        for pace in paces
        if np.isfinite(pace).all()
    ]
    return bool(courses) and 2 * sum(slower) > len(courses)


def two_speeds(pace: Floats) -> tuple[Mask, float] | None:
    """(which steps are slow, how many times as long as the fast ones they take); None where steps run at one speed."""
    if len(pace) < 2 * BESIDE or not np.isfinite(pace).all():
        return None
    order = np.sort(pace)
    cut = BESIDE + int(np.argmax(np.diff(order)[BESIDE - 1 : len(order) - BESIDE]))
    fast, slow = order[:cut], order[cut:]
    if slow[0] - fast[-1] < APART * max(np.ptp(fast), np.ptp(slow)) or not slow[0] > fast[-1]:
        return None
    return pace >= slow[0], float(slow.mean() / fast.mean())


def common_speeds(paces: Sequence[Floats], ranks: int) -> tuple[Mask, float, int] | None:
    """(which steps are slow, how many times as long they take, on how many ranks), where most of the `ranks` show two
    speeds, and their median does: a median over few ranks moves with each of them."""
    showing = sum(two_speeds(pace) is not None for pace in paces)
    if 2 * showing <= ranks or (found := two_speeds(np.median(np.array(paces), axis=0))) is None:
        return None
    return *found, showing


def _speeds(courses: Sequence[Course], one: StepTimes, lengths: Floats) -> Iterator[Fact]:
    """The facts of two speeds, by the kernels of these ranks and the median lengths of one's steps over all ranks."""
    n = len(one.steps)
    paces = [pace for course in courses if np.isfinite(pace := course.pace(one.steps)).all()]
    if not paces or n < 2 * BESIDE:
        return
    found = common_speeds(paces, len(courses))
    yield from fact("step.pace_ratio", RUN, 1.0 if found is None else found[1], *one.sources, samples=n)
    if found is not None:
        slow, _, showing = found
        cost = (float(lengths[slow].mean()) - float(lengths[~slow].mean())) * float(slow.mean())
        yield from fact("step.pace_ranks", RUN, showing, *one.sources, samples=n)
        yield from fact("step.pace_slow_count", RUN, int(slow.sum()), *one.sources, samples=n)
        yield from fact("step.pace_cost_us", RUN, max(cost, 0.0), *one.sources, samples=n)


def ends_of(values: Floats) -> tuple[float, float]:
    """(median of the first quarter, median of the last)."""
    quarter = max(len(values) // 4, 1)
    return float(np.median(values[:quarter])), float(np.median(values[-quarter:]))


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Over the ranks' median steps, which all take together."""
    del facts
    known = {rank: one for rank, one in steady(run).items() if one.covers == 1}
    times = list(known.values())
    if not times or len({one.steps for one in times}) != 1:
        return
    steps, courses = times[0].steps, list(run.each(COURSE).values())
    lengths, n = np.median(np.array([one.time for one in times]), axis=0), len(steps)
    yield from _speeds(courses, times[0], lengths)
    seen = same_kernels_slow_down(courses, steps, lengths)
    if n < FEWEST and not seen:
        return
    if not seen and not rises(lengths):
        yield from fact("step.growth_share", RUN, 0.0, *times[0].sources, samples=n)
        return
    first, last = ends_of(lengths)
    yield from fact("step.growth_share", RUN, last / first - 1, *times[0].sources, samples=n)
    cost = max(float(lengths.mean()) - first, 0.0)
    yield from fact("step.growth_cost_us", RUN, cost, *times[0].sources, samples=n)
    computing = {rank: one.phases["computing"] for rank, one in known.items() if "computing" in one.phases}
    if not computing or not last > first:
        return
    part, ranks = growing(computing, last - first)
    yield from fact("step.growth_ranks", RUN, rank_list(tuple(ranks)) or None, *times[0].sources, samples=n)
    yield from fact("step.growth_computing_share", RUN, part, *times[0].sources, samples=n)
    for name, ratio in _ratios(computing, run.each(COURSE), ranks or [*computing], steps).items():
        yield from fact(f"step.growth_{name}_ratio", RUN, ratio, *times[0].sources, samples=n)
    if len(ranks) == 1:
        course = run.each(COURSE).get(ranks[0])
        paces = None if course is None else course.pace(steps)
        yield from _of_one(ranks[0], computing[ranks[0]], paces, cost, known[ranks[0]])


def _ratios(
    computing: Mapping[int, Floats], courses: Mapping[int, Course], ranks: Sequence[int], steps: Sequence[str]
) -> dict[str, float]:
    """By how much these ranks compute longer in the last steps than in the first, and their same kernels, where their
    shapes tell which are the same: medians over the ranks."""
    paces = [courses[rank].pace(steps) for rank in ranks if rank in courses]
    series = {
        "computing": [computing[rank] for rank in ranks],
        "kernel": [pace for pace in paces if np.isfinite(pace).all()],
    }
    ends = {name: [ends_of(one) for one in values] for name, values in series.items()}
    return {
        name: float(np.median([last / first for first, last in pairs]))
        for name, pairs in ends.items()
        if pairs and all(first > 0 for first, _ in pairs)
    }


def _of_one(rank: int, us: Floats, pace: Floats | None, cost_us: float, one: StepTimes) -> Iterator[Fact]:
    """The facts of the only rank that the steps grow by, from what it computes in each; none where its own kernels
    tell that it has more and more to compute."""
    begun, ended = ends_of(us)
    share = ended / begun - 1
    subject, n = Subject("rank", str(rank), (rank,)), len(us)
    if pace is not None and np.isfinite(pace).all():
        slowly, slower = ends_of(pace)
        if slower / slowly - 1 < MOST * share:
            return
        yield from fact("rank.growth_kernel_ratio", subject, slower / slowly, *one.sources, samples=n)
    yield from fact("step.growth_rank_count", RUN, 1, *one.sources, samples=n)
    yield from fact("rank.growth_share", subject, share, *one.sources, samples=n)
    beyond = max(float(us.mean()) - begun, 0.0)
    yield from fact("rank.growth_us", subject, min(beyond, cost_us), *one.sources, samples=n)


def growing(computing: Mapping[int, Floats], growth_us: float) -> tuple[float, list[int]]:
    """(part of the steps' growth that is computation, the ranks it comes from where their peers only wait)
    from what each rank computes in each step, microseconds. Who waits grows by waiting: where the middle rank's
    computation is not most of it and that of fewer than half of the ranks is, these make the steps longer."""

    def share_of(us: Floats) -> float:
        begun, ended = ends_of(us)
        return (ended - begun) / growth_us

    every = {rank: share_of(us) for rank, us in computing.items()}
    part = share_of(np.median(np.array(list(computing.values())), axis=0))
    grown = [rank for rank, share in every.items() if share >= MOST]
    if part >= MOST or not 0 < 2 * len(grown) < len(every):
        return min(max(part, 0.0), 1.0), []
    return min(max(every.values()), 1.0), grown


FAMILIES = (Family("growth", KINDS, measure, uses=(STEPS, COURSE)),)
