"""Steps that only evaluate, among steps that train: no mean of both is a step of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.facts.device.course import Course
from advisor.facts.step.odd_ends import on_all, without_cut_end
from advisor.facts.step.times import StepTimes
from advisor.sources.base import Rank

_REASON = "computes no gradient, as other steps do"
MOST_NAMES = 6
"""Steps that a problem names one by one."""


def without_evaluation(
    times: dict[int, StepTimes], courses: Mapping[int, Course], ranks: Iterable[Rank]
) -> dict[int, StepTimes]:
    """Without steps in which no kernel of a rank computes a gradient or updates a weight, where it does in others.
    Every step counts where the kernels do not tell steps apart, or some of them are missing. A last one that computes
    too little to be whole has not come to its gradients, and evaluates nothing."""
    left: dict[int, StepTimes] = {}
    for rank, one in times.items():
        course = courses.get(rank)
        if course is None or not (course.marked and course.complete) or not course.trains.any():
            left[rank] = one
            continue
        forward = [step for step, trains in zip(course.steps, course.trains.tolist(), strict=True) if not trains]
        ended = without_cut_end(one) if forward == [one.steps[-1]] else one
        left[rank] = ended.without(forward, _REASON)
    left = on_all(left)
    for each in ranks:
        out = left[each.rank].excluded if each.rank in left else ()
        names = [name for name, reason, _ in out if reason == _REASON]
        if names and not times[each.rank].excluded:
            why = "compute no gradients, as an evaluation does, and are left out"
            each.note(each.relative(each.root), f"of its steps, {len(names)} {why}: {', '.join(names[:MOST_NAMES])}")
    return left
