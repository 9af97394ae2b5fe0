"""The nouns of the gate: what is judged, what became of it, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from advisor.compare.changes import Change
from advisor.gate.history.histories import History
from advisor.gate.judging.statistics import Comparison
from advisor.gate.sample import Difference, Sample
from advisor.gate.tables import WaiverTable
from advisor.model import Finding, Problem, Text

Note = tuple[str, Mapping[str, "str | Text"]]
"""A word of the locale's group `gate`, and what it is filled with."""


class Verdict(str, Enum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    RECORDED = "recorded"
    """No verdict yet: the history is too short, and the runs were added to it."""


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
class Unsteady:
    """A run that does not agree with the others of its set, in the metric's unit."""

    run: str
    metric: str
    title: Text
    unit: str
    value: float
    others: float
    """Median of the others."""
    changes: tuple[Change, ...] = ()
    """Parts of its step, held against the others."""


@dataclass(frozen=True)
class Recorded:
    """Runs that were put down for a history that is too short to judge by."""

    runs: tuple[Sample, ...]
    """Those that the baseline does not have yet."""
    total: int
    needed: int


@dataclass(frozen=True, repr=False)
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
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What is wrong with files of the baseline."""
    hindrances: tuple[Note, ...] = ()
    """Why it cannot pass, whatever else was judged."""
    unreadable: tuple[Problem, ...] = ()
    """Profiles in which no run could be read."""
    unsteady: tuple[Unsteady, ...] = ()
    recorded: Recorded | None = None
    asked: tuple[str, ...] = ()
    """Profiles that were named, where none was read."""

    def __repr__(self) -> str:
        judged = f"{len(self.judgements)} judged, {len(self.of(Result.FAIL))} failed"
        return f"Decision({self.verdict.value}, {judged}, runs {len(self.runs)}, history {len(self.history)})"

    def of(self, *results: Result) -> list[Judgement]:
        return [judgement for judgement in self.judgements if judgement.result in results]


@dataclass(frozen=True)
class Case:
    """What is to be judged, and against what."""

    runs: tuple[Sample, ...]
    confirming: tuple[Sample, ...] = ()
    baseline: str | None = None
    """Its name; None where the gate was asked for none."""
    histories: tuple[History, ...] = ()
    """Those of the baseline, comparable or not."""
    problems: tuple[Problem, ...] = ()
    unreadable: tuple[Problem, ...] = ()
    allowed_unreadable: int = 0
    recording: bool = False
    """Where the history is too short the runs are to be recorded instead of judged."""
