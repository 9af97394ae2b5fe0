"""Kernels from the profilers' databases: tasks, what they computed, collectives and the counters of the cores.

Texts are ids into STRING_IDS; times are nanoseconds already. Tables and columns come and go with versions, so each is
looked for before it is read.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from advisor.basics.arrays import Ints
from advisor.basics.numbering import numbered
from advisor.sources.coded import Coded
from advisor.sources.connection import are_times, columns_of, connect, is_time
from advisor.sources.database.columns import keep, read_columns
from advisor.sources.database.dbfile import distinct_steps, read_texts, step_query, text_behind
from advisor.sources.database.devicewindows import Step, on_device
from advisor.sources.database.kernel_counters import Measured, measured_at_once, measured_by_rows, pipes_of
from advisor.sources.database.pages import NOTHING, Cells, Columns, Unfit
from advisor.sources.database.sums import described, tasks_behind
from advisor.sources.reference import Note
from advisor.sources.streams.kernel_blocks import MARK
from advisor.sources.streams.kernel_cells import UNKNOWN, Block
from advisor.tables import TABLES

log = logging.getLogger("advisor")

_ROWS = 100_000
"""Its name, where it begins and ends, nanoseconds."""
_TEXTS = {
    "name": ("name",), "type": ("opType",), "core": ("taskType",), "state": ("opState",),
    "input_shapes": ("inputShapes",), "input_dtypes": ("inputDataTypes",), "input_formats": ("inputFormats",),
    "output_shapes": ("outputShapes",), "output_dtypes": ("outputDataTypes",), "output_formats": ("outputFormats",),
}  # fmt: skip
_COUNTS = {"block_num": ("blockNum", "blockDim"), "mix_block_num": ("mixBlockNum", "mixBlockDim")}


def database_blocks(path: Path, note: Note, device: str | None = None) -> Iterator[Block]:
    """Blocks of at most 100,000 kernels from one database, of one device where several share it. Raises
    sqlite3.DatabaseError where it is damaged, possibly after some blocks: they are then no fair sample of the rest."""
    connection = connect(path)
    try:
        strings = Texts(texts_of(connection))
        steps = _steps(connection, path, note)
        found = False
        computed, talked = _computed(connection, path, strings, device), _collectives(connection, path, strings, device)
        for block in chain(computed, talked, _lost(connection, path) if device is None else ()):
            found = True
            yield _with_steps(block, steps)
        if strings.lost:
            text = f"{strings.lost} names, types or shapes of kernels have no text in STRING_IDS; left out"
            damaged = strings.lost > _FEW_LOST * strings.asked
            note(str(path), text, ("kernels", "collectives") if damaged else ())
        if not found:
            note(str(path), "holds no kernels: TASK with COMPUTE_TASK_INFO, or COMMUNICATION_OP, is missing or empty")
    finally:
        connection.close()


_FEW_LOST = 0.02
"""Part of the cells that may lack their texts before nobody knows any more what ran."""


class Texts(dict[Any, str]):
    """Texts by id, for how many cells they were asked, and how many of these have none."""

    asked = lost = 0

    def __init__(self, known: Mapping[Any, str] = MappingProxyType({})) -> None:
        super().__init__(known)
        self._shown = _Shown(self)

    def each(self, values: Sequence[Any]) -> Coded:
        """The texts behind ids; a text stands for itself."""
        self.asked += len(values)
        known: dict[Any, str] = {}
        for value in dict.fromkeys(values):
            found = text_behind(self, value)
            if found is None and value is not None:
                self.lost += values.count(value)
            known[value] = _text(found)
        return Coded.of([known[value] for value in values])

    def behind(self, ids: Ints) -> Coded:
        """The same of ids in an array."""
        self.asked += ids.size
        different, place = numbered(ids)
        lost = [value for value in different.tolist() if value not in self and value != NOTHING]
        self.lost += int(np.isin(ids, lost).sum()) if lost else 0
        return Coded(place, [*map(self._shown.__getitem__, different.tolist())])


class _Shown(dict[Any, str]):
    """Texts by id as kernels show them; most are asked for block after block."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def __missing__(self, identity: Any) -> str:
        text = self[identity] = _text(self._texts.get(identity))
        return text


