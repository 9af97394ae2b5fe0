"""Opening a profiler's database: read-only, immutable, bounded in time, real tables only.

A profile may come from anywhere. Views, virtual tables and triggers run code of the file's author, so nothing but
plain tables is ever queried, and every query stops after a time limit.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt

from advisor.sources.base import Rank
from advisor.sources.coded import Coded
from advisor.sources.connection import connect
from advisor.sources.database.columns import keep, read_columns, read_with_texts
from advisor.sources.database.devicewindows import Step, on_device
from advisor.sources.database.pages import NOTHING, Cells, Columns, Unfit
from advisor.sources.database.rowchecks import LOOKED_AT, odd_rows
from advisor.sources.metadata import as_int
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.textfiles import why_unreadable
from advisor.sources.topology import LARGEST_WORLD
from advisor.tables import LONGEST_TEXT

NO_RANK = 0xFFFF
"""What tasks of collectives hold where they have no partner, or 0xFFFFFFFF."""
MOST_IDS = 8
"""Ids of one text at most: each profiler that writes to a database gives a text one id. What stands under more was
written over other texts."""

_NEEDS: tuple[tuple[str, str, tuple[frozenset[str], ...]], ...] = (
    ("steps", "db.steps", (frozenset({"steptracetime"}), frozenset({"task", "compute_task_info"}))),
    ("kernels", "kernels.db", (frozenset({"task", "compute_task_info"}),)),
    ("operator_types", "db.operator_types", (frozenset({"task", "compute_task_info"}),)),
    ("host_api", "db.host_api", (frozenset({"cann_api"}),)),
    ("collectives", "db.collectives", (frozenset({"commanalyzertime"}), frozenset({"communication_op"}))),
    ("transports", "db.transports", (frozenset({"commanalyzerbandwidth"}),)),
    ("packets", "db.transports", (frozenset({"commanalyzerbandwidth"}),)),
    ("links", "db.links", (frozenset({"commanalyzermatrix"}),)),
    ("memory", "db.memory", (frozenset({"memory_record"}), frozenset({"npu_mem"}))),
    ("operator_memory", "db.operator_memory", (frozenset({"op_memory"}),)),
    ("module_memory", "db.module_memory", (frozenset({"npu_module_mem"}),)),
)
"""Canonical table, reader, and the database tables it can be made from, best first."""
_EXPECTED = {"string_ids", "step_time", "rank_device_map", "host_info", "meta_data"}.union(
    *(tables for _, _, alternatives in _NEEDS for tables in alternatives)
)


_ALWAYS: dict[str, tuple[str, ...]] = {
    "STRING_IDS": ("id", "value"),
    "STEP_TIME": ("id", "startNs", "endNs"),
    "RANK_DEVICE_MAP": ("rankId", "deviceId"),
    "HOST_INFO": ("hostName",),
    "TASK": ("startNs", "endNs", "globalTaskId"),
    "COMPUTE_TASK_INFO": ("name", "globalTaskId", "opType"),
    "COMMUNICATION_OP": ("opName", "startNs", "endNs"),
    "CANN_API": ("startNs", "endNs", "type", "name"),
    "StepTraceTime": ("step", "computing", "communication_not_overlapped", "free"),
    "CommAnalyzerTime": ("hccl_op_name", "elapse_time", "transit_time", "wait_time", "synchronization_time"),
    "CommAnalyzerBandwidth": ("hccl_op_name", "transport_type", "transit_size", "transit_time"),
    "CommAnalyzerMatrix": ("hccl_op_name", "src_rank", "dst_rank", "transit_size", "transit_time"),
}
"""Columns that every version of these tables has and that facts are made of: where one is gone, something broke."""
_SOMETIMES: dict[str, tuple[str, ...]] = {
    "TASK": ("streamId", "taskType", "connectionId"),
    "COMPUTE_TASK_INFO": (
        "taskType",
        "blockDim",
        "blockNum",
        "inputShapes",
        "inputDataTypes",
        "inputFormats",
        "outputShapes",
        "outputDataTypes",
        "opState",
    ),
    "COMMUNICATION_OP": ("opType", "rankSize", "groupName", "connectionId"),
    "CANN_API": ("connectionId",),
    "StepTraceTime": (
        "overlapped",
        "communication",
        "stage",
        "bubble",
        "communication_not_overlapped_and_exclude_receive",
        "preparing",
    ),
    "CommAnalyzerTime": ("group_name", "step", "type", "start_timestamp", "idle_time"),
    "CommAnalyzerBandwidth": ("group_name", "step", "type", "large_packet_ratio", "package_size", "count"),
    "CommAnalyzerMatrix": ("group_name", "step", "type", "transport_type"),
}
"""Columns that only some versions have; the ranks of one profile should agree on them."""
_EXTRA = ("task_pmu_info", "aicore_freq", "enum_api_type", "npu_info", "pytorch_api", "mstx_events")
"""Tables that add to others; together with the expected ones, those that are compared between ranks."""


class Database:
    """One open database: its plain tables with their columns, and queries that give lists of rows."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self.tables: dict[str, dict[str, str]] = {}
        """Lower-case table name -> lower-case column name -> column name as written."""
        self.odd: list[str] = []
        """Names that are views or virtual tables and are therefore not read."""
        self._names: dict[str, str] = {}
        for name, kind, sql in connection.execute("SELECT name, type, sql FROM sqlite_master"):
            if kind == "table" and not str(sql or "").lstrip().upper().startswith("CREATE VIRTUAL"):
                key = str(name).lower()
                self._names[key] = str(name)
                columns = connection.execute(f"PRAGMA table_info({quoted(str(name))})").fetchall()
                self.tables[key] = {str(column[1]).lower(): str(column[1]) for column in columns}
            elif kind in ("table", "view"):
                self.odd.append(str(name))

    def has(self, table: str, *columns: str) -> bool:
        known = self.tables.get(table.lower())
        return known is not None and all(column.lower() in known for column in columns)

    def holds_rows(self, table: str) -> bool:
        """Whether a table the advisor reads has a row; a damaged one counts, so that the damage is told on reading."""
        if table not in _EXPECTED:
            return True
        try:
            return bool(self.rows(f"SELECT 1 FROM {self.name(table)} LIMIT 1"))
        except sqlite3.DatabaseError:
            return True

    def name(self, table: str) -> str:
        return quoted(self._names[table.lower()])

    def columns(self, table: str, cells: Mapping[str, Cells]) -> Columns:
        """Columns of numbers, as `read_columns` gives them. Raises Unfit, also where names differ in case."""
        return read_columns(self._connection, self.path, table, cells)

    def columns_with_texts(self, table: str, cells: Mapping[str, Cells]) -> dict[str, npt.NDArray[Any] | Coded]:
        """The same with columns of texts among them."""
        return read_with_texts(self._connection, self.path, table, cells)

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, parameters).fetchall()

    def select(self, table: str, columns: Sequence[str], *, distinct: bool = False) -> dict[str, list[Any]]:
        """Column -> values for those of the columns that the table has, without case; `distinct` drops repeated rows,
        where the columns tell each row from all others."""
        known = self.tables[table.lower()]
        present = [column for column in columns if column.lower() in known]
        if not present:
            return {}
        names = ", ".join(quoted(known[column.lower()]) for column in present)
        rows = self.rows(f"SELECT {names} FROM {self.name(table)}")
        rows = list(dict.fromkeys(rows)) if distinct else rows  # SQLite takes four times as long for it
        return {column: [row[i] for row in rows] for i, column in enumerate(present)}

    def strings(self) -> dict[Any, str]:
        """STRING_IDS: number -> text."""
        if not self.has("STRING_IDS", "id", "value"):
            return {}
        return keep(self._connection, "texts", lambda: read_texts(self._connection, self._names["string_ids"]))

    def on_device(self, steps: list[Step]) -> list[Step]:
        """The host's windows of steps as the device works them off."""
        return on_device(self._connection, steps)

    def names_of(self, table: str) -> dict[Any, str]:
        """An ENUM_* table: code -> name."""
        if not self.has(table, "id", "name"):
            return {}
        return dict(self.rows(f"SELECT id, name FROM {self.name(table)}"))


