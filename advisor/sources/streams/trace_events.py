"""Events of a timeline in blocks, whatever happened to the file: gzipped, cut in the middle, damaged inside."""

from __future__ import annotations

import codecs
import itertools
import re
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from advisor.basics.arrays import Ints
from advisor.sources.archives import allowed_bytes
from advisor.sources.reference import Note
from advisor.sources.text.textfiles import detect_encoding, require_file

BLOCK = 1 << 19
"""Bytes decoded at once; larger blocks leave the processor's caches and are slower."""
_PACKED_BLOCK = 1 << 14
"""Bytes unpacked at once: behind the end of each part of a packed file the rest of the block is copied."""
LARGEST_EVENT = 1 << 26

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""How decoding fails: an event whose arguments are nested too deep costs itself, not those around it."""
_BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_NONE = msgspec.Raw(b"")
_SPACE = b" \t\r\n"


class Event(msgspec.Struct, gc=False):
    """One event; `ts` stays text until it is needed, its digits are more than a float carries. `dur` is a number, or a
    text that is one: the decoder turns both into a float."""

    ph: str
    name: str = ""
    pid: int | str = 0
    ts: msgspec.Raw = _NONE
    dur: float | None = None
    id: msgspec.Raw = _NONE
    """Of an end of a link: what its other end has, too."""


class _Ran(msgspec.Struct, gc=False, rename={"core": "Task Type"}):
    """What the arguments of a device's task are read for: the core that it ran on."""

    core: Any = None


class TaskEvent(Event, gc=False):
    """An event with what only a device's task tells: its stream, and where it ran."""

    tid: int | str = 0
    args: _Ran | None = None


class OddEvent(msgspec.Struct, gc=False):
    """An event whose duration may be anything; one that is no number does not spoil the events around it."""

    ph: str
    name: str = ""
    pid: int | str = 0
    ts: msgspec.Raw = _NONE
    dur: Any = None
    id: msgspec.Raw = _NONE


class Description(msgspec.Struct, gc=False):
    """An event that names a process, samples a counter, marks an iteration or tells how much a collective exchanges:
    rare, and the only kind whose arguments are read."""

    ph: str
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: msgspec.Raw = _NONE
    dur: Any = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)


CLOCK = "AI Core Freq"
"""Name of the counter that samples the AI Core's clock."""
ITERATION = b'"Iteration Time('
"""Stands in the arguments of the span that msprof draws for an execution of a graph, before its unit."""
ELEMENTS = b'"data_type"'
"""Stands in the arguments of a collective beside the number of its elements."""
NAMES_PROCESS = b'"process_name"'
"""Stands in the event that gives a process its title."""
_WORDS = (NAMES_PROCESS, f'"{CLOCK}"'.encode(), ITERATION)
_AROUND = 1000
"""Bytes before and after one of these words within which its event lies."""
_FLAT = re.compile(rb"\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}")


def descriptions(data: bytes, words: Sequence[bytes] = _WORDS) -> Iterator[Description]:
    """The events of a block that name a process, tell the AI Core's clock, or mark an iteration; or those with other
    words."""
    for word in words:
        at = data.find(word)
        while at >= 0:
            for found in _FLAT.finditer(data, max(0, at - _AROUND), at + _AROUND):
                if found.start() < at < found.end():
                    try:
                        yield _DESCRIPTION.decode(found.group())
                    except BROKEN:
                        continue
            at = data.find(word, at + len(word))


_DESCRIPTION = msgspec.json.Decoder(Description)
_EVENTS = msgspec.json.Decoder(list[Event], strict=False)
_TASKS = msgspec.json.Decoder(list[TaskEvent], strict=False)
_ODD_EVENTS = msgspec.json.Decoder(list[OddEvent])


AnEvent = TypeVar("AnEvent", bound=Event)
Decode = Callable[[bytes], list[AnEvent]]
"""Gives the events of a whole array, or raises one of BROKEN."""


def decode_tasks(data: bytes) -> list[TaskEvent]:
    """The events of a whole array with what tasks tell; where one is odd, none of them tells it. Raises where it is
    none."""
    try:
        return _TASKS.decode(data)
    except msgspec.ValidationError:
        return [TaskEvent(event.ph, event.name, event.pid, event.ts, event.dur, event.id) for event in _decode(data)]


def _decode(data: bytes) -> list[Event]:
    """The events of a whole array. Raises where it is none."""
    try:
        return _EVENTS.decode(data)
    except msgspec.ValidationError:
        events = _ODD_EVENTS.decode(data)
    return [Event(event.ph, event.name, event.pid, event.ts, _number(event.dur), event.id) for event in events]


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def nanoseconds(texts: Sequence[Any]) -> Ints:
    """Exact nanoseconds of JSON texts or numbers in microseconds; -1 where it is neither."""
    flat = np.frombuffer(b"".join(texts), np.uint8)
    widths = np.fromiter(map(len, texts), np.int64, len(texts))
    found = np.unique(widths)
    if len(found) == 1:
        return _of_one_width(flat.reshape(len(texts), found[0]))
    starts = np.cumsum(widths) - widths
    instants = np.empty(len(texts), np.int64)
    for width in found:  # numbers drop their last zeros
        at = np.flatnonzero(widths == width)
        instants[at] = _of_one_width(flat[starts[at, None] + np.arange(width)])
    return instants


