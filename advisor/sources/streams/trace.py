"""trace_view.json, streamed: hundreds of megabytes in blocks, nothing kept but what facts ask for.

An array of events, or an object with `traceEvents`; plain or gzipped; `ts` and `dur` texts or numbers. A file that ends
in the middle gives every event before the cut, a defect inside costs the events around it. Times are integer
nanoseconds: microseconds since the epoch with three decimals are more than a float64 carries.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import measure, union
from advisor.sources.reference import Note
from advisor.sources.streams.hardware_lanes import COLLECTIVES, HARDWARE, device_of, is_collective
from advisor.sources.streams.tasks import orders_streams
from advisor.sources.streams.trace_events import (
    CLOCK,
    ELEMENTS,
    ITERATION,
    Cut,
    Description,
    Event,
    descriptions,
    nanoseconds,
    stream,
)
from advisor.sources.text.textfiles import why_unreadable
from advisor.tables import LARGEST

LONG_US = 100.0
"""Host events at least this long are kept one by one: shorter ones can't explain an idle stretch worth naming."""

COPY = "MEMCPY"
"""How the names of the device's copies between memories begin."""
SYNCHRONISES = re.compile(r"[Ss]ynchronize|SyncStream|WaitPipeline|StreamSync")
"""Calls of the host that return once the device has done what was queued."""
COPIES_BACK = re.compile(r"(?:^|@)(?:acl)?rtMemcpy$|MemCopySync$|SyncDeviceToHost|^aten::_local_scalar_dense$")
"""Calls that return once a copy between memories is done, and where it copies a result, once the device has that."""
AWAITS_CALLBACKS = re.compile(r"ProcessReport$")
"""Calls of a thread of its own that does nothing but wait until the device calls back: no work of the host, and nobody
waits for it."""
_RARE = re.compile(r"malloc|(?<![a-z])free|rtfree|opcompile|compileandexecute|getnextasvector")

_NUMBER = re.compile("[0-9]+")

DATA_PIPELINE = "Dataset::"
"""How names of MindSpore's data pipeline begin; an operation and its stage follow."""
BATCH_FETCH = "Dataset::IteratorConsumer::GetNextAsVector"
"""The loop's call for its next batch, one for each."""
_FLOW = "HostToDevice"
_CALLS = frozenset(("torch_to_npu", "async_npu"))
"""Links from a call of the framework to the device's task; newer and older name."""
_STEP = re.compile(r"(?:^|::)ProfilerStep#([0-9]+)$")


class Activity(Struct):
    """What was seen under one name in one process."""

    count: int = 0
    total_us: float = 0.0
    longest_us: float = 0.0


class Spans(Struct):
    """Events with their times: `name` are indices into `names`."""

    start: Ints
    end: Ints
    name: Ints
    names: list[str]

    def __len__(self) -> int:
        return len(self.start)

    def called(self, name: str) -> tuple[Ints, Ints]:
        """Starts and ends of those of this name, in order of their ends."""
        calls = self.name == (self.names.index(name) if name in self.names else -1)
        order = np.argsort(self.end[calls], kind="stable")
        return self.start[calls][order], self.end[calls][order]


class Trace(Struct):
    """What a rank's timeline says, apart from the kernels themselves. Times in nanoseconds."""

    steps: list[tuple[str, int, int]]
    """(step, start, end) on the host."""
    launched: Ints
    """Per device task with a HostToDevice link: when the host launched it …"""
    started: Ints
    """… and when it started on the device; sorted by this."""
    activities: dict[tuple[str, str], Activity]
    """(process: CANN, Python, MindSpore, …; name) -> what was seen."""
    host: Spans
    """Host events of 100 us and more."""
    computing: tuple[Ints, Ints]
    communication: tuple[Ints, Ints]
    """The profiler's own lanes of the process Overlap Analysis."""
    frequency: tuple[Ints, Floats]
    """(time, MHz) of the AI Core."""
    events: int = 0
    cut: bool = False
    moving_us: float = 0.0
    """Time in which any plane of a collective copies or reduces (Memcpy, Reduce_TBE, …; not Notify_Wait) …"""
    reducing_us: float = 0.0
    """… and that in which reduction is all that happens. Reduce_Inline moves data as well and does not count."""
    hardware: bool = False
    """Whether the device's own tasks are in it …"""
    device_tasks: int = 0
    """… and how many, if so."""
    twice: int = 0
    """Launches and long host events that stand there more than once: the timeline was joined with itself."""
    iterations: list[tuple[str, str, int, int]] = field(default_factory=list)
    """(graph, iteration, start, end) of the executions of graphs that msprof marks on the device."""
    copies: tuple[Ints, Ints] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    """When the device copied between memories, of the host's and its own. Those inside collectives may be among
    them."""
    collectives: Spans = field(default_factory=lambda: _spans([]))
    """The collectives as a whole, as the profiler draws them apart from the device's tasks …"""
    bytes_of: dict[str, float] = field(default_factory=dict)
    """… and what each exchanges, elements × their width, where they tell and somebody wants to know."""
    called: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """When the framework's call came for each of those `launched`, which a queue may hand on to the launching thread
    later; empty where no call is told, or nobody wants to know."""


