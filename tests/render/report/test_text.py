"""The terminal report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fake_reports import SAMPLES, cluster, data_bound, healthy, hostile, reports
from hypothesis import given, settings
from rich.cells import cell_len

from advisor.model import Evidence, Problem, Text, WhatIf
from advisor.render import render
from advisor.sources.base import say_once

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
        "Step 59.7\xa0ms",
        "idle 69\xa0%",
        "1. critical",
        "98\xa0% (limit 85\xa0%)",
        "potential gain: 36\xa0ms",
        "6 workers",
        "num_parallel_workers: 2 → 6",
        "busy share of the operation should fall",
        "The device waits for data",
        "2. low",
        "[experimental]",
        "Next collection:",
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
        if "potential gain: 36\xa0ms" in render(data_bound(), format):
            assert "lost, potential gain not known yet: 36\xa0ms" in render(report, format)
            assert "potential gain: 36\xa0ms" not in render(report, format)
    assert "lost, potential gain not known yet: 36\xa0ms" in render(report, "text", color=False, width=100)


def test_an_upper_bound_never_looks_like_a_promised_gain():
    """Told in full, in a list or as the step then: "no more than this" is said wherever the time is."""
    report = data_bound()
    first = report.findings[0]
    assert first.saving is not None
    bound = replace(first, saving=replace(first.saving, kind="upper_bound"))
    second = replace(first, id="F9", saving=replace(first.saving, kind="estimate"))
    steps = {"": 98_000.0, "F9": 70_000.0, "F1": 62_000.0, "F9,F1": 50_000.0}
    report = replace(report, findings=(second, bound), whatif=WhatIf(("F9", first.id), steps))
    text = render(report, "text", color=False, width=100, limit=1).replace("\xa0", " ")
    assert "up to −36 ms" in text
    assert "70 ms (F9) → at best 50 ms (+ F1)" in text
    assert "up to −48 ms" in render(report, "markdown").replace("\xa0", " ")
    page = render(replace(report, findings=(bound, second)), "html", "zh").replace("\xa0", " ")
    assert "up to −36 ms" in page and "最多−36 ms" in page and "at best 50 ms" in page
    assert "up to 36 ms" in page  # what to do first


def test_a_list_says_what_a_cause_gives_once_others_are_repaired_though_alone_it_gives_nothing():
    """A severe cause without a figure seems to be worth nothing."""
    first, *others = data_bound().findings
    assert first.saving is not None
    held = replace(first, id="F9", saving=replace(first.saving, us_per_step=0.0, after_others_us=19_000.0))
    report = replace(data_bound(), findings=(first, held, *others))
    text = " ".join(render(report, "text", color=False, width=100, limit=1).replace("\xa0", " ").split())
    assert "F9 nothing by itself; 19 ms after the findings above are repaired" in text


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
    assert "empty (999 files: rank0/a.csv, rank1/a.csv, …)" in text and "98.12" not in text
    report = replace(report, problems=tuple(Problem(f"rank{i}/a.csv", f"broken {i}") for i in range(9)))
    assert "and 6 more" in render(report, "text", color=False, width=100)


def test_the_first_cause_is_told_whole():
    """Who reads only the first finding must be able to act on it: message, command and check, nothing cut."""
    first = data_bound().findings[0]
    long = Text("A sentence that goes on. " * 30 + "The end of it.", "一句很长的话。" * 60 + "到此为止。")
    remedy = replace(first.remedies[0], snippet="first line\nsecond line")
    report = replace(
        data_bound(), findings=(replace(first, message=long, remedies=(remedy,)), *data_bound().findings[1:])
    )
    for lang, end in (("en", "The end of it."), ("zh", "到此为止。")):
        text = render(report, "text", lang, color=False, width=100)
        assert end in " ".join(text.split()).replace("。 ", "。") and "second line" in text
        assert {"en": "busy share of the operation", "zh": "算子繁忙度"}[lang] in text


def test_wide_characters_fill_the_line_and_marks_do_not_begin_one():
    """Chinese has no blanks to break at; a full stop at the start of a line reads badly."""
    first = data_bound().findings[0]
    report = replace(data_bound(), findings=(replace(first, message=Text("", "数据处理较慢，等待时间长。" * 20)),))
    lines = [
        line for line in render(report, "text", "zh", color=False, width=60).splitlines() if "数据处理较慢" in line
    ]
    assert len(lines) > 3 and all(cell_len(line) >= 54 for line in lines[:-1])
    assert not any(line.lstrip()[0] in "，。" for line in lines)


def test_unusual_evidence_is_still_said():
    """A condition in words is shown as it stands; a healthy run has no empty headings."""
    finding = replace(data_bound().findings[0], evidence=(Evidence("a.b", "word", "text", "is not 'x'"),))
    assert "is not 'x'" in render(replace(data_bound(), findings=(finding,)), "text", color=False)
    assert "1. " not in render(healthy(), "text", color=False)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_problem_of_many_files_is_one_line(lang):
    """64 ranks with the same damage do not push the verdict off the screen."""
    files = [f"node{n}_4000_20240101_ascend_ms/ASCEND_PROFILER_OUTPUT/step_trace_time.csv" for n in range(64)]
    report = replace(cluster(), problems=tuple(say_once(Problem(file, "cut after 3 rows") for file in files)))
    lines = [line for line in render(report, "text", lang, color=False, width=100).splitlines() if "cut after" in line]
    assert len(lines) == 1 and "64" in lines[0] and cell_len(lines[0]) <= 100
    listed = render(report, "sarif", lang)
    assert all(file in listed for file in files)
