"""The nouns every stage shares: subjects, facts, findings and the report.

Frozen dataclasses; nothing here reads a file or knows a layout. The JSON form of `Report` is the public contract
(`reports/schemas/report.schema.json`); `exchange.py` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Severity(str, Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


SEVERITIES = tuple(severity.value for severity in Severity)


class Confidence(str, Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        return list(Confidence).index(self)


class Direction(str, Enum):
    COMPUTATION = "computation"
    SCHEDULING = "scheduling"
    COMMUNICATION = "communication"
    EVIDENCE = "evidence"


DIRECTIONS = tuple(direction.value for direction in Direction)


class Role(str, Enum):
    ROOT_CAUSE = "root_cause"
    SYMPTOM = "symptom"
    CONTRIBUTING = "contributing"


class Outcome(str, Enum):
    FAIL = "fail"
    PASS = "pass"
    NOT_APPLICABLE = "not_applicable"
    NO_DATA = "no_data"
    ERROR = "error"


_SHORT = 60
"""Characters of a path in a `repr`."""
SUBJECT_KINDS = (
    "run",
    "rank",
    "step",
    "stage",
    "operator",
    "operator_type",
    "pipeline_op",
    "queue",
    "collective",
    "link",
    "host",
    "collection",
)

LANGUAGES = ("en", "zh")
"""Languages that every text comes in."""
ENGINES = ("auto", "durable", "python")
"""Engines to choose from: durable-rules, the plain loop, or the first of them that can be used."""

Value = float | int | str | bool | tuple[Any, ...]
"""What a fact may hold: a finite number, a text, a truth value, or a tuple of those (a list in JSON)."""


@dataclass(frozen=True)
class Text:
    """The same sentence in English and Chinese."""

    en: str
    zh: str

    def get(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en


@dataclass(frozen=True, order=True)
class Subject:
    """What a fact or finding is about. `ranks` are the global ranks concerned, empty where there are none."""

    kind: str
    id: str
    ranks: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.id if self.kind == self.id else f"{self.kind} {self.id}"

    @property
    def as_said(self) -> Subject:
        """Itself; the rank behind it where the contract knows a verdict of the whole run only."""
        return Subject("rank", str(self.ranks[0]), self.ranks) if self.kind == "run" and self.ranks else self


RUN = Subject("run", "run")
COLLECTION = Subject("collection", "collection")


@dataclass(frozen=True)
class Source:
    """Where a fact was read: file relative to the profile, columns, steps."""

    file: str
    columns: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    """First and last line of the file with these steps, the heading being line 1; empty where nobody looked."""
    table: str = ""
    """The canonical table it was read from."""


@dataclass(frozen=True)
class Fact:
    """One measured quantity of one subject. Its unit stands in the catalogue under `name`; absent is never zero."""

    name: str
    subject: Subject
    value: Value
    samples: int = 1
    sources: tuple[Source, ...] = ()
    doubted: tuple[str, ...] = ()
    """Files it rests on that hold impossible numbers, or contradict themselves or one another."""


@dataclass(frozen=True)
class Problem:
    """Something about the input a user should know: the file and what is wrong with it."""

    file: str
    problem: str
    also: tuple[str, ...] = field(default=(), compare=False)
    """Further files with the same problem."""
    lost: tuple[str, ...] = field(default=(), compare=False)
    """Tables that the file was to give and of which nothing could be used."""
    doubted: tuple[str, ...] = field(default=(), compare=False)
    """Tables with impossible numbers, or that contradict themselves or others: what rests on them is uncertain."""
    failed: tuple[str, ...] = field(default=(), compare=False)
    """Families of facts that a defect of the advisor kept from being measured, or from being measured as a whole."""


@dataclass(frozen=True)
class Evidence:
    """A fact a finding rests on, with the condition it met. `expected` is the threshold's own text."""

    fact: str
    value: Value
    unit: str
    condition: str = ""
    subject: Subject = RUN
    source: Source | None = None
    more_sources: tuple[Source, ...] = ()
    """Where other operands of the value were read."""


