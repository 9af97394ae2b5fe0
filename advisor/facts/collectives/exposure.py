"""What exposed communication consists of: transfer, waiting for late ranks, waiting for other stages (S20, S31, S36).

From kernels and collectives together where both are told, else estimated from sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import compress

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.base import Run, computed
from advisor.facts.collectives.exchanges import EXCHANGES, POINT_TO_POINT, Exchanges, kind_of
from advisor.facts.collectives.joints import Joint, join
from advisor.facts.collectives.parallelism import Partition, partition
from advisor.facts.device.forward import communicator
from advisor.facts.step.steps import steady, stepped_courses
from advisor.sources.coded import Coded

UNRECORDED = "unknown"
"""The purpose of exposed time of a rank whose collectives are not recorded."""


@computed
def joints(run: Run) -> list[Joint]:
    """Collectives of all ranks side by side, steady steps only."""
    layout = partition(run)
    world = max(run.profile.world_size or 0, len(run.ranks))
    told = {group: layout.groups[group] for group in layout.told}
    found = join(run.each(EXCHANGES), told, len({r.rank for r in run.ranks}) >= world)
    quiet = len(quiet_steps(run))
    return [part for joint in found if (part := _steady_part(joint, run, quiet)) is not None]


@computed
def quiet_steps(run: Run) -> frozenset[str]:
    """Steady steps in which no rank communicates, as all their step tables tell."""
    silent: frozenset[str] | None = None
    for times in steady(run).values():
        exposed, hidden = (times.phases.get(name) for name in ("exposed", "overlapped"))
        if exposed is None or hidden is None:
            return frozenset()
        own = frozenset(compress(times.steps, (exposed + hidden == 0).tolist()))
        silent = own if silent is None else silent & own
    return silent or frozenset()


def step_names(run: Run, seen: list[str]) -> set[str]:
    """Steady steps among those seen; all but the first where the step table and these files share no name."""
    if common := _steady_names(run) & set(seen):
        return common
    ordered = list(dict.fromkeys(seen))
    return set(ordered[1:] if len(ordered) > 2 else ordered)


@computed
def _steady_names(run: Run) -> set[str]:
    """Steady steps of any rank."""
    return {step for times in steady(run).values() for step in times.steps}


def _steady_part(joint: Joint, run: Run, quiet: int) -> Joint | None:
    keep = joint.in_steps(step_names(run, joint.steps))
    if not keep.any():
        return None
    return Joint(
        joint.group, joint.kind, joint.ranks, joint.members, joint.complete,
        [s for s, k in zip(joint.steps, keep, strict=True) if k],
        [n for n, k in zip(joint.names, keep, strict=True) if k],
        joint.ordinal[keep], joint.elapsed_us[keep], joint.transit_us[keep], joint.booked_us[keep],
        joint.start_ns[keep], joint.size_bytes[keep], joint.early[keep], joint.sources,
        joint.behind[keep], quiet,
    )  # fmt: skip


class Exposure(Struct):
    """Exposed communication of one rank, microseconds a step, by what it is."""

    transfer: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Purpose of the collectives (`Partition.purpose`) -> transfer nothing hides."""
    wait: float = 0.0
    bubble: float = 0.0
    known: bool = True
    """From kernels; else estimated from sums."""
    told: bool = True
    """Whether kernels or a step table tell how much is exposed at all; else it may be anything up to these sums."""
    bubble_told: bool = True
    """False where the tables of other ranks tell the bubble and this rank's does not: nothing comparable tells it."""


class _Alone(Struct, frozen=True, dict=True):
    """What is exposed of each collective. Names are looked at once: ranks share most of them, and there are tens of
    thousands."""

    names: list[str]
    labels: list[str]
    """The names without their path in the graph."""
    kinds: Coded
    """What the names say."""
    us: dict[int, tuple[Ints, Floats]]
    """rank -> (numbers of names, microseconds in a steady step), where its kernels tell them."""
    others: dict[int, dict[tuple[str, str], float]] = field(default_factory=dict)
    """rank -> what is exposed of those that are not named, by kind and communicator."""

    @cached_property
    def communicators(self) -> list[str]:
        """The communicator that each of the names tells."""
        return [*map(communicator, self.labels)]

    @classmethod
    def of(
        cls,
        told: Mapping[int, Mapping[str, float]],
        others: Mapping[int, dict[tuple[str, str], float]] | None = None,
    ) -> _Alone:
        """From the microseconds of each name on each rank, and of what is not named."""
        index: dict[str, int] = {}
        found = {}
        for rank, names in told.items():
            code = np.fromiter((index.setdefault(name, len(index)) for name in names), np.int64, len(names))
            found[rank] = code, np.fromiter(names.values(), np.float64, len(names))
        labels = [*map(_label, index)]
        return cls([*index], labels, Coded.of([*map(kind_of, labels)]), found, dict(others or {}))

    def by_kind(self, rank: int) -> defaultdict[str, float]:
        """Kind -> microseconds, named or not."""
        code, us = self.us[rank]
        sums = np.bincount(self.kinds.codes[code], us, len(self.kinds.told)).tolist()
        found = defaultdict[str, float](float, zip(self.kinds.told, sums, strict=True))
        for (kind, _), own in self.others.get(rank, {}).items():
            found[kind] += own
        return found


