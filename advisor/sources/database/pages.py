"""Columns of numbers and texts, read from the pages of an SQLite file without a Python object for each cell.

A profiler's database holds millions of rows of numbers. SQLite hands them to Python one by one, which takes five times
as long as finding them; here whole pages are decoded at once (the file format is documented and frozen). Only what is
simple is read this way: plain tables whose wanted columns hold numbers, texts or nothing, in cells that fit their page.
For everything else, and for whatever looks damaged, `Unfit` sends the caller to SQLite, which decides.

Only the table's own pages are looked at. Where nothing but an index is damaged, SQLite refuses a query that walks it,
and the table, which is whole, is read here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.basics.arrays import Ints

NOTHING = np.iinfo(np.int64).min
"""Stands for an empty cell in a column of whole numbers."""

Bytes = npt.NDArray[np.uint8]

_MAGIC, _UTF_8 = b"SQLite format 3\x00", b"\x00\x00\x00\x01"
_INTERIOR, _LEAF = 5, 13
_PAGES = 512
"""Pages decoded at once: some 2 MB, which stay in the processor's caches."""
_WIDTHS = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.int64)
"""Bytes of a value by its serial type; from 12 on, texts and blobs, twice their length and 12 or 13."""
_REAL, _ZERO, _ONE, _FIRST_TEXT = 7, 8, 9, 12
_MOST_DIGITS = 19
"""Of a number of 64 bits; with so many the first is no nine."""
_LONGEST_NUMBER = 7
"""Bytes of a length or row number at most: longer ones are negative or beyond any file."""


class Cells(Enum):
    """What a column is read as."""

    WHOLE = "whole numbers"
    DIGITS = "whole numbers, also where they are written as texts"
    REAL = "real numbers"
    TEXT = "texts"


Columns = dict[str, npt.NDArray[Any]]
"""Column -> its values: int64 with NOTHING where a cell is empty, of real numbers float64 with NaN, of texts objects
with None."""


class Unfit(Exception):
    """The table is not one that may be read past SQLite."""


@dataclass(frozen=True)
class _Layout:
    """Where a table lies, and which place each of the wanted columns has in a record."""

    root: int
    columns: dict[str, int]
    row_number: int | None
    """Place of the column that is the row's number, which records leave empty."""


def read_blocks(
    connection: sqlite3.Connection, path: Path, table: str, columns: Mapping[str, Cells]
) -> Iterator[Columns]:
    """These columns of a table, in order of its rows, some hundred thousand rows at a time.

    Raises Unfit, possibly after some blocks, where a cell holds anything else or the table is not stored plainly.
    """
    layout = _layout(connection, table, columns)
    wanted = {layout.columns[name]: cells for name, cells in columns.items()}
    try:
        with path.open("rb") as stream:
            for page in _Pages(stream.fileno()).leaves(layout.root):
                found = dict(page.values(wanted, layout.row_number))
                yield {name: found[layout.columns[name]] for name in columns}
    except (IndexError, OSError, OverflowError) as error:
        raise Unfit(str(error)) from None