class _Codes(dict[str, int]):
    """Short name -> place in the arrays, which may be longer."""

    def __init__(self) -> None:
        self.fresh: list[str] = []
        """Names that were seen since this was last emptied."""

    def __missing__(self, name: str) -> int:
        place = self[name] = len(self)
        self.fresh.append(name)
        return place


class _Heads(dict[str, int]):
    """Places of short names by the first characters of a name. Most names are long (an operator's path) and their first
    characters tell the short one; -1 where they don't."""

    def __init__(self, code: _Codes) -> None:
        self.code = code

    def __missing__(self, head: str) -> int:
        told = len(head) < _HEAD or (head.count("::") > 1 and not head.startswith((":", DATA_PIPELINE)))
        place = self[head] = self.code[short_name(head)] if told else -1
        return place


class _Names(dict[str, int]):
    """Places of short names by the whole name, for those whose first characters don't tell: a Python function is
    called a hundred thousand times by one name."""

    def __init__(self, code: _Codes) -> None:
        self.code = code

    def __missing__(self, name: str) -> int:
        if len(self) >= _KEPT:
            self.clear()
        place = self[name] = self.code[short_name(name)]
        return place


_HEAD = 24
_KEPT = 1 << 14
"""Whole names remembered at once: where each is another, remembering them gains nothing and takes memory."""
_HEAD_OF = operator.itemgetter(slice(_HEAD))


