"""trace_view.json, streamed: hundreds of megabytes in blocks, nothing kept but what facts ask for.

An array of events, or an object with `traceEvents`; plain or gzipped; `ts` and `dur` texts or numbers. A file that ends
in the middle gives every event before the cut, a defect inside costs the events around it. Times are integer
nanoseconds: microseconds since the epoch with three decimals are more than a float64 carries.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import numpy.typing as npt

from advisor.sources.base import Note, Rank

BLOCK = 1 << 21
"""Bytes decoded at once; larger blocks leave the processor's caches and are slower."""
LARGEST_EVENT = 1 << 26
LONG_US = 100.0
"""Host events at least this long are kept one by one: shorter ones can't explain an idle stretch worth naming."""

_FLOW = "HostToDevice"
_STEP = re.compile(r"(?:^|::)ProfilerStep#(\d+)$")
_BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_NONE = msgspec.Raw(b"")
_SPACE = b" \t\r\n"

Ints = npt.NDArray[np.int64]


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: msgspec.Raw = _NONE
    dur: float | str | None = None
    cat: str | None = ""
    args: msgspec.Raw = _NONE


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


@dataclass
class _Process:
    names: dict[str, list[float]] = field(default_factory=dict)
    """name -> [count, microseconds, longest]"""
    title: str = ""
    lanes: dict[Any, str] = field(default_factory=dict)
    long: list[tuple[str, msgspec.Raw, float, Any]] = field(default_factory=list)
    parts: list[tuple[Ints, Ints, list[str], list[Any]]] = field(default_factory=list)


class _Collector:
    def __init__(self) -> None:
        self.processes: dict[Any, _Process] = {}
        self.sent: list[tuple[Ints, Ints]] = []
        self.received: list[tuple[Ints, Ints]] = []
        self.frequency: list[tuple[int, float]] = []
        self.steps: list[tuple[str, int, int]] = []
        self.events = 0

    def add(self, events: Sequence[_Event]) -> None:
        """Takes one block of events."""
        self.events += len(events)
        processes = self.processes
        flows = [event for event in events if event.cat == _FLOW]
        sent = [event for event in flows if event.ph == "s"]
        received = [event for event in flows if event.ph == "f"]
        process = None
        pid: object = _NONE
        for event in [event for event in events if event.cat != _FLOW]:
            if event.ph == "X":
                if event.pid != pid:
                    pid = event.pid
                    process = processes.get(pid)
                    if process is None:
                        process = processes[pid] = _Process()
                    names, long = process.names, process.long
                    device = process.title == "Ascend Hardware"
                    shortest = 0.0 if process.title == "Overlap Analysis" else LONG_US
                if device:
                    continue
                duration = event.dur
                if duration.__class__ is not float:
                    try:
                        duration = float(duration)  # type: ignore[arg-type]
                    except (TypeError, ValueError):
                        continue
                seen = names.get(event.name)
                if seen is None:
                    seen = names[event.name] = [0, 0.0, 0.0]
                if not 0.0 <= duration < math.inf:  # type: ignore[operator]
                    continue
                seen[0] += 1
                seen[1] += duration  # type: ignore[operator]
                if duration > seen[2]:  # type: ignore[operator]
                    seen[2] = duration  # type: ignore[assignment]
                if duration >= shortest:  # type: ignore[operator]
                    long.append((event.name, event.ts, duration, event.tid))  # type: ignore[arg-type]
            elif event.ph in ("M", "C"):
                self._describe(event)
        if sent:
            self.sent.append((_identities(sent), nanoseconds([event.ts for event in sent])))
        if received:
            self.received.append((_identities(received), nanoseconds([event.ts for event in received])))
        for process in processes.values():
            if process.long:
                names, at, durations, threads = zip(*process.long, strict=True)
                start = nanoseconds(at)
                length = np.rint(np.array(durations) * 1000).astype(np.int64)
                process.parts.append((start, start + length, list(names), list(threads)))
                process.long.clear()

    def _describe(self, event: _Event) -> None:
        if event.ph == "C" and event.name != "AI Core Freq":
            return
        try:
            args = msgspec.json.decode(event.args)
        except msgspec.DecodeError:
            return
        if not isinstance(args, dict):
            return
        if event.ph == "C":
            value, at = args.get("MHz"), nanoseconds([event.ts])
            if isinstance(value, (int, float)) and value > 0 and at[0] >= 0:
                self.frequency.append((int(at[0]), float(value)))
        elif event.name in ("process_name", "thread_name"):
            process = self.processes.setdefault(event.pid, _Process())
            if event.name == "process_name":
                process.title = str(args.get("name", ""))
            else:
                process.lanes[event.tid] = str(args.get("name", ""))

    def finish(self, cut: bool) -> Trace:
        """Everything joined: links matched, processes named."""
        launched, started = _match(self.sent, self.received)
        activities: dict[tuple[str, str], Activity] = {}
        host: list[tuple[Ints, Ints, list[str]]] = []
        lanes: dict[str, list[tuple[Ints, Ints]]] = {}
        for process in self.processes.values():
            if process.title == "Overlap Analysis":
                for start, end, _, threads in process.parts:
                    titles = np.array([process.lanes.get(t, "") for t in threads], object)
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
                    host += [part[:3] for part in process.parts]
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
            self.events, cut,
        )  # fmt: skip


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


