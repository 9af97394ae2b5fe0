"""The readers by name, and the one place that calls them.

A reader turns files into one canonical frame (`advisor/tables.py`). It is registered with `@reader("name")` in the
module that knows the format; `_MODULES` lists those modules so that they are imported only when needed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from advisor.sources.base import Note, Reader, TableRef

if TYPE_CHECKING:
    import pandas as pd

_READERS: dict[str, Reader] = {}

_MODULES = {
    "csv": "advisor.sources.csvfiles",
    "json": "advisor.sources.jsonfiles",
    "db": "advisor.sources.databases",
    "legacy": "advisor.sources.legacy_readers",
    "minddata": "advisor.sources.minddata",
    "kernels": "advisor.sources.kernels",
    "cluster": "advisor.sources.cluster_output",
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
    import_module(_MODULES[reference.reader.partition(".")[0]])
    name = str(reference.paths[0])
    try:
        return _READERS[reference.reader](reference, columns, note)
    except FileNotFoundError:
        note(name, "vanished while it was read; run again once the profiler has finished writing")
    except PermissionError:
        note(name, "cannot be opened: permission denied; make it readable for this user")
    except IsADirectoryError:
        note(name, "is a folder where a file was expected")
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        note(name, f"cannot be read: {type(error).__name__}: {str(error)[:200]}")
    return None