class _Process:
    """One process of the timeline: what happened under which name, and its long events one by one."""

    def __init__(self) -> None:
        self.title = ""
        self.code = _Codes()
        self.head, self.whole = _Heads(self.code), _Names(self.code)
        self.count = np.zeros(0, np.int64)
        self.total = np.zeros(0)
        self.longest = np.zeros(0)
        self.rare = np.zeros(0, bool)
        self.tasks_by_code = np.zeros(0, np.int64)
        self.inside: list[tuple[Ints, Ints, Ints]] = []
        """Start, end and kind (see `_task`) of the tasks inside collectives."""
        self.collectives: list[tuple[Ints, Ints, list[str]]] = []
        """Start, end and name of these as a whole."""
        self.parts: list[tuple[Ints, Ints, list[str]]] = []
        self.tasks = 0
        """Complete events that are counted and not looked at: the device's own."""
        self.unusable = 0
        """Complete events whose duration is none …"""
        self.untimed = 0
        """… and those that are placed in time, and whose start is none."""

    def add(self, events: Sequence[Event]) -> None:
        """Takes complete events; one without a duration that can be counts as none."""
        durations = np.array([*map(_DURATION, events)], np.float64)
        usable = (durations >= 0) & (durations < LARGEST)
        if not usable.all():
            self.unusable += int((~usable).sum())
            events, durations = list(itertools.compress(events, usable.tolist())), durations[usable]
        codes = np.fromiter(map(self.head.__getitem__, map(_HEAD_OF, map(_NAME, events))), np.int64, len(events))
        if (untold := codes < 0).any():
            names = map(_NAME, itertools.compress(events, untold.tolist()))
            codes[untold] = [*map(self.whole.__getitem__, names)]
        if len(self.code) > self.count.size:
            more = np.zeros(2 * len(self.code) - self.count.size)
            self.count = np.concatenate((self.count, more.astype(np.int64)))
            self.total, self.longest = np.concatenate((self.total, more)), np.concatenate((self.longest, more))
        if self.code.fresh:
            self.rare = np.concatenate((self.rare, np.array([*map(is_rare, self.code.fresh)])))
            self.tasks_by_code = np.concatenate((self.tasks_by_code, np.array([*map(_task, self.code.fresh)])))
            self.code.fresh.clear()
        np.add.at(self.count, codes, 1)
        np.add.at(self.total, codes, durations)
        np.maximum.at(self.longest, codes, durations)
        if self.title in COLLECTIVES:
            self._keep_tasks(events, durations, codes)
            self._keep_collectives(events, durations, codes)
        if self.title != "Overlap Analysis":
            long = np.flatnonzero((durations >= LONG_US) | self.rare[codes])
            events, durations = [events[i] for i in long.tolist()], durations[long]
        if events:
            start = nanoseconds([*map(_TS, events)])
            self.untimed += int((start < 0).sum())
            self.parts.append((start, start + np.rint(durations * 1000).astype(np.int64), [*map(_NAME, events)]))

    def _keep_tasks(self, events: Sequence[Event], durations: Floats, codes: Ints) -> None:
        kinds = self.tasks_by_code[codes]
        kept = np.flatnonzero(kinds)
        start = nanoseconds([events[i].ts for i in kept.tolist()]) if kept.size else np.zeros(0, np.int64)
        self.inside.append((start, start + np.rint(durations[kept] * 1000).astype(np.int64), kinds[kept]))

    def _keep_collectives(self, events: Sequence[Event], durations: Floats, codes: Ints) -> None:
        rest = np.flatnonzero(self.tasks_by_code[codes] == 0).tolist()
        if kept := [i for i in rest if is_collective(events[i].name)]:
            start = nanoseconds([events[i].ts for i in kept])
            end = start + np.rint(durations[kept] * 1000).astype(np.int64)
            self.collectives.append((start, end, [events[i].name for i in kept]))

    def keep_copies(self, events: Sequence[Event]) -> None:
        """Takes the device's copies, the short ones too: hundreds in a row hold it up as one long one does."""
        durations = np.array([*map(_DURATION, events)], np.float64)
        timed = np.flatnonzero((durations > 0) & (durations < LARGEST))
        if timed.size:
            start = nanoseconds([events[i].ts for i in timed.tolist()])
            end = start + np.rint(durations[timed] * 1000).astype(np.int64)
            self.parts.append((start, end, [events[i].name for i in timed.tolist()]))

    def activities(self) -> Iterator[tuple[str, Activity]]:
        """What was seen under each short name."""
        for name, *seen in zip(
            self.code, self.count.tolist(), self.total.tolist(), self.longest.tolist(), strict=False
        ):
            yield name, Activity(*seen)


_PHASE, _NAME, _PID, _TS, _DURATION = map(operator.attrgetter, ("ph", "name", "pid", "ts", "dur"))


@cache
def _only(code: int) -> bytes:
    """A table that translates this byte into 1 and all others into 0."""
    return bytes(other == code for other in range(256))


