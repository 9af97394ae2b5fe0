"""Operator by operator: aicore_intermediate_*_detail.csv and its kin, cpu_op_*_info.csv, framework_raw_*.csv."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from advisor.basics.units import show
from advisor.sources.frames import ABSENT, is_word
from advisor.sources.older.legacy_files import assemble, numbers, read_sheet, texts
from advisor.sources.older.legacy_graphs import begin_of_evaluation
from advisor.sources.reference import Note
from advisor.sources.text.textfiles import TooLarge

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("full_kernel_name", "full_op_name", "full_op_time", "full_kernel_time", "op_full_name", "op_name")
"""`full_op_time` and `full_kernel_time` are slips of some versions: the column holds names."""
_DTYPES = {"FLOAT32": "FLOAT", "BFLOAT16": "DT_BF16"}
"""Older names of data types -> those of today's kernel tables."""


def read_operator_file(
    path: Path, framework: Path | None, columns: Sequence[str] | None, note: Note
) -> pd.DataFrame | None:
    """One file as a canonical operators frame. Device files hold one step's average, host files (`HostCpu`) the run."""
    frame = read_sheet(path, note)
    if frame is None:
        return None
    host = path.name.startswith("cpu_op")
    by_type = "op_type_info" in path.name
    names = texts(frame, "op_type") if by_type else texts(frame, *_NAMES)
    each = ("execution_time", "task_duration")
    time_of_all = ("op_total_time", "total_compute_time", "total_time")
    total = numbers(frame, time_of_all if host else each, path, note, scale=1e3, timed=True)
    if names is None or total is None:
        note(str(path), "lacks the names or the times of operators; it was not read")
        return None
    named = names.map(lambda name: name != "-" and is_word(name or ""))
    if nameless := int((~named).sum()):
        note(str(path), f"{nameless} of {len(frame)} operators have no name: cells were moved or lost", ("operators",))
    alike = int(names[named].value_counts().max()) if named.any() else 0
    if alike > 2 and 2 * alike >= len(frame):  # an operator stands once in each graph
        text = f"{alike} of {len(frame)} operators bear one name: cells were moved or lost"
        note(str(path), text, ("operators",))
    count = numbers(frame, ("op_occurrences", "type_occurrences", "execution_frequency"), path, note)
    if count is None:
        count = total.where(total.isna(), 1.0)
    elif uncounted := int((total.notna() & count.isna()).sum()):
        text = (
            f"{uncounted} of {len(frame)} operators have a time and no number of executions: cells were moved or lost"
        )
        note(str(path), text, ("operators",))
    if not host:
        total = total * count
    types = texts(frame, "op_type", "kernel_type")
    core = texts(frame, "task_type")
    inputs = _framework(framework, note) if framework is not None and not host else {}
    known = [inputs.get(name, _UNKNOWN) for name in names]
    data: dict[str, Any] = {
        "name": names,
        "type": types if types is not None else [k.type or type_of(n) for k, n in zip(known, names, strict=True)],
        "core": "HostCpu" if host else core if core is not None else "AI_CORE",
        "count": count,
        "total_us": total,
    }
    evaluates = None if host or by_type else begin_of_evaluation([name or "" for name in names])
    if evaluates is not None:
        data["graph"] = [int(row >= evaluates) for row in range(len(names))]
        other = total[evaluates:]
        text = f"lists a graph of {len(other)} operators ({show(float(other.sum()), 'us')}) behind that of the training"
        note(str(path), f"{text}: it has the same layers and no gradients, so it evaluates; left out")
    if inputs:
        data["input_shapes"] = [k.shapes for k in known]
        data["input_dtypes"] = [k.dtypes for k in known]
        data["blocks"] = [k.blocks for k in known]
    operators: pd.DataFrame = assemble("operators", data, columns)[(total.notna() & named).to_numpy()]
    return operators


_NOTHING = ABSENT | {"nan"}


def type_of(name: str) -> str:
    """The operator type in a full name: `Default/net/MatMul-op12` -> `MatMul`."""
    return re.sub(r"-op[0-9]+.*$", "", name.rsplit("/", 1)[-1])


class _Described(NamedTuple):
    """An operator as the graph describes it; empty, or NaN, where it does not."""

    type: str
    shapes: str
    dtypes: str
    blocks: float


_UNKNOWN = _Described("", "", "", math.nan)


def _framework(path: Path, note: Note) -> dict[str, _Described]:
    """Full name -> what framework_raw_*.csv says of the operator."""
    try:
        frame = read_sheet(path, note)
    except (OSError, TooLarge, csv.Error) as error:
        note(str(path), f"cannot be read; shapes are unknown: {error}")
        return {}
    if frame is None:
        return {}
    names, types = texts(frame, *_NAMES), texts(frame, "kernel_type", "op_type")
    info = texts(frame, "op_info", document=True)
    if names is None or types is None or info is None:
        note(str(path), "lacks names, types or op_info; shapes are unknown")
        return {}
    if typeless := sum(kind.strip().lower() in _NOTHING for kind in types):
        note(str(path), f"{typeless} of {len(names)} operators have no type: cells were moved or lost", ("operators",))
    blocks = numbers(frame, ("block_dim",), path, note)
    known: dict[str, _Described] = {}
    unreadable = 0
    for name, kind, cell, dealt in zip(
        names, types, info, [math.nan] * len(names) if blocks is None else blocks, strict=True
    ):
        try:
            described = json.loads(cell or "")
        except (ValueError, RecursionError):
            described = None
        unreadable += not isinstance(described, dict)
        inputs = describe_inputs(described if isinstance(described, dict) else {})
        known[name] = _Described(kind, *inputs, float(dealt))
    if unreadable:
        note(str(path), f"{unreadable} of {len(names)} op_info cells are no JSON objects; those shapes are unknown")
    return known


def describe_inputs(info: Mapping[str, Any]) -> tuple[str, str]:
    """Shapes and data types of `input_<n>` entries as kernel tables write them: `32,64;64,128`, `FLOAT;INT32`."""
    keys = sorted((k for k in info if re.fullmatch(r"input_[0-9]{1,9}", k)), key=lambda k: int(k[6:]))
    entries = [info[key] for key in keys if isinstance(info[key], dict)]
    shapes = [write_shape(entry.get("shape", "")) for entry in entries]
    dtypes = [str(entry.get("data_type", "")).removeprefix("NUMBER_TYPE_") for entry in entries]
    return ";".join(shapes), ";".join(_DTYPES.get(dtype, dtype) for dtype in dtypes)


def write_shape(shape: Any) -> str:
    """`[32, 64]`, "[32, 64]" or "32,64" as `32,64`."""
    if isinstance(shape, (list, tuple)):
        return ",".join(str(size) for size in shape)
    return re.sub(r"[\[\]\s]", "", str(shape))
