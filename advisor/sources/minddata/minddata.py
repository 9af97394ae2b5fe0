"""Readers of the host side of data loading: MindData's own files, raw and processed, old and new.

`find_minddata` says which file of a folder holds which table. Raw files (`FRAMEWORK/`) are preferred to what was made
of them: they keep operations without a queue, and MindSpore's analysis of them is known to err.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.folders import file_paths, is_folder, plain_name
from advisor.sources.minddata import hoststages, minddata_samples  # noqa: F401  (they register their readers)
from advisor.sources.minddata.hostfiles import (
    canonical_frame,
    operation_type,
    read_csv_rows,
    read_records,
    to_known,
    to_numbers,
    to_whole,
)  # fmt: skip
from advisor.sources.minddata.hoststages import find_host_stages
from advisor.sources.minddata.minddata_samples import MOST_OPERATIONS
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.csvfiles import read_file
from advisor.sources.text.jsontext import load_json
from advisor.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

_SUBFOLDERS = ("FRAMEWORK", "ASCEND_PROFILER_OUTPUT")
_SUFFIX = re.compile(r"_([0-9]+)$")
_FILES = (
    ("pipeline_ops", "pipeline_profiling", (".json",), "minddata.pipeline_ops"),
    ("pipeline_ops", "minddata_pipeline_raw", (".csv",), "minddata.pipeline_ops"),
    ("pipeline_summary", "minddata_pipeline_summary", (".json",), "minddata.pipeline_summary"),
    ("pipeline_summary", "minddata_pipeline_summary", (".csv",), "minddata.pipeline_summary"),
    ("batches", "device_queue_profiling", (".txt",), "minddata.batches"),
    ("batches", "dataset_iterator_profiling", (".txt",), "minddata.batches"),
    ("data_queue", "minddata_aicpu", (".txt",), "minddata.data_queue"),
    ("data_queue", "minddata_getnext_profiling", (".txt",), "minddata.data_queue"),
    ("host_cpu", "minddata_cpu_utilization", (".json",), "minddata.host_cpu"),
    ("pipeline_cpu", "minddata_cpu_utilization", (".json",), "minddata.pipeline_cpu"),
    ("dataset_stages", "dataset", (".csv",), "minddata.dataset_stages"),
)
"""Table, file name without rank, endings, reader; the first file that can be read wins."""


def find_minddata(folder: Path, rank: int | None = None) -> dict[str, TableRef]:
    """The data-loading tables of one rank in this folder, its FRAMEWORK/ and its ASCEND_PROFILER_OUTPUT/.

    In a rank's own folder a file with another suffix is taken too where it is the only one: MindData names its files
    by the environment's RANK_ID, the profiler by the communication rank. In a flat folder of several ranks only the
    exact suffix counts. Without `rank` the lowest suffix present is taken.
    """
    own = any(is_folder(folder / name) for name in _SUBFOLDERS) or folder.name in _SUBFOLDERS
    places = [place for place in (folder, *(folder / name for name in _SUBFOLDERS)) if is_folder(place)]
    listing = [path for place in places for path in file_paths(place)]
    found: dict[str, list[Path]] = {}
    readers: dict[str, str] = {}
    for table, stem, endings, name in _FILES:
        chosen = _choose(listing, stem, endings, rank, own)
        if chosen is not None:
            found.setdefault(table, []).append(chosen)
            readers[table] = name
    tables = {table: TableRef(table, tuple(paths), readers[table]) for table, paths in found.items()}
    return {**tables, **find_host_stages(folder, rank, own)}


def _choose(listing: Sequence[Path], stem: str, endings: Sequence[str], rank: int | None, own: bool) -> Path | None:
    """The rank's file of this kind; a file without a suffix belongs to whoever owns the folder."""
    by_suffix: dict[int | None, Path] = {}
    for path in sorted(listing, key=lambda path: plain_name(path.name) != path.name):  # copies last
        if path.suffix not in endings:
            continue
        own_stem = Path(plain_name(path.name)).stem
        if own_stem == stem:
            by_suffix.setdefault(None, path)
        elif own_stem.startswith(stem) and (match := _SUFFIX.fullmatch(own_stem[len(stem) :])):
            by_suffix.setdefault(int(match.group(1)), path)
    if rank in by_suffix:
        return by_suffix[rank]
    ranked = sorted(suffix for suffix in by_suffix if suffix is not None)
    if rank is None and ranked:
        return by_suffix[ranked[0]]
    if None in by_suffix and (own or rank is None or len(by_suffix) == 1):
        return by_suffix[None]
    if own and len(ranked) == 1:
        return by_suffix[ranked[0]]
    return None