class _Collector:
    def __init__(self, device: int | None = None, *, sized: bool = False, alone: bool = False) -> None:
        self.bytes_of: dict[str, float] = {}
        self.sized, self.alone = sized, alone
        """Whether `bytes_of` is wanted."""
        self.device = device
        """The one whose events are wanted, where the timeline holds several; the host's are everybody's."""
        self.processes: list[_Process] = []
        self.place: defaultdict[int | str, int] = defaultdict(self._new)
        """pid -> place among the processes."""
        self.sent: list[tuple[Ints, Ints]] = []
        self.received: list[tuple[Ints, Ints]] = []
        self.calls: list[tuple[Ints, Ints]] = []
        self.answers: list[tuple[Ints, Ints]] = []
        self.frequency: list[tuple[int, float]] = []
        self.iterations: list[tuple[str, str, int, int]] = []
        self.events = 0
        self.untimed = 0
        """Ends of links whose time is none."""

    def _new(self) -> int:
        self.processes.append(_Process())
        return len(self.processes) - 1

    def add(self, events: Sequence[Event], block: bytes) -> None:
        """Takes one block of events and the bytes they were decoded from. There are a million events, so what is done
        with each is done by functions in C."""
        self.events += len(events)
        phases = "".join(map(_PHASE, events)).encode()
        if len(phases) != len(events):  # phases are single letters by definition
            phases = b"".join(one if len(one := event.ph.encode()) == 1 else b" " for event in events)
        sampled = map(_NAME, itertools.compress(events, phases.translate(_only(ord("C")))))
        if b"M" in phases or CLOCK in sampled or (ITERATION[-1:] in block and ITERATION in block):
            for described in descriptions(block):
                self._describe(described)
        if self.sized and ELEMENTS in block:
            for described in descriptions(block, (ELEMENTS,)):
                if is_collective(described.name) and (size := _exchanged(described)):
                    self.bytes_of[described.name] = size
        for phase, into, calls in (("s", self.sent, self.calls), ("f", self.received, self.answers)):
            ends = [*itertools.compress(events, phases.translate(_only(ord(phase))))]
            identities, flows = _links(ends)
            if self.alone and (told := [event for event in ends if event.name in _CALLS]):
                calls.append((np.array([_number_of(event.id) for event in told]), nanoseconds([*map(_TS, told)])))
            if flows:
                into.append((identities, at := nanoseconds([*map(_TS, flows)])))
                self.untimed += int((at < 0).sum())
        complete = [*itertools.compress(events, phases.translate(_only(ord("X"))))]
        places = [*map(self.place.__getitem__, map(_PID, complete))]
        few = bytes(places) if len(self.processes) <= 256 else None
        for place in set(places):
            process = self.processes[place]
            mine = [other == place for other in places] if few is None else few.translate(_only(place))
            if process.title != HARDWARE:
                process.add([*itertools.compress(complete, mine)])
                continue
            tasks = [*itertools.compress(complete, mine)]
            process.tasks += len(tasks)
            if any(name.startswith(COPY) for name in {*map(_NAME, tasks)}):
                process.keep_copies([event for event in tasks if event.name.startswith(COPY)])

    def _is_another_s(self, pid: int | str) -> bool:
        return self.device is not None and device_of(pid) not in (None, self.device)

    def _describe(self, event: Description) -> None:
        if self._is_another_s(event.pid) and event.ph != "M":
            return
        if event.ph == "C":
            value, at = event.args.get("MHz"), nanoseconds([event.ts or b"null"])
            if isinstance(value, (int, float)) and value > 0 and at[0] >= 0:
                self.frequency.append((int(at[0]), float(value)))
        elif event.ph == "X":
            number, start = event.args.get("Iteration ID"), int(nanoseconds([event.ts or b"null"])[0])
            lasts = float(event.dur) if isinstance(event.dur, (int, float)) else math.nan
            if number is not None and start >= 0 and 0 < lasts < LARGEST:
                self.iterations.append((str(event.tid), str(number), start, start + round(lasts * 1000)))
        elif event.ph == "M" and event.name == "process_name":
            self.processes[self.place[event.pid]].title = str(event.args.get("name", ""))

    def has_hardware(self) -> bool:
        """Whether the device's own tasks are there."""
        return any(
            self.processes[place].title == HARDWARE and not self._is_another_s(pid) for pid, place in self.place.items()
        )

    def finish(self, cut: bool) -> Trace:
        """Everything joined: links matched, processes named."""
        launched, started = _match(self.sent, self.received)
        activities: dict[tuple[str, str], Activity] = {}
        host: list[tuple[Ints, Ints, list[str]]] = []
        lanes: dict[str, list[tuple[Ints, Ints]]] = {}
        inside: list[tuple[Ints, Ints, Ints]] = []
        copies: list[tuple[Ints, Ints]] = []
        collectives: list[tuple[Ints, Ints, list[str]]] = []
        device_tasks = 0
        others = {place for pid, place in self.place.items() if self._is_another_s(pid)}
        for place, process in enumerate(self.processes):
            if place in others:
                continue
            if process.title == HARDWARE:
                device_tasks += process.tasks + int(process.count.sum())
                for start, end, names in process.parts:
                    chosen = np.array([name.startswith(COPY) for name in names], bool) & (start >= 0)
                    copies.append((start[chosen], end[chosen]))
            inside += process.inside
            collectives += process.collectives
            if process.title == "Overlap Analysis":
                for start, end, names in process.parts:
                    titles = np.array(names, object)
                    for lane in ("Computing", "Communication"):
                        chosen = (titles == lane) & (start >= 0)
                        lanes.setdefault(lane, []).append((start[chosen], end[chosen]))
            elif process.title not in _DEVICE:
                for name, seen in process.activities():
                    into = activities.setdefault((process.title, name), Activity())
                    into.count += seen.count
                    into.total_us += seen.total_us
                    into.longest_us = max(into.longest_us, seen.longest_us)
                if process.title != "Scope Layer":
                    host += process.parts
        spans = _spans(host)
        steps = sorted(
            (found.group(1), int(s), int(e))
            for s, e, i in zip(spans.start, spans.end, spans.name, strict=True)
            if (found := _STEP.search(spans.names[i]))
        )
        frequency = sorted(self.frequency)
        return Trace(
            sorted(set(steps), key=lambda step: step[1]), launched, started, activities, spans,
            _joined(lanes.get("Computing", [])), _joined(lanes.get("Communication", [])),
            (np.array([t for t, _ in frequency], np.int64), np.array([f for _, f in frequency], np.float64)),
            self.events, cut, *_moving(inside), device_tasks=device_tasks,
            twice=_repeated(*_joined(self.sent)) + _repeated(spans.start, spans.end, spans.name),
            iterations=sorted(set(self.iterations), key=lambda one: one[2:]), copies=union(*_joined(copies)),
            collectives=_spans(collectives), bytes_of=self.bytes_of,
            called=_at_starts(*_match(self.calls, self.answers), launched, started),
        )  # fmt: skip