def text_behind(known: Mapping[Any, str], cell: Any) -> str | None:
    """The text behind a number into STRING_IDS, which a rewritten database may hold as digits; any other text stands
    for itself."""
    if not isinstance(cell, str):
        return known.get(cell)
    return known.get(int(cell), cell) if cell.isascii() and cell.isdigit() and len(cell) < 20 else cell


def read_texts(connection: sqlite3.Connection, table: str) -> dict[Any, str]:
    """Texts by id of this table, those written over left out."""
    rows: Iterable[tuple[Any, str]]
    try:
        path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        columns = read_with_texts(connection, path, table, {"id": Cells.WHOLE, "value": Cells.TEXT})
        ids, values = columns["id"], columns["value"]
        if not isinstance(values, Coded) or isinstance(ids, Coded) or (ids == NOTHING).any():
            raise Unfit("texts without an id")
        cut = [(text or "")[:LONGEST_TEXT].partition("\0")[0] for text in values.told]  # as SQLite's substr does
        rows = zip(ids.tolist(), (cut[code] for code in values.codes.tolist()), strict=True)
    except Unfit:
        query = f"SELECT id, substr(value, 1, {LONGEST_TEXT}) FROM {quoted(table)} WHERE typeof(value) = 'text'"
        rows = connection.execute(query)
    found = {key: text for key, text in rows if text}
    times = Counter(found.values())
    return {key: text for key, text in found.items() if times[text] <= MOST_IDS}


