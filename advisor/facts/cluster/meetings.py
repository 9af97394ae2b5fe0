"""Where the ranks' steps meet: their chains of segments and collectives on one clock, ready to be replayed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.facts.base import Run, computed
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, Exchanges, kind_of
from advisor.facts.collectives.exposure import joints
from advisor.facts.collectives.handovers import Handover, pair_up
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.collectives.schedule import Schedule
from advisor.facts.device.chain import ROUNDING_US, Chain
from advisor.facts.step.steps import steady, stepped_courses
from advisor.knowledge.measuring import limit

MOST_MISSED = limit("meetings", "most_missed")
"""Where more of the point-to-point operations, or of the collectives, have no partner, nobody knows who waited."""
PURE_SLACK = limit("meetings", "pure_slack")
"""Transfer times differ by this much between members and repetitions; more than that is waiting."""


_TWO = 2
"""The ranks of a transfer, and the neighbours of a stage."""

Event = tuple[bool, int, int, float, float, float, int]
"""For the replay: whether it is a collective, what it awaits, the segment in which it became ready (-1: none) and what
of that was not needed, how long it lasts, its lag, its meeting (-1: none)."""


class Model(Struct):
    """All ranks' chains on one clock. `joint[rank][i]` numbers the meeting that event i is part of, −1 for none."""

    chains: dict[int, Chain]
    begin: dict[int, float]
    joint: dict[int, list[int]]
    members: list[dict[int, int]] = field(default_factory=list)
    """meeting -> rank -> event."""
    pure: list[float] = field(default_factory=list)
    """Transfer time of each meeting once all have arrived."""
    group: list[str] = field(default_factory=list)
    ready: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """rank -> for each event the computing segment in which a queued collective became ready, and the part of it that
    had to be done; (−1, 0): not queued, its own place in the chain tells."""
    absent: list[float | None] = field(default_factory=list)
    """When a member without files arrived, on the common clock, or behind the meeting that it had to wait for; None
    where all are at hand."""
    behind: dict[int, int] = field(default_factory=dict)
    """Meeting -> the one behind whose end its absent members came."""
    kinds: list[dict[int, str]] = field(default_factory=list)
    """meeting -> rank -> the kind of its operation."""
    events: dict[int, list[Event]] = field(default_factory=dict)
    """Of each rank, as measured."""
    baseline_us: float = 0.0
    schedule: Schedule | None = None
    """Of a pipeline whose steps are as long as its schedule says."""

    @property
    def step(self) -> str:
        """The step that all chains are of."""
        return next(iter(self.chains.values())).step


@computed
def build(run: Run) -> Model | None:
    """The chains with their meetings; None where chains are missing or do not fit together."""
    chains = {rank: c.chain for rank, c in stepped_courses(run).items() if c.chain is not None}
    if len(chains) < 2 or set(chains) != set(steady(run)) or len({c.step for c in chains.values()}) != 1:
        return None
    exchanges = run.each(EXCHANGES)
    layout = partition(run)
    meetings: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for rank, chain in chains.items():
        group_of = _groups_by_name(exchanges.get(rank), chain.step)
        for i, name in enumerate(chain.name):
            if name and kind_of(name) not in POINT_TO_POINT:
                key = (group_of.get(name, ""), name)
                if rank not in meetings[key]:
                    meetings[key][rank] = i
    found = Model(chains, {}, {rank: [-1] * len(c.name) for rank, c in chains.items()})
    transit = {rank: moving_us(exchanges.get(rank), chain.step) for rank, chain in chains.items()}
    complete = (run.profile.world_size or len(chains)) <= len(chains)
    paced = {(joint.group, joint.kind) for joint in joints(run) if joint.paced}
    handovers = {rank: _handovers(chain, exchanges.get(rank), layout) for rank, chain in chains.items()}
    pairs, missed, alike = pair_up(handovers, layout.chains)
    passed_on = sum(map(len, handovers.values()))
    if missed > MOST_MISSED * passed_on or (complete and passed_on and not pairs):
        return None
    for events in pairs:
        meetings["", f"p2p {len(meetings)}"] = events
    alone = 0
    for (group, _), events in meetings.items():
        known = layout.groups.get(group, ())
        everyone = complete or set(known) <= set(events)
        if len(events) < 2 and everyone:
            alone += len(known) != 1
            continue
        number = len(found.members)
        found.members.append(events)
        found.kinds.append({rank: kind_of(chains[rank].name[i]) for rank, i in events.items()})
        for rank, i in events.items():
            found.joint[rank][i] = number
        lasts = min(float(chains[r].busy[i]) for r, i in events.items())
        moving = max(transit[r].get(chains[r].name[i], 0.0) for r, i in events.items())
        if any((group, kind) in paced for kind in found.kinds[number].values()):
            moving = lasts
        # somebody absent may be late: what is beyond moving data is waiting for it, and no link shortens that
        found.pure.append(lasts if everyone or moving <= 0 else min(lasts, moving))
        found.group.append(group)
        found.absent.append(None if everyone else 0.0)
    if alone > MOST_MISSED * sum(map(len, meetings.values())):
        return None
    _forget_chance(found, len(found.members) - len(pairs))
    found.ready = readiness(found, len(found.members) - len(pairs), alike)
    _one_clock(found)
    _await_absent(found)
    found.chains = {rank: _awaiting_inputs(found, rank) for rank in found.chains}
    return found


