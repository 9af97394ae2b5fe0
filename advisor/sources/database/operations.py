"""Collectives of a database without an analysis of them: their times, and what their tasks tell of moving data."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from advisor.sources.database.databaseframes import frame, lacks, texts
from advisor.sources.database.databasesteps import steps_of
from advisor.sources.database.dbfile import Database
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsonfiles import kind_of, split_operation

if TYPE_CHECKING:
    import pandas as pd

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


def read_operations(
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
        "group": texts(database, found.get("groupName", [None] * count)),
        "kind": [kind_of("", name) for name in names],
        "start_ns": found["startNs"],
        "elapsed_us": lengths,
    }
    if moving := moving_us(database):
        transfers = [moving.get(operation) for operation in found.get("opId", [None] * count)]
        data["transit_us"] = [None if us is None or lasts is None else min(us, lasts)
                              for us, lasts in zip(transfers, lengths, strict=True)]  # fmt: skip
    return frame("collectives", data, reference, columns, note)


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
