"""The nouns of the gate: what is judged, what became of it, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from advisor.gate.changes import Change
from advisor.gate.sample import Difference, Sample
from advisor.gate.statistics import Comparison
from advisor.gate.tables import WaiverTable
from advisor.model import Finding, Problem, Text


class Verdict(str, Enum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Result(str, Enum):
    """What became of one thing the gate looked at."""

    PASS = "pass"
    FAIL = "fail"
    NOT_CONFIRMED = "not_confirmed"
    WAIVED = "waived"
    WATCHED = "watched"
    """Looked at and shown; the policy does not let it fail the gate."""
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Judgement:
    """One metric, budget or finding. `reason` is a word of the locale's group `gate`, filled with `values`."""

    kind: str
    """metric, budget, finding or findings (all of them together)"""
    name: str
    title: Text
    result: Result
    reason: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    comparison: Comparison | None = None
    value: float | None = None
    limit: float | None = None
    at_most: bool = True
    finding: Finding | None = None
    waiver: WaiverTable | None = None
    required: bool = False


@dataclass(frozen=True)
class Decision:
    """The whole answer of the gate."""

    verdict: Verdict
    judgements: tuple[Judgement, ...]
    changes: tuple[Change, ...]
    runs: tuple[Sample, ...]
    confirming: tuple[Sample, ...]
    history: tuple[Sample, ...]
    baseline: str | None
    differences: tuple[Difference, ...] = ()
    """Why no run of the baseline could be compared: the fields in which the nearest key differs."""
    notes: tuple[tuple[str, Mapping[str, str]], ...] = ()
    problems: tuple[Problem, ...] = ()

    def of(self, *results: Result) -> list[Judgement]:
        return [judgement for judgement in self.judgements if judgement.result in results]


@dataclass(frozen=True)
class Case:
    """What is to be judged, and against what."""

    runs: tuple[Sample, ...]
    confirming: tuple[Sample, ...] = ()
    baseline: str | None = None
    """Its name; None where the gate was asked for none."""
    candidates: tuple[Sample, ...] = ()
    """Runs of the baseline, oldest first, comparable or not."""
    problems: tuple[Problem, ...] = ()
