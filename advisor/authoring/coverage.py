"""What the rules, remedies, facts and checks make of the documents' statements, and which rules reach a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from advisor.knowledge.statements import statements
from advisor.ruleset.files.loader import RuleSet


@dataclass
class Encoding:
    """What encodes a statement. Remedies alone do not: something has to notice that they are needed."""

    rules: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    remedies: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return bool(self.rules or self.facts or self.checks)


def encodings(rules: RuleSet) -> dict[str, Encoding]:
    """statement id -> what encodes it, for every statement that exists or is cited."""
    found = {name: Encoding(facts=list(s.facts), checks=list(s.checks)) for name, s in statements().items()}
    for rule in rules.rules:
        for name in rule.statements:
            found.setdefault(name, Encoding()).rules.append(rule.id)
    for remedy in rules.remedies.values():
        for name in remedy.statements:
            found.setdefault(name, Encoding()).remedies.append(remedy.id)
    return dict(sorted(found.items()))


def resolve_check(path: str) -> Any:
    """The function a dotted path names. Raises ImportError or AttributeError where there is none."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def cited_verdicts(rules: RuleSet) -> Mapping[str, list[str]]:
    """verdict -> ids of the rules that reach it."""
    found: dict[str, list[str]] = {}
    for rule in rules.rules:
        found.setdefault(rule.verdict, []).append(rule.id)
    return found
