"""What accounts for a change of the step: which part of it, which operator type, rank or collective.

Both sides are condensed to the report of a typical run and handed to `advisor.compare`, so that the gate and
`advisor compare` explain a change alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from advisor.compare import Comparison, Obstacle, compare
from advisor.compare.facts import FactTable, number
from advisor.gate.sample import Sample
from advisor.knowledge.comparison import settings
from advisor.model import RUN, Fact, Report, Subject

_STEPS = ("step.time_us", "data.step_us")
_NOISE_OF_STEPS = "step.jitter"
"""What steps of one run differ by says nothing about medians over runs."""


@dataclass(frozen=True)
class Change:
    """One contribution, microseconds per step. `share` is of the step's own change. Parts of the step (subject: the
    run) add up; those who account for a part overlap."""

    part: str
    fact: str
    subject: Subject
    before: float
    after: float
    share: float

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Explanation:
    """What changed between the baseline and the runs, and what else differs between them."""

    changes: tuple[Change, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()


def explain(history: Sequence[Sample], runs: Sequence[Sample], worth: float) -> Explanation:
    """Parts of the step that changed as the step did, each with those who account for it; nothing where the step
    changed by less than `worth` of itself. Both sides not empty."""
    found = compare(typical(history), typical(runs))
    return Explanation(tuple(_changes(found, worth)), found.obstacles)


def _changes(found: Comparison, worth: float) -> Iterator[Change]:
    step = next((m for name in _STEPS if (m := found.metric(name)) and m.before and m.after), None)
    if step is None or step.before is None or step.after is None:
        return
    total = step.after - step.before
    if abs(total) <= worth * step.before:
        return
    least = settings().limits["account_share"]
    for part in settings().accounts:
        metric = found.metric(part)
        if metric is None or metric is step or metric.before is None or metric.after is None:
            continue
        share = (metric.after - metric.before) / total
        if share < least:
            continue
        yield Change(part, part, RUN, metric.before, metric.after, share)
        for account in found.accounts:
            if account.part == part:
                yield Change(
                    part, account.fact, account.subject, account.before or 0.0, account.after or 0.0,
                    account.change_us / total,
                )  # fmt: skip


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
