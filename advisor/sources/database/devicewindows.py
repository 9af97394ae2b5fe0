"""The host's windows of steps as the device works them off."""

from __future__ import annotations

import sqlite3

import numpy as np

from advisor.basics.arrays import Ints
from advisor.knowledge.measuring import limit
from advisor.sources.connection import columns_of, is_time
from advisor.sources.database.columns import keep
from advisor.sources.streams.behind import first_asked

Step = tuple[str, int, int]
"""Name, start, end in nanoseconds."""

_BEHIND = limit("device_windows", "behind")
"""Part of the shortest window by which the device may end behind its host and still be where that is."""

_CALLS = (
    (
        {"PYTORCH_API": {"startNs", "connectionId"}, "CONNECTION_IDS": {"id", "connectionId"}},
        "SELECT MIN(CAST(p.startNs AS INTEGER)), t.startNs FROM {table} t JOIN CONNECTION_IDS i "
        "ON i.connectionId = t.connectionId JOIN PYTORCH_API p ON p.connectionId = i.id GROUP BY t.rowid",
    ),
    (
        {"CANN_API": {"startNs", "connectionId"}},
        "SELECT MIN(CAST(a.startNs AS INTEGER)), t.startNs FROM {table} t JOIN CANN_API a "
        "ON a.connectionId = t.connectionId GROUP BY t.rowid",
    ),
)  # fmt: skip
"""Tables with their columns, and what asks them for work of a table (when the host asked for it, when it started): the
framework's calls before those of the launching thread, which a queue may keep from them until the next step has begun.
"""
_WORK = ("TASK", "COMMUNICATION_OP")
"""A step may well begin with a collective, which waits for other ranks before the first kernel."""


def on_device(connection: sqlite3.Connection, steps: list[Step]) -> list[Step]:
    """Each step from the first task on that the host asked for in it. A host that nothing makes wait is a part of a
    step or several steps ahead: by its own marks the first step would lack work, and the last hold what is left. As
    they are where the device keeps up, or nothing tells who asked for what."""
    if len(steps) < 2 or not {"startNs", "endNs"} <= columns_of(connection, "TASK"):
        return steps
    last = connection.execute("SELECT MAX(endNs) FROM TASK").fetchone()[0]
    shortest = min(end - start for _, start, end in steps)
    if not is_time(last) or last - steps[-1][2] <= _BEHIND * shortest:
        return steps
    host, device = keep(connection, "asked", lambda: _asked(connection))
    if not host.size:
        return steps
    begins = first_asked(host, device, np.array([start for _, start, _ in steps], np.int64), last).tolist()
    ends = [*begins[1:], int(last)]
    return [(name, begin, end) for (name, _, _), begin, end in zip(steps, begins, ends, strict=True)]


def _asked(connection: sqlite3.Connection) -> tuple[Ints, Ints]:
    """(when the host asked for it, when it started) of the tasks and collectives of which that is told."""
    tables = [name for name in _WORK if {"startNs", "connectionId"} <= columns_of(connection, name)]
    for needed, query in _CALLS:
        if all(columns <= columns_of(connection, table) for table, columns in needed.items()):
            told = (row for name in tables for row in connection.execute(query.format(table=name)))
            found = [(host, device) for host, device in told if is_time(host) and is_time(device)]
            if found:
                host, device = np.array(found, np.int64).T
                return host, device
    return np.zeros(0, np.int64), np.zeros(0, np.int64)
