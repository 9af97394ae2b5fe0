"""Timelines and dynamic shapes of the older MindSpore: *_timeline_display_*.json, dynamic_shape_info_*.json."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.frames import Unusable, to_ns
from advisor.sources.older.legacy_clock import origin_ns
from advisor.sources.older.legacy_files import assemble, finite, read_object
from advisor.sources.older.legacy_operators import describe_inputs, type_of, write_shape
from advisor.sources.older.legacy_steps import read_step_sheet
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsontext import load_json

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_CORES = {"9000": "AI_CPU", "10000": "HCCL"}
"""Processes of the timeline that are no cores for operators: the AI CPU, communication."""
_OTHER_PIDS = {"11000", "12000"}
"""Host processor, overlap: not kernels."""
_OTHER_THREADS = {"7999", "8000", "8001", "8002", "100000", "100001", "100002", "Ops", "Steps", "Scope Name"}
"""Merged computing and communication, free time, steps, scopes, operators above their kernels."""
_TEXTS = ("name", "type", "core", "stream", "input_shapes", "input_dtypes", "step")
_NODE = re.compile(r"-op[0-9]+$")
"""How operators of a graph end: each runs once in an execution of it."""


@reader("legacy.timeline")
def read_timeline(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """ascend_timeline_display_*.json -> kernels. Times count from the file's own beginning; steps are executions
    of the graph, where it names its operators."""
    rows = _kernels(reference.paths[0], note)
    return assemble("kernels", {name: [row[name] for row in rows] for name in rows[0]}, columns) if rows else None


@reader("legacy.timeline_in_steps")
def read_timeline_in_steps(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """timeline_display_*.json beside a step trace -> the kernels of the steps that it covers, on the trace's clock."""
    rows = _kernels_in_steps(reference, note)
    return assemble("kernels", {name: [row[name] for row in rows] for name in rows[0]}, columns) if rows else None


def frames_in_steps(reference: TableRef, note: Note) -> Iterator[pl.DataFrame]:
    """The same as a canonical frame."""
    yield from _frame(_kernels_in_steps(reference, note))


def _kernels_in_steps(reference: TableRef, note: Note) -> list[dict[str, Any]]:
    """Only the kernels of steps that the timeline covers whole, without the first: where it begins was not measured."""
    path, trace = reference.paths[0], read_step_sheet(Path(reference.options["trace"]), note)
    rows = sorted(_all_kernels(path, note, scoped=True), key=lambda row: row["start_ns"])
    operators = [row for row in rows if row["core"] != "HCCL"]
    origin = origin_ns(Path(reference.options["clock"]), rows, note) if operators and trace is not None else None
    if trace is None or origin is None:
        return []
    phases = trace.phases(note)
    if "start_us" not in phases or "end_us" not in phases:
        return []
    first = origin + operators[0]["start_ns"]
    last = origin + max(row["start_ns"] + row["duration_us"] * 1000 for row in operators)
    starts = [origin + row["start_ns"] for row in rows]
    kept, covered = [], 0
    for step, start_us, end_us in list(zip(phases["step"], phases["start_us"], phases["end_us"], strict=True))[1:]:
        start, end = start_us * 1000, end_us * 1000
        if first <= start and end <= last:
            low, high = bisect_left(starts, start), bisect_left(starts, end)
            kept += [{**rows[at], "start_ns": starts[at], "step": str(step)} for at in range(low, high)]
            covered += 1
    told = f"lists the operators of {covered} of the {len(phases['step'])} steps: what runs in a step is told of these"
    note(str(path), told if kept else "covers no step of the step trace from its start to its end; not read")
    return kept


def _kernels(path: Path, note: Note) -> list[dict[str, Any]]:
    rows = _all_kernels(path, note)
    kept = _while_operators_are_listed(rows, str(path), note)
    _number_executions(kept, ended=len(kept) == len(rows))
    return kept


def _all_kernels(path: Path, note: Note, scoped: bool = False) -> list[dict[str, Any]]:
    """Every kernel of the timeline; `scoped` names it by its scopes, too, which tell forward from backward."""
    rows: list[dict[str, Any]] = []
    unnamed = 0
    for event in _events(path, note):
        pid, thread = str(event.get("pid", "")), str(event.get("tid", ""))
        length = finite(event.get("dur"))
        try:
            start = to_ns(event.get("ts"), 1000)
        except Unusable:
            start = None
        if event.get("ph") != "X" or start is None or length is None or not event.get("name"):
            continue
        if pid in _OTHER_PIDS or thread in _OTHER_THREADS or thread.startswith("HostCpu"):
            continue
        arguments = event.get("args")
        details: dict[str, Any] = arguments if isinstance(arguments, dict) else {}
        name, kind = str(event["name"]), str(details.get("type", ""))
        operator = details.get("op_full_name")
        if isinstance(operator, str):
            kind = type_of(operator)
        elif "op_full_name" in details:
            unnamed += 1
            continue
        if scoped and isinstance(full := details.get("fullname"), str):
            name = full
        shapes, dtypes = describe_inputs(details)
        rows.append({"name": name, "step": "", "type": kind or type_of(name), "core": _CORES.get(pid, "AI_CORE"),
                     "start_ns": start, "duration_us": length, "stream": thread,
                     "input_shapes": shapes, "input_dtypes": dtypes})  # fmt: skip
    if unnamed:
        note(str(path), f"{unnamed} kernels have something else than text for the name of their operator; left out")
    if not rows:
        note(str(path), "holds no kernel with start and duration")
    return rows


