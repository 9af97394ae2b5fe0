"""Calls that ask for device memory or free it, on the time axis: in which steps they are, and what they hold up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import Intervals, covered_in, union
from advisor.facts.device.kernel_time import Timeline, sums
from advisor.sources.streams.trace import Trace


@dataclass(frozen=True)
class MemoryCalls:
    """One rank's calls by step."""

    asking: tuple[str, ...]
    """The steps in which the host makes such calls."""
    steps: tuple[str, ...]
    """The steps of the device, of which the figures below are; microseconds."""
    held_us: Floats
    """How long the device computes nothing meanwhile: to free memory the host waits for all streams, also for a
    collective that would have run beside the computation."""
    idle_us: Floats
    """How long it runs nothing at all meanwhile."""

    def among(self, names: tuple[str, ...]) -> tuple[int, float, float] | None:
        """(Steps with such calls, held up and idle on average) of these steps; None where it has none of them."""
        chosen = np.isin(self.steps, names)
        if not chosen.any():
            return None
        return len({*self.asking} & {*names}), float(self.held_us[chosen].mean()), float(self.idle_us[chosen].mean())


def memory_calls(trace: Trace, timeline: Timeline, start: Ints, length: Ints, counted: float) -> MemoryCalls | None:
    """Of calls at `start` that take `length`, nanoseconds; None where these are fewer than the `counted` ones."""
    windows = timeline.windows
    names, begin = windows.names, windows.start
    if trace.steps:
        names, begin = tuple(name for name, _, _ in trace.steps), np.array([first for _, first, _ in trace.steps])
    inside = (start >= begin[0]) & (start < windows.end.max())
    if not inside.any() or int(inside.sum()) < round(counted):
        return None
    of = np.unique(np.searchsorted(begin, start[inside], side="right") - 1)
    calls = union(start[inside], start[inside] + length[inside])
    kernels = timeline.kernels
    known = kernels.start >= 0
    computing = known & ~timeline.communication
    held, idle = (_beside(calls, kernels.start[busy], kernels.end[busy], timeline) for busy in (computing, known))
    return MemoryCalls(tuple(names[i] for i in of.tolist()), windows.names, held, idle)


def _beside(calls: Intervals, start: Ints, end: Ints, timeline: Timeline) -> Floats:
    """How long in each step the calls last while none of these kernels runs, between the first of them and the last."""
    windows, busy = timeline.windows, union(start, end)
    opens, closes = busy[1][:-1], busy[0][1:]
    within = covered_in(calls, opens, closes) / 1000
    step = np.clip(np.searchsorted(windows.start, opens, side="right") - 1, 0, len(windows.names) - 1)
    return sums(step, within, len(windows.names))
