"""What stands in a profiler's database: columns that come and go with versions, and cells that hold anything."""

from __future__ import annotations

import sqlite3

import numpy as np

from advisor.basics.arrays import Ints, Mask

PLAIN_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
_LATEST = 1 << 62


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Column names of a plain table; empty where it does not exist, or is a view, which would run its author's code."""
    if connection.execute(PLAIN_TABLES + " AND name = ?", (table,)).fetchone() is None:
        return set()
    return {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}


def is_time(value: object) -> bool:
    """Whether a database's value is a time in nanoseconds; columns hold whatever was written to them."""
    return isinstance(value, int) and 0 <= value < _LATEST


def are_times(values: Ints) -> Mask:
    """The same of each."""
    return np.asarray((values >= 0) & (values < _LATEST))
