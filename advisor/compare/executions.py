"""How much work two recordings without steps hold: how long one lasts tells nothing of its speed before that is known.

Calls of operators tell it: sums and lengths of recordings that hold another number of executions are told for as many
calls as before, else the shorter recording would be the faster one. Where nobody counted calls, a part that takes as
long as before is a witness of as much work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from advisor.basics.units import show
from advisor.compare.facts import FactTable, number
from advisor.compare.model import Obstacle
from advisor.knowledge.comparison import settings
from advisor.knowledge.words import both
from advisor.model import Fact, Finding, Report, Saving

_CALLS = "operator_type.count"


@dataclass(frozen=True)
class Repeated:
    """The report of the later side with its sums as they would be of as many calls as were made before."""

    report: Report
    factor: float | None = 1.0
    """What they were multiplied by; None where calls do not tell whether the recordings hold as much."""

    @property
    def obstacle(self) -> Obstacle | None:
        """What is to be said of it."""
        if self.factor is None or self.factor == 1.0:
            return None
        share = f"× {show(1 / self.factor, 'number')}"
        return Obstacle("executions", "× 1", share, False, both("difference_matters.executions"))


def as_many_calls(before: Report, after: Report, old: FactTable, new: FactTable) -> Repeated:
    """`after` for as many calls as `before` has, by the facts of both sides that may be compared; as it is where its
    recording holds as many, where calls do not tell, and where steps are marked."""
    if before.profile.has_steps or after.profile.has_steps:
        return Repeated(after)
    factor = _fewer_calls(old, new)
    if factor is None or factor == 1.0:
        return Repeated(after, factor)
    scaled = replace(
        after,
        facts=tuple(_times(fact, factor) for fact in after.facts),
        findings=tuple(_weighed(finding, factor) for finding in after.findings),
    )
    return Repeated(scaled, factor)


def holds_as_much(old: FactTable, new: FactTable) -> bool:
    """Whether anything tells that two recordings without steps hold as much work as each other, or how much more: calls
    were counted on both sides, or one of the larger parts of both takes as long as before."""
    if old.of(_CALLS).keys() & new.of(_CALLS).keys() or _both(old, new, "operators.kernel_count"):
        return True
    limits = settings().limits
    lengths = _both(old, new, "step.time_us")
    for name in settings().witnesses if lengths else ():
        parts = _both(old, new, name)
        large = parts and all(part >= limits["account_share"] * of for part, of in zip(parts, lengths, strict=True))
        if large and abs(parts[1] - parts[0]) <= limits["least_change"] * max(parts):
            return True
    return False


def doubt(new: FactTable, factor: float | None) -> float:
    """The part of the later side's length, told for as many calls, of which nobody knows whether it grows with the
    calls: a device that is idle may wait for what is done once."""
    length = new.number("step.time_us")
    if factor is None or factor == 1.0 or not length:
        return 0.0
    works = sum(new.number(name) or 0.0 for name in ("step.computing_us", "step.exposed_communication_us"))
    return abs(1 - 1 / factor) * max(0.0, 1 - works / length)


def _both(old: FactTable, new: FactTable, name: str) -> tuple[float, ...]:
    """The fact on both sides; nothing where a side lacks it or has none."""
    found = tuple(value for table in (old, new) if (value := table.number(name)))
    return found if len(found) == 2 else ()


def _fewer_calls(old: FactTable, new: FactTable) -> float | None:
    """How many times as often each type of operator was called before; None where these differ from each other, where
    types are too few to tell that from chance, and where their calls are of another size: that is another model, not
    another number of executions. As often as before is told by most types, however long the others take: what is called
    more often among them is what changed. Another number of executions shows in most of the time as well."""
    chosen, tables = settings(), [side.of(name) for side in (old, new) for name in (_CALLS, "operator_type.time_us")]
    found, same = [], 0
    for key in set.intersection(*(set(table) for table in tables)):
        calls, us, now, now_us = (number(table[key].value) or 0.0 for table in tables)
        if min(calls, us, now, now_us) > 0:
            found.append((calls / now, us, now_us))
            same += calls == now >= chosen.limits["executed_often"]
    found.sort()
    if not found or not all(math.isfinite(factor) for factor, *_ in found):
        return None
    noise, whole = chosen.limits["least_change"], chosen.limits["executed_alike"] * sum(us for _, us, _ in found)
    for factor in (1.0, found[len(found) // 2][0]):
        alike = [(us, now_us) for each, us, now_us in found if abs(each - factor) <= noise * factor]
        most = len(alike) >= chosen.limits["executed_types"] and 2 * len(alike) > len(found)
        took, takes = (sum(side) for side in zip(*alike, strict=True)) if alike else (0.0, 0.0)
        if abs(factor - 1) <= noise and (most or took >= whole):
            return 1.0
        if most and took >= whole:
            sizes = took, factor * takes  # what as many calls take
            return factor if max(sizes) <= chosen.limits["executed_size"] * min(sizes) else None
    others = [factor for factor, *_ in found if factor != 1.0]
    shared = max((sum(abs(each - other) <= noise * each for other in others) for each in others), default=0)
    return 1.0 if same >= chosen.limits["executed_types"] and same > shared else None


def _times(fact: Fact, factor: float) -> Fact:
    value = number(fact.value)
    if value is None or fact.name not in settings().of_executions or not math.isfinite(factor * value):
        return fact
    return replace(fact, value=factor * value)


def _weighed(finding: Finding, factor: float) -> Finding:
    return replace(finding, saving=_more(finding.saving, factor), at_stake=_more(finding.at_stake, factor))


def _more(saving: Saving | None, factor: float) -> Saving | None:
    """The same of so many times the recording."""
    if saving is None or saving.us_of_recording is None or not math.isfinite(factor * saving.us_of_recording):
        return saving
    return replace(saving, us_of_recording=factor * saving.us_of_recording)
