"""Pauses of the training loop: batches after which its own part, not the wait for data, takes far longer than usual."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.facts.step.apart import pattern_of, split
from advisor.knowledge.measuring import limit

LEAST = limit("pauses", "least")
"""A pause lasts this many times as long as the loop's usual own part."""
RESOLVED_US = limit("pauses", "resolved_us")
"""The host writes whole milliseconds: a shorter pause may be nothing but rounding."""


class Pauses(Struct, frozen=True):
    """The pauses of one rank's loop; microseconds."""

    count: int
    extra_us: float
    """How much longer than usual the loop's own part takes in each, on average."""
    cost_us: float
    """What they cost, per batch of the recording."""
    share: float
    """The same as a share of the loop's time."""
    period: int | None
    """Every how many batches one comes, where that is regular."""


def find_pauses(intervals: Floats, waits: Floats) -> Pauses | None:
    """The pauses among batches: `intervals` from batch to batch and the wait for data within each, microseconds; None
    where the loop's own part forms one group, or where a time is unknown."""
    if len(intervals) != len(waits) or not np.isfinite(intervals).all():
        return None
    own = np.maximum(intervals - np.nan_to_num(waits), 0.0)
    slow = split(own)
    if slow is None:
        return None
    usual = float(np.median(own[~slow]))
    extra = own[slow] - usual
    shape, _, period = pattern_of(slow)
    if float(extra.min()) < max(LEAST * usual, RESOLVED_US) or shape == "until":
        return None
    total = float(extra.sum())
    return Pauses(len(extra), total / len(extra), total / len(own), total / float(intervals.sum()), period)
