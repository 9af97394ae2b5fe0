"""Readers of the older MindSpore tables (1.x, 2.0 to 2.2): steps, phases, operators, AI CPU, FLOPs.

Step traces count device ticks of 10 ns, operator tables milliseconds, FLOP tables millions and billions.
Communication and timelines are read in `legacy_communication.py` and `legacy_events.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.sources.older import legacy_communication, legacy_events  # noqa: F401  (they register their readers)
from advisor.sources.older.legacy_files import (
    assemble,
    finite,
    numbers,
    read_columns_of_text,
    read_object,
    read_sheet,
    texts,
)
from advisor.sources.older.legacy_operators import read_operator_file
from advisor.sources.older.legacy_steps import read_step_sheet
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.csvfiles import told_once
from advisor.tables import LARGEST

if TYPE_CHECKING:
    import pandas as pd

_MS = 1e3
"""Microseconds in the milliseconds that operator and cluster files count in."""


@reader("legacy.step_phases")
def read_step_phases(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """step_trace_raw_*_detail_time.csv -> step_phases; the profiler's own average row is no step."""
    trace = read_step_sheet(reference.paths[0], note)
    return None if trace is None else assemble("step_phases", trace.phases(note), columns)


@reader("legacy.step_average")
def read_step_average(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The average row of the same file -> step_phases_average (one row); None where the file has none."""
    trace = read_step_sheet(reference.paths[0], note, average=True)
    data = {} if trace is None else trace.phases(note)
    return assemble("step_phases_average", data, columns) if len(data) > 1 else None


@reader("legacy.step_collectives")
def read_step_collectives(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The stream_* triples of the step trace -> step_collectives."""
    trace = read_step_sheet(reference.paths[0], note)
    return None if trace is None else assemble("step_collectives", trace.collectives(note), columns)


@reader("legacy.step_ticks")
def read_oldest_cluster(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """ascend_cluster_analyse of the oldest data-parallel kind (phases in ticks) -> step_phases."""
    path = reference.paths[0]
    frame = read_sheet(path, note)
    if frame is None:
        return None
    frame = _without_average(frame, path, note)
    data = {name: numbers(frame, (heading,), path, note, scale=0.01) for name, heading in _OLDEST.items()}
    if any(values is None for values in data.values()):
        note(str(path), "lacks iteration_interval, fp_and_bp or tail; it was not read")
        return None
    total = data["interval_us"] + data["fp_bp_us"] + data["tail_us"]  # type: ignore[operator]
    return assemble("step_phases", {"step": _step_names(len(frame)), "total_us": total, **data}, columns)


_OLDEST = {"interval_us": "iteration_interval", "fp_bp_us": "fp_and_bp", "tail_us": "tail"}

_CLUSTER = {
    "computation_us": ("computation_time", "computation"),
    "exposed_us": ("communication_alone_time", "communication_alone"),
    "stage_us": ("stage_time", "stage"),
    "receive_us": ("receive_alone_time", "receive_alone"),
    "exposed_collective_us": ("collective_communication_alone_time", "collective_communication_time",
                              "collective_communication_alone"),
}  # fmt: skip


@reader("legacy.cluster_phases")
def read_cluster_phases(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """ascend_cluster_analyse_* (ms) -> cluster_phases. Computation there is the step less exposed communication, idle
    time included; the stage is the step less exposed receiving. The last row is the writer's average, no step."""
    path = reference.paths[0]
    frame = read_sheet(path, note)
    if frame is None:
        return None
    frame = _without_average(frame, path, note)
    data = {name: numbers(frame, headings, path, note, scale=_MS) for name, headings in _CLUSTER.items()}
    if data["computation_us"] is None and data["exposed_us"] is None:
        note(str(path), f"has none of the known columns (found: {', '.join(map(str, frame.columns))[:120]})")
        return None
    for name in ("computation_us", "exposed_us"):
        if data[name] is None:
            note(str(path), f"lacks the column {_CLUSTER[name][0]}; the parts of its steps are unknown")
    return assemble("cluster_phases", {"step": _step_names(len(frame)), **data}, columns)


@reader("legacy.cluster_average")
def read_cluster_average(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """The last row of the same file -> cluster_phases_average (one row)."""
    path = reference.paths[0]
    frame = read_sheet(path, note)
    if frame is None or len(frame) < 2:
        return None
    frame = frame.iloc[-1:]
    data = {name: numbers(frame, headings, path, note, scale=_MS) for name, headings in _CLUSTER.items()}
    return assemble("cluster_phases_average", {"step": ["-"], **data}, columns)


def _without_average(frame: pd.DataFrame, path: Path, note: Note) -> pd.DataFrame:
    if len(frame) > 1:
        steps: pd.DataFrame = frame.iloc[:-1]
        return steps
    note(str(path), "holds one row only, which may be an average over steps; it is taken as step 1")
    return frame


def _step_names(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


@reader("legacy.operator_types")
def read_operator_types(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """aicore_intermediate_*_type.csv, pynative_op_intermediate_*_type.csv -> operator_types.

    One step's average where the time is called execution_time, the whole profile where it is called total_time. Of
    PyNative, which knows no steps, execution_time is the average of a call, over the whole profile.

    `share` is the file's own percent: rows may have been left out of the file, so it can't be had from the rows. In
    PyNative's file it is a part of the averages, of no meaning.
    """
    return _join([_operator_types(path, columns, note) for path in reference.paths])


def _operator_types(path: Path, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    frame = read_sheet(path, note)
    if frame is None:
        return None
    names = texts(frame, "kernel_type", "op_type")
    total = numbers(frame, ("total_time", "execution_time", "total_compute_time"), path, note, scale=_MS, timed=True)
    if names is None or total is None:
        note(str(path), "lacks the type or the time of operators; it was not read")
        return None
    count = numbers(frame, ("execution_frequency", "type_occurrences"), path, note)
    if count is None:
        note(str(path), "lacks the number of executions")
    elif uncounted := int((total.notna() & count.isna()).sum()):
        text = (
            f"{uncounted} of {len(frame)} operators have a time and no number of executions: cells were moved or lost"
        )
        note(str(path), text, ("operator_types",))
        total = total.where(count.notna())
    percent = numbers(frame, ("percent",), path, note)
    each_call = path.name.startswith("pynative") and "execution_time" in frame
    if each_call and count is not None:
        total, percent = total * count, None
    if percent is not None and (unweighed := int((total.notna() & percent.isna()).sum())):
        text = f"{unweighed} of {len(frame)} operators have a time and no percent of it: cells were moved or lost"
        note(str(path), text, ("operator_types",))
        total = total.where(percent.notna())
    data = {
        "type": names, "core": "AI_CORE", "count": count, "total_us": total,
        "avg_us": None if count is None else total / count.where(count > 0),
        "share": _as_ratio(percent),
        "steps": [1.0] * len(frame) if "execution_time" in frame and not each_call else None,
    }  # fmt: skip
    sole = told_once(names.tolist(), str(path), "operator_types", note)
    usable = (total.notna() & (names != "")).to_numpy() & sole
    operators: pd.DataFrame = assemble("operator_types", data, columns)[usable]
    return operators


def _join(frames: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    import pandas as pd

    found = [frame for frame in frames if frame is not None]
    return pd.concat(found, ignore_index=True) if found else None


def _as_ratio(percent: pd.Series | None) -> pd.Series | None:
    """Shares 0..1 of a column that some versions write as 0..1 and others as 0..100."""
    if percent is None or not percent.notna().any():
        return None
    return percent * (0.01 if percent.max() > 1 or percent.sum() > 1.05 else 1.0)


@reader("legacy.aicpu")
def read_aicpu(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """aicpu_intermediate_*.csv or output_data_preprocess_aicpu_*.txt (ms; run_start in us) -> aicpu."""
    path = reference.paths[0]
    frame = read_columns_of_text(path, "serial_number", note) if path.suffix == ".txt" else read_sheet(path, note)
    if frame is None:
        return None
    names = texts(frame, "kernel_type", "op_type", "node_type_name")
    if names is None:
        note(str(path), "lacks the names of AI CPU operators; it was not read")
        return None
    named = names.map(lambda name: re.search(r"[^\W\d_]", name or "") is not None).to_numpy(bool)
    if nameless := int((~named).sum()):
        note(str(path), f"{nameless} of {len(names)} operators have no name: cells were moved or lost", ("aicpu",))
    start, end = numbers(frame, ("run_start",), path, note), numbers(frame, ("run_end",), path, note)
    compute = numbers(frame, ("execution_time",), path, note, scale=_MS, timed=True)
    if compute is None and start is not None and end is not None:
        compute = (end - start).where(end >= start)
    operators = assemble(
        "aicpu",
        {
            "name": names,
            "start_us": start,
            "compute_us": compute,
            "dispatch_us": numbers(frame, ("dispatch_time",), path, note, scale=_MS, timed=True),
            "total_us": numbers(frame, ("total_time",), path, note, scale=_MS, timed=True),
        },
        columns,
    )
    kept: pd.DataFrame = operators[named].reset_index(drop=True)
    return kept


@reader("legacy.flops")
def read_flops(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """flops_summary_*.json, else flops_*.txt summed over operators -> flops (one row).

    FLOPs are millions, FLOPS billions a second, utilisation percent. The second version's rate is a sum of rates over a
    sum of times, which means nothing: it is left out, as are rate and utilisation of a sum over operators.
    """
    path = reference.paths[0]
    if path.suffix == ".json":
        document = read_object(path, note)
        if document is None:
            return None
        work = [finite(document.get(key)) for key in ("FLOPs", "cube_FLOPs", "vec_FLOPs") if key in document]
        known = [value for value in work if value is not None and value < LARGEST]
        if not known or len(known) < len(work):
            note(str(path), "its FLOPs are no usable number; it was not used")
            return None
        rate, use = finite(document.get("FLOPS")), finite(document.get("FLOPS_Utilization"))
        if sum(known) <= 0 < (rate or 0):
            note(str(path), "contradicts itself: a rate of FLOPS without any FLOPs; it was not used")
            return None
        data = {"flop": sum(known) * 1e6,
                "flop_per_s": float("nan") if rate is None else rate * 1e9,
                "utilization": float("nan") if use is None else use * 0.01}  # fmt: skip
        return assemble("flops", {name: [value] for name, value in data.items()}, columns)
    frame = read_sheet(path, note)
    if frame is None:
        return None
    parts = [numbers(frame[[heading]], (re.sub(r"\(.*?\)", "", str(heading)).strip().lower(),), path, note)
             for heading in frame.columns if re.match(r"(M?FLOPs)\b", str(heading))]  # fmt: skip
    sums = [part.sum() for part in parts if part is not None and part.notna().any()]
    if not sums:
        note(str(path), "lacks FLOPs of operators; it was not read")
        return None
    return assemble("flops", {"flop": [sum(sums) * 1e6]}, columns)


@reader("legacy.operators")
def read_operators(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """aicore_/pynative_op_intermediate_*_detail.csv with shapes of framework_raw, cpu_op_*_info.csv -> operators."""
    framework = next((path for path in reference.paths if path.name.startswith("framework_raw")), None)
    files = [path for path in reference.paths if path != framework]
    return _join([read_operator_file(path, framework, columns, note) for path in files])
