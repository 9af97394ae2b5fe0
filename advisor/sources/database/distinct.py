"""Rows of a table as columns, each row once: a parser that was run twice writes what it found twice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from advisor.sources.database.dbfile import Database
from advisor.sources.database.pages import Cells, Columns, Unfit

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no bit of a row's number is lost by multiplying."""


def at_once(database: Database, table: str, wanted: Mapping[str, Cells]) -> Columns | None:
    """These columns as far as the table has them, read past SQLite; None where they are not plain, where a number is
    missing that rows are told apart by, or where a row may stand twice."""
    try:
        found = database.columns(table, {name: cells for name, cells in wanted.items() if database.has(table, name)})
    except Unfit:
        return None
    if any(cells.dtype == np.float64 and np.isnan(cells).any() for cells in found.values()) or _may_repeat(found):
        return None
    return found


def _may_repeat(columns: Columns) -> bool:
    """Whether two rows may be the same: they are not where the numbers made of all their cells differ."""
    numbers: npt.NDArray[np.uint64] | None = None
    for cells in columns.values():
        own = (
            np.fromiter(map(hash, cells.tolist()), np.int64, len(cells))
            if cells.dtype == object
            else cells + (0.0 if cells.dtype == np.float64 else 0)  # no zero with a sign
        ).view(np.uint64)
        numbers = own if numbers is None else (numbers * _FACTOR) ^ own
    return numbers is not None and len(np.unique(numbers)) < len(numbers)
