"""Corruptions of meaning: the files stay well-formed, and their numbers cannot be true.

Another unit in one column, columns or tables exchanged, a rank of another run or with another clock, percent for
ratio, rows that stand twice. What such a file leads to must be told, and nothing of it may be certain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.mutants.base import MEANING, mutation, replace_file
from benchmarks.mutants.cells import Rows, load, store

DAY_US = 86_400_000_000
STEPS, KERNELS, STATISTIC = "step_trace_time.csv", "kernel_details.csv", "op_statistic.csv"
COLLECTIVES, MATRIX = "communication.json", "communication_matrix.json"
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
Change = Callable[[Rows, Random], str | None]


def _files(folder: Path, name: str) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(name))


def _rows(name: str, file: str, change: Change, every: bool = False) -> None:
    """Registers a change of the rows of one rank's file, or of every rank's."""

    def apply(folder: Path, draw: Random) -> str | None:
        files = _files(folder, file)
        done, name = None, ""
        for path in files if every else draw.sample(files, min(len(files), 1)):
            rows, name = load(path), path.name
            done = change(rows, draw) if len(rows) > 1 else None
            if done is not None:
                store(path, rows)
        return done and f"{name}: {done}"

    mutation(f"meaning.{name}", MEANING, whole=True)(apply)


def _scaled(heading: str, factor: float) -> Change:
    def change(rows: Rows, draw: Random) -> str | None:
        column = rows[0].index(heading) if heading in rows[0] else -1
        if column < 0 or not any(float(r[column] or 0) for r in rows[1:] if _NUMBER.fullmatch(r[column])):
            return None
        for row in rows[1:]:
            if _NUMBER.fullmatch(row[column]):
                row[column] = f"{float(row[column]) * factor:.6f}"
        return f"{heading} × {factor:g}"

    return change


def _shifted(heading: str, by: float) -> Change:
    def change(rows: Rows, draw: Random) -> str | None:
        if heading not in rows[0]:
            return None
        column = rows[0].index(heading)
        for row in rows[1:]:
            if _NUMBER.fullmatch(row[column]):
                whole, point, rest = row[column].strip().partition(".")
                row[column] = f"{int(whole) + int(by)}{point}{rest}"
        return f"{heading} + {by:g}"

    return change


def _exchanged(first: str, second: str) -> Change:
    def change(rows: Rows, draw: Random) -> str | None:
        if first not in rows[0] or second not in rows[0]:
            return None
        one, other = rows[0].index(first), rows[0].index(second)
        if all(row[one] == row[other] for row in rows[1:]):
            return None
        rows[0][one], rows[0][other] = second, first
        return f"{first} and {second} exchanged"

    return change


def _longer(rows: Rows, draw: Random) -> str | None:
    """All columns of times, as of a run three times as slow."""
    for row in rows[1:]:
        row[1:] = [f"{3 * float(cell):.3f}" if _NUMBER.fullmatch(cell) else cell for cell in row[1:]]
    return "all times × 3"


def _steps_twice(rows: Rows, draw: Random) -> str | None:
    """As many steps again, under further numbers."""
    column = rows[0].index("Step") if "Step" in rows[0] else -1
    if column < 0 or not all(row[column].isdigit() for row in rows[1:]):
        return None
    last = max(int(row[column]) for row in rows[1:])
    again = [list(row) for row in rows[1:]]
    for number, row in enumerate(again, last + 1):
        row[column] = str(number)
    rows.extend(again)
    return f"{len(again)} further steps"


def _rows_twice(rows: Rows, draw: Random) -> str | None:
    rows.extend([list(row) for row in rows[1:]])
    return "all rows twice"


def _other_rank(name: str, file: str) -> None:
    """Registers the exchange of two ranks' files."""

    def apply(folder: Path, draw: Random) -> str | None:
        files = _files(folder, file)
        if len(files) < 2:
            return None
        one, other = draw.sample(files, 2)
        first, second = one.read_bytes(), other.read_bytes()
        if first == second:
            return None
        replace_file(one, second)
        replace_file(other, first)
        return f"{file} of {one.parent.parent.name} and {other.parent.parent.name} exchanged"

    mutation(f"meaning.{name}", MEANING, whole=True)(apply)


def _document(name: str, file: str, key: str, factor: float, add: float = 0.0) -> None:
    """Registers a change of all numbers under a key of one rank's JSON."""

    def apply(folder: Path, draw: Random) -> str | None:
        files = _files(folder, file)
        if not files:
            return None
        path = draw.choice(files)
        document = json.loads(path.read_text(encoding="utf-8"))
        count = _change(document, key, factor, add)
        if not count:
            return None
        replace_file(path, json.dumps(document).encode())
        return f"{file}: {key} × {factor:g} + {add:g} in {count} places"

    mutation(f"meaning.{name}", MEANING, whole=True)(apply)


