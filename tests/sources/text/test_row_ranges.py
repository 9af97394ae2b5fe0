"""From evidence to the lines of a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.text.row_ranges import LARGEST, row_range
from advisor.tables import TABLES

STEP = TABLES["steps"].column("step")


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.sets(st.integers(0, 6), min_size=1))
def test_the_lines_told_hold_the_first_and_the_last_row(tmp_path_factory, names, wanted):
    """Whatever the order of steps: both lines are of a wanted step, and none lies outside."""
    path = tmp_path_factory.mktemp("rows") / "step_trace_time.csv"
    path.write_text("\n".join(["Device_id,Step,Computing", *(f"0,{n},1.5" for n in names)]) + "\n", encoding="utf-8")
    hits = [line for line, name in enumerate(names, 2) if name in wanted]
    expected = (hits[0], hits[-1]) if hits else None
    assert row_range(path, STEP, {str(step) for step in wanted}) == expected


@pytest.mark.parametrize("text", ["", "Computing\n1.5\n", "Step,Computing\n", '"Step,Computing\n50,1\n'])
def test_nothing_is_told_where_no_row_is_found(tmp_path, text):
    """No column, no row, an open quotation mark."""
    path = tmp_path / "step_trace_time.csv"
    path.write_text(text, encoding="utf-8")
    assert row_range(path, STEP, {"50"}) is None
    assert row_range(tmp_path / "absent.csv", STEP, {"50"}) is None


def test_a_large_file_is_not_read_again(tmp_path):
    """The trail is worth no second reading of a hundred megabytes."""
    path = tmp_path / "kernel_details.csv"
    path.write_text("Step,Computing\n" + "50,1\n" * (LARGEST // 5 + 1), encoding="utf-8")
    assert row_range(path, STEP, {"50"}) is None
