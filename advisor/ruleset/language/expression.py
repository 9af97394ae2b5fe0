"""The expression language of rules: its syntax tree and its parser. Nothing here is ever evaluated as Python.

or := and ("or" and)* ; and := not ("and" not)* ; not := "not" not | comparison
comparison := sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)* | sum ["not"] "in" (list | sum)
sum := product (("+" | "-") product)* ; product := sign (("*" | "/") sign)* ; sign := "-" sign | primary
primary := number | 'text' | true | false | null | $param | [alias:]fact.name | let | function(...) | (or) | [or, ...]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from advisor.basics.errors import RuleError
from advisor.basics.suggest import suggest

MAX_LENGTH = 2000
MAX_DEPTH = 40

PEER_FUNCTIONS = (
    "median", "mean", "sum", "lowest", "highest", "count", "ratio_to_median", "share_of_sum", "deviation", "spread",
)  # fmt: skip
FUNCTIONS: dict[str, tuple[int, int]] = {
    "known": (1, 1),
    "or_else": (2, 2),
    "min": (1, 16),
    "max": (1, 16),
    "abs": (1, 1),
    "ceil": (1, 1),
    "floor": (1, 1),
    "round": (1, 1),
    "sqrt": (1, 1),
    "if": (3, 3),
    "len": (1, 1),
    **dict.fromkeys(PEER_FUNCTIONS, (1, 1)),
}
"""Function name -> (fewest, most) arguments."""
RESERVED = frozenset({*FUNCTIONS, "and", "or", "not", "in", "true", "false", "null"})


class ExpressionError(RuleError):
    """An expression that cannot be read or whose units do not fit."""


class Literal(Struct, frozen=True):
    value: float | str | bool | None


class Param(Struct, frozen=True):
    name: str


class Name(Struct, frozen=True):
    """A name bound by `let`."""

    name: str


class FactRef(Struct, frozen=True):
    """A fact; `alias` is "", or a kind of subject."""

    fact: str
    alias: str = ""


class Negative(Struct, frozen=True):
    operand: Expr


class Arithmetic(Struct, frozen=True):
    op: str
    left: Expr
    right: Expr


class Compare(Struct, frozen=True):
    """`operands[0] ops[0] operands[1] ops[1] ...`; ops are < <= > >= == != in "not in"."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


class Logic(Struct, frozen=True):
    """`op` is "and" or "or"."""

    op: str
    items: tuple[Expr, ...]


class Not(Struct, frozen=True):
    operand: Expr


class Call(Struct, frozen=True):
    function: str
    arguments: tuple[Expr, ...]


class Items(Struct, frozen=True):
    items: tuple[Expr, ...]


Expr = Literal | Param | Name | FactRef | Negative | Arithmetic | Compare | Logic | Not | Call | Items

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<param>\$[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*(?:\s*:\s*(?=[A-Za-z_]))?(?:[A-Za-z_]\w*)?(?:\.[A-Za-z_0-9]\w*)*)"
    r"|(?P<op><=|>=|==|!=|[-+*/<>()\[\],]))",
    re.ASCII,
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class _Token(Struct, frozen=True):
    kind: str
    text: str
    column: int


def _tokens(source: str) -> list[_Token]:
    tokens, position = [], 0
    end = len(source.rstrip())
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None or match.end() == position:
            while source[position].isspace():
                position += 1
            raise _error(source, position, f"unexpected {source[position]!r}", _character_hint(source[position:]))
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match.group(kind), match.start(kind)))
        position = match.end()
    tokens.append(_Token("end", "", end))
    return tokens


def _character_hint(rest: str) -> str:
    if rest[0] in "'\"":
        return "the text is not closed"
    for wrong, right in (("=", "=="), ("&", "and"), ("|", "or"), ("!", "not"), ("%", "write 10 % as 0.10")):
        if rest.startswith(wrong):
            return right if " " in right else f"write {right}"
    return ""


def _error(source: str, column: int, message: str, hint: str = "") -> ExpressionError:
    return ExpressionError(f"{message} in {source[:120]!r} (character {column + 1})", hint=hint)


