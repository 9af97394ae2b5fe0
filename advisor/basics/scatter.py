"""How far the middle of measurements may be off."""

from __future__ import annotations

from math import sqrt

_P95 = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
_MEDIAN = 1.2533
"""Standard error of a median ÷ that of a mean, normal distribution: √(π/2)."""


def error_of_median(jitter: float, count: float) -> float:
    """Standard error of the median of so many values, as a part of it; `jitter` is 95th percentile ÷ median − 1."""
    return _MEDIAN * jitter / _P95 / sqrt(count)
