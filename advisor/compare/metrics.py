"""Quantities side by side, and the noise between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot, sqrt

from advisor.compare.facts import FactTable
from advisor.compare.model import Metric
from advisor.facts.base import FactKind
from advisor.knowledge.comparison import settings

MEASURED_KERNEL = "recording.measured_us"
"""What a benchmark measures: how fast its kernel is, not how fast the host launches it."""
_P95 = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
_MEDIAN = 1.2533
"""Standard error of a median ÷ that of a mean, normal distribution: √(π/2)."""


def noise_of_step(old: FactTable, new: FactTable) -> float:
    """Relative change of the step below which nothing is claimed: what runs of one program differ by, or twice the
    standard error of the difference of two medians of steps (σ from `step.jitter`), whichever is larger."""
    least = settings().limits["least_change"]
    errors = [0.0]
    for table in (old, new):
        jitter, count = table.number("step.jitter"), table.number("step.count")
        if jitter and count and count > 0:  # reports are edited, and read back without bounds
            errors.append(_MEDIAN * jitter / _P95 / sqrt(count))
    return max(least, 2 * hypot(*errors))


def metrics(old: FactTable, new: FactTable, kinds: Mapping[str, FactKind]) -> Iterator[Metric]:
    """The metrics of knowledge_base/comparison.yaml that at least one side has measured.

    Times have moved by more than the noise of the shorter step, which notices it, shares by more than `least_change` of
    the whole.
    """
    noise, least = noise_of_step(old, new), settings().limits["least_change"]
    steps = [max(t.number(name) or 0.0 for name in ("step.time_us", "data.step_us")) for t in (old, new)]
    floors = {"us": noise * min(filter(None, steps), default=0.0), "ratio": least}
    for name in (*settings().metrics, *(() if any(steps) else settings().without_length)):
        kind = kinds.get(name)
        if kind is None:
            continue
        before, after = old.number(name), new.number(name)
        if before is not None or after is not None:
            yield Metric(
                name,
                kind.unit,
                kind.meaning,
                before,
                after,
                noise if kind.unit == "us" else least,
                0.0 if name == MEASURED_KERNEL else floors.get(kind.unit, 0.0),
            )