def _change(value: Any, key: str, factor: float, add: float) -> int:
    if isinstance(value, list):
        return sum(_change(item, key, factor, add) for item in value)
    if not isinstance(value, dict):
        return 0
    count = 0
    for name, item in value.items():
        if name != key:
            count += _change(item, key, factor, add)
        elif isinstance(item, (int, float)) and not isinstance(item, bool) and item * factor + add != item:
            value[name] = item * factor + add
            count += 1
        elif isinstance(item, list) and item and all(isinstance(each, (int, float)) for each in item):
            value[name] = [each * factor + add for each in item]
            count += 1
    return count


def _other_steps(folder: Path, draw: Random) -> str | None:
    """The communication of steps that nothing else of the rank has."""
    files = _files(folder, COLLECTIVES)
    if not files:
        return None
    path, by = draw.choice(files), draw.randrange(100, 1000)
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or not any(re.search(r"\d", name) for name in document):
        return None
    later = {re.sub(r"\d+", lambda at: str(int(at[0]) + by), name): steps for name, steps in document.items()}
    replace_file(path, json.dumps(later).encode())
    return f"{COLLECTIVES}: its steps {by} later"


mutation("meaning.communication_of_other_steps", MEANING, whole=True)(_other_steps)
EXPOSED, FREE = "Communication(Not Overlapped)", "Free"
_rows("exposed_unit", STEPS, _scaled(EXPOSED, 1000))
_rows("exposed_unit_everywhere", STEPS, _scaled(EXPOSED, 1000), every=True)
_rows("computing_unit", STEPS, _scaled("Computing", 1000))
_rows("computing_unit_everywhere", STEPS, _scaled("Computing", 0.001), every=True)
_rows("free_unit", STEPS, _scaled(FREE, 1000))
_rows("free_unit_everywhere", STEPS, _scaled(FREE, 1000), every=True)
_rows("overlapped_unit_everywhere", STEPS, _scaled("Overlapped", 1000), every=True)
_rows("preparing_unit", STEPS, _scaled("Preparing", 1000))
_rows("computing_and_exposed_exchanged", STEPS, _exchanged("Computing", EXPOSED), every=True)
_rows("computing_and_free_exchanged", STEPS, _exchanged("Computing", FREE))
_rows("exposed_and_overlapped_exchanged", STEPS, _exchanged(EXPOSED, "Overlapped"), every=True)
_rows("slower_run_among_others", STEPS, _longer)
_rows("twice_the_steps", STEPS, _steps_twice)
_rows("step_rows_twice", STEPS, _rows_twice)
_rows("duration_unit", KERNELS, _scaled("Duration(us)", 1000))
_rows("duration_unit_everywhere", KERNELS, _scaled("Duration(us)", 0.001), every=True)
_rows("start_unit", KERNELS, _scaled("Start Time(us)", 0.001))
_rows("kernel_clock", KERNELS, _shifted("Start Time(us)", DAY_US))
_rows("wait_unit", KERNELS, _scaled("Wait Time(us)", 1000), every=True)
_rows("ratio_in_percent", KERNELS, _scaled("aic_mac_ratio", 100), every=True)
_rows("kernel_rows_twice", KERNELS, _rows_twice)
_rows("statistic_unit", STATISTIC, _scaled("Total Time(us)", 1000), every=True)
_rows("statistic_total_and_average_exchanged", STATISTIC, _exchanged("Total Time(us)", "Avg Time(us)"), every=True)
_rows("interval_unit", "detail_time.csv", _scaled("iteration_interval", 1000))
_rows("queue_use_in_percent", "minddata_pipeline_raw_0.csv", _scaled("output_queue_usage_rate", 100))
_rows("queue_fill_above_capacity", "minddata_pipeline_raw_0.csv", _scaled("output_queue_average_size", 100))
_rows("host_api_unit", "api_statistic.csv", _scaled("Time(us)", 1000), every=True)
_rows("memory_unit", "memory_record.csv", _scaled("Total Allocated(MB)", 1024), every=True)
_other_rank("step_tables_exchanged", STEPS)
_other_rank("kernel_tables_exchanged", KERNELS)
_other_rank("statistics_exchanged", STATISTIC)
_other_rank("collectives_exchanged", COLLECTIVES)
_other_rank("links_exchanged", MATRIX)
_document("elapse_unit", COLLECTIVES, "Elapse Time(ms)", 1000)
_document("transit_unit", COLLECTIVES, "Transit Time(ms)", 1000)
_document("waiting_unit", COLLECTIVES, "Wait Time(ms)", 1000)
_document("size_unit", COLLECTIVES, "Transit Size(MB)", 1_000_000)
_document("collective_clock", COLLECTIVES, "Start Timestamp(us)", 1, DAY_US)
_document("link_time_unit", MATRIX, "Transit Time(ms)", 0.001)
_document("link_size_unit", MATRIX, "Transit Size(MB)", 1000)
_document("event_duration_unit", "trace_view.json", "dur", 1000)
_document("processor_use_in_thousandths", "minddata_cpu_utilization_0.json", "user_utilization", 10)
_document("queue_samples_above_capacity", "pipeline_profiling_0.json", "size", 100)