def _exchanged(event: Description) -> float:
    """Bytes of a collective's elements, by the number of bits in the name of their type (BFP16, FP32, INT8); 0 where it
    does not tell."""
    count, bits = event.args.get("count"), _NUMBER.search(str(event.args.get("data_type")))
    if not isinstance(count, int) or not 0 < count < LARGEST or bits is None or int(bits[0]) not in _WIDTHS:
        return 0.0
    return count * int(bits[0]) / 8


_WIDTHS = (8, 16, 32, 64, 128)
_MOVES, _REDUCES = 1, 2


def _task(name: str) -> int:
    """What a task inside a collective does; 0 of one that waits, and of the collective itself."""
    if "__" in name or orders_streams(name):
        return 0
    return _REDUCES if name.startswith("Reduce_TBE") else _MOVES


def _moving(inside: Sequence[tuple[Ints, Ints, Ints]]) -> tuple[float, float]:
    """Microseconds in which the tasks inside collectives work, and those in which they only reduce, on the time axis:
    planes work side by side, and a sum over them would count a copy on seven links seven times."""
    if not inside:
        return 0.0, 0.0
    start, end, kind = (np.concatenate(column) for column in zip(*inside, strict=True))
    every, rest = (
        measure(union(start[kept], end[kept])) / 1000 for kept in (start >= 0, (start >= 0) & (kind == _MOVES))
    )
    return every, every - rest


_DEVICE = frozenset((
    HARDWARE, *COLLECTIVES, "HBM", "LLC", "NPU MEM", "Stars Soc Info", "Acc PMU", "QoS", "PCIe",
    "HCCS", "NIC", "RoCE", "SIO", "AI Core Freq", "CPU Usage", "Memory Usage",
))  # fmt: skip


def is_rare(name: str) -> bool:
    """Whether calls of this name are kept one by one however short they are: whether they lie between kernels or before
    them decides, or, of waits for the device and of the loop's calls for a batch, when they come."""
    return _is_rare(_NUMBER.sub("0", name))


@lru_cache(1 << 14)
def _is_rare(name: str) -> bool:
    """Of a name without its numbers: each collective has one of its own."""
    return waits_for_device(name) or _RARE.search(name.lower()) is not None


def waits_for_device(name: str) -> bool:
    """Whether a call returns once the device has done what was queued, or what is copied back."""
    return SYNCHRONISES.search(name) is not None or COPIES_BACK.search(name) is not None


def short_name(name: str) -> str:
    """A host event's name without what it was about: `Kernel::KernelLaunch::Default/net/MatMul-op1` and all other
    launches are `Kernel::KernelLaunch`. What an operation of the data pipeline did stays: its work is no waiting."""
    if name.startswith(DATA_PIPELINE):
        return name
    parts = name.split("::")
    return "::".join(parts[:2]) if len(parts) > 2 and parts[0] else name


def _spans(parts: Sequence[tuple[Ints, Ints, list[str]]]) -> Spans:
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(name, len(index)) for _, _, names in parts for name in names], np.int64)
    start, end = _joined([(start, end) for start, end, _ in parts])
    known = start >= 0
    return Spans(start[known], end[known], codes[known], list(index))


