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
from enum import Enum
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

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
_LONGEST_HEADER = 127
"""Bytes of a header whose length is one byte."""
_ENOUGH = 256
"""Rows with the same header that are worth a walk through their columns of their own."""
_MIX = np.int64(0x1E3779B97F4A7C15)
"""Odd, so that multiplying keeps numbers apart."""
_FEW = 3
"""Bytes that are cheaper to fetch one by one than as one number of eight."""


class Cells(Enum):
    """What a column is read as."""

    WHOLE = "whole numbers"
    DIGITS = "whole numbers, also where they are written as texts"
    REAL = "real numbers"
    TEXT = "texts"


Columns = dict[str, npt.NDArray[Any]]
"""Column -> its values: int64 with NOTHING where a cell is empty, of real numbers float64 with NaN, of texts their
numbers in `Texts`."""


class Unfit(Exception):
    """The table is not one that may be read past SQLite."""


class _Layout(Struct, frozen=True):
    """Where a table lies, and which place each of the wanted columns has in a record."""

    root: int
    columns: dict[str, int]
    row_number: int | None
    """Place of the column that is the row's number, which records leave empty."""


def read_blocks(
    connection: sqlite3.Connection,
    path: Path,
    table: str,
    columns: Mapping[str, Cells],
    texts: Mapping[str, Texts] = MappingProxyType({}),
) -> Iterator[Columns]:
    """These columns of a table, in order of its rows, some hundred thousand rows at a time; what the numbers of a
    column of texts stand for is added to its `texts`.

    Raises Unfit, possibly after some blocks, where a cell holds anything else or the table is not stored plainly.
    """
    layout = _layout(connection, table, columns)
    wanted = {layout.columns[name]: texts.get(name, cells) for name, cells in columns.items()}
    try:
        with path.open("rb") as stream:
            for page in _Pages(stream.fileno()).leaves(layout.root):
                found = page.values(wanted, layout.row_number)
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
        """These pages one after the other, and some bytes that are nobody's. Raises Unfit where one does not exist."""
        if not numbers or min(numbers) < 2 or max(numbers) > self.count:
            raise Unfit("a page that does not exist")  # or the first, which is no table's but the schema's
        found = np.empty(len(numbers) * self.size + _LONGEST_HEADER + 8, np.uint8)
        start = 0
        for place in range(1, len(numbers) + 1):
            if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
                part = found[start * self.size : place * self.size].data
                if os.preadv(self._file, [part], (numbers[start] - 1) * self.size) != len(part):
                    raise Unfit("a file that ends in the middle")
                start = place
        found[len(numbers) * self.size :] = 0
        return found

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
        if 12 + 2 * cells > self.usable:
            raise Unfit("more cells than a page holds")
        pointers = data[base + 12 : base + 12 + 2 * cells].astype(np.int64).reshape(-1, 2) @ np.array([256, 1])
        if pointers.max(initial=0) > self.usable - 4:
            raise Unfit("a cell outside its page")
        at = np.concatenate((base + pointers, [base + 8]))
        children: list[int] = (
            data[at[:, None] + np.arange(4)].astype(np.int64) @ (256 ** np.arange(3, -1, -1))
        ).tolist()
        return children


def _serials(header: bytes) -> list[int]:
    """The serial types that a record's header says, one a column."""
    found, value = [], 0
    for byte in header[1:]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value)
            value = 0
    if header[-1] >= 0x80 and len(header) > 1:
        raise Unfit("a header that ends in the middle")
    return found


def _width(serial: int) -> int:
    """Bytes of a value of this serial type."""
    return int(_WIDTHS[serial]) if serial < _FIRST_TEXT else (serial - _FIRST_TEXT) // 2


