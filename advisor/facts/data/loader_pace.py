"""Steps in which a loader that is behind sets the pace: whatever else is mended there, the loop then waits for it.

A loader with workers of its own asks for a batch as soon as there is room for one more. Where a loop waits for its
batch there is none left, and all that may be asked for is being loaded; so the next ones come when they come, however
fast the loop takes them. If the loop waits again within as many batches, the time between is the loader's alone.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.facts.base import Run
from advisor.facts.cluster.accounts import accounts
from advisor.facts.host.pace import AHEAD
from advisor.facts.host.timeline import IDLE, LONG_US
from advisor.knowledge.measuring import limit

IN_HAND = int(limit("loaders", "in_hand"))
"""Batches that are asked for ahead, at least."""


def pace_share(run: Run) -> float | None:
    """The part of the steps in which some rank's loader sets the pace; None where no timeline names such a loader."""
    balance, found = accounts(run), run.each(IDLE)
    told = [
        one for one in found.values() if one.loader_us is not None and any(AHEAD.search(g.host or "") for g in one.gaps)
    ]
    if balance is None or not told:
        return None
    paced: set[str] = set()
    for one in told:
        assert one.loader_us is not None
        paced.update(step for step, is_paced in zip(one.steps, paced_by(one.loader_us), strict=True) if is_paced)
    return len(paced & set(balance.steps)) / len(balance.steps)


def paced_by(waits_us: Floats) -> Mask:
    """The steps from one wait for the loader to the next, where these are near enough; one wait a step, microseconds,
    NaN where it is not known."""
    paced = np.zeros(len(waits_us), bool)
    waiting = np.flatnonzero(np.nan_to_num(waits_us) >= LONG_US)
    for this, following in pairwise(waiting.tolist()):
        if following - this <= IN_HAND:
            paced[this:following] = True
    return paced
