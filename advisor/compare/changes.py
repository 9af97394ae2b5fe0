"""What accounts for a change of the step: its parts, which add up to the change, and in each part the operator types or
collectives, which add up to the part. One way to divide the step is taken, so that nothing is counted twice; where a
change shows (a rank, a link, a wait) is said beside the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any

from advisor.compare.absent import takes_over
from advisor.compare.facts import FactTable, Key, number
from advisor.knowledge.comparison import settings
from advisor.model import RUN, Fact, Subject


class Role(str, Enum):
    """What a line of the explanation is to the others."""

    PART = "part"
    """A part of the step; all parts and the rest add up to the change."""
    MEMBER = "member"
    """One of those that a part consists of; all of them and their rest add up to the part's change."""
    SEEN_AT = "seen_at"
    """Where the part's change shows; adds up to nothing."""
    WITHIN = "within"
    """What changed in a step that as a whole did not; adds up to nothing."""


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
    share: float = 0.0
    opposed: bool = False
    """Others move against it: `share` is a part of all that moved, the difference one of more than the change."""
    rest: bool = False
    calls: tuple[float, float] | None = None
    """How often an operator type is called on either side, where that changed."""
    inputs: str = ""
    """Of an operator type, the input shapes that alone are meant: the times are those of a call on them."""
    overlaps: bool = False
    """Of a part: those named for it run beside one another, together longer than it; nothing is left over of it."""

    @property
    def difference(self) -> float:
        return self.after - self.before


def changes(old: FactTable, new: FactTable, worth: float) -> Iterator[Change]:
    """Parts of the step and those who account for them; nothing where the step changed by less than `worth` of
    itself. Where not both sides tell how long a step takes: who accounts for the change of a sum."""
    chosen = settings()
    wholes = dict(chosen.steps)
    if not any(old.number(step) and new.number(step) for step in wholes):
        wholes = {name: ((name,),) for name in chosen.without_length if name in chosen.members}
    for whole, divisions in wholes.items():
        before, after = old.number(whole), new.number(whole)
        if not before or not after:
            continue
        if abs(after - before) > worth * max(before, after):
            yield from _parts(old, new, _division(whole, divisions, old, new), before, after)
        return


def stirred(old: FactTable, new: FactTable) -> list[Change]:
    """The operator types that changed clearly in a step which did not: a step scatters by more than its kernels do.
    What one of them lost, another may have gained. Largest first; they add up to nothing."""
    limits = settings().limits
    steps = [table.number("step.time_us") or 0.0 for table in (old, new)]
    least = limits["stirred_step"] * max(steps)
    lines = [
        line
        for line in _each(Role.WITHIN, "step.computing_us", "operator_type.time_us", old, new)
        if abs(line.difference) > max(limits["fact_noise"] * max(line.before, line.after), least)
    ]
    lines.sort(key=lambda line: -abs(line.difference))
    return lines[: int(limits["accounts_shown"])] if all(steps) else []


def _division(step: str, divisions: Sequence[Sequence[str]], old: FactTable, new: FactTable) -> list[str]:
    """The parts measured on both sides, of the division that has most of them; overlapping ones divide nothing."""
    found: list[list[str]] = [[]]
    for parts in divisions:
        measured = [part for part in parts if old.number(part) is not None and new.number(part) is not None]
        sums = [
            sum(table.number(part) or 0.0 for part in measured) / (table.number(step) or 1.0) for table in (old, new)
        ]
        if max(sums) <= settings().limits["overlap"]:
            found.append(measured)
    return max(found, key=len)


def _parts(old: FactTable, new: FactTable, parts: Sequence[str], before: float, after: float) -> Iterator[Change]:
    lines = [_line(Role.PART, part, part, RUN, old.number(part), new.number(part)) for part in parts]
    lines.sort(key=lambda line: -line.difference * (after - before))
    *lines, rest = _shared([*lines, _rest(Role.PART, "", before, after, lines)], 1.0, after - before)
    for line in lines:
        told = abs(line.share) >= settings().limits["account_share"]
        members, overlaps = _members(line, old, new) if told else ([], False)
        yield replace(line, overlaps=overlaps)
        yield from members
        yield from _seen_at(line, old, new) if told else ()
    if parts:
        yield rest


def _shared(lines: Sequence[Change], whole: float, change: float, opposed: bool = False) -> list[Change]:
    """The lines with their parts of the `whole`, a share of the step's change. Where some lines fall while others rise,
    they are `opposed`, and parts of all that moved: no line is more than the change, nor are several together."""
    moved = sum(abs(line.difference) for line in lines)
    sign = 1.0 if change > 0 else -1.0
    opposed = opposed or moved > abs(change) * (1 + settings().limits["least_rest"])
    return [
        replace(line, share=whole * sign * line.difference / moved if moved else 0.0, opposed=opposed) for line in lines
    ]


