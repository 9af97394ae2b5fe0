"""A condition as alternatives of clauses that must all hold: the only shape engines know."""

from __future__ import annotations

from itertools import product

from advisor.basics.errors import RuleError
from advisor.ruleset.language.conditions import All, AnyOf, Condition, FindingIs, parts, push_down

PREFERRED = 8
"""More alternatives than this, and every `any` that asks for no finding is worked out before the engine runs."""
MAX_ALTERNATIVES = 64

Clauses = tuple[Condition, ...]


def expand(condition: Condition) -> list[Clauses]:
    """Alternatives of a condition. Clauses are leaves, counts and single findings, and, where alternatives would be
    many, whole `any` conditions. Raises RuleError beyond `MAX_ALTERNATIVES`."""
    pushed = push_down(condition)
    whole = _size(pushed, keep=False) <= PREFERRED
    if _size(pushed, keep=not whole) > MAX_ALTERNATIVES:
        raise RuleError(
            f"the conditions on findings have more than {MAX_ALTERNATIVES} alternatives", hint="write several rules"
        )
    return _expand(pushed, keep=not whole)


def _plain(condition: Condition) -> bool:
    return not any(isinstance(part, FindingIs) for part in parts(condition))


def _size(condition: Condition, keep: bool) -> int:
    if isinstance(condition, All):
        size = 1
        for item in condition.items:
            size = min(size * _size(item, keep), MAX_ALTERNATIVES + 1)
        return size
    if isinstance(condition, AnyOf):
        return 1 if keep and _plain(condition) else sum(_size(item, keep) for item in condition.items)
    if isinstance(condition, FindingIs) and not condition.absent:
        return len(condition.verdicts)
    return 1


def _expand(condition: Condition, keep: bool) -> list[Clauses]:
    if isinstance(condition, All):
        branches = [_expand(item, keep) for item in condition.items]
        return [tuple(clause for part in choice for clause in part) for choice in product(*branches)]
    if isinstance(condition, AnyOf) and not (keep and _plain(condition)):
        return [clauses for item in condition.items for clauses in _expand(item, keep)]
    if isinstance(condition, FindingIs):
        single = [
            FindingIs((verdict,), condition.on, condition.absent, condition.line) for verdict in condition.verdicts
        ]
        return [tuple(single)] if condition.absent else [(each,) for each in single]
    return [(condition,)]
