"""What readers of MindSpore's host-side files share: numbers that may be anything, JSON and csv that may be cut."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.reference import Note
from advisor.sources.text.csvfiles import Once, is_too_wide, read_rows
from advisor.tables import LARGEST

if TYPE_CHECKING:
    import pandas as pd


_PLAIN = re.compile(r"[\s\x00-\x5e\x60-\x7f]*")
"""Texts that may be a number: float() would read 1_000 and digits of other scripts too."""


def to_number(value: object) -> float | None:
    """A finite number, or None for everything else (N/A, -1 stays -1)."""
    if isinstance(value, bool) or value is None or (isinstance(value, str) and not _PLAIN.fullmatch(value)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def to_known(value: object) -> float | None:
    """A number that is no placeholder: MindSpore writes -1 where it has none."""
    number = to_number(value)
    return None if number is None or number < 0 else number


def to_numbers(value: object) -> tuple[float, ...]:
    """A list of numbers, given as a list or as its text; unreadable members are left out."""
    if isinstance(value, str):
        value = value.strip()
        value = re.split(r"[\s,]+", value.strip("[]() ")) if value else []
    if not isinstance(value, (list, tuple)):
        value = [value]
    return tuple(number for item in value if (number := to_number(item)) is not None)


def to_whole(value: object) -> int | None:
    number = to_number(value)
    return None if number is None or abs(number) > LARGEST else int(number)


_NOTHING = frozenset(("nan", "none", "null"))


def operation_type(op_type: object) -> str:
    """`MapOp` and `Map` are the same operation; so are the old and the new name of the device queue. Types are names of
    classes: a number, a word for nothing, or what is no text is none."""
    name = op_type.strip() if isinstance(op_type, str) else ""
    name = "" if name.lower() in _NOTHING or not name.isidentifier() else name
    name = name[:-2] if name.endswith("Op") and len(name) > 2 else name
    return "DataQueue" if name == "DeviceQueue" else name


def canonical_frame(table: str, rows: Iterable[dict[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    import pandas as pd

    from advisor.tables import TABLES

    known = TABLES[table]
    names = [name for name in known.names if columns is None or name in columns]
    frame: pd.DataFrame = pd.DataFrame(list(rows), columns=list(known.names))[names]
    for name in names:
        kind = known.column(name).dtype
        if kind == "float":
            frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("Float64")
        elif kind in ("int", "ns"):
            values = pd.to_numeric(frame[name], errors="coerce")
            frame[name] = values.where((values % 1 == 0) & (values.abs() < 2.0**62)).astype("Int64")
    return frame


def read_csv_rows(path: Path, note: Note) -> list[list[str]]:
    """The rows with their cells as text; an empty file is told."""
    rows = list(read_rows(path, note))
    if not rows:
        note(str(path), "is empty")
    return rows


def read_records(path: Path, note: Note, *needed: str) -> list[dict[str, str]]:
    """One dictionary a row; needed columns that the heading lacks, and a heading without rows, are told."""
    rows = read_csv_rows(path, note)
    if not rows:
        return []
    if is_too_wide(rows[0], path, note):
        return []
    head = [cell.strip('\ufeff \t"') for cell in rows[0]]
    missing = [name for name in needed if name not in head]
    if missing:
        note(str(path), f"lacks the column{'s' if missing[1:] else ''} {', '.join(missing)}; it was not read")
        return []
    if not rows[1:]:
        note(str(path), "has a heading but no rows")
    once, records, uneven = Once(), [], 0
    for row in rows[1:]:
        if row == rows[0] or not once.is_new(row):
            continue
        uneven += len(row) != len(head)
        records.append({name: cell.strip() for name, cell in zip(head, row, strict=False)})
    once.tell(str(path), note)
    if uneven:
        note(str(path), f"{uneven} of {len(records)} rows have more or fewer cells than the heading has columns")
    return records
