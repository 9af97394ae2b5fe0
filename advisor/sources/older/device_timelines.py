"""msprof's older layout: `PROF_*/device_<n>/timeline/`, one JSON file of each kind for every iteration of a model.

`task_time_<device>_<model>_<iteration>.json` holds what ran on the device, `hccl_…` the collectives of the same
iteration as the host named them. Together they are the table of kernels; the iteration in the file's name is the step.
Where the collectives are not at hand, the tasks that carried them out tell when the device communicated.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.sources.folders import plain_name
from advisor.sources.readers import reader
from advisor.sources.reference import Note, TableRef
from advisor.sources.text.jsontext import load_json
from advisor.tables import LARGEST, TABLES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_FILE = re.compile(r"(task_time|hccl)_[0-9]+_(?P<model>[0-9]+)_(?P<iteration>[0-9]+)\.json")
_COMPUTING = re.compile(r"^(AI_?CORE|AI_?CPU|AI_?VECTOR|AIV|AIC|MIX_)", re.IGNORECASE)
"""Types of tasks that compute; the others are events, copies and notifications."""
LONGEST_NUMBER = 9
"""Digits of an iteration's number at most; what is longer is damage."""
LATEST_US = 9e15
"""Microseconds, about what 64 bits of nanoseconds hold: a later instant is damage."""
_PLANE = "Communication Kernel"
"""The thread that holds collectives as a whole; planes hold the tasks inside them."""


def find_timelines(names: Iterable[str]) -> list[str]:
    """Those file names that are a device's tasks or collectives, by iteration."""
    found = ((match, name) for name in names if (match := _FILE.fullmatch(plain_name(name))))
    return [name for match, name in sorted(found, key=lambda pair: (int(pair[0]["iteration"]), pair[0][1]))]


