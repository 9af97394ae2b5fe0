"""Why a rule fired, or did not: every clause with its truth and the facts behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from advisor.basics.units import EXACT, show
from advisor.model import Evidence, Subject
from advisor.ruleset.language.conditions import All, AnyOf, Condition, CountOf, FindingIs, Leaf, Negation, push_down
from advisor.ruleset.language.dimensions import Dimensions
from advisor.ruleset.language.expression import (
    Arithmetic,
    Call,
    Compare,
    Expr,
    ExpressionError,
    FactRef,
    Literal,
    Name,
    Not,
    Param,
    text_of,
    walk,
)
from advisor.ruleset.truth.board import Reached
from advisor.ruleset.truth.evaluate import Scope

MAX_COUNTED = 8
"""Subjects of a `count` that are shown as evidence."""


class Clause(Struct, frozen=True):
    """One comparison of a rule as it was judged. `part` is applies, needs, when, doubt or severity."""

    part: str
    text: str
    truth: bool | None
    observed: tuple[Evidence, ...] = ()
    threshold: str = ""
    line: int = 0


def trace(scope: Scope, findings: Sequence[Reached] = ()) -> list[Clause]:
    """Every clause of the rule, in the order of the file, whether it fired or not."""
    rule, clauses = scope.rule, []
    for condition in rule.applies:
        clauses += _clauses("applies", scope, condition, findings)
    for alternatives in rule.required:
        known = any(scope.measured(ref) for ref in alternatives)
        observed = tuple(each for ref in alternatives for each in _observe(scope, ref))
        clauses.append(Clause("needs", " | ".join(map(text_of, alternatives)), known, observed))
    clauses += _clauses("when", scope, rule.when, findings)
    ladder = rule.severity
    if ladder.by is not None:
        op, value = (">=", "<=")[ladder.worse == "lower"], scope.value(ladder.by)
        for severity, limit in ladder.steps:
            text = f"{severity.value}: {text_of(ladder.by)} {op} {text_of(limit)}"
            truth = scope.truth(Leaf(Compare((ladder.by, limit), (op,)))) if value is not None else None
            shown = _threshold(scope, op, ladder.by, limit)
            clauses.append(Clause("severity", text, truth, _observe(scope, ladder.by), shown))
    for doubt in rule.doubts:
        clauses += _clauses("doubt", scope, doubt.when, findings)
    return clauses


def evidence(scope: Scope, findings: Sequence[Reached] = ()) -> tuple[Evidence, ...]:
    """The facts a finding rests on: those of every clause of `when` that fired, each with the condition it met."""
    found: dict[tuple[str, Subject], Evidence] = {}
    for each in _fired(scope, push_down(scope.rule.when), findings):
        key = (each.fact, each.subject)
        before = found.get(key)
        if before is None:
            found[key] = each
        elif each.condition and f", {each.condition}, " not in f", {before.condition}, ":
            joined = ", ".join(filter(None, (before.condition, each.condition)))
            found[key] = replace(before, condition=joined)
    return tuple(found.values())


def _fired(scope: Scope, condition: Condition, findings: Sequence[Reached]) -> Iterator[Evidence]:
    if isinstance(condition, (All, AnyOf)):
        for item in condition.items:
            if scope.truth(item, findings) is True:
                yield from _fired(scope, item, findings)
    elif isinstance(condition, Leaf):
        yield from _leaf(scope, condition.expr)
    elif isinstance(condition, CountOf):
        for subject in scope.counted(condition)[:MAX_COUNTED]:
            yield from _fired(scope.at(subject), push_down(condition.where), ())


def _clauses(part: str, scope: Scope, condition: Condition, findings: Sequence[Reached]) -> list[Clause]:
    clauses = []
    for each in _leaves(push_down(condition)):
        truth = scope.truth(each, findings)
        observed: tuple[Evidence, ...] = ()
        threshold = ""
        if isinstance(each, Leaf):
            observed = tuple(_leaf(scope, each.expr))
            if isinstance(each.expr, Compare):
                threshold = _threshold(scope, each.expr.ops[0], *each.expr.operands[:2])
        elif isinstance(each, CountOf):
            observed = tuple(_fired(scope, each, findings))
            threshold = f"{each.op} {show(scope.value(each.limit), 'count')}"
        clauses.append(Clause(part, each.text, truth, observed, threshold, each.line))
    return clauses


def _leaves(condition: Condition) -> Iterator[Leaf | CountOf | FindingIs]:
    if isinstance(condition, (All, AnyOf)):
        for item in condition.items:
            yield from _leaves(item)
    elif isinstance(condition, Negation):
        yield from _leaves(condition.item)
    else:
        yield condition


def _leaf(scope: Scope, expr: Expr) -> Iterator[Evidence]:
    """The facts of one clause; the first carries the condition."""
    expr = _guarded(expr)
    condition = _condition(scope, expr)
    main = expr.operands[0] if isinstance(expr, Compare) else expr
    for index, each in enumerate(_observe(scope, main)):
        yield replace(each, condition=condition if index == 0 else "")
    if isinstance(expr, Compare):
        yield from _observe(scope, expr.operands[1])


def _guarded(expr: Expr) -> Expr:
    """The comparison within `or_else(a > b, false)`: what stands for an unknown one is no evidence."""
    if isinstance(expr, Call) and expr.function == "or_else" and isinstance(expr.arguments[0], Compare):
        return expr.arguments[0]
    return expr


def _condition(scope: Scope, expr: Expr) -> str:
    if isinstance(expr, Compare):
        left, right = expr.operands[0], expr.operands[1]
        if isinstance(left, FactRef) and (bare := _bare(scope.value(right))):
            return f"{expr.ops[0]} {bare}" + ("" if isinstance(right, (Literal, Param)) else f" ({text_of(right)})")
        threshold = _threshold(scope, expr.ops[0], left, right)
        if isinstance(left, FactRef):
            return threshold
        return f"{text_of(left)} = {show(scope.value(left), unit_of(scope, left))} {threshold}"
    if _is_fact(expr):
        return "is true"
    if isinstance(expr, Not) and _is_fact(expr.operand):
        return "is false"
    if isinstance(expr, Call) and expr.function == "known":
        return ""  # that it was measured is no expectation to print
    return text_of(expr)


def _bare(value: Any) -> str:
    """A limit as a number in its fact's own unit, so that scripts can hold the value against it."""
    return f"{value:.12g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def _is_fact(expr: Expr) -> bool:
    """A fact, or one with a substitute where it was not measured: or_else(pipeline_op.python, false)."""
    if isinstance(expr, Call) and expr.function == "or_else":
        return isinstance(expr.arguments[0], FactRef)
    return isinstance(expr, FactRef)


