"""The folder of saved reports: what else lies there hurts nobody, and a list opens only what it shows."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_reports import cluster, data_bound, healthy

from advisor.basics.errors import UsageError
from advisor.cli.main import main
from advisor.compare import read_report
from advisor.exchange import report_from_json
from advisor.facts.base import FactSet, Measured
from advisor.facts.saved import dump, load
from advisor.gate.history import baselines
from advisor.model import RUN, Accounting, Fact, WhatIf
from advisor.render import render
from advisor.ruleset.files.loader import load_rules
from advisor.serve import runs as module
from advisor.serve.runs import RunFolder, grouped

starlette = pytest.importorskip("starlette.testclient")


def _chained(count):
    """A report whose findings each follow from the next."""
    first = data_bound().findings[1]
    findings = [
        replace(first, id=f"F{i}", because=(f"F{i + 1}",) if i < count else (), explains=())
        for i in range(1, count + 1)
    ]
    return replace(data_bound(), findings=tuple(findings))


def _attacks(root):
    text = render(healthy(), "json")
    number = '"step_time_us": 84210.0'
    assert number in text
    for name, value in (("large", "1" + "0" * 400), ("nan", "NaN"), ("infinity", "Infinity"), ("range", "1e999")):
        (root / f"{name}.json").write_text(text.replace(number, f'"step_time_us": {value}'), encoding="utf-8")
    document = json.loads(text)
    document["facts"].append({"name": "run.x", "subject": {"kind": "run", "id": "run", "ranks": []}, "value": 0})
    huge = json.dumps(document, sort_keys=True).replace('"value": 0}', '"value": 1' + "0" * 400 + "}")
    (root / "fact.json").write_text(huge, encoding="utf-8")
    (root / "chain.json").write_text(render(_chained(300), "json"), encoding="utf-8")
    (root / "deep.json").write_text("[" * 100_000 + '"advisor"', encoding="utf-8")
    (root / os.fsdecode(b"n\xff\xfeame.json")).write_text(text, encoding="utf-8")
    os.mkfifo(root / "pipe.json")
    (root / "zero.json").symlink_to("/dev/zero")
    (root / "gone.json").symlink_to("nowhere")


@pytest.fixture
def client(tmp_path):
    """A browser before a folder with a good report among all that."""
    from advisor.serve.app import build_application

    (tmp_path / "good.json").write_text(render(data_bound(), "json"), encoding="utf-8")
    _attacks(tmp_path)
    application = build_application(tmp_path, hosts=("testserver",))
    return starlette.TestClient(application, raise_server_exceptions=False)


def test_one_file_stops_nobody(client):
    """Numbers that are none, chains, odd names, pipes and devices: every page still answers, with all its headers."""
    page = client.get("/")
    assert page.status_code == 200 and "good.json" in page.text and "chain.json" in page.text
    assert "nan.json" not in page.text and "pipe.json" not in page.text
    keys = sorted(set(re.findall(r'href="/run/(\w+)"', page.text)))
    assert len(keys) >= 3
    for key in keys:
        for address in (f"/run/{key}", f"/run/{key}/json", f"/compare?before={key}&after={keys[0]}"):
            answer = client.get(address)
            assert answer.status_code in (200, 404), address
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("/trend?metric=step.time_us").status_code == 200
    for answer in (client.get("/", headers={"host": "evil.example"}), client.get("/run/nothing"), client.post("/")):
        assert answer.status_code in (400, 404, 405) and answer.headers["x-frame-options"] == "DENY"


def test_a_page_that_fails_has_its_headers_too(client, monkeypatch):
    """What went wrong inside tells nothing outside and keeps the policy."""

    def fails(*_args, **_options):
        raise RuntimeError("secret")

    monkeypatch.setattr(RunFolder, "files", fails)
    answer = client.get("/")
    assert answer.status_code == 500 and "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["large", "nan", "infinity", "range", "fact", "chain", "deep"])
def test_comparing_with_such_a_report_is_no_defect_of_ours(tmp_path, name, capsys):
    """Wrong input is told as that; 4 would send people to report a bug."""
    (tmp_path / "good.json").write_text(render(healthy(), "json"), encoding="utf-8")
    _attacks(tmp_path)
    status = main(["compare", str(tmp_path / "good.json"), str(tmp_path / f"{name}.json")])
    assert status in {"chain": (0, 3), "deep": (2, 3)}.get(name, (2,)), capsys.readouterr().err


def test_findings_chained_without_end_are_told():
    """Three hundred symptoms of symptoms are a list, not a crash."""
    report = _chained(300)
    for format in ("html", "text", "markdown"):
        assert "F299" in render(report, format, verbose=True) or format != "html"


def test_a_list_opens_only_what_it_shows(tmp_path, monkeypatch):
    """Fifteen hundred reports: the first page in a moment, newest first, and the others unopened."""
    from advisor.serve.app import SHOWN, build_application

    text = render(cluster(), "json")
    for i in range(SHOWN * 3):
        path = tmp_path / f"run{i:04d}.json"
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
    opened = []
    read = module.read_own
    monkeypatch.setattr(module, "read_own", lambda path, most: opened.append(path) or read(path, most))
    client = starlette.TestClient(build_application(tmp_path, hosts=("testserver",)))
    began = time.perf_counter()
    page = client.get("/").text
    assert len(opened) == SHOWN and time.perf_counter() - began < 5
    assert f"run{SHOWN * 3 - 1:04d}.json" in page and "run0000.json" not in page
    assert "run0000.json" in client.get("/?page=3").text


def test_a_link_leads_to_no_report_outside(tmp_path):
    """Who may write into the folder need not be allowed to read what the server's user may: links stay below it."""
    served, outside = tmp_path / "served", tmp_path / "outside"
    served.mkdir()
    outside.mkdir()
    for folder, name in ((served, "own.json"), (outside, "private.json")):
        (folder / name).write_text(render(healthy(), "json"), encoding="utf-8")
    (served / "out.json").symlink_to(outside / "private.json")
    (served / "again.json").symlink_to("own.json")
    folder = RunFolder(served)
    assert {run.name for run in folder.runs(folder.files())} == {"own.json", "again.json"}


