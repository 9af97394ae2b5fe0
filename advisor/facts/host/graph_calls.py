"""Idle time of the device between two calls of the graph, in which the host is in no call that the profiler knows: the
loop's own code (S04)."""

from __future__ import annotations

import re

import numpy as np

from advisor.basics.arrays import Floats
from advisor.basics.intervals import covered_in, union
from advisor.facts.device.kernel_time import sums
from advisor.sources.streams.trace import Trace

_GRAPH = re.compile(r"(^|::)RunGraph($|::)")
_BESIDE = re.compile(r"^Dataset::(?!Pipeline::|IteratorConsumer::)|ProfilerStep|^Python::PythonObserved")
"""Workers of the data pipeline run beside the loop, steps around it."""


def own_code_us(trace: Trace, start: np.ndarray, end: np.ndarray, step: np.ndarray, steps: int) -> Floats | None:
    """Microseconds of each step's idle stretches in which the loop was in no call; None without calls of a graph.
    NaN of the last step: the loop goes on behind its last kernel, and no kernel follows that would show for how long.

    PyNative and torch launch operators one by one, in calls too short to be kept: there silence shows nothing.
    """
    host = trace.host
    if not any(_GRAPH.search(name) for name in host.names):
        return None
    calls = np.array([not _BESIDE.search(name) for name in host.names], bool)[host.name]
    known = union(host.start[calls], host.end[calls])
    if not len(known[0]):
        return None
    inside = (start >= known[0][0]) & (end <= known[1][-1])  # before the first call and after the last nobody knows
    silent = (end - start) - covered_in(known, start, end)
    told = sums(step[inside], silent[inside] / 1000, steps)
    if steps > 1:
        told[-1] = np.nan
    return told