@dataclass(frozen=True)
class Saving:
    """What removing the cause would give: per step and as a share of it, or where nothing marks steps in the whole
    recording; the other pair is None then."""

    us_per_step: float | None
    share_of_step: float | None
    basis: Text
    us_of_recording: float | None = None
    share_of_recording: float | None = None
    range_us: tuple[float, float] | None = None
    """Between which it lies, by the spread of the steps and by what the estimate is usually off."""
    after_others_us: float | None = None
    """What it still gives once the findings above it are repaired."""
    removes: str = ""
    """What a replay of the step puts right about the subject (`ruleset.rule.REMOVES`); empty: it cannot be replayed."""
    kind: str = "estimate"
    """estimate, or upper_bound: no more than this, perhaps much less."""
    lost_us: float | None = None
    """What the cause loses of the same step or recording, where its remedy gives back only a part."""
    error_share: float | None = None
    """By what part of it the gain may be more or less, as far as the cause itself leaves it open."""
    idle_us: float = 0.0
    """What of it is idle time on the typical rank, where that is not all of it."""
    most_us: float | None = None
    """More than this it cannot come to, where something bounds it."""
    lone_step: str = ""
    """The only step that loses it: what is of each step is that step's loss over all that were recorded."""
    of_steps: int = 1
    """How many these are, where one alone loses it."""
    without_absent_us: float | None = None
    """The most that it gives where ranks without a profile, which the step waits for, do not have the same cause."""
    keeping_up_us: float | None = None
    """What it gives once the data loader, or the host, keeps up, where that is behind and takes a part of it back."""
    held_by: str = ""
    """Which of them does: loading, launching."""
    shortened_us: float | None = None
    """What its kernels take less, where collectives that they hide take a part of it back."""
    stays_us: float | None = None
    """What it still gives once whatever some ranks or links alone do worse is repaired; None: nothing tells."""

    @property
    def us(self) -> float:
        """Microseconds, of whichever it is."""
        return self.us_per_step or self.us_of_recording or 0.0

    @property
    def once_us(self) -> float:
        """What it is of the one step that loses it; `us` where more do."""
        return self.us * self.of_steps

    @property
    def loses_us(self) -> float:
        """What the cause loses: no less than its remedy gives back."""
        return max(self.us, self.lost_us or 0.0)

    @property
    def share(self) -> float | None:
        """Part of whichever it is."""
        return self.share_of_step if self.share_of_step is not None else self.share_of_recording


@dataclass(frozen=True)
class Verify:
    """How to see that a remedy worked: the fact that must move, and whither ("falls", "rises", "= 0", …)."""

    fact: str
    expect: str


@dataclass(frozen=True)
class Remedy:
    """One thing to do, with values computed for this profile."""

    id: str
    title: Text
    action: Text
    parameter: str | None = None
    current: Value | None = None
    proposed: Value | None = None
    snippet: str = ""
    verify: Verify | None = None
    effort: str = ""
    risk: Text | None = None
    brings_evidence: bool = False
    """It repairs nothing: it brings the files that tell what to repair."""


@dataclass(frozen=True)
class Finding:
    """A verdict about a subject, with what it rests on and what to do."""

    id: str
    rule: str
    verdict: str
    direction: Direction
    role: Role
    severity: Severity
    confidence: Confidence
    subject: Subject
    title: Text
    message: Text
    evidence: tuple[Evidence, ...] = ()
    because: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    saving: Saving | None = None
    remedies: tuple[Remedy, ...] = ()
    statements: tuple[str, ...] = ()
    references: tuple[Mapping[str, str], ...] = ()
    doubts: tuple[Text, ...] = ()
    """What lowered the confidence, and what would raise it."""
    status: str = "stable"
    at_stake: Saving | None = None
    """Time that is lost and of which no cause is known yet: never a saving."""

    @property
    def weight_us(self) -> float:
        """What it is about, saving or at stake, microseconds."""
        told = self.saving or self.at_stake
        return told.us if told is not None else 0.0


@dataclass(frozen=True)
class WhatIf:
    """The step replayed without some of its causes."""

    causes: tuple[str, ...]
    """Ids of findings, in the order in which repairing them gives most soonest."""
    step_time_us: Mapping[str, float]
    """Ids joined by commas, in the order of `causes`; "" for the step as it is."""


