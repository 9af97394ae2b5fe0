"""What could not be judged, and the setting that would change that (S44)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from advisor.facts.base import FactKind
from advisor.model import Check, MissingEvidence, Outcome
from advisor.tables import FILES, TABLES


def missing_evidence(
    checks: Sequence[Check], catalogue: Mapping[str, FactKind], tables: Collection[str]
) -> tuple[MissingEvidence, ...]:
    """Per missing file: the setting that brings it and the rules that wait for it, most wanted first.

    A fact's `needs` are tables, alternatives separated by "|"; a need is unmet where none of its tables is at hand.
    """
    waiting: dict[str, set[str]] = {}
    for check in checks:
        if check.outcome != Outcome.NO_DATA:
            continue
        for name in check.missing:
            for need in catalogue[name].needs if name in catalogue else ():
                alternatives = need.split("|")
                if not set(alternatives) & set(tables):
                    waiting.setdefault(alternatives[0], set()).add(check.rule)
    merged: dict[tuple[str, str], set[str]] = {}
    for table, rules in waiting.items():
        setting = TABLES[table].setting if table in TABLES else ""
        merged.setdefault((FILES.get(table, table), setting), set()).update(rules)
    entries = [MissingEvidence(file, setting, tuple(sorted(rules))) for (file, setting), rules in merged.items()]
    return tuple(sorted(entries, key=lambda e: (-len(e.rules), e.evidence)))