def _awaiting_inputs(found: Model, rank: int) -> Chain:
    """The rank's chain, whose computing also awaits what it asked for ahead: where a stage receives while it computes,
    no start shows what needs the data, but the n-th answer is made from the n-th message. A stage answers to its other
    neighbour, the last one to the same; unchanged where the starts contradict that."""
    chain = found.chains[rank]
    received, sent = (_transfers(found, rank, kind) for kind in ("receive", "send"))
    after = chain.after.copy()
    for source, messages in received.items():
        to = next((other for other in sent if other != source), source)
        makers = _makers_of(chain, sent.get(to, ()))
        if len(sent) > _TWO or len(messages) != len(makers):
            continue
        if (chain.start[messages] + chain.busy[messages] <= chain.start[makers] + ROUNDING_US).all():
            for message, maker in zip(messages, makers, strict=True):
                after[maker] = message if after[maker] < 0 else after[maker]
    return replace(chain, after=after)


def _transfers(found: Model, rank: int, kind: str) -> dict[int, list[int]]:
    """Other rank -> the events in which this one receives from it, or sends to it, in their order."""
    among: dict[int, list[int]] = defaultdict(list)
    for event, number in enumerate(found.joint[rank]):
        if number >= 0 and found.kinds[number][rank] == kind and len(found.members[number]) == _TWO:
            among[next(other for other in found.members[number] if other != rank)].append(event)
    return among


def _makers_of(chain: Chain, answers: Sequence[int]) -> list[int]:
    """The first computing behind whatever was sent before each answer: there begins what makes it; fewer than there are
    answers where one of them has none."""
    kinds = ["" if not name else kind_of(name) for name in chain.name]
    found, first = dict[int, int](), -1
    for event, kind in enumerate(kinds):
        if kind == "send":
            found[event], first = first, -1
        elif not kind and first < 0:
            first = event
    return [found[answer] for answer in answers if found[answer] >= 0]


def _await_absent(found: Model) -> None:
    """When the members without files came: where the last one at hand found everybody there, they had not been later.
    Behind a collective of the same ranks at hand whose end computing waits for, theirs went on with its end as well: so
    much later they come, whenever it ends."""
    for number, events in enumerate(found.members):
        if found.absent[number] is None:
            continue
        rank, i = next(iter(events.items()))
        chain = found.chains[rank]
        begun = found.begin[rank] + float(chain.start[i] + chain.busy[i]) - found.pure[number]
        latest = max(found.begin[r] + float(found.chains[r].start[n]) for r, n in events.items())
        if begun - latest <= ROUNDING_US + PURE_SLACK * found.pure[number]:
            found.absent[number] = None
            continue
        awaited = [e for e in chain.after[:i].tolist() if e >= 0 and found.joint[rank][e] >= 0]
        alike = [e for e in awaited if found.members[found.joint[rank][e]].keys() == events.keys()]
        found.absent[number] = begun
        if alike:
            last = max(alike)
            found.behind[number] = found.joint[rank][last]
            found.absent[number] = begun - found.begin[rank] - float(chain.start[last] + chain.busy[last])


