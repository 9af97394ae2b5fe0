"""Metrics: which facts of the run are compared, whither is worse, how much counts (knowledge_base/gate.yaml)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.basics.resources import resource
from advisor.gate.judging.statistics import Limits
from advisor.model import Text

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
    """The parsed knowledge_base/gate.yaml."""
    import yaml

    return dict(yaml.safe_load(resource("knowledge_base", "gate.yaml").read_text(encoding="utf-8")))


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


def facts_of(name: str) -> tuple[str, ...]:
    """Facts that a metric may be, the best first."""
    return tuple(defaults()["metrics"].get(name, {}).get("facts", (name,)))


def title_of(name: str) -> Text:
    """What people call the metric; its own name where gate.yaml has no words for it."""
    entry = defaults()["metrics"].get(name, {})
    return Text(entry.get("en", name), entry.get("zh", name))
