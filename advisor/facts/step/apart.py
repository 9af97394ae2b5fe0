"""Times that lie apart from the others: which of many are slow, and in which pattern they come.

They fall into two groups where a gap far wider than the spread of the faster ones separates them.
"""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Mask
from advisor.knowledge.measuring import limit

FEWEST = int(limit("slow_steps", "fewest"))
"""Fewer steps do not show which of them are usual, unless the slow ones are far off."""
FEW = int(limit("slow_steps", "few"))
"""Fewer than these show nothing at all, unless it is seen what makes one of them slow."""
FEW_SEEN = int(limit("slow_steps", "few_seen"))
"""Then so many do."""
FAR = limit("slow_steps", "far")
"""How many times as long as the usual ones the slow steps of a short recording take."""
APART = limit("slow_steps", "apart")
"""Robust standard deviations of the usual steps that lie between them and the slow ones."""
FLOOR = limit("slow_steps", "floor")
"""Steps of the quietest run differ by this share."""
LONELY = limit("slow_steps", "lonely")
"""Slow steps must lie farther from the usual ones than these from each other. Fewer of either show less: up to this
many slow ones, and among few usual ones, the distance must be a multiple of that. Of runs of eight steps that vary by
normal noise of 5 %, one in twenty-five has slow steps that cost 3 % then, of twenty steps one in a thousand."""
MOST_SLOW = limit("slow_steps", "most_slow")
"""Where more of the steps are slow, the few fast ones are the exception that wants explaining."""
MOST_SCATTERED = limit("slow_steps", "most_scattered")
"""The same of steps that come now and then: the usual ones are the many, unless the run changed once."""
TOLERATED = limit("slow_steps", "tolerated")
"""Share of the steps from a change on that may be as fast as before."""


def split(times: Floats, *, seen: bool = False) -> Mask | None:
    """Which steps are slow; None where they form one group. Where what makes them slow is `seen`, a few steps may show
    it, more than half of them may be slow, and by different amounts: the widest gap parts them."""
    n = len(times)
    if n < (FEW_SEEN if seen else FEW) or not np.isfinite(times).all():
        return None
    order = np.sort(times)
    sums, squares = np.cumsum(order), np.cumsum(order**2)
    k = np.arange(1, n)
    within = (squares[-1] - sums[:-1] ** 2 / k) - (sums[-1] - sums[:-1]) ** 2 / (n - k)
    at = int(np.argmax(np.diff(order)) if seen else np.argmin(within)) + 1
    usual, slow = order[:at], order[at:]
    middle = float(np.median(usual))
    noise = max(1.4826 * float(np.median(np.abs(usual - middle))), FLOOR * middle)
    alone = max(LONELY / len(slow), 1.0) * (1 + LONELY / len(usual))
    near = slow[0] - middle < APART * noise or slow[0] - usual[-1] < alone * (usual[-1] - usual[0])
    if near or (n < (FEW if seen else FEWEST) and slow[0] < FAR * middle):
        return None
    mask: Mask = times > order[at - 1]
    most = MOST_SLOW if (seen and n >= FEW) or pattern_of(mask)[0] in ("since", "until") else MOST_SCATTERED
    return None if len(slow) > most * n else mask


def pattern_of(slow: Mask) -> tuple[str, int | None, int | None]:
    """(since, until, periodic, once or scattered; where it starts; the period)."""
    at = np.flatnonzero(slow)
    first, last, n = int(at[0]), int(at[-1]), len(slow)
    if len(at) == 1:
        return ("once" if first else "until"), first, None
    filled = len(at) / (last - first + 1)
    if filled >= 1 - TOLERATED and first > 0 and last == n - 1 and len(at) > 2:
        return "since", first, None
    if filled >= 1 - TOLERATED and first == 0:
        return "until", last, None
    gaps = np.diff(at)
    if len(at) > 2 and gaps.min() == gaps.max() > 1:
        return "periodic", first, int(gaps[0])
    return "scattered", first, None
