"""The device's own lanes of a timeline, for timelines in which the profiler did not sum them up (Overlap Analysis).

Read in a pass of its own: there are a million tasks, and they are wanted only where nothing else tells of the device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from advisor.basics.arrays import Ints
from advisor.basics.intervals import union
from advisor.sources.reference import nothing
from advisor.sources.streams.tasks import orders_streams
from advisor.sources.streams.trace_events import Cut, Event, descriptions, nanoseconds, stream

HARDWARE = "Ascend Hardware"
COLLECTIVES = ("HCCL", "Communication")
"""Processes that hold collectives as a whole and, by other names, the tasks inside them."""
DEVICE_BITS = 31
"""msprof numbers the processes of its timeline by process, layer and device, which is in the low five bits; the host
has all of them set."""
_AROUND = 1000
"""Bytes before and after a process's title within which the event lies that gives it."""
_BLOCK = 1 << 24
"""Bytes read at a time: a mapped file would count as memory in use."""

Lane = tuple[Ints, Ints]

_COMMUNICATION = re.compile(r"^(hcom_|hccl|(all|reduce|broad|send|receive|batch)\w*__)", re.IGNORECASE)
_NO_WORK = re.compile(
    r"^(event|notify|profiling|model_|capture|label|stream_|placeholder|nop|flip|cmo|mem_?(wait|write)|"
    r"task_timeout|memcpy|sdma|rdma|reduce_inline|unknown|pcie_?dma|ub_?(dma|db|direct))",
    re.IGNORECASE,
)
"""Tasks that copy, or that the driver alone knows: no kernel. Those that order streams are in `tasks`."""
_STEP_TRACE = re.compile(r"^(Iteration \d+|FP_BP Time \d+|Iteration Refresh \d+|Data_aug Bound \d+|Reduce_\d+_\d+)$")
"""What msprof draws above the tasks where a graph counts its iterations: spans of other tasks, and none of its own."""


def _works(name: str) -> bool:
    return not (_NO_WORK.match(name) or orders_streams(name) or _STEP_TRACE.match(name))


def device_of(pid: int | str) -> int | None:
    """The device of a process of msprof's timeline; None of the host's, and where it is no number."""
    if not isinstance(pid, int) and not (pid.isdecimal() and pid.isascii() and len(pid) < 20):
        return None
    device = int(pid) & DEVICE_BITS
    return None if device == DEVICE_BITS else device


def devices_in(path: Path) -> set[int]:
    """The devices whose tasks are in a timeline, by the numbers of their processes; empty of compressed files."""
    if path.suffix != ".json" or not path.is_file() or not path.stat().st_size:
        return set()
    title, found, kept = f'"{HARDWARE}"'.encode(), set(), b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            data = kept + block
            at = data.find(title)
            while at >= 0:
                for one in descriptions(data[max(0, at - _AROUND) : at + _AROUND]):
                    named = one.ph == "M" and one.name == "process_name" and one.args.get("name") == HARDWARE
                    if named and (device := device_of(one.pid)) is not None:
                        found.add(device)
                at = data.find(title, at + len(title))
            kept = data[-2 * _AROUND :]  # a title at the end is seen again, with what follows it
            if not block[-1]:  # no text holds zeros: a hole of gigabytes begins
                break
    return found


def hardware_lanes(paths: Sequence[Path], device: int | None = None) -> tuple[Lane, Lane]:
    """(computing, communication) as unions of the device's tasks and of the collectives that are drawn apart from them,
    nanoseconds; of one device where several are told."""
    pids: dict[int | str, bool] = {}
    lanes: dict[bool, list[Lane]] = {False: [], True: []}
    waiting: list[Event] = []
    for path in paths:
        try:
            for events, block in stream(path, nothing):  # the first pass told what is wrong with it
                pids |= {
                    one.pid: title in COLLECTIVES for one in descriptions(block)
                    if one.ph == "M" and one.name == "process_name"
                    and (title := one.args.get("name")) in (HARDWARE, *COLLECTIVES)
                    and device in (None, device_of(one.pid))
                }  # fmt: skip
                if not pids:
                    waiting += events
                    continue
                _add([*waiting, *events], pids, lanes)
                waiting = []
        except (Cut, OSError):
            continue
    return _union(lanes[False]), _union(lanes[True])


def _add(events: Sequence[Event], pids: Mapping[int | str, bool], lanes: dict[bool, list[Lane]]) -> None:
    """Takes the device's tasks, and of the processes of collectives (`pids` tells which) the collectives themselves."""
    mine = [
        event for event in events
        if event.ph == "X" and (apart := pids.get(event.pid)) is not None
        and (_COMMUNICATION.match(event.name) if apart else _works(event.name))
    ]  # fmt: skip
    duration = np.array([event.dur for event in mine], np.float64)
    start = nanoseconds([event.ts for event in mine]) if mine else np.zeros(0, np.int64)
    usable = (duration > 0) & np.isfinite(duration) & (start >= 0)
    talks = np.array([bool(_COMMUNICATION.match(event.name)) for event in compress(mine, usable.tolist())], bool)
    begin = start[usable]
    end = begin + np.rint(duration[usable] * 1000).astype(np.int64)
    for talk in (False, True):
        chosen = talks == talk
        lanes[talk].append((begin[chosen], end[chosen]))


def _union(parts: Sequence[Lane]) -> Lane:
    begin = np.concatenate([start for start, _ in parts]) if parts else np.zeros(0, np.int64)
    end = np.concatenate([stop for _, stop in parts]) if parts else np.zeros(0, np.int64)
    return union(begin, end) if begin.size else (begin, end)
