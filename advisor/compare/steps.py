"""By how much the steps of two recordings differ anyway, and what of a change lies in slow steps alone.

A slow step among usual ones has a cause of its own, which is compared as such; it says nothing of how far the usual
steps scatter.
"""

from __future__ import annotations

from math import hypot

from advisor.basics.scatter import error_of_median
from advisor.basics.units import MEASURED, show_apart
from advisor.compare.facts import FactTable
from advisor.compare.model import Metric
from advisor.knowledge.comparison import settings
from advisor.knowledge.words import both
from advisor.model import Text

MOST = 0.5
"""Most of a change is more than this part of it."""


def noise_of_step(old: FactTable, new: FactTable) -> float:
    """Relative change of the step below which nothing is claimed, the largest of: what runs of one program differ by;
    twice the standard error of the difference of two medians of usual steps; and, where both sides have slow steps, one
    of them more or less on each side, as how many a recording catches is chance."""
    least = settings().limits["least_change"]
    return max(least, 2 * hypot(*(_error(table) for table in (old, new))), _chance(old, new))


def _error(table: FactTable) -> float:
    """Standard error of the median of the usual steps, σ from their jitter; where nobody told them apart, of all."""
    jitter, count = table.number("step.usual_jitter"), table.number("step.count")
    if jitter is None:
        jitter = table.number("step.jitter")
    elif count is not None:
        count -= table.number("step.slow_count") or 0.0
    if not jitter or count is None or count <= 0:  # reports are edited, and read back without bounds
        return 0.0
    return error_of_median(jitter, count)


def _chance(old: FactTable, new: FactTable) -> float:
    longer = max(table.number("step.time_us") or 0.0 for table in (old, new))
    single = []
    for table in (old, new):
        cost, count = table.number("step.slow_cost_us"), table.number("step.slow_count")
        single.append(cost / count if cost and count else 0.0)
    return hypot(*single) / longer if all(single) and longer > 0 else 0.0


def pauses(old: FactTable, new: FactTable) -> tuple[float, float] | None:
    """How long the longest stretch without any work lasts on either side, microseconds, where it is most of both
    recordings: then their lengths tell of the pause. Of recordings without steps."""
    told = [(table.number("timeline.longest_gap_us"), table.number("step.time_us")) for table in (old, new)]
    least = settings().limits["mostly_paused"]
    longest = [gap for gap, whole in told if gap and whole and gap >= least * whole]
    return (longest[0], longest[1]) if len(longest) == 2 else None


def slow_steps_told(first: Text, old: FactTable, new: FactTable, step: Metric) -> Text:
    """The headline with what the usual steps and the slow ones did, where most of the change lies in slow steps."""
    costs = [_slow_cost(table) for table in (old, new)]
    usual = [table.number("step.usual_us") or table.number("step.median_us") for table in (old, new)]
    if None in (*costs, *usual, step.before, step.after) or not step.moved:
        return first
    before, after = (cost or 0.0 for cost in costs)
    if abs(after - before) <= MOST * abs((step.after or 0.0) - (step.before or 0.0)):
        return first
    slow = [int(table.number("step.slow_count") or 0) for table in (old, new)]
    counts = [both("comparison.of_steps", slow=count, steps=int(table.number("step.count") or 0))
              for count, table in zip(slow, (old, new), strict=True)]  # fmt: skip
    times = show_apart(usual[0] or 0.0, usual[1] or 0.0, "us", MEASURED)
    said = both(
        "comparison.headline_slow_steps", first=first, times=" → ".join(times), before=counts[0], after=counts[1]
    )
    few = max(slow) < settings().limits["few_slow_steps"]
    return both("comparison.headline_few_slow", first=said) if few else said


def _slow_cost(table: FactTable) -> float | None:
    """What slow steps cost, microseconds per step; None where nobody looked for them."""
    cost = table.number("step.slow_cost_us")
    return 0.0 if cost is None and table.number("step.usual_jitter") is not None else cost
