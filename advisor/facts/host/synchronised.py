"""Idle time behind a synchronisation: the host had run ahead until it asked for a result, so that nothing is queued."""

from __future__ import annotations

import re

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.device.kernel_time import sums
from advisor.sources.streams.trace import Trace

SYNCHRONISES = re.compile(r"[Ss]ynchronize|SyncStream|WaitPipeline|StreamSync")
"""Calls of the host that return once the device has done what was queued."""


def synchronised_us(
    trace: Trace, start: np.ndarray, end: np.ndarray, step: np.ndarray, steps: int, most_us: float
) -> Floats:
    """Microseconds of each step's idle stretches up to `most_us` that open while such a call waits and hold its end.

    The host was ahead of the device then, and what it needs to launch again the device idles; a host that launches too
    slowly finds the device idle already. In a longer stretch it does something else, which has owners of its own.
    """
    host = trace.host
    waits = np.array([bool(SYNCHRONISES.search(name)) for name in host.names], bool)[host.name]
    order = np.argsort(host.start[waits], kind="stable")
    begun, ended = host.start[waits][order], host.end[waits][order]
    if not len(begun):
        return np.zeros(steps)
    last = np.searchsorted(begun, start, side="left") - 1
    until = ended[np.maximum(last, 0)]
    length = (end - start) / 1000
    opened = (last >= 0) & (until >= start) & (until <= end) & (length <= most_us)
    return sums(step[opened], length[opened], steps)