def texts_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Texts by id."""
    if not {"id", "value"} <= columns_of(connection, "STRING_IDS"):
        return {}
    return keep(connection, "texts", lambda: read_texts(connection, "STRING_IDS"))


def _steps(connection: sqlite3.Connection, path: Path, note: Note) -> list[Step]:
    query = step_query(columns_of(connection, "STEP_TIME"))
    rows = connection.execute(query).fetchall() if query else []
    timed = [(str(name), start, end) for name, start, end in rows if is_time(start) and is_time(end)]
    if len(timed) < len(rows):
        note(str(path), f"{len(rows) - len(timed)} of {len(rows)} steps in STEP_TIME have no usable time")
    return on_device(connection, distinct_steps(timed))


def _with_steps(block: Block, steps: list[Step]) -> Block:
    """Gives each kernel the step in whose window it starts; those outside all windows belong to the last step."""
    start: Ints = block["start_ns"]
    if not steps or not start.size:
        return block
    at = np.searchsorted(np.array([start for _, start, _ in steps]), start, side="right") - 1
    return block | {
        "step": Coded(np.where(start == UNKNOWN, len(steps) - 1, np.maximum(at, 0)), [n for n, _, _ in steps])
    }


def _pick(available: set[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in available), None)


def devices_of(path: Path) -> set[str]:
    """The devices whose tasks a database holds, where it describes several; empty where nothing tells them apart."""
    connection = connect(path)
    try:
        if not {"deviceId", "globalTaskId"} <= columns_of(connection, "TASK"):
            return set()
        if {"id"} <= columns_of(connection, "NPU_INFO"):
            known = connection.execute("SELECT COUNT(DISTINCT id) FROM NPU_INFO").fetchone()[0]
            if known == 1:
                return set()
        rows = connection.execute("SELECT DISTINCT deviceId FROM TASK").fetchall()
    finally:
        connection.close()
    return {str(value) for (value,) in rows if isinstance(value, int)}


def _computed(connection: sqlite3.Connection, path: Path, strings: Texts, device: str | None) -> Iterator[Block]:
    task, info = columns_of(connection, "TASK"), columns_of(connection, "COMPUTE_TASK_INFO")
    if not {"startNs", "endNs", "globalTaskId"} <= task or "globalTaskId" not in info:
        return
    texts = {name: column for name, columns in _TEXTS.items() if (column := _pick(info, columns))}
    counts = {name: column for name, columns in _COUNTS.items() if (column := _pick(info, columns))}
    try:
        tasks = _joined_tasks(connection, path, "streamId" in task, [*texts.values()], [*counts.values()], device)
        measured = measured_at_once(connection, path, strings)
    except Unfit as reason:
        log.debug("%s is read row by row: %s", path, reason)
        yield from _row_by_row(connection, strings, texts, counts, "streamId" in task, device)
    else:
        yield from _plain_blocks(tasks, texts, counts, measured, strings)


def _joined_tasks(
    connection: sqlite3.Connection,
    path: Path,
    streams: bool,
    texts: Sequence[str],
    counts: Sequence[str],
    device: str | None,
) -> Columns:
    """Columns of TASK and of COMPUTE_TASK_INFO for the tasks that stand in both, by start."""
    names = ["startNs", "endNs", "globalTaskId", *(["streamId"] if streams else [])]
    tasks = _own_columns(connection, path, "TASK", names, device)
    told = {"globalTaskId": Cells.WHOLE, **dict.fromkeys(texts, Cells.WHOLE), **dict.fromkeys(counts, Cells.REAL)}
    infos = read_columns(connection, path, "COMPUTE_TASK_INFO", told)
    at, kept = described(infos.pop("globalTaskId"), tasks["globalTaskId"])
    order = np.argsort(tasks["startNs"][kept], kind="stable")
    at, kept = at[order], kept[order]
    return {f"t.{name}": cells[kept] for name, cells in tasks.items()} | {
        f"c.{name}": cells[at] for name, cells in infos.items()
    }


def _own_columns(
    connection: sqlite3.Connection, path: Path, table: str, names: Sequence[str], device: str | None
) -> Columns:
    """Columns of whole numbers, of one device's rows where several share the database. Raises Unfit."""
    found = read_columns(
        connection, path, table, dict.fromkeys([*names, *(["deviceId"] if device else [])], Cells.WHOLE)
    )
    if device:
        own = found["deviceId"] == int(device)
        found = {name: found[name][own] for name in names}
    return found


