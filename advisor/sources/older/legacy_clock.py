"""The clock of the older MindSpore's timelines: they count from their own beginning, the step trace in the device's
ticks. What the writer keeps beside them tells when that beginning was, so that both tell of the same steps.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.sources.older.legacy_files import finite, numbers, plain, read_sheet, texts
from advisor.sources.older.legacy_steps import TICK_US
from advisor.sources.reference import Note
from advisor.sources.text.textfiles import read_text

TICKS_NAME = "min_cycle_counter"
"""The file that holds the least count of ticks of a timeline, which reads nothing there."""
_TICK_NS = TICK_US * 1000
_BEGINNING = 1 << 18
_AVERAGE = ("", "0", "-")
"""How the trace's row of averages is called."""


def shares_clock(trace: Path, clock: Path) -> bool:
    """Whether the timeline behind `clock` begins less than a step from where the step trace begins, and the trace has
    a second step: where its first one begins was not measured."""
    try:
        rows = _rows(trace, "step_num", "start_point", "end_point")
        steps = [row for row in rows if row["step_num"] not in _AVERAGE]
        begin = _begin_ticks(clock)
        first, length = float(steps[0]["start_point"]), float(steps[0]["end_point"]) - float(steps[0]["start_point"])
    except (OSError, ValueError, IndexError, KeyError):
        return False
    return begin is not None and len(steps) > 1 and abs(first - begin) <= length


def _begin_ticks(clock: Path) -> float | None:
    if clock.name.startswith(TICKS_NAME):
        return finite(read_text(clock, 1 << 10).strip())
    starts = (finite(row["start_time"]) for row in _rows(clock, "start_time"))
    known = [start for start in starts if start is not None]
    return min(known) * 1e6 / _TICK_NS if known else None


def _rows(path: Path, *names: str) -> list[dict[str, str]]:
    """These cells of the rows in the file's beginning, but for the last one, which may be cut."""
    lines = read_text(path, _BEGINNING).splitlines()
    head, *rows = csv.reader(lines[:-1] if len(lines) > 3 else lines, skipinitialspace=True)
    at = {plain(heading): place for place, heading in enumerate(head)}
    return [{name: row[at[name]].strip() for name in names} for row in rows if len(row) == len(head)]


def origin_ns(path: Path, rows: Sequence[dict[str, Any]], note: Note) -> int | None:
    """When the timeline reads nothing, on the step trace's clock. `rows` are its kernels: where the ticks themselves
    are not kept, the file of which it was made tells when the first operator began."""
    if path.name.startswith(TICKS_NAME):
        ticks = _begin_ticks(path)
        return None if ticks is None else round(ticks * _TICK_NS)
    frame = read_sheet(path, note)
    names = None if frame is None else texts(frame, "op_name")
    starts = None if frame is None else numbers(frame, ("start_time",), path, note, scale=1e6)
    if names is None or starts is None or not starts.notna().any():
        return None
    at = int(starts.to_numpy(float, na_value=float("inf")).argmin())
    name = str(names.iloc[at]).rpartition("/")[2]
    operators = (row for row in rows if row["core"] == "AI_CORE")
    first = min(operators, key=lambda row: row["start_ns"], default=None)
    if first is None or first["name"].rpartition("/")[2] != name:
        return None
    return round(float(starts.iloc[at])) - int(first["start_ns"])