class _Parser:
    def __init__(self, source: str) -> None:
        self.source, self.tokens, self.index, self.depth = source, _tokens(source), 0, 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def take(self) -> _Token:
        token = self.token
        self.index += 1
        return token

    def accept(self, *texts: str) -> str | None:
        if self.token.kind in ("op", "name") and self.token.text in texts:
            return self.take().text
        return None

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(f"expected {text!r} before {self.token.text or 'the end'!r}")

    def fail(self, message: str, hint: str = "") -> ExpressionError:
        return _error(self.source, self.token.column, message, hint)

    def parse(self) -> Expr:
        expr = self.disjunction()
        if self.token.kind != "end":
            raise self.fail(f"unexpected {self.token.text!r}", "join two conditions with and, or")
        return expr

    def disjunction(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("the expression is nested too deeply", "name its parts with let")
        items = [self.conjunction()]
        while self.accept("or"):
            items.append(self.conjunction())
        self.depth -= 1
        return items[0] if len(items) == 1 else Logic("or", tuple(items))

    def conjunction(self) -> Expr:
        items = [self.negation()]
        while self.accept("and"):
            items.append(self.negation())
        return items[0] if len(items) == 1 else Logic("and", tuple(items))

    def negation(self) -> Expr:
        negations = 0
        while self.accept("not"):
            negations += 1
        expr = self.comparison()
        for _ in range(min(negations, 2 - negations % 2) if negations else 0):
            expr = Not(expr)
        return expr

    def comparison(self) -> Expr:
        operands, ops = [self.total()], []
        while True:
            if op := self.accept(*_COMPARISONS, "in"):
                ops.append(op)
            elif self.token.text == "not" and self.tokens[self.index + 1].text == "in":
                self.index += 2
                ops.append("not in")
            else:
                break
            operands.append(self.total())
        if not ops:
            return operands[0]
        if len(ops) > 1 and any(op in ("in", "not in", "!=") for op in ops):
            raise self.fail("only < <= > >= == can be chained", "join the comparisons with and")
        return Compare(tuple(operands), tuple(ops))

    def total(self) -> Expr:
        expr, length = self.product(), 0
        while op := self.accept("+", "-"):
            expr, length = Arithmetic(op, expr, self.product()), length + 1
            self._limit(length)
        return expr

    def product(self) -> Expr:
        expr, length = self.sign(), 0
        while op := self.accept("*", "/"):
            expr, length = Arithmetic(op, expr, self.sign()), length + 1
            self._limit(length)
        return expr

    def _limit(self, length: int) -> None:
        if length > MAX_DEPTH:
            raise self.fail("the expression is too long", "name its parts with let")

    def sign(self) -> Expr:
        negative = False
        while self.accept("-"):
            negative = not negative
        expr = self.primary()
        if not negative:
            return expr
        if isinstance(expr, Literal) and isinstance(expr.value, float):
            return Literal(-expr.value)
        return Negative(expr)

    def primary(self) -> Expr:
        if self.accept("("):
            expr = self.disjunction()
            self.expect(")")
            return expr
        if self.accept("["):
            items = self.arguments("]")
            return Items(items)
        token = self.take()
        if token.kind == "number":
            number = float(token.text)
            if number in (float("inf"),):
                raise _error(self.source, token.column, f"{token.text} is too large")
            return Literal(number)
        if token.kind == "text":
            return Literal(token.text[1:-1])
        if token.kind == "param":
            return Param(token.text[1:])
        if token.kind == "name":
            return self.named(token)
        self.index -= 1
        raise self.fail(f"a value is missing before {token.text or 'the end'!r}")

    def named(self, token: _Token) -> Expr:
        words = {"true": True, "false": False, "null": None}
        if token.text in words:
            return Literal(words[token.text])
        if self.token.text == "(" and self.token.kind == "op":
            return self.call(token)
        alias, _, name = (part.strip() for part in token.text.rpartition(":"))
        if token.text in RESERVED:
            raise _error(self.source, token.column, f"{token.text!r} cannot stand here")
        if "." in name:
            return FactRef(name, alias)
        if alias:
            raise _error(self.source, token.column, f"{token.text!r} names no fact", "write alias:area.fact")
        return Name(name)

    def call(self, token: _Token) -> Expr:
        if token.text not in FUNCTIONS:
            near = suggest(token.text, FUNCTIONS)
            hint = f"did you mean {near[0]}?" if near else "functions: " + ", ".join(FUNCTIONS)
            raise _error(self.source, token.column, f"there is no function {token.text!r}", hint)
        self.take()
        arguments = self.arguments(")")
        fewest, most = FUNCTIONS[token.text]
        if not fewest <= len(arguments) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise _error(self.source, token.column, f"{token.text} takes {wanted} values, not {len(arguments)}")
        return Call(token.text, arguments)

    def arguments(self, closing: str) -> tuple[Expr, ...]:
        items: list[Expr] = []
        while not self.accept(closing):
            if items:
                self.expect(",")
            items.append(self.disjunction())
        return tuple(items)


@lru_cache(maxsize=20_000)
def parse(source: str) -> Expr:
    """The syntax tree of an expression.

    Raises ExpressionError, with the character and a hint, for everything the grammar does not know, and for
    expressions longer than `MAX_LENGTH` characters or nested deeper than `MAX_DEPTH`.
    """
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(source)} characters", hint=f"at most {MAX_LENGTH}; use let")
    if not source.strip():
        raise ExpressionError("an empty expression")
    return _Parser(source).parse()


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression."""
    if isinstance(expr, (Negative, Not)):
        return (expr.operand,)
    if isinstance(expr, Arithmetic):
        return (expr.left, expr.right)
    if isinstance(expr, Compare):
        return expr.operands
    if isinstance(expr, (Logic, Items)):
        return expr.items
    return expr.arguments if isinstance(expr, Call) else ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


_BINDING = {"or": 1, "and": 2, "not": 3, "compare": 4, "+": 5, "-": 5, "*": 6, "/": 6, "sign": 7}


def text_of(expr: Expr, outer: int = 0) -> str:
    """The expression in the grammar's own words; `parse(text_of(e)) == e`."""
    if isinstance(expr, Literal):
        return _literal_text(expr.value)
    if isinstance(expr, Param):
        return f"${expr.name}"
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, FactRef):
        return f"{expr.alias}:{expr.fact}" if expr.alias else expr.fact
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(map(text_of, expr.arguments))})"
    if isinstance(expr, Items):
        return f"[{', '.join(map(text_of, expr.items))}]"
    if isinstance(expr, Negative):
        level, text = _BINDING["sign"], f"-{text_of(expr.operand, 8)}"
    elif isinstance(expr, Not):
        level, text = _BINDING["not"], f"not {text_of(expr.operand, 3)}"
    elif isinstance(expr, Logic):
        level = _BINDING[expr.op]
        text = f" {expr.op} ".join(text_of(item, level + 1) for item in expr.items)
    elif isinstance(expr, Arithmetic):
        level = _BINDING[expr.op]
        text = f"{text_of(expr.left, level)} {expr.op} {text_of(expr.right, level + 1)}"
    else:
        level, parts = _BINDING["compare"], [text_of(expr.operands[0], 5)]
        for op, operand in zip(expr.ops, expr.operands[1:], strict=False):
            parts += [op, text_of(operand, 5)]
        text = " ".join(parts)
    return f"({text})" if level < outer else text


def _literal_text(value: float | str | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