@reader("minddata.pipeline_ops")
def read_pipeline_ops(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Operations with their output queue's samples, from pipeline_profiling json or minddata_pipeline_raw csv."""
    best: list[dict[str, Any]] = []
    for place, path in enumerate(reference.paths):
        if path.suffix == ".json":
            rows = _ops_of_json(load_json(path, note, whole=True), path, note)
            _tell_other_samples(rows, path, reference.paths[place + 1 :], note)
        else:
            records = read_records(path, note, *_RAW_COLUMNS)
            rows = _ops_of_csv(records)
            if rows and len(rows) < len(records):
                lost = len(records) - len(rows)
                note(str(path), f"{lost} rows have no number of an operation and were left out", _OPERATIONS)
        if not rows:
            note(str(path), "holds no data pipeline operation")
            continue
        rows = _each_once(rows, path, note)
        _tell_gaps(rows, path, note)
        if _has_several_roots(rows):
            for row in rows:
                row["children"] = row["children"] or (UNTOLD,)
        _link(rows)
        for row in filter(_is_overfull, rows):  # of a queue that tells such things nothing is known
            row["queue_sizes"], row["queue_average"] = (), None
        if not all(row["unsampled"] for row in rows):
            best = rows
            break
        best = best or rows  # the next file has the samples that this one lost
    return canonical_frame("pipeline_ops", sorted(best, key=lambda row: row["op_id"]), columns) if best else None


def _tell_other_samples(rows: Sequence[Mapping[str, Any]], path: Path, others: Sequence[Path], note: Note) -> None:
    """Notes where the profiler's own table of the same samples, made of this file, tells others, or another pipeline:
    then nobody knows which of the two the steps waited for."""
    own = {row["op_id"]: row["queue_sizes"] for row in rows if row["queue_sizes"] and not row["unsampled"]}
    for other in (each for each in others if each.suffix == ".csv"):
        listed = _ops_of_csv(read_records(other, _unheard, *_RAW_COLUMNS))
        types = {row["op_id"]: row["type"] for row in listed}
        if any(None not in (row["type"], each := types.get(row["op_id"])) and row["type"] != each for row in rows):
            note(str(path), f"contradicts {other.name}: it lists other operations, of another pipeline", _OPERATIONS)
            continue
        told = {row["op_id"]: row["queue_sizes"] for row in listed}
        apart = sum(own[op] != told[op] for op in own.keys() & told.keys() if told[op])
        if apart:
            note(str(path), f"contradicts {other.name}: {apart} operations have other samples of their queues there")


def _unheard(*told: object) -> None:
    """What the other file lacks is told where it is used."""


_OPERATIONS = ("pipeline_ops",)
"""What is in doubt where an operation is lost or in the wrong place: those left are judged as if it did not work."""
UNTOLD = -1
"""Stands for a child whose number was lost: something feeds the operation, and nobody knows what."""
_RAW_COLUMNS = ("op_id", "op_type", "num_workers", "output_queue_size", "output_queue_length", "children_id")


def _tell_gaps(rows: Sequence[Mapping[str, Any]], path: Path, note: Note) -> None:
    """Notes what operations lack although the profiler writes it for each of them."""
    for column, what in (("workers", "number of workers"), ("type", "type")):
        lost = sum(not row[column] for row in rows)
        if lost:
            note(str(path), f"{lost} of {len(rows)} operations have no usable {what}")
    lost = sum(bool(row["queue_sizes"]) and row["queue_capacity"] is None for row in rows)
    if lost:
        note(str(path), f"{lost} of {len(rows)} operations have no usable length of their queue")
    over = sum(map(_is_overfull, rows))
    if over:
        told = f"{over} of {len(rows)} operations have more in their queue than it holds: that cannot be"
        note(str(path), told, _OPERATIONS)
    lost = sum(row["unsampled"] for row in rows)
    if lost:
        note(str(path), f"{lost} of {len(rows)} operations have samples of their queue that cannot be used")
    lost = sum(row["unlinked"] for row in rows)
    if lost:
        note(
            str(path),
            f"{lost} of {len(rows)} operations have parents or children that are no operations' numbers",
            _OPERATIONS,
        )
    fed = Counter(child for row in rows for child in row["children"])
    if len(rows) > 1 and not fed and not any(row["parent"] is not None for row in rows):
        note(str(path), "tells of no operation which others it draws from: no tree", _OPERATIONS)
    own = {row["op_id"] for row in rows if row["op_id"] in row["children"]}
    twice = sorted({child for child, times in fed.items() if times > 1 and child != UNTOLD} | own)
    if twice:
        shown = ", ".join(map(str, twice[:8]))
        note(str(path), f"gives operations to several others, or to themselves ({shown}): no tree", _OPERATIONS)
    if _has_several_roots(rows):
        note(str(path), "names more than one operation that no other draws from: no tree", _OPERATIONS)
    gone = {child for row in rows for child in row["children"]} - {row["op_id"] for row in rows} - {UNTOLD}
    if gone:
        shown = ", ".join(map(str, sorted(gone)[:8]))
        note(str(path), f"names operations that it does not tell of ({shown}): their rows are missing", _OPERATIONS)


def _each_once(rows: Sequence[dict[str, Any]], path: Path, note: Note) -> list[dict[str, Any]]:
    """One row for each operation. Of rows that bear one number nobody knows whose samples they are, or of which run:
    the first is the operation, without its queue's samples."""
    found: dict[int, dict[str, Any]] = {}
    twice: set[int] = set()
    for row in rows:
        if found.setdefault(row["op_id"], row) is not row:
            twice.add(row["op_id"])
    if twice:
        shown = ", ".join(map(str, sorted(twice)[:8]))
        note(str(path), f"tells of operations more than once ({shown}): their queues are not used", _OPERATIONS)
    for number in twice:
        found[number] |= {"queue_sizes": (), "queue_average": None, "unsampled": True}
    return list(found.values())


def _has_several_roots(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether links were lost: all operations feed the last one, through others."""
    fed = {child for row in rows for child in row["children"]}
    roots = sum(row["parent"] is None and row["op_id"] not in fed for row in rows)
    return 1 < roots < len(rows)


def _is_overfull(row: Mapping[str, Any]) -> bool:
    """Whether an operation's queue is told to have held more than it can, in a sample or on average."""
    samples: tuple[float, ...] = row["queue_sizes"]
    return max((*samples, row["queue_average"] or 0.0)) > (row["queue_capacity"] or float("inf"))


def _ops_of_json(document: Any, path: Path, note: Note) -> list[dict[str, Any]]:
    if not isinstance(document, dict) or not isinstance(document.get("op_info"), list):
        return []
    interval = to_known(document.get("sampling_interval"))
    rows = []
    for op in document["op_info"]:
        if not isinstance(op, dict) or (op_id := _number(op.get("op_id"))) is None:
            note(str(path), "an operation has no number and was left out", _OPERATIONS)
            continue
        metrics = op.get("metrics")
        queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
        queue = queue if isinstance(queue, dict) else {}
        sizes = queue.get("size")
        whole = metrics is None or isinstance(sizes, list)
        rows.append(
            _op(op_id, op.get("op_type"), op.get("num_workers"), sizes if isinstance(sizes, list) else None,
                queue.get("length"), interval, None, op.get("children"))
        )  # fmt: skip
        rows[-1]["unsampled"] |= not whole
    return rows


def _ops_of_csv(records: list[dict[str, str]]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        op_id = _number(record.get("op_id"))
        if op_id is None:
            continue
        row = _op(
            op_id, record.get("op_type"), record.get("num_workers"), record.get("output_queue_size"),
            record.get("output_queue_length"), to_known(record.get("sample_interval")),
            _number(record.get("parent_id")), record.get("children_id"),
        )  # fmt: skip
        parent = (record.get("parent_id") or "").strip()
        row["unlinked"] |= bool(parent) and _number(parent) is None
        if row["queue_sizes"]:
            row["queue_average"] = to_known(record.get("output_queue_average_size"))
        rows.append(row)
    return rows


def _number(value: object) -> int | None:
    """The number of an operation, or of its workers; what is negative or beyond any pipeline is none."""
    number = to_whole(value)
    return number if number is not None and 0 <= number < MOST_OPERATIONS else None


def _op(
    op_id: int, op_type: object, workers: object, sizes: object, capacity: object, interval_ms: float | None,
    parent: int | None, children: object,
) -> dict[str, Any]:  # fmt: skip
    samples = tuple(size for size in to_numbers(sizes) if size >= 0)
    below = to_numbers(children)
    given = len(sizes) if isinstance(sizes, (list, tuple)) else len(samples) if samples or not sizes else 1
    return {
        "unsampled": given != len(samples),
        "op_id": op_id, "type": operation_type(op_type), "workers": _number(workers), "queue_sizes": samples,
        "queue_capacity": to_whole(capacity), "queue_average": sum(samples) / len(samples) if samples else None,
        "sampling_interval_us": None if interval_ms is None else interval_ms * 1000.0,
        "parent": parent,
        "unlinked": bool(children) and not all(0 <= child < MOST_OPERATIONS for child in below or (-1,)),
        "children": tuple(int(child) if 0 <= child < MOST_OPERATIONS else UNTOLD for child in below)
        or ((UNTOLD,) if children else ()),
    }  # fmt: skip


def _link(rows: list[dict[str, Any]]) -> None:
    """Parents from children, for files that name children only."""
    parents = {child: row["op_id"] for row in rows for child in row["children"]}
    for row in rows:
        if row["parent"] is None:
            row["parent"] = parents.get(row["op_id"])


@reader("minddata.pipeline_summary")
def read_pipeline_summary(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """MindSpore's own figures and verdict: a dictionary of lists, or a csv with one key per row and no header."""
    for path in reference.paths:
        if path.suffix == ".json":
            document = load_json(path, note, whole=True)
        else:
            document = {row[0]: row[1:] for row in read_csv_rows(path, note)}
        if not isinstance(document, dict) or not isinstance(document.get("op_ids"), list):
            note(str(path), "holds no data pipeline summary")
            continue
        warned, advised = (
            [str(each) for each in said] if isinstance(said := document.get(key), list) else []
            for key in ("bottleneck_warning", "bottleneck_suggestion")
        )
        advice = "; ".join(advised)
        rows = []
        for index, op_id in enumerate(document["op_ids"]):
            if _number(op_id) is None:
                note(str(path), "an operation has no number and was left out", ("pipeline_summary",))
                continue
            name = str(_at(document, "pipeline_ops", index) or "")
            used, empty = (
                to_known(_at(document, key, index)) for key in ("queue_utilization_pct", "queue_empty_freq_pct")
            )
            rows.append({
                "op_id": to_whole(op_id), "type": operation_type(_at(document, "op_names", index)),
                "workers": _number(_at(document, "num_workers", index)),
                "queue_average": to_known(_at(document, "queue_average_size", index)),
                "queue_used": None if used is None else used / 100.0,
                "queue_empty": None if empty is None else empty / 100.0,
                "cpu_percent_of_core": to_known(_at(document, "avg_cpu_pct", index)),
                "warning": name if name in warned else None, "suggestion": advice if name in warned else None,
            })  # fmt: skip
        return canonical_frame("pipeline_summary", rows, columns)
    return None


def _at(document: dict[str, Any], key: str, index: int) -> Any:
    values = document.get(key)
    return values[index] if isinstance(values, (list, tuple)) and index < len(values) else None


_NAMED = re.compile(r"[A-Za-z]\w+")
"""How the name of an operation begins: with that of a class."""
_NUMBERED = re.compile(r"\w+\s*\(ID:\s*\d+\)")
_OF_WORKERS = ("__next__", "GetFromPreviousOp", "WorkerGet", "WorkerProcess")
"""Stages that operations of the pipeline have, which are numbered, and nothing else."""
LOST_STAGE = ""
"""Stage of a row of which only its operation is known: how long that one worked is told no more."""


def _is_number(text: object) -> bool:
    """Whether a number stands where a profiler writes an object or nothing."""
    return isinstance(text, str) and to_known(text) is not None


@reader("minddata.dataset_stages")
def read_dataset_stages(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """dataset.csv: occurrences and average time of every stage of every operation; rows without either, or with cells
    in the wrong columns, are told, and of an operation's nothing but this stays. A cell too many moves its name by
    one."""
    table = TABLES["dataset_stages"]
    path = reference.paths[0]
    frame = read_file(table, path, None, note)
    if frame is None:
        return None
    usable = frame["count"].notna() & frame["avg_us"].notna() & (frame["count"] >= 0) & (frame["avg_us"] >= 0)
    moved = usable & ((frame["count"] % 1 > 0) | frame["info"].map(_is_number).astype(bool))
    if moved.any():
        text = (
            f"{int(moved.sum())} of {len(frame)} rows have other numbers of occurrences or other information than any"
        )
        note(str(path), f"{text}: cells were moved; left out", (table.name,))
    if not (usable | moved).all():
        note(str(path), "rows without a number of occurrences or a time were left out", (table.name,))
    usable &= ~moved
    named = frame["operation"].str.match(_NAMED).fillna(False).astype(bool)
    named &= frame["operation"].str.match(_NUMBERED).fillna(False).astype(bool) | ~frame["stage"].isin(_OF_WORKERS)
    if not named.all():
        note(str(path), f"{int((~named).sum())} rows name no operation", (table.name,))
    frame.loc[~usable, "operation"] = frame["operation"].where(
        named | ~frame["stage"].str.match(_NUMBERED).fillna(False).astype(bool), frame["stage"]
    )
    lost = ~usable & frame["operation"].str.match(_NUMBERED).fillna(False).astype(bool)
    for column, nothing in (("stage", LOST_STAGE), ("count", 0.0), ("avg_us", 0.0)):
        frame.loc[lost, column] = nothing
    usable |= lost
    records = frame[usable].astype(object).where(frame[usable].notna(), None).to_dict("records")
    return canonical_frame("dataset_stages", records, columns) if records else None