def _identities(events: Sequence[_Event]) -> Ints:
    """Numbers of links from their names, `HostToDevice123`."""
    skip = len(_FLOW)
    try:
        return np.array([int(event.name[skip:]) for event in events], np.int64)
    except (ValueError, OverflowError):
        return np.array([hash(event.name) & 0x7FFFFFFFFFFFFFFF for event in events], np.int64)


def nanoseconds(texts: Sequence[Any]) -> Ints:
    """Exact nanoseconds of JSON texts or numbers in microseconds; -1 where it is neither."""
    data = b"".join(texts)
    width = len(texts[0])
    if len(data) == width * len(texts):
        digits = np.frombuffer(data, np.uint8).reshape(len(texts), width)
        if digits[0, 0] == 34:
            digits = digits[:, 1:-1]
        if digits.shape[1] > 4 and (digits[:, -4] == 46).all():
            digits = np.concatenate((digits[:, :-4], digits[:, -3:]), axis=1) - 48
            if digits.shape[1] <= 19 and digits.max(initial=0) <= 9:
                return digits @ (10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64))
    return np.array([_exact(bytes(text)) for text in texts], np.int64)


def _exact(text: bytes) -> int:
    try:
        number = Decimal(text.strip(b'"').strip().decode())
        value = int(number * (1 if number.adjusted() >= 17 else 1000))
    except (InvalidOperation, ValueError, UnicodeDecodeError, OverflowError):
        return -1
    return value if 0 <= value < 1 << 63 else -1


def load_trace(rank: Rank) -> Trace | None:
    """The rank's timeline, read once and kept until the rank forgets; None where there is none."""
    key = ("trace", "compact")
    if key not in rank._cache:
        reference = rank.tables.get("trace")
        rank._cache[key] = None
        if reference is not None:

            def note(path: str, text: str) -> None:
                rank.note(rank.relative(Path(path)), text)

            collector, cut = _Collector(), False
            for path in reference.paths:
                try:
                    for events in stream(path, note):
                        collector.add(events)
                except _Cut:
                    cut = True
                except OSError as error:
                    note(str(path), f"cannot be read: {type(error).__name__}: {error}")
            rank._cache[key] = collector.finish(cut) if collector.events else None
    return cast("Trace | None", rank._cache[key])


class _Cut(Exception):
    """The file ended before its array did; everything before was handed on."""


