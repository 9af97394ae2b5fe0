"""Time between iterations of msprof's older timelines: a wait for data is a part of the step, nobody's time is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.recording.between import host_works
from advisor.facts.recording.windows import follows
from advisor.model import RUN, Role
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from advisor.sources.streams.trace import Trace

ORIGIN = 56_635_864_652.5


def _write(folder: Path, length: float, gap: float, late: float, iterations: int = 6) -> Path:
    """Iterations of this length (us) with this gap between them; the data of each come `late` us after it starts."""
    timeline = folder / "PROF_000001_A" / "device_0" / "timeline"
    timeline.mkdir(parents=True)
    for number in range(1, iterations + 1):
        start = ORIGIN + (number - 1) * (length + gap)
        end = start + length
        task = {"name": "Default/Add-op1", "ph": "X", "ts": start + 5, "dur": length - 10, "pid": 1, "tid": 1,
                "args": {"Task Type": "AI_CORE", "Stream Id": 1}}  # fmt: skip
        marks = [
            {"name": f"Iteration {number}", "cat": "Iteration Time", "ph": "X", "ts": start, "dur": length, "pid": 1,
             "tid": 1, "args": {"Iteration ID": number}},
            {"name": "d", "cat": "Data_aug Bound", "ph": "s", "ts": end, "id": f"d {number}",
             "args": {"Iteration ID": number}},
            {"name": "d", "cat": "Data_aug Bound", "ph": "t", "ts": start + late, "id": f"d {number - 1}", "args": {}},
        ]  # fmt: skip
        (timeline / f"task_time_0_2_{number}.json").write_text(json.dumps([task]))
        (timeline / f"step_trace_0_2_{number}.json").write_text(json.dumps(marks))
    return folder


def _facts(folder: Path) -> dict[str, float | None]:
    names = ["step.time_us", "step.idle_share", "step.between_us", "step.period_us", "step.data_bound_us"]
    facts = measure([folder], names, Options(jobs=1)).facts
    return {name: facts.number(name, RUN) for name in names}


@settings(max_examples=4, deadline=None)
@given(length=st.integers(2_000, 50_000), gap=st.integers(2_000, 50_000))
def test_a_step_lasts_from_start_to_start_where_iterations_wait_for_their_data(tmp_path_factory, length, gap) -> None:
    """What an iteration waits for its data is idle time of the step, whatever the two lengths are."""
    found = _facts(_write(tmp_path_factory.mktemp("awaited"), length, gap, late=0))
    assert found["step.time_us"] == pytest.approx(length + gap, rel=0.05)
    assert found["step.idle_share"] == pytest.approx(gap / (length + gap), rel=0.05)
    assert found["step.data_bound_us"] == pytest.approx(gap, rel=0.01)
    assert found["step.between_us"] is None


@settings(max_examples=4, deadline=None)
@given(length=st.integers(2_000, 50_000), gap=st.integers(2_000, 50_000), late=st.sampled_from([-0.3, 0.3]))
def test_a_pause_that_does_not_end_with_the_data_is_told_beside_the_step(tmp_path_factory, length, gap, late) -> None:
    """Data that come before or after an iteration starts own no time between; it is told, and is in no step."""
    found = _facts(_write(tmp_path_factory.mktemp("nobodys"), length, gap, late=late * gap))
    assert found["step.time_us"] == pytest.approx(length, rel=0.05)
    assert found["step.between_us"] == pytest.approx(gap, rel=0.01)
    assert found["step.period_us"] == pytest.approx(length + gap, rel=0.01)
    assert found["step.data_bound_us"] is None


def test_marks_that_name_the_wait_make_it_a_cause_with_a_gain(tmp_path: Path) -> None:
    """Half of each step waits for data, and the marks say so: a cause with a gain, as sure as part of the files is."""
    report = advise([_write(tmp_path, 20_000, 20_000, late=0)], load_rules(), Options(jobs=1))
    (cause,) = [f for f in report.findings if f.role == Role.ROOT_CAUSE]
    assert (cause.rule, cause.confidence.value) == ("DATA019", "low")
    assert cause.saving is not None and cause.saving.us == pytest.approx(20_000, rel=0.1)
    assert "not known" not in report.summary.headline.en


@pytest.mark.parametrize(("gap", "severity"), [(100_000, "critical"), (4_000, "medium"), (1_000, None)])
def test_a_pause_that_nobody_owns_weighs_what_it_takes(tmp_path: Path, gap: int, severity: str | None) -> None:
    """Five sixths of the recorded time without an iteration are in the headline, and the run is not healthy; who takes
    them is not known, so nobody is a root cause for it."""
    report = advise([_write(tmp_path, 20_000, gap, late=0.3 * gap)], load_rules(), Options(jobs=1))
    told = [f for f in report.findings if f.rule == "SCHED021"]
    assert [f.severity.value for f in told] == ([severity] if severity else [])
    assert all(f.role == Role.CONTRIBUTING for f in told)
    assert ("no iteration runs" in report.summary.headline.en) is bool(severity)
    assert not severity or report.summary.direction == "scheduling"


@pytest.mark.parametrize("damage", [float("inf"), "1e999999999", None, "x", -1e300])
def test_a_damaged_mark_is_no_traceback(tmp_path: Path, damage: object) -> None:
    """Instants that cannot be are left out, and the other iterations are judged."""
    folder = _write(tmp_path, 20_000, 20_000, late=0)
    path = folder / "PROF_000001_A" / "device_0" / "timeline" / "step_trace_0_2_3.json"
    marks = json.loads(path.read_text())
    for mark in marks:
        mark["ts"] = mark["dur"] = damage
    path.write_text(json.dumps(marks))
    assert _facts(folder)["step.time_us"] == pytest.approx(40_000, rel=0.05)


def test_tasks_on_planes_tell_of_collectives_whose_files_are_absent(tmp_path: Path) -> None:
    """A device that waits for notifications and copies on the same stream communicates, with or without hccl_*.json:
    that time is not idle."""
    timeline = tmp_path / "PROF_000001_A" / "device_0" / "timeline"
    timeline.mkdir(parents=True)
    for number in range(1, 5):
        start = ORIGIN + number * 10_000
        tasks = [("AI_CORE", 1, 0, 2_000), ("NOTIFY_WAIT", 9, 2_010, 1_000), ("MEMCPY_ASYNC", 9, 3_050, 4_900),
                 ("MEMCPY_ASYNC", 8, 8_500, 400), ("AI_CORE", 1, 8_000, 2_000)]  # fmt: skip
        tasks.append(("NOTIFY_WAIT", 9, 8_200, math.inf))  # damage is no time
        events = [
            {"name": "Default/Add-op1", "ph": "X", "ts": start + at, "dur": us, "pid": 1, "tid": stream,
             "args": {"Task Type": kind, "Stream Id": stream}}
            for kind, stream, at, us in tasks
        ]  # fmt: skip
        (timeline / f"task_time_0_2_{number}.json").write_text(json.dumps(events))
    facts = measure([tmp_path], ["step.idle_share", "step.exposed_communication_share"], Options(jobs=1)).facts
    assert facts.number("step.exposed_communication_share", RUN) == pytest.approx(0.594, abs=0.001)
    assert facts.number("step.idle_share", RUN) == pytest.approx(0.006, abs=0.001)


@pytest.mark.parametrize(
    ("names", "next_to"),
    [
        (("11", "12", "14"), [True, False]),
        (("100", "110", "120", "140"), [True, True, False]),
        (("100", "110"), [False]),
        (("first", "second", "third"), [True, True]),
    ],
)
def test_steps_follow_one_another_as_they_are_counted(names, next_to):
    """Every tenth step bears a number where a loop marks them so; only what is farther apart than usual is missing."""
    assert follows(names) == next_to


def test_a_host_beside_kernels_without_starts_is_no_program() -> None:
    """Where every kernel lost its start there is no pause in which the host could have worked."""
    assert not host_works(cast(Trace, None), np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize(("wait", "near"), [(4.4, True), (4.5, False)])
def test_a_wait_as_long_as_the_steps_without_a_number_is_no_wait(wait, near):
    """Steps counted in tens follow one another; where nine steps would fit between two, they may have been left out."""
    starts = [0.0, 1.0 + wait, 2 * (1.0 + wait)]
    assert follows(("10", "20", "30"), starts, [start + 1.0 for start in starts]) == [near, near]
