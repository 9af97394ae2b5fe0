"""The timeline as the profilers' databases tell it: launches, host events, steps and the clock of the cores."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.basics.arrays import Ints
from advisor.basics.intervals import union
from advisor.basics.numbering import numbered
from advisor.sources.connection import are_times, columns_of, connect, is_time
from advisor.sources.database.columns import read_columns
from advisor.sources.database.dbfile import distinct_steps, step_query
from advisor.sources.database.kernel_database import texts_of
from advisor.sources.database.pages import NOTHING, Cells, Columns, Unfit
from advisor.sources.reference import Note
from advisor.sources.streams.trace import COPY, LONG_US, Activity, Spans, Trace, is_rare, short_name
from advisor.tables import LARGEST

_LEVELS = {20000: "AscendCL", 15000: "Model", 10000: "Node", 5500: "HCCL", 5000: "Runtime"}
_FRAMEWORK = (("PYTORCH_API", "Python"), ("MSTX_EVENTS", "Python"))
_PROFILER = re.compile(r"ProfilerStep#")


def read_trace(paths: Sequence[Path], note: Note) -> Trace | None:
    """What a rank's databases hold of its timeline; None where they hold nothing of it."""
    for path in paths:
        connection = connect(path)
        try:
            if columns_of(connection, "CANN_API"):
                return _read(connection, path, note)
        except sqlite3.DatabaseError as error:
            note(str(path), f"is damaged, its timeline was left out: {error}")
        finally:
            connection.close()
    return None


def _read(connection: sqlite3.Connection, path: Path, note: Note) -> Trace:
    texts = texts_of(connection)
    activities: dict[tuple[str, str], Activity] = {}
    spans: list[Spans] = []
    for process, table, told in _host(connection):
        start, end, name, names = _calls(connection, path, table, told, texts)
        spans.append(_add(activities, process, Spans(start, end, name, names)))
    steps = []
    query = step_query(columns_of(connection, "STEP_TIME"))
    if query:
        rows = connection.execute(query)
        steps = distinct_steps(
            [(str(name), start, end) for name, start, end in rows if is_time(start) and is_time(end)]
        )
    launched, started = _links(connection, path, note)
    host = _joined(spans)
    empty = np.zeros(0, np.int64)
    return Trace(
        steps,
        launched,
        started,
        activities,
        host,
        (empty, empty),
        (empty, empty),
        _clock(connection),
        len(host),
        copies=_copies(connection, texts),
    )


def _copies(connection: sqlite3.Connection, texts: dict[int, str]) -> tuple[Ints, Ints]:
    """When the device copied between memories: the tasks of that kind."""
    kinds = [str(key) for key, text in texts.items() if isinstance(key, int) and text.startswith(COPY)]
    if not kinds or not {"startNs", "endNs", "taskType"} <= columns_of(connection, "TASK"):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = connection.execute(f"SELECT startNs, endNs FROM TASK WHERE taskType IN ({', '.join(kinds)})")
    found = np.array([row for row in rows if is_time(row[0]) and is_time(row[1])], np.int64).reshape(-1, 2)
    return union(found[:, 0], found[:, 1])


def _host(connection: sqlite3.Connection) -> list[tuple[str, str, bool]]:
    """(process, table, whether it tells the level) of the tables with host events."""
    found = []
    if {"startNs", "endNs", "name", "type"} <= columns_of(connection, "CANN_API"):
        found.append(("CANN", "CANN_API", True))
    for table, process in _FRAMEWORK:
        if {"startNs", "endNs", "name"} <= columns_of(connection, table):
            found.append((process, table, False))
    return found


def _calls(
    connection: sqlite3.Connection, path: Path, table: str, levels: bool, texts: dict[int, str]
) -> tuple[Ints, Ints, Ints, list[str]]:
    """(start, end, name) of the calls in a table that have times, and the names that the third are indices into."""
    try:
        found = _plain_calls(connection, path, table, levels)
    except Unfit:
        return _calls_row_by_row(connection, table, levels, texts)
    start, end, name = found["startNs"], found["endNs"], found["name"]
    usable = are_times(start) & are_times(end) & (end >= start)
    level = found.get("type", np.zeros(len(start), np.int64))[usable]
    code, different = _numbered(name[usable], level)
    names = [_name_of(texts, None if i == NOTHING else i, kind if levels else None) for i, kind in different]
    return start[usable], end[usable], code, names


def _plain_calls(connection: sqlite3.Connection, path: Path, table: str, levels: bool) -> Columns:
    """Raises Unfit. The framework's calls have times that are texts of numbers, CANN's only where something is odd."""
    wanted = dict.fromkeys(("startNs", "endNs", "name", *(("type",) if levels else ())), Cells.WHOLE)
    written = wanted | dict.fromkeys(("startNs", "endNs"), Cells.DIGITS)
    if not levels:
        return read_columns(connection, path, table, written)
    try:
        return read_columns(connection, path, table, wanted)
    except Unfit:
        return read_columns(connection, path, table, written)


