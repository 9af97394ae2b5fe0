"""The policy as it applies: which limits, budgets and findings count for a run of this kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from advisor.basics.quantity import read_quantity
from advisor.facts.base import FactKind
from advisor.gate.judging.statistics import Limits
from advisor.gate.metrics import Metric, defaults, title_of
from advisor.gate.tables import (
    BudgetTable,
    PolicyTable,
    RulesTable,
    Scalar,
    WaiverTable,
    as_metric,
    read_table,
    unit_of,
)
from advisor.model import Confidence, Severity


@dataclass(frozen=True)
class Budget:
    name: str
    unit: str
    limit: float
    at_most: bool


@dataclass(frozen=True)
class Judging:
    """The policy as it applies to one kind of run."""

    metrics: tuple[Metric, ...]
    budgets: tuple[Budget, ...]
    fail_on: Severity | None
    only_new: bool
    min_confidence: Confidence
    known_share: float
    window: int
    """Newest runs of the baseline that tell which findings are known."""
    recent: int
    """Newest runs of the baseline that its level is taken from."""
    min_runs: int
    min_history: int
    worth: float
    """Relative change of the step that is worth explaining."""


@dataclass(frozen=True)
class Policy:
    """A checked `[gate]` table."""

    table: PolicyTable
    kinds: Mapping[str, FactKind]

    @property
    def baseline(self) -> str | None:
        return self.table.baseline

    @property
    def waivers(self) -> tuple[WaiverTable, ...]:
        return tuple(self.table.waivers)

    @property
    def waiver_days(self) -> int | None:
        return self.table.waiver_days

    @property
    def key_values(self) -> dict[str, str]:
        return {name: as_word(value) for name, value in self.table.key.values.items()}

    @property
    def key_ignored(self) -> tuple[str, ...]:
        return tuple(self.table.key.ignore)

    def for_step_times(self) -> Policy:
        """What of the policy step times alone can answer: the step time, its budget, and no findings. Fewer runs
        suffice where the policy says nothing."""
        narrowed: dict[str, Any] = {
            "fail_on": "never",
            "min_runs": self.table.min_runs or int(defaults()["step_times"]["min_runs"]),
            "metrics": dict.fromkeys(defaults()["metrics"], False) | _with_mean({STEP: True, **self.table.metrics}),
            "budgets": _only_step(self.table.budgets),
            "when": [
                when.model_copy(
                    update={"fail_on": None, "metrics": _with_mean(when.metrics), "budgets": _only_step(when.budgets)}
                )
                for when in self.table.when
            ],
        }
        return replace(self, table=self.table.model_copy(update=narrowed))

    def for_run(self, attributes: Mapping[str, str], fail_on: str | None = None) -> Judging:
        """What applies to a run with these attributes: the sections of `when` that match, later ones over earlier
        ones. `fail_on` of the command line wins."""
        layers: list[RulesTable] = [self.table]
        layers += [when for when in self.table.when if _matches(when.match, attributes)]

        def last(name: str) -> Any:
            return next((v for layer in reversed(layers) if (v := getattr(layer, name)) is not None), None)

        severity = fail_on or last("fail_on")
        min_runs = last("min_runs") or int(defaults()["statistics"]["min_runs"])
        findings = defaults()["findings"]
        metrics = tuple(_metrics(layers, self.kinds))
        return Judging(
            metrics=metrics,
            budgets=tuple(_budgets(layers, self.kinds)),
            fail_on=None if severity in (None, "never") else Severity(severity),
            only_new=last("findings") != "all",
            min_confidence=Confidence(last("min_confidence") or findings["min_confidence"]),
            known_share=float(findings["known_share"]),
            window=metrics[0].limits.window,
            recent=metrics[0].limits.recent,
            min_runs=min_runs,
            min_history=last("min_history") or min_runs,
            worth=metrics[0].limits.relative,
        )


STEP, MEAN = LOGGED = ("step.time_us", "step.mean_us")
"""What a log of step times tells: the typical step, and the mean of all."""


def _only_step(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in entries.items() if name in LOGGED}


def _with_mean(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The mean is judged as the typical step is, unless it has limits of its own; older logs in a baseline lack it."""
    step = {MEAN: as_metric(metrics[STEP]).model_copy(update={"required": False})} if STEP in metrics else {}
    return {**step, **_only_step(metrics)}


def read_policy(table: Mapping[str, Any], kinds: Mapping[str, FactKind], path: Path | None = None) -> Policy:
    """Checks a `[gate]` table. Raises ConfigError that names every wrong key with the nearest known one."""
    return Policy(read_table(table, kinds, path), kinds)


def as_word(value: object) -> str:
    """A scalar of TOML as attributes hold it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _metrics(layers: list[RulesTable], kinds: Mapping[str, FactKind]) -> Iterator[Metric]:
    known = defaults()["metrics"]
    statistics = dict(defaults()["statistics"])
    for layer in layers:
        given = layer.statistics.model_dump(exclude_none=True)
        if "relative" in given:
            given["relative"] = read_quantity(given["relative"], "ratio")
        statistics.update(given)
    limits = Limits(
        **{name: statistics[name] for name in Limits.__dataclass_fields__ if name in statistics}, absolute=0.0
    )
    for name in dict.fromkeys([*known, *(n for layer in layers for n in layer.metrics)]):
        unit = unit_of(name, kinds)
        entry: dict[str, Any] = dict(known.get(name, {}))
        named = False
        for layer in layers:
            if name in layer.metrics:
                given = as_metric(layer.metrics[name]).model_dump(exclude_none=True)
                # A metric somebody names is one that shall gate and be measured, unless they say otherwise.
                entry.update({"gates": True, "required": given.get("gates", True), **given})
                named = True
        own: dict[str, Any] = {
            "relative": read_quantity(entry.get("relative"), "ratio"),
            "absolute": read_quantity(entry.get("absolute"), unit),
            "sigmas": entry.get("sigmas"),
        }
        yield Metric(
            name,
            unit,
            entry.get("better") != "higher",
            replace(limits, **{k: v for k, v in own.items() if v is not None}),
            bool(entry.get("gates", named)),
            bool(entry.get("required", False)),
            title_of(name),
        )


def _budgets(layers: list[RulesTable], kinds: Mapping[str, FactKind]) -> Iterator[Budget]:
    merged = {name: entry for layer in layers for name, entry in layer.budgets.items()}
    for name, entry in merged.items():
        unit = unit_of(name, kinds)
        if not isinstance(entry, BudgetTable):
            lower = defaults()["metrics"].get(name, {}).get("better") != "higher"
            entry = BudgetTable(at_most=entry) if lower else BudgetTable(at_least=entry)
        for value, at_most in ((entry.at_most, True), (entry.at_least, False)):
            limit = read_quantity(value, unit)
            if limit is not None:
                yield Budget(name, unit, limit, at_most)


def _matches(wanted: Mapping[str, Scalar | list[Scalar]], attributes: Mapping[str, str]) -> bool:
    return all(
        name in attributes
        and any(_fits(as_word(each), attributes[name]) for each in (value if isinstance(value, list) else [value]))
        for name, value in wanted.items()
    )


def _fits(pattern: str, value: str) -> bool:
    """Whether a value is meant: by name (`*` and `?` allowed) or, with a leading <, <=, > or >=, by size."""
    for sign in ("<=", ">=", "<", ">"):
        if pattern.startswith(sign):
            try:
                have, limit = float(value), float(pattern[len(sign) :])
            except ValueError:
                return False
            return {"<=": have <= limit, ">=": have >= limit, "<": have < limit, ">": have > limit}[sign]
    return fnmatchcase(value, pattern)