def of_one_model(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files of the model that did most, as far as the size of its files tells, and the other models. Each counts
    its own iterations, and those of several are no steps of one loop."""
    sizes: dict[str, int] = {}
    models = [match["model"] if (match := _FILE.fullmatch(plain_name(path.name))) else "" for path in paths]
    for model, path in zip(models, paths, strict=True):
        sizes[model] = sizes.get(model, 0) + path.stat().st_size
    most = max(sizes, key=sizes.__getitem__, default="")
    kept = [path for model, path in zip(models, paths, strict=True) if model == most]
    return kept, sorted(sizes.keys() - {most}, key=lambda model: (len(model), model))


def references(paths: Iterable[Path]) -> dict[str, TableRef]:
    """The tables of kernels and of collectives from these files."""
    paths = tuple(sorted(paths, key=lambda path: path.name.startswith("hccl")))
    found = {"kernels": TableRef("kernels", paths, "kernels.timelines")}
    if collectives := tuple(path for path in paths if path.name.startswith("hccl")):
        found["collectives"] = TableRef("collectives", collectives, "timelines.collectives")
    if marks := tuple(p for path in paths if (p := _marks_beside(path)).is_file()):
        found["iterations"] = TableRef("iterations", tuple(dict.fromkeys(marks)), "timelines.iterations")
    return found


def _marks_beside(path: Path) -> Path:
    """Where msprof writes the marks of the iteration whose tasks stand in this file."""
    return path.with_name("step_trace_" + path.name.removeprefix("task_time_").removeprefix("hccl_"))


@reader("timelines.iterations")
def read_iterations(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Each iteration with its end, its time and, where the marks tell it, the wait for its data: from the end of the
    iteration before, microseconds; it may reach into the iteration itself."""
    import pandas as pd

    spans: dict[int, tuple[int, float]] = {}
    asked: dict[str, tuple[int, int]] = {}
    got: dict[str, int] = {}
    for path in reference.paths:
        lost, events = 0, _events(path, note)
        for event in events:
            kind, phase, number, at = event.get("cat"), event.get("ph"), _number_of(event), _instant(event)
            if kind == "Iteration Time" and phase == "X" and number is not None:
                if (times := _times(event)) is not None:
                    spans[number] = times
                else:
                    lost += 1
            elif kind == "Data_aug Bound" and phase == "s" and number is not None and at is not None:
                asked[str(event.get("id"))] = number, at
            elif kind == "Data_aug Bound" and phase == "t" and at is not None:
                got[str(event.get("id"))] = at
        if lost:
            note(str(path), f"{lost} of its {len(events)} events have no usable duration and were left out")
    if not spans:
        return None
    waits = {number: (got[mark] - at) / 1000 for mark, (number, at) in asked.items() if mark in got}
    rows = [
        {
            "graph": "", "iteration": str(number), "end_ns": start + round(us * 1000), "time_us": us, "begin_ns": start,
            "data_us": waits.get(number - 1),
        }
        for number, (start, us) in sorted(spans.items())
    ]  # fmt: skip
    frame = pd.DataFrame(rows).astype({"end_ns": "Int64", "begin_ns": "Int64"})
    wanted = [name for name in TABLES["iterations"].names if columns is None or name in columns]
    found: pd.DataFrame = frame.reindex(columns=wanted)
    return found


def _number_of(event: Mapping[str, Any]) -> int | None:
    about = event.get("args")
    number = str(about.get("Iteration ID", "")) if isinstance(about, Mapping) else ""
    return int(number) if number.isdecimal() and number.isascii() and len(number) <= LONGEST_NUMBER else None


def _instant(event: Mapping[str, Any]) -> int | None:
    """Nanoseconds; None where the event tells no time that could be one."""
    try:
        at = Decimal(str(event.get("ts")))
        return int(at * 1000) if at.is_finite() and abs(at) < LATEST_US else None
    except ArithmeticError:
        return None


@reader("timelines.collectives")
def read_collectives(reference: TableRef, columns: Sequence[str] | None, note: Note) -> pd.DataFrame | None:
    """Each collective with its transfer: from where its busiest plane first moves data. Before that it waits for the
    last rank to arrive; between the moves each plane waits for its neighbours', which is how a ring works."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for path in reference.paths:
        match, events = _FILE.fullmatch(plain_name(path.name)), _events(path, note)
        if match is None:
            continue
        inside = list(_tasks_of_planes(events))
        for name, _, _, _, start, duration in _collectives(events):
            moved: dict[str, float] = {}
            began: dict[str, int] = {}
            for plane, begin, us in inside:
                if start <= begin <= start + duration * 1000:
                    moved[plane] = moved.get(plane, 0.0) + us
                    began[plane] = min(began.get(plane, begin), begin)
            plane = max(moved, key=moved.__getitem__, default="")
            waited = (began[plane] - start) / 1000 if plane in began else None
            rows.append({
                "step": match["iteration"], "name": name, "group": "", "kind": "collective", "start_ns": start,
                "elapsed_us": duration, "transit_us": None if waited is None else duration - waited, "wait_us": waited,
            })  # fmt: skip
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    wanted = [name for name in TABLES["collectives"].names if columns is None or name in columns]
    found: pd.DataFrame = frame.reindex(columns=wanted)
    return found


_MOVES = frozenset(("Memcpy", "Reduce_Inline", "Reduce_TBE", "RDMASend"))


def _tasks_of_planes(events: list[dict[str, Any]]) -> Iterator[tuple[str, int, float]]:
    """(plane, start in nanoseconds, microseconds) of what moves data."""
    for event in events:
        if event.get("ph") == "X" and str(event.get("name")) in _MOVES:
            for _, _, _, plane, start, duration in _row(event, "", "", str(event.get("tid"))):
                yield plane, start, duration


def timeline_frames(path: Path, note: Note) -> Iterator[pl.DataFrame]:
    """The kernels of one file as a canonical frame."""
    import polars as pl

    match = _FILE.fullmatch(plain_name(path.name))
    if match is None:
        return
    usable = _events(path, note)
    if lost := sum(event.get("ph") == "X" and _times(event) is None for event in usable):
        note(str(path), f"{lost} of its {len(usable)} events have no usable duration and were left out")
    rows = list(_collectives(usable) if match[1] == "hccl" else _tasks(usable))
    if match[1] != "hccl" and not path.with_name(path.name.replace("task_time", "hccl")).is_file():
        rows += _exchanged(usable, rows)
    if match[1] != "hccl" and not rows and any(event.get("ph") == "X" for event in usable):
        note(str(path), "holds no task of a type that computes")
    if rows:
        schema = {
            "name": pl.String, "type": pl.String, "core": pl.String, "stream": pl.String, "start_ns": pl.Int64,
            "duration_us": pl.Float64,
        }  # fmt: skip
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        yield frame.with_columns(pl.lit(match["iteration"]).alias("step"))


def _events(path: Path, note: Note) -> list[dict[str, Any]]:
    document = load_json(path, note)
    if document is None:
        return []
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        note(str(path), "is no timeline: neither an array of events nor traceEvents")
        return []
    usable = [event for event in events if isinstance(event, dict)]
    if not usable:
        note(str(path), "holds no events")
    once = {
        tuple(map(str, map(event.get, _SAME))) if event.get("ph") == "X" else place: event
        for place, event in enumerate(usable)
    }
    if twice := len(usable) - len(once):
        note(str(path), f"{twice} events stand there more than once; each was used once")
    return list(once.values())


_SAME = ("name", "pid", "tid", "ts", "dur")
"""A device does nothing twice in one place at one time."""


_Row = tuple[str, str, str, str, int, float]
_MEETS = "NOTIFY_WAIT"
_CARRIES = re.compile(r"^(NOTIFY|REDUCE|MEMCPY|SDMA|RDMA)")
"""Types of tasks that carry out collectives on their streams; the first waits for another device."""


def _exchanged(events: list[dict[str, Any]], computing: Sequence[_Row]) -> list[_Row]:
    """When the device communicated: tasks of the streams on which it meets others, joined where it does not compute
    between them."""
    tasks = [
        (str(about.get("Stream Id", "")), kind, *times)
        for event in events
        if event.get("ph") == "X" and isinstance(about := event.get("args"), Mapping)
        and _CARRIES.match(kind := str(about.get("Task Type", "")))
        and (times := _times(event)) is not None
    ]  # fmt: skip
    planes = {stream for stream, kind, *_ in tasks if kind == _MEETS}
    work = sorted(start for *_, start, _ in computing)
    spans: dict[int, tuple[int, int]] = {}
    for stream, _, start, us in tasks:
        if stream in planes:
            place, end = bisect(work, start), start + round(us * 1000)
            first, last = spans.get(place, (start, end))
            spans[place] = min(first, start), max(last, end)
    return [("", "Communication", "HCCL", "", first, (last - first) / 1000) for first, last in spans.values()]


def _tasks(events: list[dict[str, Any]]) -> Iterator[_Row]:
    for event in events:
        about = event.get("args")
        core = str(about.get("Task Type", "")) if isinstance(about, Mapping) else ""
        if event.get("ph") == "X" and _COMPUTING.match(core):
            stream = str(about.get("Stream Id", "")) if isinstance(about, Mapping) else ""
            yield from _row(event, _type_of(str(event.get("name", ""))), core, stream)


def _collectives(events: list[dict[str, Any]]) -> Iterator[_Row]:
    whole = {
        (str(event.get("pid")), str(event.get("tid")))
        for event in events
        if event.get("ph") == "M" and event.get("name") == "thread_name" and _thread(event) == _PLANE
    }
    for event in events:
        if event.get("ph") == "X" and (str(event.get("pid")), str(event.get("tid"))) in whole:
            yield from _row(event, _type_of(str(event.get("name", ""))), "HCCL", str(event.get("tid")))


def _thread(event: Mapping[str, Any]) -> str:
    about = event.get("args")
    return str(about.get("name", "")) if isinstance(about, Mapping) else ""


def _row(event: Mapping[str, Any], kind: str, core: str, stream: str) -> Iterator[_Row]:
    if (times := _times(event)) is not None:
        yield str(event.get("name", "")), kind, core, stream, *times


def _times(event: Mapping[str, Any]) -> tuple[int, float] | None:
    """(start in nanoseconds, duration in microseconds); None where one of them is no number that could be one."""
    try:
        start, us = _instant(event), float(str(event.get("dur")))
    except ValueError:
        return None
    return (start, us) if start is not None and abs(us) <= LARGEST and start + us * 1000 < LATEST_US * 1000 else None


def _type_of(name: str) -> str:
    """`Default/network/Cast-op239` is a Cast, `Default/AllReduce-op534_0` an AllReduce."""
    return name.rpartition("/")[2].partition("-op")[0]