def _layout(connection: sqlite3.Connection, table: str, columns: Mapping[str, Cells]) -> _Layout:
    found = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ? AND sql NOT LIKE 'CREATE VIRTUAL%'",
        (table,),
    ).fetchone()
    if found is None or not isinstance(found[0], int) or found[0] < 1:
        raise Unfit("no plain table")
    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    places = {str(row[1]): int(row[0]) for row in rows}
    kinds = {str(row[1]): str(row[2]).upper() for row in rows}
    if any(row[6] for row in rows) or any(name not in places for name in columns):
        raise Unfit("computed or missing columns")
    if any(mark in kinds[name] and "INT" not in kinds[name] for name in columns for mark in ("REAL", "FLOA", "DOUB")):
        raise Unfit("whole numbers may stand for others")
    keys = [str(row[1]) for row in rows if row[5]]
    number = places[keys[0]] if len(keys) == 1 and kinds[keys[0]] == "INTEGER" else None
    return _Layout(found[0], {name: places[name] for name in columns}, number)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Pages:
    """The pages of one file."""

    def __init__(self, file: int) -> None:
        self._file = file
        header = os.pread(file, 100, 0)
        if len(header) < 100 or not header.startswith(_MAGIC) or header[56:60] != _UTF_8:
            raise Unfit("no database, or one with texts in UTF-16")
        size = int.from_bytes(header[16:18], "big")
        self.size = 65536 if size == 1 else size
        self.usable = self.size - header[20]
        if self.size < 512 or self.size & (self.size - 1) or self.usable < 480:
            raise Unfit("an impossible page size")
        self.count = os.fstat(file).st_size // self.size

    def read(self, numbers: Sequence[int]) -> Bytes:
        """These pages one after the other, and eight bytes that are nobody's. Raises Unfit where one does not exist."""
        if not numbers or min(numbers) < 2 or max(numbers) > self.count:
            raise Unfit("a page that does not exist")  # or the first, which is no table's but the schema's
        parts, start = [], 0
        for place in range(1, len(numbers) + 1):
            if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
                wanted = (place - start) * self.size
                part = os.pread(self._file, wanted, (numbers[start] - 1) * self.size)
                if len(part) != wanted:
                    raise Unfit("a file that ends in the middle")
                parts.append(part)
                start = place
        return np.frombuffer(b"".join([*parts, bytes(8)]), np.uint8)

    def leaves(self, root: int) -> Iterator[_Leaves]:
        """The pages with the table's rows, in order, some at a time."""
        level, seen = [root], 0
        while True:
            seen += len(level)
            if seen > self.count or len(set(level)) != len(level):
                raise Unfit("a page that stands twice")
            if self._kind(level[0]) != _INTERIOR:
                break
            data = self.read(level)
            level = [child for place in range(len(level)) for child in self._children(data, place * self.size)]
        for start in range(0, len(level), _PAGES):
            chosen = level[start : start + _PAGES]
            yield _Leaves(self.read(chosen), len(chosen), self)

    def _kind(self, number: int) -> int:
        return int(self.read([number])[0])

    def _children(self, data: Bytes, base: int) -> list[int]:
        if data[base] != _INTERIOR:
            raise Unfit("leaves at different depths")
        cells = int(data[base + 3]) << 8 | int(data[base + 4])
        pointers = data[base + 12 : base + 12 + 2 * cells].astype(np.int64).reshape(-1, 2) @ np.array([256, 1])
        if len(pointers) != cells or pointers.max(initial=0) > self.usable - 4:
            raise Unfit("a cell outside its page")
        at = np.concatenate((base + pointers, [base + 8]))
        children: list[int] = (
            data[at[:, None] + np.arange(4)].astype(np.int64) @ (256 ** np.arange(3, -1, -1))
        ).tolist()
        return children


class _Texts(dict[bytes, str]):
    """Texts by the bytes that stand for them, as Python's sqlite3 is told to read them here."""

    def __missing__(self, data: bytes) -> str:
        text = self[data] = data.decode(errors="replace")
        return text


