"""Who does a rank's work and was not compared with it: among these there may be one that the others wait for instead.

The ranks of one stage do the same work. Ranks of other stages may be absent: that a rank takes longer than all others
of its own stage is certain without them, and so is who comes last: it waits for nobody, whoever is absent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats
from advisor.basics.intervals import measure, union
from advisor.facts.base import Run, computed, fact, kind
from advisor.facts.cluster.peers import medians_of_others
from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.collectives.exposure import exposures, joints
from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.device.chain import Chain
from advisor.facts.device.course import COURSE
from advisor.knowledge.measuring import limit
from advisor.model import Fact, Subject
from advisor.sources.folders import natural
from advisor.sources.topology import joined

AWAITED = limit("meetings", "awaited")
_STEPS_TOLD = limit("meetings", "steps_told")
CAME_LAST = limit("peers", "came_last")
"""Part of the waiting in shared collectives in which a rank came last: then it is seen to be later than the others."""

_NEEDS = "collectives"
ARRIVALS = (
    kind("rank.awaited_us", "us", "rank",
         "how long each of the others waits in collectives in which this rank comes last, per step; computation may "
         "run beside a part of it", formula="Σ mean over the others of (their elapsed − its elapsed)", needs=_NEEDS),
    kind("rank.moving_excess_us", "us", "rank",
         "how much longer data moves in its collectives than in those of the others, per step: its links are slow",
         formula="Σ transit − median of the same over the other ranks", needs=_NEEDS),
    kind("rank.awaited_share", "ratio", "rank", "the same as a share of the step", needs=_NEEDS),
    kind("rank.awaited_chance", "ratio", "rank",
         "how probably, were all as often late as this one, some rank would come last in all of the collectives in "
         "which this one does: of two collectives one rank of eight is last in both for nothing in one case of eight",
         formula="ranks ^ (1 − collectives in which it comes last)", needs=_NEEDS),
    kind("rank.awaited_received", "ratio", "rank",
         "part of what the others wait for it in which it waits for an earlier rank itself: its receives last longer "
         "than theirs", formula="Σ over steps of min(its receives − median of theirs, their waits) ÷ Σ their waits",
         needs=_NEEDS),
    kind("communication.behind_absent_us", "us", "run",
         "what runs behind the last wait for ranks without a profile, per step; only where these waits are long: what "
         "the ranks at hand do before it makes no step shorter by itself",
         formula="highest over ranks of the end of the step − the end of that wait; waits of less than a twentieth of "
                 "the step together, from the end of the step, are none", needs="collectives kernels"),
    kind("communication.behind_absent_idle_us", "us", "run",
         "what of communication.behind_absent_us a rank at hand idles: a host that launches sooner gives no more",
         formula="highest over ranks", needs="collectives kernels"),
    kind("communication.behind_absent_computing_us", "us", "run",
         "what of communication.behind_absent_us a rank at hand computes: less of it gives no more",
         formula="highest over ranks", needs="collectives kernels"),
    kind("operator_type.behind_absent_us", "us", "operator_type", "what of that is its kernels' time",
         formula="highest over ranks", needs="collectives kernels"),
    kind("rank.awaited_in_steps", "ratio", "rank",
         "share of the steps in which the others wait for it longest; without the first recorded one, which may live "
         "on what was prepared before it; only where half of the recorded steps have collectives", needs=_NEEDS),
)  # fmt: skip


@computed
def workmates(run: Run) -> dict[int, frozenset[int]]:
    """rank at hand -> all ranks of its stage, at hand or not, itself among them; only ranks for which that is told."""
    layout = partition(run)
    at_hand = {rank.rank for rank in run.ranks}
    world = max(run.profile.world_size or 0, len(at_hand))
    everyone = frozenset(range(world)) | at_hand
    stages = layout.pipeline or 1
    if stages < 2:
        return dict.fromkeys(layout.stage, frozenset(everyone))
    if layout.guessed or len(everyone) % stages:
        return {}
    size = len(everyone) // stages
    together = [layout.groups[g] for g in layout.told if layout.role.get(g) in ("data", "tensor", "expert")]
    known = {rank: frozenset(part) for part in joined(g for g in together if g) for rank in part if len(part) == size}
    found = {rank: known.get(rank) or _of_stage(layout, stage, everyone, size) for rank, stage in layout.stage.items()}
    return {rank: mates for rank, mates in found.items() if mates is not None}


def _of_stage(layout: Partition, stage: int, everyone: frozenset[int], size: int) -> frozenset[int] | None:
    """The ranks of a stage: by who hands over to whom, else equal blocks of numbers; None where neither fits."""
    if layout.chains:
        placed = {chain[stage] for chain in layout.chains if stage < len(chain)}
        return frozenset(placed) if len(placed) == size else None
    if any(own != rank // size for rank, own in layout.stage.items()):
        return None
    return frozenset(rank for rank in everyone if rank // size == stage)


def absent_mates(run: Run, ranks: Sequence[int]) -> int:
    """How many ranks do the same work as these and are not among them; 0 where nobody tells."""
    told = (workmates(run).get(rank) for rank in ranks)
    return len(frozenset[int]().union(*(mates for mates in told if mates is not None)) - set(ranks))


def uncompared(run: Run, ranks: Sequence[int], compared: Set[int]) -> frozenset[int] | None:
    """The ranks that do the same work as these and are not among those `compared`, nor seen to arrive before one of
    these; None where nobody tells who does the same work."""
    told = [workmates(run).get(rank) for rank in ranks]
    known = [mates for mates in told if mates is not None]
    if not known or len(known) < len(told):
        return None
    others = frozenset[int]().union(*known) - compared - set(ranks)
    return others - _seen_before(run, ranks) if others else others


def waits_for_nobody(run: Run, rank: int) -> bool | None:
    """Whether no absent rank can be later than this one: where it comes last of those at hand, what it is inside its
    collectives beyond the transfer is little beside what the others wait for it. None where nobody tells transfers."""
    own = caused = 0.0
    for joint in joints(run):
        if joint.complete or rank not in joint.ranks:
            continue
        mine = joint.ranks.index(rank)
        told = (np.argmin(joint.elapsed_us, axis=1) == mine) & np.isfinite(joint.transit_us[:, mine])
        moved = (joint.elapsed_us if joint.paced else joint.transit_us)[told, mine]
        beyond = joint.elapsed_us[told, mine] - moved
        own += float(np.maximum(beyond, 0.0) @ joint.per_step[told])
        caused += float(joint.wait_us[told].sum(axis=1) @ joint.per_step[told]) / max(len(joint.ranks) - 1, 1)
    return own <= (1 - CAME_LAST) * (own + caused) if caused > 0 else None


def _seen_before(run: Run, ranks: Sequence[int]) -> set[int]:
    """Ranks that wait for these in nearly all collectives that they have together."""
    caused: dict[int, float] = {}
    total: dict[int, float] = {}
    for joint in joints(run):
        mine = [joint.ranks.index(rank) for rank in ranks if rank in joint.ranks]
        if not mine:
            continue
        wait = joint.wait_us
        own = wait[:, mine].min(axis=1)
        last = np.isin(np.argmin(joint.elapsed_us, axis=1), mine)
        for column, other in enumerate(joint.ranks):
            if other not in ranks:
                ahead = (wait[:, column] - own) * joint.per_step
                caused[other] = caused.get(other, 0.0) + float(np.nansum(np.maximum(ahead[last], 0.0)))
                total[other] = total.get(other, 0.0) + float(np.nansum(np.abs(ahead)))
    return {other for other, us in total.items() if us > 0 and caused[other] >= CAME_LAST * us}


def held_up_us(run: Run, late: Set[int]) -> float:
    """What the others wait for these ranks in collectives, whichever of them comes last, microseconds a step, of the
    rank that waits longest: what they wait for one another ends as well once all of these are on time. What computing
    hides of it lengthens no step."""
    waited: dict[int, float] = defaultdict(float)
    for joint in joints(run):
        others = [column for column, rank in enumerate(joint.ranks) if rank not in late]
        if 0 < len(others) < len(joint.ranks):
            us = float(np.nansum(joint.wait_us[:, others].min(axis=1) * joint.per_step))
            for column in others:
                waited[joint.ranks[column]] += us
    exposed = exposures(run)
    return max((min(us, exposed[rank].wait) for rank, us in waited.items() if rank in exposed), default=0.0)


def late_wait(joint: Joint, waited_us: Floats, transit_us: Floats) -> Floats:
    """Microseconds of each wait for absent ranks (one an operation) that only a late one explains: those before the
    first transfer, where the profiler books waits, else those beyond what all of them are to their transfers."""
    ratio = float(waited_us.sum()) / max(float(np.maximum(transit_us, 0.0).sum()), 1e-9)
    told = np.isfinite(joint.early)
    early = np.nansum(joint.early, axis=1) / np.maximum(told.sum(axis=1), 1) * waited_us
    beyond = np.maximum(waited_us - ratio * transit_us, 0.0)
    return np.where(told.any(axis=1), early, np.where(transit_us > 0, beyond, 0.0))


class Behind(Struct, frozen=True):
    """What runs behind the last wait for ranks without files, microseconds of a step."""

    us: float
    idle_us: float
    computing_us: float
    of_type: dict[str, float]
    """Operator type -> what of the computing its kernels take, also of types that take none of it."""


def behind_absent(run: Run, step_us: float) -> Behind | None:
    """The most of each over the ranks at hand; None where ranks without files are not waited for long, or no kernels
    tell when."""
    found = []
    for rank, course in run.each(COURSE).items():
        if course.chain is None:
            continue
        chain, waited, moved = course.chain, dict[str, float](), dict[str, float]()
        for joint in joints(run):
            if joint.complete or joint.paced or rank not in joint.ranks:
                continue
            transit = np.nan_to_num(joint.transit_us).max(axis=1)
            for row in np.flatnonzero((transit > 0) & joint.in_steps({chain.step})).tolist():
                name = joint.names[row].rpartition("/")[2]
                moved[name] = float(transit[row])
                waited[name] = max(float(joint.pure_us[row] - transit[row]), 0.0)
        late = 0.0
        for i in range(len(chain.name) - 1, -1, -1):
            late += waited.get(chain.name[i], 0.0)
            if late >= AWAITED * step_us:
                found.append(_behind(chain, float(chain.start[i] + chain.busy[i]) - moved[chain.name[i]]))
                break
    if not found:
        return None
    types = {name for each in found for name in each.of_type}
    most = {name: max(each.of_type.get(name, 0.0) for each in found) for name in types}
    us, idle, computing = (max(getattr(each, name) for each in found) for name in ("us", "idle_us", "computing_us"))
    return Behind(us, idle, computing, most)


def _behind(chain: Chain, met_us: float) -> Behind:
    """What the chain holds behind this moment, microseconds from its origin."""
    ends = chain.start + chain.busy + chain.gap
    last = float(ends.max())
    length = np.maximum(ends - chain.start, 1e-9)
    part = np.where(chain.computes, np.clip((ends - met_us) / length, 0.0, 1.0), 0.0)
    bounds = (np.rint(np.maximum(each, met_us) * 1000).astype(np.int64) for each in (chain.start, ends))
    taken = measure(union(*bounds)) / 1000
    idle = max(last - met_us - taken, 0.0) + float((chain.gap * part).sum())
    of_type = {name: float((busy * part).sum()) for name, busy in chain.of_type.items()}
    return Behind(max(last - met_us, 0.0), idle, float((chain.working * part).sum()), of_type)


def received_us(exchanges: Mapping[int, Exchanges]) -> dict[int, dict[str, float]]:
    """rank -> step -> microseconds inside its receives; only ranks that have any."""
    found: dict[int, dict[str, float]] = {}
    for rank, ex in exchanges.items():
        receives = np.isin(ex.kinds(), ("receive", "batchsendrecv"))
        if receives.any():
            sums = np.bincount(ex.step[receives], (ex.elapsed_us * ex.weight)[receives], len(ex.steps))
            found[rank] = dict(zip(ex.steps, sums.tolist(), strict=True))
    return found


def measure_arrivals(
    together: Sequence[Joint],
    step_us: float | None,
    recorded: int,
    receives: Mapping[int, Mapping[str, float]],
) -> Iterator[Fact]:
    """Of each rank what the others wait for it; `recorded` is the number of steps, with collectives or without,
    `receives` what `received_us` tells."""
    awaited: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    chance: dict[int, float] = defaultdict(float)
    moving: dict[int, float] = defaultdict(float)
    for joint in together:
        moved = np.nansum(joint.transit_us * joint.per_step[:, None], axis=0)
        for rank, us in zip(joint.ranks, moved.tolist(), strict=True):
            moving[rank] += us
        if len(joint.ranks) < 2:
            continue
        others = joint.wait_us.sum(axis=1) * joint.behind / (len(joint.ranks) - 1)
        last = np.argmin(joint.elapsed_us, axis=1)
        for step, column, us in zip(joint.steps, last, others, strict=True):
            awaited[joint.ranks[int(column)]][step] += float(us)
        for column, times in enumerate(np.bincount(last, joint.behind).tolist()):
            chance[joint.ranks[column]] += times * math.log(len(joint.ranks))
    steps = sorted({step for joint in together for step in joint.steps}, key=natural)
    samples = len(steps)
    told = steps[1:] if samples > 2 else steps
    longest = [max(awaited, key=lambda rank: awaited[rank].get(step, 0.0)) for step in told if awaited]
    beside: dict[int, set[int]] = defaultdict(set)
    for joint in together:
        for rank in joint.ranks:
            beside[rank].update(joint.ranks)
    usual = medians_of_others(moving)
    for rank, waits in sorted(awaited.items()):
        subject, sources = Subject("rank", str(rank), (rank,)), together[0].sources
        us = sum(waits.values()) / samples
        yield from fact("rank.awaited_us", subject, us, *sources, samples=samples)
        ranks = len(beside[rank])
        by_chance = min(math.exp(math.log(ranks) - chance[rank]), 1.0) if ranks > 1 else None
        yield from fact("rank.awaited_chance", subject, by_chance, *sources, samples=samples)
        excess = moving[rank] - usual[rank] if len(usual) > 1 else None
        yield from fact("rank.moving_excess_us", subject, excess, *sources, samples=samples)
        yield from fact("rank.awaited_share", subject, us / step_us if step_us else None, *sources, samples=samples)
        if sum(waits.values()) > 0 and rank in receives:
            handed = 0.0
            for step, waited in waits.items():
                theirs = [receives.get(other, {}).get(step, 0.0) for other in sorted(beside[rank] - {rank})]
                handed += min(max(receives[rank].get(step, 0.0) - float(np.median(theirs)), 0.0), waited)
            yield from fact("rank.awaited_received", subject, handed / sum(waits.values()), *sources, samples=samples)
        part = longest.count(rank) / len(longest) if samples >= _STEPS_TOLD * recorded else None
        yield from fact("rank.awaited_in_steps", subject, part, *sources, samples=samples)
