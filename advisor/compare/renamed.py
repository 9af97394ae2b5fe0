"""Recordings of one kernel alone, which has another name afterwards: it is the same kernel, whatever it gained."""

from __future__ import annotations

from dataclasses import replace

from advisor.compare.facts import FactTable
from advisor.compare.model import Obstacle
from advisor.knowledge.words import both
from advisor.model import Evidence, Fact, Finding, Report, Subject

_KIND = "operator_type"


def as_one_kernel(before: Report, after: Report) -> tuple[Report, Obstacle | None]:
    """`before` with its only kernel by the name that the only one has afterwards, and what is to be said of it; as it
    is where either side has several, and where steps are marked: of a program's kernels one may go and another come."""
    if before.profile.has_steps or after.profile.has_steps:
        return before, None
    was, now = (_only(FactTable(side.facts)) for side in (before, after))
    if was is None or now is None or was == now:
        return before, None
    renamed = replace(
        before,
        facts=tuple(_fact(fact, was, now) for fact in before.facts),
        findings=tuple(_finding(finding, was, now) for finding in before.findings),
    )
    return renamed, Obstacle("measured kernel", was, now, False, both("difference_matters.measured kernel"))


def _only(facts: FactTable) -> str | None:
    """The name of the only type of operator that took time."""
    names = [name for kind, name in facts.of(f"{_KIND}.time_us") if kind == _KIND]
    return names[0] if len(names) == 1 else None


def _subject(subject: Subject, was: str, now: str) -> Subject:
    return replace(subject, id=now) if subject.kind == _KIND and subject.id == was else subject


def _fact(fact: Fact, was: str, now: str) -> Fact:
    return replace(fact, subject=_subject(fact.subject, was, now))


def _finding(finding: Finding, was: str, now: str) -> Finding:
    evidence: tuple[Evidence, ...] = tuple(
        replace(each, subject=_subject(each.subject, was, now)) for each in finding.evidence
    )
    return replace(finding, subject=_subject(finding.subject, was, now), evidence=evidence)