def step_query(columns: Collection[str]) -> str | None:
    """SQL for (name, start, end) of STEP_TIME with these columns; None where nobody knows when steps start.

    Only starts tell kernels their step: without names steps are numbered by place, without ends the next one's start
    ends each.
    """
    if "startNs" not in columns:
        return None
    name, end = ("id" if "id" in columns else "''"), ("endNs" if "endNs" in columns else "startNs + 1")
    return f"SELECT {name}, startNs, {end} FROM STEP_TIME ORDER BY startNs"


def distinct_steps(steps: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Steps (name, start, end) in order of start, each once; numbered by place where names do not tell them apart."""
    ordered = sorted(set(steps), key=lambda step: (step[1], step[2], step[0]))
    if len({name for name, _, _ in ordered}) == len(ordered):
        return ordered
    return [(str(place), start, end) for place, (_, start, end) in enumerate(ordered, 1)]


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_database(path: Path, limit_s: float | None = None) -> Iterator[Database]:
    """A database for reading. Raises sqlite3.Error where the file is no database."""
    connection = connect(path, limit_s)
    try:
        connection.execute("PRAGMA query_only=ON")
        yield Database(connection, path)
    finally:
        connection.close()


def links_in(path: Path) -> dict[str, list[tuple[int, int]]]:
    """Group -> (source, destination) of its links, by the group's own numbers, in the first rows of a database; none of
    one that cannot be read, which is told where it is read as a whole."""
    found: dict[str, list[tuple[int, int]]] = {}
    try:
        with open_database(path, limit_s=10.0) as database:
            if not database.has("CommAnalyzerMatrix", "group_name", "src_rank", "dst_rank"):
                return {}
            table = database.name("CommAnalyzerMatrix")
            rows = database.rows(f"SELECT group_name, src_rank, dst_rank FROM {table} LIMIT {LOOKED_AT}")
    except (sqlite3.Error, OSError):
        return {}
    for group, *ends in dict.fromkeys(rows):
        source, destination = map(str, ends)
        plain = f"{source}{destination}".isascii() and source.isdecimal() and destination.isdecimal()
        if group and plain and len(source) <= _DIGITS >= len(destination):
            found.setdefault(str(group), []).append((int(source), int(destination)))
    return found


def note_odd_rows(rank: Rank) -> None:
    """Tells what is odd about rows of the rank's databases. A file that cannot be opened was told when it was found."""
    for path in rank.databases:
        try:
            with open_database(path, limit_s=10.0) as database:
                known = {*_EXPECTED, *_EXTRA} & database.tables.keys()
                for problem in odd_rows(database.rows, {database.name(t): database.tables[t] for t in known}):
                    rank.note_path(str(path), problem)
        except (sqlite3.Error, OSError):
            continue


_DIGITS = 7
"""Of the numbers of a group's members."""


def find_database_tables(paths: Sequence[Path], note: Note) -> tuple[dict[str, TableRef], dict[str, Any]]:
    """(table -> reference, who the databases say they are: rank, device, host, npu, world_size, metadata)."""
    refs: dict[str, tuple[int, TableRef]] = {}
    identity: dict[str, Any] = {}
    for path in paths:
        try:
            with open_database(path, limit_s=10.0) as database:
                found = _identify(database)
                identity.setdefault("schema", {}).update(_schema(database))
                identity.update((key, value) for key, value in found.items() if key not in identity)
                filled = {table for table in database.tables if database.holds_rows(table)}
                for table, reader, alternatives in _NEEDS:
                    for place, needed in enumerate(alternatives):
                        if needed <= filled and place < refs.get(table, (len(alternatives), None))[0]:
                            refs[table] = (place, TableRef(table, (path,), reader))
                for table, columns in _ALWAYS.items():
                    lost = [c for c in columns if database.has(table) and not database.has(table, c)]
                    if lost:
                        note(str(path), f"table {table} lacks the column{'s' if lost[1:] else ''} {', '.join(lost)}")
                if not _EXPECTED & database.tables.keys() and not database.odd:
                    note(str(path), "holds none of the tables of a profiler's database")
                odd = [n for n in database.odd if n.lower() in _EXPECTED]
                if odd:
                    note(
                        str(path), f"has views or virtual tables where tables are expected ({', '.join(odd)}); not read"
                    )
        except OSError as error:
            note(str(path), why_unreadable(error))
            continue
        except Exception as error:
            note(str(path), f"cannot be read as a database: {str(error)[:200]}")
            continue
        journal = path.with_name(path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            note(str(path), f"has an unfinished journal ({journal.name}); what is only there was not read")
    return {table: ref for table, (_, ref) in refs.items()}, identity


def _schema(database: Database) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Table -> (file, the columns of it that the advisor reads), for the tables that it reads and that hold rows."""
    found = {}
    for table in sorted({*_EXPECTED, *_EXTRA} & database.tables.keys()):
        if database.holds_rows(table):
            known = {
                c for name, columns in (*_ALWAYS.items(), *_SOMETIMES.items()) if name.lower() == table for c in columns
            }
            found[table] = str(database.path), tuple(sorted(c for c in known if database.has(table, c)))
    return found


def _identify(database: Database) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if database.has("RANK_DEVICE_MAP", "rankId", "deviceId"):
        pairs = database.rows(f"SELECT DISTINCT rankId, deviceId FROM {database.name('RANK_DEVICE_MAP')} LIMIT 2")
        if len(pairs) == 1:
            found["rank"], device = as_int(pairs[0][0]), as_int(pairs[0][1])
            found["device"] = None if device is None else str(device)
    if database.has("HOST_INFO", "hostName"):
        names = database.rows(f"SELECT hostName FROM {database.name('HOST_INFO')} LIMIT 1")
        found["host"] = str(names[0][0]) if names and names[0][0] else None
    if database.has("NPU_INFO", "name"):
        names = database.rows(f"SELECT name FROM {database.name('NPU_INFO')} LIMIT 1")
        found["npu"] = str(names[0][0]) if names and names[0][0] else None
    if database.has("META_DATA", "name", "value"):
        found["metadata"] = dict(database.rows(f"SELECT name, value FROM {database.name('META_DATA')} LIMIT 1000"))
        found["metadata_file"] = database.path
    for table, column in (("CommAnalyzerMatrix", "src_rank"), ("CommAnalyzerMatrix", "dst_rank")):
        if database.has(table, column):
            value = database.rows(f"SELECT MAX(CAST({quoted(column)} AS INTEGER)) FROM {database.name(table)}")[0][0]
            if isinstance(value, int):
                found["world_size"] = max(found.get("world_size", 0), value + 1)
    if database.has("COMMUNICATION_OP", "rankSize"):
        value = database.rows(f"SELECT MAX(rankSize) FROM {database.name('COMMUNICATION_OP')}")[0][0]
        if isinstance(value, int) and value <= LARGEST_WORLD:
            found["world_size"] = max(found.get("world_size", 0), value)
    for column in ("srcRank", "dstRank"):
        if database.has("COMMUNICATION_TASK_INFO", column):
            named, table = quoted(column), database.name("COMMUNICATION_TASK_INFO")
            value = database.rows(
                f"SELECT MAX({named}) FROM (SELECT {named} FROM {table} LIMIT {LOOKED_AT}) WHERE {named} < {NO_RANK}"
            )[0][0]
            if isinstance(value, int):
                found["world_size"] = max(found.get("world_size", 0), value + 1)
    return {key: value for key, value in found.items() if value is not None}
