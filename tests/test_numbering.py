"""Different values, their places and the largest of each group, whatever the range of the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.numbering import distinct, largest, numbered

_LISTS = st.lists(st.one_of(st.integers(-5, 5), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=40)


@given(_LISTS | st.lists(st.integers(-(1 << 63), 5 - (1 << 63)), max_size=9))
def test_numbers_are_told_apart_as_unique_tells_them(numbers):
    """Codes close to one another and numbers at both ends of what 64 bits hold get the same places."""
    values = np.array(numbers, np.int64)
    different, place = numbered(values)
    told, inverse = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(different, told)
    np.testing.assert_array_equal(place, inverse)
    np.testing.assert_array_equal(distinct(values), told)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([-1.0, 0.0, 2.5, 2.5, 7.0, float("nan")])), max_size=30))
def test_the_largest_of_each_group_is_the_one_that_sorting_puts_last(rows):
    """Of equal ones all are told, in order; a group without any number tells all it has."""
    group = np.array([which for which, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.float64)
    found = largest(values, group)
    told = np.where(np.isnan(values), -np.inf, values)
    assert found.tolist() == [i for i in range(len(rows)) if told[i] == max(told[group == group[i]])]
