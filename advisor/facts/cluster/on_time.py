"""A rank whose host launches late, as it would run with its host on time: as a peer that meets the same ranks.

Late launches delay more than what is computed: what a rank launches into the background, such as a gather of weights
for the next layer, comes late as well, and is exposed on all. Where an event of a late rank stands says when it was
launched; where a peer's stands, what it had to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median_low

from msgspec.structs import replace

from advisor.facts.cluster.meetings import Model


def peer_on_time(found: Model, rank: int, others: Iterable[int]) -> int | None:
    """Of these ranks, which are on time, the one of middle idling that has the same meetings; None where none has."""
    mine = _meetings(found, rank)
    idling = {
        other: float(found.chains[other].gap[found.chains[other].computes].sum())
        for other in others
        if other != rank and other in found.chains and _meetings(found, other) == mine
    }
    if not idling or not mine:
        return None
    middle = median_low(idling.values())
    return min(other for other, us in idling.items() if us == middle)


def as_peers(found: Model, like: Mapping[int, int]) -> Model:
    """The step in which each of these ranks (rank -> peer) runs the chain of its peer, from its own first start on."""
    begin = {
        rank: found.begin[rank] + float(found.chains[rank].start[0] - found.chains[peer].start[0])
        for rank, peer in like.items()
    }
    return replace(
        found,
        chains=found.chains | {rank: found.chains[peer] for rank, peer in like.items()},
        begin=found.begin | begin,
        joint=found.joint | {rank: found.joint[peer] for rank, peer in like.items()},
        ready={r: found.ready[like.get(r, r)] for r in found.chains if like.get(r, r) in found.ready},
        members=[
            {rank: events[like[rank]] if rank in like else event for rank, event in events.items()}
            for events in found.members
        ],
        events={rank: events for rank, events in found.events.items() if rank not in like},
    )


def _meetings(found: Model, rank: int) -> set[int]:
    return {number for number in found.joint[rank] if number >= 0}
