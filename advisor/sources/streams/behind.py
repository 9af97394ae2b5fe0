"""A device behind the host that gives it work: where the host's marks lie on the device."""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Ints


def first_asked(asked: Ints, started: Ints, marks: Ints, last: int) -> Ints:
    """For each mark on the host, nanoseconds: when the device starts the first task that the host asks for from then
    on; `last` where it asks for none. `asked` and `started` are of the same tasks."""
    order = np.argsort(asked, kind="stable")
    earliest = np.minimum.accumulate(started[order][::-1])[::-1]
    return np.append(earliest, last)[np.searchsorted(asked[order], marks)]
