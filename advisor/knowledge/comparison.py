"""What a comparison of two runs looks at, and from when on a difference counts (knowledge_base/comparison.yaml)."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct, field

from advisor.knowledge.statements import document


class Settings(Struct, frozen=True):
    """Limits by name, the facts compared, and by part of the step the facts of those who account for its change: all
    `members` add up to their part, `seen_at` says where it shows."""

    limits: dict[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    without_length: tuple[str, ...] = ()
    """Compared as well where neither side tells how long a step or the recording takes."""
    of_executions: frozenset[str] = frozenset()
    """Sums that grow with the number of executions in a recording without steps."""
    witnesses: tuple[str, ...] = ()
    """Parts of a recording of which one that takes as long as before tells of as much work."""
    steps: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Fact of a step's length -> ways to divide it into parts that add up."""
    members: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Part -> ways to divide it: one fact of several subjects, or several facts of the run."""
    seen_at: dict[str, tuple[str, ...]] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    """Facts that tell whether two sides may be compared, and how sure a difference is."""
    signs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Remedy -> the facts of which one is another one where it was applied."""
    none_beside: dict[str, str] = field(default_factory=dict)
    """Fact that only what is there has -> the fact of the run that is measured wherever it was looked for."""


@lru_cache(maxsize=1)
def settings() -> Settings:
    """What is compared, and the limits."""
    found = document("comparison.yaml")
    return Settings(
        {name: float(entry["value"]) for name, entry in found["limits"].items()},
        tuple(found["metrics"]),
        tuple(found["without_length"]),
        frozenset(found["of_executions"]),
        tuple(found["witnesses"]),
        {step: tuple(map(tuple, divisions)) for step, divisions in found["step"].items()},
        {part: tuple((way,) if isinstance(way, str) else tuple(way) for way in ways)
         for part, ways in found["members"].items()},
        {part: tuple(facts) for part, facts in found["seen_at"].items()},
        tuple(found["further"]),
        {remedy: tuple(facts) for remedy, facts in found["signs"].items()},
        dict(found["none_beside"]),
    )  # fmt: skip


def compared_facts() -> frozenset[str]:
    """Names of all facts that a comparison looks at, for measuring."""
    chosen = settings()
    ways = (way for divided in (chosen.steps, chosen.members) for ways in divided.values() for way in ways)
    seen = (fact for facts in chosen.seen_at.values() for fact in facts)
    signs = (fact for facts in chosen.signs.values() for fact in facts)
    metrics = (*chosen.metrics, *chosen.without_length, *chosen.witnesses)
    looked_for = (*chosen.none_beside, *chosen.none_beside.values())
    parts = (fact for way in ways for fact in way)
    return frozenset((*signs, *looked_for, *metrics, *chosen.steps, *chosen.further, *seen, *parts))
