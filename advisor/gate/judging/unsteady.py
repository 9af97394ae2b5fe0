"""Runs that do not agree with the others of their set, and in what they differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from advisor.compare.changes import Role
from advisor.gate.changes import explain
from advisor.gate.judging.readings import value_of
from advisor.gate.judging.statistics import robust_sigma
from advisor.gate.metrics import Metric
from advisor.gate.model import Unsteady
from advisor.gate.sample import Sample


def find_unsteady(runs: Sequence[Sample], history: Sequence[Sample], metric: Metric) -> tuple[Unsteady, ...]:
    """Runs whose metric lies further from the others' median than runs of the baseline do from one another."""
    values = [(run, v) for run in runs if (v := value_of(run, metric.name, metric.lower_is_better)) is not None]
    known = [v for run in history if (v := value_of(run, metric.name, metric.lower_is_better)) is not None]
    limits = metric.limits
    found = []
    for run, value in values if len(values) > 1 else ():
        rest = [other for other, _ in values if other is not run]
        others = median(v for other, v in values if other is not run)
        sigma = robust_sigma(known[-limits.window :]) if len(known) >= limits.noise_runs else 0.0
        noise = max(sigma, 0.0 if sigma else limits.assumed_noise * abs(others))
        if abs(value - others) > max(limits.relative * abs(others), limits.absolute, limits.sigmas * noise):
            changes = [c for c in explain(rest, [run], limits.relative).changes if c.role is Role.PART and not c.rest]
            found.append(Unsteady(run.id, metric.name, metric.title, metric.unit, value, others, tuple(changes)))
    return tuple(sorted(found, key=lambda item: -abs(item.value - item.others)))