def _of_one_width(texts: npt.NDArray[np.uint8]) -> Ints:
    """Nanoseconds of texts that are equally long, a row each."""
    digits = texts[:, 1:-1] if (texts[:1, :1] == _QUOTE).any() else texts
    point = next(iter(np.flatnonzero(digits[:1] == _POINT)), digits.shape[1])
    decimals = digits[:, point + 1 :]
    least = len(_PLACES) - (_DECIMALS - decimals.shape[1])  # the last digit's place
    if (
        0 < point <= len(_PLACES) - _DECIMALS
        and least <= len(_PLACES)
        and (digits[:, point : point + 1] == _POINT).all()
    ):
        digits = np.concatenate((digits[:, :point], decimals), axis=1) - ord("0")
        if digits.max(initial=0) <= 9:
            places = _PLACES[least - digits.shape[1] : least]
            high, low = (digits.astype(np.float64) @ places).astype(np.int64).T
            joined: Ints = np.maximum(high * 10**_LOW + low, -1)  # what is too much for 64 bits became negative
            return joined
    return np.array([_exact(text.tobytes()) for text in texts], np.int64)


_QUOTE, _POINT = ord('"'), ord(".")
_DECIMALS = 3
"""Decimals of a microsecond that are nanoseconds."""
_DIGITS = 30
"""No instant has more of them, whatever its unit."""
_LOW = 12
"""Digits that are added up apart from those before them: sums of either half are exact in a float64."""
_PLACES = np.array([(10.0 ** (i - _LOW), 0.0) if i >= _LOW else (0.0, 10.0**i) for i in range(18, -1, -1)])


def _exact(text: bytes) -> int:
    try:
        number = Decimal(text.strip(b'"').strip().decode())
        if number.adjusted() > _DIGITS:
            return -1
        value = int(number * (1 if number.adjusted() >= 17 else 1000))
    except (ArithmeticError, ValueError):
        return -1
    return value if 0 <= value < 1 << 63 else -1


class _TooMuch(Exception):
    """A packed file that holds more than it should."""


class Cut(Exception):
    """The file ended before its array did; everything before was handed on."""


def stream(path: Path, note: Note) -> Iterator[tuple[list[Event], bytes]]:
    """(events, their bytes) in blocks of about `BLOCK`. Raises `Cut` at the end of a file that ends in the middle."""
    return stream_as(_decode, path, note)


