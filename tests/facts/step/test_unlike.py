"""Ranks whose steps fall into two groups are found; noise makes no groups."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.step.times import StepTimes
from advisor.facts.step.unlike import unlike_ranks


def _times(lengths: list[float], computing: list[float]) -> dict[int, StepTimes]:
    """rank -> four steps of this length with this share of computing; the rest is exposed communication."""
    return {
        rank: StepTimes(
            ("1", "2", "3", "4"),
            np.full(4, length),
            {"computing": np.full(4, share * length), "exposed": np.full(4, (1 - share) * length)},
            "steps",
            (),
        )
        for rank, (length, share) in enumerate(zip(lengths, computing, strict=True))
    }


@given(st.floats(1e2, 1e7), st.floats(0.5, 0.8))
def test_stages_that_compute_unlike_shares_are_two_groups(length: float, most: float) -> None:
    """The middle of 8 % and 69 % is nobody's, at any length of the step."""
    times = _times([length] * 4, [0.08, 0.08, most, most])
    assert unlike_ranks(times, length) in ((0, 1), (2, 3))


@given(st.lists(st.floats(0.97, 1.03), min_size=2, max_size=12))
def test_ranks_that_vary_by_noise_are_one_group(noise: list[float]) -> None:
    """A spread of a few per cent around the middle makes nobody unlike the others."""
    lengths = [1e5 * factor for factor in noise]
    assert unlike_ranks(_times(lengths, [0.5] * len(noise)), float(np.median(lengths))) == ()


def test_a_rank_that_is_not_compared_stands_where_its_own_files_put_it() -> None:
    """Two groups of ranks, and one of each with a table that is cut: neither is counted with the others."""
    times = _times([1e5] * 6, [0.08, 0.08, 0.08, 0.6, 0.6, 0.6])
    compared = {rank: times[rank] for rank in (0, 1, 3, 4)}
    found = unlike_ranks(compared, 1e5, {rank: times[rank] for rank in (2, 5)})
    assert found in ((0, 1, 2), (3, 4, 5))
