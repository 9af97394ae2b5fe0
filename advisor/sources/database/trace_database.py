"""The timeline as the profilers' databases tell it: launches, host events, steps and the clock of the cores."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.sources.database.dbfile import connect, distinct_steps, step_query
from advisor.sources.database.kernel_database import columns_of, is_time, texts_of
from advisor.sources.reference import Note
from advisor.sources.streams.trace import LONG_US, RARE, Activity, Ints, Spans, Trace, short_name
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
                return _read(connection)
        except sqlite3.DatabaseError as error:
            note(str(path), f"is damaged, its timeline was left out: {error}")
        finally:
            connection.close()
    return None


def _read(connection: sqlite3.Connection) -> Trace:
    texts = texts_of(connection)
    activities: dict[tuple[str, str], Activity] = {}
    spans: list[tuple[int, int, str]] = []
    for process, rows in _host(connection):
        for start, end, level, name in rows:
            if not (is_time(start) and is_time(end)):
                continue
            text = str(texts.get(name, name))
            prefix = _LEVELS.get(level, "") if process == "CANN" else ""
            _add(activities, spans, process, f"{prefix}@{text}" if prefix else text, start, end)
    steps = []
    query = step_query(columns_of(connection, "STEP_TIME"))
    if query:
        rows = connection.execute(query)
        steps = distinct_steps(
            [(str(name), start, end) for name, start, end in rows if is_time(start) and is_time(end)]
        )
    launched, started = _links(connection)
    empty = np.zeros(0, np.int64)
    return Trace(
        steps,
        launched,
        started,
        activities,
        _spans(spans),
        (empty, empty),
        (empty, empty),
        _clock(connection),
        len(spans),
    )


def _host(connection: sqlite3.Connection) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    if {"startNs", "endNs", "name", "type"} <= columns_of(connection, "CANN_API"):
        query = "SELECT startNs, endNs, type, name FROM CANN_API WHERE startNs IS NOT NULL AND endNs >= startNs"
        found.append(("CANN", connection.execute(query)))
    for table, process in _FRAMEWORK:
        if {"startNs", "endNs", "name"} <= columns_of(connection, table):
            query = (
                f"SELECT CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), NULL, name FROM {table} "
                "WHERE startNs IS NOT NULL AND CAST(endNs AS INTEGER) >= CAST(startNs AS INTEGER)"
            )
            found.append((process, connection.execute(query)))
    return found


def _add(
    activities: dict[tuple[str, str], Activity], spans: list[tuple[int, int, str]], process: str, name: str,
    start: int, end: int,
) -> None:  # fmt: skip
    us = (end - start) / 1000
    seen = activities.setdefault((process, short_name(name)), Activity())
    seen.count += 1
    seen.total_us += us
    seen.longest_us = max(seen.longest_us, us)
    if (us >= LONG_US or RARE.search(name)) and not _PROFILER.search(name):
        spans.append((start, end, name))


def _spans(rows: Sequence[tuple[int, int, str]]) -> Spans:
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(name, len(index)) for _, _, name in rows], np.int64)
    start = np.array([s for s, _, _ in rows], np.int64)
    return Spans(start, np.array([e for _, e, _ in rows], np.int64), codes, list(index))


def _links(connection: sqlite3.Connection) -> tuple[Ints, Ints]:
    """(launched, started) of device tasks that share a connection with a host interface, by start."""
    if not {"startNs", "connectionId"} <= columns_of(connection, "TASK") & columns_of(connection, "CANN_API"):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
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
        "SELECT CAST(timestampNs AS INTEGER), freq FROM AICORE_FREQ WHERE freq > 0 ORDER BY timestampNs"
    ).fetchall()
    usable = [(t, f) for t, f in rows if is_time(t) and isinstance(f, (int, float)) and f < LARGEST]
    return np.array([t for t, _ in usable], np.int64), np.array([f for _, f in usable], np.float64)
