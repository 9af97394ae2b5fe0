"""Who comes last in collectives, and how long the others wait for it: what collectives tell by themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from advisor.facts.base import fact, kind
from advisor.facts.collectives.joints import Joint
from advisor.model import Fact, Subject

_NEEDS = "collectives"
KINDS = (
    kind("rank.awaited_us", "us", "rank",
         "how long each of the others waits in collectives in which this rank comes last, per step; computation may "
         "run beside a part of it", formula="Σ mean over the others of (their elapsed − its elapsed)", needs=_NEEDS),
    kind("rank.awaited_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.awaited_in_steps", "ratio", "rank",
         "share of the steps in which the others wait for it longest; without the first recorded one, which may live "
         "on what was prepared before it", needs=_NEEDS),
)  # fmt: skip


def measure_arrivals(together: Sequence[Joint], step_us: float | None, samples: int) -> Iterator[Fact]:
    """Of each rank what the others wait for it."""
    awaited: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for joint in together:
        if len(joint.ranks) < 2:
            continue
        others = joint.wait_us.sum(axis=1) / (len(joint.ranks) - 1)
        for step, column, us in zip(joint.steps, np.argmin(joint.elapsed_us, axis=1), others, strict=True):
            awaited[joint.ranks[int(column)]][step] += float(us) * joint.scale
    steps = list(dict.fromkeys(step for joint in together for step in joint.steps))
    told = steps[1:] if len(steps) > 2 else steps
    longest = [max(awaited, key=lambda rank: awaited[rank].get(step, 0.0)) for step in told if awaited]
    for rank, waits in sorted(awaited.items()):
        subject, sources = Subject("rank", str(rank), (rank,)), together[0].sources
        us = sum(waits.values()) / len(steps)
        yield from fact("rank.awaited_us", subject, us, *sources, samples=samples)
        yield from fact("rank.awaited_share", subject, us / step_us if step_us else None, *sources, samples=samples)
        part = longest.count(rank) / len(longest)
        yield from fact("rank.awaited_in_steps", subject, part, *sources, samples=samples)