def _plain_blocks(
    tasks: Columns, texts: dict[str, str], counts: dict[str, str], measured: Measured, strings: Texts
) -> Iterator[Block]:
    for place in range(0, len(tasks["t.startNs"]), _ROWS):
        part = {name: cells[place : place + _ROWS] for name, cells in tasks.items()}
        block = _times(part["t.startNs"], part["t.endNs"])
        if "t.streamId" in part:
            streams, stream = numbered(part["t.streamId"])
            block["stream"] = Coded(stream, ["" if number == NOTHING else str(number) for number in streams.tolist()])
        block.update((name, strings.behind(part[f"c.{column}"])) for name, column in texts.items())
        for name, column in counts.items():
            block[name] = part[f"c.{column}"] * TABLES["kernels"].column(name).scale
        yield block | pipes_of(measured, part["t.globalTaskId"])


def _row_by_row(
    connection: sqlite3.Connection,
    strings: Texts,
    texts: dict[str, str],
    counts: dict[str, str],
    streams: bool,
    device: str | None,
) -> Iterator[Block]:
    """The same through SQLite, for columns that hold anything."""
    select = ["t.startNs", "t.endNs", "t.streamId" if streams else "NULL", "t.globalTaskId"]
    select += [f"c.{column}" for column in (*texts.values(), *counts.values())]
    query = (
        f"SELECT {', '.join(select)} FROM TASK t JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId "
        f"{_only(device, 't.')}ORDER BY t.startNs"
    )
    measured = measured_by_rows(connection, strings)
    cursor = connection.execute(query)
    while rows := cursor.fetchmany(_ROWS):
        block = _block(rows, ("task", *texts, *counts), set(texts), strings)
        yield block | pipes_of(measured, block.pop("task"))


def _only(device: str | None, table: str = "") -> str:
    return "" if device is None else f"WHERE {table}deviceId = {int(device)} "


def _block(rows: list[tuple[Any, ...]], names: tuple[str, ...], texts: set[str], strings: Texts) -> Block:
    """Kernels from rows of start, end, stream and these columns; `task` is kept as a number."""
    start, end, stream, *rest = zip(*rows, strict=True)
    block = _times(*(np.array([t if is_time(t) else -1 for t in times], np.int64) for times in (start, end)))
    block["stream"] = Coded.of(["" if number is None else str(number) for number in stream])
    for name, values in zip(names, rest, strict=True):
        if name in texts:
            block[name] = strings.each(values)
        elif name == "task":
            block[name] = np.array([v if isinstance(v, int) else -1 for v in values], np.int64)
        else:
            numbers = [float(v) if isinstance(v, (int, float)) else np.nan for v in values]
            block[name] = np.array(numbers) * TABLES["kernels"].column(name).scale
    return block


def _times(start: Ints, end: Ints) -> Block:
    begins, known = are_times(start), are_times(start) & are_times(end)
    return {
        "start_ns": np.where(begins, start, UNKNOWN),
        "duration_us": np.where(known, (end - start) / 1000, np.nan),
    }


_WITHOUT_COLLECTIVE = """
    SELECT COUNT(*) FROM (SELECT DISTINCT opId FROM COMMUNICATION_TASK_INFO)
    WHERE opId NOT IN (SELECT opId FROM COMMUNICATION_OP)
"""
"""Every collective consists of tasks."""


