"""trace_view.json, streamed: hundreds of megabytes in blocks, nothing kept but what facts ask for.

An array of events, or an object with `traceEvents`; plain or gzipped; `ts` and `dur` texts or numbers. A file that ends
in the middle gives every event before the cut, a defect inside costs the events around it. Times are integer
nanoseconds: microseconds since the epoch with three decimals are more than a float64 carries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from advisor.model import Source
from advisor.sources.base import Note, Rank
from advisor.sources.textfiles import why_unreadable
from advisor.sources.trace_events import Cut, Description, Event, descriptions, nanoseconds, stream

LONG_US = 100.0
"""Host events at least this long are kept one by one: shorter ones can't explain an idle stretch worth naming."""

_FLOW = "HostToDevice"
_COMMON = frozenset("Xsf")
_STEP = re.compile(r"(?:^|::)ProfilerStep#(\d+)$")

Ints = npt.NDArray[np.int64]


@dataclass
class Activity:
    """What was seen under one name in one process."""

    count: int = 0
    total_us: float = 0.0
    longest_us: float = 0.0


@dataclass
class Spans:
    """Events with their times: `name` are indices into `names`."""

    start: Ints
    end: Ints
    name: Ints
    names: list[str]

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class Trace:
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
    frequency: tuple[Ints, npt.NDArray[np.float64]]
    """(time, MHz) of the AI Core."""
    events: int = 0
    cut: bool = False
    tasks: dict[str, float] = field(default_factory=dict)
    """Tasks inside collectives by name (Memcpy, Reduce_TBE, Notify_Wait, …): microseconds over all planes."""


@dataclass
class _Process:
    names: dict[str, list[float]] = field(default_factory=dict)
    """name -> [count, microseconds, longest]"""
    title: str = ""
    long: list[tuple[str, Any, float]] = field(default_factory=list)
    parts: list[tuple[Ints, Ints, list[str]]] = field(default_factory=list)


class _Collector:
    def __init__(self) -> None:
        self.processes: dict[Any, _Process] = {}
        self.sent: list[tuple[Ints, Ints]] = []
        self.received: list[tuple[Ints, Ints]] = []
        self.frequency: list[tuple[int, float]] = []
        self.steps: list[tuple[str, int, int]] = []
        self.events = 0

    def add(self, events: Sequence[Event], block: bytes) -> None:
        """Takes one block of events and the bytes they were decoded from."""
        self.events += len(events)
        if not {event.ph for event in events} <= _COMMON:
            for described in descriptions(block):
                self._describe(described)
        for found, into in (("s", self.sent), ("f", self.received)):
            identities, flows = _links([event for event in events if event.ph == found])
            if flows:
                into.append((identities, nanoseconds([event.ts for event in flows])))
        device = {pid for pid, process in self.processes.items() if process.title == "Ascend Hardware"}
        pid: object = None  # no event has it: it is a number or a text
        for event in [event for event in events if event.ph == "X" and event.pid not in device]:
            if event.pid != pid:
                pid = event.pid
                process = self.processes.setdefault(pid, _Process())
                names, long = process.names, process.long
                shortest = 0.0 if process.title == "Overlap Analysis" else LONG_US
            duration = event.dur
            if duration.__class__ is not float:
                try:
                    duration = float(duration or -1.0)
                except (TypeError, ValueError):
                    continue
            if not 0.0 <= duration < math.inf:
                continue
            seen = names.get(event.name)
            if seen is None:
                names[event.name] = [1, duration, duration]
            else:
                seen[0] += 1
                seen[1] += duration
                if duration > seen[2]:
                    seen[2] = duration
            if duration >= shortest:
                long.append((event.name, event.ts, duration))
        for process in self.processes.values():
            if process.long:
                called, at, durations = zip(*process.long, strict=True)
                start = nanoseconds(at)
                length = np.rint(np.array(durations) * 1000).astype(np.int64)
                process.parts.append((start, start + length, list(called)))
                process.long.clear()

    def _describe(self, event: Description) -> None:
        if event.ph == "C":
            value, at = event.args.get("MHz"), nanoseconds([event.ts or b"null"])
            if isinstance(value, (int, float)) and value > 0 and at[0] >= 0:
                self.frequency.append((int(at[0]), float(value)))
        elif event.ph == "M" and event.name == "process_name":
            self.processes.setdefault(event.pid, _Process()).title = str(event.args.get("name", ""))

    def finish(self, cut: bool) -> Trace:
        """Everything joined: links matched, processes named."""
        launched, started = _match(self.sent, self.received)
        activities: dict[tuple[str, str], Activity] = {}
        host: list[tuple[Ints, Ints, list[str]]] = []
        lanes: dict[str, list[tuple[Ints, Ints]]] = {}
        tasks: dict[str, float] = {}
        for process in self.processes.values():
            if process.title in _COLLECTIVES:
                for name, (_, total, _) in process.names.items():
                    if "__" not in name:
                        tasks[name] = tasks.get(name, 0.0) + total
            if process.title == "Overlap Analysis":
                for start, end, names in process.parts:
                    titles = np.array(names, object)
                    for lane in ("Computing", "Communication"):
                        chosen = (titles == lane) & (start >= 0)
                        lanes.setdefault(lane, []).append((start[chosen], end[chosen]))
            elif process.title not in _DEVICE:
                for name, (count, total, longest) in process.names.items():
                    into = activities.setdefault((process.title, short_name(name)), Activity())
                    into.count += int(count)
                    into.total_us += total
                    into.longest_us = max(into.longest_us, longest)
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
            self.events, cut, tasks,
        )  # fmt: skip


