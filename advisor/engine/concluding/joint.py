"""What findings give together: every subset of the top causes replayed, and each finding's saving after those above it.

Savings do not add up: two causes that overlap are saved once, and of two that hide each other neither gives anything
alone. Time that a replay does not see (operators, idle time, the data pipeline) adds up, but no part of the step can
lose more than it is long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median

from msgspec import Struct

from advisor.basics.errors import UsageError
from advisor.basics.scatter import error_of_median
from advisor.basics.units import NANOSECONDS
from advisor.engine.concluding.gathered import at_once, stages_of
from advisor.engine.concluding.paced import kept_up, taken_back
from advisor.engine.concluding.remainders import left_beside
from advisor.facts.account.spending import USEFUL, spend
from advisor.facts.base import FactSet, Run
from advisor.facts.cluster.whatif import KERNELS, Cure, affordable, events, joint_saving, new_shares
from advisor.knowledge.savings import allowed_by, pools, usual_error
from advisor.knowledge.verdicts import only_waits
from advisor.model import RUN, Direction, Finding, Report, Role, Saving, Subject, WhatIf

MOST = 6
"""Causes of which every subset is replayed."""
_OF_SOME = ("rank", "run", "host")
"""Kinds of subjects that hold up a step as a whole, on the ranks that they name."""

Replay = Callable[[Sequence[Cure]], float | None]
Part = tuple[str, Subject, float]
"""(pool of time, whose, microseconds) that a finding gives back."""


class Joint(Struct, frozen=True):
    """The findings with what they give after the others, and the step without each set of causes."""

    findings: list[Finding]
    whatif: WhatIf | None


def tell_jointly(findings: Sequence[Finding], facts: FactSet, run: Run | None, step_us: float | None) -> Joint:
    """Savings with their ranges and what they still give after the findings above; None for `whatif` where nothing is
    saved of a step. Without a run (facts that were saved) nothing is replayed."""
    promising = [f for f in findings if is_promise(f)]
    if not step_us or not promising:
        return Joint(list(findings), None)
    most = min(MOST, affordable(run, MOST) if run is not None and events(run) else MOST)
    gains = Gains(facts, step_us, None if run is None else lambda cures: joint_saving(run, cures))
    top = promising[:most]
    every = [chosen for size in range(len(top) + 1) for chosen in combinations(top, size)]
    best: dict[tuple[str, ...], float] = {}
    for chosen in every:  # smaller sets first: repairing more never gives less
        names = tuple(f.id for f in chosen)
        below = [best[names[:i] + names[i + 1 :]] for i in range(len(names))]
        best[names] = max([gains.of(chosen), *below]) if names else 0.0
    after: dict[str, float] = {}
    for place, finding in enumerate(promising):
        if place < len(top):
            names = tuple(f.id for f in top[: place + 1])
            after[finding.id] = best[names] - best[names[:-1]]
        else:
            after[finding.id] = min(finding.saving.us, gains.room(promising[:place], finding, sum(after.values())))  # type: ignore[union-attr]
    told = [_ranged(f, facts, run, step_us, after[f.id]) if f.id in after else f for f in findings]
    most_us = {f.id: _at_most(f.id, best) for f in top if f.saving is not None and f.saving.removes}
    told = [_no_worse(f, most_us[f.id] / step_us) if f.id in most_us else f for f in told]
    order = _greedy(top, best)
    times = {
        ",".join(sorted(names, key=order.index)): step_us - gained
        for names, gained in best.items()
    }  # fmt: skip
    return Joint(told, WhatIf(tuple(order), times))


def tell_of_whole(findings: Sequence[Finding], facts: FactSet) -> Joint:
    """What each still gives of a recording without steps after the findings above it: two that lose the same time
    cannot both be promised. Nothing is replayed, and no step gets shorter."""
    joint = tell_jointly(findings, facts, None, facts.number("step.time_us", RUN))
    return Joint([replace(f, saving=_only_after(f.saving)) if f.saving else f for f in joint.findings], None)


def _only_after(saving: Saving) -> Saving:
    after_us = saving.after_others_us
    return replace(saving, range_us=None, after_others_us=None if after_us is None else round(after_us, NANOSECONDS))


class Repaired(Struct, frozen=True):
    """The step without some findings, microseconds."""

    without: tuple[str, ...]
    causes: tuple[Finding, ...]
    before_us: float
    after_us: float
    range_us: tuple[float, float]
    """Between which the gain lies."""
    shares: Mapping[int, tuple[float, float]]
    """rank -> its own computing as a share of the step, before and after; empty where the step is not replayed."""
    next: Finding | None
    """What gives most then."""
    next_us: float = 0.0


def repaired(report: Report, wanted: Sequence[str], facts: FactSet, run: Run | None) -> Repaired | None:
    """The step without these findings ("all": without all); None where none of the report promises anything.

    Raises UsageError where an id names no finding that does.
    """
    promising = {f.id: f for f in report.findings if is_promise(f)}
    step_us = report.summary.step_time_us
    if not promising or not step_us:
        return None
    ids = list(promising) if list(wanted) == ["all"] else [one.strip().upper() for one in wanted if one.strip()]
    unknown = [one for one in ids if one not in promising]
    if unknown or not ids:
        told = ", ".join(promising)
        raise UsageError(f"no finding {', '.join(unknown)} promises a saving", hint=f"those that do: {told}")
    chosen = [f for f in promising.values() if f.id in ids]
    gains = Gains(facts, step_us, None if run is None else lambda cures: joint_saving(run, cures))
    gained = gains.of(chosen)
    off = [(f.saving.us, f.saving.range_us or (f.saving.us, f.saving.us)) for f in chosen if f.saving]
    below, above = (sum(abs(us - ends[i]) for us, ends in off) / max(sum(us for us, _ in off), 1e-9) for i in (0, 1))
    rest = [(gains.of([*chosen, f]) - gained, f) for f in promising.values() if f not in chosen]
    most = max(rest, key=lambda item: item[0], default=None)
    cures = [Cure(f.saving.removes, f.subject) for f in chosen if f.saving and f.saving.removes]
    now, then = ({}, {}) if run is None or not cures else (new_shares(run, []), new_shares(run, cures))
    return Repaired(
        tuple(f.id for f in chosen), tuple(chosen), step_us, step_us - gained,
        (gained * (1 - min(below, 1.0)), min(gained * (1 + above), step_us)),
        {rank: (now[rank], then[rank]) for rank in now if rank in then},
        None if most is None or most[0] <= 0 else most[1], 0.0 if most is None else max(most[0], 0.0),
    )  # fmt: skip


def is_promise(finding: Finding) -> bool:
    """Whether the finding says what a step gains without it, and that is not in another one's saving."""
    counted = finding.role != Role.SYMPTOM and finding.direction != Direction.EVIDENCE
    return counted and finding.saving is not None and finding.saving.us_per_step is not None


