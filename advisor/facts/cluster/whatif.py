"""The step without several of its causes at once: what overlaps is not counted twice, and who hides whom is seen.

A step waits for its last rank, and a slow link costs nothing while all wait for a slow rank anyway; so what two
remedies give together is neither the sum of what each gives nor the larger of the two. It is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from advisor.facts.account.shortened import in_line, shorter_by
from advisor.facts.base import Run, computed
from advisor.facts.cluster.groups import joint_gain, on_average, paced_together
from advisor.facts.cluster.lateness import Lateness, latenesses
from advisor.facts.cluster.link_gain import link_gain, shortened
from advisor.facts.cluster.links import links_behind
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.peers import kernel_speeds
from advisor.facts.cluster.pipeline.beside import beside_changes
from advisor.facts.cluster.pipeline.evening import (
    evened_stages,
    moved_transfers,
    room_for_evening,
    slow_among,
    together,
)
from advisor.facts.cluster.pipeline.recomputing import relieved_stages
from advisor.facts.cluster.replay import Change, corrections, gain, model, play, slow_besides
from advisor.facts.cluster.segments import uneven_segments
from advisor.facts.collectives.link_speed import Link
from advisor.model import Subject

MOST_EVENTS = 4_000_000
"""Events of all replays together that are worth waiting for: a million take about three seconds."""
KERNELS = "kernels"
"""What a cure removes that shortens kernels of a type, or of all, on every rank."""
LATE = ("compute", "host", "data", "late")
WORK: Mapping[str, Callable[[Run], Mapping[int, Change] | None]] = {
    "stages": evened_stages,
    "recomputing": relieved_stages,
    "beside": beside_changes,
    "segments": lambda run: None if (found := uneven_segments(run)) is None else found.changes,
}
"""Work that is spread anew over all ranks: of a rank that is slow besides, that is put right as well."""


class Cure(Struct, frozen=True):
    """What is put right: one of `ruleset.rule.REMOVES` about a subject."""

    removes: str
    subject: Subject
    us: float = 0.0
    """What kernels of the subject take less, where that is what is put right (`KERNELS`)."""


def events(run: Run) -> int:
    """How many events one replay of the step runs through; 0 without a replay."""
    found = model(run)
    return 0 if found is None else sum(len(chain.name) for chain in found.chains.values())


def affordable(run: Run, most: int) -> int:
    """How many causes, at most so many, may have all their subsets replayed."""
    one = events(run)
    return next((n for n in range(most, 1, -1) if one * 2**n <= MOST_EVENTS), 1)


def joint_saving(run: Run, cures: Sequence[Cure]) -> float | None:
    """Microseconds a step gains with all of these put right at once; None where nothing tells."""
    late, parts = _late(run, cures)
    links = _links(run, cures)
    work = any(cure.removes in (*WORK, "speed", KERNELS) for cure in cures)
    if late is None or (not late and not links and not work):
        return None
    found, prepared = _model(run, cures), _prepared(run, cures)
    if found is not None and prepared is not None:
        changes, pure = prepared
        often = [entry.recurrence for entry in late] or [1.0]
        whole = gain(found, changes, pure)
        if whole and not links and any(cure.removes == "stages" for cure in cures):
            room = room_for_evening(run, slow_among(late))
            whole = whole if room is None else min(whole, room)
        pace = paced_together(run)
        if whole and pace is not None and {rank for rank, part in parts.items() if part == "data"} >= set(pace.ranks):
            often = [pace.reaching_us(found.step, whole) / whole]
        elif whole and set(parts.values()) == {"data"} and not links and not work:
            return on_average(run, late, whole)
        # what is there in a part of the steps only gives on average that part of what it adds
        sometimes = float(np.median(often))
        if whole is None or sometimes >= 1 or not late:
            return whole
        steady = gain(found, _staying(run, cures, changes), pure) or 0.0
        return steady + max(whole - steady, 0.0) * sometimes
    told = [joint_gain(run, late)[0]] if late else []
    told += [shorter] if links and (shorter := link_gain(run, links, False)) is not None else []
    return sum(told) if told and not work else None


def new_shares(run: Run, cures: Sequence[Cure]) -> dict[int, float]:
    """rank -> its own computing as a share of the step without these causes; empty where the step is not replayed."""
    found, prepared = model(run), _prepared(run, cures)
    if found is None or prepared is None:
        return {}
    changes, pure = prepared
    step = play(found, changes, pure)
    if not step:
        return {}
    return {rank: min(_computing(found, rank, changes.get(rank)) / step, 1.0) for rank in sorted(found.chains)}


def _computing(found: Model, rank: int, change: Change | None) -> float:
    chain = found.chains[rank]
    factor = np.ones(len(chain.name)) if change is None else np.broadcast_to(change.compute, len(chain.name))
    return float((chain.busy * factor)[chain.computes].sum())


def _model(run: Run, cures: Sequence[Cure]) -> Model | None:
    """The step to replay: where kernels get shorter, collectives queue that did not before."""
    if not any(cure.removes == KERNELS for cure in cures):
        return model(run)
    alone = all(cure.removes == KERNELS for cure in cures)
    return in_line(run) if alone or model(run) is not None else None


def _prepared(run: Run, cures: Sequence[Cure]) -> tuple[dict[int, Change], dict[int, float]] | None:
    found = _model(run, cures)
    if found is None:
        return None
    late, parts = _late(run, cures)
    changes: dict[int, Change] = {}
    for cure in cures:
        mine: Mapping[int, Change] | None = {}
        if cure.removes in LATE:
            entries, own = _late(run, [cure])
            mine = corrections(run, entries or (), own) if entries else None
        if mine is None or late is None:
            return None
        for rank, change in mine.items():
            changes[rank] = changes[rank].beside(change) if rank in changes else change
    for rank in {rank for cure in cures if cure.removes == "speed" for rank in cure.subject.ranks}:
        if not (speed := slow_besides(run).get(rank)):
            return None
        changes[rank] = changes.get(rank, Change()).times(Change(1 / speed))
    if any(cure.removes == "segments" for cure in cures):
        # where each stretch gets its fair share of work, a slow card is slow by its kernels, not by what it had to do
        slow = {rank: kernel_speeds(run).get(rank, 1.0) for rank, part in parts.items() if part == "compute"}
        changes.update({rank: Change(1 / speed) for rank, speed in slow.items() if speed > 1})
    for what in sorted({cure.removes for cure in cures if cure.removes in WORK}):
        if (evened := WORK[what](run)) is None:
            return None
        changes = together(changes, evened)
    for cure in (cure for cure in cures if cure.removes == KERNELS):
        less = shorter_by(found, cure.subject.id if cure.subject.kind == "operator_type" else "", cure.us)
        if not less:
            return None
        for rank, change in less.items():
            changes[rank] = changes.get(rank, Change()).times(change)
    links = _links(run, cures)
    pure = shortened(run, found, links) if links else {}
    if any(cure.removes == "stages" for cure in cures):
        moved = moved_transfers(run)
        pure |= {one: us * pure.get(one, found.pure[one]) / found.pure[one] for one, us in moved.items() if us}
    return changes, pure


def _staying(run: Run, cures: Sequence[Cure], changes: Mapping[int, Change]) -> dict[int, Change]:
    """The changes of what is wrong in every step."""
    late, _ = _late(run, cures)
    seldom = {entry.rank for entry in late or () if entry.recurrence < 1}
    return {rank: change for rank, change in changes.items() if rank not in seldom}


def _late(run: Run, cures: Sequence[Cure]) -> tuple[list[Lateness] | None, dict[int, str]]:
    """The late ranks behind the cures and the part of each that is put right; None where one is not known."""
    known, pace = latenesses(run), paced_together(run)
    fed = () if pace is None else pace.ranks
    parts: dict[int, str] = {}
    for cure in cures:
        if cure.removes in LATE:
            if not cure.subject.ranks or not set(cure.subject.ranks) <= known.keys():
                return None, {}
            for rank in cure.subject.ranks:
                entry = known[rank]
                part = entry.cause if cure.removes == "late" else cure.removes
                if entry.parts.get(part, 0.0) > 0 or (part == "data" and rank in fed):
                    parts[rank] = part
    return [known[rank] for rank in sorted(parts)], parts


def _links(run: Run, cures: Sequence[Cure]) -> list[Link]:
    behind = _behind(run)
    found = [link for cure in cures if cure.removes == "links" for link in behind.get(_named(cure.subject), ())]
    return list({id(link): link for link in found}.values())


@computed
def _behind(run: Run) -> dict[tuple[str, str, bool], list[Link]]:
    return {_named(subject): links for subject, links in links_behind(run).items()}


def _named(subject: Subject) -> tuple[str, str, bool]:
    """All links of a host are told as those of its first rank, with all its ranks."""
    return subject.kind, subject.id, "*" in subject.id and len(subject.ranks) > 1