@computed
def _exposed(run: Run) -> _Alone:
    """The exposed collectives of all ranks."""
    told, others = {}, {}
    for rank, course in stepped_courses(run).items():
        steps = step_names(run, list(course.steps))
        if names := course.exposed_in(steps):
            told[rank], others[rank] = names, course.exposed_else_in(steps)
    return _Alone.of(told, others)


def _label(name: str) -> str:
    return name.rpartition("/")[2]


def longest_exposed(run: Run) -> tuple[str, float, int] | None:
    """(collective, microseconds a step, rank) of the one that is exposed longest; None where no kernels tell."""
    alone = _exposed(run)
    us = max((float(own.max()) for _, own in alone.us.values()), default=0.0)
    told = ((alone.labels[at], rank) for rank, (code, own) in alone.us.items() for at in code[own == us].tolist())
    name, rank = max(told, default=("", 0))
    return (name, us, rank) if us > 0 else None


def main_kind(run: Run) -> tuple[str, float] | None:
    """(kind, microseconds a step) of the collectives that take most of the exposed time of the middle rank, by the
    names of its kernels alone; None where no kernels tell. Stages that wait for each other have findings of their own.
    """
    alone = _exposed(run)
    sums = [alone.by_kind(rank) for rank in alone.us]
    kinds = {kind for own in sums for kind in own} - {*POINT_TO_POINT, "other"}
    us, kind = max(((float(np.median([own[kind] for own in sums])), kind) for kind in kinds), default=(0.0, ""))
    return (kind, us) if us > 0 else None


def hidden_beside_attention(run: Run) -> float | None:
    """Microseconds a step of exposed hops of a ring that attention on another block could hide, of the middle rank: of
    each no more than moves data, nor than there is attention. None where kernels name no such hop."""
    if partition(run).ring != "context":
        return None
    found = []
    for rank, course in stepped_courses(run).items():
        steps = step_names(run, list(course.steps))
        if beside := course.beside_in(steps):
            alone, moving = course.exposed_in(steps), _moving(run, rank, steps)
            limits = ((us, alone.get(name, 0.0), moving.get(_label(name), us)) for name, us in beside.items())
            found.append(sum(map(min, limits)))
    return float(np.median(found)) if found else None


def _moving(run: Run, rank: int, steps: Collection[str]) -> dict[str, float]:
    """Collective -> microseconds in which it moves data, a step, where its own file tells it of all of them."""
    ex: Exchanges | None = run.each(EXCHANGES).get(rank)
    if ex is None or not ex.is_whole:
        return {}
    inside = np.array([step in steps for step in ex.steps], bool)[ex.step]
    told = inside & (ex.transit_us > 0)
    sums = np.bincount(ex.name[told], ex.transit_us[told], len(ex.names)) / len(steps)
    whole = np.bincount(ex.name[told], minlength=len(ex.names)) == np.bincount(ex.name[inside], minlength=len(ex.names))
    return {
        _label(name): us
        for name, us, all_told in zip(ex.names, sums.tolist(), whole.tolist(), strict=True)
        if us and all_told
    }


@computed
def exposures(run: Run) -> dict[int, Exposure]:
    """What the exposed communication of each rank consists of."""
    exchanges = run.each(EXCHANGES)
    alone = _exposed(run)
    layout = partition(run)
    parts = _Parts(joints(run), layout)
    times = steady(run)
    telling = {rank for rank in times if _told_bubble(run, rank) is not None}
    found = {}
    for rank in sorted(set(exchanges) | set(times)):
        phases = times[rank].phases if rank in times else {}
        # the older data-parallel trace tells no exposed time; nothing after backward hides what lies in the tail
        exposed = phases.get("exposed", phases.get("tail"))
        total = float(np.nanmean(exposed)) if exposed is not None else None
        pure = parts.of(rank)
        if rank in alone.us and (pure or layout.ring or rank not in exchanges):
            found[rank] = _measured(alone, rank, pure, total, layout.ring, parts.joining, exchanges.get(rank))
            if not found[rank].told:  # what is waiting in it, the collectives' own sums tell better than no name
                found[rank] = replace(_estimated(pure, total, _receiving(run, rank), parts.joining), told=False)
        else:
            comparable = rank in telling or not telling
            received = _receiving(run, rank) if comparable else None
            found[rank] = _estimated(pure, total, received, parts.joining)
            found[rank].bubble_told = comparable
    return found


