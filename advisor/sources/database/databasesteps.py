"""Phases of a step from the tasks of a database that has no step table.

Computing is the union of compute tasks, communication that of communication operations, exposed what computing does
not cover, free the rest between the first and the last of them (as CANN's overlap analysis, but clipped to the step).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from advisor.sources.database.dbfile import Database, distinct_steps, step_query
from advisor.sources.database.sums import tasks_behind
from advisor.sources.reference import Note

if TYPE_CHECKING:
    from advisor.basics.intervals import Intervals


MOST_LOST = 0.02
"""Share of the compute tasks without a usable time up to which the rest still stands for all of them, where the longest
gaps, which they may have filled, are no larger share of the recording."""


def _usable(rows: Sequence[tuple[Any, Any]]) -> list[tuple[int, int]]:
    return [
        row for row in rows if isinstance(row[0], int) and isinstance(row[1], int) and 0 <= row[0] <= row[1] < 1 << 62
    ]


def _union(usable: Sequence[tuple[int, int]]) -> Intervals:
    import numpy as np

    from advisor.basics.intervals import EMPTY, union

    if not usable:
        return EMPTY
    times = np.array([(start, min(end, (1 << 62))) for start, end in usable], dtype=np.int64)
    return union(times[:, 0], times[:, 1])


def _busy(database: Database) -> tuple[Intervals, Intervals, int, int, int]:
    """(computing, communication) as disjoint intervals, compute tasks known of, those of them without a time, and
    communication operations without one."""
    task, info = database.name("TASK"), database.name("COMPUTE_TASK_INFO")
    computing = database.rows(
        f"SELECT startNs, endNs FROM {task} WHERE globalTaskId IN (SELECT globalTaskId FROM {info})"
    )
    communication = (
        database.rows(f"SELECT startNs, endNs FROM {database.name('COMMUNICATION_OP')}")
        if database.has("COMMUNICATION_OP", "startNs", "endNs")
        else []
    )
    known = database.rows(f"SELECT COUNT(DISTINCT globalTaskId) FROM {info}")[0][0]
    tasks = _usable(computing)
    known += tasks_behind(database.rows, database.tables["task"], max(tasks)[0]) if tasks else 0
    talks = _usable(communication)
    return _union(tasks), _union(talks), known, max(known - len(tasks), 0), len(communication) - len(talks)


def _lost_collectives(database: Database) -> int:
    """How many communication operations only the analysis of them knows; -1 where their table is a view."""
    if "communication_op" in map(str.lower, database.odd):
        return -1
    if not database.has("CommAnalyzerTime"):
        return 0
    known = database.rows(f"SELECT COUNT(*) FROM {database.name('CommAnalyzerTime')}")[0][0]
    there = database.has("COMMUNICATION_OP", "startNs", "endNs")
    found = database.rows(f"SELECT COUNT(*) FROM {database.name('COMMUNICATION_OP')}")[0][0] if there else 0
    return max(int(known) - int(found), 0)


def _windows(database: Database, first: int, last: int) -> list[tuple[str, int, int, int]]:
    """(step, start, end, when it began on the host): the host's step ranges as the device works them off, the last one
    open so that the device may finish it.

    Without a table of steps all is one step "0"; with one that cannot be used nobody knows the steps: no range.
    """
    query = step_query(database.tables.get("step_time", {}).values())
    rows = database.rows(query) if query else []
    usable = distinct_steps(
        [(str(n), s, e) for n, s, e in rows if isinstance(s, int) and isinstance(e, int) and 0 <= s < e]
    )
    if not usable:
        return [] if database.has("STEP_TIME") and database.holds_rows("step_time") else [("0", first, last, first)]
    begun = database.on_device(usable)
    starts = [min(first, begun[0][1]), *(row[1] for row in begun[1:])]
    ends = [*starts[1:], max(last, begun[-1][2])]
    marks = [min(start, mark) for start, (_, mark, _) in zip(starts, usable, strict=True)]
    return list(zip((name for name, *_ in usable), starts, ends, marks, strict=True))


def steps_of(database: Database, starts: Sequence[Any]) -> list[str | None]:
    """The step in whose window each start (ns) lies, "0" throughout where the database knows no steps."""
    usable = [start for start in starts if isinstance(start, int)]
    if not usable:
        return [None] * len(starts)
    windows = _windows(database, min(usable), max(usable) + 1)
    if not windows:
        return [None] * len(starts)
    begins = [low for _, low, *_ in windows]
    return [windows[max(0, bisect_right(begins, start) - 1)][0] if isinstance(start, int) else None for start in starts]


def steps_from_tasks(database: Database, note: Note) -> dict[str, list[Any]] | None:
    """Columns of the steps table in µs, None where there are no tasks; says that they were computed.

    Where many compute tasks have no time, what looks free may have been computing: only communication is told then.
    """
    from advisor.basics.intervals import clip, complement, longest_gaps, measure, subtract, union

    needed = database.has("TASK", "startNs", "endNs", "globalTaskId") and database.has(
        "COMPUTE_TASK_INFO", "globalTaskId"
    )
    if not needed:
        return None
    computing, communication, known, lost, silent = _busy(database)
    heard = not silent and not _lost_collectives(database)
    import numpy as np

    busy = union(*(np.concatenate(pair) for pair in zip(computing, communication, strict=True)))
    if not busy[0].size:
        return None
    first, last = int(busy[0][0]), int(busy[1][-1])
    filled = longest_gaps(busy, lost) if lost else 0
    whole = bool(computing[0].size) and lost <= MOST_LOST * known and filled <= MOST_LOST * (last - first)
    exposed = subtract(communication, computing)
    names = ("step", "computing_us", "exposed_us", "overlapped_us", "communication_us", "free_us", "preparing_us")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for step, low, high, mark in _windows(database, first, last):
        inside = clip(busy, low, high)
        if not inside[0].size:
            continue
        begin, end = int(inside[0][0]), int(inside[1][-1])
        parts = [measure(clip(part, low, high)) / 1e3 for part in (computing, exposed, communication)]
        free = measure(complement(inside, begin, end)) / 1e3
        preparing = (begin - mark) / 1e3 if database.has("STEP_TIME") else None
        row = (step, parts[0], parts[1], parts[2] - parts[1], parts[2], free, preparing)
        for name, value in zip(names, row, strict=True):
            told = {"step": True, "communication_us": heard, "computing_us": whole}.get(name, whole and heard)
            columns[name].append(value if told else None)
    if not columns["step"]:
        note(str(database.path), "its table of step times cannot be used; where its steps begin and end is unknown")
        return None
    if not heard:
        note(str(database.path), "has fewer communication operations than its analysis knows; how long the device "
                                 "communicated or was free is unknown")  # fmt: skip
    if lost:
        rest = "" if whole else "; how long the device computed or was free is therefore unknown"
        note(str(database.path), f"{lost} of {known} compute tasks have no usable time or no description{rest}")
    elif not whole:
        note(str(database.path), "holds no compute tasks; how long the device computed or was free is unknown")
    note(str(database.path), "has no table of step times; they were computed from tasks and communication operations")
    return columns
