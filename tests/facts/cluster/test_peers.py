"""Comparison with peers never lets a rank hide in its own reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.facts.cluster.peers import excess, held_by_most, medians_of_others, others_median, spread, typical

tables = st.tuples(st.integers(2, 9), st.integers(1, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(-1e6, 1e6))
)


@given(tables)
def test_others_median_is_the_median_without_the_row(values):
    """The fast formula equals leaving each row out by hand."""
    expected = np.array([np.median(np.delete(values, i, axis=0), axis=0) for i in range(len(values))])
    assert np.allclose(others_median(values), expected)


@given(st.dictionaries(st.integers(0, 99), st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_each_rank_is_held_against_the_others_alone(values):
    """What a rank has itself is no part of what is usual for it."""
    told = medians_of_others(values)
    assert told == pytest.approx({rank: np.median([v for r, v in values.items() if r != rank]) for rank in values})
    assert np.isnan(medians_of_others({7: 3.0})[7])


def test_of_two_steps_the_exception_does_not_count():
    """A pause in one of two recorded steps is nothing that a rank usually has more of."""
    assert typical(np.array([[187.0, 0.3], [2.0, 3.0], [np.nan, 7.0]])).tolist() == [0.3, 2.0, 7.0]
    assert typical(np.array([[1.0, 5.0, 9.0, 100.0]])).tolist() == [7.0] and np.isnan(typical(np.full((1, 2), np.nan)))


def test_missing_values_are_not_counted():
    """A rank without a value neither gets a reference nor is part of one."""
    values = np.array([[1.0], [np.nan], [3.0], [100.0]])
    result = others_median(values)
    assert result[0, 0] == pytest.approx(51.5)
    assert np.isnan(result[1, 0])


def test_one_slow_rank_of_two_is_seen():
    """With a single peer the slower of the two stands out, the faster does not."""
    over = excess(np.array([[10.0, 10.0, 10.0], [14.0, 14.0, 14.0]]))
    assert over[1] == 4.0
    assert over[0] == -4.0


def test_spread_needs_three_ranks():
    """Two values have no robust spread."""
    assert spread(np.array([1.0, 2.0])) is None
    assert spread(np.array([1.0, 2.0, 3.0])) == pytest.approx(1.4826)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), st.floats(0, 1e6))
def test_what_one_rank_has_alone_is_not_the_runs(values, other):
    """More than half of the ranks have at least as much; and one rank among others can't raise it above theirs."""
    held = held_by_most(values)
    assert 2 * sum(value >= held for value in values) > len(values)
    assert held_by_most([*values, other]) <= max(values)