Pure = dict[str, tuple[str, float, float]]
"""Name of a collective -> its purpose, the transfer alone and how long the rank is in it, microseconds a step."""


class _Parts:
    """The collectives of all ranks by name; what one rank spends in each is worked out when it is asked for: of
    thousands of ranks with thousands of collectives there are millions."""

    def __init__(self, together: list[Joint], layout: Partition) -> None:
        self._joints: dict[int, list[tuple[int, int]]] = defaultdict(list)
        index: dict[str, int] = {}
        self._columns = []
        self.joining: frozenset[str] = frozenset(
            name for joint in together if layout.joins_stages(joint.group) for name in joint.names
        )
        """Those of ranks of several stages: waiting in them is the pipeline's drain."""
        for number, joint in enumerate(together):
            role, part = layout.purpose(joint.kind, joint.group), joint.per_step
            code = np.fromiter((index.setdefault(name, len(index)) for name in joint.names), np.int64)
            self._columns.append((role, code, joint.transfer_us * part, joint.elapsed_us, part))
            for column, rank in enumerate(joint.ranks):
                self._joints[rank].append((number, column))
        self._names = list(index)

    def of(self, rank: int) -> Pure:
        """What one rank spends in each."""
        shortest, elapsed = np.zeros(len(self._names)), np.zeros(len(self._names))
        roles: dict[int, str] = {}
        for number, column in self._joints.get(rank, ()):
            role, code, transfer, inside, part = self._columns[number]
            np.add.at(shortest, code, transfer)
            np.add.at(elapsed, code, inside[:, column] * part)
            roles.update(dict.fromkeys(code.tolist(), role))
        return {self._names[i]: (role, float(shortest[i]), float(elapsed[i])) for i, role in roles.items()}


def exposed_of(
    run: Run, role: str, kind: str, waiting: bool = False, rows: Callable[[Joint], Mask] | None = None
) -> float | None:
    """Median over ranks of the exposed transfer in collectives of this role and kind, a step; on demand with the
    exposed waiting, or of some `rows` only. None where kernels do not tell, or name none of these."""
    alone, layout = _exposed(run), partition(run)
    of: dict[int, list[tuple[Ints, Floats]]] = defaultdict(list)
    for joint, numbers in zip(joints(run), _numbers_of_joints(run), strict=True):
        if joint.kind == kind and layout.role_of(joint.group) == role:
            chosen = numbers >= 0 if rows is None else (numbers >= 0) & rows(joint)
            for rank in alone.us.keys() & set(joint.ranks):
                of[rank].append((numbers[chosen], (joint.transfer_us * joint.per_step)[chosen]))
    found = []
    for rank, told in of.items():
        own, us = alone.us[rank]
        at, moving = (np.concatenate(each) for each in zip(*told, strict=True))
        mine = own[np.isin(own, at)]
        if len(mine):
            exposed, moved = (np.bincount(i, each, len(alone.names)) for i, each in ((own, us), (at, moving)))
            part = _own_parts(run)[rank][mine]
            least = exposed[mine] if waiting else np.minimum(exposed[mine], moved[mine] * part)
            found.append(float((least / part).sum()))
    return float(np.median(found)) if found else None


@computed
def _numbers_of_joints(run: Run) -> list[Ints]:
    """For each of the `joints` the numbers of its operations' names among the exposed ones; -1 where none is."""
    known = {label: number for number, label in enumerate(_exposed(run).labels)}
    return [np.array([known.get(name, -1) for name in joint.names], np.int64) for joint in joints(run)]


@computed
def _own_parts(run: Run) -> dict[int, Floats]:
    """rank -> `Exchanges.own_parts` of each of the exposed names."""
    labels = _exposed(run).labels
    parts = {rank: ex.own_parts for rank, ex in run.each(EXCHANGES).items()}
    return {
        rank: np.array([own.get(label, 1.0) for label in labels]) if own else np.ones(len(labels))
        for rank, own in parts.items()
    }


