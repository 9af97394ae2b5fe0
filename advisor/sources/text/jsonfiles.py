"""communication.json and communication_matrix.json, and the rows that databases hold of the same.

MB in these files are 10⁶ bytes (2.064384 MB are 2 064 384 bytes in the database of the same operation), times are ms.
`Total Op Info` repeats the operations and is left out. Transports that moved nothing are no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from advisor.sources.frames import Unusable, build_frame, to_float, to_step
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsontext import load_json
from advisor.sources.topology import global_ranks
from advisor.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

BYTES_PER_MB = 1e6
US_PER_MS = 1e3
_TOTAL = "Total Op Info"
_TIME, _BANDWIDTH = "Communication Time Info", "Communication Bandwidth Info"
_P2P = re.compile(r"send|receive|recv", re.IGNORECASE)
_AGGREGATE = re.compile(r"top\d+|middle|bottom\d+|total")
_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")
_TIMES = {
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
    return "p2p" if _P2P.search(name) or section == "p2p" else "collective"


def number(value: Any) -> float | None:
    """A finite number of a JSON or database value, None for everything else."""
    try:
        return to_float(value)
    except Unusable:
        return None


def _operations(data: Any, file: str, note: Note) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """(step, section, name, group, content) of every operation of a rank's communication file."""
    odd = 0
    for step, sections in data.items() if isinstance(data, dict) else ():
        if not isinstance(sections, dict):
            odd += 1
            continue
        for section, operations in sections.items():
            if not isinstance(operations, dict):
                odd += 1
                continue
            for key, content in operations.items():
                if key == _TOTAL:
                    continue
                if not isinstance(content, dict):
                    odd += 1
                    continue
                name, group = split_operation(key)
                yield to_step(step), section, name, group, content
    if odd or not isinstance(data, dict):
        note(file, f"has {odd or 1} entries that are not as in a communication file; they were left out")


