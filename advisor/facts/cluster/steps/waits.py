"""How long peers wait for each rank in each step, in the row of the step that the wait is booked in.

Rows of a step table may run from a rank's own first kernel to its next. What it does at their end makes its row longer
than those of its peers, who wait for it at the next collective: in the row behind.
"""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats
from advisor.facts.cluster.accounts import PARTS, Accounts
from advisor.facts.cluster.peers import others_median


def parts_above(balance: Accounts, rows: list[int]) -> dict[str, Floats]:
    """Part -> rank by step: what each of these rows has more of it than the others' median, microseconds."""
    return {p: values - others_median(values, balance.among(rows)) for p, values in _told(balance, rows).items()}


def own_above(balance: Accounts, rows: list[int]) -> Floats:
    """Rank by step: own work above the median of the others, microseconds."""
    own = _own(balance, rows)
    return np.asarray(own - others_median(own, balance.among(rows)))


def own_unusual(balance: Accounts, rows: list[int]) -> Floats:
    """Rank by step: own work above that of the rank with the least, beyond what is usual for it, microseconds. What
    most of them have more of in a step is none above their median."""
    own = _own(balance, rows)
    above = own - own.min(axis=0)
    return np.asarray(above - np.median(above, axis=1, keepdims=True))


def _own(balance: Accounts, rows: list[int]) -> Floats:
    return np.asarray(np.sum([*_told(balance, rows).values()], axis=0))


def _told(balance: Accounts, rows: list[int]) -> dict[str, Floats]:
    return {p: balance.part(p)[rows] for p in PARTS if p != "data" or balance.data_known}


def waited_for(balance: Accounts, rows: list[int]) -> Floats:
    """Rank by step: how long the others wait for it, microseconds; NaN where not told, negative where it has less.

    The lesser of own work above the others' and of their exposed communication above its own, in the same row; and of
    what is left, as much as it begins its next row later than they do and they wait longer for it there. Behind the
    last row nothing is recorded, so that its end alone tells.
    """
    over, exposed = own_above(balance, rows), balance.exposed[rows]
    waited = others_median(exposed, balance.among(rows)) - exposed
    late = np.where(np.isfinite(waited), np.minimum(over, waited), over)
    behind = _behind(balance.time[rows])
    found, pending = np.zeros(late.shape), np.zeros(len(rows))
    for step in range(late.shape[1]):
        wait, more = (np.maximum(np.nan_to_num(values[:, step]), 0.0) for values in (waited, over))
        carried = np.minimum(pending, wait)
        if step:
            found[:, step - 1] += carried
        here = np.minimum(more, wait - carried)
        found[:, step] = here
        pending = np.minimum(more - here, behind[:, step])
    found[:, -1] += pending
    return np.where(np.isfinite(waited) & (found > 0), found, late)


def _behind(length: Floats) -> Floats:
    """Rank by step: how much later than the others it begins the next row, where these lengths are from one row's
    begin to the next; at the earliest it was with them."""
    ahead = np.cumsum(np.nan_to_num(length - others_median(length)), axis=1)
    lowest = np.minimum(np.minimum.accumulate(ahead, axis=1), 0.0)
    return np.asarray(ahead - lowest)
