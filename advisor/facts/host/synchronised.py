"""Idle time behind a synchronisation: the host had run ahead until it asked for a result, so that nothing is queued."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.device.kernel_time import sums
from advisor.sources.streams.trace import COPIES_BACK, SYNCHRONISES, Trace


def synchronised_us(
    trace: Trace, start: np.ndarray, end: np.ndarray, step: np.ndarray, steps: int, most_us: float
) -> Floats:
    """Microseconds of each step's idle stretches up to `most_us` that hold the end of such a call.

    The host was ahead of the device until it asked for a result, and what it needs to launch again the device idles.
    Where it asks again at once, the next stretch opens before the call. A copy that it waits for is such a call where
    it began while the device still worked; else it copies what the device is to work on. A host that launches too
    slowly finds the device idle as well; then most launches are late. In a longer stretch it does something else, which
    has owners of its own.
    """
    host = trace.host
    waits = np.array([bool(SYNCHRONISES.search(name)) for name in host.names], bool)[host.name]
    copies = np.flatnonzero(np.array([bool(COPIES_BACK.search(name)) for name in host.names], bool)[host.name])
    if start.size:
        opens = start[np.clip(np.searchsorted(start, host.end[copies], "right") - 1, 0, None)]
        copies = copies[host.start[copies] < opens]
    ended = np.sort(np.concatenate((host.end[waits], host.end[copies])))
    length = (end - start) / 1000
    opened = (np.searchsorted(ended, end, "right") > np.searchsorted(ended, start, "left")) & (length <= most_us)
    return sums(step[opened], length[opened], steps)
