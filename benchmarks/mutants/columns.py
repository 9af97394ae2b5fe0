"""Whole columns of any table that are damaged, and tables that hold more than one recording.

Columns of names and numbers alike: what `cells` does to single cells and to the numbers of a column, and `meaning` to
columns that are known by name.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from benchmarks.mutants.base import LESS, MEANING, OTHER, SAME, mutation, replace_file
from benchmarks.mutants.cells import Rows, load, store, tabular

_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
_TEXTS = (
    "", "--", "N/A", "inf", "abc", "NaN", "1e999", "-1", "[", '"', "=1+1", "算子", "\u202e",
    "\ufffd", "a;b", "x" * 5000, "1,2,3",
)  # fmt: skip
_CHARACTER = "算".encode()


@tabular("odd_column", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    """The same odd text in any column, of names too."""
    column, odd, every = draw.randrange(len(rows[0])), draw.choice(_TEXTS), draw.choice((1, 1, 2, 7))
    for row in rows[1 + draw.randrange(every) :: every]:
        if column < len(row):
            row[column] = odd
    return f"{odd[:20]!r} in one row of {every} of {rows[0][column]}"


@tabular("thousands", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    """1,234.5 where 1234.5 was, as spreadsheets write it."""
    columns = [i for i, _ in enumerate(rows[0]) if any(_is_long(row, i) for row in rows[1:])]
    if not columns:
        return None
    column, mark = draw.choice(columns), draw.choice((",", " ", "'", "\u202f"))
    for row in rows[1:]:
        if _is_long(row, column):
            whole, point, rest = row[column].strip().partition(".")
            row[column] = f"{int(whole):,}".replace(",", mark) + point + rest
    return f"{mark!r} between thousands of {rows[0][column]}"


def _is_long(row: list[str], column: int) -> bool:
    return column < len(row) and bool(re.fullmatch(r"\s*\d{4,}(\.\d+)?\s*", row[column]))


@tabular("shifted_column", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    """Each cell one row further, as a slip in a spreadsheet leaves them."""
    column, body = draw.randrange(len(rows[0])), rows[1:]
    if any(column >= len(row) for row in body) or len({row[column] for row in body}) < 2:
        return None
    for row, cell in zip(body, [body[-1][column], *(row[column] for row in body[:-1])], strict=True):
        row[column] = cell
    return f"{rows[0][column]} one row further"


@tabular("shifted_cells", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    """A cell lost and the others moved up, in rows that are as wide as before."""
    if len(rows[0]) < 3:
        return None
    column, every = draw.randrange(len(rows[0]) - 1), draw.choice((1, 2, 7))
    for row in rows[1 + draw.randrange(every) :: every]:
        row[column:] = [*row[column + 1 :], ""]
    return f"{rows[0][column]} lost and the cells behind it moved up in one row of {every}"


@tabular("exchanged_columns", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    one, other = draw.sample(range(len(rows[0])), 2)
    rows[0][one], rows[0][other] = rows[0][other], rows[0][one]
    return f"{rows[0][one]} and {rows[0][other]} exchanged"


@tabular("unit_in_part", MEANING)
def _(rows: Rows, draw: Random) -> str | None:
    """Milliseconds or nanoseconds in one column from some row on."""
    columns = [i for i, name in enumerate(rows[0]) if re.search(r"\(us\)|\(ms\)|[Tt]ime", name)]
    if not columns or len(rows) < 3:
        return None
    column, factor, start = draw.choice(columns), draw.choice((1e-3, 1e3)), draw.randrange(2, len(rows))
    for row in rows[start:]:
        if column < len(row) and _NUMBER.fullmatch(row[column]):
            row[column] = f"{float(row[column]) * factor:.6f}"
    return f"{rows[0][column]} × {factor:g} from row {start + 1}"


@tabular("two_runs", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    """The same steps once more, heading and all, all numbers a little larger."""
    factor = draw.uniform(1.05, 2.0)
    again = [[f"{float(c) * factor:.3f}" if "." in c and _NUMBER.fullmatch(c) else c for c in row] for row in rows[1:]]
    rows.extend([list(rows[0]), *again])
    return f"a second run, {factor:.2f} times as slow, appended"


@mutation("csv.another_rank", LESS, ".csv")
def another_rank(path: Path, draw: Random) -> str | None:
    """Rows of another rank's file of the same kind appended."""
    kind = re.sub(r"\d+", "", path.name)
    others = [
        other
        for folder in path.parents[:3]
        if folder.name != "work"  # beside this mutant others come and go
        for other in sorted(folder.rglob("*.csv"))
        if other != path and re.sub(r"\d+", "", other.name) == kind
    ]
    rows = load(path)
    further = [row for row in load(draw.choice(others))[1:] if row not in rows] if others else []
    if not further or len(rows) < 2:
        return None
    store(path, rows + further)
    return f"{len(further)} rows of another rank appended"


@mutation("bytes.cut_character", LESS, ".csv", ".txt", ".json")
def cut_character(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    at = draw.randrange(1, len(data)) if len(data) > 1 else 0
    replace_file(path, data[:at] + _CHARACTER[: draw.choice((1, 2))])
    return f"cut after {at} of {len(data)} bytes, within a character"


@mutation("bytes.cut_utf16", LESS, ".csv", ".json")
def cut_utf16(path: Path, draw: Random) -> str | None:
    data = path.read_bytes().decode(errors="replace").encode("utf-16")
    at = draw.randrange(3, len(data)) | 1 if len(data) > 4 else 1
    replace_file(path, data[:at])
    return f"UTF-16, cut after {at} of {len(data)} bytes, within a character"


@mutation("bytes.mixed_ends", SAME, ".csv", ".txt", ".json")
def mixed_ends(path: Path, draw: Random) -> str | None:
    lines = path.read_bytes().splitlines()
    if len(lines) < 2:
        return None
    replace_file(path, b"".join(line + draw.choice((b"\n", b"\r\n", b"\r")) for line in lines))
    return "lines end in \\n, \\r\\n and \\r"