def _joined(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def _match(sent: Sequence[tuple[Ints, Ints]], received: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """(launched, started) of the links whose both ends are known, by start. One launch may start several tasks."""
    sent_id, sent_at = _joined(sent)
    got_id, got_at = _joined(received)
    usable = (sent_id >= 0) & (sent_at >= 0)
    sent_id, sent_at = sent_id[usable], sent_at[usable]
    if not sent_id.size or not got_id.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(sent_id, kind="stable")
    sent_id, sent_at = sent_id[order], sent_at[order]
    at = np.minimum(np.searchsorted(sent_id, got_id), sent_id.size - 1)
    linked = (sent_id[at] == got_id) & (got_at >= 0)
    launched, started = sent_at[at[linked]], got_at[linked]
    order = np.argsort(started, kind="stable")
    return launched[order], started[order]


def _at_starts(called: Ints, begun: Ints, launched: Ints, started: Ints) -> Ints:
    """When the call came for each task that `started`; when it was launched where no call is told for it."""
    if not begun.size:
        return begun
    at = np.minimum(np.searchsorted(begun, started), begun.size - 1)
    return np.where((begun[at] == started) & (called[at] <= launched), called[at], launched)


def _number_of(text: Any) -> int:
    """The whole number that a JSON value is, also as a text; -1 where it is none."""
    digits = bytes(text).strip(b'"')
    number = int(digits) if digits.isdigit() and len(digits) <= _MOST_DIGITS else -1
    return number if number < np.iinfo(np.int64).max else -1


_MOST_DIGITS = 19
"""Of a number of 64 bits."""


def _repeated(*columns: Ints) -> int:
    """Rows that are like another one; unknown numbers and times, below 0, are like none."""
    known = np.logical_and.reduce([column >= 0 for column in columns])
    rows = np.stack([column[known] for column in columns])
    ordered = rows[:, np.lexsort(rows)]
    return int((np.diff(ordered, axis=1) == 0).all(axis=0).sum())


def _links(flows: list[Event]) -> tuple[Ints, list[Event]]:
    """(number, event) of those flows that link a launch to its task, `HostToDevice123`."""
    names = [*map(_NAME, flows)]
    alike = all(name.startswith(_FLOW) for name in names[:_LOOKED_AT])
    if not alike or (numbers := _numbers(names)) is None:
        mine = [*map(str.startswith, names, itertools.repeat(_FLOW))]
        flows, names = [*itertools.compress(flows, mine)], [*itertools.compress(names, mine)]
        numbers = _numbers(names)
    if numbers is None:
        numbers = np.array([hash(name) & 0x7FFFFFFFFFFFFFFF for name in names], np.int64)
    return numbers, flows


_LOOKED_AT = 8
"""Names by which is told whether all links of a block may be of this kind; PyTorch mixes them with others."""


def _numbers(names: list[str]) -> Ints | None:
    """The number behind each name; None where a name is not like that."""
    whole = "\n".join(names)
    text = f"\n{whole}".replace(f"\n{_FLOW}", "\n")[1:]
    if len(whole) - len(text) != len(_FLOW) * len(names) or not text.isascii() or text.translate(_NO_DIGITS):
        return None
    numbers = np.fromstring(text, np.int64, sep="\n")
    return numbers if numbers.size == len(names) and numbers.max(initial=0) < np.iinfo(np.int64).max else None


_NO_DIGITS = str.maketrans("", "", "0123456789\n")


def stream_trace(
    paths: Sequence[Path], note: Note, device: int | None = None, *, sized: bool = False, alone: bool = False
) -> Trace | None:
    """The timeline that these files hold, of one device where they tell of several, `sized` with what collectives
    exchange; None where they hold no event."""
    collector, cut = _Collector(device, sized=sized, alone=alone), False
    for path in paths:
        try:
            for events, block in stream(path, note):
                collector.add(events, block)
                del events, block
        except Cut:
            cut = True
        except OSError as error:
            note(str(path), why_unreadable(error))
    if not collector.events:
        return None
    if unusable := sum(process.unusable for process in collector.processes):
        note(str(paths[0]), f"{unusable} of its {collector.events} events have no usable duration and were left out")
    if untimed := collector.untimed + sum(process.untimed for process in collector.processes):
        note(str(paths[0]), f"{untimed} of its {collector.events} events have no usable start and were left out")
    trace = collector.finish(cut)
    trace.hardware = collector.has_hardware()
    if trace.twice:
        text = f"holds {trace.twice} events twice: it was joined with itself, and its counts are too high"
        note(str(paths[0]), text, ("trace",))
    return trace
