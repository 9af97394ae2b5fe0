"""msprof's older timelines of a device, one file an iteration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.sources.older.device_timelines import references, timeline_frames
from advisor.sources.readers import read_table
from advisor.sources.reference import TableRef


def test_events_that_stand_there_twice_ran_once(tmp_path: Path) -> None:
    """A file joined with itself: each task counts once, and that is told; two tasks of one name are two."""
    events = [
        {"ph": "X", "name": "MatMul", "pid": 1, "tid": 2, "ts": at, "dur": 10.0, "args": {"Task Type": "AI_CORE"}}
        for at in (100.0, 120.0)
    ]
    path = tmp_path / "task_time_0_2_1.json"
    path.write_text(json.dumps(events + events))
    told: list[str] = []
    frames = list(timeline_frames(path, lambda place, problem, *_: told.append(problem)))
    assert sum(len(frame) for frame in frames) == 2
    assert told == ["2 events stand there more than once; each was used once"]


def test_a_list_in_place_of_a_name_costs_that_event_alone(tmp_path: Path) -> None:
    """A damaged name of one transfer leaves the collective that it is a part of, and those of all other files."""
    plane = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "Communication Kernel"}}
    whole = {"ph": "X", "name": "Default/AllReduce-op5_0", "pid": 1, "tid": 2, "ts": 100.0, "dur": 50.0}
    moves = [{"ph": "X", "name": name, "pid": 1, "tid": 3, "ts": 120.0, "dur": 20.0} for name in (["Memcpy"], "Memcpy")]
    path = tmp_path / "hccl_0_2_1.json"
    path.write_text(json.dumps([plane, whole, *moves]))
    frame = read_table(references([path])["collectives"], None, lambda *_: None)
    assert frame is not None and frame["wait_us"].tolist() == [20.0]


@pytest.mark.parametrize("lasts", [10**40, 1e300, 9e15, "nan", None, []])
def test_an_iteration_that_lasts_for_ever_costs_itself_alone(tmp_path: Path, lasts: object) -> None:
    """No end in nanoseconds is as late; the others are steps, and the loss is told."""
    events = [
        {"ph": "X", "cat": "Iteration Time", "name": "i", "ts": 80.0, "dur": dur, "args": {"Iteration ID": number}}
        for number, dur in ((1, 90.0), (2, lasts))
    ]
    path = tmp_path / "step_trace_0_2_1.json"
    path.write_text(json.dumps(events))
    told: list[str] = []
    reference = TableRef("iterations", (path,), "timelines.iterations")
    frame = read_table(reference, None, lambda place, problem, *_: told.append(problem))
    assert frame is not None and frame["iteration"].tolist() == ["1"]
    assert told == ["1 of its 2 events have no usable duration and were left out"]
