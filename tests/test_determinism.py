"""The same input gives the same report, byte for byte, whatever the jobs, the order of files and the hash seed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli.main import main
from advisor.render import FORMATS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four simulated ranks, one slow: findings, symptoms, ties between the others."""
    folder = tmp_path_factory.mktemp("profile") / "run"
    folder.mkdir()
    script = (
        "from benchmarks.simulator import *; from pathlib import Path; import sys;"
        "write_profile(simulate(Scenario(data=4, steps=4, layers=2, faults=(Fault('slow_compute', 2, 0.5),))),"
        " Path(sys.argv[1]), trace=True)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, cwd=ROOT)
    return folder


def reports(profile: Path, out: Path, *options: str) -> dict[str, bytes]:
    out.mkdir(exist_ok=True)
    arguments = [item for name in FORMATS for item in ("--format", f"{name}:{out / name}")]
    assert main(["advise", str(profile), "-q", *arguments, *options]) == 0
    return {name: (out / name).read_bytes() for name in FORMATS}


def test_twice_is_the_same(profile: Path, tmp_path: Path) -> None:
    """Nothing of the moment is in a report: no time, no random number, no address."""
    assert reports(profile, tmp_path / "a") == reports(profile, tmp_path / "b")


def test_jobs_change_nothing(profile: Path, tmp_path: Path) -> None:
    """Ranks measured in several processes give the report of one."""
    assert reports(profile, tmp_path / "a", "--jobs", "1") == reports(profile, tmp_path / "b", "--jobs", "3")


def test_the_order_of_files_changes_nothing(profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders list their entries in any order, and a copy lists them in another."""
    before = reports(profile, tmp_path / "a")
    scan, walk = os.scandir, os.listdir

    class Reversed:
        def __init__(self, path: object = ".") -> None:
            with scan(path) as entries:  # type: ignore[call-overload]
                self._entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

        def __enter__(self) -> Reversed:
            return self

        def __exit__(self, *given: object) -> None:
            return None

        def __iter__(self):  # type: ignore[no-untyped-def]
            return self

        def __next__(self):  # type: ignore[no-untyped-def]
            return next(self._entries)

        def close(self) -> None:
            return None

    monkeypatch.setattr(os, "scandir", Reversed)
    monkeypatch.setattr(os, "listdir", lambda path=".": sorted(walk(path), reverse=True))
    assert reports(profile, tmp_path / "b") == before


def test_ranks_named_one_by_one_in_any_order(profile: Path, tmp_path: Path) -> None:
    """`advise a b` and `advise b a` are the same profile; only the path they are named by differs."""
    folders = sorted(map(str, profile.iterdir()))
    texts = []
    for number, order in enumerate((folders, folders[::-1])):
        out = tmp_path / f"{number}.json"
        assert main(["advise", *order, "-q", "--format", f"json:{out}"]) == 0
        texts.append(out.read_text().replace(", ".join(order), "PROFILE"))
    assert texts[0] == texts[1]


def test_place_and_hash_seed_change_nothing(profile: Path, tmp_path: Path) -> None:
    """Python orders sets differently in every process, and profiles are moved about: neither shows."""
    shutil.copytree(profile, tmp_path / "elsewhere" / "run")
    texts = []
    for seed, folder in (("1", profile), ("2", tmp_path / "elsewhere" / "run")):
        out = tmp_path / f"{seed}.json"
        command = [sys.executable, "-m", "advisor", "advise", str(folder), "-q", "--format", f"json:{out}"]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed})
        texts.append(out.read_text().replace(str(folder), "PROFILE"))
    assert texts[0] == texts[1]


def test_both_engines_reach_the_same_verdicts(profile: Path, tmp_path: Path) -> None:
    """Where durable-rules cannot be installed the verdicts are the same; only the engine's name differs."""
    pytest.importorskip("durable")
    texts = []
    for engine in ("durable", "python"):
        out = tmp_path / engine
        assert main(["advise", str(profile), "-q", "--engine", engine, "--format", f"markdown:{out}"]) == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1]
