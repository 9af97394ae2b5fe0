"""Different values and their places are those that numpy's `unique` gives, whatever the range of the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.numbering import distinct, numbered

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
