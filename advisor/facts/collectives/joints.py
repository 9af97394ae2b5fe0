"""The same collectives of all ranks put side by side.

A collective ends together, whatever the hosts' clocks say, so ranks are compared by how long each was inside it: the
last to arrive is inside for the transfer alone, the others for its lateness too. Where the profiler books the waiting
(Wait, Idle, or not at all) does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.collectives.exchanges import POINT_TO_POINT, Exchanges
from advisor.knowledge.measuring import limit
from advisor.model import Source

SAME_PACE = limit("joints", "same_pace")
"""Multiples of the transfer that differ by no more than this are one pace; no larger part of a wait is next to none."""
SLOWER = limit("joints", "slower")
"""Links of two transports of one system differ by no more than this factor."""
SEVERAL = int(limit("joints", "several"))
"""Of fewer operations nobody knows whether they take the same each time by chance."""


class Joint(Struct):
    """The same operations of one group and kind on all ranks at hand: rows are operations, columns ranks."""

    group: str
    kind: str
    ranks: tuple[int, ...]
    members: tuple[int, ...]
    """All members as far as known; at least `ranks`."""
    complete: bool
    """Every member's file is at hand."""
    steps: list[str]
    names: list[str]
    ordinal: Ints
    elapsed_us: Floats
    transit_us: Floats
    booked_us: Floats
    start_ns: Ints
    size_bytes: Floats
    early: Floats
    """Share of the booked wait that came before the first transfer."""
    sources: tuple[Source, ...] = field(default=())
    thinned: Floats = field(default_factory=lambda: np.empty(0))
    """As of `Exchanges`: how many operations stand behind each row; empty where all are kept."""
    quiet: int = 0
    """Further steps in which nothing at all is communicated: gradients are reduced in some steps only."""

    @property
    def is_whole(self) -> bool:
        """Whether all operations are kept."""
        return bool((self.behind == 1).all())

    @property
    def behind(self) -> Floats:
        """How many of the profile's operations each row counts for."""
        return self.thinned if len(self.thinned) else np.ones(len(self.names))

    @property
    def per_step(self) -> Floats:
        """What each row counts in a sum that is to be that of one step, of the mean of all."""
        return self.behind * self.share / len(set(self.steps))

    @property
    def share(self) -> float:
        """Part of the steps that have it."""
        have = len(set(self.steps))
        return have / (have + self.quiet)

    @property
    def pure_us(self) -> Floats:
        """The transfer without the waiting for ranks at hand: how long the last to arrive was inside."""
        pure: Floats = np.nanmin(self.elapsed_us, axis=1)
        return pure

    @property
    def transfer_us(self) -> Floats:
        """The transfer alone: `pure_us`, but not above the longest transit of any member where a member's file is
        missing, for the rest may be waiting for that one, unless it is the pace of a slower hop. Some profilers put
        the waiting into the transit: what then lasts longer than the same bytes need elsewhere in the recording over
        any link is waiting, too, and counts as the usual one of them. Where no sizes are told, those at the same
        place of each step are the same."""
        if self.complete or self.paced:
            return self.pure_us
        longest = np.where(np.isfinite(self.transit_us), self.transit_us, -1.0).max(axis=1)
        told = longest > 0
        moving = np.where(told, np.minimum(self.pure_us, longest), self.pure_us)
        unsplit = told & (longest >= (1 - SAME_PACE) * self.pure_us)
        sizes = np.where(np.isfinite(self.size_bytes), self.size_bytes, -1.0).max(axis=1)
        same = np.where(sizes > 0, sizes, -1.0 - self.ordinal)
        for each in np.unique(same[unsplit]).tolist():
            alike = np.flatnonzero(same == each)
            usual = moving[alike] <= SLOWER * moving[alike].min()
            if len(alike) >= SEVERAL and usual.any():
                waiting = alike[~usual & unsplit[alike]]
                moving[waiting] = np.median(moving[alike[usual]])
        return moving

    @property
    def paced(self) -> bool:
        """Whether those at hand wait within these operations for a slower hop between others, not for somebody late:
        for the same multiple of their own transfer each time, however long was computed before, and hardly before the
        first transfer, where the wait for a late neighbour lies; and no longer than transports differ by."""
        longest = np.where(np.isfinite(self.transit_us), self.transit_us, -1.0).max(axis=1)
        told = np.isfinite(self.early).any(axis=1) & (longest > 0)
        if told.sum() < SEVERAL or not told.all():
            return False
        multiple = self.pure_us / longest
        early = float(np.nanmean(self.early))
        alike = multiple.max() <= min((1 + SAME_PACE) * multiple.min(), SLOWER)
        return early <= SAME_PACE and bool(alike)

    @property
    def wait_us(self) -> Floats:
        """Waiting of each rank for the last one at hand."""
        return self.elapsed_us - self.pure_us[:, None]

    def in_steps(self, steps: set[str]) -> Mask:
        """Which operations lie in these steps."""
        return np.array([s in steps for s in self.steps], bool)


