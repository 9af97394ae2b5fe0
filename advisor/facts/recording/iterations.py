"""Executions of graphs as msprof marks them: in its table of iterations, or above the tasks in its timeline.

Every graph counts its own executions. Graphs that take turns in a fixed order are one step together; of graphs that run
one after the other each is a loop of its own, and the one that takes most time is judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Ints
from advisor.facts.recording.steady import find_repetition
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace


class Graph(Struct, frozen=True):
    """A graph whose executions are no part of the judged steps."""

    name: str
    executions: int
    mean_us: float


class Iterations(Struct, frozen=True):
    """The judged executions in order of start, nanoseconds, and the graphs that ran beside them. Each lasts until the
    next one starts, unless another graph ran before that."""

    names: tuple[str, ...]
    start: Ints
    end: Ints
    took: Ints
    """How long each ran itself, nanoseconds."""
    others: tuple[Graph, ...] = ()


def iterations_of(rank: Rank) -> Iterations | None:
    """The rank's executions of graphs; None where nothing marks them."""
    return rank.once(iterations_of, lambda: _judged(_from_table(rank) or _from_trace(rank)))


_Mark = tuple[str, str, int, int]
"""(graph, iteration, start, end)"""


def _from_table(rank: Rank) -> list[_Mark]:
    frame: Any = rank.read("iterations") if rank.has("iterations") else None
    if frame is None or frame.empty:
        return []
    known = frame["end_ns"].notna() & (frame["time_us"] > 0)
    found = []
    for graph, iteration, end, time in zip(
        *(frame[column][known] for column in ("graph", "iteration", "end_ns", "time_us")), strict=True
    ):
        found.append((str(graph), str(iteration), int(end) - round(float(time) * 1000), int(end)))
    return sorted(set(found), key=lambda mark: mark[2:])


def _from_trace(rank: Rank) -> list[_Mark]:
    trace = load_trace(rank)
    return [] if trace is None else trace.iterations


def _judged(marks: list[_Mark]) -> Iterations | None:
    if not marks:
        return None
    index = {name: place for place, name in enumerate(dict.fromkeys(graph for graph, *_ in marks))}
    graph = np.array([index[name] for name, *_ in marks], np.int64)
    start, end = (np.array([mark[place] for mark in marks], np.int64) for place in (2, 3))
    if len(index) > 1 and (cycle := find_repetition(graph, end - start)) is not None and cycle.length > 1:
        first = np.arange(cycle.first, cycle.last - cycle.length + 1, cycle.length)
        if len(np.unique(graph[cycle.first : cycle.first + cycle.length])) > 1:
            last = int(end[cycle.first : cycle.last].max())
            names = tuple(str(number) for number in range(1, len(first) + 1))
            length = np.append(0, np.cumsum(end - start))
            took_each = length[first + cycle.length] - length[first]
            return Iterations(names, start[first], np.append(start[first[1:]], last), took_each)
    took = np.bincount(graph, end - start)
    mine = graph == int(took.argmax())
    others = tuple(
        Graph(name, int((graph == place).sum()), float(took[place]) / 1000 / int((graph == place).sum()))
        for name, place in index.items()
        if place != int(took.argmax())
    )
    own = (end - start)[mine]
    followed = np.append(mine[1:], False)
    end = np.where(followed, np.append(start[1:], 0), end)
    names = tuple(mark[1] for mark, chosen in zip(marks, mine.tolist(), strict=True) if chosen)
    return Iterations(names, start[mine], end[mine], own, others)
