"""What ran when in a typical and in the slowest step, coarse enough to draw.

Kernels are read once more, of the one or two ranks that are drawn only, and only where that takes a moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.basics.intervals import Intervals, clip, complement, subtract, union
from advisor.facts.base import Run
from advisor.facts.device.kernel_time import busy, timeline_of
from advisor.facts.step.steps import steady
from advisor.sources.base import Rank

LARGEST_BYTES = 64_000_000
"""Kernel files above this are not read a second time for a picture."""
RESOLUTION = 1000
"""A pause shorter than this part of the step cannot be seen at the width of a page."""
SPANS_DRAWN = 400


def timelines(run: Run) -> list[dict[str, Any]]:
    """The step nearest to the median of all ranks and steps, and the slowest one where it is another. `step_us` is
    the step's length in the tables; what is drawn runs from its first kernel to its last."""
    times = steady(run)
    every = [(float(us), rank, step) for rank, t in times.items() for us, step in zip(t.time, t.steps, strict=True)]
    if not every:
        return []
    middle = float(np.median([us for us, _, _ in every]))
    typical = min(every, key=lambda entry: (abs(entry[0] - middle), entry[1], entry[2]))
    worst = max(every, key=lambda entry: (entry[0], -entry[1]))
    chosen = [("typical", typical)] + ([("worst", worst)] if worst[0] > typical[0] else [])
    by_number = {rank.rank: rank for rank in run.ranks}
    drawn: list[dict[str, Any]] = []
    for which, (us, rank, step) in chosen:
        if rank in by_number and (lanes := _lanes(by_number[rank], step)) is not None:
            duration, spans = lanes
            entry = {"step": step, "rank": rank, "which": which if len(every) > 1 else "one"}
            drawn.append({**entry, "step_us": us, "duration_us": duration, "lanes": spans})
    if len(drawn) > 1 and drawn[1]["duration_us"] < drawn[0]["duration_us"]:
        return [{**drawn[1], "which": "one"}]  # kernels and step table disagree about which of the two is longer
    return drawn


def _lanes(rank: Rank, step: str) -> tuple[float, list[dict[str, Any]]] | None:
    """(duration in microseconds, lanes) of one step of one rank; None where its kernels cannot tell."""
    if not rank.has("kernels") or _size(rank) > LARGEST_BYTES:
        return None
    timeline = timeline_of(rank)
    if timeline is None or not timeline.whole or not (timeline.kernels.start >= 0).any():
        return None
    windows = timeline.windows
    if step in windows.names:
        index = windows.names.index(step)
    elif len(windows.names) == 1:
        index = 0
    else:
        return None
    low, high = int(windows.start[index]), int(windows.end[index])
    if high <= low:
        return None
    computing = clip(busy(timeline, ~timeline.communication), low, high)
    communication = clip(busy(timeline, timeline.communication), low, high)
    exposed = subtract(communication, computing)
    idle = complement(union(*_both(computing, communication)), low, high)
    lanes = (("computing", computing), ("exposed_communication", exposed), ("idle", idle))
    spans = [{"name": name, "spans": _coarse(intervals, low, high)} for name, intervals in lanes]
    return (high - low) / 1000, [lane for lane in spans if lane["spans"]]


def _both(a: Intervals, b: Intervals) -> Intervals:
    return np.concatenate((a[0], b[0])), np.concatenate((a[1], b[1]))


def _coarse(intervals: Intervals, low: int, high: int) -> list[list[float]]:
    """[start, length] in microseconds from the step's start: pauses too short to see are closed, pieces too short to
    see left out, until few enough remain."""
    shortest = (high - low) / RESOLUTION
    while True:
        start, end = union(intervals[0], intervals[1] + int(shortest))
        end = np.maximum(end - int(shortest), start)
        keep = end - start >= shortest / 2
        if keep.sum() <= SPANS_DRAWN:
            break
        shortest *= 2
    return [
        [round((int(a) - low) / 1000, 1), round((int(b) - int(a)) / 1000, 1)]
        for a, b in zip(start[keep], end[keep], strict=True)
    ]


def _size(rank: Rank) -> int:
    try:
        return sum(path.stat().st_size for path in rank.tables["kernels"].paths)
    except OSError:
        return LARGEST_BYTES + 1