def stream_as(decode: Decode[AnEvent], path: Path, note: Note) -> Iterator[tuple[list[AnEvent], bytes]]:
    """The same of events that are decoded so."""
    lost = 0
    total = 0
    rest = b""
    started = False
    ended = False
    waiting: list[bytes] = []
    size = wanted = 0
    for data in itertools.chain(_bytes(path, note), (b"",)):
        waiting.append(data)
        size += len(data)
        if size < wanted and data:
            continue
        rest = b"".join((rest, *waiting))
        waiting.clear()
        # what holds no whole event is looked at again when it has doubled: each byte a few times, not a hundred
        size, wanted = 0, min(max(len(rest), BLOCK // 4), LARGEST_EVENT)
        if not started:
            start = _first_event(rest)
            if start is None:
                if len(rest) > LARGEST_EVENT:
                    break
                continue
            rest, started = rest[start:], True
        if len(rest) < BLOCK // 2:
            continue
        block = rest
        events, rest, bad = _decode_most(block, decode)
        if len(rest) < len(block):
            wanted = 0
        lost += bad
        total += len(events)
        if events:
            yield events, block
        del events, block  # so that the next ones take their memory, which the processor still holds
    if started:
        events, bad, ended = _decode_end(rest, decode)
        lost += bad
        total += len(events)
        if events:
            yield events, rest
    if lost:
        note(str(path), f"{lost} bytes of it are no events and were left out")
    if not total:
        if started and lost:
            why = "none of its events has what an event of a timeline has (name, ph, ts)"
        elif ended or not rest.strip():
            why = "holds no events"
        else:
            why = "is no timeline: neither an array of events nor traceEvents"
        note(str(path), why)
        return
    if not ended:
        note(str(path), f"ends in the middle: the {total} events before the cut were read")
        raise Cut


def _bytes(path: Path, note: Note) -> Iterator[bytes]:
    require_file(path)
    with path.open("rb") as stream:
        sample = stream.read(4096)
        stream.seek(0)
        if not sample.startswith(b"\x1f\x8b"):
            codec = detect_encoding(sample)
            decoder = codecs.getincrementaldecoder(codec)("replace") if codec.startswith(("utf-16", "utf-32")) else None
            while data := stream.read(BLOCK):
                if not data.strip(b"\x00"):
                    note(str(path), "holds zeros where events should follow; the rest was not read")
                    return
                yield data if decoder is None else decoder.decode(data).encode()
            return
        stream.seek(0)
        try:
            whole = yield from _unzipped(stream, allowed_bytes(path.stat().st_size))
        except _TooMuch:
            note(str(path), "holds far more than its own size; the rest was not read")
        except zlib.error as error:
            note(str(path), f"its compression is damaged ({error}); what lies before the defect was read")
        else:
            if not whole:
                note(str(path), "its compression is damaged (it ends in the middle); what lies before was read")


def _unzipped(stream: BinaryIO, most: int) -> Generator[bytes, None, bool]:
    """The contents in blocks; whether they were complete. gzip's own reader gives nothing of a broken block. Raises
    _TooMuch behind so many bytes."""
    unzip = zlib.decompressobj(31)
    while data := stream.read(_PACKED_BLOCK):
        while data:
            if unzip.eof:
                data += stream.read(1) if len(data) == 1 else b""
                if not data.startswith(b"\x1f\x8b"):
                    return True
                unzip = zlib.decompressobj(31)
            block = unzip.decompress(data, BLOCK)
            most -= len(block)
            if most < 0:
                raise _TooMuch
            if block:
                yield block
            data = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    if block := unzip.flush():
        yield block
    return unzip.eof


def _first_event(data: bytes) -> int | None:
    """Position behind the bracket that opens the array of events."""
    text = data.lstrip(b"\xef\xbb\xbf" + _SPACE)
    skipped = len(data) - len(text)
    if text.startswith(b"["):
        return skipped + 1
    found = re.search(rb'"traceEvents"\s*:\s*\[', text)
    return skipped + found.end() if found else None


def _decode_most(data: bytes, decode: Decode[AnEvent]) -> tuple[list[AnEvent], bytes, int]:
    """(events, what remains, bytes given up): all whole events of a block."""
    end = len(data)
    for _ in range(16):
        cut = _last_boundary(data, end)
        if cut is None:
            break
        try:
            whole = b"".join((b"[", memoryview(data)[: cut[0]], b"]"))
            return decode(whole), data[cut[1] :], 0
        except BROKEN:
            end = cut[0]
    cut = _last_boundary(data, len(data))
    if cut is None:
        return [], data if len(data) < LARGEST_EVENT else b"", 0 if len(data) < LARGEST_EVENT else len(data)
    events, bad = _decode_around(data[: cut[0]], decode)
    return events, data[cut[1] :], bad


def _last_boundary(data: bytes, end: int) -> tuple[int, int] | None:
    """(end of the event, start of the next) of the last boundary before `end`."""
    low, width = end, 1024
    while low > 0:
        low, width = max(0, low - width), 4 * width
        last = None
        for last in _BETWEEN.finditer(data, low, end):  # noqa: B007
            pass
        if last is not None:
            return last.start() + 1, last.end()
    return None


def _decode_around(data: bytes, decode: Decode[AnEvent]) -> tuple[list[AnEvent], int]:
    """Events of a damaged piece, and the bytes given up: halves it until the defect stands alone."""
    try:
        return decode(b"[" + data + b"]"), 0
    except BROKEN:
        middle = _BETWEEN.search(data, len(data) // 2)
        # else the last one before the middle: the first would take one event off a long piece at a time
        cut = _last_boundary(data, len(data) // 2) if middle is None else (middle.start() + 1, middle.end())
        if cut is None:
            return [], len(data)
        left, lost_left = _decode_around(data[: cut[0]], decode)
        right, lost_right = _decode_around(data[cut[1] :], decode)
        return left + right, lost_left + lost_right


def _decode_end(data: bytes, decode: Decode[AnEvent]) -> tuple[list[AnEvent], int, bool]:
    """(events, bytes given up, whether the array was closed) of what follows the last block. A second list of events
    behind the first one is given up, members of another kind are not."""
    text = data.strip(_SPACE)
    if text.startswith(b"]"):
        return [], 0, True
    end = len(text)
    for _ in range(16):
        bracket = text.rfind(b"]", 0, end)
        if bracket < 0:
            break
        try:
            behind = text[bracket + 1 :]
            return decode(b"[" + text[: bracket + 1]), len(behind) if b'"ph"' in behind else 0, True
        except BROKEN:
            end = bracket
    try:
        return decode(b"[" + text.rstrip(b"," + _SPACE) + b"]"), 0, False
    except BROKEN:
        pass
    events, rest, bad = _decode_most(text, decode)
    closed = rest.rstrip(_SPACE).endswith((b"]", b"}"))
    last = re.match(rb"\{.*\}\s*\]", rest, re.DOTALL)
    if last is not None:
        more, lost = _decode_around(rest[: rest.rfind(b"]")].rstrip(b"," + _SPACE), decode)
        return events + more, bad + lost, bool(more)
    return events, bad, closed and bool(last)
