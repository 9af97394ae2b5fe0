"""Exposed time has one owner: the collective whose end lets computing go on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.intervals import measure, subtract, union
from advisor.facts.device.waiting import owned

spans = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200)), min_size=1, max_size=8)


def intervals(pairs):
    start = np.array([a for a, _ in pairs], np.int64)
    return start, start + np.array([n for _, n in pairs], np.int64)


@given(spans, spans)
def test_what_each_owns_sums_to_the_exposed_time(collectives, kernels):
    """No exposed instant is counted twice, and none is lost."""
    begin, end = intervals(collectives)
    busy = union(*intervals(kernels))
    found = owned(begin, end, busy, 5)
    assert (found >= 0).all()
    assert (found <= end - begin).all()
    assert found.sum() == measure(subtract(union(begin, end), busy))


def test_gradients_beside_a_late_gather_are_not_waited_for():
    """Parameters are gathered only when they are needed: the reduction that runs beside that costs nothing more."""
    gather, reduction = (100, 200), (100, 180)
    begin, end = (np.array(times, np.int64) for times in zip(gather, reduction, strict=True))
    busy = (np.array([0, 201], np.int64), np.array([100, 300], np.int64))
    assert owned(begin, end, busy, 5).tolist() == [100, 0]


def test_of_two_that_end_together_the_gather_is_waited_for():
    """Weights are needed by the next kernel, summed gradients only by the update; a sum that ends clearly later is
    waited for all the same."""
    begin = np.array([100, 100], np.int64)
    busy = (np.array([0, 201], np.int64), np.array([100, 300], np.int64))
    sums = np.array([True, False])
    assert owned(begin, np.array([200, 200], np.int64), busy, 5, sums).tolist() == [0, 100]
    assert owned(begin, np.array([200, 197], np.int64), busy, 5, sums).tolist() == [3, 97]
    assert owned(begin, np.array([200, 180], np.int64), busy, 5, sums).tolist() == [100, 0]


def test_what_goes_on_in_the_background_is_not_waited_for():
    """A long AllReduce runs on while computing waits for a short exchange between operators."""
    begin, end = np.array([50, 100], np.int64), np.array([900, 150], np.int64)
    busy = (np.array([0, 151], np.int64), np.array([100, 1000], np.int64))
    assert owned(begin, end, busy, 5).tolist() == [1, 50]
