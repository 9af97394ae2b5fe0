"""What the stages of workers tell of a data pipeline that no other file describes (dataset.csv alone): how many workers
an operation has, and how long the operation behind it waits for it.

A worker takes a row (WorkerGet), works on it (WorkerProcess) and hands it on. While the loop waits for a batch, nothing
behind the operation that limits is full, so that this one's workers and those behind it are in one of the first two
stages all the time: workers × wait of the loop ≤ Σ WorkerGet + Σ WorkerProcess. When a pipeline ends, each worker takes
one row more than the operation was given, which ends it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

GET, PROCESS, GIVEN = "WorkerGet", "WorkerProcess", "GetFromPreviousOp"
_LOOP = (("IteratorConsumer", "GetNextAsVector"), ("Pipeline", "GetNext"))
_LAUNCH = ("Pipeline", "Launch")


class Attendance(Struct, frozen=True):
    """What is told of one operation."""

    workers: int | None
    awaited_us: float | None
    """How long the one thread that takes its rows to the workers of the operation behind it, or the one worker that
    takes them itself, waits for it, in all; None for the last operation, and where several take them."""
    input_wait_us: float | None
    """How long the thread that takes rows to its own workers waits for them, in all."""


def attendance(rows: Iterable[Mapping[str, Any]], ids: Mapping[str, int]) -> dict[int, Attendance]:
    """Operation id -> what is told of it. `rows` are the stages with their count and mean time in µs,
    `ids` the operations by their name there, numbered from the consumer to the source."""
    counts: dict[tuple[str, str], float] = defaultdict(float)
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        key = str(row["operation"]).strip(), str(row["stage"])
        counts[key] += row["count"]
        totals[key] += row["count"] * row["avg_us"]
    waits = next((totals[key] for key in _LOOP if totals.get(key)), 0.0)
    found: dict[int, Attendance] = {}
    starving, behind = True, None
    for name, number in sorted(ids.items(), key=lambda item: item[1]):
        got, worked = totals.get((name, GET), 0.0), totals.get((name, PROCESS), 0.0)
        given, taken = counts.get((name, GIVEN)), counts.get((name, GET), 0.0)
        # one is taken for each that was given: not where several rows make a batch, nor where the beginning is missing
        if given and _LAUNCH in counts and worked and taken > given:
            workers: int | None = round(taken - given)
        else:
            workers = 1 if starving and waits and worked and waits <= got + worked < 2 * waits else None
        waited = totals.get((name, GIVEN))
        found[number] = Attendance(workers, behind, waited)
        starving, behind = starving and got > worked, got if waited is None and workers == 1 else waited
    return found
