"""What could not be judged, and the setting that would change that (S44)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from advisor.facts.base import FactKind, FactSet
from advisor.model import RUN, Check, MissingEvidence, Outcome
from advisor.tables import FILES, TABLES

_OF_COLLECTIVES = ("collectives", "transports", "packets", "links")


def missing_evidence(
    checks: Sequence[Check], catalogue: Mapping[str, FactKind], tables: Collection[str], framework: str = "unknown"
) -> tuple[MissingEvidence, ...]:
    """Per missing file: the setting that brings it and the rules that wait for it, most wanted first."""
    open_ = ((check.rule, check.missing) for check in checks if check.outcome == Outcome.NO_DATA)
    return waiting_for(open_, catalogue, tables, framework)


def needless(facts: FactSet) -> tuple[str, ...]:
    """Tables that could hold nothing: of collectives, where one device alone ran and communicated with nobody."""
    alone = (facts.number("run.world_size", RUN) or 1) <= 1 and (facts.number("run.rank_count", RUN) or 1) <= 1
    silent = facts.number("step.exposed_communication_share", RUN) == 0 and not facts.number("communication.count", RUN)
    return _OF_COLLECTIVES if alone and silent else ()


def waiting_for(
    rules: Iterable[tuple[str, Iterable[str]]],
    catalogue: Mapping[str, FactKind],
    tables: Collection[str],
    framework: str = "unknown",
) -> tuple[MissingEvidence, ...]:
    """The same for rules with the facts they lack.

    A fact's `needs` are tables, alternatives separated by "|"; a need is unmet where none of its tables is at hand.
    What the profiler of one framework alone can write is asked of those only who are known to use it.
    """
    waiting: dict[tuple[str, str], set[str]] = {}
    for rule, facts in rules:
        for name in facts:
            for need in catalogue[name].needs if name in catalogue else ():
                alternatives = need.split("|")
                if not set(alternatives) & set(tables):
                    table = alternatives[0]
                    writer = TABLES[table].framework if table in TABLES else ""
                    if writer and framework != writer:
                        continue
                    setting = TABLES[table].setting if table in TABLES else ""
                    waiting.setdefault((FILES.get(table, table), setting), set()).add(rule)
    entries = [MissingEvidence(file, setting, tuple(sorted(rules))) for (file, setting), rules in waiting.items()]
    return tuple(sorted(entries, key=lambda e: (-len(e.rules), e.evidence)))
