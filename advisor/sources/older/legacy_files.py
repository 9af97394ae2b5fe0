"""Tolerant reading of the older MindSpore files: what is damaged is noted, what is readable is kept.

Headings differ between versions in spelling, spaces and a unit in brackets; values stay text until `numbers` judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.reference import Note
from advisor.sources.text.csvfiles import Once, ends_inside_row, is_too_wide, read_rows
from advisor.sources.text.jsontext import load_json
from advisor.sources.text.textfiles import read_text
from advisor.tables import LARGEST, LONGEST_TEXT, TABLES

if TYPE_CHECKING:
    import pandas as pd

_ABSENT = {"", "-", "--"}
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "ns": 1e-3}

_RULE = set("-=+| ")
LONGEST_CELL = 1 << 20
"""Characters; a description of an operator's inputs takes thousands."""


def read_sheet(path: Path, note: Note) -> pd.DataFrame | None:
    """A comma-separated file with a heading line as text cells."""
    rows = read_rows(path, note)
    header = next(rows, None)
    if header is None:
        note(str(path), "is empty")
        return None
    return sheet(path, header, rows, note)


def read_columns_of_text(path: Path, marker: str, note: Note) -> pd.DataFrame | None:
    """A text table aligned by blanks, below the line with `marker`; other lines (rules, totals) are skipped.
    Those that are as wide as the heading are rows, and told."""
    lines = [line.split() for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        note(str(path), "is empty")
        return None
    start = next((i for i, words in enumerate(lines) if any(word.startswith(marker) for word in words)), None)
    if start is None:
        note(str(path), f"has no heading line with {marker}; it was not read")
        return None
    rows = [words for words in lines[start + 1 :] if words[0].isdigit()]
    others = [words for words in lines[start + 1 :] if len(words) >= len(lines[start]) and not words[0].isdigit()]
    if lost := sum(words != lines[start] and not set("".join(words)) <= _RULE for words in others):
        note(str(path), f"{lost} rows do not begin with a number, as the others do, and were left out")
    return sheet(path, lines[start], rows, note)


def sheet(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], note: Note) -> pd.DataFrame | None:
    """Text cells under `header`. A last row that the file's end cut is left out, cells missing elsewhere are empty."""
    import pandas as pd

    if is_too_wide(header, path, note):
        return None
    names = [name.strip('\ufeff \t"') for name in header]
    width, kept, short, long, huge, once = len(names), [], 0, 0, 0, Once()
    for row in rows:
        if any(len(cell) > LONGEST_CELL for cell in row):
            huge += 1
            continue
        cells = [cell.strip() for cell in row]
        if cells == names or not once.is_new(cells):
            continue
        if len(cells) > width and any(cells[width:]):
            long += 1
            continue
        short += len(cells) < width
        kept.append((cells + [""] * width)[:width])
        last_short = len(cells) < width
    if kept and ends_inside_row(path, last_short):
        kept, short = kept[:-1], short - last_short
        note(str(path), f"is cut short: the last row ends in the middle and was left out, {len(kept)} rows were kept")
    once.tell(str(path), note)
    if huge:
        note(str(path), f"{huge} rows hold more than {LONGEST_CELL} characters in a cell and were left out")
    if short or long:
        note(str(path), f"{short + long} rows do not fit the heading: {long} with more cells were left out, "
                        f"missing cells of {short} are unknown")  # fmt: skip
    if not kept:
        note(str(path), "has a heading and no usable row")
        return None
    frame = pd.DataFrame(kept, columns=names, dtype=object)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        note(str(path), f"has the column {', '.join(twice)} more than once; the first was used")
    single: pd.DataFrame = frame.loc[:, ~frame.columns.duplicated()]
    return single


def plain(heading: str) -> str:
    """A heading without unit, case and blanks at its ends: `Total_time(ms)` -> `total_time`."""
    return re.sub(r"\(.*?\)", "", heading).strip().lower()


def find(frame: pd.DataFrame, *names: str) -> str | None:
    """The heading of the first of these columns that the file has."""
    known = {plain(str(heading)): str(heading) for heading in reversed(list(frame.columns))}
    return next((known[name] for name in names if name in known), None)


def numbers(
    frame: pd.DataFrame, names: Sequence[str], path: Path, note: Note, *, scale: float = 1.0, timed: bool = False
) -> pd.Series | None:
    """The column as floats times `scale`; None where the file has no such column.

    `timed` columns may carry their unit in the heading, `time(us)`, which then replaces `scale` (to microseconds).
    Text, NaN, infinite and negative values become NaN with one note a column; an empty cell or `-` is absent silently.
    """
    heading = find(frame, *names)
    if heading is None:
        return None
    unit = re.search(r"\((\w+)", heading)
    if timed and unit and unit[1] in _UNITS:
        scale = _UNITS[unit[1]]
    return to_numbers(frame[heading], heading, path, note) * scale


def to_numbers(cells: pd.Series, heading: str, path: Path, note: Note) -> pd.Series:
    """Text cells as floats, what is no finite number from 0 up as NaN, with one note."""
    import pandas as pd

    text = cells.str.strip()
    values = pd.to_numeric(text, errors="coerce").astype(float)
    usable = (values >= 0) & (values <= LARGEST)
    bad = ~usable & ~text.isin(_ABSENT)
    if bad.any():
        note(str(path), f"{int(bad.sum())} of {len(text)} values of {heading} are no usable numbers "
                        f"(first: {text[bad].iloc[0][:40]!r}); left out")  # fmt: skip
    good: pd.Series[Any] = values.where(usable)
    return good


def texts(frame: pd.DataFrame, *names: str, document: bool = False) -> pd.Series | None:
    """The column as text; None where the file has no such column. Only cells that hold a `document` may be long."""
    heading = find(frame, *names)
    if heading is None:
        return None
    cells = frame[heading].str.strip()
    return cells if document else cells.str.slice(0, LONGEST_TEXT)


def assemble(table: str, data: Mapping[str, Any], columns: Sequence[str] | None) -> pd.DataFrame:
    """The canonical frame of `table` from arrays in canonical units: every wanted column, NA where `data` has none."""
    import pandas as pd

    length = max((len(v) for v in data.values() if hasattr(v, "__len__") and not isinstance(v, str)), default=0)
    result: dict[str, Any] = {}
    for column in TABLES[table].columns:
        if columns is not None and column.name not in columns:
            continue
        values = data.get(column.name)
        cells = [values] * length if values is None or isinstance(values, str) else list(values)
        if column.dtype in ("int", "ns"):
            result[column.name] = pd.array([None if v is None or v != v else int(v) for v in cells], dtype="Int64")
        elif column.dtype == "float":
            result[column.name] = pd.Series([float("nan") if v is None else v for v in cells], dtype=float)
        else:
            result[column.name] = pd.Series([v if isinstance(v, str) and v else None for v in cells], dtype=object)
    frame: pd.DataFrame = pd.DataFrame(result)
    return frame


def read_object(path: Path, note: Note) -> dict[str, Any] | None:
    """The JSON object of a file, or what of it was readable."""
    document = load_json(path, note)
    if document is not None and not isinstance(document, dict):
        note(str(path), f"holds a {type(document).__name__} where an object was expected; it was not used")
        return None
    return document


def finite(value: Any) -> float | None:
    """A non-negative finite number, else None; truth values are no numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None
