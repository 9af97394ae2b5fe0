"""Durations in a database, summed by what was done: operators by type and core, host interfaces by level and name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from advisor.basics.arrays import Ints
from advisor.basics.numbering import numbered
from advisor.sources.connection import are_times
from advisor.sources.database.dbfile import Database
from advisor.sources.database.pages import NOTHING, Cells, Unfit

Row = tuple[Any, Any, int, int, int, int]
"""(first code, second code, count, total, least, most), times in nanoseconds; most time first."""


def operator_sums(database: Database) -> list[Row]:
    """TASK with COMPUTE_TASK_INFO by operator type and core."""
    core = database.has("COMPUTE_TASK_INFO", "taskType")
    codes = dict.fromkeys(("globalTaskId", "opType", *(["taskType"] if core else [])), Cells.WHOLE)
    try:
        tasks = database.columns("TASK", dict.fromkeys(("startNs", "endNs", "globalTaskId"), Cells.WHOLE))
        infos = database.columns("COMPUTE_TASK_INFO", codes)
        at, kept = described(infos["globalTaskId"], tasks["globalTaskId"])
        second = infos["taskType"][at] if core else np.full(len(at), NOTHING)
        return _sums(infos["opType"][at], second, tasks["startNs"][kept], tasks["endNs"][kept])
    except Unfit:
        return database.rows(
            f"SELECT i.opType, {'i.taskType' if core else 'NULL'}, COUNT(*), SUM(t.endNs - t.startNs),"
            " MIN(t.endNs - t.startNs), MAX(t.endNs - t.startNs)"
            f" FROM {database.name('COMPUTE_TASK_INFO')} i JOIN {database.name('TASK')} t"
            " ON t.globalTaskId = i.globalTaskId WHERE t.endNs >= t.startNs GROUP BY 1, 2 ORDER BY 4 DESC"
        )


def host_sums(database: Database) -> tuple[list[Row], int]:
    """(CANN_API by level and name, how many calls there are: those without usable times are in none of the sums)."""
    try:
        calls = database.columns("CANN_API", dict.fromkeys(("type", "name", "startNs", "endNs"), Cells.WHOLE))
        return _sums(calls["type"], calls["name"], calls["startNs"], calls["endNs"]), len(calls["type"])
    except Unfit:
        ((count,),) = database.rows(f"SELECT COUNT(*) FROM {database.name('CANN_API')}")
        return database.rows(
            "SELECT type, name, COUNT(*), SUM(endNs - startNs), MIN(endNs - startNs), MAX(endNs - startNs)"
            f" FROM {database.name('CANN_API')} WHERE endNs >= startNs GROUP BY 1, 2 ORDER BY 4 DESC"
        ), count


def described(ids: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """(places among the ids, places among the tasks) of the tasks whose id is there. Raises Unfit where one stands
    twice."""
    order = np.argsort(ids, kind="stable")
    if (np.diff(ids[order]) == 0).any():
        raise Unfit("a task that is described twice")
    if not ids.size:
        return order, order
    at = order[np.minimum(np.searchsorted(ids, tasks, sorter=order), ids.size - 1)]
    kept = np.flatnonzero((ids[at] == tasks) & (tasks != NOTHING))
    return at[kept], kept


def tasks_behind(run: Callable[[str], Sequence[tuple[Any, ...]]], columns: Collection[str], last: int) -> int:
    """How many tasks start after this time (ns), that of the last one COMPUTE_TASK_INFO describes, on the streams and
    of the types of those it does: kernels, of which it was not written to the end."""
    alike = [name for name in ("streamId", "taskType") if name.lower() in columns]
    if not alike:
        return 0
    told, query = ", ".join(alike), "SELECT globalTaskId FROM COMPUTE_TASK_INFO"
    return int(run(
        f"SELECT COUNT(*) FROM TASK WHERE startNs > {last} AND ({told}) IN"
        f" (SELECT {told} FROM TASK WHERE globalTaskId IN ({query}))"
    )[0][0])  # fmt: skip


def _sums(first: Ints, second: Ints, start: Ints, end: Ints) -> list[Row]:
    usable = are_times(start) & are_times(end)
    if ((start != NOTHING) & (end != NOTHING) & ~usable).any():
        raise Unfit("times before or beyond all time, whose difference SQLite may say")
    usable &= end >= start
    length = (end - start)[usable]
    if float(length.sum(dtype=np.float64)) > 1 << 62:
        raise Unfit("a sum that a whole number does not hold")
    seconds, which = numbered(second[usable])
    firsts, kind = numbered(first[usable])
    codes, place = numbered(kind * len(seconds) + which)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(codes)))
    length = length[order]
    counts = np.bincount(place, minlength=len(codes))
    totals, least, most = (
        (np.add.reduceat(length, bounds), np.minimum.reduceat(length, bounds), np.maximum.reduceat(length, bounds))
        if len(codes)
        else (length, length, length)
    )
    rows: list[Row] = [
        (
            _code(firsts[code // len(seconds)]),
            _code(seconds[code % len(seconds)]),
            int(n),
            int(total),
            int(low),
            int(high),
        )
        for code, n, total, low, high in zip(codes.tolist(), counts, totals, least, most, strict=True)
    ]
    return sorted(rows, key=lambda row: -row[3])


def _code(value: np.int64) -> int | None:
    return None if value == NOTHING else int(value)


_TASKS = {"COMMUNICATION_TASK_INFO": ("globalTaskId", "taskType", "planeId", "opId"), "TASK": ("globalTaskId",)}
_MOVING = """
SELECT operation, max(moving) / 1e3 FROM (
    SELECT part.opId AS operation, sum(task.endNs - task.startNs) AS moving, max(kind.value LIKE 'RDMA%') AS sends
    FROM {parts} AS part JOIN {tasks} AS task ON task.globalTaskId = part.globalTaskId
    JOIN {strings} AS kind ON kind.id = part.taskType
    WHERE kind.value NOT LIKE 'Notify%'
    GROUP BY part.opId, part.planeId
) GROUP BY operation HAVING NOT max(sends)
"""
"""Notify tasks wait for another rank or wake it. A task that hands data to the network ends before they are there: of
such an operation its tasks do not tell how long it transfers."""


def moving_us(database: Database) -> dict[Any, float]:
    """Operation -> microseconds in which its busiest plane moves or reduces data, as far as its tasks tell. On recorded
    AllReduces this is up to a fifth above what the profiler's own analysis of one plane gives."""
    if not all(database.has(table, *columns) for table, columns in _TASKS.items()) or not database.has(
        "STRING_IDS", "id", "value"
    ):
        return {}
    parts, tasks, strings = (database.name(table) for table in ("COMMUNICATION_TASK_INFO", "TASK", "STRING_IDS"))
    try:
        rows = database.rows(_MOVING.format(parts=parts, tasks=tasks, strings=strings))
    except sqlite3.DatabaseError:  # what else these tables lack is told by those who read them
        return {}
    return {operation: us for operation, us in rows if isinstance(us, float) and us > 0}
