"""Sums of recordings that hold another number of executions: they are told for as many calls as before, else the
shorter recording would be the faster one."""

from __future__ import annotations

from dataclasses import replace

from advisor.basics.units import show
from advisor.compare.facts import FactTable, number
from advisor.compare.model import Obstacle
from advisor.knowledge.comparison import settings
from advisor.knowledge.words import both
from advisor.model import Fact, Finding, Report, Saving


def as_many_calls(before: Report, after: Report) -> tuple[Report, Obstacle | None]:
    """`after` with its sums over the recording as they would be of as many calls as were made before, and what is to
    be said of it; as it is where its recording holds as many, or where something tells how long either lasts."""
    factor = 1.0
    if not before.profile.has_steps and not after.profile.has_steps:
        factor = _fewer_calls(FactTable(before.facts), FactTable(after.facts))
    if factor == 1.0:
        return after, None
    scaled = replace(
        after,
        facts=tuple(_times(fact, factor) for fact in after.facts),
        findings=tuple(_weighed(finding, factor) for finding in after.findings),
    )
    share = f"× {show(1 / factor, 'number')}"
    return scaled, Obstacle("executions", "× 1", share, False, both("difference_matters.executions"))


def _fewer_calls(old: FactTable, new: FactTable) -> float:
    """How many times as often each type of operator was called before; 1 where these differ from each other, where
    they are few, and where a length is known."""
    chosen = settings()
    if any(table.number(name) for table in (old, new) for name in chosen.steps):
        return 1.0
    counts, later, times = old.of("operator_type.count"), new.of("operator_type.count"), old.of("operator_type.time_us")
    found = []
    for key in counts.keys() & later.keys() & times.keys():
        calls, now, us = (number(table[key].value) for table in (counts, later, times))
        if calls and now and us and min(calls, now, us) > 0:
            found.append((calls / now, us))
    found.sort()
    if len(found) < chosen.limits["executed_types"]:
        return 1.0
    middle, noise = found[len(found) // 2][0], chosen.limits["least_change"]
    alike = sum(us for factor, us in found if abs(factor - middle) <= noise * middle)
    same = abs(middle - 1) <= noise or alike < chosen.limits["executed_alike"] * sum(us for _, us in found)
    return 1.0 if same else middle


def _times(fact: Fact, factor: float) -> Fact:
    value = number(fact.value)
    return fact if value is None or fact.name not in settings().of_executions else replace(fact, value=factor * value)


def _weighed(finding: Finding, factor: float) -> Finding:
    return replace(finding, saving=_more(finding.saving, factor), at_stake=_more(finding.at_stake, factor))


def _more(saving: Saving | None, factor: float) -> Saving | None:
    """The same of so many times the recording."""
    if saving is None or saving.us_of_recording is None:
        return saving
    return replace(saving, us_of_recording=factor * saving.us_of_recording)
