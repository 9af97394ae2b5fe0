"""Turns one validated rule file into a Rule: parses its expressions and checks names, scopes and units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from advisor.basics.quantity import in_unit
from advisor.basics.units import UNITS
from advisor.facts.base import FactKind
from advisor.model import SUBJECT_KINDS, Confidence, Direction, Severity
from advisor.ruleset.files.schema import LadderModel, RuleModel
from advisor.ruleset.language.conditions import (
    All,
    AnyOf,
    Condition,
    CountOf,
    FindingIs,
    Negation,
    condition_of,
    parts,
)
from advisor.ruleset.language.dimensions import Dimensions
from advisor.ruleset.language.expression import RESERVED, Expr, ExpressionError, FactRef, Items, Literal, parse
from advisor.ruleset.language.scopes import fact_kind, peer_kind, place
from advisor.ruleset.rule import (
    Doubt,
    Explains,
    Ladder,
    RemedyUse,
    Rule,
    SavingSpec,
    Threshold,
    fits_unit,
    frozen,
)
from advisor.yamlfiles.faults import Faults
from advisor.yamlfiles.shapes import TextModel

_COUNT_IS = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(.+)", re.DOTALL)
_WORDS = {"all", "any", "not", "count", "finding", "no_finding"}


def build_rule(model: RuleModel, faults: Faults, catalogue: Mapping[str, FactKind]) -> Rule | None:
    """The rule, or None with every defect noted."""
    return _Builder(model, faults, catalogue).build()


class _Builder:
    def __init__(self, model: RuleModel, faults: Faults, catalogue: Mapping[str, FactKind]) -> None:
        self.model, self.faults, self.catalogue = model, faults, catalogue
        self.kind = model.for_
        self.params = {name: param.unit for name, param in model.params.items()}
        self.units: dict[str, str] = {}
        self.let: dict[str, Expr] = {}
        self.names: dict[str, str] = {}

    def build(self) -> Rule | None:
        model, before = self.model, len(self.faults.found)
        if self.kind not in SUBJECT_KINDS:
            self.faults.add(("for",), f"there is no subject {self.kind!r}", "one of " + ", ".join(SUBJECT_KINDS))
            return None
        self._params()
        self._languages()
        self._let()
        applies = self._conditions(model.applies, ("applies",))
        when = self._conditions(model.when, ("when",))
        needs = tuple(refs for i, text in enumerate(model.needs) if (refs := self._need(text, i)))
        doubts = tuple(
            Doubt(
                All(self._conditions(each.when, ("doubts", i, "when"))),
                Confidence(each.confidence),
                each.because.text(),
            )
            for i, each in enumerate(model.doubts)
        )
        for doubt in doubts:
            if any(isinstance(part, FindingIs) for part in parts(doubt.when)):
                self.faults.add(("doubts",), "a doubt cannot ask for a finding", "ask for the facts behind it")
        severity = self._severity(model.severity)
        impact = self._quantity(model.impact, ("impact",)) if model.impact is not None else None
        saving = None
        if model.saving is not None:
            us = self._quantity(model.saving.us, ("saving", "us"), "us")
            given = model.saving.step
            step = self._quantity(given, ("saving", "step"), "us") if given is not None else None
            asked = model.saving.lost
            lost = self._quantity(asked, ("saving", "lost"), "us") if asked is not None else None
            open_by = model.saving.error
            error = self._quantity(open_by, ("saving", "error"), "ratio") if open_by is not None else None
            within = model.saving.idle
            idle = self._quantity(within, ("saving", "idle"), "us") if within is not None else None
            basis, removes = model.saving.basis.text(), model.saving.removes or ""
            bound = model.saving.most
            most = self._quantity(bound, ("saving", "most"), "us") if bound is not None else None
            left = model.saving.stays
            stays = self._quantity(left, ("saving", "stays"), "us") if left is not None else None
            event = model.saving.once
            once = self._quantity(event, ("saving", "once"), "us") if event is not None else None
            flags = model.saving.launches, model.saving.everyone
            told = (model.saving.kind, removes, lost, error, idle, most, stays, once, *flags)
            saving = SavingSpec(us, basis, step, *told) if us is not None else None
        remedies = tuple(self._remedy(i) for i in range(len(model.remedies)))
        if not when:
            self.faults.add(("when",), "a rule needs a failing condition")
        if any(fault.level == "error" for fault in self.faults.found[before:]):
            return None
        return Rule(
            id=model.id,
            title=model.title.text(),
            verdict=model.verdict,
            direction=Direction(model.direction),
            kind=model.kind,
            subject_kind=self.kind,
            when=when[0] if len(when) == 1 else All(when),
            severity=severity,
            message=model.message.text(),
            status=model.status,
            statements=tuple(model.statements),
            references=tuple(each.model_dump() for each in model.references),
            params={
                name: Threshold(frozen(in_unit(p.value, p.unit)), p.unit, p.origin.text())
                for name, p in model.params.items()
            },
            let=self.let,
            applies=applies,
            required=needs,
            impact=impact,
            confidence=Confidence(model.confidence),
            doubts=doubts,
            parents=tuple(model.parents),
            explains=tuple(Explains(each.verdict, each.on, each.apart, tuple(each.but)) for each in model.explains),
            saving=saving,
            remedies=remedies,
            false_positives=tuple(trap.text() for trap in model.false_positives),
            general=model.general,
            together=model.together,
            owned=model.owned,
            disjoint=model.disjoint,
            units={**{name: self.names[name] for name in self.let}, **self.units},
            path=self.faults.document.path,
            line=self.faults.document.line(("id",)),
        )

    def dimensions(self) -> Dimensions:
        return Dimensions(self.kind, self.catalogue, self.params, self.names)

    def _params(self) -> None:
        for name, param in self.model.params.items():
            if param.unit not in UNITS:
                hint = 'ratio: 0.5, or "50 %"' if param.unit in ("percent", "%") else ", ".join(UNITS)
                self.faults.add(("params", name, "unit"), f"there is no unit {param.unit!r}", hint)
            elif not fits_unit(in_unit(param.value, param.unit), param.unit):
                self.faults.add(("params", name, "value"), f"{param.value!r} is no value in {param.unit}")

    def _languages(self) -> None:
        """Notes texts that stand in one language only."""
        model = self.model
        texts: list[tuple[tuple[Any, ...], TextModel]] = [(("title",), model.title), (("message",), model.message)]
        texts += [(("doubts", index, "because"), doubt.because) for index, doubt in enumerate(model.doubts)]
        if model.saving is not None:
            texts.append((("saving", "basis"), model.saving.basis))
        for where, text in texts:
            for language in ("en", "zh"):
                if not getattr(text, language):
                    self.faults.add(where, f"the text is missing in {language}", "readers see the other one", "warning")

    def _let(self) -> None:
        areas = {name.partition(".")[0] for name in self.catalogue} | {"subject", "param"} | RESERVED
        for name, raw in self.model.let.items():
            with self.faults.at("let", name):
                if name in areas:
                    raise ExpressionError(f"{name!r} already means something", hint="choose another name")
                expr = self._expr(raw)
                self.names[name] = self.dimensions().unit(expr)
                self.let[name] = expr
                continue
            self.names[name] = "any"

    def _need(self, text: str, index: int) -> tuple[FactRef, ...]:
        with self.faults.at("needs", index):
            refs = tuple(self._fact(part) for part in text.split("|"))
            for ref in refs:
                try:
                    place(ref, self.kind, self.catalogue)
                except ExpressionError:
                    fact_kind(ref.fact, self.catalogue)
                    peer_kind([ref], self.kind, self.catalogue)
            return refs
        return ()

    def _fact(self, text: str) -> FactRef:
        expr = parse(text)
        if not isinstance(expr, FactRef):
            raise ExpressionError(f"{text.strip()!r} is no fact", hint="write area.fact")
        return expr

    def _expr(self, raw: Any) -> Expr:
        if isinstance(raw, str):
            return parse(raw)
        if raw is None or isinstance(raw, bool):
            return Literal(raw)
        if isinstance(raw, (int, float)):
            return Literal(float(raw))
        if isinstance(raw, list):
            return Items(tuple(self._expr(item) for item in raw))
        raise ExpressionError(f"{raw!r} is no expression")

    def _quantity(self, raw: Any, where: tuple[Any, ...], unit: str = "") -> Expr | None:
        with self.faults.at(*where):
            expr = self._expr(raw)
            self.dimensions().quantity(expr)
            if unit:
                self.dimensions().require(expr, unit)
            return expr
        return None

    def _severity(self, model: LadderModel | str) -> Ladder:
        if isinstance(model, str):
            return Ladder(constant=Severity(model))
        by = self._quantity(model.by, ("severity", "by"))
        steps = []
        for severity in Severity:
            raw = getattr(model, severity.value)
            if raw is None:
                continue
            step = self._quantity(raw, ("severity", severity.value))
            if step is None or by is None:
                continue
            steps.append((severity, step))
            with self.faults.at("severity", severity.value):
                dimensions = self.dimensions()
                dimensions.require(step, dimensions.unit(by))
        if by is not None and not steps:
            self.faults.add(
                ("severity",), "the ladder has no step", "give medium, high, critical, or one word: severity: low"
            )
        return Ladder(by, tuple(steps), model.worse)

    def _remedy(self, index: int) -> RemedyUse:
        use = self.model.remedies[index]
        values: dict[str, Expr] = {}
        for name, raw in use.values.items():
            with self.faults.at("remedies", index, "values", name):
                expr = self._expr(raw)
                self.units[f"{use.id}.{name}"] = self.dimensions().unit(expr)
                values[name] = expr
        when = self._conditions(use.when, ("remedies", index, "when"))
        if any(isinstance(part, FindingIs) for condition in when for part in parts(condition)):
            self.faults.add(("remedies", index), "a remedy cannot ask for a finding", "ask for the facts behind it")
        return RemedyUse(use.id, values, when)

    def _conditions(self, raw: Any, where: tuple[Any, ...]) -> tuple[Condition, ...]:
        """A list of conditions, or a single one."""
        if not isinstance(raw, list):
            return tuple(c for c in [self._condition(raw, where, self.dimensions())] if c is not None)
        found = (self._condition(item, (*where, i), self.dimensions()) for i, item in enumerate(raw))
        return tuple(condition for condition in found if condition is not None)

    def _condition(self, raw: Any, where: tuple[Any, ...], dimensions: Dimensions) -> Condition | None:
        with self.faults.at(*where):
            if isinstance(raw, dict):
                return self._combination(raw, where, dimensions)
            if not isinstance(raw, (str, bool)):
                raise ExpressionError(
                    f"{raw!r} is no condition", hint="write an expression, such as step.idle_share > $share"
                )
            expr = self._expr(raw)
            dimensions.require(expr, "bool")
            return condition_of(expr, self.faults.document.line(where))
        return None

    def _combination(self, raw: dict[str, Any], where: tuple[Any, ...], dimensions: Dimensions) -> Condition | None:
        words = _WORDS & set(raw)
        if len(words) != 1:
            raise ExpressionError(
                f"{', '.join(map(str, raw))} is no condition", hint="one of " + ", ".join(sorted(_WORDS))
            )
        word = words.pop()
        extra = set(raw) - {word} - ({"on"} if "finding" in word else set())
        if extra:
            raise ExpressionError(f"unknown key {sorted(extra)[0]!r} beside {word}")
        value, inner = raw[word], (*where, word)
        if word == "count":
            return self._count(value, inner, dimensions)
        if "finding" in word:
            return self._finding(word, value, raw.get("on", "any"), self.faults.document.line(where))
        items = value if isinstance(value, list) else [value]
        if not items:
            raise ExpressionError(f"{word} of nothing")
        indexed = isinstance(value, list)
        found = tuple(
            condition
            for i, item in enumerate(items)
            if (condition := self._condition(item, (*inner, i) if indexed else inner, dimensions)) is not None
        )
        if not found:
            return None
        if word == "any":
            return AnyOf(found)
        whole = found[0] if len(found) == 1 else All(found)
        return Negation(whole) if word == "not" else whole

    def _count(self, value: Any, where: tuple[Any, ...], dimensions: Dimensions) -> Condition | None:
        if not isinstance(value, dict) or set(value) != {"of", "where", "is"}:
            raise ExpressionError("count needs of, where and is", hint="count: {of: rank, where: [...], is: '>= $n'}")
        kind, match = value["of"], _COUNT_IS.fullmatch(str(value["is"]))
        if kind not in SUBJECT_KINDS:
            raise ExpressionError(f"there is no subject {kind!r}", hint="one of " + ", ".join(SUBJECT_KINDS))
        if match is None:
            raise ExpressionError(f"{value['is']!r} is no comparison", hint="write is: '>= $n'")
        limit = parse(match[2])
        dimensions.quantity(limit)
        counted = Dimensions(kind, self.catalogue, self.params)
        raw = value["where"]
        items = raw if isinstance(raw, list) else [raw]
        found = tuple(
            condition
            for i, item in enumerate(items)
            if (condition := self._condition(item, (*where, "where", i), counted)) is not None
        )
        if any(isinstance(part, (FindingIs, CountOf)) for condition in found for part in parts(condition)):
            raise ExpressionError("count looks at facts only", hint="take finding and count out of where")
        if len(found) < len(items) or not found:
            return None
        return CountOf(
            kind, found[0] if len(found) == 1 else All(found), match[1], limit, self.faults.document.line(where)
        )

    def _finding(self, word: str, value: Any, on: Any, line: int) -> Condition:
        verdicts = tuple(value) if isinstance(value, list) else (value,)
        if not verdicts or not all(isinstance(verdict, str) for verdict in verdicts):
            raise ExpressionError(f"{word} needs a verdict", hint="finding: slow-link")
        if on not in ("same", "any", "overlapping"):
            raise ExpressionError(f"on: {on!r}", hint="one of same, any, overlapping")
        return FindingIs(verdicts, on, word == "no_finding", line)