def collectives_frame(data: Any, file: str, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """One row per operation and step of a communication file's content."""
    rows: dict[str, list[Any]] = {name: [] for name in ("step", "name", "group", "kind", "start_ns", *_TIMES)}
    for step, section, name, group, content in _operations(data, file, note):
        times = content.get(_TIME)
        if not isinstance(times, dict):
            continue
        fields = (step, name, group, kind_of(section, name), times.get("Start Timestamp(us)"))
        for column, value in zip(rows, (*fields, *(times.get(key) for key in _TIMES.values())), strict=True):
            rows[column].append(value)
    scales = {"start_ns": US_PER_MS, **dict.fromkeys(_TIMES, US_PER_MS)}
    return _finish("collectives", rows, scales, {"start_ns": "Start Timestamp(us)", **_TIMES}, file, columns, note)


def transports_frame(data: Any, file: str, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """One row per operation, step and transport that moved something."""
    rows: dict[str, list[Any]] = {column.name: [] for column in TABLES["transports"].columns}
    for step, _, name, group, content in _operations(data, file, note):
        bandwidth = content.get(_BANDWIDTH)
        for transport, entry in bandwidth.items() if isinstance(bandwidth, dict) else ():
            if not isinstance(entry, dict):
                continue
            size, time = entry.get("Transit Size(MB)"), entry.get("Transit Time(ms)")
            if not number(size) and not number(time):
                continue
            distribution = entry.get("Size Distribution")
            pairs = list(distribution.items()) if isinstance(distribution, dict) else []
            packets = packet_sizes((key, *_pair(value)) for key, value in pairs)
            add_transport(rows, step, name, group, transport, size, time, entry.get("Large Packet Ratio"), packets)
    scales = {"size_bytes": BYTES_PER_MB, "time_us": US_PER_MS}
    return _finish("transports", rows, scales, {}, file, columns, note)


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) > 1 else (None, None)


def packet_sizes(entries: Iterator[tuple[Any, Any, Any]]) -> tuple[tuple[float, float, float], ...]:
    """(bytes, count, us) of each packet size from (MB, count, ms); entries with a hole are left out."""
    packets = []
    for size, count, time in entries:
        numbers = (number(size), number(count), number(time))
        if numbers[0] is not None and numbers[1] is not None and numbers[2] is not None:
            packets.append((numbers[0] * BYTES_PER_MB, numbers[1], numbers[2] * US_PER_MS))
    return tuple(packets)


def add_transport(
    rows: dict[str, list[Any]], step: str, name: str, group: str, transport: str, size: Any, time: Any, large: Any,
    packets: tuple[tuple[float, float, float], ...],
) -> None:  # fmt: skip
    """Appends one row; counts are unknown, not zero, where the file lists no packet."""
    ratio = number(large)
    count = sum(packet[1] for packet in packets) if packets else None
    small = None if ratio is None or count is None else count * (1.0 - min(max(ratio, 0.0), 1.0))
    row = (step, name, group, transport, size, time, large if packets else None, count, small, packets)
    for cells, value in zip(rows.values(), row, strict=True):
        cells.append(value)


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
    entries = []
    by_group: dict[str, set[tuple[int, int]]] = {}
    for step, _, name, group, content in _operations(data, file, note):
        for key, link in content.items():
            match = _LINK.fullmatch(key)
            if match and isinstance(link, dict):
                ends = int(match.group(1)), int(match.group(2))
                by_group.setdefault(group, set()).add(ends)
                fields = (link.get("Transport Type"), link.get("Transit Size(MB)"), link.get("Transit Time(ms)"))
                entries.append((step, name, group, ends, *fields))
    return place_links(entries, by_group, file, columns, note, rank=rank, groups=groups, world_size=world_size)


def place_links(
    entries: Sequence[tuple[str, str, str, tuple[int, int], Any, Any, Any]],
    by_group: dict[str, set[tuple[int, int]]],
    file: str,
    columns: Sequence[str] | None,
    note: Note,
    *,
    rank: int | None,
    groups: dict[str, tuple[int, ...]] | None,
    world_size: int,
) -> pd.DataFrame | None:
    """The links table from (step, name, group, ends, transport, MB, ms), with global ranks as far as they are known."""
    known = {
        group: None if rank is None else global_ranks(sorted(ends), group, rank, groups or {}, world_size)
        for group, ends in by_group.items()
    }
    rows: dict[str, list[Any]] = {column.name: [] for column in TABLES["links"].columns}
    nameless = set()
    for step, name, group, (source, destination), transport, size, time in entries:
        names = known[group]
        if names is not None:
            if names.get(source) is None or names.get(destination) is None:
                nameless.add(group)
            ends = names.get(source), names.get(destination)
        else:
            ends = source, destination
        head, _, level = name.rpartition("-")
        aggregate = bool(_AGGREGATE.fullmatch(level))
        plain, level = (head.partition("@")[0], level) if aggregate else (name, "")
        values = (step, plain, group, *ends, transport, size, time, None if aggregate else 1, level)
        for cells, value in zip(rows.values(), values, strict=True):
            cells.append(value)
    if nameless:
        note(file, f"numbers the members of {len(nameless)} groups without saying which ranks they are; these links "
                   "have no rank (profiler_metadata.json or the other ranks' files would tell)")  # fmt: skip
    scales = {"size_bytes": BYTES_PER_MB, "time_us": US_PER_MS}
    frame = _finish("links", rows, scales, {}, file, columns, note)
    if frame is not None and "aggregate" in frame:
        frame["aggregate"] = rows["aggregate"]
    return frame


def _finish(
    table: str,
    rows: dict[str, list[Any]],
    scales: dict[str, float],
    headings: dict[str, str],
    file: str,
    columns: Sequence[str] | None,
    note: Note,
) -> pd.DataFrame | None:
    if not next(iter(rows.values())):
        return None
    return build_frame(TABLES[table], rows, columns, note, file, headings=headings, scales=scales)


def _tell_nothing(frame: pd.DataFrame | None, data: Any, file: str, what: str, note: Note) -> None:
    """An object that holds none of the entries looked for is not what its name says; an empty one is just empty."""
    if frame is None and isinstance(data, dict) and data:
        note(file, f"holds no {what}")


def _each(reference: TableRef, note: Note) -> Iterator[tuple[Any, str]]:
    for path in reference.paths:
        data = load_json(path, note)
        if data is not None:
            yield data, str(path)


def _stack(frames: list[pd.DataFrame | None]) -> pd.DataFrame | None:
    import pandas as pd

    present = [frame for frame in frames if frame is not None]
    return present[0] if len(present) == 1 else pd.concat(present, ignore_index=True) if present else None


@reader("json.collectives")
def read_collectives(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """communication.json as operations."""
    frames = []
    for data, file in _each(reference, note):
        frames.append(collectives_frame(data, file, columns, note))
        _tell_nothing(frames[-1], data, file, "collectives", note)
    return _stack(frames)


@reader("json.transports")
def read_transports(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """communication.json as transports."""
    frames = []
    for data, file in _each(reference, note):
        frames.append(transports_frame(data, file, columns, note))
        _tell_nothing(frames[-1], data, file, "transports", note)
    return _stack(frames)


@reader("json.links")
def read_links(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """communication_matrix.json; options say whose it is and who is in which group."""
    options = {key: reference.options.get(key) for key in ("rank", "groups")}
    size = reference.options.get("world_size") or 0
    frames = []
    for data, file in _each(reference, note):
        frames.append(links_frame(data, file, columns, note, world_size=size, **options))
        _tell_nothing(frames[-1], data, file, "links", note)
    return _stack(frames)
