"""Rows of a table as columns, each row once: a parser that was run twice writes what it found twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.basics import numbering
from advisor.sources.coded import Coded
from advisor.sources.database.dbfile import Database
from advisor.sources.database.pages import Cells, Unfit

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no bit of a row's number is lost by multiplying."""


Plain = dict[str, npt.NDArray[Any] | Coded]


def at_once(database: Database, table: str, wanted: Mapping[str, Cells]) -> Plain | None:
    """These columns as far as the table has them, read past SQLite; None where they are not plain, where a number is
    missing that rows are told apart by, or where a row may stand twice."""
    try:
        present = {name: cells for name, cells in wanted.items() if database.has(table, name)}
        found = database.columns_with_texts(table, present)
    except Unfit:
        return None
    columns = [cells.codes if isinstance(cells, Coded) else cells for cells in found.values()]
    if any(cells.dtype == np.float64 and np.isnan(cells).any() for cells in columns) or may_repeat(columns):
        return None
    return found


def may_repeat(columns: Iterable[npt.NDArray[Any]]) -> bool:
    """Whether two rows may be the same: they are not where the numbers made of all their cells differ."""
    numbers: npt.NDArray[np.uint64] | None = None
    for cells in columns:
        own = (cells + (0.0 if cells.dtype == np.float64 else 0)).view(np.uint64)  # no zero with a sign
        numbers = own if numbers is None else (numbers * _FACTOR) ^ own
    return numbers is not None and len(numbering.distinct(numbers)) < len(numbers)
