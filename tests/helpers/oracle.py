"""Rules judged by the plain loop, which knows nothing of records and patterns: what durable-rules must equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.engine.matching.loop import Match, match
from advisor.engine.matching.strata import stratify
from advisor.facts.base import FactKind, FactSet
from advisor.model import Subject
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.board import Board
from advisor.ruleset.truth.evaluate import readiness
from advisor.ruleset.truth.population import population_of


@dataclass(frozen=True)
class Reached:
    rule: str
    verdict: str
    subject: Subject


def judged_of(rules: Sequence[Rule], facts: FactSet, catalogue: Mapping[str, FactKind]) -> dict[str, list[Subject]]:
    """rule id -> the subjects that are ready."""
    population = population_of(facts, catalogue)
    return {
        rule.id: [
            s for s in population.of_kind(rule.subject_kind) if readiness(rule, s, facts, catalogue).state == "ready"
        ]
        for rule in rules
    }


def decide(rules: Sequence[Rule], facts: FactSet, catalogue: Mapping[str, FactKind]) -> set[tuple[str, Subject]]:
    """(rule id, subject) of every finding."""
    board, found = Board(), set()

    def tell(matches: Sequence[Match]) -> list[str]:
        found.update((rule.id, subject) for rule, subject in matches)
        board.extend([Reached(rule.id, rule.verdict, subject) for rule, subject in matches])
        return [rule.verdict for rule, _ in matches]

    match(rules, judged_of(rules, facts, catalogue), facts, catalogue, stratify(rules), board, tell)
    return found
