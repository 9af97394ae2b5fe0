"""The middle of measurements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.middle import middle_mean, middle_means

TIMES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40)


def middle(values: list[float]) -> float:
    return middle_mean(np.array(values))


@pytest.mark.parametrize(
    ("values", "expected"), [([4.0], 4), ([2.0, 4.0], 3), ([1.0, 2.0, 900.0], 2), ([1.0, 2.0, 4.0, 900.0], 3)]
)
def test_what_is_far_off_does_not_count(values: list[float], expected: float) -> None:
    assert middle(values) == pytest.approx(expected)


def test_one_more_of_a_second_kind_moves_it_little() -> None:
    """Half of the calls take 100, half 200: a median jumps by that with one of a hundred calls, this by three."""
    one, other = [100.0] * 51 + [200.0] * 49, [100.0] * 49 + [200.0] * 51
    assert np.median(other) - np.median(one) == 100
    assert middle(other) - middle(one) < 7


@given(st.lists(TIMES, min_size=1, max_size=8), st.floats(0.5, 100))
def test_groups_do_not_meet_and_all_times_may_be_scaled(groups: list[list[float]], factor: float) -> None:
    ordered = [sorted(group) for group in groups]
    first = np.cumsum([0, *map(len, ordered[:-1])])
    found = middle_means(np.concatenate([*map(np.array, ordered)]), first)
    assert found == pytest.approx([middle(group) for group in groups])
    assert found * factor == pytest.approx([middle([factor * value for value in group]) for group in groups])
    assert all(
        group[0] * (1 - 1e-9) <= mean <= group[-1] * (1 + 1e-9) for group, mean in zip(ordered, found, strict=True)
    )
