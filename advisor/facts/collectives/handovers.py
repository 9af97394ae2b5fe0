"""Which send belongs to which receive.

Every rank numbers the operations of a communicator by itself, so the names of the two sides do not tell where stages
share one communicator. But both sides of a transfer end together, whatever the hosts' clocks say: along a pipeline the
first stage's operations belong to the second's, what is left of the second's to the third's, and so on; where a stage
holds several chunks of layers, what is left of the last one's belongs to the first's. Round a ring (the context
parallelism of attention) everybody sends to one neighbour and receives from the other, in one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Mask
from advisor.knowledge.measuring import limit

TOGETHER_US = limit("transfers", "together_us")
"""Ends of one transfer on two cards differ by less than this once their clocks are put together."""
MOST_APART = limit("meetings", "most_missed")
"""Round a ring more of them that do not end together tell another order of transfers."""
ATTEMPTS = 4
"""Operations of either side tried as the partner of the other's first one."""
_PARTNER = {"send": "receive", "receive": "send", "batchsendrecv": "batchsendrecv"}


class Handover(Struct, frozen=True):
    """One point-to-point operation of a rank: its place in the rank's chain, and when it ended on the rank's clock."""

    event: int
    kind: str
    end_us: float
    members: frozenset[int]
    """Ranks of its communicator, as far as known."""


class Paired(NamedTuple):
    """Which operations are two sides of one transfer."""

    pairs: list[dict[int, int]]
    """rank -> event, of each transfer."""
    missed: int
    """Operations with a partner at hand that found none."""
    alike: list[list[int]]
    """Places in `pairs` of what all members of a ring send at the same point of their program."""


def pair_up(handovers: Mapping[int, Sequence[Handover]], chains: Sequence[tuple[int, ...]]) -> Paired:
    """Pairs the operations of all ranks, along these pipelines and round the rings that their communicators are."""
    pairs: list[dict[int, int]] = []
    alike: list[list[int]] = []
    open_: dict[int, list[Handover]] = {}
    alone: dict[tuple[int, int], dict[int, list[Handover]]] = defaultdict(lambda: defaultdict(list))
    for rank, mine in handovers.items():
        open_[rank] = [h for h in mine if len(h.members) != 2 or rank not in h.members]
        for handover in mine:
            if len(handover.members) == 2 and rank in handover.members and handover.members <= handovers.keys():
                low, high = sorted(handover.members)
                alone[low, high][rank].append(handover)
    missed = 0
    for (a, b), sides in sorted(alone.items()):
        for kind, other in _PARTNER.items():
            one = sorted((h for h in sides[a] if h.kind == kind), key=lambda h: h.end_us)
            two = sorted((h for h in sides[b] if h.kind == other), key=lambda h: h.end_us)
            pairs += [{a: x.event, b: y.event} for x, y in zip(one, two, strict=False)]
            missed += abs(len(one) - len(two))
    for chain in chains:
        around = [(chain[0], chain[-1])] if len(chain) > 2 else []  # where a stage holds several chunks of layers
        for a, b in (*pairwise(chain), *around):
            if a in open_ and b in open_:
                found = _match(_shared(open_[a], b), _shared(open_[b], a))
                pairs += [{a: x.event, b: y.event} for x, y in found]
                open_[a] = [h for h in open_[a] if all(h is not x for x, _ in found)]
                open_[b] = [h for h in open_[b] if all(h is not y for _, y in found)]
    for members in sorted({h.members for mine in open_.values() for h in mine if len(h.members) > 2}, key=sorted):
        ring = sorted(members)
        theirs = {rank: [h for h in open_.get(rank, []) if h.members == members] for rank in ring}
        if found_round := _round(ring, theirs):
            count = len(found_round) // len(ring)
            alike += [list(range(len(pairs) + place, len(pairs) + len(found_round), count)) for place in range(count)]
            pairs += found_round
            for rank in ring:
                open_[rank] = [h for h in open_[rank] if h.members != members]
    for chain in chains:
        if set(chain) <= open_.keys():
            missed += sum(len(open_[rank]) for rank in chain)
    return Paired(pairs, missed, alike)


def _shared(handovers: Sequence[Handover], rank: int) -> list[Handover]:
    """Those that may go to this rank or come from it."""
    return [h for h in handovers if not h.members or rank in h.members]


def _round(ring: Sequence[int], handovers: Mapping[int, Sequence[Handover]]) -> list[dict[int, int]]:
    """The transfers round a ring, rank by rank: the n-th that one sends is the n-th that the next one receives. Empty
    where not all send and receive equally often, or where in neither direction nearly all of them end together."""
    sides = {
        kind: {r: sorted((h for h in handovers[r] if h.kind == kind), key=lambda h: h.end_us) for r in ring}
        for kind in ("send", "receive")
    }
    counts = {len(mine) for side in sides.values() for mine in side.values()}
    if len(counts) != 1 or not counts.pop():
        return []
    best: tuple[float, list[dict[int, int]]] = (0.0, [])
    for onward in (1, -1):
        apart, pairs = [], []
        for place, rank in enumerate(ring):
            other = ring[(place + onward) % len(ring)]
            sent, received = sides["send"][rank], sides["receive"][other]
            later = np.array([y.end_us - x.end_us for x, y in zip(sent, received, strict=True)])
            apart.append(np.abs(later - np.median(later)))
            pairs += [{rank: x.event, other: y.event} for x, y in zip(sent, received, strict=True)]
        best = max(best, (float(np.mean(np.concatenate(apart) <= TOGETHER_US)), pairs), key=lambda each: each[0])
    return best[1] if best[0] >= 1 - MOST_APART else []


def _match(one: Sequence[Handover], two: Sequence[Handover]) -> list[tuple[Handover, Handover]]:
    """Operations that end together, with the shift between the clocks that brings most of them together."""
    if not one or not two:
        return []
    one, two = sorted(one, key=lambda h: h.end_us), sorted(two, key=lambda h: h.end_us)
    ends = np.array([h.end_us for h in one]), np.array([h.end_us for h in two])
    fits = np.array([[_PARTNER.get(x.kind) == y.kind for y in two] for x in one])
    tries = {(0, j) for j in range(min(ATTEMPTS, len(two)))} | {(i, 0) for i in range(min(ATTEMPTS, len(one)))}
    best: tuple[int, float, list[tuple[int, int]]] = (0, 0.0, [])
    for i, j in sorted(tries):
        if fits[i, j]:
            found, apart = _nearest(ends[0] + (ends[1][j] - ends[0][i]), ends[1], fits)
            best = max(best, (len(found), -apart, found))
    return [(one[i], two[j]) for i, j in best[2]]


def _nearest(one: Floats, two: Floats, fits: Mask) -> tuple[list[tuple[int, int]], float]:
    """Pairs of places, the nearest first, each place once; and the sum of their distances."""
    distance = np.where(fits, np.abs(one[:, None] - two[None, :]), np.inf)
    near = np.argwhere(distance <= TOGETHER_US)
    order = np.argsort(distance[near[:, 0], near[:, 1]], kind="stable")
    free = np.ones(len(one), bool), np.ones(len(two), bool)
    pairs: list[tuple[int, int]] = []
    apart = 0.0
    for i, j in near[order].tolist():
        if free[0][i] and free[1][j]:
            free[0][i] = free[1][j] = False
            pairs.append((i, j))
            apart += float(distance[i, j])
    return sorted(pairs), apart