def _measured(
    exposed: _Alone,
    rank: int,
    pure: Pure,
    total: float | None,
    ring: str = "",
    joining: Collection[str] = (),
    ex: Exchanges | None = None,
) -> Exposure:
    """From the intervals of kernels and collectives: how much of each collective nothing hides. Either may name one by
    its path in the graph; where they share no name at all, whose exposure it is stays untold. Waiting in those that are
    `joining` stages is bubble, as in what these receive. Where only some of the collectives of `ex` are kept, the
    others of their communicator are exposed as they are."""
    parts, thinned = (ex.own_parts, not ex.is_whole) if ex else ({}, False)
    spent: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    unnamed: dict[tuple[str, str], float] = defaultdict(float)
    labels: dict[str, str] | None = None
    code, us = exposed.us[rank]
    kinds: Sequence[str] = exposed.kinds.told
    for number, kind, alone in zip(code.tolist(), exposed.kinds.codes[code].tolist(), us.tolist(), strict=True):
        own = exposed.names[number]
        like = kinds[kind], exposed.communicators[number] if thinned else ""
        known = pure.get(own)
        if known is None:
            labels = {_label(name): name for name in pure} if labels is None else labels
            own = labels.get(exposed.labels[number], "")
            known = pure.get(own)
        if known is None:
            unnamed[like] += alone
            continue
        role, shortest, _ = known
        shortest = min(alone, shortest * parts.get(own, 1.0))
        spent[like]["transfer", role] += shortest
        spent[like]["bubble" if own in joining else "wait", ""] += alone - shortest
    for like, alone in exposed.others.get(rank, {}).items():
        unnamed[like] += alone
    result = Exposure(told=not pure or bool(spent) or not unnamed)
    waiting = dict.fromkeys(("wait", "bubble"), 0.0)
    for like in {**spent, **unnamed}:
        named, left = sum(spent[like].values()), unnamed[like]
        more = left / named if named and thinned else 0.0
        for (what, role), each in spent[like].items():
            (result.transfer if role else waiting)[role or what] += each * (1 + more)
        left -= more * named
        between = like[0] in POINT_TO_POINT
        if between and not ring:
            waiting["bubble"] += left
        elif left > 0:
            result.transfer[ring if between else UNRECORDED] += left
    result.wait, result.bubble = waiting["wait"], waiting["bubble"]
    if total is not None:
        result.bubble = min(result.bubble, total)
    return result


def _estimated(pure: Pure, total: float | None, receiving: float | None, joining: Collection[str] = ()) -> Exposure:
    """From sums: waiting is exposed first, then what the layers wait for (all else), then gradients; together no more
    than the exposed time."""
    result = Exposure(known=False, told=total is not None)
    sums: dict[str, float] = defaultdict(float)
    result.bubble = receiving or 0.0
    for name, (role, shortest, elapsed) in pure.items():
        sums[role] += shortest
        if name in joining:
            result.bubble += max(elapsed - shortest, 0.0)
        else:
            result.wait += max(elapsed - shortest, 0.0)
    left = total if total is not None else result.wait + result.bubble + sum(sums.values())
    result.bubble = min(result.bubble, left)
    left -= result.bubble
    result.wait = min(result.wait, left)
    left -= result.wait
    for role in sorted(sums, key=lambda r: (r == "data", r)):
        result.transfer[role] = min(sums[role], left)
        left -= result.transfer[role]
    if not sums and left > 0:
        result.transfer[UNRECORDED] = left
    return result


def _receiving(run: Run, rank: int) -> float | None:
    """Microseconds a step that the rank waits for other stages, from the step table or its collectives."""
    if partition(run).ring:
        return None
    if (told := _told_bubble(run, rank)) is not None:
        return told
    ex: Exchanges | None = run.each(EXCHANGES).get(rank)
    if ex is None or not len(ex.name):
        return None
    names = step_names(run, list(ex.steps))
    inside = np.array([s in names for s in ex.steps])[ex.step] & np.isin(ex.kinds(), ("receive", "batchsendrecv"))
    return float((ex.elapsed_us * ex.weight)[inside].sum() / max(len(names), 1)) if inside.any() else None


def _told_bubble(run: Run, rank: int) -> float | None:
    """Microseconds a step that the rank's own step table books as waiting for other stages."""
    times = steady(run).get(rank)
    bubble = times.phases.get("bubble") if times is not None else None
    return float(np.nanmean(bubble)) if bubble is not None and np.nansum(bubble) > 0 else None
