"""Which witnesses of the same steps are believed: the kernels one by one, or the step table's sums; and whether the
collectives bear the kernels out against the table."""

from __future__ import annotations

import numpy as np

from advisor.facts.base import Run, computed
from advisor.facts.collectives.exchanges import Exchanges, listed
from advisor.facts.device.course import COURSE, Course
from advisor.facts.recording.limits import section
from advisor.facts.step.times import STEPS, StepTimes
from advisor.sources.base import Rank

_OTHERS = {"kernels", "collectives"}
"""The witnesses that outvote a step table together."""


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


def begins_of(exchange: Exchanges) -> dict[str, float]:
    """When the first collective of each step starts, microseconds; infinite where no start is known."""
    first = np.full(len(exchange.steps), np.inf)
    known = exchange.start_ns > 0
    np.minimum.at(first, exchange.step[known], exchange.start_ns[known] / 1000)
    return dict(zip(exchange.steps, first.tolist(), strict=True))


def distances_of(course: Course) -> dict[str, float]:
    """From the first kernel of each step to that of the next, microseconds; NaN where a step is missing between."""
    return dict(zip(course.steps, (course.span_us[:-1] + course.lead_us[1:]).tolist(), strict=False))


def outvoted(steps: StepTimes, course: Course, exchange: Exchanges) -> tuple[float, float] | None:
    """(length of a step by the table, by its two other witnesses), microseconds, where kernels and collectives agree on
    how long the steps are and the table tells clearly longer ones, or clearly shorter ones than the kernels of most
    span. None where they do not, or where the kernels are cut: what is missing cannot bear witness."""
    if steps.table != "steps" or steps.covers > 1 or not (course.complete and course.marked):
        return None
    limits, begins, apart = section("contradiction"), begins_of(exchange), distances_of(course)
    spans = dict(zip(course.steps, course.span_us.tolist(), strict=True))
    after = dict(zip(course.steps, course.steps[1:], strict=False))
    rows = np.array([
        (us, apart[step], begins.get(after[step], np.inf) - begins.get(step, np.inf), spans[step])
        for step, us in zip(steps.steps, steps.time.tolist(), strict=True)
        if apart.get(step, 0.0) > 0
    ]).reshape(-1, 4)  # fmt: skip
    told, kernels, collectives, span = rows[np.isfinite(rows).all(axis=1)].T
    if len(told) < limits["compared"]:
        return None
    # one by one, and so in sum: what runs before a step's first collective may differ from step to step
    alike = np.abs(kernels - collectives) <= limits["part_share"] * kernels
    longer, shorter = (more > limits["one_job_factor"] * less for more, less in ((told, kernels), (span, told)))
    most = max(2 * int((alike & differs).sum()) for differs in (longer, shorter))
    length, others = float(told.mean()), float(kernels.mean())
    factor = max(length, others) / min(length, others)
    return (length, others) if most > len(told) and factor > limits["one_job_factor"] else None


@computed
def outvoted_ranks(run: Run) -> dict[int, tuple[float, float]]:
    """The ranks whose step table is outvoted, with the lengths that it and its other witnesses tell. Who is doubted for
    another reason than that table bears no witness."""
    times, courses, exchanges = run.each(STEPS), run.each(COURSE), listed(run)
    found = {
        rank.rank: outvoted(times[rank.rank], courses[rank.rank], exchanges[rank.rank])
        for rank in run.ranks
        if all(rank.rank in each for each in (times, courses, exchanges)) and not _is_doubted(rank)
    }
    return {rank: lengths for rank, lengths in found.items() if lengths is not None}


def _is_doubted(rank: Rank) -> bool:
    return any(_OTHERS & {*problem.doubted} and "steps" not in problem.doubted for problem in rank.problems)
