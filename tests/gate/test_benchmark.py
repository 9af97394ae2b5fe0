"""The error rates that docs/gate.md promises."""

from __future__ import annotations

import pytest

from benchmarks.gate import DOCUMENT, END, START, STEPS_START, Row, rate, rows, step_rows


def _row(history: int, confirming: int, drift: float = 1.0) -> Row:
    """The row of the gate at its defaults."""
    wanted = (history, 5, confirming, drift)
    return next(
        row
        for row in rows()
        if (row.history, row.runs, row.confirming, row.drift) == wanted and "without" not in row.title
    )


@pytest.mark.parametrize("history", [10, 20])
@pytest.mark.parametrize("drift", [1.0, 2.0])
def test_error_rates_at_the_defaults(history, drift):
    """At most 1 % false alarms, 5 % slower caught in 75 %, 10 % slower in 99 %: what makes teams leave it on."""
    row = _row(history, 0, drift)
    assert rate(row, 0.0, 4000) <= 0.01
    assert rate(row, 0.05, 1500) >= 0.75
    assert rate(row, 0.10, 2500) >= 0.985


@pytest.mark.parametrize("drift", [1.0, 2.0])
def test_confirming_run_removes_nearly_all_false_alarms(drift):
    """With the run repeated, red is a regression in all but 0.2 % of good changes."""
    row = _row(10, 1, drift)
    assert rate(row, 0.0, 8000) <= 0.0025
    assert rate(row, 0.05, 1500) >= 0.67
    assert rate(row, 0.10, 1500) >= 0.975


def test_step_times_alone_keep_the_same_promise():
    """Three logs a side: fewer and cheaper runs, not more false alarms."""
    row = step_rows()[0]
    assert row.steps and row.runs == 3
    assert rate(row, 0.0, 300) <= 0.02
    assert rate(row, 0.10, 100) >= 0.9


def test_document_has_the_tables_of_this_benchmark():
    """A table by hand restates yesterday's defaults."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for start, found in ((START, rows()), (STEPS_START, step_rows())):
        table = text.partition(start)[2].partition(END)[0]
        assert all(f"| {row.title} |" in table for row in found)
