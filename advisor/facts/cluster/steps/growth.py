"""What grew in some of the steps: which part of a rank's work, and whether its kernels are slower or more."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.facts.device.course import Course
from advisor.knowledge.measuring import limit

MOST = limit("slow_steps", "most")
"""Part of the slow steps' cost that one explanation must cover to stand for all."""
SLOWER = limit("slow_steps", "slower")
"""Part of the growth of computing that slower kernels must account for; else there was more to compute."""

_IDLE = ("start", "host", "idle")


def most_grown(sums: Mapping[str, float]) -> str:
    """The part that most of the growth is in; else idle where nothing that is computed grew as much, or mixed."""
    part = max(sums, key=lambda p: sums[p], default="unknown")
    if not sums or sums[part] >= MOST * sum(sums.values()):
        return part
    return "idle" if part in _IDLE else "mixed"


def main_part(sums: Mapping[str, float], computing: Floats, rows: Mask, slow: Mask, ratio: float | None) -> str:
    """The part of the account that grew most: start (before the first kernel), host (between kernels), idle (both),
    compute, or work where the kernels are more or larger instead of slower."""
    part = most_grown({"start" if name == "data" else name: us for name, us in sums.items()})
    if part == "compute" and ratio is not None:
        longer = float(np.median(computing[rows]) / np.median(computing[~slow & ~rows])) - 1
        return "compute" if ratio - 1 >= SLOWER * longer else "work"
    return part


def kernel_ratio(course: Course | None, steps: list[str], rows: Mask, slow: Mask) -> float | None:
    """How much longer the same kernels take in these rows than in usual steps; None where kernels do not tell."""
    if course is None:
        return None
    pace = course.pace(steps)
    usual = ~slow & ~rows
    if not np.isfinite(pace[rows]).any() or not np.isfinite(pace[usual]).any():
        return None
    return float(np.nanmedian(pace[rows]) / np.nanmedian(pace[usual]))
