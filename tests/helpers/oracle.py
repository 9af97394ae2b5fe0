"""The simplest judge there is: evaluates every rule for every subject. What the engine must equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.engine.matching.joins import bindings
from advisor.engine.matching.strata import stratify
from advisor.facts.base import FactKind, FactSet
from advisor.model import Subject
from advisor.ruleset.language.conditions import All
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.evaluate import Scope, readiness
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
    strata, judged = stratify(rules), judged_of(rules, facts, catalogue)
    found: list[Reached] = []
    for level in sorted(set(strata.of_rule.values())):
        before, grows = list(found), True
        while grows:
            grows = False
            for rule in rules:
                if strata.of_rule.get(rule.id) != level:
                    continue
                whole = All((*rule.applies, rule.when))
                for subject in judged[rule.id]:
                    reached = Reached(rule.id, rule.verdict, subject)
                    if reached not in found and any(
                        Scope(rule, subject, facts, catalogue, bound).truth(whole, found) is True
                        for bound in bindings(rule, subject, facts, catalogue)
                    ):
                        found.append(reached)
                        grows = True
        assert before == found[: len(before)]
    return {(each.rule, each.subject) for each in found}
