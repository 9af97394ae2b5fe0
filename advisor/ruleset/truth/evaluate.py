"""What a rule's expressions and conditions come to for one subject. Total: unknown is None, nothing raises.

Unknown spreads: what is computed from it is unknown, `and` with false is false, `or` with true is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from advisor.facts.base import FactKind, FactSet
from advisor.model import COLLECTION, RUN, Fact, Subject, Value
from advisor.ruleset.language.arithmetic import both, calculate, compare, either, normal, number, peer, scalar
from advisor.ruleset.language.conditions import All, AnyOf, Condition, CountOf, FindingIs, Leaf, Negation, parts
from advisor.ruleset.language.expression import (
    PEER_FUNCTIONS,
    Arithmetic,
    Call,
    Compare,
    Expr,
    ExpressionError,
    FactRef,
    Items,
    Literal,
    Logic,
    Name,
    Negative,
    Not,
    Param,
    walk,
)
from advisor.ruleset.language.scopes import IDENTITY, peer_kind, place
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board, Reached
from advisor.ruleset.truth.population import overlap, population_of


class Readiness(Struct, frozen=True):
    """Whether a rule can be judged for a subject: "ready", "not_applicable" or "no_data", and the facts missing."""

    state: str
    missing: tuple[str, ...] = ()


class Scope:
    """The names a rule's expressions may use, bound for one subject."""

    def __init__(
        self,
        rule: Rule,
        subject: Subject,
        facts: FactSet,
        catalogue: Mapping[str, FactKind],
    ) -> None:
        self.rule, self.subject, self.facts, self.catalogue = rule, subject, facts, catalogue
        self.population = population_of(facts, catalogue)
        self._let: dict[str, Value | None] = {}

    def at(self, subject: Subject) -> Scope:
        """The same rule looked at from another subject."""
        return Scope(self.rule, subject, self.facts, self.catalogue)

    # --- facts ------------------------------------------------------------------------------------------------------

    def locate(self, ref: FactRef) -> Subject | None:
        """The subject whose fact the reference means, None where there is none."""
        where = self._where(ref)
        if where == "self":
            return self.subject
        if where in ("run", "collection"):
            return RUN if where == "run" else COLLECTION
        return self.population.holder(self.subject, where.removeprefix("holder:"))

    def _where(self, ref: FactRef) -> str:
        key = (ref, self.subject.kind)
        places = self.population.places
        if key not in places:
            places[key] = place(ref, self.subject.kind, self.catalogue)
        return places[key]

    def fact(self, ref: FactRef) -> Fact | None:
        """The measured fact a reference means, None where it was not measured."""
        subject = self.locate(ref)
        if subject is None:
            return None
        if ref.fact in IDENTITY:
            return Fact(ref.fact, subject, getattr(subject, ref.fact.removeprefix("subject.")))
        return self.facts.get(ref.fact, subject)

    # --- expressions ------------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Value | None:
        """The value of an expression; None where it is unknown."""
        return _VALUE[type(expr)](self, expr)

    def _fact_value(self, ref: FactRef) -> Value | None:
        if not ref.alias:
            column = self.population.column(ref, self.subject.kind)
            if column is not None:
                return column.values.get(column.single or self.subject)
        fact = self.fact(ref)
        return None if fact is None else normal(fact.value)

    def _literal(self, literal: Literal) -> Value | None:
        return literal.value

    def _param(self, param: Param) -> Value | None:
        threshold = self.rule.params.get(param.name)
        return None if threshold is None else normal(threshold.value)

    def _name(self, name: Name) -> Value | None:
        if name.name not in self._let:
            self._let[name.name] = None
            self._let[name.name] = self.value(self.rule.let[name.name]) if name.name in self.rule.let else None
        return self._let[name.name]

    def _arithmetic(self, expr: Arithmetic) -> Value | None:
        return calculate(expr.op, self.value(expr.left), self.value(expr.right))

    def _negative(self, expr: Negative) -> Value | None:
        return calculate("-", 0.0, self.value(expr.operand))

    def _items(self, expr: Items) -> Value | None:
        values = tuple(self.value(item) for item in expr.items)
        return None if None in values else values

    def _compare(self, expr: Compare) -> bool | None:
        if len(expr.ops) == 1:
            left, right = expr.operands
            return compare(expr.ops[0], self.value(left), self.value(right))
        values = [self.value(operand) for operand in expr.operands]
        return both([compare(op, values[i], values[i + 1]) for i, op in enumerate(expr.ops)])

    def _logic(self, expr: Logic) -> bool | None:
        truths = [_truth(self.value(item)) for item in expr.items]
        return both(truths) if expr.op == "and" else either(truths)

    def _not(self, expr: Not) -> bool | None:
        truth = _truth(self.value(expr.operand))
        return None if truth is None else not truth

    def _call(self, call: Call) -> Value | None:
        function, arguments = call.function, call.arguments
        if function in PEER_FUNCTIONS:
            return self._peers(function, arguments[0])
        if function == "known":
            return self.value(arguments[0]) is not None
        if function == "or_else":
            first = self.value(arguments[0])
            return self.value(arguments[1]) if first is None else first
        if function == "if":
            truth = _truth(self.value(arguments[0]))
            return None if truth is None else self.value(arguments[1] if truth else arguments[2])
        if function == "len":
            items = self.value(arguments[0])
            return float(len(items)) if isinstance(items, tuple) else None
        return scalar(function, [self.value(argument) for argument in arguments])

    # --- peers ------------------------------------------------------------------------------------------------------

    def _peers(self, function: str, inner: Expr) -> float | None:
        kind, params = self._peer_kind(inner)
        group, peers = self.population.around(self.subject, kind)
        thresholds = tuple(self.value(param) for param in params)
        table = self.population.table((inner, kind, group, thresholds))
        if table.values is None:
            table.values = {each: value for each in peers if (value := self.at(each).value(inner)) is not None}
            table.numbers = [found for found in map(number, table.values.values()) if found is not None]
        if function == "count":
            return float(len(table.values))
        if function in ("ratio_to_median", "share_of_sum", "deviation"):
            own = table.values.get(self.subject)
            return peer(function, own, table.numbers, table.statistic)
        return table.statistic(function)

    def _peer_kind(self, inner: Expr) -> tuple[str, tuple[Param, ...]]:
        """The kind of subject a peer function runs over, and the parameters inside of it."""
        key = ("peers", inner, self.subject.kind)
        cache = self.population.cache
        if key not in cache:
            parts_ = list(walk(inner))
            refs = [part for part in parts_ if isinstance(part, FactRef)]
            params = tuple(part for part in parts_ if isinstance(part, Param))
            cache[key] = (peer_kind(refs, self.subject.kind, self.catalogue), params)
        known: tuple[str, tuple[Param, ...]] = cache[key]
        return known

    # --- conditions -------------------------------------------------------------------------------------------------

    def truth(self, condition: Condition, findings: Sequence[Reached] = ()) -> bool | None:
        """True, False or None (unknown). `findings` are the verdicts reached so far."""
        if isinstance(condition, Leaf):
            return _truth(self.value(condition.expr))
        if isinstance(condition, (All, AnyOf)):
            truths = [self.truth(item, findings) for item in condition.items]
            return both(truths) if isinstance(condition, All) else either(truths)
        if isinstance(condition, Negation):
            truth = self.truth(condition.item, findings)
            return None if truth is None else not truth
        if isinstance(condition, CountOf):
            low, high = self._counted(condition)
            limit = self.value(condition.limit)
            possible = {compare(condition.op, number, limit) for number in range(low, high + 1)}
            return possible.pop() if len(possible) == 1 else None
        return (self.reached(condition, findings) is not None) is not condition.absent

    def reached(self, condition: FindingIs, findings: Sequence[Reached]) -> Reached | None:
        """A finding that the condition asks for (or that it wants absent)."""
        board = findings if isinstance(findings, Board) else Board(findings)
        for verdict in condition.verdicts:
            if condition.on == "same":
                found = board.about(verdict, self.subject)
            elif condition.on == "overlapping":
                found = next((each for each in board.of(verdict) if overlap(each.subject, self.subject)), None)
            else:
                found = next(iter(board.of(verdict)), None)
            if found is not None:
                return found
        return None

    def counted(self, condition: CountOf) -> list[Subject]:
        """The subjects that meet a `count`'s conditions."""
        _, peers = self.population.around(self.subject, condition.kind)
        return [each for each in peers if self.at(each).truth(condition.where) is True]

    def _counted(self, condition: CountOf) -> tuple[int, int]:
        """Fewest and most subjects that can meet the conditions: those of unknown truth make the difference."""
        group, peers = self.population.around(self.subject, condition.kind)
        key = ("count", self.rule.id, condition, group, tuple(t.value for t in self.rule.params.values()))
        if key not in self.population.cache:
            truths = [self.at(each).truth(condition.where) for each in peers]
            met = truths.count(True)
            self.population.cache[key] = (met, met + truths.count(None))
        known: tuple[int, int] = self.population.cache[key]
        return known

    # --- what is missing --------------------------------------------------------------------------------------------

    def unmeasured(self, expr: Expr) -> list[str]:
        """Facts an expression mentions that were not measured, `let` names looked through."""
        missing: list[str] = []
        for part in walk(expr):
            if isinstance(part, Name) and part.name in self.rule.let:
                missing.extend(self.unmeasured(self.rule.let[part.name]))
            elif isinstance(part, FactRef) and not self.measured(part):
                missing.append(part.fact)
        return list(dict.fromkeys(missing))

    def measured(self, ref: FactRef) -> bool:
        """Whether the fact is known for the subject it stands for; for any, where only peers have it."""
        try:
            return self.fact(ref) is not None
        except ExpressionError:
            return self.facts.has(ref.fact)


