"""Which of two witnesses of the same steps saw more: the kernels one by one, or the step table's sums."""

from __future__ import annotations

import numpy as np

from advisor.facts.device.course import Course
from advisor.facts.recording.limits import section
from advisor.facts.step.times import StepTimes


def same_steps(steps: StepTimes, course: Course) -> tuple[list[int], list[int]]:
    """(rows of the table, places in the course) of the steps that both tell. Kernels that nothing assigns to steps are
    all of the recording: the same as a table of one row, and not to be held against one row of several."""
    if not course.marked and len(steps.steps) > 1:
        return [], []
    place = {step: i for i, step in enumerate(course.steps)}
    both = [(row, place[step]) for row, step in enumerate(steps.steps) if step in place]
    return [row for row, _ in both], [i for _, i in both]


def compute_more(steps: StepTimes, course: Course) -> bool:
    """Whether the kernels compute more than the table tells of the same steps: a table can lose computation, kernels
    that never ran cannot have been written."""
    rows, own = same_steps(steps, course)
    computing = steps.phases.get("computing")
    if not rows or computing is None or steps.table != "steps":
        return False
    limits = section("contradiction")
    told, kernels = float(np.nansum(computing[rows])), float(course.computing_us[own].sum())
    length = float(steps.time[rows].sum())
    return kernels > told * (1 + limits["computing_share"]) and kernels - told > limits["of_step"] * length


def are_fuller(steps: StepTimes, course: Course) -> bool:
    """Whether the kernels are to be believed instead of the table: they compute more in every step it has, and their
    steps are as long as the table's. Where the lengths differ too, either may be in another unit."""
    rows, own = same_steps(steps, course)
    if len(rows) < len(steps.steps) or not course.complete or not compute_more(steps, course):
        return False
    length = float(steps.time[rows].sum())
    spans = float((course.span_us + np.nan_to_num(course.lead_us))[own].sum())
    return abs(spans - length) <= section("contradiction")["part_share"] * length
