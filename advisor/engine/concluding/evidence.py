"""What could not be judged, and the setting that would change that (S44)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from advisor.facts.base import FactKind, FactSet
from advisor.knowledge.writers import Written
from advisor.model import RUN, Check, MissingEvidence, Outcome

_OF_COLLECTIVES = ("collectives", "transports", "packets", "links")


def missing_evidence(
    checks: Sequence[Check], catalogue: Mapping[str, FactKind], tables: Collection[str], writes: Mapping[str, Written]
) -> tuple[MissingEvidence, ...]:
    """Per missing file: the setting that brings it and the rules that wait for it, most wanted first."""
    open_ = ((check.rule, check.missing) for check in checks if check.outcome == Outcome.NO_DATA)
    return waiting_for(open_, catalogue, tables, writes)


def needless(facts: FactSet) -> tuple[str, ...]:
    """Tables that could hold nothing: of collectives, where one device alone ran and communicated with nobody."""
    alone = (facts.number("run.world_size", RUN) or 1) <= 1 and (facts.number("run.rank_count", RUN) or 1) <= 1
    exposed, unplaced = (facts.number(f"step.{name}_share", RUN) for name in ("exposed_communication", "unplaced"))
    # the older step trace has a column for each collective, and none where there is none
    untold = exposed is None and unplaced is None and facts.has("step.fp_bp_share")
    silent = (exposed == 0 or untold) and not facts.number("communication.count", RUN)
    return _OF_COLLECTIVES if alone and silent else ()


def waiting_for(
    rules: Iterable[tuple[str, Iterable[str]]],
    catalogue: Mapping[str, FactKind],
    tables: Collection[str],
    writes: Mapping[str, Written],
) -> tuple[MissingEvidence, ...]:
    """The same for rules with the facts they lack.

    A fact's `needs` are tables, alternatives separated by "|"; a need is unmet where none of its tables is at hand.
    Asked for is the first of them that this profiler `writes`. A rule that waits for what it never writes waits for
    nothing that could be collected.
    """
    waiting: dict[Written, set[str]] = {}
    for rule, facts in rules:
        needs = [need.split("|") for name in facts if name in catalogue for need in catalogue[name].needs]
        unmet = [alternatives for alternatives in needs if not set(alternatives) & set(tables)]
        brought = [[writes[table] for table in alternatives if table in writes] for alternatives in unmet]
        if all(brought):
            for first, *_ in brought:
                waiting.setdefault(first, set()).add(rule)
    entries = [MissingEvidence(each.file, each.setting, tuple(sorted(rules))) for each, rules in waiting.items()]
    return tuple(sorted(entries, key=lambda e: (-len(e.rules), e.evidence)))