def _number_executions(rows: list[dict[str, Any]], *, ended: bool) -> None:
    """Numbers the executions of a graph: each begins where the operator that runs first in the file runs again, if most
    others run as often. The writer stops at a size of the file: what it holds of the last execution is no step where
    operators of the graph are missing in it, nor where the run had not `ended`."""
    nodes = [row for row in rows if _NODE.search(row["name"])]
    counts = Counter(row["name"] for row in nodes)
    first = min(nodes, key=lambda row: row["start_ns"])["name"] if nodes else ""
    executions = counts[first]
    alike = [count for count in counts.values() if executions - 1 <= count <= executions]
    if executions < 2 or 2 * len(alike) <= len(counts):
        return
    starts = sorted(row["start_ns"] for row in nodes if row["name"] == first)
    for row in rows:
        row["step"] = str(bisect_right(starts, row["start_ns"]) or "")
    if not ended or any(count < executions for count in alike):
        for row in rows:
            row["step"] = "" if row["step"] == str(executions) else row["step"]


def _while_operators_are_listed(rows: list[dict[str, Any]], file: str, note: Note) -> list[dict[str, Any]]:
    """Without the collectives behind the last operator: the writer lists operators up to a size of the file, and
    collectives to the end of the run."""
    ends = [row["start_ns"] + row["duration_us"] * 1000 for row in rows if row["core"] != "HCCL"]
    last = max(ends, default=0)
    kept = [row for row in rows if row["start_ns"] < last]
    if ends and len(kept) < len(rows):
        text = (
            f"lists operators up to {last / 1e9:.3f} s; the {len(rows) - len(kept)} collectives after it were left out"
        )
        note(file, text)
    return kept if ends else rows


def timeline_frames(path: Path, note: Note) -> Iterator[pl.DataFrame]:
    """The kernels of one such file as a canonical frame."""
    yield from _frame(_kernels(path, note))


def _frame(rows: Sequence[dict[str, Any]]) -> Iterator[pl.DataFrame]:
    import polars as pl

    schema = dict.fromkeys(_TEXTS, pl.String) | {"start_ns": pl.Int64, "duration_us": pl.Float64}
    if rows:
        yield pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)


def _events(path: Path, note: Note) -> list[dict[str, Any]]:
    document = load_json(path, note)
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []


@reader("legacy.dynamic_shapes")
def read_dynamic_shapes(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """dynamic_shape_info_*.json -> dynamic_shapes, both its GPU form (by step) and its Ascend form (by type)."""
    path = reference.paths[0]
    document = read_object(path, note)
    if document is None:
        return None
    found = list(_by_step(document["operator"]) if isinstance(document.get("operator"), dict) else _by_type(document))
    rows = [row for row in found if row[4] is not None]
    if len(rows) < len(found):
        note(
            str(path), f"{len(found) - len(rows)} of {len(found)} operators have no usable duration or shapes; left out"
        )
    if not rows:
        note(str(path), "holds no operator with step and duration")
        return None
    names = ("step", "name", "type", "shapes", "duration_us")
    data = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return assemble("dynamic_shapes", data, columns)


Row = tuple[str, str, str, str, float | None]


def _by_step(operators: dict[str, Any]) -> Iterator[Row]:
    for step, entries in operators.items():
        for entry in entries if isinstance(entries, list) else (entries,):
            shapes = (entry.get("shape_info") or []) if isinstance(entry, dict) else None
            if not isinstance(shapes, list):  # no operator, or none whose shapes are known
                yield str(step), "", "", "", None
                continue
            name, text = str(entry.get("op_name", "")), ";".join(map(write_shape, shapes))
            yield str(step), name, str(entry.get("op_type") or type_of(name)), text, finite(entry.get("dur"))


def _by_type(document: dict[str, Any]) -> Iterator[Row]:
    """{type: [{name: {op_exe_time: [...], op_shape: [...]}}]}: one entry a step, shapes with their quotes taken off."""
    for kind, entries in document.items():
        for entry in entries if isinstance(entries, list) and kind != "op_type" else ():
            for name, details in entry.items() if isinstance(entry, dict) else ():
                times = details.get("op_exe_time") if isinstance(details, dict) else None
                told = details.get("op_shape") if isinstance(details, dict) else None
                shapes = told if isinstance(told, list) else []
                for index, time in enumerate(times if isinstance(times, list) else ()):
                    shape = _unquoted_shapes(str(shapes[index])) if index < len(shapes) else ""
                    yield str(index + 1), str(name), str(kind), shape, finite(time)


def _unquoted_shapes(text: str) -> str:
    found = re.findall(r"input_[0-9]+:\s*\{[^{}]*?shape:\s*\[?([0-9,\s-]*)\]?", text)
    return ";".join(write_shape(shape).rstrip(",") for shape in found)