_VALUE: dict[type, Callable[[Scope, Any], Value | None]] = {
    Arithmetic: Scope._arithmetic,
    Call: Scope._call,
    Compare: Scope._compare,
    FactRef: Scope._fact_value,
    Items: Scope._items,
    Literal: Scope._literal,
    Logic: Scope._logic,
    Name: Scope._name,
    Negative: Scope._negative,
    Not: Scope._not,
    Param: Scope._param,
}


def _truth(value: Value | None) -> bool | None:
    return value if isinstance(value, bool) else None


def readiness(
    rule: Rule,
    subject: Subject,
    facts: FactSet,
    catalogue: Mapping[str, FactKind],
) -> Readiness:
    """Whether the rule can be judged for this subject.

    A condition of `applies` that is false makes it not applicable; one that is unknown, a fact of `needs` that was not
    measured, or a `when` whose facts leave it unknown makes it no data.
    """
    scope = Scope(rule, subject, facts, catalogue)
    missing: list[str] = []
    unknown = False
    for condition in rule.applies:
        if rule.builds_on_findings and any(isinstance(part, FindingIs) for part in parts(condition)):
            continue
        truth = scope.truth(condition)
        if truth is False:
            return Readiness("not_applicable")
        if truth is None:
            unknown = True
            missing += _unknown(scope, condition)
    for alternatives in rule.required:
        if not any(scope.measured(ref) for ref in alternatives):
            unknown = True
            missing += [ref.fact for ref in alternatives]
    if unknown:
        return Readiness("no_data", tuple(dict.fromkeys(missing)))
    if rule.builds_on_findings:
        return _READY
    if scope.truth(rule.when) is None:
        return Readiness("no_data", tuple(dict.fromkeys(_unknown(scope, rule.when))))
    return _READY


_READY = Readiness("ready")


def _unknown(scope: Scope, condition: Condition) -> list[str]:
    """Facts that leave a condition unknown."""
    missing: list[str] = []
    for part in parts(condition, counted=False):
        if isinstance(part, Leaf) and scope.truth(part) is None:
            missing += scope.unmeasured(part.expr)
        elif isinstance(part, CountOf) and scope.truth(part) is None:
            refs = (r for leaf in parts(part.where) if isinstance(leaf, Leaf) for r in walk(leaf.expr))
            missing += [ref.fact for ref in refs if isinstance(ref, FactRef)]
    return missing
