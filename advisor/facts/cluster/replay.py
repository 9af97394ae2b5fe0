"""What the step would take without the cause: the step is run again with the accused durations at their peers' median.

Each rank's step is a chain of computing segments and collectives (`course.Chain`). A segment starts when the one
before has ended and the collective that released it has; a collective starts when its last member has arrived and
takes its pure transfer time. After "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI
2025), whose measure this is: the step as replayed minus the step replayed with the cause removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import FactSet, Family, Run, computed, fact, kind
from advisor.facts.cluster.meetings import Event, Model, build
from advisor.facts.cluster.on_time import as_peers, peer_on_time
from advisor.facts.cluster.pipeline.scheduled import schedule_of
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, kind_of
from advisor.facts.collectives.parallelism import partition
from advisor.facts.collectives.workmates import absent_mates
from advisor.facts.device.chain import Chain
from advisor.facts.device.course import COURSE, reduce_course
from advisor.facts.step.times import STEPS
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact

if TYPE_CHECKING:
    from advisor.facts.cluster.lateness import Lateness

MOST_OF_IT = limit("replay", "most_of_it")
"""Part of a rank's longer computing from which on more work is what makes it longer."""

EVEN, SLOWER = limit("lateness", "even"), limit("lateness", "slower")
"""A card is slow where its most slowed types lose no more than EVEN times what its least slowed lose, and those take
SLOWER times as long."""


class Change(Struct):
    """What is put right on one rank: factors on segments (one for all, or one for each event of the chain) and on gaps
    (between kernels, and between what released a kernel or a collective and its start: a late launch delays all of
    these), microseconds off its first wait."""

    compute: float | Floats = 1.0
    gap: float = 1.0
    lead_us: float = 0.0
    fetch: float = 1.0
    """Factor on waiting for data in GetNext, wherever in the step that is."""
    like: int | None = None
    """The peer as which its host launches, in place of the factor on gaps; None where none meets the same ranks."""

    def beside(self, other: Change) -> Change:
        """Both at once: of each part the larger correction; what one adds, because it takes over work, stays added."""
        least, most = np.minimum(self.compute, other.compute), np.maximum(self.compute, other.compute)
        compute = np.where(most > 1, least * most, least)
        return Change(
            compute, min(self.gap, other.gap), max(self.lead_us, other.lead_us), min(self.fetch, other.fetch),
            other.like if self.like is None else self.like,
        )  # fmt: skip

    def times(self, other: Change) -> Change:
        """One after the other, where neither contains the other: a slow card takes longer for less work as well."""
        both = self.beside(other)
        return replace(both, compute=np.asarray(np.multiply(self.compute, other.compute)))


@computed
def model(run: Run) -> Model | None:
    """The replayable step of this run; None where chains are missing or do not fit together."""
    found = build(run)
    if found is None:
        return None
    found = replace(found, events={rank: _events(found, rank) for rank in found.chains}, schedule=schedule_of(run))
    found.baseline_us = play(found, {}) or 0.0
    return found if found.baseline_us > 0 else None