def stream(path: Path, note: Note) -> Iterator[list[_Event]]:
    """Events in blocks of about `BLOCK` bytes. Raises `_Cut` at the end of a file that ends in the middle."""
    decoder = msgspec.json.Decoder(list[_Event])
    lost = 0
    total = 0
    rest = b""
    started = False
    ended = False
    for data in _bytes(path, note):
        rest += data
        if not started:
            start = _first_event(rest)
            if start is None:
                if len(rest) > LARGEST_EVENT:
                    break
                continue
            rest, started = rest[start:], True
        if len(rest) < BLOCK // 2:
            continue
        events, rest, bad = _decode_most(decoder, rest)
        lost += bad
        if events:
            total += len(events)
            yield events
    if started:
        events, bad, ended = _decode_end(decoder, rest)
        lost += bad
        total += len(events)
        if events:
            yield events
    if lost:
        note(str(path), f"{lost} bytes of it are no events and were left out")
    if not total:
        note(
            str(path),
            "holds no events"
            if ended or not rest.strip()
            else "is no timeline: neither an array of events nor traceEvents",
        )
        return
    if not ended:
        note(str(path), f"ends in the middle: the {total} events before the cut were read")
        raise _Cut


def _bytes(path: Path, note: Note) -> Iterator[bytes]:
    with path.open("rb") as plain:
        zipped = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        source = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if zipped else plain
        try:
            while data := source.read(BLOCK):
                yield data
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            note(str(path), f"its compression is damaged ({error}); what lies before the defect was read")


def _first_event(data: bytes) -> int | None:
    """Position behind the bracket that opens the array of events."""
    text = data.lstrip(b"\xef\xbb\xbf" + _SPACE)
    skipped = len(data) - len(text)
    if text.startswith(b"["):
        return skipped + 1
    found = re.search(rb'"traceEvents"\s*:\s*\[', text)
    return skipped + found.end() if found else None


def _decode_most(decoder: Any, data: bytes) -> tuple[list[_Event], bytes, int]:
    """(events, what remains, bytes given up): all whole events of a block."""
    end = len(data)
    for _ in range(16):
        cut = _last_boundary(data, end)
        if cut is None:
            break
        try:
            return decoder.decode(b"[" + data[: cut[0]] + b"]"), data[cut[1] :], 0
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = cut[0]
    cut = _last_boundary(data, len(data))
    if cut is None:
        return [], data if len(data) < LARGEST_EVENT else b"", 0 if len(data) < LARGEST_EVENT else len(data)
    events, bad = _decode_around(decoder, data[: cut[0]])
    return events, data[cut[1] :], bad


def _last_boundary(data: bytes, end: int) -> tuple[int, int] | None:
    """(end of the event, start of the next) of the last boundary before `end`."""
    low = end
    while low > 0:
        low = max(0, low - 65_536)
        last = None
        for last in _BETWEEN.finditer(data, low, end):  # noqa: B007
            pass
        if last is not None:
            return last.start() + 1, last.end()
    return None


def _decode_around(decoder: Any, data: bytes) -> tuple[list[_Event], int]:
    """Events of a damaged piece, and the bytes given up: halves it until the defect stands alone."""
    try:
        return decoder.decode(b"[" + data + b"]"), 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        middle = _BETWEEN.search(data, len(data) // 2) or _first_boundary(data)
        if middle is None:
            return [], len(data)
        left, lost_left = _decode_around(decoder, data[: middle.start() + 1])
        right, lost_right = _decode_around(decoder, data[middle.end() :])
        return left + right, lost_left + lost_right


def _first_boundary(data: bytes) -> re.Match[bytes] | None:
    return _BETWEEN.search(data)


def _decode_end(decoder: Any, data: bytes) -> tuple[list[_Event], int, bool]:
    """(events, bytes given up, whether the array was closed) of what follows the last block."""
    text = data.strip(_SPACE)
    if text.startswith(b"]"):
        return [], 0, True
    end = len(text)
    for _ in range(16):
        bracket = text.rfind(b"]", 0, end)
        if bracket < 0:
            break
        try:
            return decoder.decode(b"[" + text[: bracket + 1]), 0, True
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = bracket
    try:
        return decoder.decode(b"[" + text.rstrip(b"," + _SPACE) + b"]"), 0, False
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    events, rest, bad = _decode_most(decoder, text)
    closed = rest.rstrip(_SPACE).endswith((b"]", b"}"))
    last = re.match(rb"\{.*\}\s*\]", rest, re.DOTALL)
    if last is not None:
        more, lost = _decode_around(decoder, rest[: rest.rfind(b"]")].rstrip(b"," + _SPACE))
        return events + more, bad + lost, True
    return events, bad, closed and bool(last)
