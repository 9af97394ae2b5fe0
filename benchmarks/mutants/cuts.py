"""Ways to take evidence away from a profile: ranks, files, kinds of files, columns, rows, steps, members of JSON.

Each cut leaves a profile that a smaller collection, or a copy that was not whole, would have left: nothing is spoilt.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.mutants.base import replace_file

Cut = Callable[[Path, Random], str | None]
"""cut(profile folder, draw) -> what was taken; None where the profile has nothing of the kind."""

CUTS: dict[str, Cut] = {}
_NOT_EVIDENCE = (".md", ".log")
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
"""SQLite's own tables cannot be dropped."""
_STEP = re.compile(r"^step[_ ]?(id|num)?$", re.IGNORECASE)
_RANK_FOLDER = re.compile(r"(_ascend_(ms|pt)|^PROF_\w+|^device_\d+)$")


def cut(name: str) -> Callable[[Cut], Cut]:
    """Registers a function under its name."""

    def register(function: Cut) -> Cut:
        CUTS[name] = function
        return function

    return register


def _files(root: Path, *suffixes: str) -> list[Path]:
    return sorted(
        p
        for p in root.rglob("*")
        if p.is_file() and p.suffix not in _NOT_EVIDENCE and (not suffixes or p.suffix in suffixes)
    )


def _kind(path: Path) -> str:
    """What a file is, whatever its rank, time or iteration: kernel_details.csv, profiler_info_.json."""
    return re.sub(r"\d+", "", path.name)


