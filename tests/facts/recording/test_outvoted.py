"""A step table against which kernels and collectives agree is outvoted; by kernels alone, or cut ones, it is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from advisor.config import load_config
from advisor.facts.device.course import Course
from advisor.facts.recording.fuller import outvoted
from advisor.facts.step.times import StepTimes
from advisor.model import RUN, Confidence, Report, Role, Severity
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.cells import load, store
from benchmarks.simulator import Scenario, simulate, write_profile

STEP_TABLE, KERNELS, COLLECTIVES = "step_trace_time.csv", "kernel_details.csv", "communication.json"
EXPOSED = "Communication(Not Overlapped)"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outvoted")
    write_profile(simulate(Scenario(data=2, steps=5, layers=2)), folder)
    return folder


def _report(folder: Path) -> Report:
    return advise([folder], load_rules(config=load_config(None)))


def _step_us(report: Report) -> float:
    (found,) = (fact.value for fact in report.facts if fact.name == "step.time_us" and fact.subject == RUN)
    assert isinstance(found, float)
    return found


def _change(folder: Path, file: str, change: Callable[[list[list[str]]], None]) -> None:
    for path in folder.rglob(file):
        rows = load(path)
        change(rows)
        store(path, rows)


def _of_a_run_that_communicates(us: float) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        column = rows[0].index(EXPOSED)
        for row in rows[1:]:
            row[column] = str(float(row[column]) + us)

    return change


def _of_a_run_with_less(rows: list[list[str]]) -> None:
    for name in ("Computing", EXPOSED, "Overlapped", "Communication", "Free"):
        column = rows[0].index(name)
        for row in rows[1:]:
            row[column] = str(float(row[column]) / 2.5)


def _heavy(report: Report) -> list[str]:
    return [
        finding.verdict for finding in report.findings
        if finding.role is Role.ROOT_CAUSE and finding.severity.rank >= Severity.MEDIUM.rank
    ]  # fmt: skip


@pytest.mark.parametrize("factor", [0.7, 1.5, 4.0])
def test_two_that_agree_outvote_the_step_table(factor: float, healthy: Path, tmp_path: Path) -> None:
    """A table of another run makes neither the step longer nor a cause of what only it tells."""
    folder = tmp_path / "profile"
    shutil.copytree(healthy, folder)
    before = _report(healthy)
    _change(folder, STEP_TABLE, _of_a_run_that_communicates(factor * _step_us(before)))
    after = _report(folder)
    assert _step_us(after) == pytest.approx(_step_us(before), rel=0.05)
    assert _heavy(after) == _heavy(before)
    assert any("theirs counts" in problem.problem for problem in after.problems)
    assert after.summary.direction in (before.summary.direction, "undetermined")


def test_a_table_of_shorter_steps_is_outvoted_as_well(healthy: Path, tmp_path: Path) -> None:
    """Steps in which their kernels do not fit are another run's, too."""
    folder = tmp_path / "profile"
    shutil.copytree(healthy, folder)
    _change(folder, STEP_TABLE, _of_a_run_with_less)
    assert _step_us(_report(folder)) == pytest.approx(_step_us(_report(healthy)), rel=0.05)


def test_one_witness_alone_outvotes_nobody(healthy: Path, tmp_path: Path) -> None:
    """Of two that disagree nobody knows which is wrong: both are doubted, and nothing certain follows."""
    folder = tmp_path / "profile"
    shutil.copytree(healthy, folder)
    wrong = 1.5 * _step_us(_report(healthy))
    _change(folder, STEP_TABLE, _of_a_run_that_communicates(wrong))
    for path in folder.rglob(COLLECTIVES):
        path.unlink()
    after = _report(folder)
    assert _step_us(after) > wrong
    assert all(f.confidence is Confidence.LOW for f in after.findings if f.verdict == "exposed-communication")


def test_cut_kernels_outvote_nobody(healthy: Path, tmp_path: Path) -> None:
    """Kernels of which the profiler counts more cannot tell how long a step is."""
    folder = tmp_path / "profile"
    shutil.copytree(healthy, folder)
    wrong = 1.5 * _step_us(_report(healthy))
    _change(folder, STEP_TABLE, _of_a_run_that_communicates(wrong))

    def cut(rows: list[list[str]]) -> None:
        del rows[-len(rows) // 4 :]

    _change(folder, KERNELS, cut)
    assert not any("theirs counts" in problem.problem for problem in _report(folder).problems)


def _witnesses(told: float, kernels: float, collectives: float, steps: int = 5) -> tuple[StepTimes, Course, object]:
    names = tuple(map(str, range(steps)))
    zeros, ones = np.zeros(steps), np.ones(steps)
    lead = np.r_[np.nan, np.zeros(steps - 1)]
    course = Course(names, kernels * ones, zeros, lead, zeros, zeros, np.full(steps, 9), {})
    starts = (1e9 + collectives * 1000 * np.arange(steps)).astype(np.int64)
    exchange = SimpleNamespace(steps=names, step=np.arange(steps), start_ns=starts)
    return StepTimes(names, told * ones, {}, "steps"), course, exchange


@pytest.mark.parametrize(
    ("told", "kernels", "collectives", "expected"),
    [
        (66, 41, 41, True),
        (66, 41, 44, True),
        (20, 41, 41, True),
        (60, 41, 41, False),  # not clearly longer
        (66, 41, 66, False),  # the collectives agree with the table
        (66, 20, 41, False),  # all three differ
    ],
)
def test_only_witnesses_that_agree_outvote(told: float, kernels: float, collectives: float, expected: bool) -> None:
    """Whoever agrees with the table, or with nobody, is no majority against it."""
    found = outvoted(*_witnesses(told, kernels, collectives))  # type: ignore[arg-type]
    assert (found is not None) == expected