def test_what_was_told_of_reports_that_are_gone_is_forgotten(tmp_path):
    """A server runs for months beside a job that writes and clears away reports."""
    folder = RunFolder(tmp_path)
    for number in range(5):
        path = tmp_path / f"{number}.json"
        path.write_text(render(healthy(), "json"), encoding="utf-8")
        assert len(list(folder.runs(folder.files()))) == 1
        path.unlink()
    assert folder.files() == [] and folder._briefs == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"step_time_us": 84210.0', '"step_time_us": -5.0'),
        ('"step_time_us": 84210.0', '"step_time_us": 1e+300'),
        ('"computing": 0.', '"computing": 7.'),
        ('"share_of_step": 0.', '"share_of_step": 7.'),
    ],
)
def test_what_no_step_can_be_is_no_report(old, new):
    """An edited report of a step below nothing, or of seven times its own computing, is refused with the reason."""
    text = render(data_bound() if "share_of" in old else healthy(), "json")
    assert old in text
    with pytest.raises(UsageError, match="cannot be"):
        report_from_json(text.replace(old, new, 1))


def test_impossible_facts_and_pictures_are_left_out_and_told(tmp_path, caplog):
    """A share of 5.76 in a saved report explains no change, a part of less than nothing is not drawn, and both are
    said, in a comparison too."""
    report = healthy()
    share = Fact("step.idle_share", RUN, 5.76)
    text = render(replace(report, facts=(*report.facts, share)), "json", facts="all")
    text = re.sub(r'("values": \[\s*)7', r"\g<1>-7", text, count=1)
    told = report_from_json(text)
    assert told.facts and not any(fact.value == 5.76 for fact in told.facts)
    assert "breakdown_steps" in report.charts and "breakdown_steps" not in told.charts
    assert sum("left out" in problem.problem for problem in told.problems) == 2
    assert report_from_json(render(told, "json")).problems == told.problems
    (tmp_path / "odd.json").write_text(text, encoding="utf-8")
    with caplog.at_level("WARNING", logger="advisor"):
        read_report(str(tmp_path / "odd.json"), load_rules())
    assert sum("left out" in record.getMessage() for record in caplog.records) == 2


def _odd_evidence(document):
    next(item for item in document["findings"][0]["evidence"] if item["fact"].endswith("_share"))["value"] = 5.76


def _odd_account(document):
    document["accounting"]["useful_us"] = -5.0


def _account_without_sum(document):
    document["accounting"]["useful_us"] *= 3


def _foreign_repairs(document):
    document["whatif"]["causes"] = ["F99"]


def _repairs_that_cost(document):
    document["whatif"]["step_time_us"]["F1"] = 1e9


@pytest.mark.parametrize(
    "edit", [_odd_evidence, _odd_account, _account_without_sum, _foreign_repairs, _repairs_that_cost]
)
def test_what_a_verdict_rests_on_is_held_to_what_can_be(edit):
    """Evidence of 576 %, an account that does not sum to the step and repairs of causes that were not found refuse
    the report instead of standing in a page."""
    report = replace(
        data_bound(),
        accounting=Accounting(84210.0, 40000.0, {"F1": 30000.0}, {"bubble": 10000.0}, 4210.0),
        whatif=WhatIf(("F1",), {"": 84210.0, "F1": 54210.0}),
    )
    document = json.loads(render(report, "json"))
    assert report_from_json(document).accounting == report.accounting
    edit(document)
    with pytest.raises(UsageError, match="cannot be"):
        report_from_json(document)