def _by_kind(root: Path, *suffixes: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in _files(root, *suffixes):
        found[_kind(path)].append(path)
    return found


def _rank_folders(root: Path) -> list[Path]:
    found = [p for p in root.rglob("*") if p.is_dir() and _RANK_FOLDER.search(p.name)]
    return sorted(p for p in found if not any(q in p.parents for q in found))


@cut("ranks")
def ranks(root: Path, draw: Random) -> str | None:
    """Some ranks' folders are not there."""
    folders = _rank_folders(root)
    if len(folders) < 2:
        return None
    gone = draw.sample(folders, draw.randint(1, len(folders) - 1))
    for folder in gone:
        shutil.rmtree(folder)
    return f"{len(gone)} of {len(folders)} ranks"


@cut("files")
def files(root: Path, draw: Random) -> str | None:
    """Single files are not there, on this rank or that."""
    found = _files(root)
    if len(found) < 2:
        return None
    gone = draw.sample(found, min(draw.choice((1, 1, 2, 4, 8)), len(found) - 1))
    for path in gone:
        path.unlink()
    return ", ".join(path.name for path in gone)


@cut("tables")
def tables(root: Path, draw: Random) -> str | None:
    """Some kinds of files are there on no rank."""
    kinds = _by_kind(root)
    if len(kinds) < 2:
        return None
    gone = draw.sample(sorted(kinds), draw.randint(1, len(kinds) - 1))
    for name in gone:
        for path in kinds[name]:
            path.unlink()
    return ", ".join(gone)


@cut("all_but")
def all_but(root: Path, draw: Random) -> str | None:
    """One or two kinds of files are all there is."""
    kinds = _by_kind(root)
    if len(kinds) < 3:
        return None
    kept = draw.sample(sorted(kinds), draw.choice((1, 2)))
    for name in set(kinds) - set(kept):
        for path in kinds[name]:
            path.unlink()
    return f"all but {', '.join(kept)}"


def _rows(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig", errors="replace"), newline="")))


def _store(path: Path, rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    replace_file(path, text.getvalue().encode("utf-8", "replace"))


@cut("columns")
def columns(root: Path, draw: Random) -> str | None:
    """An older or simpler collection: columns of a table are there on no rank."""
    kinds = _by_kind(root, ".csv")
    if not kinds:
        return None
    name = draw.choice(sorted(kinds))
    heads = [rows[0] for path in kinds[name] if (rows := _rows(path)) and len(rows[0]) > 1]
    if not heads:
        return None
    gone = set(draw.sample(sorted(set(heads[0])), draw.randint(1, max(len(set(heads[0])) // 3, 1))))
    for path in kinds[name]:
        rows = _rows(path)
        keep = [i for i, column in enumerate(rows[0]) if column not in gone] if rows else []
        _store(path, [[row[i] for i in keep if i < len(row)] for row in rows])
    return f"{', '.join(sorted(gone))} of {name}"


@cut("rows")
def rows(root: Path, draw: Random) -> str | None:
    """A table was cut after its first rows, on one rank or on all."""
    kinds = _by_kind(root, ".csv")
    if not kinds:
        return None
    name = draw.choice(sorted(kinds))
    part = draw.choice((0.003, 0.05, 0.3, 0.7))
    paths = kinds[name] if draw.random() < 0.6 else [draw.choice(kinds[name])]
    done = False
    for path in paths:
        found = _rows(path)
        keep = 1 + max(int(part * (len(found) - 1)), 1)
        if keep < len(found):
            _store(path, found[:keep])
            done = True
    return f"{part:.1%} of {name} on {len(paths)} ranks" if done else None


def _in_order(names: set[str]) -> list[str]:
    return sorted(names, key=lambda n: (not n.isdecimal(), int(n) if n.isdecimal() else 0, n))


@cut("steps")
def steps(root: Path, draw: Random) -> str | None:
    """Fewer steps were recorded: those left out are in no file."""
    tables_of = {path: _rows(path) for path in _files(root, ".csv")}
    at = {
        path: next((i for i, column in enumerate(found[0]) if _STEP.match(column.strip())), None)
        for path, found in tables_of.items()
        if found
    }
    names = {
        row[i].strip()
        for path, i in at.items()
        if i is not None
        for row in tables_of[path][1:]
        if i < len(row) and row[i].strip() not in ("", "-")
    }
    databases = _files(root, ".db")
    names.update(*(_windows(path) for path in databases))
    if len(names) < 2:
        return None
    ordered = _in_order(names)
    count = draw.randint(1, len(ordered) - 1)
    first = draw.randint(0, len(ordered) - count)
    kept = set(ordered[first : first + count]) if draw.random() < 0.7 else set(draw.sample(ordered, count))
    for path, i in at.items():
        if i is not None:
            body = [r for r in tables_of[path][1:] if i >= len(r) or r[i].strip() in kept | {"", "-"}]
            _store(path, [tables_of[path][0], *body])
    for path in _files(root, ".json"):
        data = _load(path)
        if isinstance(data, dict) and any(re.fullmatch(r"step\d+", key) for key in data):
            left = {k: v for k, v in data.items() if not re.fullmatch(r"step\d+", k) or k[4:] in kept}
            replace_file(path, json.dumps(left).encode())
    for path in databases:
        _drop_steps(path, kept)
    return f"steps but {', '.join(_in_order(kept))}"


def _windows(path: Path) -> dict[str, tuple[int, int]]:
    """step -> from its mark to the next one's, or without an end, as a profiler's database tells."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT id, startNs FROM STEP_TIME ORDER BY startNs").fetchall()
    except sqlite3.Error:
        return {}
    finally:
        connection.close()
    ends = [*(start for _, start in rows[1:]), 1 << 62]
    return {str(name): (start, end) for (name, start), end in zip(rows, ends, strict=True)}


def _drop_steps(path: Path, kept: set[str]) -> None:
    """Takes all steps but these out of a database: their marks, and what begins within them or names them."""
    replace_file(path, path.read_bytes())
    with sqlite3.connect(path) as connection:
        for name, window in _windows(path).items():
            if name in kept:
                continue
            connection.execute("DELETE FROM STEP_TIME WHERE id = ?", (name,))
            for (table,) in connection.execute(_TABLES).fetchall():
                columns = {column for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")')}
                if "step" in columns:
                    connection.execute(f'DELETE FROM "{table}" WHERE step = ?', (f"step{name}",))
                elif {"startNs", "endNs"} <= columns and table != "STEP_TIME":
                    connection.execute(f'DELETE FROM "{table}" WHERE startNs >= ? AND startNs < ?', window)
        if {"TASK", "COMPUTE_TASK_INFO"} <= {table for (table,) in connection.execute(_TABLES)}:
            connection.execute(
                "DELETE FROM COMPUTE_TASK_INFO WHERE globalTaskId NOT IN (SELECT globalTaskId FROM TASK)"
            )
    connection.close()


def _load(path: Path) -> Any:
    if path.stat().st_size > 2_000_000:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except ValueError:
        return None


@cut("members")
def members(root: Path, draw: Random) -> str | None:
    """Members of a JSON file are there on no rank: a profiler that wrote less."""
    kinds = {name: paths for name, paths in _by_kind(root, ".json").items() if isinstance(_load(paths[0]), dict)}
    if not kinds:
        return None
    name = draw.choice(sorted(kinds))
    gone: set[str] = set()
    for path in kinds[name]:
        data = _load(path)
        inner = data
        while isinstance(inner, dict) and len(inner) == 1 and isinstance(next(iter(inner.values())), dict):
            inner = next(iter(inner.values()))
        if not isinstance(inner, dict) or not inner:
            continue
        gone = gone or set(draw.sample(sorted(inner), draw.randint(1, max(len(inner) // 2, 1))))
        for key in gone:
            inner.pop(key, None)
        replace_file(path, json.dumps(data).encode())
    return f"{', '.join(sorted(gone))[:80]} of {name}" if gone else None


@cut("events")
def events(root: Path, draw: Random) -> str | None:
    """A timeline holds fewer kinds of events, or ends early."""
    found = [p for p in _files(root, ".json") if isinstance(_load(p), list)]
    if not found:
        return None
    told = ""
    for path in found:
        data = [event for event in _load(path) if isinstance(event, dict)]
        lanes = sorted({str(event.get("pid")) for event in data})
        if not lanes:
            continue
        if draw.random() < 0.5:
            gone = set(draw.sample(lanes, draw.randint(1, len(lanes))))
            data = [event for event in data if str(event.get("pid")) not in gone]
            told = f"{len(gone)} of {len(lanes)} lanes"
        else:
            data = data[: max(len(data) // draw.choice((2, 10)), 1)]
            told = "the later events"
        replace_file(path, json.dumps(data).encode())
    return told or None


@cut("database")
def database(root: Path, draw: Random) -> str | None:
    """Tables of the profiler's database are not there."""
    paths = _files(root, ".db")
    told: set[str] = set()
    for path in paths:
        data = path.read_bytes()
        replace_file(path, data)
        with sqlite3.connect(path) as connection:
            names = [name for (name,) in connection.execute(_TABLES)]
            told = told or set(draw.sample(sorted(names), draw.randint(1, max(len(names) - 1, 1))))
            for name in told & set(names):
                connection.execute(f'DROP TABLE "{name}"')
        connection.close()
    return f"tables {', '.join(sorted(told))[:80]}" if told else None


@cut("early_end")
def early_end(root: Path, draw: Random) -> str | None:
    """The last rows of one table of the databases were never written, on one rank or on all."""
    paths = _files(root, ".db")
    part = draw.choice((0.05, 0.3, 0.7))
    told = ""
    for path in paths if draw.random() < 0.6 else paths[:1]:
        replace_file(path, path.read_bytes())
        with sqlite3.connect(path) as connection:
            names = sorted(name for (name,) in connection.execute(_TABLES))
            told = told or (draw.choice(names) if names else "")  # another cut may have taken all
            if told in names:
                (count,) = connection.execute(f'SELECT COUNT(*) FROM "{told}"').fetchone()
                keep = max(int(part * count), 1)
                connection.execute(
                    f'DELETE FROM "{told}" WHERE rowid NOT IN (SELECT rowid FROM "{told}" ORDER BY rowid LIMIT ?)',
                    (keep,),
                )
        connection.close()
    return f"all but {part:.0%} of table {told}" if told else None
