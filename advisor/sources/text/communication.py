"""communication.json and communication_matrix.json as profilers write them, decoded once into typed columns.

A file that is not entirely as expected (cut, texts for numbers, unknown shapes, keys twice) is left to `jsonfiles`,
which looks at each value and says what is wrong; both give the same columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, compress
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints
from advisor.sources.coded import Coded
from advisor.sources.frames import to_step
from advisor.sources.text.jsontext import LOOKED_THROUGH
from advisor.sources.text.textfiles import LARGEST, require_file

TOTAL = "Total Op Info"
T = TypeVar("T")
Steps = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""step -> p2p or collective -> operation -> what is told of it."""
_Number = float | None


class Times(msgspec.Struct, gc=False):
    """Communication Time Info: ms, and when it began in µs."""

    start_ns: int | float | None = msgspec.field(default=None, name="Start Timestamp(us)")
    elapsed_us: _Number = msgspec.field(default=None, name="Elapse Time(ms)")
    transit_us: _Number = msgspec.field(default=None, name="Transit Time(ms)")
    wait_us: _Number = msgspec.field(default=None, name="Wait Time(ms)")
    sync_us: _Number = msgspec.field(default=None, name="Synchronization Time(ms)")
    idle_us: _Number = msgspec.field(default=None, name="Idle Time(ms)")


class Band(msgspec.Struct, gc=False):
    """What one transport moved; packets by their size in MB are (count, ms)."""

    size: _Number = msgspec.field(default=None, name="Transit Size(MB)")
    time: _Number = msgspec.field(default=None, name="Transit Time(ms)")
    large: _Number = msgspec.field(default=None, name="Large Packet Ratio")
    packets: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict, name="Size Distribution")


class Operation(msgspec.Struct, gc=False):
    """One collective; either part may be missing."""

    times: Times | None = msgspec.field(default=None, name="Communication Time Info")
    bands: dict[str, Band] = msgspec.field(default_factory=dict, name="Communication Bandwidth Info")


class Link(msgspec.Struct, gc=False):
    """What one operation moved between two ranks."""

    transport: str | None = msgspec.field(default=None, name="Transport Type")
    size: _Number = msgspec.field(default=None, name="Transit Size(MB)")
    time: _Number = msgspec.field(default=None, name="Transit Time(ms)")


_COMMUNICATION = msgspec.json.Decoder(dict[str, dict[str, dict[str, Operation]]])
_MATRIX = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, Link]]]])


class Listed(Struct):
    """The operations of a file, one entry each."""

    steps: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    contents: list[Any] = field(default_factory=list)
    filled: bool = True
    """Whether the file holds anything at all, operations or not."""

    def chosen(self, places: Sequence[int]) -> Listed:
        """These of the operations."""
        if len(places) == len(self.keys):
            return self
        return Listed(
            [self.steps[i] for i in places], [self.sections[i] for i in places], [self.keys[i] for i in places],
            [self.contents[i] for i in places], self.filled,
        )  # fmt: skip


class Transports(Struct, frozen=True):
    """The transports that moved something, by the place of their operation; packets by the place of their transport."""

    place: Ints
    names: Coded
    size_mb: Floats
    time_ms: Floats
    large: Floats
    owner: Ints
    packet_mb: Floats
    packets: Floats
    packet_ms: Floats


def decode_communication(path: Path) -> Listed | None:
    """The operations of a communication.json; None where it has to be looked at value by value."""
    return _listed(path, _COMMUNICATION)


def decode_matrix(path: Path, held: bytes | None = None) -> Listed | None:
    """The operations of a communication_matrix.json, likewise; `held` is its content where that was read already."""
    return _listed(path, _MATRIX, held)


def _listed(
    path: Path, decoder: msgspec.json.Decoder[dict[str, dict[str, dict[str, T]]]], held: bytes | None = None
) -> Listed | None:
    if held is None and require_file(path) > LARGEST:
        return None
    content = path.read_bytes() if held is None else held
    try:
        steps = decoder.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(content) < LOOKED_THROUGH and _bears_more(content, steps):
        return None
    listed = Listed(filled=bool(steps))
    for step, sections in steps.items():
        for section, operations in sections.items():
            operations.pop(TOTAL, None)
            listed.steps += [to_step(step)] * len(operations)
            listed.sections += [section] * len(operations)
            listed.keys += operations.keys()
            listed.contents += operations.values()
    return listed


def _bears_more(content: bytes, steps: Steps) -> bool:
    """Whether the file holds more objects, lists or members than were decoded: of a key that stands twice the first is
    lost. What is not decoded at all makes more of them as well."""
    sections = [section for named in steps.values() for section in named.values()]
    operations = [operation for section in sections for operation in section.values()]
    timed = [each for each in operations if isinstance(each, Operation)]
    times = [each.times for each in timed if each.times is not None]
    bands = [band for each in timed for band in each.bands.values()]
    links = [link for each in operations if isinstance(each, dict) for link in each.values()]
    objects = 1 + len(steps) + len(sections) + len(operations) + len(links) + len(times) + len(timed) + 2 * len(bands)
    members: Counter[str] = Counter()
    for kind, found in ((Times, times), (Band, bands), (Link, links)):
        for each in msgspec.structs.fields(kind) if found else ():
            members[each.encode_name] += len(found) - [*map(attrgetter(each.name), found)].count(None)
    lists = sum(len(band.packets) for band in bands)
    return (
        content.count(b"{") != objects
        or content.count(b"[") != lists
        or any(content.count(f'"{name}"'.encode()) != count for name, count in members.items())
    )


def transports_of(operations: Sequence[Operation]) -> Transports | None:
    """What moved; None where a packet's size is no number."""
    parts = [*map(attrgetter("bands"), operations)]
    bands = [*chain.from_iterable(map(dict.values, parts))]
    place = np.repeat(np.arange(len(parts)), [*map(len, parts)])
    cells = chain.from_iterable(map(attrgetter("size", "time", "large"), bands))
    size, time, large = np.array([*cells], np.float64).reshape(-1, 3).T  # None becomes NaN
    moved = (np.nan_to_num(size) != 0) | (np.nan_to_num(time) != 0)
    chosen = moved.tolist()
    names = [*compress(chain.from_iterable(parts), chosen)]
    packets = [*map(attrgetter("packets"), compress(bands, chosen))]
    keys = [*chain.from_iterable(packets)]
    known = _sizes(set(keys))
    if known is None:
        return None
    pairs = chain.from_iterable(chain.from_iterable(map(dict.values, packets)))
    numbers = np.fromiter(pairs, np.float64, 2 * len(keys)).reshape(-1, 2)
    return Transports(
        place[moved], Coded.of(names), size[moved], time[moved], large[moved],
        np.repeat(np.arange(len(packets)), [*map(len, packets)]),
        np.fromiter(map(known.__getitem__, keys), np.float64, len(keys)), numbers[:, 0], numbers[:, 1],
    )  # fmt: skip


def _sizes(keys: Collection[str]) -> dict[str, float] | None:
    """The sizes that stand in these keys; None where one is no number."""
    if "".join(keys).strip("0123456789.eE+-"):
        return None
    try:
        known = {key: float(key) for key in keys}
    except ValueError:
        return None
    return known if all(map(math.isfinite, known.values())) else None
