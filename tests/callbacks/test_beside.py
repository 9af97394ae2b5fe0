"""Beside a training: a watcher in a process of its own, which ends after the training."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from advisor.callbacks.beside import watch_beside

ROOT = Path(__file__).parents[2]
TRAINING = """
import shutil, sys, time
from advisor.callbacks.beside import watch_beside
process = watch_beside(sys.argv[1])
started = time.monotonic()
shutil.copytree(sys.argv[2], sys.argv[1] + "/run")
print("pid", process.pid, "after", time.monotonic() - started)
"""


def test_it_judges_the_last_profile_and_ends_after_the_training(tmp_path):
    """The script ends at once; its last profile is judged all the same, and no process stays."""
    folder = tmp_path / "profiles"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", TRAINING, str(folder), str(ROOT / "examples" / "slow-rank-pipeline")]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=60, check=True)
    pid = int(done.stdout.split("pid ")[1].split()[0])
    log, end = folder / "advisor-reports" / "runs.jsonl", time.monotonic() + 120
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.5)
    [line] = [json.loads(text) for text in log.read_text().splitlines()]
    assert line["direction"] == "computation"
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.5)
    assert not Path(f"/proc/{pid}").exists(), "the watcher outlived the training"
    assert "51.1\xa0ms" in (folder / "advisor-reports" / "watch.log").read_text()


def test_other_ranks_start_none(tmp_path, monkeypatch):
    """Eight ranks, one watcher."""
    monkeypatch.setenv("RANK_ID", "3")
    assert watch_beside(tmp_path) is None and not list(tmp_path.iterdir())


def test_a_failure_is_told_and_the_training_goes_on(tmp_path, monkeypatch):
    """A folder that cannot be made, a Python that cannot be started."""
    (tmp_path / "file").write_text("")
    told: list[str] = []
    assert watch_beside(tmp_path / "file" / "below", tell=told.append) is None
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert watch_beside(tmp_path / "new", tell=told.append) is None
    assert len(told) == 2 and all("not watched" in each for each in told)
    shutil.rmtree(tmp_path / "new")
