"""Mutations of CSV files: columns, rows, cells, units, separators."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.mutants.base import LESS, OTHER, SAME, mutation, replace_file

Rows = list[list[str]]
_ODD = (
    "NaN", "nan", "inf", "-inf", "Infinity", "N/A", "", "null", "None", "-", "abc", "[1, 2]", "1,5", "1e999", "0x10",
    "#REF!", "=1+1", "１２", "1_000", "٣", "--5", "1.2.3", "True", " ", "\t",
)  # fmt: skip
_EXTREME = ("-1", "-12345.678", "1e300", "1e18", "9223372036854775808", "99999999999999999999999", "-1e-300")


def load(path: Path) -> Rows:
    """The file's rows, heading first."""
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig", errors="replace"), newline="")))


def store(path: Path, rows: Rows, delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> None:
    """Writes the rows under the file's name."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    replace_file(path, text.getvalue().encode("utf-8", "replace"))


def tabular(name: str, effect: str) -> Callable[[Callable[[Rows, Random], str | None]], None]:
    """Registers a function that changes the rows in place as the mutation `csv.<name>`."""

    def register(change: Callable[[Rows, Random], str | None]) -> None:
        def apply(path: Path, draw: Random) -> str | None:
            rows = load(path)
            if len(rows) < 2 or len(rows[0]) < 2:
                return None
            done = change(rows, draw)
            if done is not None:
                store(path, rows)
            return done

        mutation(f"csv.{name}", effect, ".csv")(apply)

    return register


def _numeric(rows: Rows, draw: Random) -> int | None:
    """A column that holds numbers."""
    columns = [i for i, cell in enumerate(rows[1]) if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", cell)]
    return draw.choice(columns) if columns else None


@tabular("delete_column", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = draw.randrange(len(rows[0]))
    name = rows[0][column]
    for row in rows:
        del row[column : column + 1]
    return f"column {name} deleted"


@tabular("rename_column", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = draw.randrange(len(rows[0]))
    name = rows[0][column]
    rows[0][column] = draw.choice((f"x{name}", "", "列", name[::-1], f"{name} total"))
    return f"column {name} is called {rows[0][column]!r}"


@tabular("shuffle_columns", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    order = list(range(len(rows[0])))
    draw.shuffle(order)
    if any(len(row) != len(order) for row in rows) or len(set(rows[0])) != len(rows[0]):
        return None
    rows[:] = [[row[i] for i in order] for row in rows]
    return "columns shuffled"


@tabular("duplicate_column", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = draw.randrange(len(rows[0]))
    for row in rows:
        row.append(row[column] if column < len(row) else "")
    return f"column {rows[0][column]} twice"


@tabular("extra_column", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    at = draw.randrange(len(rows[0]) + 1)
    for number, row in enumerate(rows):
        row.insert(at, "Added By Newer Version" if number == 0 else str(number))
    return f"unknown column at {at}"


@tabular("delete_rows", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    count = min(len(rows) - 1, draw.choice((1, 1, 3, len(rows) // 2, len(rows) - 1)))
    for at in sorted(draw.sample(range(1, len(rows)), count), reverse=True):
        del rows[at]
    return f"{count} rows deleted"


@tabular("duplicate_rows", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    kind = draw.choice(("one", "some", "all"))
    body = rows[1:]
    chosen = {"one": [draw.choice(body)], "some": draw.sample(body, (len(body) + 1) // 2), "all": body}[kind]
    rows.extend([list(row) for row in chosen])
    return f"{len(chosen)} rows twice"


@tabular("shuffle_rows", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    body = rows[1:]
    draw.shuffle(body)
    rows[1:] = body
    return "rows shuffled"


@tabular("heading_again", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    rows.insert(draw.randrange(1, len(rows) + 1), list(rows[0]))
    return "the heading again between the rows"


@tabular("no_heading", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    del rows[0]
    return "no heading"


@tabular("heading_only", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    del rows[1:]
    return "no rows"


@tabular("odd_cell", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    odd = draw.choice(_ODD)
    row = draw.choice([row for row in rows[1:] if column < len(row)])
    row[column] = odd
    return f"{odd!r} in one row of {rows[0][column]}"


@tabular("odd_cells", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    odd, every = draw.choice(_ODD), draw.choice((1, 2, 7))
    for row in rows[1 + draw.randrange(every) :: every]:
        if column < len(row):
            row[column] = odd
    return f"{odd!r} in one row of {every} of {rows[0][column]}"


@tabular("extreme_cell", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    extreme = draw.choice(_EXTREME)
    row = draw.choice([row for row in rows[1:] if column < len(row)])
    row[column] = extreme
    return f"{extreme} in one row of {rows[0][column]}"


@tabular("negative_column", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    for row in rows[1:]:
        if column < len(row) and re.match(r"\s*\d*[1-9]", row[column]):
            row[column] = "-" + row[column].strip()
    return f"{rows[0][column]} negative"


@tabular("zero_column", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    for row in rows[1:]:
        if column < len(row):
            row[column] = "0"
    return f"{rows[0][column]} zero"


@tabular("scaled_column", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None:
        return None
    factor = draw.choice((1e-3, 1e3, 1e6, 0.5, 2))
    for row in rows[1:]:
        if column < len(row) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", row[column]):
            row[column] = repr(float(row[column]) * factor)
    return f"{rows[0][column]} × {factor}"


@tabular("unit", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    """Another unit, told in the heading: 12.5 ms where 12500 us were."""
    columns = [i for i, name in enumerate(rows[0]) if "(us)" in name and "start" not in name.lower()]
    if not columns:
        return None
    column = draw.choice(columns)
    unit, shift = draw.choice((("ms", -3), ("s", -6), ("ns", 3)))
    rows[0][column] = rows[0][column].replace("(us)", f"({unit})")
    for row in rows[1:]:
        if column < len(row) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", row[column]):
            row[column] = f"{float(row[column]) * 10**shift:.12f}"
    return f"{rows[0][column]} instead of us"


@tabular("unit_told", SAME)
def _(rows: Rows, draw: Random) -> str | None:
    """Units in the headings of a step table, whose versions tell none, and its times in that unit."""
    if "Computing" not in rows[0] or "Free" not in rows[0]:
        return None
    unit, shift = draw.choice((("us", 0), ("ms", -3), ("s", -6)))
    for column in range(rows[0].index("Computing"), len(rows[0])):
        rows[0][column] += f"({unit})"
        for row in rows[1:]:
            if column < len(row) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", row[column]):
                row[column] = f"{float(row[column]) * 10**shift:.12f}"
    return f"all times in {unit}"


@tabular("line_break_in_cell", OTHER)
def _(rows: Rows, draw: Random) -> str | None:
    row, insert = draw.choice(rows[1:]), draw.choice(("\n", "\r\n", "\t", '"', "\n\n,,,", '","'))
    column = draw.randrange(len(row))
    row[column] = row[column][:2] + insert + row[column][2:]
    return f"{insert!r} in a cell of column {column}"


@tabular("extra_cells", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    row = draw.choice(rows[1:])
    row.insert(draw.randrange(len(row)), draw.choice(("7", "x", "", "1,2")))
    return "one row with a cell too many"


@tabular("missing_cells", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    row = draw.choice(rows[1:])
    del row[draw.randrange(1, len(row)) :]
    return "one row too short"


@tabular("decimal_comma", LESS)
def _(rows: Rows, draw: Random) -> str | None:
    column = _numeric(rows, draw)
    if column is None or not any("." in row[column] for row in rows[1:] if column < len(row)):
        return None
    for row in rows[1:]:
        if column < len(row):
            row[column] = row[column].replace(".", ",")
    return f"decimal commas in {rows[0][column]}"


def _respelled(name: str, effect: str, change: Callable[[Path, Rows, Random], str]) -> None:
    def apply(path: Path, draw: Random) -> str | None:
        rows = load(path)
        return change(path, rows, draw) if len(rows) > 1 and len(rows[0]) > 1 else None

    mutation(f"csv.{name}", effect, ".csv")(apply)


def _other_separator(path: Path, rows: Rows, draw: Random) -> str:
    mark = draw.choice((";", "\t"))
    store(path, rows, delimiter=mark)
    return f"separated by {mark!r}"


def _all_quoted(path: Path, rows: Rows, draw: Random) -> str:
    store(path, rows, quoting=csv.QUOTE_ALL)
    return "all cells quoted"


def _padded(path: Path, rows: Rows, draw: Random) -> str:
    pad = draw.choice((" ", "\t"))
    store(path, [[cell + pad for cell in row] for row in rows])
    return f"cells end in {pad!r}"


_respelled("separator", SAME, _other_separator)
_respelled("quoted", SAME, _all_quoted)
_respelled("padded", SAME, _padded)