def _forget_chance(found: Model, collectives: int) -> None:
    """Computing that starts shortly behind a collective's end was released by it if it is so on most members, which run
    the same program; where launches come late, collectives end by chance just before one."""
    waiting = {rank: _computing_after(chain) for rank, chain in found.chains.items()}
    for events in found.members[:collectives]:
        released = {rank: waiting[rank].get(i, []) for rank, i in events.items()}
        chosen = [rank for rank, segments in released.items() if segments]
        if 2 * len(chosen) < len(events):
            for rank in chosen:
                found.chains[rank] = _launched(found.chains[rank], released[rank])


def _computing_after(chain: Chain) -> dict[int, list[int]]:
    """Collective -> the segments that its end let start."""
    found: dict[int, list[int]] = defaultdict(list)
    for i, (name, by) in enumerate(zip(chain.name, chain.after.tolist(), strict=True)):
        if not name and by >= 0:
            found[by].append(i)
    return found


def _launched(chain: Chain, segments: list[int]) -> Chain:
    """The chain with these segments behind the one before them instead, each as late as it was launched."""
    after, lag = chain.after.copy(), chain.lag.copy()
    for i in segments:
        before = next((n for n in range(i - 1, -1, -1) if not chain.name[n]), None)
        ended = 0.0 if before is None else float(chain.start[before] + chain.busy[before] + chain.gap[before])
        after[i], lag[i] = -1, max(float(chain.start[i]) - ended, 0.0)
    return replace(chain, after=after, lag=lag)


def readiness(found: Model, collectives: int, alike: Sequence[Sequence[int]]) -> dict[int, list[tuple[int, float]]]:
    """When what is queued was ready: in a queue the start tells only that the one before had ended. Members do the
    same work, so the one with the least work done at its start bounds what a collective had to wait for; what a stage
    hands over (the meetings behind the first `collectives`), its sender alone has made, and its receiver has asked for
    when it starts to wait; of a ring all make the same (the transfers `alike`). What is queued between the
    first and the last gets ready evenly, as gradients and micro-batches do."""
    done = {rank: work_done(chain) for rank, chain in found.chains.items()}
    makers = _makers(found, collectives)
    least = [min((done[rank][1][i] for rank, i in events.items()), default=1.0) for events in makers]
    for transfers in alike:
        for place in transfers:
            least[collectives + place] = min(least[collectives + other] for other in transfers)
    for queue in _queues(found, makers):
        whole = sum(found.pure[number] for number in queue[1:])
        first, last, moved = least[queue[0]], least[queue[-1]], 0.0
        for number in queue[1:]:
            moved += found.pure[number]
            least[number] = min(least[number], first + max(last - first, 0.0) * moved / max(whole, 1e-9))
    ready = {rank: [(-1, 0.0)] * len(chain.name) for rank, chain in found.chains.items()}
    for number, events in enumerate(found.members):
        for rank, i in events.items():
            if found.chains[rank].after[i] >= 0:
                names, (mine, begun) = found.chains[rank].name, done[rank]
                needed = least[number] if rank in makers[number] else begun[i]
                segment = next((n for n in range(i) if not names[n] and mine[n] >= needed), -1)
                if segment >= 0:
                    before = mine[segment - 1] if segment else 0.0
                    ready[rank][i] = (segment, (needed - before) / max(mine[segment] - before, 1e-12))
    return ready


