"""The commands as a pipeline calls them: every exit status, for real."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from advisor.cli.main import main
from advisor.render import formats_of
from tests.helpers.profiles import RULE, write_run

GOOD = (100.0, 101.0, 99.0, 100.5, 99.5)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Profiles of good, equal and slow runs, a rule pack, and a baseline of the good ones."""
    root = tmp_path_factory.mktemp("site")
    good = [str(write_run(root / f"good{i}", step)) for i, step in enumerate(GOOD)]
    same = [str(write_run(root / f"same{i}", step + 0.2)) for i, step in enumerate(GOOD)]
    slow = [str(write_run(root / f"slow{i}", step * 1.1, exposed=0.4)) for i, step in enumerate(GOOD)]
    (root / "pack").mkdir()
    (root / "pack" / "ACME001-exposed.yaml").write_text(RULE, encoding="utf-8")
    (root / "advisor.toml").write_text('extend = []\nrules = ["pack"]\n[gate]\nbaseline = "base#main"\n')
    assert main(["baseline", "add", *good, "--config", str(root / "advisor.toml"), "--meta", "commit=1"]) == 0
    return root, good, same, slow


@pytest.fixture
def run(site, capsys, monkeypatch):
    root = site[0]
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def call(*arguments: str, config: str = "advisor.toml"):
        status = main([*arguments, "--config", str(root / config)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def _policy(root, name: str, text: str) -> str:
    (root / name).write_text(
        f'extend = []\nrules = ["pack"]\n[gate]\nbaseline = "base#main"\n{text}\n', encoding="utf-8"
    )
    return name


def test_zero_where_nothing_got_worse(site, run):
    """A good change goes through."""
    status, out, _ = run("gate", *site[2])
    assert status == 0 and out.startswith("Passed")


def test_one_where_the_step_got_slower_and_says_what_accounts_for_it(site, run):
    """A bad change does not, and the log names the culprit."""
    status, out, _ = run("gate", *site[3])
    assert status == 1 and out.startswith("Failed: step time +10")
    assert "exposed communication: 10\xa0ms → 44\xa0ms" in out


def test_one_where_a_new_finding_is_severe(site, run):
    """--fail-on counts new findings only."""
    root, _good, same, slow = site
    rules = _policy(root, "find.toml", "metrics.step.time_us = false")
    status, out, _ = run("gate", *slow, "--fail-on", "high", config=rules)
    assert status == 1 and "Communication is exposed" in out
    assert run("gate", *same, "--fail-on", "high", config=rules)[0] == 0


def test_two_for_wrong_usage_policy_and_rules(site, run):
    """A mistake in the policy must not look like a regression."""
    root, good, same, _ = site
    assert run("gate")[0] == 2
    assert run("gate", good[0], good[0])[0] == 2
    assert run("gate", str(root / "nowhere"))[0] == 2
    assert run("gate", *same, "--key", "model")[0] == 2
    status, _, err = run("gate", *same, "--key", "framework=pytorch")
    assert status == 2 and "the profile says framework is mindspore" in err
    assert run("gate", *same, "--baseline", "base#..")[0] == 2
    status, _, err = run("gate", *same, config=_policy(root, "wrong.toml", "min_rnus = 3"))
    assert status == 2 and "did you mean min_runs?" in err
    assert run("gate", *same, "--format", "pdf")[0] == 2


def test_three_where_it_could_not_tell(site, run, tmp_path):
    """No baseline, another key, too few runs, nothing readable: not green, and the reason is said."""
    _root, good, _same, slow = site
    status, out, _ = run("gate", slow[0])
    assert status == 3 and "1 of the 5 runs needed" in out
    (tmp_path / "empty" / "main").mkdir(parents=True)
    status, out, _ = run("gate", *slow, "--baseline", str(tmp_path / "empty"))
    assert status == 3 and "no other runs to compare with" in out
    status, out, _ = run("gate", *slow, "--key", "model=other")
    assert status == 3 and "model: unknown → other" in out
    other = [str(write_run(tmp_path / f"level{i}", 100.0, level="Level0")) for i in range(5)]
    status, out, _ = run("gate", *other)
    assert status == 3 and "profiler.level: Level1 → Level0" in out
    (tmp_path / "nothing").mkdir()
    assert run("gate", str(tmp_path / "nothing"))[0] == 3
    assert run("gate", good[0], other[0])[0] == 3


def test_budget_judges_a_single_run(site, run):
    """The very first run of a pipeline can already be too slow."""
    root, _, same, slow = site
    rules = _policy(root, "budget.toml", 'budgets.step.time_us = "105 ms"')
    status, out, _ = run("gate", same[0], config=rules)
    assert status == 0 and "as far as it could be judged" in out and "Not judged" in out
    assert run("gate", slow[0], config=rules)[0] == 1
    missing = _policy(root, "missing.toml", 'budgets.memory.peak_bytes = "58 GB"')
    assert run("gate", *same, config=missing)[0] == 3


def test_confirming_run_clears_or_confirms(site, run):
    """The pipeline's own answer to a flaky red."""
    _, _good, same, slow = site
    assert run("gate", *slow[:5], "--confirm", same[0])[0] == 0
    root = site[0]
    again = str(write_run(root / "again", 111.0, exposed=0.4))
    assert run("gate", *slow, "--confirm", again)[0] == 1
    assert run("gate", *slow, "--confirm", slow[0])[0] == 2


def test_ranks_of_one_run_are_not_runs(tmp_path, run):
    """`gate cluster/*` would otherwise take eight ranks for eight independent runs."""
    first = write_run(tmp_path / "a", 100.0)
    second = write_run(tmp_path / "b", 100.0)
    (second / "profiler_info_0.json").unlink()
    info = json.loads((first / "profiler_info_0.json").read_text())
    info["ms_profiler_info"] = {"rank_id": "1", "device_id": "1"}
    (second / "profiler_info_1.json").write_text(json.dumps(info))
    status, _, err = run("gate", str(first), str(second))
    assert status == 2 and "one whole run" in err


def test_damaged_files_of_a_run_are_told(site, run, tmp_path):
    """A verdict on half a file must not look as good as one on a whole one."""
    broken = write_run(tmp_path / "broken", 100.0)
    trace = broken / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
    trace.write_text(trace.read_text(encoding="utf-8")[:-40] + "\n13,abc", encoding="utf-8")
    _, out, _ = run("gate", *site[2][:4], str(broken))
    assert f"files of {broken} with problems" in out and "step_trace_time.csv" in out


def test_formats_go_to_files_and_summary(site, run, tmp_path, monkeypatch):
    """One call writes everything a pipeline shows."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    names = formats_of("decision")
    formats = [f"--format={name}:{tmp_path / name}" for name in names]
    status, out, _ = run("gate", *site[3], *formats, "--format", "text", "--lang", "zh")
    assert status == 1 and "未通过" in out
    assert json.loads((tmp_path / "json").read_text())["verdict"] == "fail"
    assert all((tmp_path / name).stat().st_size for name in names)
    assert summary.read_text(encoding="utf-8").startswith("before\n## ❌")


def test_baseline_commands(site, run, capsys, tmp_path):
    """add, list, show, promote, freeze: what each says and how it ends."""
    root, good, same, slow = site
    base = str(tmp_path / "b")
    assert run("baseline", "add", *same, "--baseline", f"{base}#next")[0] == 0
    assert main(["baseline", "list", str(root / "base")]) == 0
    assert "main: 5 runs, 1 kind" in capsys.readouterr().out
    status, out, _ = run("baseline", "show")
    assert status == 0 and "step time: 100\xa0ms" in out and "fails beyond 103\xa0ms" in out and "commit=1" in out
    status, out, _ = run("baseline", "show", "--format", "json")
    assert json.loads(out)["groups"][0]["metrics"][0]["level"] == pytest.approx(100_000, rel=1e-3)
    assert main(["baseline", "promote", f"{base}#next", f"{base}#main", "--reason", "new model"]) == 0
    assert main(["baseline", "freeze", f"{base}#main", "--reason", "release"]) == 0
    assert run("baseline", "add", good[0], "--baseline", base)[0] == 2
    capsys.readouterr()
    assert main(["baseline", "list", base, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["runs"], row["frozen"]) for row in rows] == [("main", 5, "release"), ("next", 5, None)]
    assert main(["baseline", "list", str(tmp_path / "none")]) == 2
    assert main(["baseline", "show", str(tmp_path / "none")]) == 2
    (tmp_path / "none").mkdir()
    assert main(["baseline", "list", str(tmp_path / "none")]) == 3
    assert main(["baseline", "promote", f"{base}#nothing", f"{base}#main", "--reason", "x"]) == 2
    assert run("gate", *slow, "--baseline", base)[0] == 1


def test_installed_command_ends_with_the_status(site):
    """A pipeline sees the process's status, not a return value."""
    root, _, same, slow = site
    call = lambda *runs: subprocess.run(  # noqa: E731
        [sys.executable, "-m", "advisor", "gate", *runs, "--config", str(root / "advisor.toml")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert call(*same).returncode == 0
    failed = call(*slow)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert call(slow[0]).returncode == 3
    assert call().returncode == 2
