"""Conditions of rules as a tree: leaves are expressions; `and`, `or` and `not` are always nodes of their own."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from advisor.ruleset.language.expression import Compare, Expr, Literal, Logic, Not, Param, text_of


class Leaf(Struct, frozen=True):
    """An expression that is true, false or unknown."""

    expr: Expr
    line: int = 0

    @property
    def text(self) -> str:
        return text_of(self.expr)


class All(Struct, frozen=True):
    items: tuple[Condition, ...]


class AnyOf(Struct, frozen=True):
    items: tuple[Condition, ...]


class Negation(Struct, frozen=True):
    item: Condition


class CountOf(Struct, frozen=True):
    """How many subjects of a kind meet `where`, compared with `limit`."""

    kind: str
    where: Condition
    op: str
    limit: Expr
    line: int = 0

    @property
    def text(self) -> str:
        return f"count of {self.kind} {self.op} {text_of(self.limit)}"


class FindingIs(Struct, frozen=True):
    """One of these verdicts has been reached (or, `absent`, none of them). `on` is same, any or overlapping."""

    verdicts: tuple[str, ...]
    on: str = "any"
    absent: bool = False
    line: int = 0

    @property
    def text(self) -> str:
        what = "no finding" if self.absent else "finding"
        about = {"same": " about the same subject", "overlapping": " that shares a rank"}.get(self.on, "")
        return f"{what} {' or '.join(self.verdicts)}{about}"


Condition = Leaf | All | AnyOf | Negation | CountOf | FindingIs

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}


def condition_of(expr: Expr, line: int = 0) -> Condition:
    """The tree of an expression: logic and chains become nodes, thresholds stand to the right."""
    if isinstance(expr, Logic):
        items = tuple(condition_of(item, line) for item in expr.items)
        return All(items) if expr.op == "and" else AnyOf(items)
    if isinstance(expr, Not):
        return Negation(condition_of(expr.operand, line))
    if isinstance(expr, Compare):
        links = [
            _threshold_right(Compare((expr.operands[i], expr.operands[i + 1]), (op,))) for i, op in enumerate(expr.ops)
        ]
        return Leaf(links[0], line) if len(links) == 1 else All(tuple(Leaf(link, line) for link in links))
    return Leaf(expr, line)


def _threshold_right(expr: Compare) -> Compare:
    left, right = expr.operands
    if isinstance(left, (Literal, Param)) and not isinstance(right, (Literal, Param)) and expr.ops[0] in FLIPPED:
        return Compare((right, left), (FLIPPED[expr.ops[0]],))
    return expr


def push_down(condition: Condition, negative: bool = False) -> Condition:
    """The same condition with `not` at its leaves only. Unknown stays unknown: `not (x > 1)` is `x <= 1`."""
    if isinstance(condition, Negation):
        return push_down(condition.item, not negative)
    if isinstance(condition, (All, AnyOf)):
        items = tuple(push_down(item, negative) for item in condition.items)
        return All(items) if isinstance(condition, All) is not negative else AnyOf(items)
    if not negative:
        return condition
    if isinstance(condition, FindingIs):
        return FindingIs(condition.verdicts, condition.on, not condition.absent, condition.line)
    if isinstance(condition, CountOf):
        opposite = OPPOSITE[condition.op]
        return CountOf(condition.kind, condition.where, opposite, condition.limit, condition.line)
    expr = condition.expr
    if isinstance(expr, Compare) and len(expr.ops) == 1:
        return Leaf(Compare(expr.operands, (OPPOSITE[expr.ops[0]],)), condition.line)
    return Leaf(Not(expr), condition.line)


def parts(condition: Condition, counted: bool = True) -> Iterator[Condition]:
    """The condition and everything in it, outermost first; what `count` looks at only where `counted`."""
    yield condition
    if isinstance(condition, (All, AnyOf)):
        for item in condition.items:
            yield from parts(item, counted)
    elif isinstance(condition, Negation):
        yield from parts(condition.item, counted)
    elif isinstance(condition, CountOf) and counted:
        yield from parts(condition.where)


def expressions(condition: Condition) -> Iterator[Expr]:
    """Every expression in the condition, those inside of `count` too."""
    for part in parts(condition):
        if isinstance(part, Leaf):
            yield part.expr
        elif isinstance(part, CountOf):
            yield part.limit
