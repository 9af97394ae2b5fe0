"""Rules as durable-rules takes them, dealt to shards that stay clear of its limits.

Only conjunctions of literal tests and joins are written. In each pattern the type comes first (a pattern without it
meets the core's own messages and never ends), every joined property is required to exist on both sides (else the core
fails on every later fact), and an always-true join, the guard, comes last (after a false last join the core reads
beyond the expression's end).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from advisor.engine.matching.base import CompiledRule, EngineFailure, Join, Pattern
from advisor.engine.matching.values import Value, normalize_value
from advisor.engine.matching.wire import ALIASES, GUARD, KIND, KINDS, ORDER, TOKEN, TYPE, Layout, Tokens, order_number

PATTERNS_PER_TYPE = 48
"""A fact that passes more than 64 tests at once loses all its matches; 513 distinct tests hang."""
TYPES_PER_SHARD = 200
PROPERTIES_PER_TYPE = 240
"""Of the 252 that a fact may carry; id, session, type and guard are others."""
JOINS_PER_PATTERN = 24
"""Join terms but the guard; the core refuses 30."""

SENTINEL = 0
"""Type of the fact that opens a session; types of records count from 1."""

ASPECTS = {"==": (TOKEN,), "!=": (KIND, TOKEN)}
"""What a comparison asks of its fields; ordering asks for their order."""

OPERATOR = {"!=": "$neq", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}

Term = dict[str, Any]
Aspect = tuple[str, str]
"""(field, aspect) of one pattern."""


class Shard(Struct):
    """Rules that live in one ruleset of the core. `flat`: none of them joins, so facts need not be kept."""

    flat: bool
    rules: list[int] = field(default_factory=list)
    """Places of its rules among all; rule r<n> of the definition is the n-th of them."""
    layouts: dict[str, Layout] = field(default_factory=dict)
    patterns: Counter[str] = field(default_factory=Counter)
    """How many patterns ask for each type."""
    conditions: list[list[Term]] = field(default_factory=list)

    def write_definition(self) -> str:
        """The shard as the JSON text durable-rules compiles; the same for rule sets of the same shape."""
        rules: Term = {"s": {"all": [{"m": {TYPE: SENTINEL}}]}}
        rules.update({f"r{number}": {"all": conditions} for number, conditions in enumerate(self.conditions)})
        return json.dumps(rules)


def deal_rules(rules: Sequence[CompiledRule], tokens: Tokens) -> list[Shard]:
    """Every rule in one shard; `EngineFailure` where a single rule is beyond what a shard can hold."""
    shards: list[Shard] = []
    for index, rule in enumerate(rules):
        flat = len(rule.patterns) == 1
        joined = list_joined(rule)
        wants: dict[str, set[Aspect]] = {}
        for pattern, aspects in zip(rule.patterns, joined, strict=True):
            wants.setdefault(pattern.type, set()).update(aspects, _list_tested(pattern))
        counts = Counter(pattern.type for pattern in rule.patterns)
        shard = next((s for s in reversed(shards) if s.flat == flat and _fits(s, wants, counts)), None)
        if shard is None:
            shard = Shard(flat)
            if not _fits(shard, wants, counts):
                raise EngineFailure("too many fields of one type for durable-rules", rule=rule.key)
            shards.append(shard)
        for type_ in counts:
            shard.layouts.setdefault(type_, Layout(len(shard.layouts) + 1))
        shard.rules.append(index)
        shard.patterns.update(counts)
        shard.conditions.append(_write_rule(rule, joined, shard, tokens))
    return shards


def list_joined(rule: CompiledRule) -> list[set[Aspect]]:
    """For each pattern what joins ask of it, its own and those of later patterns."""
    places = {pattern.alias: place for place, pattern in enumerate(rule.patterns)}
    joined: list[set[Aspect]] = [set() for _ in rule.patterns]
    for place, pattern in enumerate(rule.patterns):
        for join in pattern.joins:
            for aspect in _aspects(join.op):
                joined[place].add((join.field, aspect))
                joined[places[join.alias]].add((join.other, aspect))
    return joined


def _aspects(op: str) -> tuple[str, ...]:
    return ASPECTS.get(op, (ORDER,))


def _list_tested(pattern: Pattern) -> set[Aspect]:
    return {(test.field, aspect) for test in pattern.tests for aspect in _aspects(test.op)}


def _fits(shard: Shard, wants: dict[str, set[Aspect]], counts: Counter[str]) -> bool:
    known = {type_: layout.properties.keys() for type_, layout in shard.layouts.items()}
    return (
        all(shard.patterns[type_] + count <= PATTERNS_PER_TYPE for type_, count in counts.items())
        and all(len(aspects | known.get(type_, set())) <= PROPERTIES_PER_TYPE for type_, aspects in wants.items())
        and len(known.keys() | wants.keys()) <= TYPES_PER_SHARD
    )


def _write_rule(rule: CompiledRule, joined: list[set[Aspect]], shard: Shard, tokens: Tokens) -> list[Term]:
    aliases = {pattern.alias: ALIASES[place] for place, pattern in enumerate(rule.patterns)}
    layouts = {pattern.alias: shard.layouts[pattern.type] for pattern in rule.patterns}
    conditions = []
    for pattern, aspects in zip(rule.patterns, joined, strict=True):
        layout = layouts[pattern.alias]
        terms: list[Term] = [{TYPE: layout.number}]
        terms += [{"$ex": {layout.name(name, aspect): 1}} for name, aspect in sorted(aspects)]
        for name, op, value in dict.fromkeys((t.field, t.op, normalize_value(t.value)) for t in pattern.tests):
            terms += _write_test(name, op, value, layout, tokens)
        joins = [
            term
            for join in sorted(dict.fromkeys(pattern.joins), key=lambda j: j.op != "==")
            for term in _write_join(join, layout, layouts[join.alias], aliases[join.alias])
        ]
        if len(joins) > JOINS_PER_PATTERN:
            raise EngineFailure(f"more than {JOINS_PER_PATTERN} joins in one pattern", rule=rule.key)
        if joins:
            joins.append({GUARD: {aliases[pattern.joins[0].alias]: GUARD}})
        conditions.append({aliases[pattern.alias]: {"$and": terms + joins}})
    return conditions


def _write_test(name: str, op: str, value: Value, layout: Layout, tokens: Tokens) -> list[Term]:
    if op == "==":
        return [{layout.name(name, TOKEN): tokens.keep(value)}]
    if op == "!=":
        kind = {layout.name(name, KIND): KINDS[value.__class__]}
        return [kind, {"$neq": {layout.name(name, TOKEN): tokens.keep(value)}}]
    assert isinstance(value, float)
    return [{OPERATOR[op]: {layout.name(name, ORDER): order_number(value)}}]


def _write_join(join: Join, here: Layout, there: Layout, alias: str) -> list[Term]:
    def compare(aspect: str) -> Term:
        return {here.name(join.field, aspect): {alias: there.name(join.other, aspect)}}

    if join.op == "==":
        return [compare(TOKEN)]
    if join.op == "!=":
        return [compare(KIND), {"$neq": compare(TOKEN)}]
    return [{OPERATOR[join.op]: compare(ORDER)}]
