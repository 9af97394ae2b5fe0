"""What could not be judged, and the setting that would change that (S44)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from advisor.facts.base import FactKind
from advisor.model import Check, MissingEvidence, Outcome
from advisor.tables import FILES, TABLES


def missing_evidence(
    checks: Sequence[Check], catalogue: Mapping[str, FactKind], tables: Collection[str], framework: str = "unknown"
) -> tuple[MissingEvidence, ...]:
    """Per missing file: the setting that brings it and the rules that wait for it, most wanted first."""
    open_ = ((check.rule, check.missing) for check in checks if check.outcome == Outcome.NO_DATA)
    return waiting_for(open_, catalogue, tables, framework)


def waiting_for(
    rules: Iterable[tuple[str, Iterable[str]]],
    catalogue: Mapping[str, FactKind],
    tables: Collection[str],
    framework: str = "unknown",
) -> tuple[MissingEvidence, ...]:
    """The same for rules with the facts they lack.

    A fact's `needs` are tables, alternatives separated by "|"; a need is unmet where none of its tables is at hand.
    What the profiler of another framework alone can write is asked of nobody.
    """
    waiting: dict[tuple[str, str], set[str]] = {}
    for rule, facts in rules:
        for name in facts:
            for need in catalogue[name].needs if name in catalogue else ():
                alternatives = need.split("|")
                if not set(alternatives) & set(tables):
                    table = alternatives[0]
                    writer = TABLES[table].framework if table in TABLES else ""
                    if writer and framework not in (writer, "unknown"):
                        continue
                    setting = TABLES[table].setting if table in TABLES else ""
                    waiting.setdefault((FILES.get(table, table), setting), set()).add(rule)
    entries = [MissingEvidence(file, setting, tuple(sorted(rules))) for (file, setting), rules in waiting.items()]
    return tuple(sorted(entries, key=lambda e: (-len(e.rules), e.evidence)))
