"""Rows of the step table as they are written: what stands in another row than it belongs to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.step.tables import _settled


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=8), st.data())
def test_what_straddles_steps_is_made_up_for_by_the_rows_before(booked, data):
    """A collective is counted where it begins and its exposed part where that does: no row overlaps less than nothing,
    and all of them together as much as before. More taken off than there is, is damage and stays."""
    values, taken = np.array(booked), data.draw(st.integers(0, len(booked) - 1))
    moved = values.copy()
    moved[-1] -= (amount := float(values[:taken].sum()))
    if taken == 0 or moved[-1] >= 0:
        assert _settled(moved).tolist() == moved.tolist()
    else:
        assert (_settled(moved) >= 0).all()
        assert _settled(moved).sum() == pytest.approx(values.sum() - amount, abs=1e-3)
    damaged = np.append(values, -values.sum() - 1)
    assert _settled(damaged).tolist() == damaged.tolist()