def _lost(connection: sqlite3.Connection, path: Path) -> Iterator[Block]:
    """Kernels without times for what other tables know of: computed tasks without a task, collectives that were
    analysed or have tasks."""
    lost = 0
    if {"globalTaskId"} <= columns_of(connection, "TASK") & columns_of(connection, "COMPUTE_TASK_INFO"):
        lost += _half_told(connection, path)
    plain = columns_of(connection, "COMMUNICATION_OP")
    rows = connection.execute("SELECT COUNT(*) FROM COMMUNICATION_OP").fetchone()[0] if plain else 0
    timed = rows if {"startNs", "endNs"} <= plain else 0
    known = 0
    if columns_of(connection, "CommAnalyzerTime"):
        known = connection.execute("SELECT COUNT(*) FROM CommAnalyzerTime").fetchone()[0]
    if {"opId"} <= columns_of(connection, "COMMUNICATION_TASK_INFO") & plain:
        known = max(known, rows + connection.execute(_WITHOUT_COLLECTIVE).fetchone()[0])
    lost += max(known, rows) - timed
    while lost > 0:
        count = min(lost, _ROWS)
        lost -= count
        yield _block([(None, None, None)] * count, (), set(), Texts())


def _half_told(connection: sqlite3.Connection, path: Path) -> int:
    """How many tasks COMPUTE_TASK_INFO describes that TASK does not hold, 0 where a task there has no number, and how
    many TASK holds behind the last one described."""
    try:
        told = read_columns(connection, path, "COMPUTE_TASK_INFO", {"globalTaskId": Cells.WHOLE})["globalTaskId"]
        tasks = read_columns(connection, path, "TASK", {"globalTaskId": Cells.WHOLE, "startNs": Cells.WHOLE})
    except Unfit:
        query = "SELECT COUNT(*) FROM COMPUTE_TASK_INFO WHERE globalTaskId NOT IN (SELECT globalTaskId FROM TASK)"
        return int(connection.execute(query).fetchone()[0])
    held = tasks["globalTaskId"]
    if (held == NOTHING).any():
        return 0
    last = tasks["startNs"][np.isin(held, told)].max(initial=0)
    columns = {name.lower() for name in columns_of(connection, "TASK")}
    behind = tasks_behind(lambda query: connection.execute(query).fetchall(), columns, int(last)) if last > 0 else 0
    return int((~np.isin(told, held) & (told != NOTHING)).sum()) + behind


def _text(value: object) -> str:
    text = str(value).strip(' \t"').replace(MARK, " ") if value is not None else ""
    return "" if text == "N/A" else text


def _collectives(connection: sqlite3.Connection, path: Path, strings: Texts, device: str | None) -> Iterator[Block]:
    available = columns_of(connection, "COMMUNICATION_OP")
    if not {"startNs", "endNs", *(["deviceId"] if device else [])} <= available:
        return
    told = {"name": "opName", "type": "opType"}
    try:
        found = _own_columns(
            connection, path, "COMMUNICATION_OP", ["startNs", "endNs", *available.intersection(told.values())], device
        )
    except Unfit as reason:
        log.debug("collectives of %s are read row by row: %s", path, reason)
        yield from _collectives_by_rows(connection, strings, device, available)
        return
    order = np.argsort(found["startNs"], kind="stable")
    for place in range(0, len(order), _ROWS):
        part = {name: cells[order[place : place + _ROWS]] for name, cells in found.items()}
        texts = {name: strings.behind(part[column]) for name, column in told.items() if column in part}
        yield _talking(_times(part["startNs"], part["endNs"]) | texts)


def _talking(block: Block) -> Block:
    """Collectives as kernels, of which no stream is told."""
    return block | {"core": Coded(np.zeros(len(block["start_ns"]), np.int64), ["COMMUNICATION"])}


def _collectives_by_rows(
    connection: sqlite3.Connection, strings: Texts, device: str | None, available: set[str]
) -> Iterator[Block]:
    """The same through SQLite, for columns that hold anything."""
    name, kind = (column if column in available else "NULL" for column in ("opName", "opType"))
    cursor = connection.execute(
        f"SELECT startNs, endNs, NULL, {name}, {kind} FROM COMMUNICATION_OP {_only(device)}ORDER BY startNs"
    )
    while rows := cursor.fetchmany(_ROWS):
        yield _talking(_block(rows, ("name", "type"), {"name", "type"}, strings))
