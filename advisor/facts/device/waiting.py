"""Whose exposed time it is where collectives run at once: computing waits for the one whose end lets it go on."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.basics.intervals import Intervals, subtract, union


def owned(begin: Ints, end: Ints, busy: Intervals, tolerance: int, sums: Mask | None = None) -> Ints:
    """Nanoseconds that each collective is exposed by itself; together they are the time in which nothing computes.

    In each stretch without computing the collective that ends last in it has its time first: what runs beside it could
    take longer without anybody waiting. What goes on behind the stretch is waited for by nobody there. Of those that
    end together, nanoseconds of `tolerance` apart, the `sums` are least waited for: gradients are needed by the update,
    weights and tokens by the next kernel.
    """
    start, stop = _stretches(begin, end, busy)
    found = np.zeros(len(begin), np.int64)
    if not len(start):
        return found
    first = np.searchsorted(stop, begin, side="right")
    count = np.maximum(np.searchsorted(start, end, side="left") - first, 0)
    who = np.repeat(np.arange(len(begin)), count)
    where = np.arange(len(who)) - np.repeat(np.cumsum(count) - count, count) + first[who]
    low, high = np.maximum(begin[who], start[where]), np.minimum(end[who], stop[where])
    alone = np.bincount(where, minlength=len(start))[where] == 1
    np.add.at(found, who[alone], (high - low)[alone])
    crowd = np.flatnonzero(~alone)
    behind = end[who[crowd]] > stop[where[crowd]] + tolerance
    last = end if sums is None else end - tolerance * sums
    crowd = crowd[np.lexsort((-last[who[crowd]], behind, where[crowd]))]
    for stretch in np.split(crowd, np.flatnonzero(np.diff(where[crowd])) + 1):
        taken: list[tuple[int, int]] = []
        for pair in stretch.tolist():
            found[who[pair]] += _free(int(low[pair]), int(high[pair]), taken)
            taken.append((int(low[pair]), int(high[pair])))
    return found


def _stretches(begin: Ints, end: Ints, busy: Intervals) -> Intervals:
    """The times in which some collective runs and nothing computes."""
    return subtract(union(begin, end), busy)


def _free(low: int, high: int, taken: list[tuple[int, int]]) -> int:
    """How much of [low, high) none of these intervals covers."""
    inside = sorted((max(a, low), min(b, high)) for a, b in taken if a < high and b > low)
    free, at = 0, low
    for a, b in inside:
        free += max(a - at, 0)
        at = max(at, b)
    return free + max(high - at, 0)
