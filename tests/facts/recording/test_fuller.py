"""A table that tells less computation than the kernels of its steps took is not believed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from advisor.config import load_config
from advisor.facts.device.course import Course
from advisor.facts.recording.fuller import fell_behind
from advisor.facts.step.times import StepTimes
from advisor.model import RUN, Confidence, Report, Role
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.cells import load, store
from benchmarks.simulator import Scenario, simulate, write_profile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_profile(simulate(Scenario(data=1, steps=5, layers=2)), tmp_path)
    return tmp_path


def _report(folder: Path) -> Report:
    return advise([folder], load_rules(config=load_config(None)))


def _rewrite(folder: Path, file: str, change: Callable[[list[list[str]]], None]) -> None:
    for path in folder.rglob(file):
        rows = load(path)
        change(rows)
        store(path, rows)


def _shrink_computing(rows: list[list[str]]) -> None:
    computing, free = rows[0].index("Computing"), rows[0].index("Free")
    for row in rows[1:]:
        lost = 0.55 * float(row[computing])
        row[computing], row[free] = str(float(row[computing]) - lost), str(float(row[free]) + lost)


def _drop_steps(rows: list[list[str]]) -> None:
    at = next(i for i, name in enumerate(rows[0]) if name.lower() == "step id")
    for row in rows:
        del row[at]


def _value(report: Report, name: str) -> float:
    (found,) = (fact.value for fact in report.facts if fact.name == name and fact.subject == RUN)
    assert isinstance(found, float)
    return found


def test_kernels_beat_a_table_that_lost_computation(folder: Path) -> None:
    """The idle time that such a table shows was computation: nobody is accused of it."""
    before = _report(folder)
    _rewrite(folder, "step_trace_time.csv", _shrink_computing)
    after = _report(folder)
    assert _value(after, "step.idle_share") == pytest.approx(_value(before, "step.idle_share"), abs=0.03)
    assert _value(after, "step.time_us") == pytest.approx(_value(before, "step.time_us"), rel=0.03)
    assert any("contradicts kernel_details.csv" in problem.problem for problem in after.problems)
    known = {finding.rule for finding in before.findings}
    accused = [f for f in after.findings if f.rule not in known and f.role is not Role.SYMPTOM]
    assert all(finding.confidence is Confidence.LOW for finding in accused)


def test_kernels_without_steps_contradict_no_table_of_several(folder: Path) -> None:
    """All kernels of a recording are more than one of its steps: that is no contradiction."""
    _rewrite(folder, "kernel_details.csv", _drop_steps)
    assert not [problem for problem in _report(folder).problems if "contradicts" in problem.problem]


def _windows_far_ahead(rows: list[list[str]]) -> None:
    """Windows of a host that launched all steps before the device had computed one: the last one sees a piece."""
    for row in rows[1:]:
        for name in rows[0][1:]:
            at = rows[0].index(name)
            row[at] = str(float(row[at]) / 10) if row is rows[-1] and name in ("Computing", "Free") else "0.000"


def test_windows_that_hold_nothing_are_no_steps(tmp_path: Path) -> None:
    """Where most rows of MindSpore's table hold no time, kernels tell the steps, and nobody is accused of what the last
    row shows; without kernels no step has a length."""
    write_profile(simulate(Scenario(framework="mindspore", data=1, steps=5, layers=2)), tmp_path)
    before = _report(tmp_path)
    _rewrite(tmp_path, "step_trace_time.csv", _windows_far_ahead)
    after = _report(tmp_path)
    for name in ("step.time_us", "step.computing_share", "step.idle_share"):
        assert _value(after, name) == pytest.approx(_value(before, name), rel=0.05, abs=0.02)
    assert {finding.rule for finding in after.findings} <= {finding.rule for finding in before.findings}
    assert sum("its rows are no steps" in problem.problem for problem in after.problems) == 1
    for path in tmp_path.rglob("kernel_details.csv"):
        path.unlink()
    assert _report(tmp_path).summary.step_time_us is None


@pytest.mark.parametrize(
    ("computing", "length", "framework", "behind"),
    [
        ([12, 44, 117, 116, 117], [12, 98, 238, 238, 237], "pytorch", True),
        ([117, 117, 117, 117, 117], [238, 238, 238, 238, 238], "mindspore", False),
        ([0.12, 0.44, 0.117, 0.116, 0.117], [0.12, 0.98, 0.238, 0.238, 0.237], "mindspore", False),
        ([117, 44, 117, 116, 117], [238, 98, 238, 238, 237], "mindspore", False),
        ([12, 44, 60, 60, 60], [12, 98, 120, 120, 120], "pytorch", False),
        ([0, 3, 3, 3, 3], [3.5] * 5, "mindspore", True),
        ([0, 3, 3, 3, 3], [3.5] * 5, "pytorch", False),
        ([0.117] * 5, [3.5] * 5, "mindspore", False),
    ],
    ids=[
        "queue filling",
        "as long",
        "another unit",
        "a hole",
        "none whole",
        "all queued",
        "rows of the device",
        "computing in another unit",
    ],
)
def test_rows_shorter_until_the_queue_is_full_are_no_damage(computing, length, framework, behind):
    """Windows of a host that runs ahead hold less at first and a whole step each later; other tables that tell less
    than the kernels contradict them."""
    names = tuple("12345")
    steps = StepTimes(names, np.array(length, float), {"computing": np.array(computing, float)}, "steps")
    full, none = np.full(5, 117.0), np.zeros(5)
    course = Course(names, full, none, none, none + 1, full + 3, np.full(5, 9), {})
    assert fell_behind(steps, course, framework) is behind


def test_one_slow_step_hides_no_host_that_ran_ahead():
    """Kernels tell steps of a table that holds less, also where one step takes longer with as many kernels."""
    names, computing = tuple("12345"), np.array([0.0, 3, 3, 3, 3])
    steps = StepTimes(names, np.full(5, 3.5), {"computing": computing}, "steps")
    full, slow = np.full(5, 117.0), np.array([0.0, 0, 200, 0, 0])
    course = Course(names, full, 0 * full, 0 * full, 0 * full + 1, full + slow, np.full(5, 9), {})
    assert fell_behind(steps, course, "mindspore")
    assert not fell_behind(steps, replace(course, kernels=np.array([9, 9, 30, 9, 9])), "mindspore")
