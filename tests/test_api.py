"""The Python API: what docs/api.md promises, in scripts and in notebooks."""

from __future__ import annotations

import doctest
import inspect
import json
import shutil
import typing
from pathlib import Path

import pytest

import advisor
from advisor import api
from advisor.basics.errors import NoVerdict, UsageError

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "slow-rank-pipeline"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    """The document's paths are those of a checkout."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def report():
    """The report on the example."""
    return api.advise(EXAMPLE)


def test_the_examples_of_the_document_run():
    """Line by line, with the answers shown there."""
    done = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 15 and done.failed == 0


def test_the_table_of_the_document_is_the_module():
    """Names, arguments and defaults; and every function is typed throughout."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in ("advise", "load_rules", "facts", "compare", "gate", "load_profile"):
        function = getattr(api, name)
        arguments = []
        for each in inspect.signature(function).parameters.values():
            star = "*" if each.kind is each.VAR_POSITIONAL else ""
            default = "" if each.default is each.empty else f"={each.default!r}"
            if each.kind is each.KEYWORD_ONLY and "*" not in "".join(arguments):
                arguments.append("*")
            arguments.append(f"{star}{each.name}{default}")
        assert f"`{name}({', '.join(arguments)})`" in text
        hints = typing.get_type_hints(
            function, vars(api) | {"Comparison": object, "Decision": object, "Config": object}
        )
        assert set(hints) >= {*inspect.signature(function).parameters, "return"}, name


def test_a_report_is_short_to_look_at(report):
    """A prompt shows one line, not a third of a million characters; so do a comparison and a decision."""
    assert len(repr(report)) < 200 and "slow-rank-pipeline" in repr(report)
    assert len(repr(api.compare(report, report))) < 300
    decision = api.gate(EXAMPLE, policy={"budgets": {"step.time_us": {"at_most": 60_000}}})
    assert len(repr(decision)) < 200 and "pass" in repr(decision)


def test_a_notebook_shows_the_whole_report(report):
    """The HTML report in a frame that can run its own script and reach nothing else."""
    shown = report._repr_html_()
    assert report.summary.headline.en.partition("<")[0][:40] in shown
    assert 'sandbox="allow-scripts"' in shown and "allow-same-origin" not in shown
    inside = shown.partition('srcdoc="')[2].rpartition('"></iframe>')[0]
    assert '"' not in inside and "<" not in inside
    import html

    assert html.unescape(inside) == report.to_html()


def test_a_hostile_name_stays_in_its_frame():
    """What stands in a profile is text in a notebook too."""
    from fake_reports import hostile

    shown = api._shown(hostile())._repr_html_()
    assert shown.count("<script") == 0 and shown.count("<iframe") == 1 and "<img" not in shown


def test_frames_hold_what_the_report_holds(report):
    """One row a finding and one a fact, with units; empty frames keep their columns."""
    findings = report.findings_frame()
    assert list(findings.id) == [finding.id for finding in report.findings]
    assert list(report.findings_frame("zh").title) == [finding.title.zh for finding in report.findings]
    assert len(report.facts_frame()) == len(report.facts) and (report.facts_frame().unit != "").all()
    empty = api._shown(advisor.model.Report(report.profile, report.summary))
    assert list(empty.findings_frame().columns) == list(findings.columns) and empty.facts_frame().empty


def test_a_notebook_runs_headless(tmp_path):
    """Executed as Jupyter does: a cell that ends in a report has its HTML and one line of text, one with a frame a
    table."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        f"from advisor.api import advise\nreport = advise({str(EXAMPLE)!r})\nreport",
        "report.findings_frame()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    first, second = (cell.outputs[-1].data for cell in notebook.cells)
    assert (
        "srcdoc" in first["text/html"] and first["text/plain"].startswith("Report(") and len(first["text/plain"]) < 200
    )
    assert "slow-compute-rank" in second["text/html"]


def test_an_archive_is_a_profile_here_too(tmp_path):
    """Its folder is there as long as the profile is, and gone after it."""
    archive = shutil.make_archive(str(tmp_path / "run"), "gztar", EXAMPLE.parent, EXAMPLE.name)
    profile = api.load_profile(archive)
    folder = profile.ranks[0].root
    assert len(profile.ranks) == 4 and folder.is_dir()
    del profile
    import gc

    gc.collect()
    assert not folder.exists()
    assert api.advise(archive).summary.direction == api.advise(EXAMPLE).summary.direction


def test_errors_are_for_people(tmp_path):
    """Where nothing is, and where nothing can be told."""
    with pytest.raises(UsageError, match="no such file"):
        api.advise(tmp_path / "none")
    with pytest.raises(NoVerdict):
        api.facts(tmp_path)
    with pytest.raises(AttributeError):
        _ = advisor.nothing


def test_a_strangers_configuration_counts_no_more_than_on_the_command_line(tmp_path, monkeypatch):
    """A script started inside a profile judges by the shipped rules, and its report says what was set aside."""
    folder = tmp_path / "profile"
    shutil.copytree(EXAMPLE, folder)
    (folder / "advisor.toml").write_text('ignore = ["*"]\n')
    monkeypatch.chdir(folder)
    report = api.advise(".")
    assert report.findings and any("not in force" in problem.problem for problem in report.problems)


def test_json_is_that_of_the_command_line(report, tmp_path):
    """Scripts save what `serve`, `compare` and `gate` read."""
    document = json.loads(report.to_json())
    assert document["schema_version"] and document["findings"][0]["rule"] == report.findings[0].rule
    (tmp_path / "r.json").write_text(report.to_json())
    assert api.compare(tmp_path / "r.json", EXAMPLE).outcome == "same"
