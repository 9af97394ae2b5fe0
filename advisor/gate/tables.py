"""The `[gate]` table as people write it: its keys, and everything that can be wrong with them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from advisor.basics.errors import ConfigError
from advisor.basics.quantity import read_quantity
from advisor.basics.suggest import suggest
from advisor.facts.base import FactKind
from advisor.gate.metrics import defaults

Scalar = str | int | float | bool


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MetricTable(_Table):
    better: Literal["lower", "higher"] | None = None
    relative: float | str | None = None
    absolute: float | str | None = None
    sigmas: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    gates: bool | None = None
    required: bool | None = None


class BudgetTable(_Table):
    at_most: float | str | None = None
    at_least: float | str | None = None


class StatisticsTable(_Table):
    """Overrides of knowledge_base/gate.yaml: what each means stands there."""

    window: int | None = Field(default=None, ge=1)
    recent: int | None = Field(default=None, ge=1)
    relative: float | str | None = None
    sigmas: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    agreement: float | None = Field(default=None, ge=0, le=1)
    confirmation: float | None = Field(default=None, ge=0, le=1)
    dissent: float | None = Field(default=None, ge=0, lt=0.5)
    assumed_noise: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class RulesTable(_Table):
    """What may differ from model to model."""

    metrics: dict[str, MetricTable | float | str | bool] = {}
    budgets: dict[str, BudgetTable | float | str] = {}
    fail_on: Literal["low", "medium", "high", "critical", "never"] | None = None
    findings: Literal["new", "all"] | None = None
    min_confidence: Literal["low", "medium", "high"] | None = None
    min_runs: int | None = Field(default=None, ge=1)
    min_history: int | None = Field(default=None, ge=1)
    statistics: StatisticsTable = StatisticsTable()


class WhenTable(RulesTable):
    match: dict[str, Scalar | list[Scalar]] = Field(min_length=1)


class WaiverTable(_Table):
    finding: str | None = None
    """Verdict or rule."""
    metric: str | None = None
    budget: str | None = None
    subject: str = "*"
    reason: str = Field(min_length=1)
    until: datetime.date


class KeyTable(_Table):
    ignore: list[str] = []
    values: dict[str, Scalar] = {}


class PolicyTable(RulesTable):
    baseline: str | None = None
    when: list[WhenTable] = []
    waivers: list[WaiverTable] = []
    waiver_days: int | None = Field(default=None, ge=1)
    """Longer waivers are told."""
    key: KeyTable = KeyTable()


def read_table(table: Mapping[str, Any], kinds: Mapping[str, FactKind], path: Path | None = None) -> PolicyTable:
    """Checks a `[gate]` table. Raises ConfigError that names every wrong key with the nearest known one."""
    place = str(path or "")
    try:
        parsed = PolicyTable.model_validate(_flattened(table, kinds))
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(error)), place=place) from None
    faults = list(_faults(parsed, kinds))
    if faults:
        raise ConfigError("; ".join(faults), place=place)
    return parsed


def _flattened(table: Mapping[str, Any], kinds: Mapping[str, FactKind]) -> dict[str, Any]:
    """TOML reads `step.time_us = …` as a table in a table: joined again where that names a fact. A waiver's date may
    be a text."""
    result = dict(table)
    for section in ("metrics", "budgets"):
        if isinstance(result.get(section), Mapping):
            result[section] = dict(_joined(result[section], kinds))
    if isinstance(result.get("when"), list):
        result["when"] = [_flattened(w, kinds) if isinstance(w, Mapping) else w for w in result["when"]]
    if isinstance(result.get("waivers"), list):
        result["waivers"] = [_with_date(w) if isinstance(w, Mapping) else w for w in result["waivers"]]
    return result


def _joined(table: Mapping[str, Any], kinds: Mapping[str, FactKind], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = prefix + str(key)
        if isinstance(value, Mapping) and name not in kinds and any(kind.startswith(name + ".") for kind in kinds):
            yield from _joined(value, kinds, name + ".")
        else:
            yield name, value


def _with_date(waiver: Mapping[str, Any]) -> dict[str, Any]:
    until = waiver.get("until")
    if isinstance(until, datetime.datetime):
        return {**waiver, "until": until.date()}
    if isinstance(until, str):
        try:
            return {**waiver, "until": datetime.date.fromisoformat(until)}
        except ValueError:
            return dict(waiver)
    return dict(waiver)


def _explain(error: ValidationError) -> Iterator[str]:
    said: set[str] = set()
    for item in error.errors():
        where = [str(part) for part in item["loc"] if not str(part).endswith("Table")]
        where = [part for part in where if part not in ("float", "str", "bool")]
        name = "gate." + ".".join(where)
        if item["type"] == "extra_forbidden":
            known = _keys_at(item["loc"])
            near = suggest(where[-1], known)
            text = f"unknown key {name}" + (
                f" (did you mean {near[0]}?)" if near else f" (known: {', '.join(known)})" if known else ""
            )
        elif item["type"] == "missing":
            text = f"{name} is missing"
        elif item["type"] == "literal_error":
            known = re.findall(r"'([^']*)'", item["ctx"]["expected"])
            near = suggest(str(item["input"]), known)
            text = f"{name}: {item['input']!r} is none of {', '.join(known)}" + (
                f" (did you mean {near[0]}?)" if near else ""
            )
        else:
            text = f"{name}: {item['msg'][:1].lower()}{item['msg'][1:]}"
        if text not in said and not (said and any(name in earlier and "unknown key" in earlier for earlier in said)):
            said.add(text)
            yield text


_TABLES: Mapping[str, type[BaseModel]] = {
    "metrics": MetricTable, "budgets": BudgetTable, "statistics": StatisticsTable, "when": WhenTable,
    "waivers": WaiverTable, "key": KeyTable,
}  # fmt: skip


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """Known keys of the table in which the last part of an error's location stands."""
    table: type[BaseModel] = PolicyTable
    for part in location[:-1]:
        table = _TABLES.get(str(part), table)
    return sorted(table.model_fields)


