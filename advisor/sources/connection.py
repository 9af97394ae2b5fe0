"""How an SQLite file of a profile is opened: never written, and no query of it lasts for ever."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from pathlib import Path
from urllib.parse import quote

from advisor.sources.text.textfiles import require_file

SHORTEST_LIMIT_S = 5.0
BYTES_PER_S = 5e6
"""Slower than any disk: a query that takes longer than this allows was made to."""
_STEPS_BETWEEN_CHECKS = 1_000_000


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
