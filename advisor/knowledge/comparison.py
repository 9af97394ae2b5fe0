"""What a comparison of two runs looks at, and from when on a difference counts (knowledge_base/comparison.yaml)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from advisor.knowledge.statements import document


@dataclass(frozen=True)
class Settings:
    """Limits by name, the facts compared, and by part of the step the facts of those who account for its change."""

    limits: dict[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    accounts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    """Facts that tell whether two sides may be compared, and how sure a difference is."""
    signs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Remedy -> the facts of which one is another one where it was applied."""


@lru_cache(maxsize=1)
def settings() -> Settings:
    """What is compared, and the limits."""
    found = document("comparison.yaml")
    return Settings(
        {name: float(entry["value"]) for name, entry in found["limits"].items()},
        tuple(found["metrics"]),
        {part: tuple(facts) for part, facts in found["accounts"].items()},
        tuple(found["further"]),
        {remedy: tuple(facts) for remedy, facts in found["signs"].items()},
    )


def compared_facts() -> frozenset[str]:
    """Names of all facts that a comparison looks at, for measuring."""
    chosen = settings()
    accountable = (fact for facts in chosen.accounts.values() for fact in facts)
    signs = (fact for facts in chosen.signs.values() for fact in facts)
    return frozenset((*signs, *chosen.metrics, *chosen.accounts, *chosen.further, *accountable))