def test_half_characters_of_a_report_reach_no_output():
    """What no encoding can hold is a question mark from the reading on, and whole characters stay."""
    text = render(healthy(), "json").replace(healthy().profile.path, "a\\ud800b\\ud83d\\ude00")
    report = report_from_json(text)
    assert report.profile.path == "a?b😀"
    for form in ("html", "markdown", "text", "sarif", "junit", "github", "json"):
        render(report, form).encode()


def test_saved_facts_hold_what_can_be_measured(tmp_path):
    """What no profile gives is refused with its reason, before any rule sees it."""
    text = dump(Measured(healthy().profile, FactSet([Fact("step.idle_share", RUN, 0.25)])))
    for number in ("5.76", "-1.0", "NaN"):
        (tmp_path / "facts.json").write_text(text.replace("0.25", number), encoding="utf-8")
        with pytest.raises(UsageError, match=r"cannot be|is no number"):
            load(tmp_path / "facts.json")
    (tmp_path / "facts.json").write_text(text, encoding="utf-8")
    assert load(tmp_path / "facts.json").facts.value("step.idle_share", RUN) == 0.25


def test_thousands_of_unlike_runs_are_grouped_at_once(tmp_path, monkeypatch):
    """Each run of a model of its own: a run is compared with so many models, not with all."""
    (tmp_path / "a.json").write_text(render(healthy(), "json"), encoding="utf-8")
    folder = RunFolder(tmp_path)
    first = next(folder.runs(folder.files()))
    asked = []
    monkeypatch.setattr(module, "_alike", lambda one, other: asked.append(1) or one == other)
    unlike = [replace(first, key=str(n), types=frozenset({f"t{n}", f"u{n}"})) for n in range(5_000)]
    groups = grouped([*unlike, replace(unlike[-1], key="last")])
    assert len(groups) == len(unlike) and len(groups[-1].runs) == 2
    assert len(asked) < 100 * len(unlike)


def test_runs_are_grouped_by_model_and_size(tmp_path):
    """A step of 8 ranks is no worse than one of 4: only runs of one model and size stand in one table."""
    for name, report in (("a", cluster(8)), ("b", cluster(8)), ("c", cluster(16)), ("d", data_bound())):
        (tmp_path / f"{name}.json").write_text(render(report, "json"), encoding="utf-8")
    folder = RunFolder(tmp_path)
    groups = grouped(list(folder.runs(folder.files())))
    assert sorted(sorted(run.name for run in group.runs) for group in groups) == [
        ["a.json", "b.json"],
        ["c.json"],
        ["d.json"],
    ]


def test_counts_are_those_of_the_report(tmp_path):
    """The list, the terminal and the page count findings and symptoms alike."""
    (tmp_path / "a.json").write_text(render(data_bound(), "json"), encoding="utf-8")
    folder = RunFolder(tmp_path)
    (run,) = folder.runs(folder.files())
    said = f"findings: {run.causes}, symptoms: {run.symptoms}"
    assert said in render(data_bound(), "text", width=200) and said in render(data_bound(), "html")


def test_what_only_looks_like_a_number_is_refused():
    """NaN compares to nothing, and 10**400 ends every division."""
    from advisor.basics.errors import UsageError

    text = render(healthy(), "json")
    for value in ("NaN", "-Infinity", "1e999", "1" + "0" * 400):
        with pytest.raises(UsageError):
            report_from_json(text.replace("84210.0", value))


def test_a_linked_baseline_is_none_of_the_folder_s(tmp_path, monkeypatch):
    """The page of baselines stays below the folder as the list of reports does."""
    outside = tmp_path / "outside" / "main"
    outside.mkdir(parents=True)
    (outside / "run-1.json").write_text("{}", encoding="utf-8")
    served = tmp_path / "served"
    (served / "own").mkdir(parents=True)
    (served / "own" / "run-1.json").write_text("{}", encoding="utf-8")
    (served / "linked").symlink_to(outside)
    asked = []
    monkeypatch.setattr(baselines, "_EVENTS", "*.json")
    monkeypatch.setattr(
        baselines, "load_baseline", lambda where: asked.append(where.name) or SimpleNamespace(histories=())
    )
    assert baselines.baselines_below(served) == [] and asked == ["own"]
