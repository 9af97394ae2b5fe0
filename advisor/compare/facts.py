"""Facts of two reports by name and subject, ranks left out: a subject is the same when kind and name are."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from advisor.model import RUN, Fact, Subject, Value

Key = tuple[str, str]


class FactTable:
    """Facts of one report."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: dict[str, dict[Key, Fact]] = {}
        for fact in facts:
            by = self._facts.setdefault(fact.name, {})
            key = key_of(fact.subject)
            by[key] = _joined(by[key], fact) if key in by else fact

    def of(self, name: str) -> dict[Key, Fact]:
        return self._facts.get(name, {})

    def listed(self, name: str, key: Key) -> tuple[Any, ...]:
        """The values of a fact that is a list; empty where it is not told."""
        fact = self.of(name).get(key)
        return fact.value if fact is not None and isinstance(fact.value, tuple) else ()

    def names(self) -> Iterable[str]:
        return self._facts.keys()

    def without(self, names: Collection[str]) -> FactTable:
        """The same without the facts of these names."""
        rest = FactTable(())
        rest._facts = {name: by for name, by in self._facts.items() if name not in names}
        return rest

    def value(self, name: str, subject: Subject = RUN) -> Value | None:
        """The subject's value, or the run's or the collection's where the subject has none of its own."""
        by = self.of(name)
        for key in (key_of(subject), key_of(RUN), ("collection", "collection")):
            if key in by:
                return by[key].value
        return None

    def number(self, name: str, subject: Subject = RUN) -> float | None:
        return number(self.value(name, subject))


_RUNNING = re.compile(r"__\d+(_\d+)*$")
"""What a run appends to a collective's name: group hash, number, direction."""


def key_of(subject: Subject) -> Key:
    """Kind and name; a collective without the numbers that differ from run to run."""
    plain = _RUNNING.sub("", subject.id) if subject.kind in ("collective", "operator") else subject.id
    return (subject.kind, plain)


def _joined(first: Fact, second: Fact) -> Fact:
    """Collectives of one kind taken together: times per step add up, of other values the first one stands."""
    a, b = number(first.value), number(second.value)
    if not _RUNNING.search(first.subject.id) or not first.name.endswith("_us") or a is None or b is None:
        return first
    return replace(first, value=a + b)


def number(value: Value | None) -> float | None:
    """The value as a finite number; None for texts, truth values and absent ones."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
