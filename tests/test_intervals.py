"""Interval algebra: unions measure wall time, whatever overlaps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics import intervals

SPAN = 60
points = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def arrays(pairs):
    return (np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def covered(pairs):
    return {t for a, b in pairs for t in range(a, b)}


def instants(found):
    return {t for a, b in zip(*found, strict=True) for t in range(a, b)}


@given(points)
def test_union_covers_the_same_instants_once(pairs):
    """A union covers exactly what its parts cover, in disjoint sorted pieces."""
    start, end = intervals.union(*arrays(pairs))
    assert instants((start, end)) == covered(pairs)
    assert intervals.measure((start, end)) == len(covered(pairs))
    assert all(start[1:] > end[:-1])


@given(points, points)
def test_set_operations_agree_with_sets(a, b):
    """Intersection, difference and complement are those of the sets of instants."""
    first, second = intervals.union(*arrays(a)), intervals.union(*arrays(b))
    assert instants(intervals.intersect(first, second)) == covered(a) & covered(b)
    assert instants(intervals.subtract(first, second)) == covered(a) - covered(b)
    assert instants(intervals.complement(first, 5, 50)) == set(range(5, 50)) - covered(a)


@given(points, st.integers(0, SPAN), st.integers(0, SPAN))
def test_clip_keeps_only_the_window(pairs, low, high):
    """Clipping never leaves the window and loses nothing inside it."""
    low, high = sorted((low, high))
    assert instants(intervals.clip(intervals.union(*arrays(pairs)), low, high)) == covered(pairs) & set(
        range(low, high)
    )


@given(points, st.lists(st.integers(-5, SPAN + 5), max_size=20))
def test_covered_is_what_lies_before_an_instant(pairs, times):
    """How much lies before an instant is the number of covered instants below it."""
    found = intervals.covered(intervals.union(*arrays(pairs)), np.array(times, np.int64))
    assert found.tolist() == [sum(t < time for t in covered(pairs)) for time in times]
