"""The readers by name, and the one place that calls them.

A reader turns files into one canonical frame (`advisor/tables.py`). It is registered with `@reader("name")` in the
module that knows the format; `_MODULES` lists those modules so that they are imported only when needed.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.sources.reference import Note, Reader, TableRef
from advisor.sources.text.textfiles import TooLarge, require_file, why_unreadable

if TYPE_CHECKING:
    import pandas as pd

_READERS: dict[str, Reader] = {}

_MODULES = {
    "csv": "advisor.sources.text.csvfiles",
    "json": "advisor.sources.text.jsonfiles",
    "db": "advisor.sources.database.databases",
    "legacy": "advisor.sources.older.legacy_readers",
    "minddata": "advisor.sources.minddata.minddata",
    "kernels": "advisor.sources.streams.kernels",
    "opprof": "advisor.sources.streams.one_operator",
    "timelines": "advisor.sources.older.device_timelines",
    "cluster": "advisor.sources.layouts.cluster_output",
}
"""Prefix of a reader's name (before the first dot) -> module that registers it."""


def reader(name: str) -> Callable[[Reader], Reader]:
    """Registers a reader under `prefix.what`; the prefix names its module in `_MODULES`."""

    def register(function: Reader) -> Reader:
        _READERS[name] = function
        return function

    return register


def read_table(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Reads one canonical table. What a damaged file still holds is kept; every defect becomes a note."""
    return read_tables(reference, columns, note)[reference.table]


def read_tables(reference: TableRef, columns: Sequence[str] | None, note: Note) -> dict[str, pd.DataFrame | None]:
    """Reads one canonical table, and with it those that the same reading gives."""
    import_module(_MODULES[reference.reader.partition(".")[0]])
    name = str(reference.paths[0])
    paths = tuple(path for path in reference.paths if _is_readable(path, note))
    nothing: dict[str, pd.DataFrame | None] = {reference.table: None}
    if not paths:
        return nothing
    try:
        found = _READERS[reference.reader](replace(reference, paths=paths), columns, note)
        return nothing | found if isinstance(found, dict) else {reference.table: found}
    except OSError as error:
        note(name, why_unreadable(error))
    except sqlite3.OperationalError as error:
        note(name, f"cannot be read as a database: {error}")
    except sqlite3.DatabaseError as error:
        note(name, f"is a damaged database; what lies in the defect was not read: {error}")
    except TooLarge as error:
        note(name, f"was not read: {error}")
    except MemoryError:
        note(name, "does not fit into the memory; it was not read")
    except (csv.Error, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        note(name, f"cannot be read: {type(error).__name__}: {str(error)[:200]}")
    return nothing


def _is_readable(path: Path, note: Note) -> bool:
    try:
        require_file(path)
        with path.open("rb", buffering=0) as stream:
            stream.read(1)  # one file of several that cannot be read takes none of the others with it
    except OSError as error:
        note(str(path), why_unreadable(error))
        return False
    return True