def work_done(chain: Chain) -> tuple[list[float], list[float]]:
    """For each event the part of the rank's computing that is done when the segments up to it have ended, and when it
    starts itself."""
    work = np.where(chain.computes, chain.busy, 0.0)
    work /= max(float(work.sum()), 1e-9)
    ended = np.cumsum(work)
    places = np.maximum.accumulate(np.where(chain.computes, np.arange(len(work)), -1))
    last = np.maximum(places, 0)
    since = (chain.start - chain.start[last]) / np.maximum((chain.busy + chain.gap)[last], 1e-9)
    begun = ended - np.where(places >= 0, work[last] * (1 - np.clip(since, 0, 1)), 0.0)
    return ended.tolist(), begun.tolist()


def _makers(found: Model, collectives: int) -> list[dict[int, int]]:
    """Of each meeting the events of those that make what it moves: all of a collective, the sender of a transfer."""
    return [
        events if number < collectives else {r: i for r, i in events.items() if found.kinds[number][r] == "send"}
        for number, events in enumerate(found.members)
    ]


def _queues(found: Model, makers: Sequence[Mapping[int, int]]) -> list[list[int]]:
    """Meetings of the same ranks that wait for each other on every one that makes them, each behind the one that waits
    for none."""
    before: dict[int, int] = {}
    for number, events in enumerate(makers):
        ahead = {found.joint[rank][int(found.chains[rank].after[i])] for rank, i in events.items()
                 if found.chains[rank].after[i] >= 0}  # fmt: skip
        queued = all(found.chains[rank].after[i] >= 0 for rank, i in events.items())
        if queued and len(ahead) == 1 and (one := ahead.pop()) >= 0:
            same_ranks = found.members[one].keys() == found.members[number].keys()
            if same_ranks and makers[one].keys() == events.keys() and found.group[one] == found.group[number]:
                before[number] = one
    behind = {one: number for number, one in before.items()}
    queues = []
    for head in behind.keys() - before.keys():
        queue = [head]
        while queue[-1] in behind:
            queue.append(behind[queue[-1]])
        queues.append(queue)
    return sorted(queues)


def _groups_by_name(exchanges: Exchanges | None, step: str) -> dict[str, str]:
    if exchanges is None:
        return {}
    rows = np.flatnonzero(np.array(exchanges.steps, object)[exchanges.step] == step)
    return {exchanges.names[exchanges.name[i]]: exchanges.groups[exchanges.group[i]] for i in rows}


def moving_us(exchanges: Exchanges | None, step: str) -> dict[str, float]:
    """Operation -> microseconds in which its data moves, where that is told."""
    if exchanges is None:
        return {}
    rows = np.flatnonzero(np.array(exchanges.steps, object)[exchanges.step] == step)
    told = zip(exchanges.name[rows].tolist(), exchanges.transit_us[rows].tolist(), strict=True)
    return {exchanges.names[name]: us for name, us in told if us > 0}


def _handovers(chain: Chain, exchanges: Exchanges | None, layout: Partition) -> list[Handover]:
    group_of = _groups_by_name(exchanges, chain.step)
    return [
        Handover(
            i, kind_of(name), chain.origin_ns / 1000 + float(chain.start[i] + chain.busy[i]),
            frozenset(layout.groups.get(group_of.get(name, ""), ())),
        )
        for i, name in enumerate(chain.name)
        if name and kind_of(name) in POINT_TO_POINT
    ]  # fmt: skip


def _one_clock(found: Model) -> None:
    """Shifts the ranks so that the first meeting of any two ends together: hosts' clocks differ."""
    ends: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for number, events in enumerate(found.members):
        for rank, i in events.items():
            chain = found.chains[rank]
            ends[rank].append((number, float(chain.start[i] + chain.busy[i])))
    at = {rank: dict(pairs) for rank, pairs in ends.items()}
    for root in sorted(found.chains):
        if root in found.begin:
            continue
        found.begin[root] = 0.0
        waiting = [root]
        while waiting:
            rank = waiting.pop()
            for number, end in ends[rank]:
                for other in found.members[number]:
                    if other not in found.begin:
                        found.begin[other] = found.begin[rank] + end - at[other][number]
                        waiting.append(other)
