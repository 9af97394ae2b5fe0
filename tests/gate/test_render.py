"""Every format, for the reader it is made for."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from advisor.basics.resources import resource
from advisor.model import Severity, Subject
from advisor.render import formats_of, render
from advisor.render.decision.markdown import LIMIT, render_markdown
from advisor.render.wording import words
from tests.helpers.junit import assert_fits_jenkins
from tests.helpers.profiles import GOOD, finding, judge, policy, runs_of, sample

HISTORY = runs_of(*GOOD, name="old", facts={"step.computing_us": 80_000.0})
SLOW = runs_of(107.0, 106.5, 107.5, 106.8, 107.2, name="new", facts={"step.computing_us": 86_900.0})
HOSTILE = '</script><b>|x`*[a](http://e.example)\n::error::injected\x1b[31m\u202e ]]> & "@team'
SARIF = json.loads((Path(__file__).parent.parent / "render" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def _hostile(count: int = 1):
    return [
        finding(
            f"acme/{i}",
            Severity.CRITICAL if i % 2 else Severity.HIGH,
            subject=Subject("operator", f"{HOSTILE}{i}"),
            title=HOSTILE,
        )
        for i in range(count)
    ]


def _decisions():
    waiver = {"finding": "acme/exposed", "reason": HOSTILE, "until": datetime.date(2027, 1, 1)}
    other = runs_of(*GOOD, name="old", key={"model": HOSTILE})
    return {
        "pass": judge(HISTORY[:5], HISTORY),
        "fail": judge(SLOW, HISTORY),
        "confirmed": judge(SLOW, HISTORY, confirming=runs_of(107.1, name="again")),
        "not confirmed": judge(SLOW, HISTORY, confirming=runs_of(100.1, name="again")),
        "not comparable": judge(SLOW, other),
        "few": judge(SLOW[:1], HISTORY),
        "alone": judge(SLOW[:1], baseline=None),
        "nothing": judge([sample(None)]),
        "budgets": judge(SLOW, HISTORY, rules=policy(budgets={"step.time_us": "1 ms", "memory.peak_bytes": "1 GB"})),
        "findings": judge(runs_of(*GOOD[:5], findings=_hostile(30)), HISTORY, rules=policy(fail_on="high")),
        "waived": judge(
            runs_of(*GOOD[:5], findings=[finding()]), HISTORY, rules=policy(fail_on="high", waivers=[waiver])
        ),
    }


DECISIONS = _decisions()


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("form", formats_of("decision"))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_format_says_the_verdict_in_both_languages(name, form, lang):
    """A pipeline shows one of them; none may fail or lack the answer."""
    text = render(DECISIONS[name], form, lang)
    assert text.strip()
    if form in ("text", "markdown", "html"):
        word = {
            "pass": ("Passed", "通过"),
            "fail": ("Failed", "未通过"),
            "inconclusive": ("Could not tell", "无法判断"),
        }
        assert word[DECISIONS[name].verdict.value][lang == "zh"] in text
        assert not re.search(r"{\w+}", text), "a placeholder was left unfilled"


@pytest.mark.parametrize("name", DECISIONS)
def test_every_reason_has_words(name):
    """A reason without words would show as its own code."""
    known = words("en")["gate"]
    decision = DECISIONS[name]
    assert {judgement.reason for judgement in decision.judgements} <= known.keys()
    assert {key for key, _ in decision.notes} <= known.keys()


@pytest.mark.parametrize("name", DECISIONS)
def test_json_follows_its_schema(name):
    """Scripts rely on it."""
    schema = json.loads(resource("reports", "schemas", "gate.schema.json").read_text(encoding="utf-8"))
    document = json.loads(render(DECISIONS[name], "json"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["verdict"] == DECISIONS[name].verdict.value


@pytest.mark.parametrize("name", DECISIONS)
def test_sarif_is_valid_and_agrees_with_the_verdict(name):
    """Code-scanning services refuse a whole file for one wrong field."""
    log = json.loads(render(DECISIONS[name], "sarif"))
    jsonschema.Draft7Validator(SARIF).validate(log)
    failed = [r for r in log["runs"][0]["results"] if r["kind"] == "fail" and "suppressions" not in r]
    assert bool(failed) == (DECISIONS[name].verdict.value == "fail")


@pytest.mark.parametrize("name", DECISIONS)
def test_junit_counts_agree_with_its_cases(name):
    """CI servers show the numbers of the attributes."""
    suite = ElementTree.fromstring(render(DECISIONS[name], "junit")).find("testsuite")
    for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(kind)) == len(suite.findall(f"testcase/{tag}"))
    assert int(suite.get("tests")) == len(suite.findall("testcase"))
    assert (int(suite.get("failures")) > 0) == (DECISIONS[name].verdict.value == "fail")
    assert (int(suite.get("errors")) > 0) == (DECISIONS[name].verdict.value == "inconclusive")


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_junit_satisfies_the_schema_of_jenkins(name, lang):
    """The plugin refuses a whole file for one attribute, and then the stage shows nothing."""
    assert_fits_jenkins(render(DECISIONS[name], "junit", lang))


def test_markdown_stays_under_the_limit_of_a_comment():
    """GitHub refuses a longer comment whole, and then nobody sees anything."""
    many = judge(runs_of(*GOOD[:5], findings=_hostile(900)), HISTORY, rules=policy(fail_on="high"))
    text = render(many, "markdown")
    assert len(text.encode()) < LIMIT
    assert "Failed" in text
    short = render_markdown(many, limit=3000)
    assert len(short.encode()) < 3000 and "Shortened" in short


def test_github_shows_nine_of_a_kind_and_a_pointer():
    """Ten annotations of a kind are shown and the rest is dropped without a word."""
    lines = render(DECISIONS["findings"], "github").splitlines()
    errors = [line for line in lines if line.startswith("::error ")]
    assert len(errors) == 10
    assert "21 more" in errors[-1]
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


@pytest.mark.parametrize("form", formats_of("decision"))
def test_names_from_a_profile_are_harmless(form):
    """An operator's name must not close a tag, move a cursor or start a command."""
    text = render(DECISIONS["findings"], form) + render(DECISIONS["not comparable"], form)
    assert "\x1b[31m" not in text
    assert "\n::error::injected" not in text
    if form in ("html", "markdown"):
        assert "</script><b>" not in text
    if form == "junit":
        ElementTree.fromstring(render(DECISIONS["findings"], form))


def test_html_stands_alone_with_both_sides():
    """The page is opened from an artifact, offline, years later."""
    page = render(DECISIONS["fail"], "html")
    assert "http://" not in page and "https://" not in page and "<script" not in page
    assert "Before" in page and "After" in page and "100\xa0ms" in page and "107\xa0ms" in page
    assert len(page) < 200_000


def test_text_names_what_failed_by_how_much_and_what_to_do():
    """The log of the job is what people read first."""
    text = render(DECISIONS["fail"], "text")
    assert "step time" in text and "+7\xa0%" in text and "--confirm" in text
    assert "computation: 80\xa0ms → 86.9\xa0ms" in text
    assert "--confirm" not in render(DECISIONS["confirmed"], "text")


def test_text_names_the_differences_of_the_keys():
    """Exit 3 without a reason is as good as a crash."""
    old = runs_of(*GOOD, name="old", key={"model": "m", "versions.cann": "8.1"})
    new = runs_of(*GOOD[:5], key={"model": "m"})
    assert "versions.cann: 8.1 → unknown" in render(judge(new, old), "text")
