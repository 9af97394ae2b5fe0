"""Rows of one launch. Both halves of a mixed kernel, and what starts and feeds it from the AI CPU, may each have a row
of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from advisor.basics.arrays import Floats, Ints, Mask

_MIXED = {"MIX_AIC": 1, "MIX_AIV": 2}
_UNCOUNTED = ("", "AI_CPU")
"""Cores whose rows have no counters."""


def halves(cores: Sequence[str], core: Ints, start: Ints, duration: Floats, name: Ints, stream: Ints) -> Mask:
    """Which kernels, in order of start, are the shorter half of one that uses both kinds of cores, where each kind has
    a row of its own: they bear one name, run on one stream and overlap. `core` are indices into `cores`."""
    kind = np.array([_MIXED.get(each, 0) for each in cores], np.int8)[core]
    half = np.zeros(len(kind), bool)
    if not (1 in kind and 2 in kind):
        return half
    pair = (kind[1:] + kind[:-1] == 3) & (kind[1:] > 0) & (kind[:-1] > 0)
    pair &= (name[1:] == name[:-1]) & (stream[1:] == stream[:-1]) & (start[:-1] >= 0)
    first = np.flatnonzero(pair & (start[1:] < start[:-1] + duration[:-1] * 1000))
    taken = -1
    for at in first.tolist():  # a row is half of one kernel only
        if at > taken:
            half[at + int(duration[at + 1] <= duration[at])] = True
            taken = at + 1
    return half


def launchers(
    cores: Sequence[str], core: Ints, counted: Mask, start: Ints, duration: Floats, name: Ints
) -> npt.NDArray[np.bool_]:
    """Which rows, in order of start, only start and feed a kernel: they bear its name and overlap it, counters watched
    it and not them, and they ran on the AI CPU or nobody says where."""
    found = np.zeros(len(core), bool)
    maybe = np.array([each in _UNCOUNTED for each in cores], bool)[core] & ~counted & (start >= 0)
    maybe &= np.isin(name, np.unique(name[counted & (start >= 0)]))
    if not maybe.any():
        return found
    end = start + np.rint(duration * 1000).astype(np.int64)
    for each in np.unique(name[maybe]).tolist():
        beside = np.flatnonzero(maybe & (name == each))
        kernels = np.flatnonzero(counted & (name == each) & (start >= 0))
        before = np.searchsorted(start[kernels], end[beside]) - 1  # the last kernel that begins before the row ends
        latest = np.maximum.accumulate(end[kernels])
        found[beside] = (before >= 0) & (latest[np.maximum(before, 0)] > start[beside])
    return found
