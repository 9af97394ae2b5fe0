"""Readers of the host profile: time and memory by module, event and stage (S83).

MindSpore 2.2 to 2.4 leaves `host_info/` with what it recorded (`host_info_R.csv`, one line at each start and end),
the timeline it made of it (`timeline_R.json`) and `host_memory_R.csv`; the runtime profiler of later versions
writes `RuntimeProfilerDetail*.csv` with `key:value` cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.folders import file_paths, is_folder, plain_name
from advisor.sources.minddata.hostfiles import (
    canonical_frame,
    read_csv_rows,
    read_records,
    to_known,
    to_number,
)
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsontext import load_json

if TYPE_CHECKING:
    import pandas as pd


def find_host_stages(folder: Path, rank: int | None = None, own: bool = False) -> dict[str, TableRef]:
    """Host time and memory tables of this folder, its host_info/, profiler/host_info/ and rank_R/."""
    places = [folder, folder / "host_info", folder / "profiler" / "host_info", folder / "FRAMEWORK"]
    if rank is not None:
        places.append(folder / f"rank_{rank}")
    files = [path for place in places if is_folder(place) for path in file_paths(place)]
    tables: dict[str, TableRef] = {}
    for table, patterns, name in (
        (
            "host_stages",
            (r"host_info(_[0-9]+)?\.csv", r"timeline_[0-9]+\.json", r"RuntimeProfilerDetail.*\.csv"),
            "stages",
        ),
        ("host_memory", (r"host_memory(_[0-9]+)?\.csv", r"host_info(_[0-9]+)?\.csv"), "memory"),
    ):
        for pattern in patterns:
            matching = [path for path in files if re.fullmatch(pattern, plain_name(path.name))]
            chosen = [path for path in matching if _is_of(path, rank, own or len(matching) == 1)]
            if chosen:
                tables[table] = TableRef(table, tuple(chosen[:1]), f"minddata.host_{name}")
                break
    return tables


def _is_of(path: Path, rank: int | None, alone: bool) -> bool:
    match = re.search(r"_([0-9]+)\.", path.name)
    return rank is None or alone or match is None or int(match.group(1)) == rank


@reader("minddata.host_stages")
def read_host_stages(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """One row per completed event, microseconds."""
    path = reference.paths[0]
    if path.suffix == ".json":
        rows = _of_timeline(load_json(path, note, whole=True))
    elif path.name.startswith("RuntimeProfiler"):
        rows = _of_runtime(path, note)
    else:
        rows = _of_marks(path, note)
    if not rows:
        note(str(path), "holds no completed host event")
        return None
    return canonical_frame("host_stages", rows, columns)


def _of_timeline(document: Any) -> list[dict[str, Any]]:
    events = document.get("traceEvents") if isinstance(document, dict) else document
    rows = []
    for event in events if isinstance(events, list) else ():
        if not isinstance(event, dict) or event.get("ph") not in (None, "X"):
            continue
        start, duration = to_number(event.get("ts")), to_known(event.get("dur"))
        if start is None or duration is None:
            continue
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        name = str(event.get("name", ""))
        parts = [part for part in re.split(r"::|/", name) if part] or [name]
        rows.append({
            "module": str(args.get("module_name") or (parts[0] if parts[1:] else event.get("pid"))),
            "event": str(args.get("event") or (parts[1] if len(parts) > 1 else parts[0])),
            "stage": str(args.get("stage") or (parts[2] if len(parts) > 2 else "")),
            "level": str(args.get("level", "")), "start_us": start, "end_us": start + duration,
            "duration_us": duration, "info": str(args.get("custom_info", "")),
        })  # fmt: skip
    return rows


def _of_runtime(path: Path, note: Note) -> list[dict[str, Any]]:
    rows = []
    for cells in read_csv_rows(path, note):
        text = ",".join(cells)
        field = dict(re.findall(r"(\w+):\s*,?\s*([^,]+)", text))
        start, end, duration = (to_number(field.get(key)) for key in ("start_time", "end_time", "dur_time"))
        if duration is None or duration < 0:
            continue
        # the file says nanoseconds in a cell of its own
        scale = 1e-3 if re.search(r"\bns\b", text) else 1.0
        rows.append({
            "module": field.get("module", "").strip(), "event": field.get("event", "").strip(),
            "stage": field.get("op", "").strip(), "start_us": None if start is None else start * scale,
            "end_us": None if end is None else end * scale, "duration_us": duration * scale,
        })  # fmt: skip
    return rows


def _of_marks(path: Path, note: Note) -> list[dict[str, Any]]:
    """Pairs each start (0) with the next end (1) of the same thread, module, event and stage."""
    open_marks: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    rows: list[dict[str, Any]] = []
    unpaired = 0
    for record in read_records(path, note):
        time = to_number(record.get("time_stamp(us)"))
        if not time or time <= 0:
            continue
        key = tuple(record.get(name, "") for name in ("tid", "module_name", "event", "stage"))
        if record.get("start_end") == "0":
            open_marks.setdefault(key, []).append((time, record.get("custom_info", "")))
        elif record.get("start_end") == "1":
            if not open_marks.get(key):
                unpaired += 1
                continue
            start, info = open_marks[key].pop()
            rows.append({
                "module": key[1], "event": key[2], "stage": key[3], "level": record.get("level", ""),
                "start_us": start, "end_us": time, "duration_us": max(0.0, time - start), "info": info,
            })  # fmt: skip
    unpaired += sum(map(len, open_marks.values()))
    if unpaired:
        note(str(path), f"{unpaired} events have a start or an end only and were left out")
    return rows


@reader("minddata.host_memory")
def read_host_memory(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Resident memory of the process where an event was recorded, bytes."""
    path = reference.paths[0]
    rows = []
    for record in read_records(path, note):
        time = to_number(record.get("time_stamp(us)"))
        used = to_known(record.get("memory_usage(kB)") or record.get("host_memory_usage(kB)"))
        if used is None or used == 0:
            continue
        rows.append({
            "module": record.get("module_name"), "event": record.get("event"), "stage": record.get("stage"),
            "time_us": time, "used_bytes": used * 1024.0,
        })  # fmt: skip
    if not rows:
        note(str(path), "holds no memory figure")
        return None
    return canonical_frame("host_memory", rows, columns)
