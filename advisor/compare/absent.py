"""Facts that are not there because there is nothing of their kind, and work that goes on under another name."""

from __future__ import annotations

from advisor.compare.facts import FactTable, key_of, number
from advisor.knowledge.comparison import settings
from advisor.model import Subject

OPERATORS = ("operator_type", "operator")
"""Kinds of subjects that each have a time, of which all together are the computation."""


def is_none(name: str, here: FactTable, there: FactTable) -> bool:
    """Whether the fact is 0 `here`, where no subject has it: what would have shown it was measured on both sides."""
    witness = settings().none_beside.get(name)
    if witness is None or here.of(name):
        return False
    return all(table.number(witness) is not None for table in (here, there))


def is_gone(subject: Subject, old: FactTable, new: FactTable) -> bool:
    """Whether the subject took time, and takes none where the others of its kind were measured; nor does anything of
    another name take as long as what is less."""
    times, key = f"{subject.kind}.time_us", key_of(subject)
    before, after = old.of(times), new.of(times)
    alike = any(kind == subject.kind for kind, _ in after)
    if key not in before or key in after or not alike or is_taken_over(times, subject.kind, old, new):
        return False
    return (number(before[key].value) or 0.0) >= _least_listed(new)


def is_taken_over(times: str, kind: str, old: FactTable, new: FactTable) -> bool:
    """Whether names of this kind that were not there before take most of the time that the others lost: a version calls
    the same work otherwise, and a fused operator takes the place of several. Where a side names none, none of them
    clearly lost time, or the new ones take many times as long, nothing was taken: other work was added."""
    sides = []
    for table in (old, new):
        of_kind = {key: number(fact.value) or 0.0 for key, fact in table.of(times).items() if key[0] == kind}
        sides.append(of_kind)
    before, after = sides
    least, least_before = _least_listed(new), _least_listed(old)
    went = sum(_lost(us, after.get(key)) for key, us in before.items() if key in after or us >= least)
    came = sum(us for key, us in after.items() if key not in before and us >= least_before)
    return bool(before) and takes_over(came, went)


def _least_listed(table: FactTable) -> float:
    """What an operator type must take to be listed, microseconds: of a list that holds less than all computing, as much
    as the shortest of it. What takes less is neither gone nor new."""
    listed = [number(fact.value) or 0.0 for fact in table.of("operator_type.time_us").values()]
    whole = table.number("operators.compute_us") or 0.0
    return min(listed, default=0.0) if sum(listed) < (1 - settings().limits["least_change"]) * whole else 0.0


def takes_over(came: float, went: float) -> bool:
    """Whether what is new may do the work of what is gone: it takes most of its time, and not many times as long."""
    limits = settings().limits
    return 0.0 < limits["taken_over"] * went <= came <= limits["taken_at_most"] * went


def _lost(before: float, after: float | None) -> float:
    """The time that a name lost, microseconds; what runs of one program differ by is none."""
    lost = before - (after or 0.0)
    return lost if lost > settings().limits["least_change"] * before else 0.0


def changed_hands(subject: Subject, old: FactTable, new: FactTable) -> bool:
    """Whether the subject is one of the names whose time others took over, or of those that took it."""
    times, key = f"{subject.kind}.time_us", key_of(subject)
    if subject.kind not in OPERATORS or not is_taken_over(times, subject.kind, old, new):
        return False
    before, after = (number(table.of(times)[key].value) if key in table.of(times) else None for table in (old, new))
    return before is None or _lost(before, after) > 0.0
