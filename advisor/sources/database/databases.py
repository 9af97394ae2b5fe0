"""Tables from the databases of the profilers: the same canonical frames as from text.

Times in the main database are ns, in CommAnalyzer* ms (start in µs), in StepTraceTime µs; memory is bytes. Texts are
numbers into STRING_IDS. Ends of databases differ by version, so every column is asked for by name and may be absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.sources.coded import Coded
from advisor.sources.database import databasememory  # noqa: F401  (it registers its readers)
from advisor.sources.database.databaseframes import frame, lacks, texts
from advisor.sources.database.databasesteps import steps_from_tasks, steps_of
from advisor.sources.database.dbfile import Database, open_database
from advisor.sources.database.distinct import at_once, may_repeat
from advisor.sources.database.pages import Cells
from advisor.sources.database.sums import host_sums, moving_us, operator_sums
from advisor.sources.frames import numbers, to_step
from advisor.sources.metadata import hash_group
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.communication import TOTAL, Transports
from advisor.sources.text.jsonfiles import (
    US_PER_MS,
    Link,
    add_transport,
    kind_of,
    moved_frames,
    number,
    packet_sizes,
    packets_frame,
    place_links,
    split_operation,
)
from advisor.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

STEP_COLUMNS = {
    "step": "step",
    "computing_us": "computing",
    "exposed_us": "communication_not_overlapped",
    "overlapped_us": "overlapped",
    "communication_us": "communication",
    "free_us": "free",
    "stage_us": "stage",
    "bubble_us": "bubble",
    "exposed_without_receive_us": "communication_not_overlapped_and_exclude_receive",
    "preparing_us": "preparing",
}
"""Canonical column of steps -> the database's."""
_TIMES = {
    "start_ns": "start_timestamp",
    "elapsed_us": "elapse_time",
    "transit_us": "transit_time",
    "wait_us": "wait_time",
    "sync_us": "synchronization_time",
    "idle_us": "idle_time",
}


_OPERATION = dict.fromkeys(("hccl_op_name", "group_name", "step", "type"), Cells.TEXT)
_TIMED = _OPERATION | dict.fromkeys(_TIMES.values(), Cells.REAL)
_LINK = {
    **dict.fromkeys(("src_rank", "dst_rank", "transport_type"), Cells.TEXT),
    **dict.fromkeys(("transit_size", "transit_time"), Cells.REAL),
}
_MOVED = _OPERATION | {
    "transport_type": Cells.TEXT,
    **dict.fromkeys(
        ("transit_size", "transit_time", "large_packet_ratio", "package_size", "count", "total_duration"), Cells.REAL
    ),
}


