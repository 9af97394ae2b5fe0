"""What a table of sums leaves the AI CPU's kernels to run alone in.

`Computing` of a step table is the time in which any kernel runs. Kernels of one type follow each other, for they want
the same cores: the type that takes longest runs for its whole sum, and alone are the AI CPU's kernels at most in what
is left of `Computing`.
"""

from __future__ import annotations

import numpy as np

from advisor.facts.operators.reduction import Operators
from advisor.facts.recording.limits import section
from advisor.facts.step.times import StepTimes


def most_alone_us(o: Operators, times: StepTimes) -> float:
    """Microseconds in which only AI CPU kernels can have run, summed like the table; NaN where it tells nothing."""
    on_cores = [float(row.total_us.sum()) for row in o.types.values() if not (row.communication or row.aicpu_us)]
    computing = times.phases.get("computing")
    if not on_cores or computing is None or not np.isfinite(computing).any():
        return float("nan")
    steps = 1 if o.averaged else o.executions or times.recorded
    computed = float(np.nanmean(computing)) * steps
    if sum(on_cores) > (1 + section("contradiction")["of_step"]) * computed:
        return float("nan")  # sums of more than these steps
    return max(computed - max(on_cores), 0.0)
