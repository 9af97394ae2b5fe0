"""How an SQLite file of a profile is opened, and what is taken of it: it is never written, no query of it lasts for
ever, views are not read, and a time is what can be one."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.sources.text.textfiles import require_file

SHORTEST_LIMIT_S = 5.0
BYTES_PER_S = 5e6
"""Slower than any disk: a query that takes longer than this allows was made to."""
_STEPS_BETWEEN_CHECKS = 1_000_000
_PLAIN_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
_LATEST = 1 << 62


def connect(path: Path, limit_s: float | None = None) -> sqlite3.Connection:
    """A connection without locks, journals or the right to write the file, on which queries end after a time.

    Without `limit_s` the time grows with the file. Raises OSError where there is no file.
    """
    size = require_file(path)
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.execute("PRAGMA trusted_schema=OFF")
    end = time.monotonic() + (SHORTEST_LIMIT_S + size / BYTES_PER_S if limit_s is None else limit_s)
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_CHECKS)
    return connection


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Column names of a plain table; empty where it does not exist, or is a view, which would run its author's code."""
    if connection.execute(_PLAIN_TABLES + " AND name = ?", (table,)).fetchone() is None:
        return set()
    return {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}


def is_time(value: object) -> bool:
    """Whether a database's value is a time in nanoseconds; columns hold whatever was written to them."""
    return isinstance(value, int) and 0 <= value < _LATEST


def are_times(values: Ints) -> Mask:
    """The same of each."""
    return np.asarray((values >= 0) & (values < _LATEST))
