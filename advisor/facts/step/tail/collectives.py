"""Communication as the older step trace tells it: every column `stream_*` is a collective, and what computes is told by
the end of backward alone."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.basics.intervals import clip, measure, union
from advisor.sources.base import Rank

_BETWEEN_STAGES = re.compile(r"(?i)^(?:receive|send)")
"""They hand activations on and wait for other stages, which is a pipeline's bubble rather than exposed exchange."""


class Collectives(Struct, frozen=True):
    """Communication of each step, microseconds; NaN where a step does not tell."""

    exposed: Floats
    """Collectives in the tail: backward, which could hide them, is over by then."""
    last: Floats
    """Of several that all start in the tail, the one that starts last."""
    unplaced: Floats
    """Communication before: nothing tells whether computation hides it."""
    ahead: Floats
    """Communication before the first computation of the step: the gap in front of that is no wait for data."""


def collectives_in_steps(
    rank: Rank, steps: tuple[str, ...], begin_us: Floats, forward_us: Floats, backward_end_us: Floats, end_us: Floats
) -> Collectives | None:
    """None where the trace holds no collectives. The steps' points in time are in microseconds, NaN where unknown."""
    frame = rank.read("step_collectives") if rank.has("step_collectives") else None
    if frame is None or frame.empty:
        return None
    by_step = dict(iter(frame.groupby("step")))
    exposed, last, unplaced, ahead = (np.full(len(steps), np.nan) for _ in range(4))
    for i, step in enumerate(steps):
        rows = by_step.get(step)
        if rows is None or not np.isfinite(backward_end_us[i]) or not np.isfinite(end_us[i]):
            continue
        start, end = (np.rint(rows[name].to_numpy(float) * 1000).astype(np.int64) for name in ("start_us", "end_us"))
        bounds = int(backward_end_us[i] * 1000), int(end_us[i] * 1000)
        talking = union(start, end)
        unplaced[i] = measure(clip(talking, int(start.min(initial=0)), bounds[0])) / 1000
        if np.isfinite(begin_us[i]) and np.isfinite(forward_us[i]):
            ahead[i] = measure(clip(talking, int(begin_us[i] * 1000), int(forward_us[i] * 1000))) / 1000
        within = ~rows["name"].astype(str).str.contains(_BETWEEN_STAGES).to_numpy(bool)
        if within.any():
            exposed[i] = measure(clip(union(start[within], end[within]), *bounds)) / 1000
        if within.sum() > 1 and start[within].min() >= bounds[0]:
            latest = np.argmax(np.where(within, start, 0))
            last[i] = (end[latest] - start[latest]) / 1000
    return Collectives(exposed, last, unplaced, ahead) if np.isfinite(unplaced).any() else None
