"""Different values of long columns, several times as fast as numpy's `unique`, which hashes or sorts whatever it gets.

Whole numbers in a profile are codes of names, steps and kinds, close to one another: a table of all numbers between the
least and the largest tells their places. Where they are times, sorting is the quickest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.basics.arrays import Floats, Ints

_WIDEST = 4
"""Numbers between least and largest, for each value, that a table may have."""


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different values, sorted."""
    if values.size and values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < _WIDEST * len(values):
            seen = np.zeros(high - low + 1, bool)
            seen[values - low] = True
            return np.flatnonzero(seen) + low
    ordered = np.sort(values)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: npt.NDArray[Any] = ordered[first]
    return found


def numbered(values: Ints) -> tuple[Ints, Ints]:
    """(the different whole numbers, sorted; which of them each value is)."""
    if not values.size:
        return values, np.zeros(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low >= _WIDEST * len(values) + 1024:
        different, place = np.unique(values, return_inverse=True)
        return different, place
    offset = values - low
    seen = np.zeros(high - low + 1, bool)
    seen[offset] = True
    different = np.flatnonzero(seen)
    place = np.empty(len(seen), np.int64)
    place[different] = np.arange(len(different))
    return different + low, place[offset]


def largest(values: Floats, group: Ints) -> Ints:
    """Places of the largest value of each group, all where several are equal; no number is less than any."""
    told = np.where(np.isnan(values), -np.inf, values)
    most = np.full(int(group.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(most, group, told)
    return np.flatnonzero(told == most[group])
