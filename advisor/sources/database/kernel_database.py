"""Kernels from the profilers' databases: tasks, what they computed, collectives and the counters of the cores.

Texts are ids into STRING_IDS; times are nanoseconds already. Tables and columns come and go with versions, so each is
looked for before it is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.sources.database.dbfile import PLAIN_TABLES, TEXTS, connect, distinct_steps, step_query, texts_by_id
from advisor.sources.reference import Note
from advisor.sources.streams.kernel_blocks import MARK
from advisor.tables import TABLES

if TYPE_CHECKING:
    import polars as pl

_ROWS = 100_000
_TEXTS = {
    "name": ("name",), "type": ("opType",), "core": ("taskType",), "state": ("opState",),
    "input_shapes": ("inputShapes",), "input_dtypes": ("inputDataTypes",), "input_formats": ("inputFormats",),
    "output_shapes": ("outputShapes",), "output_dtypes": ("outputDataTypes",), "output_formats": ("outputFormats",),
}  # fmt: skip
_COUNTS = {"block_num": ("blockNum", "blockDim"), "mix_block_num": ("mixBlockNum", "mixBlockDim")}


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Column names of a plain table; empty where it does not exist, or is a view, which would run its author's code."""
    if connection.execute(PLAIN_TABLES + " AND name = ?", (table,)).fetchone() is None:
        return set()
    return {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')}


def database_frames(path: Path, note: Note) -> Iterator[pl.DataFrame]:
    """Canonical frames of at most 100,000 kernels from one database. Raises sqlite3.DatabaseError where it is damaged,
    possibly after some frames: they are then no fair sample of the rest."""
    connection = connect(path)
    try:
        strings = Texts(texts_of(connection))
        steps = _steps(connection)
        found = False
        for frame in chain(_computed(connection, strings), _collectives(connection, strings), _lost(connection)):
            found = True
            yield _with_steps(frame, steps)
        if strings.lost:
            note(str(path), f"{strings.lost} names, types or shapes of kernels have no text in STRING_IDS; left out")
        if not found:
            note(str(path), "holds no kernels: TASK with COMPUTE_TASK_INFO, or COMMUNICATION_OP, is missing or empty")
    finally:
        connection.close()


class Texts(dict[Any, str]):
    """Texts by id, and how many ids had none."""

    lost = 0

    def each(self, values: Sequence[Any]) -> list[str | None]:
        """The texts behind ids; a text stands for itself."""
        known: dict[Any, str | None] = {}
        for value in dict.fromkeys(values):
            found = value if value is None or isinstance(value, str) else self.get(value)
            if found is None and value is not None:
                self.lost += values.count(value)
            known[value] = _text(found)
        return [known[value] for value in values]


def texts_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Texts by id."""
    if not {"id", "value"} <= columns_of(connection, "STRING_IDS"):
        return {}
    return texts_by_id(connection.execute(TEXTS.format("STRING_IDS")))


def _steps(connection: sqlite3.Connection) -> list[tuple[str, int, int]]:
    query = step_query(columns_of(connection, "STEP_TIME"))
    rows = connection.execute(query) if query else ()
    return distinct_steps([(str(name), start, end) for name, start, end in rows if is_time(start) and is_time(end)])


def _with_steps(frame: pl.DataFrame, steps: list[tuple[str, int, int]]) -> pl.DataFrame:
    """Gives each kernel the step in whose window it starts; those outside all windows belong to the last step."""
    import polars as pl

    if not steps or frame.is_empty():
        return frame
    starts = np.array([start for _, start, _ in steps])
    at = np.searchsorted(starts, frame["start_ns"].to_numpy(), side="right") - 1
    names = [steps[max(int(i), 0)][0] for i in at]
    return frame.with_columns(pl.Series("step", names))


def _pick(available: set[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in available), None)


def _counters(connection: sqlite3.Connection, strings: dict[int, str]) -> dict[str, list[int]]:
    """Canonical pipe column -> ids of its name in TASK_PMU_INFO."""
    from advisor.sources.text.csvfiles import split_heading

    if not {"globalTaskId", "name", "value"} <= columns_of(connection, "TASK_PMU_INFO"):
        return {}
    known = {
        split_heading(heading)[0]: column.name
        for column in TABLES["kernels"].columns
        for heading in column.headings
        if column.name.endswith(("_ratio", "_utilization"))
    }
    found: dict[str, list[int]] = {}
    for (identity,) in connection.execute("SELECT DISTINCT name FROM TASK_PMU_INFO"):
        column = known.get(split_heading(str(strings.get(identity, identity)))[0])
        if column:
            found.setdefault(column, []).append(int(identity))
    return found


def _computed(connection: sqlite3.Connection, strings: Texts) -> Iterator[pl.DataFrame]:
    task, info = columns_of(connection, "TASK"), columns_of(connection, "COMPUTE_TASK_INFO")
    if not {"startNs", "endNs", "globalTaskId"} <= task or "globalTaskId" not in info:
        return
    import polars as pl

    texts = {name: column for name, columns in _TEXTS.items() if (column := _pick(info, columns))}
    counts = {name: column for name, columns in _COUNTS.items() if (column := _pick(info, columns))}
    counters = _counters(connection, strings)
    select = ["t.startNs", "t.endNs", "t.streamId" if "streamId" in task else "NULL", "t.globalTaskId"]
    select += [f"c.{column}" for column in (*texts.values(), *counts.values())]
    query = (
        f"SELECT {', '.join(select)} FROM TASK t JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId "
        "ORDER BY t.startNs"
    )
    measured = _measured(connection, counters)
    cursor = connection.execute(query)
    while rows := cursor.fetchmany(_ROWS):
        frame = _frame(rows, ("task", *texts, *counts), set(texts), strings)
        tasks = frame["task"].to_numpy()
        yield frame.drop("task").with_columns(
            pl.Series(name, values.of(tasks)).fill_nan(None) * TABLES["kernels"].column(name).scale
            for name, values in measured.items()
        )


@dataclass(frozen=True)
class _Values:
    """The values of one counter by task: tasks sorted, each once."""

    tasks: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def of(self, tasks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The value of each task; NaN where there is none."""
        if not self.tasks.size:
            return np.full(tasks.size, np.nan)
        at = np.minimum(np.searchsorted(self.tasks, tasks), self.tasks.size - 1)
        return np.where(self.tasks[at] == tasks, self.values[at], np.nan)


def _measured(connection: sqlite3.Connection, counters: dict[str, list[int]]) -> dict[str, _Values]:
    """The counters of all tasks, the largest value where one stands twice: read in one pass, for there are millions."""
    if not counters:
        return {}
    column = {identity: place for place, ids in enumerate(counters.values()) for identity in ids}
    query = f"SELECT globalTaskId, name, value FROM TASK_PMU_INFO WHERE name IN ({','.join(map(str, column))})"
    cursor, parts = connection.execute(query), []
    while rows := cursor.fetchmany(_ROWS):
        try:
            cells = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows))
        except (TypeError, ValueError, OverflowError):
            rows = [row for row in rows if all(type(cell) in (int, float) and abs(cell) < 1 << 53 for cell in row)]
            cells = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows))
        parts.append(cells.reshape(-1, 3))
    task, name, value = np.concatenate(parts or [np.zeros((0, 3))]).T
    found = {}
    for place, counter in enumerate(counters):
        mine = np.isin(name, [identity for identity, own in column.items() if own == place]) & np.isfinite(value)
        order = np.lexsort((-value[mine], task[mine]))
        tasks, first = np.unique(task[mine][order], return_index=True)
        found[counter] = _Values(tasks.astype(np.int64), value[mine][order][first])
    return found