_COLLECTIVES = ("HCCL", "Communication")
_DEVICE = frozenset((
    "Ascend Hardware", "HCCL", "Communication", "HBM", "LLC", "NPU MEM", "Stars Soc Info", "Acc PMU", "QoS", "PCIe",
    "HCCS", "NIC", "RoCE", "SIO", "AI Core Freq", "CPU Usage", "Memory Usage",
))  # fmt: skip


def short_name(name: str) -> str:
    """A host event's name without what it was about: `Kernel::KernelLaunch::Default/net/MatMul-op1` and all other
    launches are `Kernel::KernelLaunch`."""
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


def _links(flows: list[Event]) -> tuple[Ints, list[Event]]:
    """(number, event) of those flows that link a launch to its task, `HostToDevice123`."""
    skip = len(_FLOW)
    try:
        return np.array([int(event.name[skip:]) for event in flows], np.int64), flows
    except (ValueError, OverflowError):
        flows = [event for event in flows if event.name.startswith(_FLOW)]
    try:
        return np.array([int(event.name[skip:]) for event in flows], np.int64), flows
    except (ValueError, OverflowError):
        return np.array([hash(event.name) & 0x7FFFFFFFFFFFFFFF for event in flows], np.int64), flows


def trace_source(rank: Rank) -> Source | None:
    """Where the rank's timeline lies: a file of its own, or the database that holds its kernels; None without any."""
    if rank.has("trace"):
        return Source(rank.relative(rank.tables["trace"].paths[0]))
    reference = rank.tables.get("kernels")
    if reference is not None and reference.reader == "kernels.db":
        return Source(rank.relative(reference.paths[0]), ("CANN_API", "TASK"))
    return None


def load_trace(rank: Rank) -> Trace | None:
    """The rank's timeline, read once and kept until the rank forgets; None where there is none."""
    key = ("trace", "compact")
    if key not in rank._cache:

        def note(path: str, text: str) -> None:
            rank.note(rank.relative(Path(path)), text)

        rank._cache[key] = None
        if rank.has("trace"):
            rank._cache[key] = _load(rank.tables["trace"].paths, note)
        elif trace_source(rank) is not None:
            from advisor.sources.trace_database import read_trace

            rank._cache[key] = read_trace(rank.tables["kernels"].paths, note)
    return cast("Trace | None", rank._cache[key])


def _load(paths: Sequence[Path], note: Note) -> Trace | None:
    collector, cut = _Collector(), False
    for path in paths:
        try:
            for events, block in stream(path, note):
                collector.add(events, block)
        except Cut:
            cut = True
        except OSError as error:
            note(str(path), why_unreadable(error))
    return collector.finish(cut) if collector.events else None
