"""Metrics against the history, and budgets against their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from advisor.gate.judging.bench import Bench
from advisor.gate.judging.readings import Readings, Way, read, value_of
from advisor.gate.judging.statistics import Comparison, compare
from advisor.gate.metrics import Metric, title_of
from advisor.gate.model import Judgement, Result
from advisor.gate.policy import Budget
from advisor.gate.sample import Sample

_TOO_FEW = ("no_baseline", "few_runs", "few_history")
"""Reasons for which a metric stays open without anything being wrong with it."""

_OTHER_SOURCE = ("other_source", "mixed_source")


def judge_metrics(bench: Bench) -> Iterator[Judgement]:
    """Every metric that gates or could be compared."""
    for metric in bench.judging.metrics:
        judgement = _judge(metric, bench)
        if judgement is not None:
            yield judgement


def _judge(metric: Metric, bench: Bench) -> Judgement | None:
    found = read(metric.name, bench.runs, bench.history, bench.confirming, metric.lower_is_better)
    reason, values = _why_open(metric.name, bench, found)
    if reason:
        if not metric.gates or not (found.runs or found.history or found.ways or metric.required):
            return None
        return Judgement(
            "metric", metric.name, metric.title, Result.NOT_JUDGED, reason, values, metric.unit,
            value=median(found.runs) if found.runs else None,
            required=reason in _OTHER_SOURCE or (metric.required and reason not in _TOO_FEW),
        )  # fmt: skip
    compared = compare(
        found.history, found.runs, metric.limits, lower_is_better=metric.lower_is_better, confirming=found.confirming
    )
    result, reason = result_of(compared)
    return Judgement(
        "metric", metric.name, metric.title, result if metric.gates else Result.WATCHED, reason,
        {"beyond": str(compared.beyond), "runs": str(compared.runs)}, metric.unit, compared, compared.after,
        at_most=metric.lower_is_better, required=metric.required or result is Result.NOT_JUDGED,
    )  # fmt: skip


def result_of(found: Comparison) -> tuple[Result, str]:
    """Of runs that are divided nobody can tell, unless the confirming ones show nothing."""
    if not (found.worse or found.divided):
        return Result.PASS, "better" if found.better else "slight" if found.slight else "same"
    if found.confirmed is False:
        return Result.NOT_CONFIRMED, "not_confirmed"
    if found.divided:
        return Result.NOT_JUDGED, "divided"
    return Result.FAIL, "worse"


def _why_open(metric: str, bench: Bench, found: Readings) -> tuple[str, Mapping[str, str]]:
    """Why the metric cannot be judged; empty where it can."""
    needed, needed_before = bench.judging.min_runs, bench.judging.min_history
    count, missing = len(found.runs), len(bench.runs) - len(found.runs)
    if not bench.named:
        return "no_baseline", {}
    if found.ways is not None and not bench.differences:
        return "other_source" if found.runs else "mixed_source", _ways(*found.ways)
    if not count:
        return _unmeasured(metric, bench), {}
    if bench.differences:
        return "not_comparable", {}
    if missing > bench.spare:
        return "missing_in_runs", {"missing": str(missing), "runs": str(len(bench.runs))}
    if count < needed:
        return "few_runs", {"runs": str(count), "needed": str(needed)}
    if bench.history and not found.history:
        return "not_in_baseline", {}
    if len(found.history) < needed_before:
        return "few_history", {"runs": str(len(found.history)), "needed": str(needed_before)}
    return "", {}


def _unmeasured(name: str, bench: Bench) -> str:
    """Why there is no value: nothing marks steps, so that no time is one of a step, or simply nothing was recorded."""
    return "no_steps" if name.endswith("_us") and not bench.runs[0].info.has_steps else "not_measured"


def _ways(before: Way, after: Way) -> dict[str, str]:
    """The two ways, by their files where these tell them apart."""
    if before.fact == after.fact:
        return {"before": before.files, "after": after.files}
    return {"before": before.fact, "after": after.fact}


def judge_budgets(bench: Bench) -> Iterator[Judgement]:
    """Every budget; one run is enough."""
    for budget in bench.judging.budgets:
        yield _judge_budget(budget, bench)


def _judge_budget(budget: Budget, bench: Bench) -> Judgement:
    values = _values(budget, bench.runs)
    title = title_of(budget.name)
    if not values:
        return Judgement(
            "budget", budget.name, title, Result.NOT_JUDGED, _unmeasured(budget.name, bench), {}, budget.unit,
            limit=budget.limit, at_most=budget.at_most, required=True,
        )  # fmt: skip
    value = median(values)
    result, reason = Result.PASS, "within"
    if _breaks(value, budget):
        result, reason = Result.FAIL, "over" if budget.at_most else "under"
        again = _values(budget, bench.confirming)
        if again and not _breaks(median(again), budget):
            result, reason = Result.NOT_CONFIRMED, "not_confirmed"
    return Judgement(
        "budget", budget.name, title, result, reason, {}, budget.unit, None, value, budget.limit, budget.at_most
    )


def _values(budget: Budget, samples: tuple[Sample, ...]) -> list[float]:
    return [v for s in samples if (v := value_of(s, budget.name, budget.at_most)) is not None]


def _breaks(value: float, budget: Budget) -> bool:
    return value > budget.limit if budget.at_most else value < budget.limit
