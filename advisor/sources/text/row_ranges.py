"""Where in a CSV file the rows of some steps stand, so that a reader finds what a fact was measured from."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import TextIO

from advisor.sources.frames import to_step
from advisor.sources.text.textfiles import open_text
from advisor.tables import Column

LARGEST = 1 << 22
"""Bytes of a file that is read once more for this; in larger ones the step's name finds the rows as fast."""


def row_range(path: Path, column: Column, steps: Collection[str]) -> tuple[int, int] | None:
    """(first, last) line of the file, the heading being the first one, whose step is among `steps`; None where the file
    is large, has no such column or no such row."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        with open_text(path) as stream:
            return _range(stream, column, steps)
    except (OSError, ValueError, csv.Error):
        return None


def _range(stream: TextIO, column: Column, steps: Collection[str]) -> tuple[int, int] | None:
    rows = csv.reader(stream)
    heading: list[str] = next(rows, [])
    known = {name.lower() for name in column.headings}
    position = next((at for at, cell in enumerate(heading) if _bare(cell) in known), None)
    if position is None:
        return None
    lines = [rows.line_num for row in rows if position < len(row) and to_step(row[position]) in steps]
    return (lines[0], lines[-1]) if lines else None


def _bare(cell: str) -> str:
    return cell.strip("\ufeff \t\"'").lower()
