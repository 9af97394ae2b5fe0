"""communication.json and communication_matrix.json, and the rows that databases hold of the same.

MB in these files are 10⁶ bytes (2.064384 MB are 2 064 384 bytes in the database of the same operation), times are ms.
`Total Op Info` repeats the operations and is left out. Transports that moved nothing are no rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.coded import Coded
from advisor.sources.frames import Unusable, build_frame, to_float, to_step
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.communication import (
    TOTAL,
    Listed,
    Transports,
    decode_communication,
    decode_matrix,
    transports_of,
)
from advisor.sources.text.jsontext import load_json
from advisor.sources.topology import global_ranks
from advisor.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

BYTES_PER_MB = 1e6
US_PER_MS = 1e3
_TIME, _BANDWIDTH = "Communication Time Info", "Communication Bandwidth Info"
_P2P = re.compile(r"send|receive|recv", re.IGNORECASE)
_AGGREGATE = re.compile(r"top[0-9]+|middle|bottom[0-9]+|total")
_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_TIMES = {
    "start_ns": "Start Timestamp(us)",
    "elapsed_us": "Elapse Time(ms)",
    "transit_us": "Transit Time(ms)",
    "wait_us": "Wait Time(ms)",
    "sync_us": "Synchronization Time(ms)",
    "idle_us": "Idle Time(ms)",
}


def split_operation(key: str) -> tuple[str, str]:
    """(name, group): "hcom_allReduce__586_0_1@1752" is an operation of group 1752."""
    name, mark, group = key.rpartition("@")
    return (name, group) if mark else (key, "")


def kind_of(section: str, name: str) -> str:
    """p2p or collective. MindSpore files its sends under collective, so the name decides first."""
    return "p2p" if section == "p2p" or _is_p2p(name.rstrip("0123456789_")) else "collective"


@lru_cache(maxsize=1 << 10)
def _is_p2p(name: str) -> bool:
    """Whether it hands over; told of a name without the numbers at its end, of which there are few."""
    return _P2P.search(name) is not None


def number(value: Any) -> float | None:
    """A finite number of a JSON or database value, None for everything else."""
    try:
        return to_float(value)
    except Unusable:
        return None


def _operations(data: Any, file: str, note: Note) -> Listed:
    """Every operation of a rank's communication file, whatever else it holds; contents are objects as found."""
    listed, odd = Listed(), 0
    for step, sections in data.items() if isinstance(data, dict) else ():
        if not isinstance(sections, dict):
            odd += 1
            continue
        for section, operations in sections.items():
            if not isinstance(operations, dict):
                odd += 1
                continue
            for key, content in operations.items():
                if key == TOTAL:
                    continue
                if not isinstance(content, dict):
                    odd += 1
                    continue
                odd += _odd_parts(content)
                listed.steps.append(to_step(step))
                listed.sections.append(section)
                listed.keys.append(key)
                listed.contents.append(content)
    if odd or not isinstance(data, dict):
        note(file, f"has {odd or 1} entries that are not as in a communication file; they were left out")
    return listed


def _odd_parts(content: Mapping[str, Any]) -> int:
    """Parts of an operation that are there and are no objects: its times, what it moved, and one transport's share."""
    bands = content.get(_BANDWIDTH)
    parts = [content.get(_TIME), bands, *(bands.values() if isinstance(bands, dict) else ())]
    return sum(part is not None and not isinstance(part, dict) for part in parts)


Communication = tuple["pd.DataFrame | None", "pd.DataFrame | None", "pd.DataFrame | None"]
"""(collectives, transports, packets): one row per operation and step, one per transport that moved something of it,
one per packet size of that."""


def communication_frames(data: Any, file: str, note: Note) -> Communication:
    """The tables of a communication file's content, whatever it is."""
    listed = _operations(data, file, note)
    timed = listed.chosen([i for i, content in enumerate(listed.contents) if isinstance(content.get(_TIME), dict)])
    times = [content[_TIME] for content in timed.contents]
    cells = {column: [each.get(heading) for each in times] for column, heading in _TIMES.items()}
    return _collectives(timed, cells, file, note), *_found_transports(listed, file, note)


