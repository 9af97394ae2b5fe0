"""Metrics: which facts of the run are compared, whither is worse, how much counts (knowledge_base/gate.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.basics.resources import document
from advisor.gate.judging.statistics import Limits
from advisor.knowledge.fact_titles import fact_title
from advisor.model import LANGUAGES, Text


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
    return dict(document("knowledge_base", "gate.yaml"))


def facts_of(name: str) -> tuple[str, ...]:
    """Facts that a metric may be, the best first."""
    return tuple(defaults()["metrics"].get(name, {}).get("facts", (name,)))


def title_of(name: str) -> Text:
    """What people call the metric; the fact's own title where gate.yaml has no words for it."""
    entry = defaults()["metrics"].get(name, {})
    return Text(*(entry.get(lang) or fact_title(name, lang) for lang in LANGUAGES))
