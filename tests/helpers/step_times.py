"""Steps of one rank from the times of their phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.facts.step.times import StepTimes


def times(
    computing: Sequence[float], exposed: Sequence[float], idle: Sequence[float], names: Sequence[str] | None = None
) -> StepTimes:
    """As a step table tells them, in microseconds; steps are numbered from 0 unless they are named."""
    given = {"computing": computing, "exposed": exposed, "idle": idle}
    phases = {name: np.array(values, float) for name, values in given.items()}
    total = sum(phases.values(), np.zeros(len(computing)))
    return StepTimes(tuple(names or map(str, range(len(total)))), total, phases, "steps")
