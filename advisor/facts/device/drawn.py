"""Kernels of a recording of which its timeline alone tells: the device's tasks that it draws, in the form of a table.

Their names, durations, cores and streams are those of the table; shapes, types of data and counters are in none of
them, so that what needs these stays untold.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from advisor.basics.arrays import Ints
from advisor.basics.intervals import measure
from advisor.facts.device.kernel_time import Timeline, exchanging, timeline_of
from advisor.facts.recording.counts import type_in_name
from advisor.facts.recording.limits import section
from advisor.facts.recording.tasks_alone import tasks_alone
from advisor.facts.recording.windows import Placed, Windows
from advisor.facts.step.from_kernels import reduce as reduce_steps
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.hardware_lanes import Tasks
from advisor.sources.streams.kernel_blocks import SHARES
from advisor.sources.streams.kernels import Kernels, Signature
from advisor.sources.streams.rank_trace import device_tasks, load_trace

_TELL_OF_KERNELS = ("kernels", "operator_types", "operators")
"""Tables that tell of kernels: what a timeline draws is asked for where there is none."""


def drawn_alone(sources: Iterable[Source]) -> bool:
    """Whether what rests on these was told by a timeline alone: no table of steps or kernels, no shapes."""
    return all(source.table == "trace" for source in sources)


def work_of(rank: Rank) -> Timeline | None:
    """The rank's kernels on the time axis, by their table or as the timeline draws them; None where neither tells."""
    if any(map(rank.has, _TELL_OF_KERNELS)):
        return timeline_of(rank)
    return rank.once(work_of, lambda: _drawn(rank))


def work_source(rank: Rank, *columns: str, steps: tuple[str, ...] = ()) -> Source:
    """Where `work_of` was read: these columns of a table of kernels, or what a timeline has for them."""
    if rank.has("kernels"):
        return rank.source("kernels", *columns, steps=steps)
    return rank.source("trace", "name", "start_us", "duration_us", steps=steps)


def _drawn(rank: Rank) -> Timeline | None:
    trace = load_trace(rank)
    if trace is None or not trace.hardware:
        return None
    told, alone, tasks = _steps(rank), tasks_alone(rank), device_tasks(rank)
    if told is None or tasks is None:
        return None
    least = 1 - section("witness")["computing_share"]
    if measure(tasks.lanes[0]) < least * measure(trace.computing):
        return None  # the profiler's own sum in the same timeline knows of more: tasks were left out
    names, first, last = told
    step = np.searchsorted(first, tasks.start, side="right") - 1
    inside = (step >= 0) & (tasks.start < last[step])
    windows = Windows(names, first, last, step[inside])
    kernels = replace(_as_kernels(tasks).within(inside), step=windows.of, steps=list(names))
    if not len(kernels):
        return None
    if alone is not None:
        placed = Placed(windows, inside, "", alone.steady, alone.set_up_ns)
        return Timeline(kernels, exchanging(kernels), windows, alone.steady.idle_told, placed=placed)
    marks = "trace" if trace.steps else "iterations" if trace.iterations else ""
    return Timeline(kernels, exchanging(kernels), windows, placed=Placed(windows, inside, marks))


def _steps(rank: Rank) -> tuple[tuple[str, ...], Ints, Ints] | None:
    """(names, first and last instants in nanoseconds) of the steps; of a recording without, what is judged of it."""
    if (alone := tasks_alone(rank)) is not None:
        return ("0",), alone.start[:1], alone.end.max(keepdims=True)
    found = reduce_steps(rank)
    if found is None or not found.steps:
        return None
    first, last = (np.array([getattr(one, at) for one in found.steps], np.int64) for at in ("start_ns", "end_ns"))
    return tuple(one.step for one in found.steps), first, last


def _as_kernels(tasks: Tasks) -> Kernels:
    types = [*map(type_in_name, tasks.names)]
    index: dict[str, int] = {}
    of_name = np.array([index.setdefault(each, len(index)) for each in types], np.int64)
    pairs, signature = np.unique(of_name[tasks.name] * len(tasks.cores) + tasks.core, return_inverse=True)
    kinds, nothing = [*index], np.full(tasks.start.size, np.nan)
    signatures = [
        Signature(kinds[pair // len(tasks.cores)], tasks.cores[pair % len(tasks.cores)], *[""] * 6)
        for pair in pairs.tolist()
    ]
    unknown = {share: np.zeros(len(signatures)) for share in SHARES}
    return Kernels(
        tasks.start, tasks.end, (tasks.end - tasks.start) / 1000, signature, tasks.name, np.zeros_like(tasks.name),
        tasks.stream, nothing, nothing, signatures, tasks.names, [""], tasks.streams, unknown, unknown,
    )  # fmt: skip
