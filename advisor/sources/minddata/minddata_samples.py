"""Readers of what MindData samples while it runs: batches, queues and processors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.minddata.hostfiles import canonical_frame, to_known, to_number, to_whole
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsontext import load_json
from advisor.sources.text.textfiles import lines_of, open_text, read_text
from advisor.tables import LARGEST, LONGEST_TEXT

if TYPE_CHECKING:
    import pandas as pd


def _integer_lines(path: Path, width: int, note: Note) -> Iterator[list[int]]:
    """Lines of `width` integers; others are noted once and left out."""
    bad = 0
    with open_text(path) as file:
        for line in lines_of(file):
            cells = line.split()
            if not cells:
                continue
            try:
                values = [int(float(cell)) for cell in cells]
            except (ValueError, OverflowError):
                values = []
            if len(values) >= width:
                yield values
            else:
                bad += 1
    if bad:
        note(str(path), f"{bad} lines were cut or unreadable and left out")


@reader("minddata.batches")
def read_batches(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """One row per batch from `type extra batch value time` lines (milliseconds); older files lack the last column.

    A device queue file says how batches reach the device (sink), an iterator file how the loop gets them.
    """
    for path in reference.paths:
        mode = "sink" if path.name.startswith("device_queue") else "iterator"
        batches: dict[int, dict[str, Any]] = {}
        for kind, extra, batch, value, *rest in _integer_lines(path, 4, note):
            if value < 0 or batch < 0:
                continue
            row = batches.setdefault(batch, {"mode": mode, "batch": batch})
            if kind == 0 and extra in (0, 1, 2):
                row[("pipeline_us", "push_us", "total_us")[extra]] = value * 1000.0
            elif kind == 1:
                row["queue_size"], row["queue_capacity"] = float(value), float(extra)
            if rest:
                row["time_ns"] = rest[0] * 1_000_000
        if batches:
            return canonical_frame("batches", (batches[b] for b in sorted(batches)), columns)
        note(str(path), "holds no batch")
    return None


_NODE = re.compile(rf"[\w./:-]{{1,{LONGEST_TEXT}}}")
"""Name of an operator; what is glued before one makes it another one, or none."""


@reader("minddata.data_queue")
def read_data_queue(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """`node start end size` lines of the GetNext operators: microseconds on Ascend, nanoseconds on GPU."""
    path = reference.paths[0]
    scale = 1e-3 if "getnext" in path.name else 1.0
    rows, bad = [], 0
    for line in read_text(path).splitlines():
        cells = line.split()
        numbers = [to_number(cell) for cell in cells[-3:]]
        if len(cells) < 4 or None in numbers or not _NODE.fullmatch(cells[0]):
            bad += bool(cells)
            continue
        if not re.match(r"(?i)get_?next", cells[0]):
            continue
        start, end, size = numbers
        if size is not None and size >= 0:
            rows.append({"node": cells[0], "start_us": start * scale, "end_us": end * scale, "queue_size": size})  # type: ignore[operator]
    if bad:
        note(str(path), f"{bad} lines were cut or unreadable and left out")
    if not rows:
        note(str(path), "holds no fetch of the data queue")
    return canonical_frame("data_queue", rows, columns) if rows else None


def _series(values: Any, *names: str) -> list[float | None]:
    values = values if isinstance(values, dict) else {}
    for name in names:
        if isinstance(values.get(name), list):
            numbers = (to_known(value) for value in values[name])
            return [None if number is None or number > LARGEST else number for number in numbers]
    return []


_OWN = ("user_utilization", "sys_utilization")
_WRITTEN = {"device_info": (*_OWN, "io_utilization", "idle_utilization")}
"""Series that every version writes, where it writes the part that holds them."""


def _tell_odd(document: dict[str, Any], path: Path, note: Note) -> None:
    """Notes series of the file that are missing, and samples that are no numbers."""
    parts: list[tuple[str, Any]] = [(n, document[n]) for n in ("device_info", "process_info") if n in document]
    operations = document.get("op_info")
    if not isinstance(operations, list):
        note(str(path), "holds no list of operations (op_info)")
        operations = []
    lost = sum(not isinstance(op, dict) or to_whole(op.get("op_id")) is None for op in operations)
    if lost:
        note(str(path), f"{lost} of {len(operations)} operations have no number; their processor use is unknown")
    parts += [("metrics", op.get("metrics")) for op in operations if isinstance(op, dict)]
    missing = [f"{what}.{name}" for what, values in parts for name in _WRITTEN.get(what, _OWN)
               if not isinstance(values, dict) or not isinstance(values.get(name), list)]  # fmt: skip
    missing += [f"{what}.{name}" for what, values in parts if isinstance(values, dict)
                for name, given in values.items()
                if not isinstance(given, list) or (not given and any(values.values()))]  # fmt: skip
    if missing:
        note(str(path), f"lacks {', '.join(sorted(set(missing)))}", ("host_cpu", "pipeline_cpu"))
    series = [values for _, part in parts if isinstance(part, dict) for values in part.values()]
    odd = sum(to_number(v) is None or abs(to_number(v) or 0) > LARGEST
              for values in series if isinstance(values, list) for v in values)  # fmt: skip
    if odd:
        note(str(path), f"{odd} samples are no usable numbers and were left out")
    shapes = [{len(part[name]) for name in ("user_utilization", "sys_utilization") if isinstance(part.get(name), list)}
              for what, part in parts if what == "metrics" and isinstance(part, dict)]  # fmt: skip
    if len(set().union(*shapes)) > 1:
        one = any(len(lengths) > 1 for lengths in shapes)  # what was sampled together is as long as one another
        doubted = ("pipeline_cpu",) if one else ()
        note(str(path), "holds series of different lengths: samples are missing", doubted)


_DEVICE = {
    "user_share": ("user_utilization",), "system_share": ("sys_utilization",), "io_share": ("io_utilization",),
    "idle_share": ("idle_utilization",), "context_switches": ("context_switch_count",),
    "runnable": ("runnable_process", "runable_processes", "runnable_processes"),
}  # fmt: skip
_SHARES = ("user_share", "system_share", "io_share", "idle_share")


MOST_OPERATIONS = 1 << 30
"""Operations are numbered from 0; no pipeline has as many."""


def _every_second(series: dict[str, list[float | None]], samples: int) -> bool:
    """MindSpore 2.10 reads /proc/stat twice a sample: the second of each pair finds no ticks passed, and is 0."""
    longest = max((len(values) for values in series.values()), default=0)
    odd = [value for name in _SHARES for value in series[name][1::2]]
    return longest >= 2 * samples - 1 > 1 and bool(odd) and not any(odd)


def _moment(stamp: object) -> float | None:
    """When a sample was taken, milliseconds; None where no clock tells that."""
    time = to_number(stamp)
    return time if time is not None and 0 <= time <= LARGEST else None


@reader("minddata.host_cpu")
def read_host_cpu(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """One row per sample. Machine shares of samples in which no processor tick passed are NA, not zero."""
    document = load_json(reference.paths[0], note, whole=True)
    if not isinstance(document, dict) or not isinstance(document.get("device_info"), dict):
        note(str(reference.paths[0]), "holds no device_info: the host's processor use is unknown")
    if not isinstance(document, dict):
        return None
    _tell_odd(document, reference.paths[0], note)
    stamps = document.get("time_stamp")
    times = [_moment(t) for t in stamps] if isinstance(stamps, list) else []
    odd = sum(time is None for time in times) + sum(b <= a for a, b in pairwise(t for t in times if t is not None))
    if odd or not times:
        text = (
            f"{odd} of {len(times)} samples have no time, or none after the one before" if times else "lacks time_stamp"
        )
        note(str(reference.paths[0]), text)
    if odd:
        times = [None] * len(times)
    machine = {name: _series(document.get("device_info"), *keys) for name, keys in _DEVICE.items()}
    step = 2 if _every_second(machine, len(times)) else 1
    process = document.get("process_info")
    own = {
        "process_user_percent": _series(process, "user_utilization"),
        "process_system_percent": _series(process, "sys_utilization"),
    }
    cores = to_whole(document.get("cpu_processor_num"))
    if "cpu_processor_num" in document and (cores is None or cores < 1):
        note(str(reference.paths[0]), "cpu_processor_num is no number of processors; it was not used")
        cores = None
    rows = []
    count = max([len(times), *(len(v) for v in own.values()), *((len(v) + step - 1) // step for v in machine.values())])
    above = 0
    for i in range(count):
        time = times[i] if i < len(times) else None
        row: dict[str, Any] = {"cores": cores, "time_ns": None if time is None else int(time * 1_000_000)}
        at = {name: values[i * step] if i * step < len(values) else None for name, values in machine.items()}
        if any(at[name] for name in _SHARES):
            row |= {name: None if value is None else value / 100.0 for name, value in at.items() if name in _SHARES}
            row |= {name: value for name, value in at.items() if name not in _SHARES}
        row |= {name: values[i] for name, values in own.items() if i < len(values)}
        rows.append(row)
        # each is a whole number of percent, rounded by less than one
        above += sum(at[name] or 0.0 for name in _SHARES) > 100 + len(_SHARES)
    if above:
        note(str(reference.paths[0]), f"{above} of {count} samples tell of more than all of the machine's processors")
    return canonical_frame("host_cpu", rows, columns) if rows else None


@reader("minddata.pipeline_cpu")
def read_pipeline_cpu(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Mean processor use of each operation, percent of one core summed over its threads."""
    document = load_json(reference.paths[0], note, whole=True)
    operations = document.get("op_info") if isinstance(document, dict) else None
    rows = []
    for op in operations if isinstance(operations, list) else ():
        op_id = to_whole(op.get("op_id")) if isinstance(op, dict) else None
        if op_id is None or not 0 <= op_id < MOST_OPERATIONS:
            continue
        user = [v for v in _series(op.get("metrics"), "user_utilization") if v is not None]
        system = [v for v in _series(op.get("metrics"), "sys_utilization") if v is not None]
        if user:
            rows.append({
                "op_id": op_id, "user_percent": sum(user) / len(user), "samples": len(user),
                "system_percent": sum(system) / len(system) if system else None,
            })  # fmt: skip
    return canonical_frame("pipeline_cpu", rows, columns) if rows else None
