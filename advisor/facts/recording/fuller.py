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


def are_fuller(steps: StepTimes, course: Course, framework: str) -> bool:
    """Whether the kernels are to be believed instead of the table: they compute more in every step it has, and their
    steps are as long as the table's. Where the lengths differ too, either may be in another unit, unless the host ran
    ahead."""
    rows, own = same_steps(steps, course)
    if len(rows) < len(steps.steps) or not course.complete or not compute_more(steps, course):
        return False
    if fell_behind(steps, course, framework):
        return True
    length = float(steps.time[rows].sum())
    spans = float((course.span_us + np.nan_to_num(course.lead_us))[own].sum())
    return abs(spans - length) <= section("contradiction")["part_share"] * length


def fell_behind(steps: StepTimes, course: Course, framework: str) -> bool:
    """Whether the table's first rows hold less than their steps' kernels, in length and in computation, and the rest
    as much: rows that are windows of a host that ran ahead until the device's queue was full. What the device did
    behind the last window stands in no row. Where the queue holds all steps, all rows are short: believed of MindSpore
    alone, whose rows are such windows, where kernels tell steps of one length, or of equally many kernels, and no other
    unit is behind it."""
    rows, own = same_steps(steps, course)
    computing, limits = steps.phases.get("computing"), section("contradiction")
    if computing is None or not rows or not course.complete or steps.table != "steps":
        return False
    told, kernels = computing[rows], course.computing_us[own]
    length, spans = steps.time[rows], (course.span_us + np.nan_to_num(course.lead_us))[own]
    as_much = np.abs(told - kernels) <= limits["computing_share"] * kernels
    as_long = np.abs(length - spans) <= limits["part_share"] * spans
    whole = as_much & as_long
    short = ~as_long & (told < kernels) & (length < spans)
    even = any(each.max() <= limits["one_job_factor"] * each.min() for each in (spans, course.kernels[own]))
    near = all(more.sum() < limits["lost_factor"] * less.sum() for more, less in ((spans, length), (kernels, told)))
    queued = framework == "mindspore" and len(rows) > 1 and even and near
    ordered = short[0] and (short | whole).all() and not (whole[:-1] & short[1:]).any()
    return bool(ordered and (whole[-1] or queued))