class _Leaves:
    """Some pages of rows."""

    def __init__(self, data: Bytes, pages: int, file: _Pages) -> None:
        self._data = data
        self._words = np.ndarray((len(data) - 7,), ">i8", data, strides=(1,))
        """The eight bytes from every place on, as one number."""
        base = np.arange(pages) * file.size
        if (data[base] != _LEAF).any():
            raise Unfit("leaves at different depths")
        counts = data[base + 3].astype(np.int64) << 8 | data[base + 4]
        if counts.max() * 2 + 8 > file.usable:
            raise Unfit("more cells than a page holds")
        of = np.repeat(base, counts)
        nth = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        pointer = of + 8 + 2 * nth
        cell = of + (data[pointer].astype(np.int64) << 8 | data[pointer + 1])
        length, cell = self._numbers(cell)
        self.rows, record = self._numbers(cell)
        if (length > file.usable - 35).any() or (record + length > of + file.usable).any():
            raise Unfit("rows over several pages")
        header, self._serials = self._numbers(record)
        self._values, self._ends = record + header, record + length
        if (header > length).any():
            raise Unfit("a header longer than its record")

    def values(self, wanted: Mapping[int, Cells], row_number: int | None) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """(place, values) of the wanted columns."""
        at, value, end = self._serials, self._values, self._values
        for place in range(max(wanted) + 1):
            if (at >= end).any():
                raise Unfit("records of different widths")
            serial, at = self._numbers(at)
            if place in wanted:
                yield place, self._decode(serial, value, wanted[place], self.rows if place == row_number else None)
            value = value + np.where(serial < _FIRST_TEXT, _WIDTHS[np.minimum(serial, 11)], (serial - 12) // 2)
        last = at == end  # with the last column, a record ends
        if (at > end).any() or (value > self._ends).any() or (last & (value != self._ends)).any():
            raise Unfit("a record that does not fit its header")

    def _decode(self, serial: Ints, at: Ints, cells: Cells, rows: Ints | None) -> npt.NDArray[Any]:
        if cells is Cells.TEXT:
            return self._texts(serial, at)
        real = cells is Cells.REAL
        if serial.max(initial=0) > (_FIRST_TEXT + 1 + 2 * _MOST_DIGITS if cells is Cells.DIGITS else _ONE):
            raise Unfit("a text where a number is wanted")
        kinds = np.flatnonzero(np.bincount(serial)).tolist()
        found: npt.NDArray[Any] = np.zeros(len(serial), np.float64 if real else np.int64)
        for kind in kinds:
            mine = slice(None) if len(kinds) == 1 else np.flatnonzero(serial == kind)
            if kind > _ONE:
                found[mine] = self._written(at[mine], kind)
            elif kind == 0:
                found[mine] = rows[mine] if rows is not None else np.nan if real else NOTHING
            elif kind == _REAL:
                if not real:
                    raise Unfit("a fraction where a whole number is wanted")
                found[mine] = self._words[at[mine]].astype(np.int64).view(np.float64)
            elif kind == _ONE:
                found[mine] = 1
            elif kind != _ZERO:
                found[mine] = self._words[at[mine]].astype(np.int64) >> (64 - 8 * int(_WIDTHS[kind]))
        return found

    def _texts(self, serial: Ints, at: Ints) -> npt.NDArray[np.object_]:
        """Texts. A row mostly repeats what the row before says, so that a text is made only where it changes."""
        found: npt.NDArray[np.object_] = np.full(len(serial), None, object)
        known = _Texts()
        for kind in np.unique(serial).tolist():
            if kind == 0:
                continue
            if kind <= _FIRST_TEXT or not kind % 2:
                raise Unfit("a number or bytes where a text is wanted")
            mine, length = np.flatnonzero(serial == kind), (kind - _FIRST_TEXT) // 2
            letters = self._data[at[mine][:, None] + np.arange(length)]
            changes = np.ones(len(mine), bool)
            changes[1:] = (letters[1:] != letters[:-1]).any(axis=1)
            rows = letters[changes].view(f"V{length}").ravel().tolist() if length else [b""]
            texts = np.empty(len(rows), object)
            texts[:] = [*map(known.__getitem__, rows)]
            found[mine] = texts[np.cumsum(changes) - 1]
        return found

    def _written(self, at: Ints, kind: int) -> Ints:
        """Numbers written as texts of this kind's length."""
        length = (kind - _FIRST_TEXT) // 2
        digits = self._data[at[:, None] + np.arange(length)] - np.uint8(ord("0"))
        if (
            not kind % 2
            or not length
            or digits.max(initial=0) > 9
            or (length == _MOST_DIGITS and digits[:, 0].max() > 8)
        ):
            raise Unfit("a text that is no number")
        return np.asarray(digits.astype(np.int64) @ (10 ** np.arange(length - 1, -1, -1)), np.int64)

    def _numbers(self, at: Ints) -> tuple[Ints, Ints]:
        """(numbers of variable length that stand at these places, places behind them)."""
        byte = self._data[at]
        value, at = (byte & 0x7F).astype(np.int64), at + 1
        more = np.flatnonzero(byte & 0x80)
        for _ in range(_LONGEST_NUMBER):
            if not more.size:
                return value, at
            byte = self._data[at[more]]
            value[more] = value[more] << 7 | (byte & 0x7F)
            at[more] += 1
            more = more[byte >= 0x80]
        raise Unfit("a row number beyond any file")