@dataclass(frozen=True)
class Utilisation:
    """What a step computes, against what the card can and what its kernels did at best."""

    flop: float
    """Operations of multiplications, convolutions and attention, per step."""
    flop_per_s: float
    counted_share: float
    """Part of the time of such kernels whose shapes tell their operations."""
    card: str = ""
    peak_flop_per_s: float | None = None
    """None where the card's variant or a data type's peak is not known."""
    model_flops_share: float | None = None
    best_step_us: tuple[float, float] | None = None
    """The step, if each operator type ran at the best speed seen for it, and at its middle one."""


@dataclass(frozen=True)
class Accounting:
    """Every microsecond of the step: the four parts sum to it."""

    step_us: float
    useful_us: float
    avoidable_us: Mapping[str, float]
    """Finding -> what repairing it gives once those above it are repaired."""
    unavoidable_us: Mapping[str, float]
    """bubble: what the schedule needs; transfer: data moving at the links' own bandwidth, hidden by nothing."""
    unexplained_us: float
    unexplained_parts_us: Mapping[str, float] = field(default_factory=dict)
    """Where the unexplained time stands: slow_transfer, absent_wait, late_wait, stage_wait, communication, idle,
    unexplained."""
    use: Utilisation | None = None


@dataclass(frozen=True)
class Check:
    """What became of one rule."""

    rule: str
    outcome: Outcome
    missing: tuple[str, ...] = ()
    reason: str = ""
    title: Text | None = None


@dataclass(frozen=True)
class MissingEvidence:
    """Evidence that was not collected, the setting that brings it, and the rules that wait for it."""

    evidence: str
    setting: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Parallelism:
    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    source: str = "unknown"


@dataclass(frozen=True)
class ProfileInfo:
    path: str
    framework: str = "unknown"
    layout: str = "files"
    ranks: tuple[int, ...] = ()
    world_size: int | None = None
    steps: tuple[str, ...] = ()
    excluded_steps: tuple[tuple[str, str], ...] = ()
    """(step, reason) pairs."""
    parallelism: Parallelism = Parallelism()
    devices: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    recording: str = "training_steps"
    """training_steps, inference, kernel_benchmark, unmarked or fragment."""
    recording_reason: Text = field(default_factory=lambda: Text("", ""))
    has_steps: bool = True
    """Whether something marks steps; else every figure is one of the whole recording."""


@dataclass(frozen=True)
class Summary:
    direction: str
    headline: Text
    step_time_us: float | None = None
    breakdown: Mapping[str, float] = field(default_factory=dict)
    recording_us: float | None = None
    """Length of what is judged, where nothing marks steps; `step_time_us` is None then."""
    host_breakdown: Mapping[str, float] = field(default_factory=dict)
    """Where the device was not measured: shares of the step in which the loop waits for data, and of its own work."""
    wanted: tuple[str, ...] = field(default=(), compare=False)
    """Files of which any would tell what the headline says is missing, by today's names."""


@dataclass(frozen=True, repr=False)
class Report:
    """The whole answer: what was read, what was found, what was fine, what could not be judged."""

    profile: ProfileInfo
    summary: Summary
    findings: tuple[Finding, ...] = ()
    checked: tuple[Check, ...] = ()
    missing_evidence: tuple[MissingEvidence, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: tuple[Fact, ...] = ()
    engine: str = ""
    charts: Mapping[str, Any] = field(default_factory=dict)
    """Compact series for pictures (see facts/pictures/series.py); plain lists and numbers only."""
    promised: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the facts by which remedies are checked: they go along in JSON, to hold a later run to them."""
    whatif: WhatIf | None = None
    accounting: Accounting | None = None

    def __repr__(self) -> str:
        """One line for whoever looks at the object; the report itself is for `render`."""
        step = self.summary.step_time_us
        parts = [
            self.profile.path if len(self.profile.path) <= _SHORT else f"…{self.profile.path[1 - _SHORT :]}",
            self.summary.direction,
            "" if step is None else f"step {step / 1000:.4g} ms",
            f"ranks {len(self.profile.ranks)}",
            f"findings {len(self.findings)}",
        ]
        return f"Report({', '.join(part for part in parts if part)})"
