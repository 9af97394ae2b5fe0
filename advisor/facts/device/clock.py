"""The clock of the AI Core, and whether kernels felt it: the same kernel takes longer where the clock that limits it is
lower."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Ints
from advisor.basics.intervals import Intervals, covered_in
from advisor.facts.device.kernel_time import Timeline
from advisor.knowledge.measuring import limit
from advisor.sources.streams.trace import Trace


def clock_of(trace: Trace, running: Intervals) -> tuple[float, float, float] | None:
    """(5th percentile, highest, mean) weighted by the time in which kernels ran: an idle clock is no slow one."""
    time, mhz = trace.frequency
    if not mhz.size or not running[0].size:
        return None
    until = np.append(time[1:], max(int(running[1][-1]), int(time[-1])))
    weight = covered_in(running, time, until).astype(float)
    held, weight = mhz[weight > 0], weight[weight > 0]
    if not held.size:
        return None
    order = np.argsort(held)
    share = np.cumsum(weight[order]) / weight.sum()
    low = float(held[order][int(np.searchsorted(share, 0.05))])
    return low, float(held.max()), float(np.average(held, weights=weight))


def felt_drop(trace: Trace, timeline: Timeline) -> float | None:
    """Part of the time of computing kernels that lower clocks added: each against the median, at the highest clock, of
    the kernels of its type and shapes at the same place of their steps. None where too little of that time is in
    kernels that ran at both."""
    time, mhz = trace.frequency
    kernels = timeline.kernels
    at = np.flatnonzero((kernels.start >= 0) & ~timeline.communication & kernels.shaped())
    if not mhz.size or not at.size:
        return None
    at = at[kernels.start[at] >= time[0]]
    clock = mhz[np.searchsorted(time, kernels.start[at], "right") - 1]
    full = clock >= (1 - limit("clock", "same")) * mhz.max()
    duration = kernels.duration[at]
    place = _places(timeline, at)
    size = int(place.max(initial=-1)) + 1
    seen = np.bincount(place[full], minlength=size)
    order = np.lexsort((duration[full], place[full]))
    middle = np.minimum(np.cumsum(seen) - seen + seen // 2, max(order.size - 1, 0))
    usual = np.where(seen > 0, duration[full][order][middle], np.nan) if order.size else np.full(size, np.nan)
    told = ~full & np.isfinite(usual[place])
    if not told.any() or duration[told].sum() < limit("clock", "told_share") * duration[~full].sum():
        return None
    rest = float(duration[full].sum())
    return max(1 - (float(usual[place][told].sum()) + rest) / (float(duration[told].sum()) + rest), 0.0)


def _places(timeline: Timeline, at: Ints) -> Ints:
    """A number for each of these kernels: the same for those of one type and shapes that are the nth such in a step."""
    signature, window = timeline.kernels.signature[at].astype(np.int64), timeline.windows.of[at].astype(np.int64)
    order = np.lexsort((timeline.kernels.start[at], window, signature))
    fresh = np.ones(at.size, bool)
    fresh[1:] = (np.diff(signature[order]) != 0) | (np.diff(window[order]) != 0)
    position = np.arange(at.size)
    nth = np.empty(at.size, np.int64)
    nth[order] = position - np.maximum.accumulate(np.where(fresh, position, 0))
    number: Ints = np.unique(signature * (int(nth.max(initial=0)) + 1) + nth, return_inverse=True)[1]
    return number
