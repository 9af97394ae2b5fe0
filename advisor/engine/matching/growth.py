"""How many partial matches a rule may have, told before durable-rules makes them.

The core multiplies the records of three and more patterns out inside one call that nothing can stop. So for such rules
this counts, for each pattern, the records that pass its literal tests; where an equality ties the pattern to an earlier
one, only the largest group of equal values counts. The product bounds what the core may hold.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from advisor.engine.matching.alpha import AlphaIndex
from advisor.engine.matching.base import CompiledRule
from advisor.engine.matching.values import Value

MAX_MATCHES = 500_000
"""Partial matches of one rule at about 300 bytes each."""


class Place(Struct, frozen=True):
    """One pattern of a watched rule; `field` is what its first equality asks for."""

    rule: int
    pattern: int
    field: str | None


class Growth:
    """Watches the rules of three and more patterns."""

    def __init__(self, rules: Sequence[CompiledRule], max_matches: int = MAX_MATCHES) -> None:
        self._rules, self._max = rules, max_matches
        self._alpha = AlphaIndex()
        self._places: dict[int, list[Place]] = defaultdict(list)
        for index, rule in enumerate(rules):
            if len(rule.patterns) < 3:
                continue
            for number, pattern in enumerate(rule.patterns):
                field = next((join.field for join in pattern.joins if join.op == "=="), None)
                self._places[self._alpha.node(pattern).number].append(Place(index, number, field))
        self.begin()

    def begin(self) -> None:
        """Forgets all records."""
        self._groups: dict[Place, Counter[Value | None]] = defaultdict(Counter)
        self._sizes: dict[int, list[int]] = {
            place.rule: [0] * len(self._rules[place.rule].patterns)
            for places in self._places.values()
            for place in places
        }

    def add(self, type_: str, fields: Mapping[str, Value]) -> int | None:
        """Counts the record; the place of a rule that now may exceed the limit, if any."""
        for node in self._alpha.match(type_, fields):
            for place in self._places[node.number]:
                value = fields.get(place.field) if place.field is not None else None
                if place.field is not None and value is None:
                    continue
                group = self._groups[place]
                group[value] += 1
                sizes = self._sizes[place.rule]
                sizes[place.pattern] = max(sizes[place.pattern], group[value])
                if math.prod(size for size in sizes if size) > self._max:
                    return place.rule
        return None