def join(exchanges: dict[int, Exchanges], groups: dict[str, tuple[int, ...]], complete_world: bool) -> Iterator[Joint]:
    """Puts the collectives of all ranks side by side. Operations are matched by name; where ranks name them
    differently, by their order within step, group and kind. Point-to-point operations are left out."""
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rank, ex in exchanges.items():
        for pair in ex.counts():
            members[pair].append(rank)
    for pair in [p for p in members if not p[0] and len(members[p]) > 1]:
        for part in _share_names(members.pop(pair), pair[1], exchanges):
            members[f"~{part[0]}", pair[1]] = part
    coder = _Keys(exchanges)
    for (group, kind), ranks in sorted(members.items()):
        if kind in POINT_TO_POINT:
            continue
        known = groups.get(group)
        # nobody exchanges with itself: others took part of whom no file is at hand
        complete = set(ranks) >= set(known) if known else complete_world and len(ranks) > 1
        full = tuple(sorted(set(known or ()) | set(ranks)))
        joint = _side_by_side("" if group.startswith("~") else group, kind, tuple(sorted(ranks)), exchanges, coder)
        if joint is not None:
            joint.members, joint.complete = full, complete
            yield joint


def _share_names(ranks: list[int], kind: str, exchanges: dict[int, Exchanges]) -> list[list[int]]:
    """Ranks whose operations of this kind mostly bear the same names: files that tell no group."""
    parts: list[tuple[set[str], list[int]]] = []
    for rank in ranks:
        ex = exchanges[rank]
        mine = {name for name, k in zip(ex.names, ex.kind, strict=True) if k == kind}
        for names, part in parts:
            if len(names & mine) >= 0.5 * min(len(names), len(mine)):
                part.append(rank)
                break
        else:
            parts.append((mine, [rank]))
    return [part for _, part in parts]


class _Keys:
    """Operations of different ranks as numbers: the same number, the same step and name. Each rank's words are looked
    at once, for all its groups and kinds."""

    def __init__(self, exchanges: dict[int, Exchanges]) -> None:
        self._exchanges = exchanges
        self._steps, self._names = (
            _codes({rank: getattr(ex, words) for rank, ex in exchanges.items()}) for words in ("steps", "names")
        )

    def by_name(self, rank: int, at: Ints) -> Ints:
        """Of the operations at these places, by step and name."""
        return self._in_steps(rank, at, self._names[rank][self._exchanges[rank].name[at]])

    def by_order(self, rank: int, at: Ints) -> Ints:
        """The same by step and place in it."""
        return self._in_steps(rank, at, self._exchanges[rank].ordinal[at])

    def _in_steps(self, rank: int, at: Ints, keys: Ints) -> Ints:
        steps: Ints = self._steps[rank][self._exchanges[rank].step[at]]
        return steps << 32 | keys


def _codes(words_of: dict[int, tuple[str, ...]]) -> dict[int, Ints]:
    """Each rank's words as numbers, the same of all ranks; ranks mostly share them all, and then the array as well."""
    known: dict[str, int] = {}
    codes: dict[tuple[str, ...], Ints] = {}
    for words in words_of.values():
        if words not in codes:
            codes[words] = np.array([known.setdefault(word, len(known)) for word in words], np.int64)
    return {rank: codes[words] for rank, words in words_of.items()}


def _side_by_side(
    group: str, kind: str, ranks: tuple[int, ...], exchanges: dict[int, Exchanges], coder: _Keys
) -> Joint | None:
    places = {rank: exchanges[rank].of(group, kind) for rank in ranks}
    keys = {rank: coder.by_name(rank, at) for rank, at in places.items()}
    different = {rank: np.unique(mine) for rank, mine in keys.items()}
    common = reduce(_both, different.values())
    if len(common) < 0.5 * max(map(len, different.values())) or any(
        len(different[rank]) < len(keys[rank]) for rank in ranks
    ):
        keys = {rank: coder.by_order(rank, at) for rank, at in places.items()}
        common = reduce(_both, map(np.unique, keys.values()))
    if not len(common):
        return None
    first = ranks[0]
    inside = np.isin(keys[first], common)
    chosen, order = places[first][inside], np.argsort(keys[first][inside], kind="stable")
    sought = keys[first][inside][order]
    shape = (len(chosen), len(ranks))
    data = {field: np.full(shape, np.nan) for field in ("elapsed_us", "transit_us", "booked_us", "size_bytes", "early")}
    start, behind = np.zeros(shape, np.int64), np.ones(len(chosen))
    for column, rank in enumerate(ranks):
        ex = exchanges[rank]
        at = np.minimum(np.searchsorted(sought, keys[rank]), len(sought) - 1)
        here = sought[at] == keys[rank]
        row, mine = order[at[here]], places[rank][here]
        for name, target in data.items():
            target[row, column] = getattr(ex, name)[mine]
        start[row, column] = ex.start_ns[mine]
        behind[row] = np.maximum(behind[row], ex.weight[mine])
    ex = exchanges[first]
    return Joint(
        group, kind, ranks, ranks, False,
        [ex.steps[i] for i in ex.step[chosen]], [ex.names[i] for i in ex.name[chosen]],
        ex.ordinal[chosen], data["elapsed_us"], data["transit_us"], data["booked_us"], start, data["size_bytes"],
        data["early"],
        ex.sources, behind,
    )  # fmt: skip


def _both(one: Ints, other: Ints) -> Ints:
    """What stands in both, each once and sorted, as these are; most often all of it."""
    return one if np.array_equal(one, other) else np.intersect1d(one, other, assume_unique=True)
