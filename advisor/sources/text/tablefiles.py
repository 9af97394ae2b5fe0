"""Which file of a modern profile holds which canonical table, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from advisor.sources.folders import natural, plain_name
from advisor.sources.reference import TableRef

_COMMUNICATION = ("collectives", "transports", "packets")
_CSV, _JSON = r"\.csv", r"\.json"
_FILES = (
    (r"step_trace_time", _CSV, ("steps",), "csv.steps"),
    (r"step_trace(?=(?:_[0-9]+|_slice_[0-9]+)* ?(?:\([0-9]+\))?\.)", _CSV, ("iterations",), "csv.table"),
    (r"(?:kernel_details|op_summary)", _CSV, ("kernels",), "kernels.csv"),
    (r"task_time", _CSV, ("tasks",), "kernels.tasks"),
    (r"op_statistic", _CSV, ("operator_types",), "csv.table"),
    (r"communication_statistic", _CSV, ("collective_types",), "csv.table"),
    (r"api_statistic", _CSV, ("host_api",), "csv.table"),
    (r"operator_details", _CSV, ("framework_operators",), "csv.table"),
    (r"(?:data_preprocess|aicpu(?=_[0-9]))", _CSV, ("aicpu",), "csv.table"),
    (r"memory_record", _CSV, ("memory",), "csv.table"),
    (r"operator_memory", _CSV, ("operator_memory",), "csv.table"),
    (r"npu_module_mem", _CSV, ("module_memory",), "csv.table"),
    (
        r"dataset(?=(?:[_-]?(?:rank)?[_-]?[0-9]+)? ?(?:\([0-9]+\))?\.)",
        _CSV,
        ("dataset_stages",),
        "minddata.dataset_stages",
    ),
    (r"l2_cache", _CSV, ("l2_cache",), "csv.table"),
    (r"communication(?!_matrix|_group|_analyzer)", _JSON, _COMMUNICATION, "json.communication"),
    (r"communication_matrix", _JSON, ("links",), "json.links"),
    (r"(?:trace_view|msprof)", r"\.json(?:\.gz)?", ("trace",), "trace.json"),
)
_EXACT = tuple((re.compile(f"{stem}.*{end}", re.IGNORECASE), tables, name) for stem, end, tables, name in _FILES)
_DATABASES = r"(?:ascend_(?:pytorch|mindspore)_profiler|msprof|communication_analyzer|analysis)"
_LOOSE = tuple(
    (re.compile(rf"(?P<before>(?!cluster_)(?:.*[^a-z])?){stem}(?P<after>.*){end}", re.IGNORECASE), tables, name)
    for stem, end, tables, name in (*_FILES, (_DATABASES, r"\.db", ("database",), ""))
)
_STAMP = re.compile(r"_([0-9]{8,17})(?=[_.])")
_OF_MSPROF = re.compile(
    r"(?:op_summary|task_time|step_trace|op_statistic|api_statistic|communication_statistic|aicpu|msprof|l2_cache)_",
    re.I,
)
_ITERATION = re.compile(r"^(_[0-9]+)(?:_[0-9]+){1,2}$")
"""Older exports name device, graph and iteration."""
_OF_EXPORT = re.compile(r"_slice_[0-9]+|_[0-9]{8,17}(?![0-9])", re.IGNORECASE)
"""What exporters themselves put behind the name: part and time of the export."""

DATABASE = _DATABASES + r".*\.db"


def tables_of_file(name: str, *, loose: bool = False) -> tuple[tuple[str, ...], str] | None:
    """(tables, reader) of a file name, None where it is none of a profile's. `loose` allows a prefix users added."""
    for pattern, tables, reader in _LOOSE if loose else _EXACT:
        if reader and pattern.fullmatch(name):
            return tables, reader
    return None


class Mark(Struct, frozen=True):
    """What users put before or behind the name of a profiler's file, to keep the files of several ranks or runs apart:
    `rank3` of rank3_kernel_details.csv, `3` of communication_3.json."""

    kinds: tuple[str, ...] = ()
    """The tables that files of this kind hold; `database`."""
    text: str = ""
    number: int | None = None
    """Where it is but a number, or a word for a rank and its number."""
    worded: bool = False
    """Whether such a word stands there: a mere number may also count the parts of one table."""
    bracketed: bool = False
    """Whether a browser numbered the file, which knows nothing of ranks."""


LONGEST_NUMBER = 5
"""Digits of a rank's number at most."""


def mark_of_file(name: str, as_if: str | None = None) -> Mark:
    """The mark of one file, without what the exporter itself put there; of one that is not called as profilers do, but
    holds what they call `as_if`, whatever stands before its ending."""
    if as_if is not None:
        before = name.partition(".")[0].replace(as_if.partition(".")[0], "")
        return mark_of_file(f"{before}_{as_if}" if before else as_if)
    for pattern, kinds, _ in _LOOSE:
        if (found := pattern.fullmatch(name)) is not None:
            after = _OF_EXPORT.sub("", found["after"])
            if _OF_MSPROF.match(name[found.end("before") :]):
                after = _ITERATION.sub(r"\1", after)
            text = re.sub(r"[^a-z0-9]+", " ", f"{found['before']} {after}".lower()).strip()
            told = re.fullmatch(rf"((?:rank|device|dev|npu|card) ?)?([0-9]{{1,{LONGEST_NUMBER}}})", text)
            if told is None:
                return Mark(kinds, text)
            number = int(told[2])
            return Mark(kinds, str(number), number, told[1] is not None, after.endswith(")"))
    return Mark()


def newest_export(paths: Iterable[Path]) -> list[Path]:
    """Exports carry the time of the export in their names; only the last one counts, with all its slices."""
    ordered = sorted(paths, key=lambda path: natural(path.name))
    stamps = {path: match.group(1) if (match := _STAMP.search(path.name)) else "" for path in ordered}
    last = max(stamps.values(), default="")
    return [path for path in ordered if stamps[path] == last]


def find_tables(
    paths: Iterable[Path], *, loose: bool = False, names: Mapping[Path, str] = MappingProxyType({})
) -> dict[str, TableRef]:
    """table -> reference, from the files of one rank; `names` of those that go by another one than their own."""
    by_table: dict[str, tuple[str, list[Path]]] = {}
    paths = list(paths)
    for path in paths:
        known = tables_of_file(names.get(path, path.name), loose=loose)
        if known is None and path.with_name(original := plain_name(path.name)) not in paths:
            known = tables_of_file(original, loose=loose)
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
    if found.keys() == {"framework_operators"}:  # alone it tells nothing that can be judged (unread.py says so)
        return {}
    return found
