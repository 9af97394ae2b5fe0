"""What a file itself calls the columns of a table: evidence names nothing that is not written there."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from advisor.sources.connection import connect
from advisor.sources.reference import nothing
from advisor.sources.text.csvfiles import match_columns, read_rows
from advisor.sources.text.textfiles import decoded, require_file
from advisor.tables import TABLES

_METADATA = "META_DATA"
"""The table in which databases hold what is a file of its own elsewhere."""
_AROUND = "\ufeff \t\"'"
_SEARCHED = 1 << 16
"""Bytes of a JSON file in which its keys are sought: every entry has the same ones."""


Beginning = tuple[str, ...] | str
"""The heading row of a CSV file, the tables and columns of a database, or the text in which keys are sought."""


def beginning_of(path: Path) -> Beginning:
    """What a file tells of its columns; nothing where it cannot be read."""
    try:
        require_file(path)
        if path.suffix.lower() == ".db":
            with closing(connect(path)) as connection:
                found = connection.execute("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c")
                return tuple(dict.fromkeys(name for row in found for name in row))
        if path.suffix.lower() == ".csv":
            return tuple(next(read_rows(path, nothing), ()))
        with path.open("rb") as stream:
            return decoded(stream.read(_SEARCHED))
    except (OSError, ValueError, csv.Error, sqlite3.Error):
        return ()


def headings_of(table: str, beginning: Beginning) -> dict[str, tuple[str, ...]]:
    """Canonical column -> headings, keys or columns of the file that hold it; columns that it does not have are left
    out."""
    columns = TABLES[table].columns
    names = {column.name: dict.fromkeys((*column.keys, *column.headings, column.name)) for column in columns}
    written = _written(beginning, {name for known in names.values() for name in known})
    matched = {} if isinstance(beginning, str) else match_columns(columns, beginning)
    found = {name: tuple(each for each in known if each in written) for name, known in names.items()}
    found |= {name: (match.heading,) for name, match in matched.items()}
    return {name: told for name, told in found.items() if told}


def keys_of(beginning: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Those of the entries that a file of settings has; of a database the table in which it holds them."""
    written = _written(beginning, (*names, _METADATA))
    return tuple(name for name in (*names, _METADATA) if name in written)


def _written(beginning: Sequence[str], names: Iterable[str]) -> set[str]:
    if isinstance(beginning, str):
        return {name for name in names if f'"{name}":' in beginning or f'"{name}" :' in beginning}
    return {cell.strip(_AROUND) for cell in beginning}.intersection(names)