class Texts(dict[bytes, int]):
    """Numbers of texts by the bytes that stand for them; an empty cell is number 0."""

    def __init__(self) -> None:
        self.told: list[str | None] = [None]
        """Each text, as Python's sqlite3 is told to read it here."""

    def __missing__(self, data: bytes) -> int:
        number = self[data] = len(self.told)
        self.told.append(data.decode(errors="replace"))
        return number


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
        most = int(counts.max())
        if most * 2 + 8 > file.usable:
            raise Unfit("more cells than a page holds")
        pointers = data[: pages * file.size].reshape(pages, -1)[:, 8 : 8 + 2 * most].view(">u2")
        cell = (pointers + base[:, None])[np.arange(most) < counts[:, None]]
        self._length, self._number, self._record = self._starts(cell)
        end = np.repeat(base + file.usable, counts)
        if (self._length > file.usable - 35).any() or (self._record + self._length > end).any():
            raise Unfit("rows over several pages")

    def _starts(self, cell: Ints) -> tuple[Ints, Ints, Ints]:
        """(lengths of the records, places of the rows' numbers, places of the records) in these cells."""
        word = self._word(cell)
        if (word < 0).any():
            length, number = self._numbers(cell)
            return length, number, self._numbers(number)[1]
        record, more = cell + 2, (word << 8) < 0
        for place in range(2, 9):
            if not more.any():
                return word >> 56, cell + 1, record
            record += more
            more &= (word << 8 * place) < 0
        raise Unfit("a row number beyond any file")

    def values(self, wanted: Mapping[int, Cells | Texts], row_number: int | None) -> dict[int, npt.NDArray[Any]]:
        """Place -> values of the wanted columns.

        Most rows begin as others do: headers that are the same say that the same kinds of values lie at the same
        places behind. Rows whose headers are rare are read value by value.
        """
        own = {row_number: self._numbers(self._number)[0]} if row_number in wanted else {}
        parts: list[tuple[Ints, dict[int, npt.NDArray[Any]]]] = []
        rare = [np.zeros(0, np.int64)]
        for rows in self._alike():
            if len(rows) >= _ENOUGH and (header := self._header(int(rows[0]))):
                parts.append((rows, dict(self._alike_values(rows, header, wanted, own))))
            else:
                rare.append(rows)
        left = np.sort(np.concatenate(rare))
        if left.size or not parts:
            parts.append((left, dict(self._any_values(left, wanted, own))))
        if len(parts) == 1:
            return parts[0][1]
        found = {place: np.empty(len(self._record), cells.dtype) for place, cells in parts[0][1].items()}
        for rows, part in parts:
            for place, cells in part.items():
                found[place][rows] = cells
        return found

    def _header(self, row: int) -> bytes:
        """The header of a row's record; nothing where it is a long one."""
        start = int(self._record[row])
        size = int(self._data[start])
        return (
            self._data[start : start + size].tobytes() if 0 < size <= min(_LONGEST_HEADER, self._length[row]) else b""
        )

    def _alike(self) -> list[Ints]:
        """Rows whose records have the same header, together."""
        size = self._data[self._record].astype(np.int64)
        words = []
        for place in range(0, min(int(size.max(initial=0)), _LONGEST_HEADER), 8):
            behind = np.clip(place + 8 - size, 0, 8)
            words.append(self._word(self._record + place) & (np.int64(-1) << 8 * behind))
        if all((word == word[:1]).all() for word in words):
            return [np.arange(len(size))]
        mixed = reduce(lambda one, other: one * _MIX ^ other, words)
        order = np.argsort(mixed, kind="stable")
        new = np.any([np.diff(word[order]) != 0 for word in words], axis=0)
        return np.split(order, np.flatnonzero(new) + 1)

    def _alike_values(
        self, rows: Ints, header: bytes, wanted: Mapping[int, Cells | Texts], own: Mapping[int | None, Ints]
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """(place, values) of the wanted columns of rows with the same header."""
        serials = _serials(header)
        if max(wanted) >= len(serials):
            raise Unfit("records of different widths")
        at = self._record[rows] + len(header)
        if (self._length[rows] != len(header) + sum(map(_width, serials))).any():
            raise Unfit("a record that does not fit its header")
        behind = 0
        for place, serial in enumerate(serials):
            if place in wanted:
                mine = own[place][rows] if place in own else None
                yield place, self._decode(serial, at + behind, wanted[place], mine)
            behind += _width(serial)

    def _any_values(
        self, rows: Ints, wanted: Mapping[int, Cells | Texts], own: Mapping[int | None, Ints]
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """The same of rows with any headers."""
        record, length = self._record[rows], self._length[rows]
        header, at = self._numbers(record)
        value, end = record + header, record + header
        if (header > length).any():
            raise Unfit("a header longer than its record")
        for place in range(max(wanted) + 1):
            if (at >= end).any():
                raise Unfit("records of different widths")
            serial, at = self._numbers(at)
            if place in wanted:
                cells = wanted[place]
                found: npt.NDArray[Any] = np.empty(len(rows), np.float64 if cells is Cells.REAL else np.int64)
                for kind in np.unique(serial).tolist():
                    mine = np.flatnonzero(serial == kind)
                    found[mine] = self._decode(
                        kind, value[mine], cells, own[place][rows][mine] if place in own else None
                    )
                yield place, found
            value = value + np.where(serial < _FIRST_TEXT, _WIDTHS[np.minimum(serial, 11)], (serial - 12) // 2)
        last = at == end  # with the last column, a record ends
        if (at > end).any() or (value > record + length).any() or (last & (value != record + length)).any():
            raise Unfit("a record that does not fit its header")

    def _decode(self, kind: int, at: Ints, cells: Cells | Texts, rows: Ints | None) -> npt.NDArray[Any]:
        """Values of one serial type at these places; `rows` are what the row's number is left out for."""
        if isinstance(cells, Texts):
            return self._texts(kind, at, cells)
        real = cells is Cells.REAL
        if kind > _ONE:
            if cells is not Cells.DIGITS:
                raise Unfit("a text where a number is wanted")
            return self._written(kind, at)
        if kind == _REAL:
            if not real:
                raise Unfit("a fraction where a whole number is wanted")
            return self._word(at).view(np.float64)
        if kind == 0:
            nothing = np.nan if real else NOTHING
            return rows if rows is not None else np.full(len(at), nothing)
        if kind in (_ZERO, _ONE):
            return np.full(len(at), kind == _ONE, np.float64 if real else np.int64)
        width = _width(kind)
        if width > _FEW:
            found = self._word(at) >> (64 - 8 * width)
        else:
            found = self._data[at].view(np.int8).astype(np.int64)
            for place in range(1, width):
                found <<= 8
                found |= self._data[at + place]
        return found.astype(np.float64) if real else found

    def _texts(self, kind: int, at: Ints, known: Texts) -> Ints:
        """Numbers of texts. A row mostly repeats what the row before says: only where it changes, it is looked up."""
        if kind == 0:
            return np.zeros(len(at), np.int64)
        if kind <= _FIRST_TEXT or not kind % 2:
            raise Unfit("a number or bytes where a text is wanted")
        length = _width(kind)
        changes = np.zeros(len(at), bool)
        changes[:1] = True
        for place in range(0, length, 8):
            word = self._word(at + place) >> 8 * max(place + 8 - length, 0)
            changes[1:] |= word[1:] != word[:-1]
        letters = self._data[at[changes][:, None] + np.arange(length)]
        rows = letters.view(f"V{length}").ravel().tolist() if length else [b""] * len(letters)
        numbers = np.fromiter(map(known.__getitem__, rows), np.int64, len(rows))
        found: Ints = numbers[np.cumsum(changes) - 1]
        return found

    def _written(self, kind: int, at: Ints) -> Ints:
        """Numbers written as texts of this kind's length."""
        length = _width(kind)
        found = np.zeros(len(at), np.int64)
        if not kind % 2 or not 0 < length <= _MOST_DIGITS:
            raise Unfit("a text that is no number")
        for place in range(length):
            digit = self._data[at + place] - np.uint8(ord("0"))
            if digit.max(initial=0) > (8 if length == _MOST_DIGITS and not place else 9):
                raise Unfit("a text that is no number")
            found *= 10
            found += digit
        return found

    def _word(self, at: Ints) -> Ints:
        """The eight bytes from these places on, as numbers."""
        found: Ints = self._words[at].astype(np.int64)
        return found

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
