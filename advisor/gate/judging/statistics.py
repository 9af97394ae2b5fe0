"""Two sets of runs, one number each: is the second one worse? The run is the sample, never the step.

The rule is built so that it keeps three promises (tests/gate/test_statistics.py): a run never fails against itself, a
slower set never passes where a faster one failed, and the order of the runs under judgement does not matter. The
threshold is therefore taken from the baseline alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_MAD_TO_SIGMA = 1.4826
_SMALL_SAMPLE = {1: 1.0, 2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""What the median absolute deviation of a small normal sample falls short by (Croux and Rousseeuw 1992)."""


@dataclass(frozen=True)
class Limits:
    """When a difference counts (defaults: knowledge_base/gate.yaml). `absolute` has the unit of the metric."""

    relative: float
    absolute: float
    sigmas: float
    window: int
    recent: int
    agreement: float
    confirmation: float
    dissent: float
    assumed_noise: float
    noise_runs: int


@dataclass(frozen=True)
class Comparison:
    """What became of a metric: medians, their difference (positive is worse) and the threshold it was held against."""

    before: float
    after: float
    worsening: float
    threshold: float
    sigma: float
    """Robust run-to-run deviation of the baseline."""
    history_runs: int
    runs: int
    worse: bool
    better: bool
    confirmed: bool | None = None
    """Whether the confirming runs show it too; None where there are none."""
    beyond: int = 0
    """Runs that lie beyond the threshold."""
    divided: bool = False
    """Whether the median lies beyond the threshold and too few of the runs agree: neither worse nor the same."""
    noisy: bool = False
    """Whether the threshold is as large as it is because the baseline's runs differ so much."""
    slight: bool = False
    """Whether the runs are slower than the baseline's runs differ by anyway, by less than is worth failing for."""

    @property
    def change(self) -> float | None:
        """Relative change of the median; None where the baseline's is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None

    @property
    def effect(self) -> float | None:
        """The worsening in robust deviations of the difference's noise; None where the baseline never varied."""
        noise = _noise_of_difference(self.sigma, self.history_runs, self.runs)
        return self.worsening / noise if noise > 0 else None


def robust_sigma(values: Sequence[float]) -> float:
    """Standard deviation as the median absolute deviation tells it, corrected for small samples; 0 for one value."""
    centre = median(values)
    size = len(values)
    correction = _SMALL_SAMPLE.get(size, size / (size - 0.8))
    return _MAD_TO_SIGMA * correction * median(abs(value - centre) for value in values)


def _noise_of_difference(sigma: float, before: int, after: int) -> float:
    """Standard deviation of the difference of two medians; that of a median is sqrt(pi / 2n) for normal noise, and
    of the value itself where it is the only one."""
    return sigma * math.sqrt(sum(1.0 if size == 1 else math.pi / 2 / size for size in (before, after)))


def compare(
    history: Sequence[float],
    runs: Sequence[float],
    limits: Limits,
    *,
    lower_is_better: bool = True,
    confirming: Sequence[float] = (),
) -> Comparison:
    """Judges `runs` against `history` (oldest first). All values finite, both not empty.

    Worse: the median of the runs lies beyond the threshold, and all runs but a few (`dissent`) lie beyond the agreed
    part of it; divided, where they do not. Confirmed: the median of the confirming runs lies beyond its part of it
    (`confirmation`). The threshold is the largest of the relative limit, the absolute floor and `sigmas` deviations of
    the difference of the medians.
    """
    sign = 1.0 if lower_is_better else -1.0
    window = list(history)[-limits.window :]
    level = window[-limits.recent :]
    before, after = median(level), median(runs)
    sigma = robust_sigma(window)
    if len(window) < limits.noise_runs:
        sigma = max(sigma, limits.assumed_noise * abs(before))
    worth = max(limits.relative * abs(before), limits.absolute)
    noise = limits.sigmas * _noise_of_difference(sigma, len(level), len(runs))
    threshold = max(worth, noise)
    agreed = limits.agreement * threshold
    moved = sorted(sign * (value - before) for value in runs)
    dissenters = int(limits.dissent * len(runs))
    worsening = sign * (after - before)
    agree = moved[dissenters] > agreed
    worse = worsening > threshold and agree
    divided = worsening > threshold and not agree
    beyond = sum(value > threshold for value in moved)
    better = -worsening > threshold and -moved[-1 - dissenters] > agreed
    slight = not worsening > threshold and worsening > max(noise, limits.absolute) and noise > 0
    slight = slight and moved[dissenters] > limits.agreement * noise
    confirmed = None
    if confirming:
        confirmed = sign * (median(confirming) - before) > limits.confirmation * threshold
    return Comparison(
        before, after, worsening, threshold, sigma, len(level), len(runs), worse, better, confirmed, beyond, divided,
        noise > worth, slight,
    )  # fmt: skip
