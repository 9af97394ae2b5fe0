"""Communication after backward, as the older step trace tells it: every column `stream_*` is a collective."""

from __future__ import annotations

import re

import numpy as np

from advisor.basics.arrays import Floats
from advisor.basics.intervals import clip, measure, union
from advisor.sources.base import Rank

_BETWEEN_STAGES = re.compile(r"(?i)^(?:receive|send)")
"""They hand activations on and wait for other stages, which is a pipeline's bubble rather than exposed exchange."""


def exposed_in_tail(rank: Rank, steps: tuple[str, ...], backward_end_us: Floats, end_us: Floats) -> Floats | None:
    """Per step, microseconds of the tail in which a collective ran: backward, which could hide it, is over by then.
    None where the trace holds no collectives."""
    frame = rank.read("step_collectives") if rank.has("step_collectives") else None
    if frame is None or frame.empty:
        return None
    chosen = frame[~frame["name"].astype(str).str.contains(_BETWEEN_STAGES)]
    by_step = dict(iter(chosen.groupby("step")))
    found = np.full(len(steps), np.nan)
    for i, step in enumerate(steps):
        rows = by_step.get(step)
        if rows is None or not np.isfinite(backward_end_us[i]) or not np.isfinite(end_us[i]):
            continue
        start, end = (np.rint(rows[name].to_numpy(float) * 1000).astype(np.int64) for name in ("start_us", "end_us"))
        ran = clip(union(start, end), int(backward_end_us[i] * 1000), int(end_us[i] * 1000))
        found[i] = measure(ran) / 1000
    return found if np.isfinite(found).any() else None