def _faults(table: PolicyTable, kinds: Mapping[str, FactKind]) -> Iterator[str]:
    """What pydantic cannot see: names of facts, quantities with units, directions."""
    layers: list[tuple[str, RulesTable]] = [("gate", table)]
    layers += [(f"gate.when.{index}", when) for index, when in enumerate(table.when)]
    for place, layer in layers:
        for section, names in (("metrics", layer.metrics), ("budgets", layer.budgets)):
            for name in names:
                if name not in kinds and name not in defaults()["metrics"]:
                    near = suggest(name, [*kinds, *defaults()["metrics"]])
                    hint = f" (did you mean {near[0]}?)" if near else " (`advisor facts list` names them all)"
                    yield f"{place}.{section}: unknown metric {name}{hint}"
        yield from _metric_faults(place, layer, table, kinds)
        yield from _budget_faults(place, layer, kinds)
        if _amount(layer.statistics.relative, "ratio") is _WRONG:
            yield f"{place}.statistics.relative must be a number or a text as '3 %'"
    for index, waiver in enumerate(table.waivers):
        if sum(x is not None for x in (waiver.finding, waiver.metric, waiver.budget)) != 1:
            yield f"gate.waivers.{index} must name one of finding, metric, budget"


_WRONG = object()


def _amount(value: object, unit: str) -> object:
    """A limit as a number, None where it is not given, `_WRONG` where it cannot be read or is negative."""
    if value is None:
        return None
    number = read_quantity(value, unit)
    return _WRONG if number is None or number < 0 else number


def unit_of(name: str, kinds: Mapping[str, FactKind]) -> str:
    """Unit of a metric; what its name says where the catalogue does not know it (yet)."""
    return kinds[name].unit if name in kinds else name.rpartition("_")[2]


def _metric_faults(place: str, layer: RulesTable, whole: PolicyTable, kinds: Mapping[str, FactKind]) -> Iterator[str]:
    for name, entry in layer.metrics.items():
        limits = as_metric(entry)
        for field, unit in (("relative", "ratio"), ("absolute", unit_of(name, kinds))):
            limit = _amount(given := getattr(limits, field), unit)
            if limit is _WRONG:
                yield f"{place}.metrics.{name}.{field}: {given!r} is no positive amount in {unit}"
            elif field == "relative" and isinstance(given, (int, float)) and given >= 1:
                yield f'{place}.metrics.{name}.relative: {given!r} lets it double; for {given:g} % write "{given:g} %"'
        known = defaults()["metrics"].get(name, {}).get("better") or any(
            as_metric(t.metrics[name]).better for t in (whole, *whole.when) if name in t.metrics
        )
        if not known and entry is not False and name in kinds:
            yield f'{place}.metrics.{name} needs better = "lower" or "higher"'


def _budget_faults(place: str, layer: RulesTable, kinds: Mapping[str, FactKind]) -> Iterator[str]:
    for name, entry in layer.budgets.items():
        unit = unit_of(name, kinds)
        if not isinstance(entry, BudgetTable):
            if "better" not in defaults()["metrics"].get(name, {}):
                yield f"{place}.budgets.{name} needs at_most or at_least: {{ at_most = {entry!r} }}"
            entry = BudgetTable(at_most=entry)
        if entry.at_most is None and entry.at_least is None:
            yield f"{place}.budgets.{name} needs at_most or at_least"
        for field in ("at_most", "at_least"):
            value = getattr(entry, field)
            if _amount(value, unit) is _WRONG:
                yield f"{place}.budgets.{name}.{field}: {value!r} is no positive amount in {unit}"


def as_metric(entry: MetricTable | float | str | bool) -> MetricTable:
    """`name = 0.05` is a relative limit, `name = false` takes the metric out, `name = true` lets it gate."""
    if isinstance(entry, MetricTable):
        return entry
    if isinstance(entry, bool):
        return MetricTable(gates=entry, required=entry)
    return MetricTable(relative=entry)
