"""A recording of which a timeline alone tells, and no marks of steps.

The device's tasks in it are kernels like those of a table: what is set-up and what repeats shows in the same way.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints
from advisor.facts.recording.steady import Steady, find_steady
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import operator_name
from advisor.sources.streams.rank_trace import device_tasks, load_trace


class TasksAlone(Struct, frozen=True):
    """The tasks that are judged, in order of start, nanoseconds; `kind` are indices into `kinds`."""

    steady: Steady
    set_up_ns: int
    start: Ints
    end: Ints
    kind: Ints
    kinds: list[str]


def tasks_alone(rank: Rank) -> TasksAlone | None:
    """What is judged of an unmarked timeline; None where something marks steps or a table tells of kernels."""
    return rank.once(tasks_alone, lambda: _told(rank))


def _told(rank: Rank) -> TasksAlone | None:
    trace = load_trace(rank) if rank.has("trace") and not rank.has("kernels") else None
    if trace is None or not trace.hardware or trace.steps or trace.iterations:
        return None
    tasks = device_tasks(rank)
    if tasks is None or not tasks.start.size:
        return None
    index: dict[str, int] = {}
    of_name = np.array([index.setdefault(operator_name(name), len(index)) for name in tasks.names], np.int64)
    kind = of_name[tasks.name]
    steady = find_steady(kind, tasks.start, tasks.end, ~tasks.talks)
    judged = slice(steady.first, steady.last)
    start, end = tasks.start[judged], tasks.end[judged]
    return TasksAlone(steady, int(start[0] - tasks.start[0]), start, end, kind[judged], list(index))
