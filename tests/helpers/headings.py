"""What the files of a profile call their values: read without the advisor's own readers."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path


def headings(path: Path) -> set[str] | None:
    """Headings of a CSV file, keys of a JSON file, tables and columns of a database; None where it names nothing."""
    if path.is_dir():
        return None
    with path.open("rb") as stream:
        start = stream.read(16)
    if start.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type != 'index'")]
            columns = {row[1] for table in tables for row in database.execute(f'pragma table_info("{table}")')}
            return columns.union(tables)
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix == ".csv":
        first = next(line for line in text.replace("\x00", "").splitlines() if line.strip())
        mark = max(",;\t", key=first.count)
        return {cell.strip(" \t\"'") for cell in next(csv.reader([first], delimiter=mark))}
    if path.suffix == ".json" or text.lstrip()[:1] in ("{", "["):
        return _keys(text)
    return None


def cells(path: Path, columns: Collection[str], steps: Collection[str] = ()) -> list[float]:
    """Numbers under these headings in the rows of these steps, or under these keys wherever they stand."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [{(k or "").strip(): v for k, v in row.items()} for row in csv.DictReader(stream)]
        chosen = [row for row in rows if not steps or row["Step"].strip() in {*steps, *(f"step{s}" for s in steps)}]
        return [float(row[column]) for row in chosen or rows for column in columns]
    found: list[float] = []

    def keep(pairs: list[tuple[str, object]]) -> None:
        found.extend(float(value) for key, value in pairs if key in columns and isinstance(value, (int, float)))

    json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=keep)
    return found


def _keys(text: str) -> set[str]:
    """Every key of a JSON text, also of one that is cut."""
    found: set[str] = set()
    try:
        json.loads(text, object_pairs_hook=lambda pairs: found.update(key for key, _ in pairs))
    except ValueError:
        found.update(part.rsplit('"', 2)[1] for part in text.split('":')[:-1] if part.count('"'))
    return found