def _collectives(listed: Listed, cells: dict[str, list[Any]], file: str, note: Note) -> pd.DataFrame | None:
    split = [*map(split_operation, listed.keys)]
    rows: dict[str, Any] = {
        "step": listed.steps,
        "name": [name for name, _ in split],
        "group": [group for _, group in split],
        "kind": [kind_of(section, name) for section, (name, _) in zip(listed.sections, split, strict=True)],
        **cells,
    }
    return _finish("collectives", rows, dict.fromkeys(_TIMES, US_PER_MS), _TIMES, file, None, note)


def _found_transports(listed: Listed, file: str, note: Note) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    rows: dict[str, list[Any]] = {column.name: [] for column in TABLES["transports"].columns}
    packets: dict[str, list[Any]] = {column.name: [] for column in TABLES["packets"].columns}
    for step, key, content in zip(listed.steps, listed.keys, listed.contents, strict=True):
        bandwidth = content.get(_BANDWIDTH)
        for transport, entry in bandwidth.items() if isinstance(bandwidth, dict) else ():
            if not isinstance(entry, dict):
                continue
            size, time = entry.get("Transit Size(MB)"), entry.get("Transit Time(ms)")
            if not number(size) and not number(time):
                continue
            distribution = entry.get("Size Distribution")
            pairs = distribution.items() if isinstance(distribution, dict) else [(distribution, distribution)]
            found = packet_sizes([(key, *_pair(value)) for key, value in pairs], file, note)
            name, group = split_operation(key)
            large = entry.get("Large Packet Ratio")
            add_transport(rows, packets, (step, name, group, transport, size, time), large, found)
    return _finish("transports", rows, _MOVED, {}, file, None, note), packets_frame(packets, file, note)


_MOVED = {"size_bytes": BYTES_PER_MB, "time_us": US_PER_MS}


def packets_frame(packets: dict[str, Any], file: str, note: Note) -> pd.DataFrame | None:
    """The packets table from columns in MB and ms."""
    return _finish("packets", packets, _MOVED, {}, file, None, note)


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) > 1 else (value, value)


def packet_sizes(entries: Sequence[tuple[Any, Any, Any]], file: str, note: Note) -> list[tuple[float, float, float]]:
    """(MB, count, ms) of each packet size; entries with a hole are left out, and those with anything else are told."""
    packets = []
    for entry in entries:
        size, count, time = map(number, entry)
        if size is not None and count is not None and time is not None:
            packets.append((size, count, time))
        elif any(given is not None and known is None for given, known in zip(entry, (size, count, time), strict=True)):
            note(file, "tells sizes, numbers or times of packets that are no numbers; left out", ("packets",))
    return packets


def add_transport(
    rows: dict[str, list[Any]], packets: dict[str, list[Any]], cells: tuple[Any, ...], large: Any,
    found: Sequence[tuple[float, float, float]],
) -> None:  # fmt: skip
    """Appends one transport and its packets; counts are unknown, not zero, where the file lists no packet."""
    ratio = number(large)
    count = sum(packet[1] for packet in found) if found else None
    small = None if ratio is None or count is None else count * (1.0 - min(max(ratio, 0.0), 1.0))
    for column, value in zip(rows.values(), (*cells, large if found else None, count, small), strict=True):
        column.append(value)
    for packet in found:
        for column, value in zip(packets.values(), (cells[3], *packet), strict=True):
            column.append(value)


