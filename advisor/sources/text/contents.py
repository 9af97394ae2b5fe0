"""What a file is by what it holds, where its name does not tell: people rename files, and websites ask for .txt."""

from __future__ import annotations

import csv
import sqlite3
from functools import lru_cache
from pathlib import Path

from advisor.sources.database.dbfile import open_database
from advisor.sources.reference import nothing
from advisor.sources.text.csvfiles import match_columns, read_rows
from advisor.sources.text.textfiles import TooLarge, require_file
from advisor.tables import TABLES

ENDINGS = (".csv", ".txt", ".json", ".db")
_FIRST, _READ = 1 << 14, 1 << 18
"""Bytes of a file's beginning that are looked at; of a timeline's, and of its end."""
_BLANK = b"\xef\xbb\xbf \t\r\n"
_LEAST_COLUMNS = 4
"""Known headings that make a table one of a profile's; one of them names a unit, as others seldom do."""
_UNITS = (b"(us)", b"(ms)", b"(ns)", b"(kb)", b"(mb)", b"(not overlapped)")
_QUERY_S = 2.0
_NAMES = {
    "steps": "step_trace_time.csv", "iterations": "step_trace_0.csv", "kernels": "kernel_details.csv",
    "operator_types": "op_statistic.csv", "host_api": "api_statistic.csv", "aicpu": "aicpu_0.csv",
    "memory": "memory_record.csv", "operator_memory": "operator_memory.csv", "module_memory": "npu_module_mem.csv",
    "dataset_stages": "dataset.csv",
}  # fmt: skip
"""Table -> how a profiler calls the file that holds it."""
_DATABASE = "msprof.db"
_OF_DATABASE = frozenset(("task", "compute_task_info", "steptracetime", "commanalyzertime"))
_OF_ASCEND = (
    b"Ascend Hardware", b"AscendCL", b"aclnn", b'"CANN"', b"HostToDevice", b"torch_to_npu", b"Overlap Analysis",
    b"MindSpore",
)  # fmt: skip
_OF_JSON = (
    (b'"Communication Time Info"', "communication.json"),
    (b'"Transport Type"', "communication_matrix.json"),
)


def name_by_content(path: Path) -> str | None:
    """How a profiler would have called this file; None where it is none of a profile's, as far as its ends show."""
    if not path.name.lower().endswith(ENDINGS):
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return _name(path, status.st_size, status.st_mtime_ns)


def name_despite_its_own(path: Path, table: str) -> str | None:
    """How a profiler would have called a file whose own name tells this table, where its headings lack what every such
    table has and are another's; else None."""
    told = name_by_content(path) if table in _NAMES else None
    if told is None or told == _NAMES[table]:
        return None
    columns = TABLES[table].columns
    found = match_columns(columns, next(read_rows(path, nothing), []))
    return None if all(column.name in found for column in columns if column.required) else told


@lru_cache(maxsize=4096)
def _name(path: Path, size: int, changed: int) -> str | None:
    """Each file is looked at once, whoever asks."""
    del changed
    try:
        require_file(path)
        with path.open("rb") as stream:
            data = stream.read(_FIRST)
            if data.startswith(b"SQLite format 3\x00"):
                return _of_database(path)
            if data.lstrip(_BLANK)[:1] not in (b"[", b"{"):
                heading = data.replace(b"\x00", b"").partition(b"\n")[0].lower()
                return _of_table(path) if any(unit in heading for unit in _UNITS) else None
            if b'"ph"' in data:
                data += stream.read(_READ)
                stream.seek(max(size - _READ, 0))
                data += stream.read(_READ)
            return _of_json(data)
    except (OSError, sqlite3.Error, ValueError, TooLarge, csv.Error):
        return None  # what cannot be read is nobody's file


def _of_database(path: Path) -> str | None:
    with open_database(path, limit_s=_QUERY_S) as database:
        return _DATABASE if _OF_DATABASE & database.tables.keys() else None


def _of_json(data: bytes) -> str | None:
    if b'"ph"' in data and any(word in data for word in _OF_ASCEND):
        return "trace_view.json"
    of_rank = data.lstrip(_BLANK + b"{").startswith(b'"step')  # a cluster's files begin with groups
    return next((name for key, name in _OF_JSON if key in data), None) if of_rank else None


def _of_table(path: Path) -> str | None:
    heading = next(read_rows(path, nothing), [])
    best, most = None, _LEAST_COLUMNS - 1
    for table, name in _NAMES.items():
        columns = TABLES[table].columns
        found = match_columns(columns, heading)
        if len(found) > most and all(column.name in found for column in columns if column.required):
            best, most = name, len(found)
    return best