def _threshold(scope: Scope, op: str, left: Expr, right: Expr) -> str:
    """A comparison's right side with its value, in the left side's unit where it is a plain number."""
    value: Any = scope.value(right)
    unit = unit_of(scope, right)
    if unit == "number":
        unit = unit_of(scope, left)
    among = op in ("in", "not in")
    written = isinstance(right, (Literal, Param)) or among
    shown = "unknown" if value is None else show(value, unit, EXACT if written else None)
    if among and isinstance(value, tuple):
        shown = f"[{shown}]"
    return f"{op} {shown}" if written else f"{op} {shown} ({text_of(right)})"


def unit_of(scope: Scope, expr: Expr) -> str:
    """The unit in which to show an expression's value."""
    rule = scope.rule
    own = rule.dimensions(scope.catalogue)
    dimensions = Dimensions(scope.subject.kind, scope.catalogue, own.params, own.let)
    try:
        return dimensions.unit(expr)
    except ExpressionError:
        return "number"


def _observe(scope: Scope, expr: Expr) -> tuple[Evidence, ...]:
    """The measured facts an expression mentions, then those behind its `let` names. A name that multiplies by one
    changes nothing, and what it rests on is no evidence of anything."""
    found: list[Evidence] = []
    behind: list[Evidence] = []
    idle = _idle_factors(scope, expr)
    for part in walk(expr):
        if isinstance(part, Name) and part.name in scope.rule.let and part.name not in idle:
            behind.extend(_observe(scope, scope.rule.let[part.name]))
        if not isinstance(part, FactRef):
            continue
        try:
            fact = scope.fact(part)
        except ExpressionError:
            continue
        if fact is not None and not part.fact.startswith("subject."):
            source = fact.sources[0] if fact.sources else None
            unit = scope.catalogue[part.fact].unit
            found.append(Evidence(part.fact, fact.value, unit, "", fact.subject, source, fact.sources[1:]))
    return tuple(dict.fromkeys([*found, *behind]))


def _idle_factors(scope: Scope, expr: Expr) -> set[str]:
    """The names in an expression that multiply something by one."""
    factors = (
        factor
        for part in walk(expr)
        if isinstance(part, Arithmetic) and part.op == "*"
        for factor in (part.left, part.right)
    )
    return {factor.name for factor in factors if isinstance(factor, Name) and scope.value(factor) == 1}
