"""What both engines agree on: which values exist, when a test holds, and which rules and records are well formed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from advisor.basics.errors import RuleError
from advisor.engine.matching.base import (
    MAX_PATTERNS,
    MAX_TEXT,
    OPERATORS,
    CompiledRule,
    Join,
    Record,
    RecordError,
    Test,
)

Value = str | float | tuple[bool]
"""A scalar inside an engine. Truth values are wrapped so that True, 1.0 and "1" differ, also as dictionary keys."""

TRUE, FALSE = (True,), (False,)

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""a op b is b SWAPPED[op] a."""

ORDERING = ("<", "<=", ">", ">=")


def normalize_value(value: object) -> Value:
    """str, finite float (integers become floats, -0.0 becomes 0.0) or wrapped bool; ValueError says what is wrong."""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise ValueError(f"a text of {len(value)} characters; {MAX_TEXT} are allowed")
        return str.__str__(value)
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError("not a finite number; what was not measured is left out")
        return number + 0.0
    raise ValueError(f"a {type(value).__name__}; only texts, numbers and truth values can be judged")


def holds(op: str, left: Value | None, right: Value | None) -> bool:
    """`left op right`: false where one is absent (None) or their types differ; ordering is false but on numbers."""
    if left.__class__ is not right.__class__ or left is None:
        return False
    if op in ORDERING and left.__class__ is not float:
        return False
    return COMPARE[op](left, right)


def check_record(record: Record, seen: set[str]) -> dict[str, Value]:
    """Normalized fields of the record, whose id joins `seen`; `RecordError` where it is malformed or known."""
    if not isinstance(record.id, str) or not isinstance(record.type, str):
        raise RecordError("ids and types of records are texts", place=f"record {record.id!r}")
    if record.id in seen:
        raise RecordError("this id was used before in the run", place=f"record {record.id!r}")
    fields: dict[str, Value] = {}
    for name, value in record.fields.items():
        if value.__class__ is float and math.isfinite(value):
            fields[name] = value + 0.0
            continue
        try:
            fields[name] = normalize_value(value)
        except ValueError as error:
            raise RecordError(f"field {name!r} is {error}", place=f"record {record.id!r}") from None
    seen.add(record.id)
    return fields


def check_rules(rules: Sequence[CompiledRule]) -> None:
    """`RuleError` for the first rule no engine can take: what `program.py` should not have let through."""
    keys: set[str] = set()
    for rule in rules:
        if rule.key in keys:
            raise RuleError("this key is used by another compiled rule", place=rule.key)
        keys.add(rule.key)
        if not 1 <= len(rule.patterns) <= MAX_PATTERNS:
            raise RuleError(f"{len(rule.patterns)} patterns; 1 to {MAX_PATTERNS} are possible", place=rule.key)
        aliases: set[str] = set()
        for pattern in rule.patterns:
            for test in pattern.tests:
                _check_test(test, rule.key)
            for join in pattern.joins:
                _check_join(join, aliases, rule.key)
            if pattern.alias in aliases:
                raise RuleError(f"alias {pattern.alias!r} is used twice", place=rule.key)
            aliases.add(pattern.alias)


def _check_test(test: Test, place: str) -> None:
    if test.op not in OPERATORS:
        raise RuleError(f"unknown operator {test.op!r}", place=place)
    try:
        value = normalize_value(test.value)
    except ValueError as error:
        raise RuleError(f"field {test.field!r} is compared with {error}", place=place) from None
    if test.op in ORDERING and not isinstance(value, float):
        raise RuleError(f"field {test.field!r}: {test.op} orders numbers only, not {test.value!r}", place=place)


def _check_join(join: Join, aliases: set[str], place: str) -> None:
    if join.op not in OPERATORS:
        raise RuleError(f"unknown operator {join.op!r}", place=place)
    if join.alias not in aliases:
        raise RuleError(f"a join refers to {join.alias!r}, which is no earlier pattern", place=place)