@reader("db.steps")
def read_steps(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """StepTraceTime; where it is absent the phases are computed from the tasks."""
    with open_database(reference.paths[0]) as database:
        if database.has("StepTraceTime"):
            found = database.select("StepTraceTime", list(STEP_COLUMNS.values()), distinct=True)
            data = {name: found[column] for name, column in STEP_COLUMNS.items() if column in found}
            if any(len(cells) for cells in data.values()):
                for name in ("computing_us", "exposed_us", "free_us"):
                    if name not in data:
                        note(str(database.path), f"table StepTraceTime lacks {STEP_COLUMNS[name]}")
                if "step" in data:
                    data["step"] = [to_step(name) for name in data["step"]]
                return frame("steps", data, reference, columns, note)
        computed = steps_from_tasks(database, note)
    return None if computed is None else frame("steps", computed, reference, columns, note)


@reader("db.operator_types")
def read_operator_types(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """COMPUTE_TASK_INFO with TASK, summed by operator type and core as op_statistic.csv does."""
    with open_database(reference.paths[0]) as database:
        if lacks(database, "TASK", ("startNs", "endNs", "globalTaskId"), note) or lacks(
            database, "COMPUTE_TASK_INFO", ("opType", "globalTaskId"), note
        ):
            return None
        rows = operator_sums(database)
        types, cores = (texts(database, [row[i] for row in rows]) for i in (0, 1))
    total = sum(row[3] for row in rows)
    data = {
        "type": types,
        "core": cores,
        "count": [row[2] for row in rows],
        "total_us": [row[3] / 1e3 for row in rows],
        "min_us": [row[4] / 1e3 for row in rows],
        "avg_us": [row[3] / row[2] / 1e3 for row in rows],
        "max_us": [row[5] / 1e3 for row in rows],
        "share": [row[3] / total if total else None for row in rows],
    }
    return frame("operator_types", data, reference, columns, note)


@reader("db.host_api")
def read_host_api(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """CANN_API, summed by level and name as api_statistic.csv does."""
    with open_database(reference.paths[0]) as database:
        if lacks(database, "CANN_API", ("startNs", "endNs", "type", "name"), note):
            return None
        rows, calls = host_sums(database)
        levels = database.names_of("ENUM_API_TYPE")
        names = texts(database, [row[1] for row in rows])
    if lost := calls - sum(row[2] for row in rows):
        text = f"{lost} of {calls} calls in CANN_API have no usable times"
        note(str(reference.paths[0]), text, ("host_api",))
    data = {
        "level": [levels.get(row[0], str(row[0])) for row in rows],
        "name": names,
        "total_us": [row[3] / 1e3 for row in rows],
        "count": [row[2] for row in rows],
        "avg_us": [row[3] / row[2] / 1e3 for row in rows],
        "max_us": [row[5] / 1e3 for row in rows],
    }
    return frame("host_api", data, reference, columns, note)


def _rows(database: Database, table: str, wanted: Mapping[str, Cells]) -> dict[str, Any]:
    """These columns of CommAnalyzer*, each row once: texts as `Coded`, None throughout what the table lacks."""
    found: Mapping[str, Any] = at_once(database, table, wanted) or database.select(table, [*wanted], distinct=True)
    length = len(found["hccl_op_name"])
    columns = {column: found.get(column, [None] * length) for column in wanted}
    return {
        column: Coded.of(cells) if wanted[column] is Cells.TEXT and not isinstance(cells, Coded) else cells
        for column, cells in columns.items()
    }


def _named(told: Mapping[str, Coded]) -> tuple[Coded, Coded, Coded]:
    """(steps, names, groups) of rows of CommAnalyzer*; older databases put the group into the name."""
    split = told["hccl_op_name"].each(lambda name: split_operation(str(name)))
    names, own = split.each(itemgetter(0)), split.each(itemgetter(1))
    groups = told["group_name"].beside(own, lambda group, own: own if group in (None, "") else str(group))
    return told["step"].each(to_step), names, groups


@reader("db.collectives")
def read_collectives(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """CommAnalyzerTime; where it is absent COMMUNICATION_OP and the tasks of its operations."""
    with open_database(reference.paths[0]) as database:
        if not database.has("CommAnalyzerTime"):
            return _operations(database, reference, columns, note)
        if lacks(database, "CommAnalyzerTime", ("hccl_op_name",), note):
            return None
        found = _rows(database, "CommAnalyzerTime", _TIMED)
    steps, names, groups = _named(found)
    kinds = found["type"].beside(names, lambda section, name: kind_of(str(section or ""), name))
    keep = np.flatnonzero(found["hccl_op_name"].where(lambda name: name != TOTAL))
    told = {"step": steps, "name": names, "group": groups, "kind": kinds}
    data: dict[str, Any] = {column: cells.chosen(keep) for column, cells in told.items()}
    for column, heading in _TIMES.items():
        cells = found[heading]
        data[column] = cells[keep] if isinstance(cells, np.ndarray) else [cells[i] for i in keep.tolist()]
    timed = frame("collectives", data, reference, columns, note, dict.fromkeys(_TIMES, US_PER_MS))
    if timed is not None and "elapsed_us" in timed and (untold := int(timed["elapsed_us"].isna().sum())):
        text = f"{untold} of {len(timed)} operations in CommAnalyzerTime have no usable time"
        note(str(reference.paths[0]), text, ("collectives",))
    return timed


_UNREAD_NAME = re.compile(r"%|^group_name_[0-9]+$")
"""A communicator named by host, card and time, or by number; what frameworks call by a word of their own keeps it."""


def _known_as(group: object) -> object:
    """The group as analysis.db and communication.json have it: other ranks' may be at hand where this one's are not."""
    return hash_group(group) if isinstance(group, str) and _UNREAD_NAME.search(group) else group


def _operations(
    database: Database, reference: TableRef, columns: Sequence[str] | None, note: Note
) -> pd.DataFrame | None:
    """COMMUNICATION_OP: start and length of each collective, and its transfer where its tasks were recorded."""
    if lacks(database, "COMMUNICATION_OP", ("opName", "startNs", "endNs"), note):
        return None
    found = database.select("COMMUNICATION_OP", ["opName", "groupName", "startNs", "endNs", "opId"])
    count = len(found["opName"])
    names = [split_operation(str(name or ""))[0] for name in texts(database, found["opName"])]
    lengths = [(e - s) / 1e3 if isinstance(s, int) and isinstance(e, int) else None
               for s, e in zip(found["startNs"], found["endNs"], strict=True)]  # fmt: skip
    data: dict[str, Sequence[Any]] = {
        "step": steps_of(database, found["startNs"]),
        "name": names,
        "group": [_known_as(name) for name in texts(database, found.get("groupName", [None] * count))],
        "kind": [kind_of("", name) for name in names],
        "start_ns": found["startNs"],
        "elapsed_us": lengths,
    }
    if moving := moving_us(database):
        transfers = [moving.get(operation) for operation in found.get("opId", [None] * count)]
        data["transit_us"] = [None if us is None or lasts is None else min(us, lasts)
                              for us, lasts in zip(transfers, lengths, strict=True)]  # fmt: skip
    return frame("collectives", data, reference, columns, note)


@reader("db.transports")
def read_transports(
    reference: TableRef, columns: Sequence[str] | None, note: Note
) -> dict[str, pd.DataFrame | None] | None:
    """CommAnalyzerBandwidth: one of its rows per packet size, one of ours per transport."""
    del columns
    with open_database(reference.paths[0]) as database:
        if lacks(database, "CommAnalyzerBandwidth", ("hccl_op_name", "transport_type", "transit_size"), note):
            return None
        cells = _rows(database, "CommAnalyzerBandwidth", _MOVED)
    operations = _named(cells)
    quick, file = _moved(cells, operations), str(reference.paths[0])
    if quick is not None:
        transports, packets = moved_frames(*quick, file, note)
        return {"transports": transports, "packets": packets}
    steps, names, groups, transport = (column.texts() for column in (*operations, cells["transport_type"]))
    merged: dict[tuple[Any, ...], list[tuple[Any, Any, Any]]] = {}
    large: dict[tuple[Any, ...], Any] = {}
    for i in range(len(names)):
        if names[i] == TOTAL or not (cells["transit_size"][i] or cells["transit_time"][i]):
            continue
        key = steps[i], names[i], groups[i], transport[i], cells["transit_size"][i], cells["transit_time"][i]
        merged.setdefault(key, []).append((cells["package_size"][i], cells["count"][i], cells["total_duration"][i]))
        large[key] = large.get(key) if number(large.get(key)) is not None else cells["large_packet_ratio"][i]
    rows: dict[str, list[Any]] = {column.name: [] for column in TABLES["transports"].columns}
    each: dict[str, list[Any]] = {column.name: [] for column in TABLES["packets"].columns}
    for key, given in merged.items():
        sizes = packet_sizes([entry for entry in given if entry[0] and entry[1]], file, note)
        add_transport(rows, each, key, large[key], sizes)
    transports = frame("transports", rows, reference, None, note, {"size_bytes": 1e6, "time_us": US_PER_MS})
    return {"transports": transports, "packets": packets_frame(each, file, note)}


def _moved(
    cells: Mapping[str, Any], operations: tuple[Coded, Coded, Coded]
) -> tuple[Mapping[str, Any], Transports] | None:
    """Transports as columns; None where a cell is neither a number nor empty."""
    size, time, large, packet, count, lasts = (
        numbers(cells[column])
        for column in ("transit_size", "transit_time", "large_packet_ratio", "package_size", "count", "total_duration")
    )
    if size is None or time is None or large is None or packet is None or count is None or lasts is None:
        return None
    transport: Coded = cells["transport_type"]
    moved = operations[1].where(lambda name: name != TOTAL)
    moved &= (np.nan_to_num(size) != 0) | (np.nan_to_num(time) != 0)
    chosen = np.flatnonzero(moved)
    columns = [column.codes[chosen] for column in (*operations, transport)]
    columns += [np.nan_to_num(column[chosen], nan=-np.inf) for column in (size, time)]  # unknown is like unknown
    new = np.ones(len(chosen), bool)  # packets of one transport mostly follow each other
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    columns = [column[new] for column in columns]
    place = np.arange(int(new.sum()))
    if may_repeat(columns):
        places: dict[tuple[Any, ...], int] = {}
        keys = zip(*(column.tolist() for column in columns), strict=True)
        place = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
    owner = place[np.cumsum(new) - 1]
    first = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    first[owner[::-1]] = chosen[::-1]
    ratio = np.full(len(first), np.nan)
    told = np.isfinite(large[moved])
    ratio[owner[told][::-1]] = large[moved][told][::-1]
    whole = (np.nan_to_num(packet[moved]) != 0) & (np.nan_to_num(count[moved]) != 0) & np.isfinite(lasts[moved])
    order = np.argsort(owner[whole], kind="stable")
    packets = (column[moved][whole][order] for column in (packet, count, lasts))
    columns_of = dict(zip(("step", "name", "group"), (column.chosen(first) for column in operations), strict=True))
    moves = transport.chosen(first)
    return columns_of, Transports(first, moves, size[first], time[first], ratio, owner[whole][order], *packets)


@reader("db.links")
def read_links(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """CommAnalyzerMatrix, with global ranks as far as the members of the groups are known."""
    with open_database(reference.paths[0]) as database:
        if lacks(database, "CommAnalyzerMatrix", ("hccl_op_name", "src_rank", "dst_rank", "transit_size"), note):
            return None
        found = _rows(database, "CommAnalyzerMatrix", _OPERATION | _LINK)
    rows = zip(*_named(found), *(found[column] for column in _LINK), strict=True)
    entries: list[Link] = []
    for step, name, group, a, b, *moved in rows:
        source, destination = str(a), str(b)
        if name == TOTAL or not (f"{source}{destination}".isascii() and source.isdecimal() and destination.isdecimal()):
            continue
        entries.append((step, name, group, (int(source), int(destination)), *moved))
    return place_links(
        entries, str(reference.paths[0]), columns, note,
        rank=reference.options.get("rank"), groups=reference.options.get("groups"),
        world_size=reference.options.get("world_size") or 0,
    )  # fmt: skip
