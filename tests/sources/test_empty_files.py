"""A file without a byte, as an interrupted copy leaves it, tells what an absent one tells."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL
from judged import findings_of, report_on

from benchmarks.simulator import Fault, simulate, write_profile

FILES = ("step_trace_time.csv", "kernel_details.csv", "communication.json", "op_statistic.csv", "trace_view.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_host", 1, 1.0),))), folder, trace=True)
    return folder


@pytest.mark.parametrize("name", FILES)
def test_an_empty_file_is_an_absent_one(tmp_path: Path, whole: Path, name: str) -> None:
    """Of every rank, with what the rest of the profile says of it."""
    absent, empty = (Path(shutil.copytree(whole, tmp_path / each)) for each in ("absent", "empty"))
    for path in absent.rglob(name):
        path.unlink()
    for path in empty.rglob(name):
        path.write_bytes(b"")
    report = report_on(empty)
    assert findings_of(report) == findings_of(report_on(absent))
    assert any(problem.problem == "is empty" and name in problem.file for problem in report.problems)
