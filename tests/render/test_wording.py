"""Words in both languages."""

from __future__ import annotations

import pytest

from advisor.basics.units import rank_list
from advisor.model import Evidence, Remedy, Subject, Text
from advisor.render.wording import change, expected, where


@pytest.mark.parametrize(
    ("condition", "unit", "text"),
    [
        ("> 0.10", "ratio", "≤ 10 %"),
        (">= 5000", "us", "< 5 ms"),
        ("< 1e10", "bytes_per_s", "≥ 10 GB/s"),
        ("== 0", "count", "≠ 0"),
        (">= 80 %", "ratio", "< 80 %"),
        ("> 1.42 ms ($gain * pipeline_op.step_us)", "us", "≤ 1.42 ms"),
        ("> 1.48 ms ($gain * a.step_us), >= 0 us ($b * or_else(a.b, 0))", "us", "≤ 1.48 ms / < 0 us"),
        ("lost = 76.3 % > 10 %", "ratio", "lost ≤ 10 %, is 76.3 %"),
        ("or_else(queue.host_empty_share, 1) = 100 % >= 30 %", "ratio", "< 30 %"),
        ("or_else(queue.host_empty_share, 1) = 93 % >= 30 %", "ratio", "queue.host_empty_share < 30 %, is 93 %"),
        ("== scalar", "text", "≠ scalar"),
        ("odd", "us", "odd"),
        ("", "us", ""),
    ],
)
def test_expected_is_the_opposite_of_the_failing_condition(condition, unit, text):
    """ "expected > 10 %" beside 75 % measured would read as if all were well."""
    assert expected(Evidence("a.b", 1.0, unit, condition)) == text


def test_expected_truth_values():
    """Of yes and no the other one would have been in order."""
    for value, condition, text in (
        (True, "is true", "no"),
        (False, "is false", "yes"),
        (False, "not or_else(a.b, false)", "yes"),
        (True, "", ""),
    ):
        assert expected(Evidence("a.b", value, "bool", condition)) == text


def test_a_text_that_was_asked_for_has_no_opposite():
    """ "late cause: compute (expected ≠ compute)" says nothing; what a text should have been does."""
    assert expected(Evidence("rank.late_cause", "compute", "text", "== compute")) == ""
    assert expected(Evidence("run.mode", "pynative", "text", "!= graph")) == "= graph"
    assert expected(Evidence("collection.level", "Level0", "text", "in [Level0, LevelNone]")) == ""


def test_subjects_and_ranks():
    """A thousand ranks are named in a few characters."""
    assert rank_list(tuple(range(1024))) == "0-1023"
    assert rank_list(tuple(range(0, 40, 2))) == "0, 2, 4, 6, 8, 10, … (20)"
    assert where(Subject("stage", "1", (4, 5, 6, 7)), "en") == "stage 1 (ranks 4-7)"
    assert where(Subject("rank", "3", (3,)), "zh") == "卡 3"


def test_a_changed_parameter_is_shown_with_both_values():
    """Whoever acts on it wants to see what it is now."""
    remedy = Remedy("a", Text("", ""), Text("", ""), parameter="workers", current=2, proposed=6)
    assert change(remedy) == "workers: 2 → 6"


def test_a_finding_about_all_ranks_of_a_host_names_them():
    """Its id is the first of them; people want to know which."""
    assert where(Subject("rank", "8", tuple(range(8, 16))), "en") == "ranks 8-15"
    assert where(Subject("link", "8-*", tuple(range(8, 16))), "en") == "link 8-* (ranks 8-15)"
    assert where(Subject("link", "1-2", (1, 2)), "en") == "link 1-2"
