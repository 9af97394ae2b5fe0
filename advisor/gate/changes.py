"""What changed between a baseline and new runs: both sides are condensed to the report of a typical run and handed to
`advisor.compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from advisor.compare import Obstacle, compare
from advisor.compare.changes import Change, changes
from advisor.compare.facts import FactTable, number
from advisor.gate.sample import Sample
from advisor.model import Fact, Report

_NOISE_OF_STEPS = "step.jitter"
"""What steps of one run differ by says nothing about medians over runs."""


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
    return Explanation(tuple(changes(FactTable(before.facts), FactTable(after.facts), worth)), obstacles)


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
