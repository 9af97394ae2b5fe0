"""Ranks whose steps fall into two groups, as the stages of a pipeline do: the middle of both is nobody's step."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from advisor.facts.step.times import StepTimes
from advisor.knowledge.measuring import limit


def unlike_ranks(
    times: Mapping[int, StepTimes], mean: float, left_out: Mapping[int, StepTimes] = MappingProxyType({})
) -> tuple[int, ...]:
    """The ranks above the figure of the run that is farthest from what any rank has; none where each is some rank's.

    `mean` is the run's step, microseconds. Ranks that are `left_out` of the figure stand where their own files put
    them. Compared are each rank's step against it, and the shares of computing,
    exposed communication and idle time that all ranks know."""
    told = {"time": {rank: float(np.mean(t.time)) / mean for rank, t in times.items()}}
    usual = {"time": 1.0}
    whole = sum(float(t.time.sum()) for t in times.values())
    for phase in ("computing", "exposed", "idle"):
        shares = {rank: share for rank, t in times.items() if (share := t.share(phase)) is not None}
        if len(shares) == len(times):
            told[phase] = shares
            usual[phase] = sum(share * float(times[rank].time.sum()) for rank, share in shares.items()) / whole
    nearest = {name: min(abs(value - usual[name]) for value in of.values()) for name, of in told.items()}
    name = max(nearest, key=nearest.__getitem__)
    if nearest[name] < limit("unlike_ranks", "apart"):
        return ()
    for rank, t in left_out.items():
        value = float(np.mean(t.time)) / mean if name == "time" else t.share(name)
        if value is not None:
            told[name][rank] = value
    return tuple(sorted(rank for rank, value in told[name].items() if value > usual[name]))
