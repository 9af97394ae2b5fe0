"""The device's own lanes of a timeline, for timelines in which the profiler did not sum them up (Overlap Analysis).

Read in a pass of its own: there are a million tasks, and they are wanted only where nothing else tells of the device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from pathlib import Path

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints, Mask
from advisor.basics.intervals import union
from advisor.sources.reference import nothing
from advisor.sources.streams.kernels import told_again
from advisor.sources.streams.tasks import core_of, orders_streams
from advisor.sources.streams.trace_events import (
    NAMES_PROCESS,
    Cut,
    TaskEvent,
    decode_tasks,
    descriptions,
    nanoseconds,
    stream_as,
)
from advisor.tables import LARGEST

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

_PID = attrgetter("pid")

_COMMUNICATION = re.compile(r"^(hcom_|hccl|(all|reduce|broad|send|receive|batch)\w*__)", re.IGNORECASE)
_NO_WORK = re.compile(
    r"^(event|notify|profiling|model_|capture|label|stream_|placeholder|nop|flip|cmo|mem_?(wait|write)|"
    r"task_timeout|memcpy|sdma|rdma|reduce_inline|unknown|pcie_?dma|ub_?(dma|db|direct))",
    re.IGNORECASE,
)
"""Tasks that copy, or that the driver alone knows: no kernel. Those that order streams are in `tasks`."""
_STEP_TRACE = re.compile(r"^(Iteration \d+|FP_BP Time \d+|Iteration Refresh \d+|Data_aug Bound \d+|Reduce_\d+_\d+)$")
"""What msprof draws above the tasks where a graph counts its iterations: spans of other tasks, and none of its own."""


@lru_cache(1 << 14)
def is_collective(name: str) -> bool:
    """Whether what a process of collectives holds is one of them, not a task inside."""
    return _COMMUNICATION.match(name) is not None


@lru_cache(1 << 14)
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


class Tasks(Struct, frozen=True):
    """The device's tasks and collectives, nanoseconds; `name`, `core` and `stream` are indices into the lists of the
    same name in the plural, `talks` tells collectives."""

    start: Ints
    end: Ints
    name: Ints
    core: Ints
    stream: Ints
    talks: Mask
    names: list[str]
    cores: list[str]
    """Where tasks ran; empty where it is not told."""
    streams: list[str]

    @property
    def lanes(self) -> tuple[Lane, Lane]:
        """(computing, communication) as unions."""
        return self._union(~self.talks), self._union(self.talks)

    def _union(self, chosen: Mask) -> Lane:
        begin, end = self.start[chosen], self.end[chosen]
        return union(begin, end) if begin.size else (begin, end)


class _Gathered:
    def __init__(self) -> None:
        self.parts: list[tuple[Ints, Ints, Ints, Ints, Ints, Mask]] = []
        self.names, self.cores, self.streams = dict[str, int](), dict[str, int](), dict[str, int]()

    def add(self, events: Sequence[TaskEvent], pids: Mapping[int | str, bool]) -> None:
        """Takes the device's tasks, and of the processes of collectives (`pids` tells which) the collectives
        themselves."""
        apart = [*map(pids.get, map(_PID, events))]  # there are a million events, and most are the host's
        mine = [
            event for event, collectives in zip(events, apart, strict=True)
            if collectives is not None and event.ph == "X"
            and (is_collective(event.name) if collectives else _works(event.name))
        ]  # fmt: skip
        duration = np.array([event.dur for event in mine], np.float64)
        start = nanoseconds([event.ts for event in mine]) if mine else np.zeros(0, np.int64)
        usable = (duration > 0) & (duration < LARGEST) & (start >= 0)
        mine = [*compress(mine, usable.tolist())]
        names, begin = [event.name for event in mine], start[usable]
        self.parts.append((
            begin, begin + np.rint(duration[usable] * 1000).astype(np.int64), _codes(self.names, names),
            _codes(self.cores, [core_of(str(event.args.core)) if event.args else "" for event in mine]),
            _codes(self.streams, [str(event.tid) for event in mine]), np.array([*map(is_collective, names)], bool),
        ))  # fmt: skip

    def joined(self) -> Tasks:
        """All of them in order of start, each once: a device starts a task once, however often the file tells of it."""
        if not self.parts:
            self.add([], {})
        columns = [np.concatenate(each) for each in zip(*self.parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        again = told_again(*(columns[at][order] for at in (0, 1, 2, 4)))
        start, end, name, core, stream, talks = (column[order[~again]] for column in columns)
        return Tasks(start, end, name, core, stream, talks, list(self.names), list(self.cores), list(self.streams))


def _codes(index: dict[str, int], texts: Sequence[str]) -> Ints:
    """The place of each text in the index, which takes up those that are new."""
    return np.array([index.setdefault(text, len(index)) for text in texts], np.int64)


def hardware_tasks(paths: Sequence[Path], device: int | None = None) -> Tasks:
    """The device's tasks, and the collectives that are drawn apart from them; of one device where several are told."""
    pids: dict[int | str, bool] = {}
    gathered, waiting = _Gathered(), list[TaskEvent]()
    for path in paths:
        try:
            for events, block in stream_as(decode_tasks, path, nothing):  # the first pass told what is wrong with it
                pids |= {
                    one.pid: title in COLLECTIVES for one in descriptions(block, (NAMES_PROCESS,))
                    if one.ph == "M" and one.name == "process_name"
                    and (title := one.args.get("name")) in (HARDWARE, *COLLECTIVES)
                    and device in (None, device_of(one.pid))
                }  # fmt: skip
                if not pids:
                    waiting += events
                    continue
                gathered.add([*waiting, *events], pids)
                waiting = []
        except (Cut, OSError):
            continue
    return gathered.joined()
