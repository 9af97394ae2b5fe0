"""A profile that is still being written is judged with a word about it, and is never healthy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Rank
from benchmarks.simulator import Scenario, simulate, write_profile


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    write_profile(simulate(Scenario(data=2, steps=4, layers=2)), folder)
    return folder


def _report(folder: Path) -> Report:
    return advise([folder], load_rules(config=load_config(None)), Options(jobs=1))


def _replace(path: Path) -> None:
    """Another file of the same size and time, as a synchronisation puts it there."""
    state = path.stat()
    new = path.with_name("new")
    new.write_bytes(path.read_bytes())
    os.utime(new, ns=(state.st_atime_ns, state.st_mtime_ns))
    new.replace(path)


def _append(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"\n")


@pytest.mark.parametrize("change", [_replace, _append, Path.unlink], ids=["replaced", "longer", "gone"])
def test_a_file_that_changes_is_told_and_nothing_healthy(
    change: Callable[[Path], None], healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens to it while its rank is read, however quickly it was read itself."""
    shutil.copytree(healthy, tmp_path / "run")
    assert _report(tmp_path / "run").summary.direction == "healthy"
    victim = sorted((tmp_path / "run").rglob("step_trace_time.csv"))[0]
    read, waiting = Rank.read, [victim]

    def read_while_writing(rank: Rank, *given: object) -> object:
        found = read(rank, *given)  # type: ignore[arg-type]
        if waiting:
            change(waiting.pop())
        return found

    monkeypatch.setattr(Rank, "read", read_while_writing)
    report = _report(tmp_path / "run")
    told = [problem for problem in report.problems if "changed while it was read" in problem.problem]
    assert [Path(problem.file).name for problem in told] == ["step_trace_time.csv"]
    assert report.summary.direction != "healthy"


def test_files_that_come_while_a_rank_is_read_are_told(
    healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was not there yet when the folder was listed is missing in the report, which says so."""
    shutil.copytree(healthy, tmp_path / "run")
    late = sorted((tmp_path / "run").rglob("api_statistic.csv"))[0]
    content = late.read_bytes()
    late.unlink()
    read = Rank.read

    def read_while_writing(rank: Rank, *given: object) -> object:
        if not late.exists():
            late.write_bytes(content)
        return read(rank, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Rank, "read", read_while_writing)
    assert any("gained or lost files" in problem.problem for problem in _report(tmp_path / "run").problems)
