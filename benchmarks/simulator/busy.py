"""When a device was busy, and with what."""

from __future__ import annotations

import numpy as np

from advisor.basics.intervals import Intervals, union
from benchmarks.simulator.physics import Op


def device_intervals(ops: list[Op]) -> tuple[Intervals, Intervals]:
    """Disjoint intervals of computation and of communication, nanoseconds."""

    def collect(communication: bool) -> Intervals:
        chosen = [op for op in ops if (op.joint is not None) == communication]
        start = np.array([round(op.start * 1000) for op in chosen], np.int64)
        end = np.array([round(op.end * 1000) for op in chosen], np.int64)
        return union(start, end)

    return collect(False), collect(True)
