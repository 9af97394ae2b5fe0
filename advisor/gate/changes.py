"""What accounts for a change of the step: its parts, which add up to the change, and in each part the operator types or
collectives, which add up to the part. One way to divide the step is taken, so that nothing is counted twice; where a
change shows (a rank, a link, a wait) is said beside the sum.

Both sides are condensed to the report of a typical run and handed to `advisor.compare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median
from typing import Any

from advisor.compare import Obstacle, compare
from advisor.compare.facts import FactTable, Key, number
from advisor.gate.metrics import defaults
from advisor.gate.sample import Sample
from advisor.model import RUN, Fact, Report, Subject

_NOISE_OF_STEPS = "step.jitter"
"""What steps of one run differ by says nothing about medians over runs."""


class Role(str, Enum):
    """What a line of the explanation is to the others."""

    PART = "part"
    """A part of the step; all parts and the rest add up to the change."""
    MEMBER = "member"
    """One of those that a part consists of; all of them and their rest add up to the part's change."""
    SEEN_AT = "seen_at"
    """Where the part's change shows; adds up to nothing."""


@dataclass(frozen=True)
class Change:
    """One line, microseconds per step. `share` is of the step's own change. A `rest` is what no part or no member of
    its part was named for."""

    role: Role
    part: str
    fact: str
    subject: Subject
    before: float
    after: float
    share: float
    rest: bool = False

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Explanation:
    """What changed between the baseline and the runs, and what else differs between them."""

    changes: tuple[Change, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


def explain(history: Sequence[Sample], runs: Sequence[Sample], worth: float) -> Explanation:
    """Parts of the step and those who account for them; nothing where the step changed by less than `worth` of itself.
    Both sides not empty."""
    before, after = typical(history), typical(runs)
    obstacles = compare(before, after).obstacles
    if not (before.profile.has_steps and after.profile.has_steps):
        return Explanation((), obstacles)
    return Explanation(tuple(_changes(FactTable(before.facts), FactTable(after.facts), worth)), obstacles)


def _changes(old: FactTable, new: FactTable, worth: float) -> Iterator[Change]:
    for step, divisions in defaults()["step"].items():
        before, after = old.number(step), new.number(step)
        if not before or not after:
            continue
        if abs(after - before) > worth * before:
            yield from _parts(old, new, _division(step, divisions, old, new), before, after)
        return


def _division(step: str, divisions: Sequence[Sequence[str]], old: FactTable, new: FactTable) -> list[str]:
    """The parts measured on both sides, of the division that has most of them; overlapping ones divide nothing."""
    found: list[list[str]] = [[]]
    for parts in divisions:
        measured = [part for part in parts if old.number(part) is not None and new.number(part) is not None]
        sums = [
            sum(table.number(part) or 0.0 for part in measured) / (table.number(step) or 1.0) for table in (old, new)
        ]
        if max(sums) <= defaults()["explained"]["overlap"]:
            found.append(measured)
    return max(found, key=len)


def _parts(old: FactTable, new: FactTable, parts: Sequence[str], before: float, after: float) -> Iterator[Change]:
    total = after - before
    lines = [_line(Role.PART, part, part, RUN, old.number(part), new.number(part), total) for part in parts]
    for line in sorted(lines, key=lambda change: -change.share):
        yield line
        if line.share >= defaults()["explained"]["least_share"]:
            yield from _members(line, old, new, total)
            yield from _seen_at(line, old, new, total)
    if parts:
        yield _rest(Role.PART, "", before, after, lines, total)


def _members(part: Change, old: FactTable, new: FactTable, total: float) -> Iterator[Change]:
    """The largest of those who changed as the part did, and everything else: together they are the part's change."""
    limits = defaults()["explained"]
    for fact in defaults()["members"].get(part.part, ()):
        lines = [
            line
            for line in _each(Role.MEMBER, part.part, fact, old, new, total)
            if line.difference / part.difference >= limits["least_share"]
        ]
        shown = sorted(lines, key=lambda line: -abs(line.difference))[: limits["members_shown"]]
        if shown:
            yield from shown
            yield _rest(Role.MEMBER, part.part, part.before, part.after, shown, total)
            return


def _seen_at(part: Change, old: FactTable, new: FactTable, total: float) -> Iterator[Change]:
    """Where the part's change shows most."""
    limits = defaults()["explained"]
    lines = [
        line
        for fact in defaults()["seen_at"].get(part.part, ())
        for line in _each(Role.SEEN_AT, part.part, fact, old, new, total)
        if line.difference / part.difference >= limits["least_share"]
    ]
    yield from sorted(lines, key=lambda line: -abs(line.difference))[:1]


def _each(role: Role, part: str, fact: str, old: FactTable, new: FactTable, total: float) -> Iterator[Change]:
    before, after = old.of(fact), new.of(fact)
    if not before or not after:
        return
    for key in sorted({*before, *after}):
        subject = (before.get(key) or after[key]).subject
        yield _line(role, part, fact, subject, _value(before, key), _value(after, key), total)


def _value(facts: Mapping[Key, Fact], key: Key) -> float | None:
    return number(facts[key].value) if key in facts else None


def _line(role: Role, part: str, fact: str, subject: Subject, old: Any, new: Any, total: float) -> Change:
    """A subject that is not there on a side took no time on it."""
    before, after = old or 0.0, new or 0.0
    return Change(role, part, fact, subject, before, after, (after - before) / total)


def _rest(role: Role, part: str, before: float, after: float, named: Sequence[Change], total: float) -> Change:
    before -= sum(line.before for line in named)
    after -= sum(line.after for line in named)
    return Change(role, part, "", RUN, before, after, (after - before) / total, rest=True)


def is_rounding(change: Change) -> bool:
    """A rest too small to speak of."""
    return change.rest and abs(change.share) < float(defaults()["explained"]["least_rest"])


def typical(samples: Sequence[Sample]) -> Report:
    """The newest run's report with each number the median over the runs; what a run measured of other subjects and
    not of this one took no time there."""
    tables = [FactTable(fact for fact in sample.facts if fact.name != _NOISE_OF_STEPS) for sample in samples]
    names = sorted({fact.name for sample in samples for fact in sample.facts} - {_NOISE_OF_STEPS})
    return replace(samples[-1].report(), facts=tuple(fact for name in names for fact in _medians(name, tables)))


def _medians(name: str, tables: Sequence[FactTable]) -> Iterator[Fact]:
    measured = [by for table in tables if (by := table.of(name))]
    for key in sorted({key for by in measured for key in by}):
        newest = next(by[key] for by in reversed(measured) if key in by)
        value = number(newest.value)
        if value is None:
            yield newest
            continue
        absent = 0.0 if name.endswith("_us") and key[0] != "run" else None
        values = [number(by[key].value) if key in by else absent for by in measured]
        yield replace(newest, value=median(v for v in values if v is not None))
