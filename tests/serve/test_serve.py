"""`advisor serve`, asked over a real socket."""

from __future__ import annotations

import http.client
import json
import os

import pytest

from advisor.basics.errors import UsageError

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from fake_reports import cluster, data_bound, healthy, hostile
from serving import serving

from advisor.render import render
from advisor.serve.app import build_application
from advisor.serve.runs import RunFolder, trend


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four reports of different ages, and files that are none."""
    root = tmp_path_factory.mktemp("runs")
    (root / "deep" / "er").mkdir(parents=True)
    for age, (name, report) in enumerate(
        {
            "a.json": data_bound(),
            "b.json": healthy(),
            "deep/er/c.json": cluster(),
            "deep/x<script>.json": hostile(),
        }.items()
    ):
        path = root / name
        path.write_text(render(report, "json", facts="all"), encoding="utf-8")
        os.utime(path, (1_700_000_000 - 1000 * age,) * 2)
    (root / "notes.json").write_text('{"tool": "advisor"}')
    (root / "broken.json").write_text(render(healthy(), "json")[:-400] + '"advisor"')
    (root / "secret.txt").write_text("do not serve")
    return root


@pytest.fixture(scope="module")
def address(folder):
    """host:port of a running server."""
    with serving(build_application(folder)) as where:
        yield where


def _ask(address, path, method="GET", host=None):
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{address[1]}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def _runs(folder):
    runs = RunFolder(folder)
    return list(runs.runs(runs.files()))


def _keys(folder):
    return {run.name: run.key for run in _runs(folder)}


def test_lists_reports_only_newest_first(folder, address):
    """Traces, notes and damaged files in the folder are passed over."""
    assert [run.name for run in _runs(folder)] == [
        "a.json",
        "b.json",
        "deep/er/c.json",
        "deep/x<script>.json",
    ]
    status, text, headers = _ask(address, "/")
    assert status == 200 and text.index("a.json") < text.index("deep/er/c.json")
    assert "notes.json" not in text and "<script>.json" not in text
    assert headers["x-frame-options"] == "DENY" and "default-src 'none'" in text


def test_search(address):
    """Runs are found by name, headline and verdict, in both languages."""
    for query, name, other in (
        ("slow-link", "c.json", "b.json"),
        ("%E5%A4%AA%E6%85%A2", "a.json", "b.json"),
        ("deep+slow-link", "c.json", "a.json"),
    ):
        text = _ask(address, f"/?q={query}")[1]
        assert name in text and f">{other}<" not in text
    assert "No saved report" in _ask(address, "/?q=nothing-of-this-name")[1]


def test_report_json_trend_and_comparison(folder, address):
    """Everything a list leads to."""
    keys = _keys(folder)
    assert "Map(2)" in _ask(address, f"/run/{keys['a.json']}")[1]
    assert json.loads(_ask(address, f"/run/{keys['deep/er/c.json']}/json")[1])["profile"]["world_size"] == 8
    text = _ask(address, "/trend?metric=step.idle_share")[1]
    assert "69\xa0%" in text and "1.7\xa0%" in text
    text = _ask(address, f"/compare?before={keys['a.json']}&after={keys['b.json']}")[1]
    assert "59.7\xa0ms" in text and "84.2\xa0ms" in text and "+41\xa0%" in text


def test_hostile_reports_are_inert(folder, address):
    """A name in a report or of a file has no markup anywhere."""
    keys = _keys(folder)
    for path in (
        "/",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        f"/run/{keys['deep/x<script>.json']}",
        "/trend?metric=%22%3E%3Cscript%3E",
        f"/compare?before={keys['a.json']}&after={keys['deep/x<script>.json']}",
    ):
        status, text, _ = _ask(address, path)
        assert status == 200 and text.count("<script") == 1 and "<img" not in text and "<svg onload" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/secret.txt",
        "/run/secret.txt",
        "/run/../secret.txt",
        "/run/..%2fsecret.txt",
        "/run/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/../../etc/passwd",
        "/run/",
        "/compare",
        "/compare?before=../a.json&after=x",
        "/run/a.json",
    ],
)
def test_nothing_outside_is_served(address, path):
    """Addresses are keys, never paths."""
    status, text, _ = _ask(address, path)
    assert status == 404 and "do not serve" not in text and "root:x:" not in text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1:80", ""])
def test_foreign_host_names_are_refused(address, host):
    """A web page that rebinds its name to this machine must not read reports."""
    connection = http.client.HTTPConnection(*address, timeout=10)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()
    assert _ask(address, "/", host="localhost")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_reading_only(address, method):
    """Nothing can be changed over the network."""
    assert _ask(address, "/", method)[0] == 405


def test_files_that_change_are_read_again_and_others_are_not(folder, monkeypatch):
    """A folder of thousands of runs stays quick, and a new result shows at once."""
    runs = RunFolder(folder)

    def found():
        return list(runs.runs(runs.files()))

    first = found()
    monkeypatch.setattr("advisor.serve.runs._summed_up", lambda found: pytest.fail("read again"))
    assert found() == first
    monkeypatch.undo()
    path = folder / "late.json"
    path.write_text(render(healthy(), "json"), encoding="utf-8")
    try:
        assert len(found()) == len(first) + 1
    finally:
        path.unlink()
    assert len(found()) == len(first)


def test_trend_is_in_the_order_of_time(folder):
    """A row of numbers in another order would show another trend."""
    runs = RunFolder(folder)
    points = trend(list(runs.runs(runs.files())), "step.time_us")
    assert [run.name for run, _ in points][-1] == "a.json" and len(points) == 4


def test_a_missing_folder_is_said(tmp_path):
    """A typo ends in a sentence."""
    with pytest.raises(UsageError, match="no such folder"):
        build_application(tmp_path / "nope")


def test_baselines_below_the_folder_have_a_page(tmp_path):
    """Level, limit and accepted changes of every baseline, each kind of run by itself; linked from the list of runs."""
    from advisor.gate.history.baselines import add_run, parse_reference, promote
    from tests.helpers.profiles import runs_of

    main, change = (parse_reference(f"{tmp_path}/deep/er#{name}") for name in ("main", "next"))
    for run in (*runs_of(100.0, 101.0, 140.0), *runs_of(50.0, name="<b>small", key={"model": "other"})):
        add_run(main, run)
    for run in runs_of(90.0, 91.0, name="new"):
        add_run(change, run)
    promote(change, main, "fused <i>kernels")
    with serving(build_application(tmp_path)) as where:
        runs = _ask(where, "/")[1]
        status, page, headers = _ask(where, "/baselines")
    assert 'href="/baselines"' in runs and "基线历史" in runs
    assert status == 200 and {name.lower() for name in headers} >= {"x-content-type-options", "x-frame-options"}
    assert "deep/er#main" in page and page.count("<svg") == 3
    assert "new level accepted: fused &lt;i&gt;kernels" in page and "<i>kernels" not in page and "<b>small" not in page
    assert page.count('class="unsteady"') == 1 and 'class="accepted"' in page
