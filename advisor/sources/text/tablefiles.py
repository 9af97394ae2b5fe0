"""Which file of a modern profile holds which canonical table, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from advisor.sources.folders import natural
from advisor.sources.reference import TableRef

_COMMUNICATION = ("collectives", "transports", "packets")
_FILES = (
    (r"step_trace_time.*\.csv", ("steps",), "csv.steps"),
    (r"step_trace(?:_[0-9]+)*\.csv", ("iterations",), "csv.table"),
    (r"(?:kernel_details|op_summary).*\.csv", ("kernels",), "kernels.csv"),
    (r"task_time.*\.csv", ("tasks",), "kernels.tasks"),
    (r"op_statistic.*\.csv", ("operator_types",), "csv.table"),
    (r"api_statistic.*\.csv", ("host_api",), "csv.table"),
    (r"(?:data_preprocess|aicpu_[0-9]+).*\.csv", ("aicpu",), "csv.table"),
    (r"memory_record.*\.csv", ("memory",), "csv.table"),
    (r"operator_memory.*\.csv", ("operator_memory",), "csv.table"),
    (r"npu_module_mem.*\.csv", ("module_memory",), "csv.table"),
    (r"l2_cache.*\.csv", ("l2_cache",), "csv.table"),
    (r"communication(?!_matrix|_group|_analyzer).*\.json", _COMMUNICATION, "json.communication"),
    (r"communication_matrix.*\.json", ("links",), "json.links"),
    (r"(?:trace_view|msprof).*\.json(?:\.gz)?", ("trace",), "trace.json"),
)
_EXACT = tuple((re.compile(pattern, re.IGNORECASE), tables, name) for pattern, tables, name in _FILES)
_LOOSE = tuple(
    (re.compile(r"(?!cluster_)(?:.*[^a-z])?" + pattern, re.IGNORECASE), tables, name)
    for pattern, tables, name in _FILES
)
_SPLIT_AT = tuple(
    re.compile(r"(?P<before>(?!cluster_)(?:.*[^a-z])?)" + pattern, re.IGNORECASE) for pattern, _, _ in _FILES
)
_NUMBERED = re.compile(
    r".*?(?:step_trace_time|step_trace|kernel_details|op_summary|task_time|op_statistic|api_statistic|memory_record|"
    r"operator_memory|npu_module_mem|l2_cache|communication_matrix|communication|trace_view|msprof)"
    r"[ _.-]*(?:rank|device|dev|npu|card)?[ _.-]*(?P<bracket>\(?)(?P<number>[0-9]{1,5})\)?"
    r"\.(?:csv|json)(?:\.gz)?",
    re.IGNORECASE,
)
_STAMP = re.compile(r"_([0-9]{8,17})(?=[_.])")

DATABASE = r"(?:ascend_(?:pytorch|mindspore)_profiler|msprof|communication_analyzer|analysis).*\.db"


def tables_of_file(name: str, *, loose: bool = False) -> tuple[tuple[str, ...], str] | None:
    """(tables, reader) of a file name, None where it is none of a profile's. `loose` allows a prefix users added."""
    for pattern, tables, reader in _LOOSE if loose else _EXACT:
        if pattern.fullmatch(name):
            return tables, reader
    return None


def mark_of_file(name: str) -> tuple[str, str]:
    """What users put before and after the name of a profiler's file to keep several apart: rank0_ of
    rank0_kernel_details.csv, 3 of kernel_details_3.csv and of kernel_details (3).csv; empty where nothing. Exporters
    put no number of their own there, or several of them, or a time."""
    found = next((match for pattern in _SPLIT_AT if (match := pattern.fullmatch(name))), None)
    numbered = _NUMBERED.fullmatch(name)
    return found.group("before") if found is not None else "", numbered.group("number") if numbered is not None else ""


def number_of_file(name: str) -> int | None:
    """The number of a rank that the end of a file's name tells; None where it counts downloads, or there is none."""
    found = _NUMBERED.fullmatch(name)
    return int(found.group("number")) if found is not None and not found.group("bracket") else None


def newest_export(paths: Iterable[Path]) -> list[Path]:
    """Exports carry the time of the export in their names; only the last one counts, with all its slices."""
    ordered = sorted(paths, key=lambda path: natural(path.name))
    stamps = {path: match.group(1) if (match := _STAMP.search(path.name)) else "" for path in ordered}
    last = max(stamps.values(), default="")
    return [path for path in ordered if stamps[path] == last]


def find_tables(paths: Iterable[Path], *, loose: bool = False) -> dict[str, TableRef]:
    """table -> reference, from the files of one rank."""
    by_table: dict[str, tuple[str, list[Path]]] = {}
    paths = list(paths)
    for path in paths:
        known = tables_of_file(path.name, loose=loose)
        if known is None or (path.suffix == ".gz" and path.with_suffix("") in paths):  # the same once more
            continue
        for table in known[0]:
            by_table.setdefault(table, (known[1], []))[1].append(path)
    found = {
        table: TableRef(table, tuple(paths if loose else newest_export(paths)), reader)
        for table, (reader, paths) in by_table.items()
    }
    tasks = found.pop("tasks", None)
    if tasks is not None and "kernels" not in found:  # every task of the device, where no table of operators is there
        found["kernels"] = replace(tasks, table="kernels")
    return found