def _members(part: Change, old: FactTable, new: FactTable) -> tuple[list[Change], bool]:
    """The largest of those who changed as the part did, the one that changed most against them, and everything else:
    together they are the part's change. Of several ways to divide it the one that leaves least unnamed. And whether
    they overlap: where all of them together take longer than the part, there is no "everything else"."""
    limits = settings().limits
    found = []
    for way in settings().members.get(part.part, ()):
        each = [line for fact in way for line in _each(Role.MEMBER, part.part, fact, old, new)]
        kernels = [line for line in each if line.subject != RUN]
        overlaps = any(sum(map(of, kernels)) > limits["overlap"] * of(part) for of in (_BEFORE, _AFTER))
        lines = sorted(_renamed(each), key=lambda line: -abs(line.difference))
        telling = [line for line in lines if line.difference / part.difference >= limits["account_share"]]
        against = [line for line in lines if line.difference / part.difference <= -limits["account_share"]]
        shown = [*telling[: int(limits["accounts_shown"])], *against[:1]]
        if shown:
            found.append(([*shown, _rest(Role.MEMBER, part.part, part.before, part.after, shown)], overlaps))
    if not found:
        return [], False
    lines, overlaps = min(found, key=lambda way: abs(way[0][-1].difference))
    shared = _shared(lines, part.share, part.difference, part.opposed)
    return (shared[:-1] if overlaps else shared), overlaps


_BEFORE, _AFTER = attrgetter("before"), attrgetter("after")


def _renamed(lines: Sequence[Change]) -> list[Change]:
    """The lines, those of one side alone as one where they take over from each other: another version calls the same
    work by another name, and a fused operator takes the place of several."""
    of_subjects = [line for line in lines if line.subject != RUN]
    gone, come = ([line for line in of_subjects if not side(line)] for side in (_AFTER, _BEFORE))
    before, after = sum(line.before for line in gone), sum(line.after for line in come)
    if not takes_over(after, before):
        return list(lines)
    names = [", ".join(line.subject.id for line in sorted(side, key=lambda line: -line.before - line.after)[:2])
             + (", …" if len(side) > 2 else "") for side in (gone, come)]  # fmt: skip
    as_one = replace(gone[0], subject=replace(gone[0].subject, id=" → ".join(names)), before=before, after=after)
    return [as_one, *(line for line in lines if line not in gone and line not in come)]


def _seen_at(part: Change, old: FactTable, new: FactTable) -> Iterator[Change]:
    """Where the part's change shows most: the link rather than all links of its rank, where they tell the same."""
    limits = settings().limits
    lines = [
        line
        for fact in settings().seen_at.get(part.part, ())
        for line in _each(Role.SEEN_AT, part.part, fact, old, new)
        if line.difference / part.difference >= limits["account_share"]
    ]
    most = max((abs(line.difference) for line in lines), default=0.0)
    near = [line for line in lines if abs(line.difference) >= (1 - limits["fact_noise"]) * most]
    yield from sorted(near, key=lambda line: ("*" in line.subject.id, -abs(line.difference)))[:1]


def _each(role: Role, part: str, fact: str, old: FactTable, new: FactTable) -> Iterator[Change]:
    before, after = old.of(fact), new.of(fact)
    if not before or not after:
        return
    for key in sorted({*before, *after}):
        subject = replace((before.get(key) or after[key]).subject, id=key[1])
        line = _line(role, part, fact, subject, _value(before, key), _value(after, key))
        yield replace(line, calls=_calls(key, old, new))


def _calls(key: Key, old: FactTable, new: FactTable) -> tuple[float, float] | None:
    """How often the operator type is called, where that is another number on the other side: more calls and slower
    ones are no one fault."""
    a, b = (_value(table.of("operator_type.count"), key) for table in (old, new))
    if key[0] != "operator_type" or not a or not b or abs(b - a) <= settings().limits["least_change"] * max(a, b):
        return None
    return a, b


def _value(facts: Mapping[Key, Fact], key: Key) -> float | None:
    return number(facts[key].value) if key in facts else None


def _line(role: Role, part: str, fact: str, subject: Subject, old: Any, new: Any) -> Change:
    """A subject that is not there on a side took no time on it."""
    return Change(role, part, fact, subject, old or 0.0, new or 0.0)


def _rest(role: Role, part: str, before: float, after: float, named: Sequence[Change]) -> Change:
    before -= sum(line.before for line in named)
    after -= sum(line.after for line in named)
    return Change(role, part, "", RUN, before, after, rest=True)


def is_rounding(change: Change) -> bool:
    """A line too small to speak of."""
    return change.role in (Role.PART, Role.MEMBER) and abs(change.share) < settings().limits["least_rest"]
