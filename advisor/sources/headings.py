"""What a file itself calls the columns of a table: evidence names nothing that is not written there."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from advisor.sources.connection import connect
from advisor.sources.reference import TableRef, nothing
from advisor.sources.text.csvfiles import match_columns, read_rows
from advisor.sources.text.textfiles import read_text
from advisor.tables import TABLES

_METADATA = "META_DATA"
"""The table in which databases hold what is a file of its own elsewhere."""
_AROUND = "\ufeff \t\"'"
_SEARCHED = 1 << 18
"""Bytes of a JSON file in which its keys are sought: every entry has the same ones."""


def headings_of(reference: TableRef) -> dict[str, tuple[str, ...]]:
    """Canonical column -> headings of the CSV file, keys of the JSON text or columns of the database that hold it;
    columns that the table's first file does not have are left out."""
    path, columns = reference.paths[0], TABLES[reference.table].columns
    names = {column.name: dict.fromkeys((*column.keys, *column.headings, column.name)) for column in columns}
    try:
        written = _written(path, {name for known in names.values() for name in known})
        heading = next(read_rows(path, nothing), []) if path.suffix.lower() == ".csv" else []
    except (OSError, ValueError, csv.Error, sqlite3.Error):
        return {}
    matched = {name: (match.heading,) for name, match in match_columns(columns, heading).items()}
    found = {name: tuple(each for each in known if each in written) for name, known in names.items()}
    return {name: told for name, told in (found | matched).items() if told}


def keys_of(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the entries that a file of settings has; of a database the table in which it holds them."""
    try:
        written = _written(path, (*names, _METADATA))
    except (OSError, ValueError, csv.Error, sqlite3.Error):
        return ()
    return tuple(name for name in (*names, _METADATA) if name in written)


def _written(path: Path, names: Iterable[str]) -> set[str]:
    """Those of the names that are headings, keys, tables or columns of the file."""
    if path.suffix.lower() == ".db":
        with closing(connect(path)) as connection:
            found = connection.execute("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c")
            return {name for row in found for name in row}.intersection(names)
    if path.suffix.lower() == ".csv":
        return {cell.strip(_AROUND) for cell in next(read_rows(path, nothing), [])}.intersection(names)
    text = read_text(path, _SEARCHED)
    return {name for name in names if f'"{name}":' in text or f'"{name}" :' in text}