def play(found: Model, changes: Mapping[int, Change], pure: Mapping[int, float] | None = None) -> float | None:
    """Runs the step; microseconds from the first start to the last end. `pure` overrides transfer times by meeting.

    None where the chains cannot be run to the end (they contradict each other).
    """
    pure = pure or {}
    found, changes = _launched_on_time(found, changes)
    rows = {r: _events(found, r, changes.get(r)) if r in changes or r not in found.events else found.events[r]
            for r in found.chains}  # fmt: skip
    ends: dict[int, list[float | None]] = {rank: [None] * len(row) for rank, row in rows.items()}
    latest: list[float | None] = [None] * len(found.members)
    missing = [len(events) for events in found.members]
    position = dict.fromkeys(found.chains, 0)
    computed = {r: found.begin[r] + float(c.start[0]) for r, c in found.chains.items()}
    begun = min(computed.values())
    for rank, change in changes.items():
        computed[rank] -= change.lead_us
    waits: dict[int, int] = {}
    """Rank -> the event of its own whose end it needs to go on."""
    ready = list(found.chains)
    while ready:
        rank = ready.pop()
        row, end, done = rows[rank], ends[rank], computed[rank]
        for i in range(position[rank], len(row)):
            talks, awaited, before, rest, lasts, lag, number = row[i]
            released = done
            if before >= 0:  # what it needed was done when it started: the lag is that behind what it awaited
                finished = end[before]
                released = (np.nan if finished is None else finished) - rest * row[before][4] - lag
            if awaited >= 0:
                freed = end[awaited]
                if freed is None:
                    waits[rank], position[rank] = awaited, i
                    break
                released = max(released, freed)
            if not talks:
                end[i] = done = released + lag + lasts
            elif number < 0:
                end[i] = released + lag + lasts
            else:
                arrived = latest[number]
                latest[number] = begin = released + lag if arrived is None else max(arrived, released + lag)
                missing[number] -= 1
                if not missing[number]:
                    absent = found.absent[number]
                    if absent is not None:
                        before_it = found.behind.get(number)
                        met = 0.0 if before_it is None else ends[rank][found.members[before_it][rank]]
                        begin = max(begin, absent + (met or 0.0))
                    ended = begin + pure.get(number, found.pure[number])
                    for member, event in found.members[number].items():
                        ends[member][event] = ended
                        if waits.get(member) == event:
                            del waits[member]
                            ready.append(member)
        else:
            position[rank] = len(row)
        computed[rank] = done
    if any(position[r] < len(row) for r, row in rows.items()):
        return None
    every = np.array([end for of_rank in ends.values() for end in of_rank], float)
    return None if np.isnan(every).any() else float(every.max()) - begun


def _launched_on_time(found: Model, changes: Mapping[int, Change]) -> tuple[Model, Mapping[int, Change]]:
    """Each rank that launches like a peer runs that one's chain, with as much more or less to compute as it has."""
    like = {rank: change.like for rank, change in changes.items() if change.like is not None}
    if not like:
        return found, changes
    own = {rank: _work(found.chains[rank]) for rank in {*like, *like.values()}}
    launched = {
        rank: replace(
            changes[rank], gap=1.0, like=None,
            compute=float((own[rank] * changes[rank].compute).sum()) / max(float(own[peer].sum()), 1e-9),
        )
        for rank, peer in like.items()
    }  # fmt: skip
    return as_peers(found, like), {**changes, **launched}


def _events(found: Model, rank: int, change: Change | None = None) -> list[Event]:
    """A rank's events after the change. A computing segment lasts with its gaps; the first one starts at once."""
    chain = found.chains[rank]
    lag, length = chain.lag, chain.busy + chain.gap
    fetching = chain.busy - chain.working
    talks = np.array([bool(name) for name in chain.name], bool)
    if change is not None:
        lag = np.where(talks & ~(lag > 0), lag, lag * change.gap)
        every = np.arange(len(chain.name))
        factor = change.compute if isinstance(change.compute, float) else np.take(change.compute, every, mode="clip")
        length = chain.working * factor + fetching * change.fetch + chain.gap * change.gap
    lag = np.where(np.cumsum(~talks) == 1, np.where(talks, lag, 0.0), lag)
    queued = found.ready.get(rank) or [(-1, 0.0)] * len(talks)
    before, parts = [place for place, _ in queued], [1 - max(part, 0.0) for _, part in queued]
    lasts = np.where(talks, chain.busy, length)
    return list(zip(talks.tolist(), chain.after.tolist(), before, parts, lasts.tolist(), lag.tolist(),
                    found.joint[rank], strict=True))  # fmt: skip


