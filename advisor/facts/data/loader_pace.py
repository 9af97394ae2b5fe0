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
from advisor.facts.data.getnext import GET_NEXT, HEAVY, GetNext
from advisor.facts.host.pace import AHEAD, slow_hosts
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


def held_share(run: Run) -> float | None:
    """The part of the steps in which other repairs only lengthen the wait for a loader that is behind; None where no
    timeline names one that fetches ahead, and no kernels tell the device's fetches. What a rank waits for a host that
    is slow throughout is none of it."""
    told = [_by_fetches(found) for found in run.each(GET_NEXT).values()]
    by_loop = _held_by_loop(run)
    held = [share for share in (*told, by_loop) if share is not None]
    return max(held) if held else None


def _by_fetches(found: GetNext) -> float | None:
    """The same of batches that are sunk: the device's queue is a server, too, and what waits in a fetch found it empty.
    None where nobody knows when fetches began and ended."""
    if found.starts_us is None or found.ends_us is None or len(found.starts_us) < 2:
        return None
    cold = found.cold
    waits = (found.ends_us - found.starts_us)[cold:] * (1 - (found.overlap or 0.0))
    return held_by(waits, max(HEAVY * float(np.median(np.diff(found.starts_us[cold:]))), LONG_US))


def _held_by_loop(run: Run) -> float | None:
    balance, slow = accounts(run), slow_hosts(run)
    ahead = {
        rank: one.loader_us
        for rank, one in run.each(IDLE).items()
        if one.loader_us is not None and one.fetches_ahead and rank not in slow
    }  # fmt: skip
    if balance is None or not ahead:
        return None
    held = [held_by(waits, max(HEAVY * balance.step_us, LONG_US)) for waits in ahead.values()]
    return max(held)


def held_by(waits_us: Floats, least_us: float) -> float:
    """What part of the steps waits of `least_us` and more take back; one wait a step, microseconds, NaN where it is not
    known: such a step is like the others. Each batch was asked for when the loop took the one so many before it, also
    where that lies before the recording, and comes no sooner for what was gained since. A loop that waits once, and
    before or afterwards takes more batches at once than were in hand, met an accident: its loader keeps up."""
    waiting = np.flatnonzero(np.nan_to_num(waits_us) >= least_us)
    told = np.flatnonzero(np.isfinite(waits_us))
    if not waiting.size or (waiting.size == 1 and np.abs(told - waiting[0]).max() > IN_HAND):
        return 0.0
    first = IN_HAND if waiting[0] else 1  # a recording may begin with the run, which has nothing in hand yet
    return min((first + float(np.minimum(np.diff(waiting), IN_HAND).sum())) / told.size, 1.0)
