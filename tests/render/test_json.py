"""The public JSON form."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import jsonschema
import pytest
from fake_reports import SAMPLES, cluster, reports
from hypothesis import given

from advisor.basics.errors import UsageError
from advisor.basics.resources import resource
from advisor.exchange import report_from_json
from advisor.model import RUN, Evidence, Fact, Subject
from advisor.render import FORMATS, render

SCHEMA = json.loads(resource("reports", "schemas", "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@given(reports)
def test_a_report_survives_the_way_through_json(report):
    """Saved reports are read again by serve, compare and other people's scripts: nothing may get lost."""
    text = render(report, "json", facts="all")
    VALIDATOR.validate(json.loads(text))
    assert report_from_json(text) == report


@pytest.mark.parametrize("name", SAMPLES)
def test_keys_are_sorted_and_the_schema_holds(name):
    """Diffs of two reports stay small, and the published schema describes what is written."""

    def check(pairs):
        keys = [key for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    text = render(SAMPLES[name](), "json")
    VALIDATOR.validate(json.loads(text, object_pairs_hook=check))
    before = text[: text.index('"checked"')]
    assert len(before.splitlines()) < 15, "pictures bury the findings"


def test_numbers_that_are_none_become_null():
    """NaN and Infinity are not JSON; a parser elsewhere would refuse the whole report."""
    report = replace(
        cluster(),
        facts=(Fact("x", RUN, float("nan")), Fact("y", RUN, (1.0, float("inf")))),
        charts={"a": [float("-inf")]},
    )
    finding = replace(report.findings[0], evidence=(Evidence("x", float("nan"), "us"),))
    document = json.loads(render(replace(report, findings=(finding,)), "json"), parse_constant=pytest.fail)
    VALIDATOR.validate(document)
    assert [fact["value"] for fact in document["facts"]] == [None, [1.0, None]]


def test_half_characters_of_file_names_do_not_break_the_output():
    """A path that is not UTF-8 arrives with lone surrogates, which no file can be written with."""
    report = replace(cluster(), profile=replace(cluster().profile, path="run\udcff"))
    for format in FORMATS:
        render(report, format).encode("utf-8")


def test_facts_of_the_run_and_those_that_explain_a_change():
    """A thousand ranks have tens of thousands of facts, and `advisor facts` exists for them."""
    more = (*cluster().facts, Fact("operator_type.time_us", Subject("operator_type", "MatMul"), 5.0))
    report = replace(cluster(), facts=more)
    counts = {
        which: len(json.loads(render(report, "json", facts=which))["facts"])
        for which in ("none", "run", "compared", "all")
    }
    assert counts == {"none": 0, "run": 1, "compared": 2, "all": 3}
    assert len(json.loads(render(report, "json"))["facts"]) == 2


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"schema_version": "1.0"}', '{"schema_version": "9.0"}', "[" * 9999]
)
def test_what_is_no_report_is_refused_with_a_next_step(text):
    """Bad input ends in a sentence, not in a traceback."""
    with pytest.raises(UsageError, match="hint"):
        report_from_json(text)


def test_unknown_formats_and_fields():
    """A typo in --format names the choices; a report of a newer minor version is still read."""
    with pytest.raises(UsageError, match="sarif"):
        render(cluster(), "pdf")
    document = json.loads(render(cluster(), "json")) | {"schema_version": "1.7", "news": 1}
    assert report_from_json(document).summary == cluster().summary


def test_rendering_json_needs_no_heavy_module():
    """The JSON writer is used by hooks that must answer at once."""
    import subprocess

    code = "import sys, advisor.exchange; sys.exit(any(m in sys.modules for m in ('pandas', 'rich', 'jinja2')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