def corrections(run: Run, late: Sequence[Lateness], parts: Mapping[int, str] | None = None) -> dict[int, Change] | None:
    """What brings these ranks to their peers' median: of the part that makes each late, or of the one `parts` names.

    None where there is no replay, or where nobody knows what a rank is late from.
    """
    from advisor.facts.cluster.accounts import accounts
    from advisor.facts.cluster.lateness import latenesses
    from advisor.facts.data.common_pace import common_pace

    found, balance, pace, lates = model(run), accounts(run), common_pace(run), latenesses(run)
    if found is None or balance is None:
        return None
    changes: dict[int, Change] = {}
    more: dict[tuple[int, ...], list[int]] = {}
    """Ranks of a stage -> those that have more work than the others."""
    for entry in late:
        part = (parts or {}).get(entry.rank, entry.cause)
        if entry.rank not in found.chains or entry.rank not in balance.ranks or part == "unknown":
            return None
        over = max(entry.parts.get(part, 0.0), 0.0)
        own = float(np.nanmedian(balance.part(part)[balance.ranks.index(entry.rank)]))
        if part == "data" and pace is not None and entry.rank in pace.ranks:
            chain = found.chains[entry.rank]
            changes[entry.rank] = _fed(chain, pace.wait_us(entry.rank, chain.step))
            continue
        if part == "data" and found.step in balance.steps:
            longer = float(balance.above_others("data", entry.rank)[balance.steps.index(found.step)])
            changes[entry.rank] = _fed(found.chains[entry.rank], max(longer, 0.0) if longer == longer else over)
            continue
        lead = entry.lead_us if part == "host" else 0.0
        if own <= 0 and not lead:
            return None
        rest = max(1 - (over - lead) / own, 0.0) if own > 0 else 1.0
        if part == "data":
            changes[entry.rank] = _fed(found.chains[entry.rank], min(over, own))
        elif part == "host":
            on_time = [r for r in _members(run, entry.rank) if r in lates and not lates[r].late_us > 0]
            changes[entry.rank] = Change(gap=rest, lead_us=lead, like=peer_on_time(found, entry.rank, on_time))
        else:
            others = {other.rank for other in late}
            if not has_more_work(run, entry):
                changes[entry.rank] = Change(_evened(run, found, entry.rank, others, 1 - rest))
                continue
            more.setdefault(tuple(_members(run, entry.rank)), []).append(entry.rank)
            idle = float(np.nanmedian(balance.part("host")[balance.ranks.index(entry.rank)]))
            changes[entry.rank] = Change(gap=max(1 - entry.work_idle_us / idle, 0.0) if idle > 0 else 1.0)
    for members, ranks in more.items():
        _deal_out(run, found, members, ranks, changes, absent_mates(run, members))
    return changes


def _fed(chain: Chain, over_us: float) -> Change:
    """So much less waiting for data: in GetNext, each time it runs, as far as it waits there; else before the step."""
    fetching = float(chain.fetching.sum())
    return Change(lead_us=max(over_us - fetching, 0.0), fetch=max(1 - over_us / fetching, 0.0) if fetching > 0 else 1.0)


def has_more_work(run: Run, entry: Lateness) -> bool:
    """Whether a rank computes longer mostly because it has more to compute, not because it is slow."""
    over = entry.parts.get("compute", 0.0)
    return over > 0 and more_work_us(run, entry) >= MOST_OF_IT * over


def more_work_us(run: Run, entry: Lateness) -> float:
    """Microseconds a step that a rank computes for work which its peers do not have."""
    from advisor.facts.cluster.lateness import extra_work, masked_us

    members = _members(run, entry.rank)
    return max(extra_work(run, entry.rank, members)[0], masked_us(run, entry.rank, members), 0.0)


@computed
def slow_besides(run: Run) -> dict[int, float]:
    """Ranks that have more work and, besides, take longer for what their peers do as well, by about as much in all
    types: rank -> how many times as long. Less work does not make their cards faster."""
    from advisor.facts.cluster.lateness import latenesses, type_speeds

    found = {}
    for rank, entry in latenesses(run).items():
        if entry.cause == "compute" and entry.late_us > 0 and (entry.speed or 0.0) >= SLOWER:
            low, high = type_speeds(run, rank, list(_members(run, rank))) or (1.0, 1.0)
            if low >= SLOWER and high - 1 <= EVEN * (low - 1) and has_more_work(run, entry):
                found[rank] = float(entry.speed or 1.0)
    return found


