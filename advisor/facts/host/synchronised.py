"""Idle time behind a synchronisation: the host had run ahead until it asked for a result, so that nothing is queued."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Ints
from advisor.basics.intervals import Intervals, covered_in, union
from advisor.facts.device.kernel_time import sums
from advisor.sources.streams.trace import COPIES_BACK, SYNCHRONISES, Trace

NOTHING = np.zeros(0, np.int64)


def synchronised_us(
    trace: Trace, start: np.ndarray, end: np.ndarray, step: np.ndarray, steps: int, most_us: float
) -> Floats:
    """Microseconds of each step's idle stretches up to `most_us` that hold the end of such a call, and of longer ones
    the parts between results.

    The host was ahead of the device until it asked for a result, and what it needs to launch again the device idles.
    Where it asks again at once, the next stretch opens before the call. A copy that it waits for is such a call where
    it began while the device still worked; else it copies what the device is to work on. A host that launches too
    slowly finds the device idle as well; then most launches are late. In a longer stretch it does something else, which
    has owners of its own, unless it asks for one result after the other.
    """
    ended = _returns(trace, start)
    length = (end - start) / 1000
    opened = (np.searchsorted(ended, end, "right") > np.searchsorted(ended, start, "left")) & (length <= most_us)
    parts = between_results(trace, start, end, most_us)
    between = covered_in(parts, start, end) / 1000
    return sums(step, np.where(opened, length, between), steps)


def between_results(trace: Trace, start: Ints, end: Ints, most_us: float) -> Intervals:
    """The parts of idle stretches longer than `most_us` in which the host asks for one result after the other: from one
    such return to the next, where it does nothing else for longer than that."""
    ended = _returns(trace, start)
    first, past = np.searchsorted(ended, start, "left"), np.searchsorted(ended, end, "right")
    several = np.flatnonzero((past - first > 1) & (end - start > 1000 * most_us)).tolist()
    bounds = [np.concatenate(([start[at]], ended[first[at] : past[at]], [end[at]])) for at in several]
    low = np.concatenate([NOTHING, *(one[:-1] for one in bounds)])
    high = np.concatenate([NOTHING, *(one[1:] for one in bounds)])
    short = high - low <= 1000 * most_us
    return union(low[short], high[short])


def _returns(trace: Trace, start: Ints) -> Ints:
    """When calls end in which the host waited for a result."""
    host = trace.host
    waits = np.array([bool(SYNCHRONISES.search(name)) for name in host.names], bool)[host.name]
    copies = np.flatnonzero(np.array([bool(COPIES_BACK.search(name)) for name in host.names], bool)[host.name])
    if start.size:
        opens = start[np.clip(np.searchsorted(start, host.end[copies], "right") - 1, 0, None)]
        copies = copies[host.start[copies] < opens]
    return np.sort(np.concatenate((host.end[waits], host.end[copies])))
