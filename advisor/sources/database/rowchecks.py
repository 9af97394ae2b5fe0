"""What the first rows of a database show before anything is read: rows deleted, links that lead nowhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LOOKED_AT = 20_000
"""Rows of a table that are looked at: the first ones, for a large table takes long."""
_WHOLE_NUMBERS: dict[str, frozenset[str]] = {
    "task": frozenset({"globaltaskid", "connectionid", "tasktype"}),
    "compute_task_info": frozenset({
        "globaltaskid", "name", "optype", "tasktype", "inputshapes", "inputdatatypes", "outputshapes", "outputdatatypes"
    }),
    "communication_op": frozenset({"opname", "groupname", "ranksize", "connectionid"}),
    "cann_api": frozenset({"name", "type", "connectionid", "startns", "endns"}),
}  # fmt: skip
"""Columns of numbers that lead to other tables, texts among them, and the times of which no reader tells."""

Query = Callable[[str], list[tuple[Any, ...]]]


def odd_rows(query: Query, tables: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What is odd about these tables: SQL name -> lower-case column -> column as written."""
    for table, columns in sorted(tables.items()):
        shown = table.strip('"')
        try:
            if gone := _deleted(query, table, columns):
                yield f"{gone} rows of its table {shown} were deleted after they were written"
            for column, count in _no_numbers(query, table, columns).items():
                yield f"{count} rows of its table {shown} hold no whole number in {column}"
        except sqlite3.DatabaseError:
            continue  # told on reading


def _deleted(query: Query, table: str, columns: Mapping[str, str]) -> int:
    """Rows whose number is missing: SQLite counts rows up as they are written, where no column is the number."""
    keys = query(f"SELECT count(*) FROM pragma_table_info({_text(table)}) WHERE pk > 0")
    if keys != [(0,)] or "rowid" in columns:
        return 0
    # asked for one by one, SQLite looks each up; asked for together, it walks through all rows
    ((first, last),) = query(f"SELECT (SELECT min(rowid) FROM {table}), (SELECT max(rowid) FROM {table})")
    if not isinstance(first, int) or not isinstance(last, int):
        return 0
    end = min(last, first + LOOKED_AT - 1)
    ((found,),) = query(f"SELECT count(*) FROM {table} WHERE rowid <= {end}")
    return int(end - first + 1 - found)


def _no_numbers(query: Query, table: str, columns: Mapping[str, str]) -> dict[str, int]:
    """Column -> in how many rows it holds something else than the whole number that every version writes there."""
    wanted = _WHOLE_NUMBERS.get(table.strip('"').lower(), frozenset())
    present = [written for name, written in columns.items() if name in wanted]
    if not present:
        return {}
    names = [f'"{name}"' for name in present]
    sums = ", ".join(f"sum(typeof({name}) <> 'integer')" for name in names)
    odd = " OR ".join(f"typeof({name}) <> 'integer'" for name in names)  # mostly none: nothing is left to add up
    (found,) = query(f"SELECT {sums} FROM (SELECT {', '.join(names)} FROM {table} LIMIT {LOOKED_AT}) WHERE {odd}")
    return {name: count for name, count in zip(present, found, strict=True) if count}


def _text(table: str) -> str:
    """An SQL identifier as a text."""
    return "'" + table[1:-1].replace('""', '"').replace("'", "''") + "'"
