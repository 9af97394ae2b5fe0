"""The terminal report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fake_reports import SAMPLES, cluster, data_bound, healthy, hostile, reports
from hypothesis import given, settings

from advisor.model import Evidence, Problem
from advisor.render import render

ESCAPE = "\x1b"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["healthy", "data_bound", "cluster"])
def test_fits_a_screen(name, lang):
    """Five minutes: what the engineer needs must not scroll away."""
    text = render(SAMPLES[name](), "text", lang, color=False, width=100)
    assert len(text.splitlines()) <= 40


def test_says_what_where_how_much_and_what_to_do_in_that_order():
    """The order of the story is the order of the HTML report."""
    text = render(data_bound(), "text", color=False, width=100)
    wanted = [
        "Map(2) is too slow",
        "Step 59.7 ms",
        "idle 69 %",
        "1. critical",
        "98.1 %  (expected ≤ 85 %)",
        "could save 36.1 ms",
        "6 workers",
        "num_parallel_workers: 2 → 6",
        "pipeline_op.busy_share falls",
        "The device waits for data",
        "2. low",
        "[experimental]",
        "Next collection: profiler_level",
    ]
    places = [text.find(part) for part in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


def test_lost_time_without_a_known_cause_is_never_told_as_a_saving():
    """Time at stake is grey and unexplained in every format, and no green minus."""
    report = data_bound()
    first = report.findings[0]
    report = replace(report, findings=(replace(first, saving=None, at_stake=first.saving), *report.findings[1:]))
    for format in ("text", "markdown", "html", "junit", "sarif", "github"):
        if "could save 36.1 ms" in render(data_bound(), format):
            assert "no cause is known yet of 36.1 ms" in render(report, format)
            assert "could save 36.1 ms" not in render(report, format)
    assert "no cause is known yet of 36.1 ms" in render(report, "text", color=False, width=100)


def test_symptoms_stand_under_their_cause_only():
    """Counting a symptom as a cause of its own sends people the wrong way."""
    text = render(data_bound(), "text", color=False, width=100)
    assert text.count("The device waits for data") == 1
    assert "3." not in text


def test_color_only_where_wanted():
    """Files and logs of CI are full of escape codes otherwise."""
    assert ESCAPE in render(cluster(), "text", color=True)
    assert ESCAPE not in render(cluster(), "text", color=False) + render(cluster(), "text")


@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_keeps_to_the_width(width):
    """A narrow pane shows whole lines."""
    from rich.cells import cell_len

    for report in (hostile(), cluster()):
        lines = render(report, "text", "zh", color=False, width=width).splitlines()
        assert max(map(cell_len, lines)) <= max(40, min(width, 120))


@settings(max_examples=50)
@given(reports)
def test_nothing_moves_the_cursor(report):
    """An operator's name must not be able to repaint the terminal or reverse the reading direction."""
    text = render(report, "text", color=False, width=80)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


def test_a_hostile_profile_is_inert_and_named():
    """Escape sequences go, the readable rest of a name stays."""
    text = render(hostile(), "text", color=False, width=100, verbose=True)
    assert ESCAPE not in text and "\u202e" not in text and "red2J" in text


def test_many_problems_are_counted_and_digits_are_few():
    """Ten thousand broken files are one line; 98.12345 % claims more than was measured."""
    report = replace(data_bound(), problems=tuple(Problem(f"rank{i}/a.csv", "empty") for i in range(999)))
    text = render(report, "text", color=False, width=100)
    assert "and 996 more" in text and "98.12" not in text


def test_unusual_evidence_is_still_said():
    """A condition in words is shown as it stands; a healthy run has no empty headings."""
    finding = replace(data_bound().findings[0], evidence=(Evidence("a.b", "word", "text", "is not 'x'"),))
    assert "is not 'x'" in render(replace(data_bound(), findings=(finding,)), "text", color=False)
    assert "1. " not in render(healthy(), "text", color=False)
