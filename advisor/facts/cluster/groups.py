"""Ranks that are late from one thing are one cause: one by one they gain nothing, for a step waits for its last.

Of one thing means: the same part of the step, by about the same time, about as often. Hosts that launch as slowly as
one another are one thing too: inside of a step each of their ranks waits for the others of them, and how long it idles
by itself is chance. More work to do is one thing however much of it each has beyond what equal ranks differ by; loaders
that limit their ranks alike, whoever waits longest. What a group gives is replayed for all of it at once; without
kernels the pipeline's schedule, else how much later they are than the next, tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from advisor.facts.base import Run, computed
from advisor.facts.cluster.accounts import PARTS, Accounts, accounts
from advisor.facts.cluster.lateness import ALIKE, Lateness, latenesses, spared_first
from advisor.facts.cluster.pipeline.stages import micro_batches
from advisor.facts.cluster.replay import corrections, gain, has_more_work, model, more_work_us, what_if_late
from advisor.facts.collectives.exposure import exposures
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.collectives.schedule import guess_micro_batches, pipeline_us
from advisor.facts.collectives.workmates import absent_mates, held_up_us
from advisor.facts.data.common_pace import CommonPace, common_pace
from advisor.facts.host.dispatch import LAUNCHES
from advisor.facts.host.owners import COVERS
from advisor.facts.host.timeline import IDLE
from advisor.knowledge.measuring import limit

NOISE = limit("lateness", "noise")
"""Part of its computation by which a rank computes longer than its peers by chance."""
REPLAYS = 6
"""Groups of late ranks whose mending is replayed, the latest first."""


@computed
def groups(run: Run) -> dict[int, tuple[int, ...]]:
    """rank -> the ranks late from the same thing, itself among them, in order; only ranks that others wait for."""
    late = latenesses(run)
    found: dict[int, tuple[int, ...]] = {}
    for cause in sorted({entry.cause for entry in late.values()}):
        size = {r: e.late_us if cause == "unknown" else e.parts[cause] for r, e in late.items()
                if e.late_us > 0 and e.cause == cause}  # fmt: skip
        rest = sorted(size, key=lambda r: (-size[r], r))
        while rest:
            first = rest[0]
            loaded = {r for r in rest if cause == "compute" and _has_more_work(run, late[r])}
            fed = {r for r in rest if cause == "data" and _is_fed(run, late[r])}
            # uneven work is dealt anew all at once; a slow card beside it is another thing
            group = [
                r for r in rest
                if (r in loaded) == (first in loaded) and (r in fed) == (first in fed)
                and (first in loaded or size[first] <= ALIKE * size[r] or _launch_alike(run, late[first], late[r]))
                and _as_often(late[first], late[r])
            ]  # fmt: skip
            rest = [r for r in rest if r not in group]
            found.update(dict.fromkeys(group, tuple(sorted(group))))
    pace = paced_together(run)
    if pace is not None:
        found.update({r: pace.ranks for r in pace.ranks if r in found and late[r].cause == "data"})
    return dict(sorted(found.items()))


def _is_fed(run: Run, entry: Lateness) -> bool:
    """Whether a rank that starts its steps late does so for something else than its loader, as its timeline tells."""
    idle = run.each(IDLE).get(entry.rank)
    waits = np.empty(0) if idle is None or idle.loader_us is None else idle.loader_us[np.isfinite(idle.loader_us)]
    return waits.size > 0 and float(waits.mean()) < COVERS * entry.parts["data"]


def _launch_alike(run: Run, one: Lateness, other: Lateness) -> bool:
    """Whether the hosts of both ranks launch at about one pace, and clearly slower than those of ranks on time."""
    if one.cause != "host":
        return False
    paces = _launch_intervals(run)
    if one.rank not in paces or other.rank not in paces:
        return False
    on_time = [us for rank, us in paces.items() if rank not in _late_ranks(run)]
    fast, slow = sorted((paces[one.rank], paces[other.rank]))
    return bool(on_time) and fast >= ALIKE * float(np.median(on_time)) and slow <= ALIKE * fast


@computed
def _launch_intervals(run: Run) -> dict[int, float]:
    """rank -> microseconds from one launch to the next, where launches are told."""
    return {rank: found.interval_us for rank, found in run.each(LAUNCHES).items() if found.interval_us}


def _late_ranks(run: Run) -> set[int]:
    return {rank for rank, entry in latenesses(run).items() if entry.late_us > 0}


def _has_more_work(run: Run, entry: Lateness) -> bool:
    """Whether more work makes it late, by more than equal ranks differ anyway."""
    balance = accounts(run)
    if balance is not None and entry.rank in balance.ranks:
        own = float(np.nanmedian(balance.compute[balance.ranks.index(entry.rank)]))
        if entry.parts.get("compute", 0.0) <= NOISE * own:
            return False
    return has_more_work(run, entry)


@computed
def paced_together(run: Run) -> CommonPace | None:
    """The ranks whose loaders together set the pace, where it is known what mending all of them gives: stages hide a
    part of their waits behind one another, which a replay alone tells."""
    pace = common_pace(run)
    if pace is None or not set(pace.ranks) <= latenesses(run).keys():
        return None
    return pace if model(run) is not None or len(partition(run).peers()) < 2 else None


def _with_all_fed(run: Run, pace: CommonPace, slow: Sequence[Lateness]) -> tuple[float, str]:
    """What the mean step gains where none of these waits for data: of what the replayed step loses, as much as reaches
    its end."""
    found, changes = model(run), corrections(run, slow, dict.fromkeys(pace.ranks, "data"))
    if found is None or changes is None:
        return pace.gain_us, "comparison"
    replayed = gain(found, changes)
    return (pace.gain_us, "comparison") if replayed is None else (pace.reaching_us(found.step, replayed), "replay")


def _as_often(one: Lateness, other: Lateness) -> bool:
    """Whether they are late in about as many steps."""
    more, less = max(one.recurrence, other.recurrence), min(one.recurrence, other.recurrence)
    return more <= ALIKE * less or more == less


@computed
def group_gains(run: Run) -> dict[tuple[int, ...], tuple[float, str]]:
    """group -> (what a step gains on average with all of it on time, microseconds; how that is known)."""
    late = latenesses(run)
    by_size = sorted(set(groups(run).values()), key=lambda g: (-max(late[r].late_us for r in g), g))
    return {
        group: joint_gain(run, [late[r] for r in group], replayed=place < REPLAYS)
        for place, group in enumerate(by_size)
    }


def joint_gain(run: Run, slow: Sequence[Lateness], *, replayed: bool = True) -> tuple[float, str]:
    """What a step gains where all these ranks do as their peers, on average over steps in which they are late and those
    in which they are not; and how that is known: replay, schedule or comparison."""
    pace = paced_together(run)
    if pace is not None and {entry.rank for entry in slow} == set(pace.ranks) and "data" in {e.cause for e in slow}:
        return _with_all_fed(run, pace, slow)
    often = _often(slow)
    found, balance = model(run), accounts(run)
    step = found.step if found is not None else None
    shown = step is None or balance is None or is_late_in(step, balance, slow)
    gained = what_if_late(run, slow) if replayed and shown else None
    layout, late = partition(run), latenesses(run)
    if gained is not None:
        return on_average(run, slow, min(gained, _waited_for(slow, layout, _late_exposed_us(run, slow)))), "replay"
    mine = {entry.rank for entry in slow}
    compared, held = 0.0, held_up_us(run, mine) if late_one_by_one(slow) else 0.0
    for kin in {layout.kin.get(rank) for rank in mine}:
        here = [entry.late_us for entry in slow if layout.kin.get(entry.rank) == kin]
        others = [e.late_us for r, e in late.items() if r not in mine and layout.kin.get(r) == kin]
        compared = max(compared, max(here) - max(others, default=0.0), min(held, sum(here)))
    if slow and all(entry.cause == "compute" and has_more_work(run, entry) for entry in slow):
        compared = min(
            compared,
            max(_above_mean(balance, members, mine, absent_mates(run, members)) for members in layout.peers().values()),
        )
    elif slow and all(entry.cause == "compute" for entry in slow):
        compared -= min(max(_kept(run, entry, layout, mine) for entry in slow), compared)
    scheduled = _scheduled(run, slow, layout)
    if scheduled is not None and scheduled < compared:
        return scheduled * often, "schedule"
    return compared * often, "comparison"


def on_average(run: Run, slow: Sequence[Lateness], gained: float) -> float:
    """What the mean step gains with these ranks on time, microseconds, where the replayed one gains so much: of waits
    for data as much is hidden in every step, however long they are (where all of it is, nobody knows how much more
    would be); of anything else the part of the steps in which they are late."""
    found, balance = model(run), accounts(run)
    if found is None or balance is None or found.step not in balance.steps:
        return gained * _often(slow)
    if not gained > 0 or {entry.cause for entry in slow} != {"data"}:
        return gained * _often(slow)
    late = np.zeros(len(balance.steps))
    for entry in slow:
        late = np.fmax(late, balance.above_others("data", entry.rank))
    hidden = float(late[balance.steps.index(found.step)]) - gained
    spared = any(spared_first(balance.above_others("data", e.rank), e.parts["data"]) for e in slow)
    return float(np.maximum(late[spared:] - max(hidden, 0.0), 0.0).mean())


def _often(slow: Sequence[Lateness]) -> float:
    """How often these ranks are late, of all steps; of nobody all."""
    return float(np.median([entry.recurrence for entry in slow])) if slow else 1.0


def _kept(run: Run, entry: Lateness, layout: Partition, mine: set[int]) -> float:
    """Microseconds of a step that a rank of these keeps of the work which its peers do not have, dealt out evenly."""
    members = next((found for found in layout.peers().values() if entry.rank in found), [entry.rank])
    return more_work_us(run, entry) * len(mine.intersection(members)) / len(members)


def _above_mean(balance: Accounts | None, members: Sequence[int], mine: Collection[int], absent: int = 0) -> float:
    """By how much the one of these ranks that computes longest does so longer than the mean of all these members,
    microseconds a step: dealt anew, its work is the mean. Of those `absent` each computes as long as the others do."""
    if balance is None:
        return 0.0
    told = [rank for rank in members if rank in balance.ranks]
    computing = {r: float(np.nanmedian(balance.compute[balance.ranks.index(r)])) for r in told}
    most = max((us for rank, us in computing.items() if rank in mine), default=0.0)
    others = [us for rank, us in computing.items() if rank not in mine]
    missing = [float(np.median(others))] * absent if others else []
    return max(most - float(np.mean([*computing.values(), *missing])), 0.0) if most else 0.0


def is_late_in(step: str, balance: Accounts, slow: Sequence[Lateness]) -> bool:
    """Whether one of these ranks is as late in this step as it usually is, by half at least, as for the steadiness: the
    replay of a step that was spared tells nothing of the others. True where the step or the cause is not told apart."""
    for entry in slow:
        if step not in balance.steps or entry.cause not in PARTS or entry.rank not in balance.ranks:
            return True
        if not balance.above_others(entry.cause, entry.rank)[balance.steps.index(step)] < entry.parts[entry.cause] / 2:
            return True
    return False


def late_one_by_one(slow: Sequence[Lateness]) -> bool:
    """Whether these may be late for different collectives: where hosts are late, each for its own reasons, what the
    others wait is the sum. Who computes longer does so alike everywhere, or as the work was dealt."""
    return all(entry.cause == "host" for entry in slow)


def _waited_for(
    slow: Sequence[Lateness], layout: Partition, launched_late_us: Mapping[int, float] = MappingProxyType({})
) -> float:
    """How long the peers of these ranks wait for them, microseconds a step: no more is gained by ending it. A part of
    what makes a rank late may be hidden behind its own waiting. In a pipeline's lane most of what peers do for longer
    themselves lies in its bubbles: there it does not take the place of what they wait. Late launches of several hosts
    fall between different kernels: each waits for the others, and the peers for one after the other. What such a host
    launches into the background comes late as well, and is exposed on itself: rank -> `launched_late_us`."""
    if any(entry.across for entry in slow):
        return np.inf
    in_turn = late_one_by_one(slow)
    longest: dict[int | None, float] = {}
    for entry in slow:
        kin = layout.kin.get(entry.rank)
        waited = entry.late_us
        if waited > 0 and (layout.pipeline or 1) > 1:
            waited += sum(max(-us, 0.0) for us in entry.parts.values())
        waited += launched_late_us.get(entry.rank, 0.0)
        longest[kin] = longest.get(kin, 0.0) + waited if in_turn else max(longest.get(kin, 0.0), waited)
    return sum(longest.values())


def _late_exposed_us(run: Run, slow: Sequence[Lateness]) -> dict[int, float]:
    """What is exposed of each of these ranks that the replay launches as a peer, microseconds a step."""
    balance, changes = accounts(run), corrections(run, slow)
    if balance is None or changes is None:
        return {}
    likened = [rank for rank, change in changes.items() if change.like is not None]
    return {rank: float(np.nanmedian(balance.exposed[balance.ranks.index(rank)])) for rank in likened}


def _scheduled(run: Run, late: Iterable[Lateness], layout: Partition) -> float | None:
    """What the pipeline's step gains where these ranks compute as long as their peers, by its schedule; None where the
    ranks are late from something else, or where no schedule tells."""
    if (layout.pipeline or 1) < 2 or {entry.cause for entry in late} != {"compute"}:
        return None
    return with_less_work(run, {entry.rank: max(entry.parts["compute"], 0.0) for entry in late})


def with_less_work(run: Run, over: Mapping[int, float]) -> float | None:
    """What the pipeline's step gains where these ranks compute so much less (rank -> microseconds a step), by its
    schedule; None where there is none, or where neither files nor bubbles tell the micro-batches."""
    balance, layout = accounts(run), partition(run)
    if balance is None or (layout.pipeline or 1) < 2:
        return None
    computing = {r: float(us) for r, us in zip(balance.ranks, np.nanmedian(balance.compute, axis=1), strict=True)}
    stages = [[r for r in members if r in computing] for members in layout.peers().values()]
    if len(stages) != layout.pipeline or not all(stages):
        return None
    now = [max(computing[r] for r in members) for members in stages]
    then = [max(computing[r] - over.get(r, 0.0) for r in members) for members in stages]
    found = exposures(run)
    bubbles = [min((found[r].bubble for r in members if r in found), default=0.0) for members in stages]
    micro = micro_batches(run) or guess_micro_batches(now, bubbles)
    return pipeline_us(now, micro) - pipeline_us(then, micro) if micro else None
