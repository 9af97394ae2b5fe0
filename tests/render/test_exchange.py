"""Formats that other programs read: Markdown, SARIF, JUnit, GitHub annotations."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from fake_reports import HOSTILE, SAMPLES, cluster, data_bound, hostile, reports
from hypothesis import given, settings

from advisor.model import Check, Outcome, Role
from advisor.render import render
from advisor.render.escaping import html_line, markdown
from tests.helpers.junit import assert_fits_jenkins

SARIF = jsonschema.Draft7Validator(
    json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
)
quick = settings(max_examples=40)


@quick
@given(reports)
def test_sarif_is_valid_against_its_schema(report):
    """Code-scanning services drop an invalid log without a word."""
    SARIF.validate(json.loads(render(report, "sarif")))


def test_sarif_tells_causes_from_symptoms_and_keeps_identity():
    """Alerts are raised for causes; the same finding in the next run is the same alert."""
    first, second = (json.loads(render(data_bound(), "sarif"))["runs"][0]["results"] for _ in range(2))
    assert [result["level"] for result in first] == ["error", "note", "note", "note"]
    prints = [result["partialFingerprints"]["advisorFinding/v1"] for result in first]
    assert len(set(prints)) == 4 and prints == [result["partialFingerprints"]["advisorFinding/v1"] for result in second]
    assert (
        first[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "ASCEND_PROFILER_OUTPUT/dataset.csv"
    )


@quick
@given(reports)
def test_junit_is_well_formed_and_counts_add_up(report):
    """A control character in one operator name must not cost the whole test report."""
    root = ElementTree.fromstring(render(report, "junit").encode())
    suite = root[0]
    for name, path in (
        ("tests", "testcase"),
        ("failures", "testcase/failure"),
        ("errors", "testcase/error"),
        ("skipped", "testcase/skipped"),
    ):
        assert int(suite.get(name)) == len(suite.findall(path)) == int(root.get(name, suite.get(name)))
    assert_fits_jenkins(ElementTree.tostring(root, encoding="unicode"))


def test_a_rule_whose_finding_stands_elsewhere_has_not_passed():
    """Two rules that find one thing give one finding; a dashboard would show the other one as fine."""
    told = cluster()
    told = replace(told, checked=(*told.checked, Check("COMP999", Outcome.FAIL)))
    cases = {case.get("name"): case for case in ElementTree.fromstring(render(told, "junit").encode()).iter("testcase")}
    assert "another rule" in cases["COMP999"].find("skipped").get("message")


def test_junit_outcomes():
    """A rule that could not judge is skipped, never passed."""
    cases = {
        case.get("name"): [child.tag for child in case]
        for case in ElementTree.fromstring(render(cluster(), "junit").encode())[0].iter("testcase")
    }
    assert cases["COMM001"] == ["failure"] and cases["MEM001"] == ["skipped"] and cases["DATA001"] == []


@quick
@given(reports)
def test_github_lines_are_commands_only(report):
    """A name with a line break must not be able to start a command of its own."""
    for line in render(report, "github").rstrip("\n").split("\n"):
        assert re.match(r"::(error|warning|notice) title=[^:,]*::[^\r\n]*$", line)


def test_github_shows_the_worst_nine_and_a_pointer():
    """Ten of a kind are shown and the rest dropped silently: the tenth must say so."""
    template = cluster().findings[0]
    findings = tuple(replace(template, id=f"F{i}", rule=f"R{i}") for i in range(30))
    lines = render(replace(cluster(), findings=findings), "github").splitlines()
    assert len(lines) == 10 and "JSON reports: 21" in lines[-1]
    ranks = [line.split()[0] for line in render(cluster(), "github").splitlines()]
    assert ranks == ["::error", "::warning", "::warning", "::notice", "::notice", "::notice"]
    assert "healthy" not in render(SAMPLES["healthy"](), "github") and render(
        SAMPLES["healthy"](), "github"
    ).startswith("::notice")


def test_markdown_fits_a_comment_and_says_what_is_missing():
    """GitHub refuses a longer comment outright."""
    template = data_bound().findings[0]
    many = replace(data_bound(), findings=tuple(replace(template, id=f"F{i}") for i in range(2000)))
    for report in (many, hostile()):
        for lang in ("en", "zh"):
            text = render(report, "markdown", lang)
            assert len(text.encode()) < 60_000
    assert "Shortened" in render(many, "markdown") and render(many, "markdown").count("<details>") == render(
        many, "markdown"
    ).count("</details>")
    assert "Shortened" not in render(data_bound(), "markdown")


def test_markdown_shows_hostile_names_literally():
    """No tag but our own, no link, no mention, no broken table."""
    text = render(hostile(), "markdown")
    outside = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text)
    outside = re.sub(r"(?s)(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", "CODE", outside)
    tags = set(re.findall(r"<[^>\n]*", outside))
    assert tags <= {"<details", "<summary", "</summary", "</details"}
    assert not re.search(r"(?<!\\)\]\(", outside) and not re.search(r"@\w", outside)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {5}


def test_markdown_has_cause_evidence_remedy_and_check():
    """What the pull request's author needs is there."""
    text = render(data_bound(), "markdown")
    for part in (
        "98\xa0%",
        "36\xa0ms",
        "num_parallel_workers=6",
        "DATA010",
        "Check",
    ):
        assert part in text


@pytest.mark.parametrize("format", ["markdown", "sarif", "junit", "github", "text"])
@pytest.mark.parametrize("name", SAMPLES)
def test_chinese_everywhere(format, name):
    """With --lang zh no finding is told in English."""
    report = SAMPLES[name]()
    text = render(report, format, "zh")
    assert report.findings == () or name == "hostile" or report.findings[0].title.zh[:3] in text


def test_nothing_found_because_nothing_was_measured_is_no_pass():
    """An empty report has no passed case."""
    report = replace(
        cluster(), findings=(), checked=tuple(replace(check, outcome=Outcome.NO_DATA) for check in cluster().checked)
    )
    suite = ElementTree.fromstring(render(report, "junit").encode())[0]
    assert suite.get("skipped") == suite.get("tests") == "6"


def test_every_hostile_name_is_somewhere():
    """Harmless is not the same as swallowed: a reader can still find the operator."""
    assert all(part in render(hostile(), "sarif") for part in ("alert", "名字", "gnp.exe", "red")) and len(HOSTILE) > 9
    assert any(finding.role is Role.SYMPTOM for finding in cluster().findings)


@pytest.mark.parametrize(
    "name", ["MatMul_https://evil.example", "op_www.evil.example", "0http://evil", "算子https://evil"]
)
def test_no_name_becomes_a_link_in_markdown(name):
    """Renderers make links of addresses even inside words; a stranger's kernel names must not lead anywhere."""
    for text in (markdown(name), html_line(name)):
        assert "://" not in text and "www." not in text.lower()


def test_a_folded_title_shows_no_escapes():
    """Inside `<summary>` GitHub reads HTML, where backslashes would be shown."""
    text = html_line("a_b*c <x> & \u061c[y](z) @team")
    assert "\\" not in text and "<x>" not in text and "&lt;x&gt; &amp;" in text
    assert "\u061c" not in text and "@team" not in text