def _frame(rows: list[tuple[Any, ...]], names: tuple[str, ...], texts: set[str], strings: Texts) -> pl.DataFrame:
    """Kernels from rows of start, end, stream and these columns; `task` is kept as a number."""
    import polars as pl

    start, end, stream, *rest = zip(*rows, strict=True)
    begin, stop = (np.array([t if is_time(t) else -1 for t in times], np.int64) for times in (start, end))
    timed = (begin >= 0) & (stop >= 0)
    known = {s: None if s is None else str(s) for s in dict.fromkeys(stream)}
    data: dict[str, pl.Series] = {
        "start_ns": pl.Series(np.where(begin >= 0, begin, 0)).set(pl.Series(begin < 0), None),
        "duration_us": pl.Series(np.where(timed, (stop - begin) / 1000, np.nan)).fill_nan(None),
        "stream": pl.Series([known[s] for s in stream], dtype=pl.String),
    }
    for name, values in zip(names, rest, strict=True):
        if name in texts:
            data[name] = pl.Series(strings.each(values), dtype=pl.String)
        elif name == "task":
            data[name] = pl.Series([v if isinstance(v, int) else -1 for v in values], dtype=pl.Int64)
        else:
            scale = TABLES["kernels"].column(name).scale
            numbers = [float(v) if isinstance(v, (int, float)) else None for v in values]
            data[name] = pl.Series(numbers, dtype=pl.Float64) * scale
    return pl.DataFrame(data)


def is_time(value: object) -> bool:
    """Whether a database's value is a time in nanoseconds; columns hold whatever was written to them."""
    return isinstance(value, int) and 0 <= value < 1 << 62


def _lost(connection: sqlite3.Connection) -> Iterator[pl.DataFrame]:
    """A frame without times for what other tables know of: computed tasks without a task, collectives analysed."""
    lost = 0
    if {"globalTaskId"} <= columns_of(connection, "TASK") & columns_of(connection, "COMPUTE_TASK_INFO"):
        query = "SELECT COUNT(*) FROM COMPUTE_TASK_INFO WHERE globalTaskId NOT IN (SELECT globalTaskId FROM TASK)"
        lost += connection.execute(query).fetchone()[0]
    plain = columns_of(connection, "COMMUNICATION_OP")
    rows = connection.execute("SELECT COUNT(*) FROM COMMUNICATION_OP").fetchone()[0] if plain else 0
    timed = rows if {"startNs", "endNs"} <= plain else 0
    known = 0
    if columns_of(connection, "CommAnalyzerTime"):
        known = connection.execute("SELECT COUNT(*) FROM CommAnalyzerTime").fetchone()[0]
    lost += max(known, rows) - timed
    while lost > 0:
        count = min(lost, _ROWS)
        lost -= count
        yield _frame([(None, None, None)] * count, (), set(), Texts())


def _text(value: object) -> str | None:
    text = str(value).strip(' \t"').replace(MARK, " ") if value is not None else ""
    return None if text in ("", "N/A") else text


def _collectives(connection: sqlite3.Connection, strings: Texts) -> Iterator[pl.DataFrame]:
    available = columns_of(connection, "COMMUNICATION_OP")
    if not {"startNs", "endNs"} <= available:
        return
    name, kind = (column if column in available else "NULL" for column in ("opName", "opType"))
    cursor = connection.execute(f"SELECT startNs, endNs, NULL, {name}, {kind} FROM COMMUNICATION_OP ORDER BY startNs")
    import polars as pl

    while rows := cursor.fetchmany(_ROWS):
        frame = _frame(rows, ("name", "type"), {"name", "type"}, strings)
        yield frame.with_columns(pl.lit("COMMUNICATION").alias("core"))
