"""Golden samples of every format in `reports/samples`: what users see changes only where somebody looked at it.

They show the bundled example. `UPDATE_SAMPLES=1 pytest tests/render/test_samples.py` writes them anew.
"""

from __future__ import annotations

import os

import pytest

from advisor.basics.resources import resource
from advisor.config import Config
from advisor.exchange import report_from_json, tool_version
from advisor.pipeline import Options, advise
from advisor.render import FORMATS, render
from advisor.ruleset.files.loader import load_rules

FILES = {
    ("text", "en"): "report.txt",
    ("text", "zh"): "report.zh.txt",
    ("json", "en"): "report.json",
    ("html", "en"): "report.html",
    ("markdown", "en"): "report.md",
    ("sarif", "en"): "report.sarif",
    ("junit", "en"): "report.junit.xml",
    ("github", "en"): "report.github.txt",
    ("trace", "en"): "report.trace.json",
}


def _findings(report):
    return [(f.rule, f.verdict, f.subject, f.role, f.severity, f.because) for f in report.findings]


def test_the_sample_is_the_report_on_the_bundled_example(monkeypatch):
    """What a newcomer reads in `reports/samples` is what `make advise` shows."""
    monkeypatch.chdir(resource("reports", "samples").parents[1])
    report = advise(["examples/slow-rank-pipeline"], load_rules(config=Config()), Options(engine="python"))
    path = resource("reports", "samples") / "report.json"
    if os.environ.get("UPDATE_SAMPLES"):
        path.write_text(render(report, "json").replace(tool_version(), "VERSION"), encoding="utf-8")
    assert _findings(report_from_json(path.read_text(encoding="utf-8"))) == _findings(report)


@pytest.mark.parametrize(("format", "lang"), FILES)
def test_sample(format, lang, monkeypatch):
    """Each format of the sample report is as it was last looked at, but for the version and the catalogue of facts."""
    monkeypatch.setattr("advisor.render.wording._meanings", dict)
    folder = resource("reports", "samples")
    report = report_from_json((folder / "report.json").read_text(encoding="utf-8"))
    text = render(report, format, lang, facts="all").replace(tool_version(), "VERSION")
    path = folder / FILES[format, lang]
    if os.environ.get("UPDATE_SAMPLES"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8").replace(tool_version(), "VERSION")


def test_every_format_has_a_sample():
    """A new format comes with its sample."""
    assert {format for format, _ in FILES} == set(FORMATS)
