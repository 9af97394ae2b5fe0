"""Sizes of collectives are classed before they are averaged."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.collectives.size_classes import MANY_TIMES, cut


@given(
    small=st.lists(st.floats(100, 10_000), min_size=11, max_size=60),
    large=st.lists(st.floats(1e6, 7e6), min_size=1, max_size=10),
)
def test_the_most_and_by_far_smaller_ones_are_a_class_of_their_own(small, large):
    """However many sizes each class has, all small ones are below the step and all large ones above it."""
    found = cut(np.array(small + large))
    assert found == max(small)


@given(sizes=st.lists(st.floats(1e6, 1e6 * MANY_TIMES * 0.99), min_size=1, max_size=40))
def test_sizes_within_one_class_are_not_cut(sizes):
    """Buckets that differ less than many times are of one class."""
    assert cut(np.array(sizes)) is None


def test_a_few_small_ones_beside_many_large_ones_are_no_class():
    """A loss and a norm beside the gradients say nothing about the gradients."""
    assert cut(np.array([4.0, 4.0, *[2.5e7] * 16])) is None


def test_nothing_moved_is_no_size():
    """Barriers move nothing, and are no small message."""
    assert cut(np.array([0.0] * 20 + [2.5e7])) is None
