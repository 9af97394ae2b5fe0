"""Whether a report asks its reader for what the tool has read."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.base import FactSet
from advisor.model import COLLECTION, Report
from advisor.tables import FILES


def asked_in_vain(report: Report, facts: FactSet) -> Iterator[str]:
    """Sentences of findings and of the headline, and missing evidence, that ask for a file which every rank has."""
    tables = _tables(facts)
    at_hand = {FILES[table] for table in tables if table in FILES}
    told = [("headline", report.summary.headline.en.partition("Missing evidence:")[2])]
    for finding in report.findings:
        told += [(f"{finding.rule} doubts", doubt.en) for doubt in finding.doubts if "ntact copy" not in doubt.en]
        # a remedy of the collection itself explains what a setting brings; what it does not bring is not at issue
        told += [
            (f"{finding.rule} {remedy.id}", f"{remedy.action.en} {remedy.snippet}")
            for remedy in finding.remedies
            if not remedy.brings_evidence
        ]
    for where, text in told:
        yield from (f"{where}: {file}: {text}" for file in at_hand if file in text and f"{file} (" not in text)
    whole = {file for file, brings in _brings().items() if brings <= tables}
    yield from (f"missing: {item.evidence}" for item in report.missing_evidence if item.evidence in whole)


def _tables(facts: FactSet) -> set[str]:
    value = facts.value("collection.tables", COLLECTION)
    return {str(table) for table in value} if isinstance(value, tuple) else set()


def _brings() -> dict[str, set[str]]:
    """file -> all tables it brings: a file of which one table is at hand may still be asked for another."""
    found: dict[str, set[str]] = {}
    for table, file in FILES.items():
        found.setdefault(file, set()).add(table)
    return found