class Gains:
    """What sets of findings give together, microseconds a step."""

    def __init__(self, facts: FactSet, step_us: float, replay: Replay | None) -> None:
        self.step_us, self.replay, self.stages = step_us, replay, stages_of(facts)
        self.ranks = int(facts.number("run.rank_count", RUN) or 1)
        self.pools = {name: _size(facts, lists, step_us) for name, lists in pools().items()}
        spent = spend(facts)
        if spent is not None:
            # transfers that move at the links' speed only hide behind computation: two remedies share what there is
            known = self.pools.get(Direction.COMMUNICATION.value, step_us)
            hidden = min(spent["transfer"], spent[USEFUL])
            self.pools[Direction.COMMUNICATION.value] = max(known - spent["transfer"] + hidden, 0.0)
        self.lost_us = step_us if spent is None else step_us - spent[USEFUL]
        """What a step can lose but by computing less …"""
        usual = [us for us in (facts.number("step.computing_us", rank) for rank in facts.subjects("rank")) if us]
        self.lost_evenly_us = max(self.lost_us, step_us - median(usual)) if usual else self.lost_us
        """… and where late ranks compute no longer than the others: the mean of all holds what these compute longer."""
        self.certain_us = facts.number("communication.behind_absent_us", RUN)
        """What ranks at hand can gain for certain, where the step waits for others: not what lies before that wait."""

    def of(self, chosen: Sequence[Finding]) -> float:
        """All of them repaired: what a replay sees jointly, the rest part by part, less what a loader takes back."""
        gained = self._kept_up([kept_up(f) for f in chosen])
        return gained - taken_back(chosen, gained)

    def _kept_up(self, chosen: Sequence[Finding]) -> float:
        replayed = [f for f in chosen if f.saving and f.saving.removes]
        evened = any(f.saving and f.saving.removes not in ("", "links") for f in replayed)
        lost_us = self.lost_evenly_us if evened else self.lost_us
        gained = max((f.weight_us for f in replayed), default=0.0)
        # what collectives beside them leave of shorter kernels is known for all of these together
        beside = [f for f in chosen if f.saving and f.saving.shortened_us and f not in replayed]
        if len(replayed) + len(beside) > 1 and self.replay is not None:
            cures = [Cure(f.saving.removes, f.subject) for f in replayed if f.saving]
            shorter = [Cure(KERNELS, f.subject, f.saving.shortened_us or 0.0) for f in beside if f.saving]
            together = self.replay([*cures, *shorter])
            if together is not None:
                replayed = [*replayed, *beside]
            elif beside and len(replayed) > 1:
                together = self.replay(cures)
            gained = gained if together is None else together
        added = [left_beside(f, replayed) for f in chosen if f not in replayed]
        parts = _parts(added, self.ranks)
        computing = self._added([part for part in parts if part[0] == Direction.COMPUTATION.value])
        waiting = self._added([part for part in parts if part[0] != Direction.COMPUTATION.value])
        # alone, each gives what it promises: some of it may be computing that takes longer than it needs
        alone = max((f.weight_us for f in added if f.direction != Direction.COMPUTATION), default=0.0)
        whole = min(min(gained + waiting, max(lost_us, gained, alone)) + computing, self.step_us)
        if self.certain_us is None:
            return whole
        sure = _parts([f for f in added if not _is_bound(f)], self.ranks)
        bound = sum(self._certain_of(f) for f in added if _is_bound(f))
        return min(whole, gained + self._added(sure) + min(self.certain_us, bound))

    def _certain_of(self, finding: Finding) -> float:
        """What one bound finding gives at most where nobody absent has the same cause."""
        known = finding.saving.without_absent_us if finding.saving is not None else None
        return (self.certain_us or 0.0) if known is None else known

    def room(self, above: Sequence[Finding], finding: Finding, taken_us: float) -> float:
        """What is left for one more finding, of its part of the step and of the whole."""
        mine = [f for f in above if f.direction == finding.direction and not (f.saving and f.saving.removes)]
        part = self.pools.get(finding.direction.value, self.step_us) - self._added(_parts(mine, self.ranks))
        whole = self.step_us if finding.direction == Direction.COMPUTATION else self.lost_us
        if self.certain_us is not None and _is_bound(finding):
            left = self.certain_us - self._added(_parts([f for f in above if _is_bound(f)], self.ranks))
            part = min(part, left, self._certain_of(finding))
        return max(min(part, whole - taken_us), 0.0)

    def _added(self, parts: Sequence[Part]) -> float:
        weighed: dict[str, list[tuple[Subject, float]]] = {}
        for pool, subject, us in parts:
            weighed.setdefault(pool, []).append((subject, us))
        sums = {pool: at_once(each, self.stages) for pool, each in weighed.items()}
        # one finding alone may know of more than its part of the median rank's step shows
        alone = {pool: max(us for _, us in each) for pool, each in weighed.items()}
        return sum(min(us, max(self.pools.get(name, self.step_us), alone[name])) for name, us in sums.items())


