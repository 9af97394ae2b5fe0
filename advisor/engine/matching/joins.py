"""Which subjects the `join` of a rule binds, and the keys by which records of subjects and findings meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.facts.base import FactKind, FactSet
from advisor.model import Subject
from advisor.ruleset.language.arithmetic import normal
from advisor.ruleset.rule import JoinSpec, Rule
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.population import Population, population_of


def bindings(
    rule: Rule, subject: Subject, facts: FactSet, catalogue: Mapping[str, FactKind]
) -> Iterator[dict[str, Subject]]:
    """Every way to bind the rule's aliases for this subject; a rule without joins has exactly one, the empty one.

    Two names never stand for the same subject.
    """
    population = population_of(facts, catalogue)

    def extend(index: int, bound: dict[str, Subject]) -> Iterator[dict[str, Subject]]:
        if index == len(rule.join):
            yield dict(bound)
            return
        join = rule.join[index]
        scope = Scope(rule, subject, facts, catalogue, bound)
        for candidate in _candidates(join, scope, population):
            if candidate != subject and candidate not in bound.values():
                yield from extend(index + 1, {**bound, join.alias: candidate})

    yield from extend(0, {})


def _candidates(join: JoinSpec, scope: Scope, population: Population) -> list[Subject]:
    found: list[Subject] | None = None
    for left, right in join.on:
        value = scope.value(right)
        if value is None:
            return []
        matching = _by_value(population, join.kind, left).get((type(value), value), [])
        found = matching if found is None else [each for each in found if each in matching]
    return found or []


def _by_value(population: Population, kind: str, fact: str) -> dict[Any, list[Subject]]:
    """Subjects of a kind by the value of one of their facts."""
    key = ("by value", kind, fact)
    if key not in population.cache:
        index: dict[Any, list[Subject]] = {}
        for subject in population.of_kind(kind):
            value = field_of(population.facts, fact, subject)
            if value is not None:
                index.setdefault((type(value), value), []).append(subject)
        population.cache[key] = index
    known: dict[Any, list[Subject]] = population.cache[key]
    return known


def field_of(facts: FactSet, fact: str, subject: Subject) -> Any:
    """The value of a subject's own fact as records and joins see it: number as float, text or truth value."""
    if fact.startswith("subject."):
        value: Any = getattr(subject, fact.removeprefix("subject."), None)
    else:
        value = facts.value(fact, subject)
    value = normal(value)
    return None if isinstance(value, tuple) else value


def key_of(subject: Subject) -> str:
    """A text that tells subjects apart: kind, id and ranks."""
    return f"{subject.kind}:{subject.id}{ranks_of(subject)}"


def ranks_of(subject: Subject) -> str:
    """A text that names the ranks of a subject, "*" where it stands for the whole run."""
    return "[" + ",".join(map(str, subject.ranks)) + "]" if subject.ranks else "*"
