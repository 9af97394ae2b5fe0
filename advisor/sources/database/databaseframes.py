"""What all readers of databases share: canonical frames, texts by number, columns that may be absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.sources.database.dbfile import Database, text_behind
from advisor.sources.frames import build_frame
from advisor.sources.reference import Note, TableRef
from advisor.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd


def frame(
    table: str,
    data: Mapping[str, Sequence[Any]],
    reference: TableRef,
    columns: Sequence[str] | None,
    note: Note,
    scales: Mapping[str, float] | None = None,
) -> pd.DataFrame | None:
    """The canonical frame of a table read from a database, None where there is no row."""
    if not any(len(cells) for cells in data.values()):
        return None
    file = str(reference.paths[0])
    return build_frame(TABLES[table], data, columns, note, file, scales=scales or {}, headings={n: n for n in data})


def lacks(database: Database, table: str, columns: Sequence[str], note: Note) -> bool:
    """Notes the columns without which a table says nothing."""
    missing = [column for column in columns if not database.has(table, column)]
    if missing:
        note(str(database.path), f"table {table} lacks {', '.join(missing)}; it was not read")
    return bool(missing)


def texts(database: Database, ids: Sequence[Any]) -> list[Any]:
    """The texts behind numbers into STRING_IDS; what is a text already stays."""
    strings = database.strings()
    return [text_behind(strings, key) for key in ids]
