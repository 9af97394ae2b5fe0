"""Comparing ranks with their peers, step by step: robust, and never with themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def others_median(values: Floats) -> Floats:
    """For each row the median of the other rows, column by column. Rows are ranks; NaN is not counted.

    A row with no finite other row gets NaN. A single outlier among three or more cannot hide in its own reference.
    """
    result = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        known = np.flatnonzero(np.isfinite(values[:, column]))
        if len(known) < 2:
            continue
        order = known[np.argsort(values[known, column], kind="stable")]
        ordered = values[order, column]
        n = len(ordered) - 1
        place = np.arange(len(ordered))
        low, high = (n - 1) // 2, n // 2
        # Without element i the k-th of the rest is ordered[k] below i and ordered[k + 1] from i on.
        below = ordered[np.where(low < place, low, low + 1)]
        above = ordered[np.where(high < place, high, high + 1)]
        result[order, column] = (below + above) / 2
        unknown = np.flatnonzero(~np.isfinite(values[:, column]))
        result[unknown, column] = np.nan
    return result


def excess(values: Floats) -> Floats:
    """How far each rank is above the median of the others: the median of the difference over steps."""
    difference = values - others_median(values)
    known = np.isfinite(difference).any(axis=1)
    result = np.full(len(values), np.nan)
    result[known] = np.nanmedian(difference[known], axis=1)
    return result


def spread(values: Floats) -> float | None:
    """1.4826 × median absolute deviation of the finite values; None for fewer than three."""
    known = values[np.isfinite(values)]
    if len(known) < 3:
        return None
    return float(1.4826 * np.median(np.abs(known - np.median(known))))
