"""A rule as the rest of the program sees it: parsed, checked, thresholds resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.facts.base import FactKind
from advisor.knowledge.remedy import RemedySpec
from advisor.model import Confidence, Direction, Severity, Text, Value
from advisor.ruleset.language.conditions import All, Condition, CountOf, FindingIs, expressions, parts
from advisor.ruleset.language.dimensions import Dimensions
from advisor.ruleset.language.expression import PEER_FUNCTIONS, Call, Expr, FactRef, Name, walk

_PLACEHOLDERS = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)


class Threshold(Struct, frozen=True):
    """A named parameter: its value, unit and where the number comes from."""

    value: Value
    unit: str
    origin: Text
    overridden: str = ""
    """Who replaced the rule's own value; empty where nobody did."""


_WORDS_OF: dict[str, tuple[type, ...]] = {"text": (str,), "bool": (bool,), "list": (list, tuple)}


def fits_unit(value: object, unit: str) -> bool:
    """Whether a parameter of this unit may hold this value."""
    if unit in _WORDS_OF:
        return isinstance(value, _WORDS_OF[unit])
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def frozen(value: Any) -> Any:
    """Lists as tuples: what a parameter holds."""
    return tuple(value) if isinstance(value, list) else value


class Ladder(Struct, frozen=True):
    """How severe: the last step that `by` reaches, `low` below the first; or always `constant`."""

    by: Expr | None = None
    steps: tuple[tuple[Severity, Expr], ...] = ()
    worse: str = "higher"
    """"higher" or "lower" values of `by` are worse."""
    constant: Severity | None = None


class Doubt(Struct, frozen=True):
    """What makes the verdict less certain, and what to tell the reader."""

    when: Condition
    confidence: Confidence
    because: Text


class Explains(NamedTuple):
    """A symptom the finding accounts for: on the same subject, any, one that shares a rank, or one that
    shares a rank with a cause that names some."""

    verdict: str
    on: str = "any"
    apart: bool = False
    """The two lose different parts of the same step: no microsecond of the symptom is the cause's."""
    but: tuple[str, ...] = ()
    """Rules of that verdict which it does not account for: they measure idle stretches of another kind."""


class SavingSpec(Struct, frozen=True):
    us: Expr
    basis: Text
    step: Expr | None = None
    """The step this is a saving of; the run's step.time_us where absent."""
    kind: str = "estimate"
    """estimate, upper_bound, or at_stake: lost time of which no cause is known yet."""
    removes: str = ""
    """One of `REMOVES`: what a replay puts right about the finding's subject."""
    lost: Expr | None = None
    """What the cause loses, where that is more than its remedy gives back; `us` where absent."""
    error: Expr | None = None
    """By what part of it the gain may be more or less, where the cause itself leaves that open."""
    idle: Expr | None = None
    """What of it is idle time on the typical rank, where that is not all of it."""
    most: Expr | None = None
    """More than this it cannot come to."""
    stays: Expr | None = None
    """What it still gives once whatever some ranks or links alone do worse is repaired."""
    once: Expr | None = None
    """What one step alone loses in this way, per step of the run: an event, told once where it is most of `us`."""
    launches: bool = False
    """Its remedy takes launches away as well: a host that is behind holds nothing of it back."""
    everyone: bool = False
    """Whole steps are compared: all ranks gain it, whichever is late."""


REMOVES = ("compute", "host", "data", "late", "links", "stages", "recomputing", "beside", "segments", "speed")
"""What a replay of the step can put right: the subject's ranks have their computation, the gaps between their kernels
or their wait for data, or whichever of them makes them late, at their peers' median; its links the usual bandwidth;
all stages the same work; stages that recompute no more of it than others; a stage no more beside its layers than
others; all ranks the same work from one collective to the next."""


class RemedyUse(Struct, frozen=True):
    id: str
    values: Mapping[str, Expr] = field(default_factory=dict)
    when: tuple[Condition, ...] = ()
    """Given only where these hold."""


