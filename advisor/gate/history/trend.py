"""A baseline over time: each metric over the runs of one kind, with the level and limit that held for each run, levels
accepted, findings that came and went, and runs that are out of line. Runs of different kinds are never in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.compare.identity import Identity, identities
from advisor.gate.history.histories import Acceptance, History
from advisor.gate.judging.readings import value_of
from advisor.gate.judging.statistics import compare
from advisor.gate.metrics import Metric, defaults
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample
from advisor.model import Finding, Outcome, Severity

JUDGED = (Outcome.PASS, Outcome.FAIL, Outcome.NOT_APPLICABLE)
"""What became of a rule that would have found what is there."""


@dataclass(frozen=True)
class Point:
    """A run's value, and what held for it: the level of the runs before it, and from where on a set of runs fails."""

    value: float
    level: float | None = None
    limit: float | None = None
    unsteady: bool = False
    """Further from the level than single runs differ by."""
    change: float | None = None
    """Relative to the level."""


@dataclass(frozen=True)
class Line:
    """One metric; a point a run, None where the run did not measure it."""

    metric: Metric
    points: tuple[Point | None, ...]
    level: float = 0.0
    """Of the runs that count now."""
    limit: float = 0.0
    """From where on a set of runs fails now."""


@dataclass(frozen=True)
class Event:
    """What happened with a run: a level accepted, findings that came or went."""

    accepted: Acceptance | None = None
    appeared: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Trend:
    """One kind of run, oldest run first."""

    history: History
    lines: tuple[Line, ...]
    events: tuple[Event, ...]

    @property
    def runs(self) -> tuple[Sample, ...]:
        return self.history.everything


def follow(history: History, policy: Policy, wanted: str | None = None) -> Trend:
    """Every metric that gates or, where `wanted` names one, this one; metrics that no run has are left out."""
    runs = history.everything
    judging = policy.for_run(runs[-1].attributes)
    metrics = [m for m in judging.metrics if m.name == wanted or (wanted is None and m.gates)]
    starts = {mark.first: mark for mark in history.accepted}
    lines = [_line(metric, runs, set(starts), judging.min_runs) for metric in metrics]
    comings = list(_comings(runs))
    events = [Event(starts.get(index), *comings[index]) for index in range(len(runs))]
    return Trend(history, tuple(line for line in lines if any(line.points)), tuple(events))


def metrics_of(history: History, policy: Policy) -> list[str]:
    """Names of the metrics that a line can be drawn of."""
    runs = history.everything
    metrics = policy.for_run(runs[-1].attributes).metrics
    return [m.name for m in metrics if any(value_of(run, m.name, m.lower_is_better) is not None for run in runs)]


def _line(metric: Metric, runs: Sequence[Sample], starts: set[int], min_runs: int) -> Line:
    points: list[Point | None] = []
    before: list[float] = []
    for index, run in enumerate(runs):
        if index in starts:
            before = []
        value = value_of(run, metric.name, metric.lower_is_better)
        points.append(None if value is None else _point(value, before, metric, min_runs))
        if value is not None:
            before.append(value)
    now = _point(before[-1], before, metric, min_runs) if before else Point(0.0)
    return Line(metric, tuple(points), now.level or 0.0, now.limit or 0.0)


def _point(value: float, before: Sequence[float], metric: Metric, min_runs: int) -> Point:
    if not before:
        return Point(value)
    sign = 1 if metric.lower_is_better else -1
    single = compare(before, [value], metric.limits, lower_is_better=metric.lower_is_better)
    usual = compare(before, [value] * min_runs, metric.limits, lower_is_better=metric.lower_is_better)
    limit = usual.before + sign * usual.threshold
    return Point(value, single.before, limit, single.worse or single.better, single.change)


def _comings(runs: Sequence[Sample]) -> list[tuple[tuple[Finding, ...], tuple[Finding, ...]]]:
    """For each run the findings that appeared with it and those that were gone. What flickers for a single run neither
    came nor went; a rule that could not be judged in a run says nothing of it."""
    least = Severity(defaults()["findings"]["shown_from"]).rank
    identity = identities(run.findings for run in runs)
    found = [{identity(f): f for f in run.findings if f.severity.rank >= least} for run in runs]
    present: dict[Identity, Finding] = dict(found[0]) if found else {}
    events: list[tuple[tuple[Finding, ...], tuple[Finding, ...]]] = [((), ())] if found else []
    for index in range(1, len(runs)):
        now, following = found[index], found[min(index + 1, len(runs) - 1)]
        judged = {
            check.rule for check in runs[index].checked if check.outcome.value in ("pass", "fail", "not_applicable")
        }
        appeared = {key: now[key] for key in now if key not in present and key in following}
        gone = {
            key: finding
            for key, finding in present.items()
            if key not in now and key not in following and finding.rule in judged
        }
        present = {key: finding for key, finding in {**present, **appeared}.items() if key not in gone}
        events.append((tuple(appeared.values()), tuple(gone.values())))
    return events