def _members(run: Run, rank: int) -> Sequence[int]:
    """The rank and its peers; nobody where it has none."""
    return next((members for members in partition(run).peers().values() if rank in members), [])


def _deal_out(
    run: Run, found: Model, members: Sequence[int], loaded: Sequence[int], changes: dict[int, Change], absent: int = 0
) -> None:
    """Work that a rank does not do its peers do: those that have more than the mean hand the rest to those that have
    less, each of which takes of it as far as the mean is. What a slow card takes longer for it is no work. Peers that
    are `absent` have as much of it as the others at hand."""
    slow = slow_besides(run)
    chains = {r: found.chains[r] for r in members if r in found.chains}
    own = {r: np.where(chain.computes, chain.working, 0.0) / slow.get(r, 1.0) for r, chain in chains.items()}
    usual = [float(work.sum()) for rank, work in own.items() if rank not in loaded]
    missing = [float(np.median(usual))] * absent if usual else []
    mean = float(np.mean([*(work.sum() for work in own.values()), *missing]))
    lacking = {rank: mean - float(work.sum()) for rank, work in own.items() if work.sum() < mean}
    taken = sum(lacking.values()) + sum(max(mean - us, 0.0) for us in missing)
    transfers = in_order(chains.values())
    given = {rank: np.zeros(len(blocks(found.chains[rank], transfers))) for rank in lacking}
    for rank in loaded:
        over = float(own[rank].sum()) - mean
        if over <= 0:
            continue
        factor = _evened(run, found, rank, loaded, over / float(own[rank].sum()), slow.get(rank, 1.0))
        changes[rank] = replace(changes[rank], compute=factor)
        gone, chain = own[rank] * (1 - np.broadcast_to(factor, len(own[rank]))), found.chains[rank]
        for taker, lacks in lacking.items():
            part, into = lacks / taken, given[taker]
            alike = sequence(found.chains[taker], transfers) == sequence(chain, transfers)
            into += np.bincount(places(chain, transfers), gone * part) if alike else gone.sum() * part / len(into)
    for taker, more in given.items():
        theirs = found.chains[taker]
        work = blocks(theirs, transfers)
        raised = 1 + np.divide(more, work, out=np.zeros_like(work), where=work > 0)
        change = Change(np.asarray(raised[places(theirs, transfers)]))
        changes[taker] = changes[taker].beside(change) if taker in changes else change


def in_order(chains: Collection[Chain]) -> bool:
    """Whether all of them wait for the same collectives in the same order, transfers among them. Those between stages
    come when another stage is ready, on one rank before a collective and on its peer behind it: where they do, blocks
    lie between the other collectives, which all members begin in one order."""
    return len({sequence(chain) for chain in chains}) <= 1


def _evened(
    run: Run, found: Model, rank: int, late: Collection[int], share: float, slowness: float = 1.0
) -> float | Floats:
    """Factors on a rank's segments that take this share of its computing away where it has more of it than its peers: a
    slow card has more everywhere, a hot expert in its own layers. One factor for all where its peers run another
    sequence of collectives, or have nowhere less. It is compared as if its card were `slowness` times as fast."""
    chain = found.chains[rank]
    others = [found.chains[r] for r in _members(run, rank) if r != rank and r not in late and r in found.chains]
    order = sequence(chain)
    transfers = any(sequence(other) == order for other in others)
    order = order if transfers else sequence(chain, transfers)
    fair = [blocks(other, transfers) for other in others if sequence(other, transfers) == order]
    if not fair:
        return 1 - share
    own = blocks(chain, transfers) / slowness
    over = np.maximum(own - np.median(np.array(fair), axis=0), 0.0)
    if over.sum() <= 0:
        return 1 - share
    kept = 1 - np.divide(over, own, out=np.zeros_like(own), where=own > 0) * min(share * own.sum() / over.sum(), 1.0)
    taken = float((own * (1 - kept)).sum())
    rest = max(1 - (share * own.sum() - taken) / max(own.sum() - taken, 1e-9), 0.0)
    return np.asarray(kept[places(chain, transfers)] * rest)


