"""trace_view.json of one rank: steps, host launches, kernels, collectives, overlap analysis and their connections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from advisor.basics.intervals import complement, subtract, union
from benchmarks.simulator.busy import device_intervals
from benchmarks.simulator.physics import Simulation

_EPOCH_US = 1_700_000_000_000_000
_CANN, _HARDWARE, _HCCL, _OVERLAP = 255, 448, 512, 800


def write_trace(run: Simulation, rank: int, output: Path) -> None:
    """One JSON array on one line, timestamps as text, as msprof and the framework write it."""
    pytorch = run.scenario.framework == "pytorch"
    host_pid = 4000 + rank if pytorch else 1
    events: list[dict[str, Any]] = []
    _name(events, host_pid, "Python" if pytorch else "MindSpore", "CPU", {100: "Thread 100"})
    _name(events, _CANN, "CANN", "CPU", {100: "Thread 100"})
    streams = sorted({op.stream for step in run.ops for op in step[rank]})
    numbers = {stream: index + 2 for index, stream in enumerate(streams)}
    _name(events, _HARDWARE, "Ascend Hardware", "NPU 0", {n: f"Stream {n}" for n in numbers.values()})
    groups = [name for name, members in run.groups.items() if rank in members]
    threads = {index: f"Group {name} Communication" for index, name in enumerate(groups)}
    _name(events, _HCCL, "HCCL" if pytorch or run.scenario.bubble_reported else "Communication", "NPU 0", threads)
    overlap = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
    _name(events, _OVERLAP, "Overlap Analysis", "NPU 0", dict(enumerate(overlap)))

    def add(pid: int, tid: int, name: str, begin: float, end: float, text: bool = False, **args: Any) -> None:
        lasts = round(max(end - begin, 0.0), 3)
        events.append(
            {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": _stamp(run, rank, begin),
             "dur": f"{lasts:.3f}" if text else lasts, "args": args}
        )  # fmt: skip

    connection = 1
    for index, step in enumerate(run.ops):
        span = run.spans[index][rank]
        label = f"ProfilerStep#{run.scenario.first_step + index}"
        add(host_pid, 100, label if pytorch else f"Python::PythonObserved::{label}", span.begin, span.end, not pytorch)
        fetch = (
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" if pytorch else "Dataset::Pipeline::GetNext"
        )
        add(host_pid, 100, fetch, span.begin, span.begin + span.data_wait + 40.0, not pytorch)
        for op in step[rank]:
            connection += 1
            add(_CANN, 100, "Node@launch", op.launch, op.launched, connection_id=connection)
            flow = {"name": f"HostToDevice{connection}", "cat": "HostToDevice", "id": str(connection)}
            device = (_HCCL, groups.index(op.joint.group)) if op.joint else (_HARDWARE, numbers[op.stream])
            events.append({"ph": "s", "pid": _CANN, "tid": 100, "ts": _stamp(run, rank, op.launch), **flow})
            events.append(
                {"ph": "f", "bp": "e", "pid": device[0], "tid": device[1], "ts": _stamp(run, rank, op.start), **flow}
            )
            if op.joint:
                add(_HCCL, device[1], op.name, op.start, op.end, connection_id=connection)
            else:
                add(
                    *device,
                    op.name.rpartition("/")[2],
                    op.start,
                    op.end,
                    **{"Task Type": op.core, "connection_id": connection},
                )
    _add_overlap(run, rank, add)
    (output / "trace_view.json").write_text(json.dumps(events))


def _add_overlap(run: Simulation, rank: int, add: Any) -> None:
    every = [op for step in run.ops for op in step[rank]]
    computing, communicating = device_intervals(every)
    busy = union(np.concatenate((computing[0], communicating[0])), np.concatenate((computing[1], communicating[1])))
    free = complement(busy, int(busy[0][0]), int(busy[1][-1]))
    rows = (computing, communicating, subtract(communicating, computing), free)
    for tid, (name, intervals) in enumerate(
        zip(("Computing", "Communication", "Communication(Not Overlapped)", "Free"), rows, strict=True)
    ):
        for begin, end in zip(*intervals, strict=True):
            add(_OVERLAP, tid, name, begin / 1000, end / 1000)


def _stamp(run: Simulation, rank: int, us: float) -> str:
    ns = round((us + run.clock_offset[rank]) * 1000)
    return f"{_EPOCH_US + ns // 1000}.{ns % 1000:03d}"


def _name(events: list[dict[str, Any]], pid: int, process: str, label: str, threads: dict[int, str]) -> None:
    events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}})
    events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}})
    for tid, thread in threads.items():
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread}})