class Rule(Struct, frozen=True, dict=True):
    """One rule file. Expressions are parsed and their units checked; `params` hold the values in force."""

    id: str
    title: Text
    verdict: str
    direction: Direction
    kind: str
    subject_kind: str
    when: Condition
    severity: Ladder
    message: Text
    status: str = "stable"
    statements: tuple[str, ...] = ()
    references: tuple[Mapping[str, str], ...] = ()
    params: Mapping[str, Threshold] = field(default_factory=dict)
    let: Mapping[str, Expr] = field(default_factory=dict)
    applies: tuple[Condition, ...] = ()
    required: tuple[tuple[FactRef, ...], ...] = ()
    """`needs`: each entry is a fact, or alternatives of which one suffices."""
    impact: Expr | None = None
    confidence: Confidence = Confidence.HIGH
    doubts: tuple[Doubt, ...] = ()
    parents: tuple[str, ...] = ()
    explains: tuple[Explains, ...] = ()
    saving: SavingSpec | None = None
    remedies: tuple[RemedyUse, ...] = ()
    false_positives: tuple[Text, ...] = ()
    general: bool = False
    """It only says where to look: any other rule of its verdict about the same subject tells more."""
    together: bool = False
    """Whatever it finds is of one origin and put right together: one finding with a list of subjects."""
    owned: bool = False
    """The time that it tells was measured under its owner, so it is no symptom of another cause."""
    disjoint: bool = False
    """What it measures no other such rule of its verdict does: their findings stand beside each other."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit of every `let` name, and of every remedy value as "remedy-id.value"."""
    path: Path = Path()
    line: int = 1

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the facts without which the rule has no data."""
        return tuple(ref.fact for alternatives in self.required for ref in alternatives)

    def dimensions(self, catalogue: Mapping[str, FactKind]) -> Dimensions:
        """What the rule's expressions may mention, with units."""
        params = {name: threshold.unit for name, threshold in self.params.items()}
        let = {name: self.units[name] for name in self.let if name in self.units}
        return Dimensions(self.subject_kind, catalogue, params, let)

    def conditions(self) -> Iterator[Condition]:
        """`applies`, `when`, the doubts' and the remedies'."""
        yield from self.applies
        yield self.when
        for doubt in self.doubts:
            yield doubt.when
        for use in self.remedies:
            yield from use.when

    def expressions(self) -> Iterator[Expr]:
        """Every expression of the rule."""
        for condition in self.conditions():
            yield from expressions(condition)
        yield from self.let.values()
        yield from (ref for alternatives in self.required for ref in alternatives)
        yield from (step for _, step in self.severity.steps)
        asked = self.saving
        saving: tuple[Expr | None, ...] = ()
        if asked is not None:
            saving = asked.us, asked.step, asked.lost, asked.error, asked.idle, asked.most, asked.stays, asked.once
        yield from (expr for expr in (self.severity.by, self.impact, *saving) if expr is not None)
        for use in self.remedies:
            yield from use.values.values()

    @cached_property
    def looks_at_peers(self) -> bool:
        """Whether any expression or count compares the subject with its peers."""
        counts = (part for each in self.conditions() for part in parts(each) if isinstance(part, CountOf))
        calls = (part for expr in self.expressions() for part in walk(expr) if isinstance(part, Call))
        return any(True for _ in counts) or any(call.function in PEER_FUNCTIONS for call in calls)

    def templates(self) -> Iterator[str]:
        """Every text with placeholders."""
        texts = [self.title, self.message, *(doubt.because for doubt in self.doubts)]
        if self.saving is not None:
            texts.append(self.saving.basis)
        for text in texts:
            yield from (text.en, text.zh)

    def uses_facts(self, remedies: Mapping[str, RemedySpec] | None = None) -> frozenset[str]:
        """Names of all facts the rule mentions: conditions, texts, and those of its remedies where they are given."""
        names = set(self._own_facts)
        for use in self.remedies:
            spec = (remedies or {}).get(use.id)
            if spec is not None:
                names.update(name for template in spec.templates() for name in mentioned(template))
                if spec.verify is not None:
                    names.add(spec.verify.fact)
        return frozenset(name for name in names if not name.startswith(_OWN_NAMES))

    @cached_property
    def _own_facts(self) -> frozenset[str]:
        names = {part.fact for expr in self.expressions() for part in walk(expr) if isinstance(part, FactRef)}
        names.update(name for template in self.templates() for name in mentioned(template))
        if self.looks_at_peers:
            names.add(f"{self.subject_kind}.peer_group")
        return frozenset(names)

    @cached_property
    def rests_on(self) -> frozenset[str]:
        """Names of the facts that decide about it, measure and tell it; what a doubt alone asks for is no ground."""
        bare = replace(self, doubts=(), let={})
        used = {part.name for expr in bare.expressions() for part in walk(expr) if isinstance(part, Name)}
        used |= {
            word for text in bare.templates() for inner in _PLACEHOLDERS.findall(text) for word in _WORD.findall(inner)
        }
        for name in reversed(tuple(self.let)):  # each may use those above it
            if name in used:
                used |= {part.name for part in walk(self.let[name]) if isinstance(part, Name)}
        return replace(bare, let={name: expr for name, expr in self.let.items() if name in used}).uses_facts()

    @cached_property
    def builds_on_findings(self) -> bool:
        """Whether verdicts of other rules decide about this one."""
        return bool(self.findings())

    def findings(self) -> tuple[FindingIs, ...]:
        """The rule's conditions on verdicts of other rules, in `applies` and `when`."""
        return tuple(part for part in parts(All((*self.applies, self.when))) if isinstance(part, FindingIs))


_OWN_NAMES = ("subject.", "param.")
"""Beginnings of names in texts that are no facts."""


def mentioned(template: str) -> Iterator[str]:
    """Dotted names in a template's placeholders, without `.value` and `.unit`."""
    for inner in _PLACEHOLDERS.findall(template):
        for name in _DOTTED.findall(inner):
            parts_ = name.split(".")
            while parts_ and parts_[-1] in ("value", "unit"):
                parts_.pop()
            if len(parts_) > 1:
                yield ".".join(parts_)
