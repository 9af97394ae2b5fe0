"""Algebra of time intervals: summed kernel time is not wall time, so everything here works on unions.

Intervals are half-open [start, end) in integer nanoseconds, given as two int64 arrays of one length.
"""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Ints

Intervals = tuple[Ints, Ints]

EMPTY: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Ints, end: Ints) -> Intervals:
    """Disjoint, sorted intervals that cover the same instants. Empty and reversed intervals cover nothing."""
    keep = end > start
    start, end = start[keep], end[keep]
    if start.size == 0:
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.empty(start.size, bool)
    first[0] = True
    np.greater(start[1:], end[:-1], out=first[1:])
    last = np.append(np.flatnonzero(first)[1:] - 1, start.size - 1)
    return start[first], end[last]


def measure(intervals: Intervals) -> int:
    """Total length in nanoseconds of disjoint intervals."""
    start, end = intervals
    return int((end - start).sum())


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    """The part of disjoint intervals inside [low, high)."""
    start, end = np.clip(intervals[0], low, high), np.clip(intervals[1], low, high)
    keep = end > start
    return start[keep], end[keep]


def longest_gaps(intervals: Intervals, count: int) -> int:
    """What so many things of unknown place and length may at most have filled: the longest gaps between disjoint
    intervals in order, summed."""
    gaps = np.sort(intervals[0][1:] - intervals[1][:-1])
    return int(gaps[max(len(gaps) - count, 0) :].sum())


def complement(intervals: Intervals, low: int, high: int) -> Intervals:
    """The gaps that disjoint, sorted intervals leave in [low, high)."""
    start, end = clip(intervals, low, high)
    left = np.concatenate(([low], end)).astype(np.int64)
    right = np.concatenate((start, [high])).astype(np.int64)
    keep = right > left
    return left[keep], right[keep]


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The instants covered by both of two disjoint, sorted sets."""
    if a[0].size == 0 or b[0].size == 0:
        return EMPTY
    low = min(int(a[0][0]), int(b[0][0]))
    high = max(int(a[1][-1]), int(b[1][-1]))
    outside_a, outside_b = complement(a, low, high), complement(b, low, high)
    outside = union(np.concatenate((outside_a[0], outside_b[0])), np.concatenate((outside_a[1], outside_b[1])))
    return complement(outside, low, high)


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The instants of `a` that `b` does not cover."""
    if a[0].size == 0:
        return EMPTY
    low, high = int(a[0][0]), int(a[1][-1])
    return intersect(a, complement(b, low, high))


def covered(intervals: Intervals, until: Ints) -> Ints:
    """How much of disjoint, sorted intervals lies before each of these instants, in nanoseconds."""
    start, end = intervals
    if start.size == 0:
        return np.zeros(until.size, np.int64)
    before = np.concatenate(([0], np.cumsum(end - start))).astype(np.int64)
    at = np.searchsorted(start, until, side="right")
    last = np.maximum(at - 1, 0)
    inside = np.where(at > 0, np.minimum(until, end[last]) - end[last], 0)
    return before[at] + inside


def covered_in(intervals: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of disjoint, sorted intervals lies in each of these stretches, in nanoseconds."""
    return covered(intervals, end) - covered(intervals, start)
