"""The middle of measurements, where some are far off and others are of several kinds."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Ints


def middle_means(values: Floats, first: Ints) -> Floats:
    """The mean of the middle third of each group; `values` are sorted within their groups, which begin at `first`.

    What is far off does not count, as for a median. Where half of the values are of one kind and half of another, a
    median is the one or the other by chance; this lies between them, and moves little where their numbers do.
    """
    count = np.diff(np.append(first, len(values)))
    cut = count // 3
    ends = np.stack((first + cut, first + count - cut), axis=1).ravel()
    means: Floats = np.add.reduceat(np.append(values, 0.0), ends)[::2] / (count - 2 * cut)
    return means


def middle_mean(values: Floats) -> float:
    """The same of one group, in any order."""
    return float(middle_means(np.sort(values), np.zeros(1, np.int64))[0])
