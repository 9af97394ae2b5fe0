"""Literal tests, sorted so that a record meets only the tests it may pass.

Patterns that ask the same of the same type share one node. A record is led to its nodes by a dictionary on one
equality test of theirs, else by bisection among the thresholds of one ordering test, else by trying.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from advisor.engine.matching.base import Pattern
from advisor.engine.matching.values import COMPARE, ORDERING, Value, normalize_value

Condition = tuple[str, type, Callable[[Any, Any], bool], Value]
"""(field, class of the literal, comparison, literal)."""


class Node:
    """The literal part of a pattern: a type and its tests; `number` counts nodes in order of creation."""

    __slots__ = ("conditions", "number", "type")

    def __init__(self, number: int, type_: str, conditions: tuple[Condition, ...]) -> None:
        self.number, self.type, self.conditions = number, type_, conditions

    def accepts(self, fields: Mapping[str, Value]) -> bool:
        """Whether the fields pass all tests; an absent field or one of another type fails."""
        get = fields.get
        for name, kind, compare, literal in self.conditions:
            value = get(name)
            if value.__class__ is not kind or not compare(value, literal):
                return False
        return True


class _TypeIndex:
    def __init__(self) -> None:
        self.equal: dict[str, dict[Value, list[Node]]] = defaultdict(lambda: defaultdict(list))
        self.ordered: dict[tuple[str, str], tuple[list[float], list[Node]]] = defaultdict(lambda: ([], []))
        self.other: list[Node] = []

    def add(self, node: Node, tests: list[tuple[str, str, Value]]) -> None:
        for name, op, value in tests:
            if op == "==":
                self.equal[name][value].append(node)
                return
        for name, op, value in tests:
            if op in ORDERING and isinstance(value, float):
                thresholds, nodes = self.ordered[name, op]
                place = bisect_right(thresholds, value)
                thresholds.insert(place, value)
                nodes.insert(place, node)
                return
        self.other.append(node)

    def candidates(self, fields: Mapping[str, Value]) -> Iterator[Node]:
        equal = self.equal
        for name in fields if len(fields) < len(equal) else equal:
            if name in equal and name in fields:
                yield from equal[name].get(fields[name], ())
        for (name, op), (thresholds, nodes) in self.ordered.items():
            value = fields.get(name)
            if value.__class__ is not float:
                continue
            if op == ">":
                yield from nodes[: bisect_left(thresholds, value)]
            elif op == ">=":
                yield from nodes[: bisect_right(thresholds, value)]
            elif op == "<":
                yield from nodes[bisect_right(thresholds, value) :]
            else:
                yield from nodes[bisect_left(thresholds, value) :]
        yield from self.other


class AlphaIndex:
    """All nodes of a rule set by type."""

    def __init__(self) -> None:
        self._types: dict[str, _TypeIndex] = {}
        self._known: dict[object, Node] = {}

    def node(self, pattern: Pattern) -> Node:
        """The node of this pattern's type and tests, shared with equal patterns."""
        tests = [(test.field, test.op, normalize_value(test.value)) for test in pattern.tests]
        key = (pattern.type, tuple(tests))
        node = self._known.get(key)
        if node is None:
            conditions = tuple((name, type(value), COMPARE[op], value) for name, op, value in tests)
            node = self._known[key] = Node(len(self._known), pattern.type, conditions)
            self._types.setdefault(pattern.type, _TypeIndex()).add(node, tests)
        return node

    def match(self, type_: str, fields: Mapping[str, Value]) -> list[Node]:
        """Nodes of the type whose tests the fields pass, in no particular order."""
        index = self._types.get(type_)
        return [] if index is None else [node for node in index.candidates(fields) if node.accepts(fields)]
