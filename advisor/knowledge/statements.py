"""The documents' statements, and what encodes each: rules, remedies, facts and checks (knowledge_base/)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from advisor.basics.resources import resource
from advisor.model import Text

if TYPE_CHECKING:
    from advisor.ruleset.files.loader import RuleSet


@dataclass(frozen=True)
class Statement:
    """One thing the documents tell an engineer to look at, conclude or do. `checks` are dotted paths of functions."""

    id: str
    document: str
    section: str
    direction: str
    kind: str
    text: Text
    facts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


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


def document(*parts: str) -> Any:
    """A YAML file of the knowledge base, as it stands."""
    import yaml

    return yaml.safe_load(resource("knowledge_base", *parts).read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def statements() -> dict[str, Statement]:
    """Every statement by id, in order. Raises ValueError where an id stands twice."""
    found: dict[str, Statement] = {}
    for path in sorted(resource("knowledge_base", "statements").glob("*.yaml")):
        for entry in document("statements", path.name):
            encoded = entry.get("encoded_by", [])
            statement = Statement(
                entry["id"], entry["document"], entry["section"], entry["direction"], entry["kind"],
                Text(entry["text"]["en"], entry["text"]["zh"]),
                tuple(item["fact"] for item in encoded if "fact" in item),
                tuple(item["check"] for item in encoded if "check" in item),
            )  # fmt: skip
            if statement.id in found:
                raise ValueError(f"{path.name}: a second {statement.id}")
            found[statement.id] = statement
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def documents() -> dict[str, dict[str, Any]]:
    """The documents by the word that references use."""
    return dict(document("documents.yaml"))


@lru_cache(maxsize=1)
def other_tools() -> dict[str, Any]:
    """What other tools check, and which rules of ours do the same or why none does."""
    return dict(document("other_tools.yaml"))


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