def _transports(
    listed: Listed, moved: Transports, file: str, note: Note
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """As `_found_transports`, of columns that are all as expected."""
    split = [*map(split_operation, listed.keys)]
    operations = {
        "step": Coded(moved.place, listed.steps),
        "name": Coded(moved.place, [name for name, _ in split]),
        "group": Coded(moved.place, [group for _, group in split]),
    }
    return moved_frames(operations, moved, file, note)


def moved_frames(
    operations: Mapping[str, Any], moved: Transports, file: str, note: Note
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """(transports, packets) from columns without defects; `operations` says of each transport whose it is."""
    import numpy as np

    length = len(moved.names)
    told = np.bincount(moved.owner, minlength=length) > 0
    count = np.where(told, np.bincount(moved.owner, moved.packets, minlength=length), np.nan)
    rows: dict[str, Any] = {
        **operations,
        "transport": moved.names,
        "size_bytes": moved.size_mb,
        "time_us": moved.time_ms,
        "large_packet_ratio": np.where(told, moved.large, np.nan),
        "packets": count,
        "small_packets": count * (1.0 - np.clip(moved.large, 0.0, 1.0)),
    }
    packets = {
        "transport": moved.names.chosen(moved.owner),
        "size_bytes": moved.packet_mb,
        "count": moved.packets,
        "time_us": moved.packet_ms,
    }
    return _finish("transports", rows, _MOVED, {}, file, None, note), packets_frame(packets, file, note)


def links_frame(
    data: Any,
    file: str,
    columns: Sequence[str] | None,
    note: Note,
    *,
    rank: int | None = None,
    groups: dict[str, tuple[int, ...]] | None = None,
    world_size: int = 0,
) -> pd.DataFrame | None:
    """One row per operation, step and link. With `rank` the numbers are those inside a group and are made global."""
    entries, odd = [], 0
    listed = _operations(data, file, note)
    for step, operation, content in zip(listed.steps, listed.keys, listed.contents, strict=True):
        for key, link in content.items():
            match = _LINK.fullmatch(key)
            odd += match is not None and not isinstance(link, dict)
            if match and isinstance(link, dict):
                fields = (link.get("Transport Type"), link.get("Transit Size(MB)"), link.get("Transit Time(ms)"))
                ends = int(match.group(1)), int(match.group(2))
                entries.append((step, *split_operation(operation), ends, *fields))
    if odd:
        note(file, f"tells nothing usable of {odd} links; they were left out", ("links",))
    return place_links(entries, file, columns, note, rank=rank, groups=groups, world_size=world_size)


def _links(listed: Listed) -> list[Link]:
    """The links of decoded operations, in order; what bears no two numbers is none."""
    return [
        (step, *split_operation(operation), (int(match.group(1)), int(match.group(2))), link.transport, link.size,
         link.time)
        for step, operation, content in zip(listed.steps, listed.keys, listed.contents, strict=True)
        for key, link in content.items()
        if (match := _LINK.fullmatch(key))
    ]  # fmt: skip


Link = tuple[str, str, str, tuple[int, int], Any, Any, Any]
"""(step, name, group, (source, destination), transport, MB, ms)"""


def place_links(
    entries: Sequence[Link],
    file: str,
    columns: Sequence[str] | None,
    note: Note,
    *,
    rank: int | None,
    groups: dict[str, tuple[int, ...]] | None,
    world_size: int,
) -> pd.DataFrame | None:
    """The links table, with global ranks as far as they are known."""
    steps, names, groups_of, links, transports, sizes, times = zip(*entries, strict=True) if entries else ((),) * 7
    by_group: dict[str, set[tuple[int, int]]] = {}
    for group, link in dict.fromkeys(zip(groups_of, links, strict=True)):
        by_group.setdefault(group, set()).add(link)
    placed: dict[tuple[str, tuple[int, int]], tuple[int | None, int | None]] = {}
    nameless = set()
    for group, ends in by_group.items():
        known = None if rank is None else global_ranks(sorted(ends), group, rank, groups or {}, world_size)
        for link in ends:
            placed[group, link] = link if known is None else (known.get(link[0]), known.get(link[1]))
            if None in placed[group, link]:
                nameless.add(group)
    leveled = {name: _level(name) for name in dict.fromkeys(names)}
    ends_of = [placed[pair] for pair in zip(groups_of, links, strict=True)]
    levels = [leveled[name] for name in names]
    rows: dict[str, Sequence[Any]] = dict(zip(
        (column.name for column in TABLES["links"].columns),
        (steps, [plain for plain, _ in levels], groups_of, [a for a, _ in ends_of], [b for _, b in ends_of],
         transports, sizes, times, [None if level else 1 for _, level in levels], [level for _, level in levels]),
        strict=True,
    ))  # fmt: skip
    if nameless:
        note(file, f"numbers the members of {len(nameless)} groups without saying which ranks they are; these links "
                   "have no rank (profiler_metadata.json or the other ranks' files would tell)")  # fmt: skip
    scales = {"size_bytes": BYTES_PER_MB, "time_us": US_PER_MS}
    frame = _finish("links", rows, scales, {}, file, columns, note)
    if frame is not None and "aggregate" in frame:
        frame["aggregate"] = rows["aggregate"]
    return frame


def _level(name: str) -> tuple[str, str]:
    """(name without the ending of a sum over operations, which sum it is; empty for an operation)."""
    head, _, level = name.rpartition("-")
    return (head.partition("@")[0], level) if _AGGREGATE.fullmatch(level) else (name, "")


def _finish(
    table: str,
    rows: Mapping[str, Sequence[Any]],
    scales: Mapping[str, float],
    headings: Mapping[str, str],
    file: str,
    columns: Sequence[str] | None,
    note: Note,
) -> pd.DataFrame | None:
    if not len(next(iter(rows.values()))):
        return None
    return build_frame(TABLES[table], rows, columns, note, file, headings=headings, scales=scales)


def _stack(frames: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    import pandas as pd

    present = [frame for frame in frames if frame is not None]
    return present[0] if len(present) == 1 else pd.concat(present, ignore_index=True) if present else None


@reader("json.communication")
def read_communication(
    reference: TableRef, columns: Sequence[str] | None, note: Note
) -> dict[str, pd.DataFrame | None]:
    """communication.json as operations, transports and packets: read once for all three, in all columns."""
    del columns
    parts = [_read_communication(path, note) for path in reference.paths]
    names = ("collectives", "transports", "packets")
    return {name: _stack([part[place] for part in parts]) for place, name in enumerate(names)}


def _read_communication(path: Path, note: Note) -> Communication:
    file = str(path)
    listed = decode_communication(path)
    moved = None if listed is None else transports_of(listed.contents)
    if listed is None or moved is None:
        data = load_json(path, note)
        if data is None:
            return None, None, None
        frame, *found = communication_frames(data, file, note)
        anything = isinstance(data, dict) and bool(data)
    else:
        timed = listed.chosen([i for i, operation in enumerate(listed.contents) if operation.times is not None])
        times = [*map(attrgetter("times"), timed.contents)]
        cells = {column: [*map(attrgetter(column), times)] for column in _TIMES}
        frame, *found = _collectives(timed, cells, file, note), *_transports(listed, moved, file, note)
        anything = listed.filled
    for part, what in ((frame, "collectives"), (found[0], "transports")):
        if part is None and anything:  # not what its name says; an empty object is just empty
            note(file, f"holds no {what}")
    return frame, found[0], found[1]


@reader("json.links")
def read_links(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """communication_matrix.json; options say whose it is and who is in which group."""
    options = {key: reference.options.get(key) for key in ("rank", "groups")}
    size = reference.options.get("world_size") or 0
    frames = []
    for path in reference.paths:
        file, listed = str(path), decode_matrix(path, reference.held.get(path))
        if listed is not None:
            frame = place_links(_links(listed), file, columns, note, world_size=size, **options)
            anything = listed.filled
        else:
            data = load_json(path, note)
            if data is None:
                continue
            frame = links_frame(data, file, columns, note, world_size=size, **options)
            anything = isinstance(data, dict) and bool(data)
        if frame is None and anything:
            note(file, "holds no links")
        frames.append(frame)
    return _stack(frames)
