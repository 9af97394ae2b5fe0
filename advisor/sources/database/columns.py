"""Whole columns of a database, decoded once for all who ask: kernels, timeline and sums are made of the same tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from advisor.sources.coded import Coded
from advisor.sources.database.pages import Cells, Columns, Texts, Unfit, read_blocks

T = TypeVar("T")

_TOGETHER: Mapping[str, Mapping[str, Cells]] = {
    "TASK": dict.fromkeys(("startNs", "endNs", "globalTaskId", "streamId", "connectionId"), Cells.WHOLE),
    "CANN_API": dict.fromkeys(("startNs", "endNs", "name", "type", "connectionId"), Cells.WHOLE),
}
"""Columns that several readers want of a table between them: who asks first decodes all of them."""

_KEPT: ContextVar[dict[tuple[Path, str], Columns] | None] = ContextVar("kept columns", default=None)
_READ: ContextVar[dict[tuple[str, str], Any] | None] = ContextVar("what was read", default=None)


@contextmanager
def keeping_columns() -> Iterator[None]:
    """While this lasts, columns that were decoded and what else was read are kept for the next one who asks."""
    columns, others = _KEPT.set({}), _READ.set({})
    try:
        yield
    finally:
        _KEPT.reset(columns)
        _READ.reset(others)


def keep(connection: sqlite3.Connection, what: str, read: Callable[[], T]) -> T:
    """What several readers want of a database, such as its texts by id, read once for all; not to be changed."""
    kept = _READ.get()
    if kept is None:
        return read()
    key = str(connection.execute("PRAGMA database_list").fetchone()[2]), what
    if key not in kept:
        kept[key] = read()
    found: T = kept[key]
    return found


def read_columns(connection: sqlite3.Connection, path: Path, table: str, columns: Mapping[str, Cells]) -> Columns:
    """These columns of a table, all rows at once; not to be written to. Raises Unfit as `read_blocks` does."""
    everything = _KEPT.get()
    if everything is None or Cells.DIGITS in columns.values():
        return _decoded(connection, path, table, columns)
    kept = everything.setdefault((path, table), {})
    missing = {name: cells for name, cells in columns.items() if name not in kept}
    more = {name: cells for name, cells in _TOGETHER.get(table, {}).items() if name not in kept}
    if missing:
        try:
            kept |= _decoded(connection, path, table, more | missing)
        except Unfit:
            kept |= _decoded(connection, path, table, missing)
    return {name: kept[name] for name in columns}


def read_with_texts(
    connection: sqlite3.Connection, path: Path, table: str, columns: Mapping[str, Cells]
) -> dict[str, npt.NDArray[Any] | Coded]:
    """The same with texts among the columns, which nobody else asks for. Raises Unfit."""
    texts = {name: Texts() for name, cells in columns.items() if cells is Cells.TEXT}
    found = _decoded(connection, path, table, columns, texts)
    return {name: Coded(cells, texts[name].told) if name in texts else cells for name, cells in found.items()}


def _decoded(
    connection: sqlite3.Connection,
    path: Path,
    table: str,
    columns: Mapping[str, Cells],
    texts: Mapping[str, Texts] = MappingProxyType({}),
) -> Columns:
    blocks = list(read_blocks(connection, path, table, columns, texts))
    found = {name: np.concatenate([block[name] for block in blocks]) for name in columns}
    for cells in found.values():
        cells.flags.writeable = False
    return found
