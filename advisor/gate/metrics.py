"""Gate metrics: which facts of the run are compared, whither is worse, and how much counts (data: defaults.yaml)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from advisor.facts.base import FactSet
from advisor.gate.statistics import Limits
from advisor.model import RUN, Text

_QUANTITY = re.compile(r"^\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)\s*$")
_SCALES: Mapping[str, Mapping[str, float]] = {
    "us": {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6},
    "bytes": {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30},
    "bytes_per_s": {"b/s": 1.0, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9},
    "ratio": {"%": 0.01},
}


@dataclass(frozen=True)
class Metric:
    """One number of a run that the gate compares."""

    name: str
    unit: str
    lower_is_better: bool
    limits: Limits
    gates: bool
    required: bool
    title: Text


@cache
def defaults() -> Mapping[str, Any]:
    """The parsed defaults.yaml."""
    import yaml

    path = Path(__file__).with_name("defaults.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def read_quantity(value: object, unit: str) -> float | None:
    """A number, or a text with a unit ("58 GB", "200 us", "5 %"), in the unit of a fact; None where it is neither."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value) if math.isfinite(value) else None
    match = _QUANTITY.match(str(value))
    if match is None:
        return None
    scale = 1.0 if not match[2] else _SCALES.get(unit, {}).get(match[2].lower())
    return None if scale is None else float(match[1]) * scale


def value_of(facts: FactSet, name: str, lower_is_better: bool = True) -> float | None:
    """The run's value; of a fact that only parts of the run have (ranks, links, …) the worst one."""
    for fact_name in facts_of(name):
        whole = facts.value(fact_name, RUN)
        values = [whole] if whole is not None else [fact.value for fact in facts.of(fact_name).values()]
        numbers = [float(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]
        if numbers:
            return max(numbers) if lower_is_better else min(numbers)
    return None


def facts_of(name: str) -> tuple[str, ...]:
    """Facts that a metric may be, the best first."""
    return tuple(defaults()["metrics"].get(name, {}).get("facts", (name,)))


def title_of(name: str) -> Text:
    """What people call the metric; its own name where defaults.yaml has no words for it."""
    entry = defaults()["metrics"].get(name, {})
    return Text(entry.get("en", name), entry.get("zh", name))
