"""Timelines that hold nothing of the device but its own tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, measure
from advisor.sources.streams.hardware_lanes import devices_in, hardware_tasks

PID = 7
WAITS = ("EVENT_WAIT", "EVENT_WAIT_SQE", "DAVID_EVENT_WAIT", "Notify_Wait", "Iteration Refresh 3")
"""How versions call waiting, and what they draw over it."""


def _write(path: Path, overlap: bool = False, apart: str = "") -> Path:
    """Five rounds of 600 us of kernels, 200 us of an AllReduce and 200 us of nothing but waiting for events."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": PID, "args": {"name": "Ascend Hardware"}}
    ]
    for number in range(5):
        at = 1_000_000 + 1000 * number
        for name, offset, length in (("MatMul_1", 0, 400), ("Add", 400, 200), ("hcom_allReduce__1_0_1", 600, 200),
                                     (WAITS[number], 800, 200)):  # fmt: skip
            pid = 5 if apart and name.startswith("hcom") else PID
            events.append({"ph": "X", "name": name, "pid": pid, "tid": 3, "ts": f"{at + offset}.000", "dur": length})
    if apart:  # beside it the tasks that carry it out, which wait most of the time
        events.append({"ph": "M", "name": "process_name", "pid": 5, "args": {"name": apart}})
        events.append({"ph": "X", "name": "Notify_Wait", "pid": 5, "tid": 4, "ts": "1000000.000", "dur": 4800})
    if overlap:
        events.append({"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "Overlap Analysis"}})
        events.append({"ph": "X", "name": "Computing", "pid": 9, "tid": 1, "ts": "1000000.000", "dur": 4800})
    path.write_text(json.dumps(events), encoding="utf-8")
    return path


def test_devices_are_not_sought_behind_a_hole(tmp_path: Path) -> None:
    """A copy that broke off leaves gigabytes of zeros, which take minutes to look through and hold nothing."""
    path = _write(tmp_path / "trace_view.json")
    assert devices_in(path) == {PID}
    other = _write(tmp_path / "other.json").read_text(encoding="utf-8").replace(f'"pid": {PID}', '"pid": 3')
    with path.open("r+b") as file:
        file.seek(1 << 26)
        file.write(other.encode())
    assert devices_in(path) == {PID}


def test_a_task_that_lasts_for_ever_is_none(tmp_path: Path) -> None:
    """No whole number of nanoseconds is as long: its end would lie before all others' begin."""
    path = _write(tmp_path / "trace_view.json")
    whole = hardware_tasks([path])
    events = json.loads(path.read_text(encoding="utf-8"))
    events.append({"ph": "X", "name": "Mul_9", "pid": PID, "tid": 3, "ts": "1000100.000", "dur": 1e300})
    path.write_text(json.dumps(events), encoding="utf-8")
    assert hardware_tasks([path]).end.tolist() == whole.end.tolist()


@pytest.mark.parametrize("apart", ["", "HCCL", "Communication"])
def test_tasks_alone_tell_where_the_time_goes(tmp_path: Path, apart: str) -> None:
    """Kernels compute, collectives communicate, also those drawn apart from the kernels; waiting for an event is
    neither."""
    _write(tmp_path / "trace_view.json", apart=apart)
    names = ("step.computing_share", "step.exposed_communication_share", "step.idle_share")
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    shares = [facts.number(name, RUN) for name in names]
    assert shares == pytest.approx([3000 / 4800, 1000 / 4800, 800 / 4800])


def test_the_profilers_own_sums_come_first(tmp_path: Path) -> None:
    """Where Overlap Analysis is there, it tells when the device computed."""
    _write(tmp_path / "trace_view.json", overlap=True)
    facts = measure([tmp_path], ("step.computing_share",), Options(jobs=1)).facts
    assert facts.number("step.computing_share", RUN) == pytest.approx(1.0)


def test_a_damaged_file_gives_what_it_has(tmp_path: Path) -> None:
    """A timeline that ends in the middle keeps the tasks before the cut, and an empty one has none."""
    path = _write(tmp_path / "trace_view.json")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.rindex("MatMul_1")], encoding="utf-8")
    computing, _ = hardware_tasks([path]).lanes
    assert computing[0].size == 4
    path.write_text("[]", encoding="utf-8")
    assert not hardware_tasks([path]).lanes[0][0].size
