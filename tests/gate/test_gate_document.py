"""The snippets of docs/gate.md, run as they stand there with a training that takes no time."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from advisor.config import parse_config
from benchmarks.gate import DOCUMENT
from tests.helpers.junit import assert_fits_jenkins
from tests.helpers.profiles import policy, write_run

ROOT = Path(__file__).resolve().parents[2]
TEXT = DOCUMENT.read_text(encoding="utf-8")
PROFILE = """#!/bin/sh
mkdir -p "$1" && cp -r "../template/$(cat step_ms)-$(basename "$1")_ascend_ms" "$1"
"""


def _block(language: str, marker: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)
    return next(block for block in blocks if marker in block)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout as the snippets expect it: profile.sh, gate.sh, advisor.toml, and the branch of baselines."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    work, origin = tmp_path / "work", tmp_path / "origin.git"
    work.mkdir()
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "gate")
        monkeypatch.setenv(f"{name}_EMAIL", "gate@localhost")
    monkeypatch.setenv("GITHUB_SHA", "abc123")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "advisor"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m advisor "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{Path(shutil.which('sh') or '/bin/sh').parent}:/usr/bin:/bin")
    profile = work / "profile.sh"
    profile.write_text(PROFILE, encoding="utf-8")
    for step in (100, 110):
        for number, name in enumerate(("1", "2", "3", "4", "5", "again")):
            write_run(tmp_path / "template" / f"{step}-{name}", step + number / 10)
    profile.chmod(0o755)
    (work / "gate.sh").write_text(_block("sh", "gate.sh"), encoding="utf-8")
    (work / "advisor.toml").write_text('extend = []\n[gate]\nbaseline = "baselines#main"\n', encoding="utf-8")
    (work / "step_ms").write_text("100", encoding="utf-8")
    seed = tmp_path / "seed"
    good = [str(write_run(tmp_path / f"good{i}", 100.03 + i / 10)) for i in range(5)]
    _sh(f"git init -q --bare {origin} && git init -q {seed} && git -C {seed} checkout -q -b perf-baselines", tmp_path)
    _sh(f"advisor baseline add {' '.join(good)} --baseline {seed}", work)
    _sh(f"git add . && git commit -qm seed && git push -q {origin} perf-baselines", seed)
    _sh(f"git init -q . && git remote add origin {origin}", work)
    return work


def _sh(script: str, folder: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def _gitlab() -> list[str]:
    return list(yaml.safe_load(_block("yaml", "gitlab-ci"))["performance"]["script"])


def test_gitlab_script_passes_fails_and_confirms(repository):
    """The job's lines as GitLab runs them, one after the other, stopping at the first that fails."""
    fetch, gate = _gitlab()
    _sh(fetch, repository)
    good = _sh(gate, repository)
    assert good.stdout.startswith("Passed") and not (repository / "again").exists()
    shutil.rmtree(repository / "runs")
    (repository / "step_ms").write_text("110", encoding="utf-8")
    bad = _sh(gate, repository, check=False)
    assert bad.returncode == 1 and "1 confirming run" in bad.stdout
    job = yaml.safe_load(_block("yaml", "gitlab-ci"))["performance"]
    for name in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (repository / name).stat().st_size, name
    assert "allow_failure" not in job, "with --record, 3 may stay red"


def test_github_steps_gate_comment_and_keep_the_runs(repository):
    """The steps' shell lines with their real arguments; the branch of baselines has the new runs afterwards."""
    steps = yaml.safe_load(_block("yaml", "runs-on"))["jobs"]["gate"]["steps"]
    gate, comment, keep = (step["run"] for step in steps if "run" in step)
    checkout = next(step["with"] for step in steps if step.get("with", {}).get("ref"))
    _sh(f'git clone -q -b {checkout["ref"]} "$(git remote get-url origin)" {checkout["path"]}', repository)
    good = _sh(gate, repository)
    assert "::notice title=Performance gate::Passed" in good.stdout
    assert (repository.parent / "summary.md").read_text(encoding="utf-8").count("## ✅") == 1
    upload = next(step["with"] for step in steps if "upload-sarif" in step.get("uses", ""))
    assert json.loads((repository / upload["sarif_file"]).read_text())["version"] == "2.1.0"
    tools = repository.parent / "bin"
    fake = '#!/bin/sh\ncase "$*" in *--edit-last*) exit 1;; esac\necho "$*" > said; cp gate.md posted.md\n'
    (tools / "gh").write_text(fake)
    (tools / "gh").chmod(0o755)
    _sh(f"NUMBER=12; {comment}", repository)
    assert (repository / "said").read_text().startswith("pr comment 12 --body-file gate.md")
    assert (repository / "posted.md").read_text(encoding="utf-8").startswith("## ✅")
    _sh(keep, repository)
    _sh('git clone -q -b perf-baselines "$(git remote get-url origin)" check', repository)
    assert len(list((repository / "check" / "main").glob("*.json"))) == 10
    (repository / "advisor.toml").write_text('extend = []\n[gate]\nmin_runs = 9\nbaseline = "baselines#mian"\n')
    shutil.rmtree(repository / "runs")
    first = _sh(gate, repository)
    assert "No verdict yet: 5 of the 9 runs needed are recorded" in first.stdout
    assert "::notice title=Performance gate::No verdict yet" in first.stdout


def test_jenkins_scripts_run(repository):
    """The shell lines of the Jenkinsfile and the status it decides by."""
    text = _block("groovy", "pipeline")
    fetch = re.search(r"sh '([^']+)'", text)
    gate = re.search(r"script: '([^']+)'", text)
    assert fetch and gate and "status == 3" in text
    _sh(fetch[1], repository)
    assert _sh(gate[1], repository).returncode == 0
    assert_fits_jenkins((repository / "gate.xml").read_text(encoding="utf-8"))
    assert text.count("{") == text.count("}")


def test_policy_example_is_valid():
    """People copy it."""
    tomllib = pytest.importorskip("tomllib")
    table = tomllib.loads(_block("toml", "[gate]"))
    config = parse_config(table)
    judging = policy(**config.gate).for_run({"model": "llama-7b", "world_size": "64", "metadata.branch": "main"})
    assert judging.min_runs == 3 and judging.fail_on is not None and judging.fail_on.value == "medium"
    assert {metric.name for metric in judging.metrics if metric.gates} >= {"step.time_us", "timeline.core_mhz"}


def test_numbers_in_the_text_are_the_defaults():
    """The document names the limits; they are set elsewhere."""
    from advisor.gate.metrics import defaults

    numbers = defaults()["statistics"]
    plain = " ".join(TEXT.split())
    assert f"the relative limit ({100 * numbers['relative']:.0f} %)" in plain
    assert f"and {numbers['sigmas']} robust standard deviations" in plain
    assert f"newest {numbers['window']} runs" in plain and numbers["recent"] == 10
    assert (numbers["min_runs"], numbers["dissent"], numbers["agreement"], numbers["confirmation"]) == (
        5,
        0.2,
        0.75,
        1.0,
    )
