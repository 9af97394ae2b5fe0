"""Calls that ask for device memory or free it, on the time axis: in which steps they are, and what they hold up."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import Intervals, covered_in, union
from advisor.facts.device.kernel_time import Timeline, sums
from advisor.sources.streams.trace import Trace


class MemoryCalls(Struct, frozen=True):
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
    untold: tuple[str, ...] = ()
    """Steps all of whose calls lie before the first recorded kernel: nobody knows what the device did meanwhile."""

    def among(self, names: tuple[str, ...]) -> tuple[int, float, float] | None:
        """(Steps with such calls, held up and idle on average) of these steps; None where it has none of them."""
        chosen = np.isin(self.steps, names)
        if not chosen.any():
            return None
        # what a step asks for before its kernels lies behind those of the one before
        told = max(int(chosen.sum()) - len({*self.untold} & {*names}), 1)
        held, idle = (float(us[chosen].sum()) / told for us in (self.held_us, self.idle_us))
        return len({*self.asking} & {*names}), held, idle


def memory_calls(trace: Trace, timeline: Timeline, start: Ints, length: Ints, counted: float) -> MemoryCalls | None:
    """Of calls at `start` that take `length`, nanoseconds; None where these are fewer than the `counted` ones."""
    windows = timeline.windows
    names, begin = windows.names, windows.start
    if trace.steps:
        names, begin = tuple(name for name, _, _ in trace.steps), np.array([first for _, first, _ in trace.steps])
    until = recorded_until(trace, timeline)
    inside = (start >= begin[0]) & (start < until)
    if not inside.any() or int(inside.sum()) < round(counted):
        return None
    step = np.searchsorted(begin, start[inside], side="right") - 1
    of = np.unique(step)
    calls = union(start[inside], start[inside] + length[inside])
    kernels = timeline.kernels
    known = kernels.start >= 0
    computing = known & ~timeline.communication
    first = int(kernels.start[known].min()) if known.any() else until
    seen = np.unique(step[(start + length)[inside] > first])
    held, idle = (
        _beside(calls, union(kernels.start[busy], kernels.end[busy]), timeline, until) for busy in (computing, known)
    )
    untold = tuple(names[i] for i in np.setdiff1d(of, seen).tolist())
    return MemoryCalls(tuple(names[i] for i in of.tolist()), windows.names, held, idle, untold)


def recorded_until(trace: Trace | None, timeline: Timeline) -> int:
    """When the last step ends, nanoseconds: with its last kernel, or later by its mark on the host. What the host does
    behind the last kernel of each step, it does there as well."""
    windows = timeline.windows
    marks = [end for name, _, end in trace.steps if name == windows.names[-1]] if trace is not None else []
    return max([int(windows.end.max()), *marks])


def _beside(calls: Intervals, busy: Intervals, timeline: Timeline, until: int) -> Floats:
    """How long in each step the calls last while none of these kernels runs, from the first of them on."""
    windows = timeline.windows
    opens, closes = busy[1], np.append(busy[0], max(until, busy[1][-1:].max(initial=0)))[1:]
    within = covered_in(calls, opens, closes) / 1000
    step = np.clip(np.searchsorted(windows.start, opens, side="right") - 1, 0, len(windows.names) - 1)
    return sums(step, within, len(windows.names))
