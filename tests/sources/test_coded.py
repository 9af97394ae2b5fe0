"""Columns of texts as numbers say what the texts said."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.coded import Coded

_CELLS = st.lists(st.sampled_from(("", "a", "b", "c", "d")), max_size=40)


@given(_CELLS, st.data())
def test_ordering_changes_what_the_numbers_are_and_no_cell(cells, data):
    """Columns in order say the same row by row, and number what they say as a list of the rows would."""
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))), bool)
    known = sorted(set(cells))
    column = Coded.of([*known, *cells]).chosen(len(known) + np.flatnonzero(chosen))
    ordered = column.in_order()
    assert [*ordered] == [*column]
    assert list(ordered.told) == list(dict.fromkeys(column))