def _awaited(chain: Chain, transfers: bool) -> Mask:
    """The collectives that computing waits for: those in the background lie elsewhere on a slow rank than on others."""
    found = np.zeros(len(chain.name), bool)
    awaited = chain.after[chain.computes]
    found[awaited[awaited >= 0]] = True
    if transfers:
        return found
    between = [bool(name) and kind_of(name) in POINT_TO_POINT for name in chain.name]
    for at in np.flatnonzero(found & np.array(between, bool)).tolist():
        found[at] = False
        while at >= 0 and between[at]:
            at -= 1
        found[at] = found[at] or (at >= 0 and bool(chain.name[at]))  # what is received behind a collective hides it
    return found


def places(chain: Chain, transfers: bool = True) -> Ints:
    """For each event of the chain the block of computing that it lies in."""
    return np.cumsum(_awaited(chain, transfers))


def sequence(chain: Chain, transfers: bool = True) -> tuple[str, ...]:
    """The kinds of collectives that computing waits for, transfers from rank to rank among them or not."""
    return tuple(kind_of(chain.name[i]) for i in np.flatnonzero(_awaited(chain, transfers)).tolist())


def blocks(chain: Chain, transfers: bool = True) -> Floats:
    """Computing between each two collectives that it waits for, before the first and behind the last, microseconds."""
    at = places(chain, transfers)
    return np.bincount(at, _work(chain), int(at[-1]) + 1).astype(np.float64)


def _work(chain: Chain) -> Floats:
    """What each event computes, microseconds; nothing of those that communicate."""
    work: Floats = np.where(chain.computes, chain.working, 0.0)
    return work


def what_if_late(run: Run, late: Sequence[Lateness]) -> float | None:
    """Microseconds a step gains where these ranks' causes are at their peers' median; None without a replay."""
    found, changes = model(run), corrections(run, late)
    return None if found is None or changes is None else gain(found, changes)


def gain(found: Model, changes: Mapping[int, Change], pure: Mapping[int, float] | None = None) -> float | None:
    """The step as replayed minus the step replayed with the changes, not below 0. Of what is computed a pipeline's
    schedule tells the part, where there is one."""
    after = play(found, changes, pure)
    if after is None:
        return None
    computed = _computing_left(found, changes) if found.schedule is not None else {}
    if found.schedule is None or not computed:
        return max(found.baseline_us - after, 0.0)
    alone = play(found, {rank: Change(changes[rank].compute) for rank in computed})
    return max((after if alone is None else alone) - after + found.schedule.gain_us(computed), 0.0)


def _computing_left(found: Model, changes: Mapping[int, Change]) -> dict[int, float]:
    """rank -> the part of its computing that is left by these changes, of those that change it."""
    parts = {}
    for rank, change in changes.items():
        working = _work(found.chains[rank])
        whole = float(working.sum())
        if whole > 0 and np.any(np.asarray(change.compute) != 1.0):
            parts[rank] = float((working * change.compute).sum()) / whole
    return parts


KINDS = (
    kind("replay.error_share", "ratio", "run", "how far the replayed step is from the measured one", needs="kernels"),
)  # fmt: skip


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """How well the replay reproduces the step: what its savings are worth."""
    del facts
    found = model(run)
    if found is None:
        return
    last = max(
        found.begin[r] + float((c.start + c.busy + c.gap * [not n for n in c.name]).max())
        for r, c in found.chains.items()
    )
    first = min(found.begin[r] + float(c.start[0]) for r, c in found.chains.items())
    yield from fact("replay.error_share", RUN, abs(found.baseline_us - (last - first)) / (last - first))


FAMILIES = (
    Family(
        "replay",
        KINDS,
        measure,
        COURSE.by(reduce_course),
        ("kernels", "trace"),
        uses=(STEPS, EXCHANGES),
        after=("parallelism",),
    ),
)
