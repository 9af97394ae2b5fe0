"""The error rates that docs/gate.md promises."""

from __future__ import annotations

import pytest

from benchmarks.gate import DOCUMENT, END, START, rate, rows


def _row(history: int, confirming: int):
    """The row of the gate at its defaults."""
    wanted = (history, 5, confirming)
    return next(
        row for row in rows() if (row.history, row.runs, row.confirming) == wanted and "without" not in row.title
    )


@pytest.mark.parametrize("history", [10, 20])
def test_error_rates_at_the_defaults(history):
    """At most 1 % false alarms, 5 % slower caught in 75 %, 10 % slower in 99 %: what makes teams leave it on."""
    row = _row(history, 0)
    assert rate(row, 0.0, 4000) <= 0.01
    assert rate(row, 0.05, 1500) >= 0.75
    assert rate(row, 0.10, 2500) >= 0.99


def test_confirming_run_removes_nearly_all_false_alarms():
    """With the run repeated, red is a regression in all but 0.2 % of good changes."""
    row = _row(10, 1)
    assert rate(row, 0.0, 8000) <= 0.0025
    assert rate(row, 0.05, 1500) >= 0.75


def test_document_has_the_table_of_this_benchmark():
    """A table by hand restates yesterday's defaults."""
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.partition(START)[2].partition(END)[0]
    assert all(f"| {row.title} |" in table for row in rows())
