"""Types and units of expressions: what may be compared, added and multiplied with what."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from advisor.basics.suggest import suggest
from advisor.facts.base import FactKind
from advisor.ruleset.language.expression import (
    PEER_FUNCTIONS,
    RESERVED,
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
    text_of,
    walk,
)
from advisor.ruleset.language.scopes import fact_kind, peer_kind, place

PLAIN = "number"
ANY = "any"
WORDS = ("text", "bool", "list")
_FACTORS = (PLAIN, "ratio", "count")
"""Units that scale a quantity without changing what it is."""


class Dimensions(Struct, frozen=True):
    """What an expression may mention: the rule's kind, parameters and `let` names with
    their units."""

    kind: str
    catalogue: Mapping[str, FactKind]
    params: Mapping[str, str] = field(default_factory=dict)
    let: Mapping[str, str] = field(default_factory=dict)

    def unit(self, expr: Expr) -> str:
        """The unit of the expression's value, a name of `units.UNITS` or a compound such as "bytes/us".

        Raises ExpressionError where names are unknown or units do not fit.
        """
        if isinstance(expr, Literal):
            return _literal_unit(expr)
        if isinstance(expr, Param):
            return self._named(expr.name, self.params, "parameter $")
        if isinstance(expr, Name):
            return self._named(expr.name, self.let, "name ")
        if isinstance(expr, FactRef):
            place(expr, self.kind, self.catalogue)
            return fact_kind(expr.fact, self.catalogue).unit
        if isinstance(expr, (Not, Logic)):
            for item in expr.items if isinstance(expr, Logic) else (expr.operand,):
                self.require(item, "bool")
            return "bool"
        if isinstance(expr, Negative):
            return self.quantity(expr.operand)
        if isinstance(expr, Arithmetic):
            return self._arithmetic(expr)
        if isinstance(expr, Compare):
            return self._compare(expr)
        if isinstance(expr, Items):
            for item in expr.items:
                self.unit(item)
            return "list"
        return self._call(expr)

    def require(self, expr: Expr, unit: str) -> None:
        """Raises ExpressionError unless the expression has this unit, or one that goes with it."""
        _require(expr, self.unit(expr), unit)

    def quantity(self, expr: Expr) -> str:
        """The unit of an expression that must be a number."""
        return _number(expr, self.unit(expr))

    def _named(self, name: str, known: Mapping[str, str], what: str) -> str:
        if name not in known:
            near = suggest(name, known)
            hint = (
                f"did you mean {near[0]}?" if near else ("known: " + ", ".join(known) if known else "none is defined")
            )
            if what == "name " and name in RESERVED:
                hint = f"{name} is a function: {name}(…)"
            raise ExpressionError(f"there is no {what}{name}", hint=hint)
        return known[name]

    def _arithmetic(self, expr: Arithmetic) -> str:
        left, right = self.quantity(expr.left), self.quantity(expr.right)
        if expr.op in "+-":
            return self._common(left, right, expr)
        if ANY in (left, right):
            return ANY
        if "/" in left + right or "*" in left + right or "percent_of_core" in (left, right):
            if left == right:
                return "ratio" if expr.op == "/" else PLAIN
            return PLAIN if PLAIN in (left, right) else _compound(left, expr.op, right)
        return _product(left, right) if expr.op == "*" else _quotient(left, right)

    def _common(self, left: str, right: str, expr: Expr) -> str:
        if not fits(left, right):
            raise ExpressionError(
                f"{_spoken(left)} and {_spoken(right)} in {text_of(expr)}", hint="only equal units go together"
            )
        return right if left in (PLAIN, ANY) else left

    def _compare(self, expr: Compare) -> str:
        found = [self.unit(operand) for operand in expr.operands]  # once each: a nested condition doubles otherwise
        for index, op in enumerate(expr.ops):
            left, right = expr.operands[index], expr.operands[index + 1]
            units = found[index], found[index + 1]
            if op in ("in", "not in"):
                self._membership(left, right, *units)
                continue
            if op not in ("==", "!="):
                _number(left, units[0]), _number(right, units[1])
            if "list" in units:
                raise ExpressionError(f"lists are not compared: {text_of(expr)}", hint="use `x in list` or len(list)")
            if not fits(*units):
                raise ExpressionError(
                    f"{text_of(left)} is {_spoken(units[0])}, {text_of(right)} is {_spoken(units[1])}",
                    hint=_bridge(*units),
                )
        return "bool"

    def _membership(self, left: Expr, right: Expr, unit: str, of_right: str) -> None:
        if isinstance(right, Items):
            for item in right.items:
                if not fits(unit, self.unit(item)):
                    raise ExpressionError(f"{text_of(item)} cannot be {text_of(left)}, which is {_spoken(unit)}")
        elif of_right not in ("list", ANY):
            raise ExpressionError(f"{text_of(right)} is no list", hint="write x in ['a', 'b']")

    def _call(self, call: Call) -> str:
        function, arguments = call.function, call.arguments
        if function in PEER_FUNCTIONS:
            return self._peer(function, arguments[0])
        units = [self.unit(argument) for argument in arguments]
        if function == "known":
            return "bool"
        if function == "len":
            _require(arguments[0], units[0], "list")
            return "count"
        if function == "or_else":
            return self._common(units[0], units[1], call)
        if function == "if":
            _require(arguments[0], units[0], "bool")
            return self._common(units[1], units[2], call)
        for argument, unit in zip(arguments, units, strict=True):
            _number(argument, unit)
        if function == "sqrt":
            return PLAIN
        unit = units[0]
        for other in units[1:]:
            unit = self._common(unit, other, call)
        return unit

    def _peer(self, function: str, inner: Expr) -> str:
        parts = list(walk(inner))
        if any(isinstance(part, Call) and part.function in PEER_FUNCTIONS for part in parts):
            raise ExpressionError(f"{function} of a comparison with peers", hint="one peer function at a time")
        refs = [part for part in parts if isinstance(part, FactRef)]
        if any(isinstance(part, Name) for part in parts) or not refs:
            raise ExpressionError(f"{function} needs a fact", hint=f"write {function}(area.fact)")
        peers = Dimensions(peer_kind(refs, self.kind, self.catalogue), self.catalogue, self.params)
        if function in ("ratio_to_median", "share_of_sum", "deviation") and peers.kind != self.kind:
            raise ExpressionError(
                f"{function} places the subject among its peers: a {self.kind} is no {peers.kind}",
                hint=f"write the rule for {peers.kind}, or use highest, spread, … of them",
            )
        unit = peers.unit(inner) if function == "count" else peers.quantity(inner)
        known = {"count": "count", "ratio_to_median": "ratio", "share_of_sum": "ratio", "spread": "ratio"}
        return PLAIN if function == "deviation" else known.get(function, unit)


def fits(left: str, right: str) -> bool:
    """Whether values of these units may be compared and added: equal ones, and plain numbers with every quantity."""
    if left == right or ANY in (left, right):
        return True
    return PLAIN in (left, right) and not {left, right} & set(WORDS)


def _require(expr: Expr, found: str, unit: str) -> None:
    if not fits(found, unit):
        wanted = "a condition" if unit == "bool" else unit
        raise ExpressionError(f"{text_of(expr)} is {_spoken(found)}, not {wanted}")


def _number(expr: Expr, unit: str) -> str:
    if unit in WORDS:
        raise ExpressionError(f"{text_of(expr)} is {_spoken(unit)}, not a number")
    return unit


def _literal_unit(expr: Literal) -> str:
    if expr.value is None:
        return ANY
    if isinstance(expr.value, bool):
        return "bool"
    return "text" if isinstance(expr.value, str) else PLAIN


def _product(left: str, right: str) -> str:
    if left in _FACTORS and right in _FACTORS:
        if left == right or PLAIN in (left, right):
            return left if left == right else ({left, right} - {PLAIN}).pop()
        return "count"
    if left in _FACTORS or right in _FACTORS:
        return right if left in _FACTORS else left
    return _compound(left, "*", right)


def _quotient(left: str, right: str) -> str:
    if left in _FACTORS and right in _FACTORS:
        return {("ratio", PLAIN): "ratio", ("ratio", "ratio"): "ratio", ("count", PLAIN): "count"}.get(
            (left, right), PLAIN
        )
    if left == right:
        return "ratio"
    return left if right in _FACTORS else _compound(left, "/", right)


def _compound(left: str, op: str, right: str) -> str:
    name = f"{left}{op}{right}"
    return name if len(name) < 60 else PLAIN


def _spoken(unit: str) -> str:
    names = {PLAIN: "a number", "text": "a text", "bool": "a condition", "list": "a list", ANY: "anything"}
    return names.get(unit, f"in {unit}" if unit != "ratio" else "a ratio")


def _bridge(left: str, right: str) -> str:
    pair = {left, right}
    if pair == {"bytes/us", "bytes_per_s"} or pair == {"count/us", "per_s"} or pair == {"flop/us", "flop_per_s"}:
        return "multiply the quotient by 1e6"
    return "only equal units are compared; divide one by a quantity of its own unit to get a ratio"