def _numbered(name: Ints, level: Ints) -> tuple[Ints, list[tuple[int, int]]]:
    """(place of each pair among the different ones, those in order of their first appearance)."""
    levels, kind = numbered(level)
    _, which = numbered(name)
    pairs, code = numbered(which * len(levels) + kind)
    first = np.empty(len(pairs), np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[code], list(zip(name[first[order]].tolist(), level[first[order]].tolist(), strict=True))


def _calls_row_by_row(
    connection: sqlite3.Connection, table: str, levels: bool, texts: dict[int, str]
) -> tuple[Ints, Ints, Ints, list[str]]:
    """The same through SQLite, for columns that hold anything."""
    start, end, level = ("startNs", "endNs", "type") if levels else (
        "CAST(startNs AS INTEGER)", "CAST(endNs AS INTEGER)", "NULL")  # fmt: skip
    query = f"SELECT {start}, {end}, {level}, name FROM {table} WHERE startNs IS NOT NULL AND {end} >= {start}"
    index: dict[str, int] = {}
    rows = [
        (s, e, index.setdefault(_name_of(texts, name, kind), len(index)))
        for s, e, kind, name in connection.execute(query)
        if is_time(s) and is_time(e)
    ]
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2], list(index)


def _name_of(texts: dict[int, str], name: Any, level: Any) -> str:
    text = str(texts.get(name, name))
    prefix = _LEVELS.get(level, "")
    return f"{prefix}@{text}" if prefix else text


def _add(activities: dict[tuple[str, str], Activity], process: str, calls: Spans) -> Spans:
    """Counts the calls under their short names; gives those that are kept one by one."""
    us = (calls.end - calls.start) / 1000
    index: dict[str, int] = {}
    short = np.array([index.setdefault(short_name(name), len(index)) for name in calls.names], np.int64)[calls.name]
    longest = np.zeros(len(index))
    np.maximum.at(longest, short, us)
    counts, totals = np.bincount(short, minlength=len(index)), np.bincount(short, us, len(index))
    for name, place in index.items():
        if counts[place]:
            seen = activities.setdefault((process, name), Activity())
            seen.count += int(counts[place])
            seen.total_us += float(totals[place])
            seen.longest_us = max(seen.longest_us, float(longest[place]))
    rare = np.array([*map(is_rare, calls.names)], bool)
    own = np.array([bool(_PROFILER.search(name)) for name in calls.names], bool)
    kept = ((us >= LONG_US) | rare[calls.name]) & ~own[calls.name]
    return Spans(calls.start[kept], calls.end[kept], calls.name[kept], calls.names)


def _joined(parts: Sequence[Spans]) -> Spans:
    """All in one, with those names that appear, in order of their appearance."""
    index: dict[str, int] = {}
    codes = []
    for part in parts:
        used, first = np.unique(part.name, return_index=True)
        place = np.zeros(len(part.names), np.int64)
        for name in used[np.argsort(first)].tolist():
            place[name] = index.setdefault(part.names[name], len(index))
        codes.append(place[part.name])
    start, end, code = (
        np.concatenate([np.zeros(0, np.int64), *columns])
        for columns in ([part.start for part in parts], [part.end for part in parts], codes)
    )
    return Spans(start, end, code, list(index))


def _links(connection: sqlite3.Connection, path: Path, note: Note) -> tuple[Ints, Ints]:
    """(launched, started) of device tasks that share a connection with a host interface, by start."""
    if not {"startNs", "connectionId"} <= columns_of(connection, "TASK") & columns_of(connection, "CANN_API"):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    wanted = dict.fromkeys(("startNs", "connectionId"), Cells.WHOLE)
    try:
        launches, tasks = (read_columns(connection, path, table, wanted) for table in ("CANN_API", "TASK"))
    except Unfit:
        return _links_row_by_row(connection)
    known = (launches["connectionId"] != NOTHING) & (launches["startNs"] != NOTHING)
    identity, launched = launches["connectionId"][known], launches["startNs"][known]
    order = np.lexsort((launched, identity))
    identity, launched = identity[order], launched[order]
    at = np.searchsorted(identity, tasks["connectionId"], side="right") - 1
    started = tasks["startNs"]
    linked = np.flatnonzero((at >= 0) & (started != NOTHING))
    linked = linked[identity[at[linked]] == tasks["connectionId"][linked]]
    if not linked.size and identity.size and np.unique(tasks["connectionId"]).size > 1:
        note(str(path), f"none of its {identity.size} host calls (CANN_API) leads to a task, though tasks have links")
    launched, started = launched[at[linked]], started[linked]
    usable = are_times(launched) & are_times(started)
    launched, started = launched[usable], started[usable]
    order = np.argsort(started, kind="stable")
    return launched[order], started[order]


def _links_row_by_row(connection: sqlite3.Connection) -> tuple[Ints, Ints]:
    """The same through SQLite, for columns that hold anything."""
    rows = connection.execute(
        "SELECT MAX(a.startNs), t.startNs FROM TASK t JOIN CANN_API a ON a.connectionId = t.connectionId "
        "WHERE t.startNs IS NOT NULL AND a.startNs IS NOT NULL GROUP BY t.rowid ORDER BY t.startNs"
    ).fetchall()
    pairs = np.array([row for row in rows if is_time(row[0]) and is_time(row[1])], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _clock(connection: sqlite3.Connection) -> tuple[Ints, np.ndarray]:
    if not {"timestampNs", "freq"} <= columns_of(connection, "AICORE_FREQ"):
        return np.zeros(0, np.int64), np.zeros(0)
    rows = connection.execute(
        "SELECT CAST(timestampNs AS INTEGER), CAST(freq AS REAL) FROM AICORE_FREQ ORDER BY 1"
    ).fetchall()
    usable = [(t, f) for t, f in rows if is_time(t) and f is not None and 0 < f < LARGEST]
    return np.array([t for t, _ in usable], np.int64), np.array([f for _, f in usable], np.float64)
