"""What the first rows of a database show before anything is read: rows deleted, links that lead nowhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from advisor.sources.frames import ABSENT

LOOKED_AT = 10_000
"""Rows of a table that are looked at: the first ones, for a large table takes long."""
_WHOLE_NUMBERS: dict[str, frozenset[str]] = {
    "task": frozenset({"globaltaskid", "connectionid", "tasktype"}),
    "compute_task_info": frozenset({
        "globaltaskid", "name", "optype", "tasktype", "inputshapes", "inputdatatypes", "outputshapes", "outputdatatypes"
    }),
    "communication_op": frozenset({"opname", "groupname", "ranksize", "connectionid"}),
    "cann_api": frozenset({"name", "type", "connectionid", "startns", "endns"}),
    "task_pmu_info": frozenset({"globaltaskid", "name"}),
    "pytorch_api": frozenset({"globaltid"}),  # its times are texts, as they are written
}  # fmt: skip
"""Columns of numbers that lead to other tables, texts among them, and the times of which no reader tells."""
_NUMBERS: dict[str, frozenset[str]] = {
    "commanalyzertime": frozenset({
        "start_timestamp", "elapse_time", "transit_time", "wait_time", "synchronization_time", "idle_time"
    }),
    "commanalyzerbandwidth": frozenset({
        "transit_size", "transit_time", "large_packet_ratio", "package_size", "count", "total_duration"
    }),
    "commanalyzermatrix": frozenset({"transit_size", "transit_time"}),
    "memory_record": frozenset({"timestamp", "totalallocated", "totalreserved", "totalactive"}),
}  # fmt: skip
"""Columns of numbers in which a word for nothing is damage: a database has NULL for what was not measured. Other words
are told on reading."""
_NAMES: dict[str, frozenset[str]] = {
    "memory_record": frozenset({"component"}),
    "op_memory": frozenset({"name"}),
    "npu_mem": frozenset({"type"}),
    "npu_module_mem": frozenset({"moduleid"}),
}
"""Columns of names: texts, or whole numbers that lead to them, as the version writes them."""

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
            for column, count in _counted(query, table, columns, _NAMES, "typeof({}) IN ('blob', 'real')").items():
                yield f"{count} rows of its table {shown} hold neither a name nor the number of one in {column}"
            for column, count in _words(query, table, columns).items():
                yield f"{count} rows of its table {shown} hold a word for nothing in {column}"
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
    return _counted(query, table, columns, _WHOLE_NUMBERS, "typeof({}) <> 'integer'")


def _words(query: Query, table: str, columns: Mapping[str, str]) -> dict[str, int]:
    """Column -> in how many rows it holds a word for nothing."""
    words = ", ".join(f"'{word}'" for word in sorted(ABSENT))
    return _counted(query, table, columns, _NUMBERS, f"typeof({{0}}) = 'text' AND lower({{0}}) IN ({words})")


def _counted(
    query: Query, table: str, columns: Mapping[str, str], of: Mapping[str, frozenset[str]], odd: str
) -> dict[str, int]:
    """Column -> rows among the first ones whose cell is odd."""
    wanted = of.get(table.strip('"').lower(), frozenset())
    present = [written for name, written in columns.items() if name in wanted]
    if not present:
        return {}
    names = [f'"{name}"' for name in present]
    sums = ", ".join(f"sum({odd.format(name)})" for name in names)
    some = " OR ".join(f"({odd.format(name)})" for name in names)  # mostly none: nothing is left to add up
    (found,) = query(f"SELECT {sums} FROM (SELECT {', '.join(names)} FROM {table} LIMIT {LOOKED_AT}) WHERE {some}")
    return {name: count for name, count in zip(present, found, strict=True) if count}


def _text(table: str) -> str:
    """An SQL identifier as a text."""
    return "'" + table[1:-1].replace('""', '"').replace("'", "''") + "'"
