"""The counters of the cores (TASK_PMU_INFO): one row a task and counter, millions of them."""

from __future__ import annotations

import sqlite3
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.numbering import numbered
from advisor.sources.connection import columns_of
from advisor.sources.database.pages import NOTHING, Cells, read_blocks
from advisor.tables import TABLES

_ROWS = 100_000


class _Values(Struct, frozen=True):
    """The values of one counter by task: tasks sorted, each once."""

    tasks: Ints
    values: Floats

    def places(self, tasks: Ints) -> Ints:
        """The place of each task's value; behind all where there is none."""
        if not self.tasks.size:
            return np.zeros(tasks.size, np.int64)
        at = np.minimum(np.searchsorted(self.tasks, tasks), self.tasks.size - 1)
        return np.where(self.tasks[at] == tasks, at, self.tasks.size)

    def at(self, places: Ints) -> Floats:
        """The values at these places; NaN where there is none."""
        found: Floats = np.append(self.values, np.nan)[places]
        return found


Measured = dict[str, _Values]
"""Canonical column of a pipe -> its values."""


class _Pipes(dict[Any, str | None]):
    """Canonical column of each counter by the id of its name; None for those that are no pipe's."""

    def __init__(self, strings: dict[int, str]) -> None:
        from advisor.sources.text.csvfiles import split_heading

        self._split, self._strings = split_heading, strings
        self._known = {
            split_heading(heading)[0]: column.name
            for column in TABLES["kernels"].columns
            for heading in column.headings
            if column.name.endswith(("_ratio", "_utilization"))
        }

    def __missing__(self, identity: Any) -> str | None:
        name = self._split(str(self._strings.get(identity, identity)))[0]
        self[identity] = self._known.get(name)
        return self[identity]


def _has_counters(connection: sqlite3.Connection) -> bool:
    return {"globalTaskId", "name", "value"} <= columns_of(connection, "TASK_PMU_INFO")


def pipes_of(measured: Measured, tasks: Ints) -> dict[str, Floats]:
    """The columns of the counters for these tasks."""
    found: dict[str, Floats] = {}
    sought: Ints | None = None
    for name, values in measured.items():
        if values.tasks is not sought:
            sought, places = values.tasks, values.places(tasks)
        found[name] = values.at(places) * TABLES["kernels"].column(name).scale
    return found


def measured_by_rows(connection: sqlite3.Connection, strings: dict[int, str]) -> Measured:
    """The counters of all tasks, the largest value where one stands twice, through SQLite: cells may hold anything."""
    pipes, counters = _Pipes(strings), dict[str, list[int]]()
    if _has_counters(connection):
        for (identity,) in connection.execute("SELECT DISTINCT name FROM TASK_PMU_INFO"):
            if pipe := pipes[identity]:
                counters.setdefault(pipe, []).append(int(identity))
    if not counters:
        return {}
    column = {identity: place for place, ids in enumerate(counters.values()) for identity in ids}
    query = f"SELECT globalTaskId, name, value FROM TASK_PMU_INFO WHERE name IN ({','.join(map(str, column))})"
    cursor, parts = connection.execute(query), []
    while rows := cursor.fetchmany(_ROWS):
        try:
            cells = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows))
        except (TypeError, ValueError, OverflowError):
            rows = [row for row in rows if all(type(cell) in (int, float) and abs(cell) < 1 << 53 for cell in row)]
            cells = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows))
        parts.append(cells.reshape(-1, 3))
    task, name, value = np.concatenate(parts or [np.zeros((0, 3))]).T
    found = {}
    for place, counter in enumerate(counters):
        mine = np.isin(name, [identity for identity, own in column.items() if own == place]) & np.isfinite(value)
        found[counter] = _largest(task[mine].astype(np.int64), value[mine])
    return found


def measured_at_once(connection: sqlite3.Connection, path: Path, strings: dict[int, str]) -> Measured:
    """The same, past SQLite. Raises Unfit."""
    if not _has_counters(connection):
        return {}
    pipes = _Pipes(strings)
    parts: dict[str, list[tuple[Ints, Floats]]] = {}
    wanted = {"globalTaskId": Cells.WHOLE, "name": Cells.WHOLE, "value": Cells.REAL}
    for block in read_blocks(connection, path, "TASK_PMU_INFO", wanted):
        task, name, value = block.values()
        known = np.isfinite(value) & (task != NOTHING)
        for identity in numbered(name)[0].tolist():
            if column := pipes[identity]:
                mine = np.flatnonzero((name == identity) & known)
                parts.setdefault(column, []).append((task[mine], value[mine]))
    measured: Measured = {}
    known = _Values(np.zeros(0, np.int64), np.zeros(0))
    for column, found in parts.items():
        own = _largest(*(np.concatenate(both) for both in zip(*found, strict=True)))
        if np.array_equal(own.tasks, known.tasks):  # most counters are those of the same tasks
            own = _Values(known.tasks, own.values)
        measured[column] = known = own
    return measured


def _largest(tasks: Ints, values: Floats) -> _Values:
    """Each task once, with the largest of its values."""
    if (np.diff(tasks) <= 0).any():
        order = np.lexsort((-values, tasks))
        tasks, first = np.unique(tasks[order], return_index=True)
        values = values[order][first]
    return _Values(tasks, values)