def _parts(findings: Sequence[Finding], ranks: int) -> list[Part]:
    """What each finding gives, by where the time stands on the typical one of so many ranks: idle time that less
    computing takes with it is one pool with what findings of scheduling give; for what holds up some ranks alone the
    others wait in collectives."""
    found: list[Part] = []
    for finding in findings:
        idle = finding.saving.idle_us if finding.saving else 0.0
        some = finding.subject.kind in _OF_SOME and 2 * len(finding.subject.ranks) <= ranks and finding.subject.ranks
        waited = some and finding.direction == Direction.SCHEDULING
        stands = Direction.COMMUNICATION if waited or only_waits(finding.verdict) else finding.direction
        found.append((stands.value, finding.subject, finding.weight_us - idle))
        if idle:
            found.append((Direction.SCHEDULING.value, finding.subject, idle))
    return found


def _is_bound(finding: Finding) -> bool:
    return finding.saving is not None and not finding.saving.removes and finding.saving.kind == "upper_bound"


def _size(facts: FactSet, lists: Sequence[Sequence[str]], step_us: float) -> float:
    found = [next((v for name in names if (v := facts.number(name, RUN)) is not None), None) for names in lists]
    known = [value for value in found if value is not None]
    return min(sum(known), step_us) if known else step_us


def _greedy(top: Sequence[Finding], best: Mapping[tuple[str, ...], float]) -> list[str]:
    """The order in which repairing gives most soonest."""
    place = {f.id: i for i, f in enumerate(top)}
    order: list[str] = []
    while len(order) < len(top):
        left = [f.id for f in top if f.id not in order]
        order.append(
            max(left, key=lambda one: (best[tuple(sorted([*order, one], key=place.__getitem__))], -place[one]))
        )
    return order


def _at_most(name: str, best: Mapping[tuple[str, ...], float]) -> float:
    """The most that repairing this finding gives, alone or once others are repaired, microseconds."""
    return max(us - best[tuple(n for n in names if n != name)] for names, us in best.items() if name in names)


def _no_worse(finding: Finding, share: float) -> Finding:
    """No more severe than what the replay gives without it allows, alone or once others are gone: it hides nothing."""
    allowed = allowed_by(share)
    return finding if finding.severity.rank <= allowed.rank else replace(finding, severity=allowed)


def _ranged(finding: Finding, facts: FactSet, run: Run | None, step_us: float, after_us: float) -> Finding:
    saving = finding.saving
    assert saving is not None
    return replace(
        finding, saving=replace(saving, after_others_us=after_us, range_us=between(saving, facts, run, step_us))
    )


def between(saving: Saving, facts: FactSet, run: Run | None, step_us: float) -> tuple[float, float]:
    """Lowest and highest of what it may come to, microseconds: the usual error of the way it is known, or what the
    cause itself leaves open where that is more, and the standard error of the step's median. An upper bound may come
    to nothing, and what bounds it ends the range."""
    if saving.kind == "upper_bound":
        return 0.0, saving.us
    way = "estimate" if not saving.removes else "replay" if run is not None and events(run) else "comparison"
    jitter, count = facts.number("step.jitter", RUN) or 0.0, facts.number("step.count", RUN) or 1.0
    off = max(usual_error(way), saving.error_share or 0.0) * saving.us + min(
        error_of_median(jitter, count) * step_us, saving.us / 2
    )
    return max(saving.us - off, 0.0), min(saving.us + off, step_us, max(saving.most_us or step_us, saving.us))
