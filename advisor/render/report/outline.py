"""The order in which every format tells a report: causes with what they account for, then the rest."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model import Check, Finding, Outcome, Report, Role, Text


@dataclass(frozen=True)
class Branch:
    """A finding and the findings it accounts for."""

    finding: Finding
    symptoms: tuple[Branch, ...] = ()

    def below(self) -> list[Finding]:
        """Everything this finding accounts for, nearest first."""
        return [found for branch in self.symptoms for found in (branch.finding, *branch.below())]


def branches(report: Report) -> list[Branch]:
    """Findings as trees in the report's order; each finding stands in exactly one place, whatever they claim of each
    other (a cycle is cut at its first member)."""
    by_id = {finding.id: finding for finding in report.findings}
    claimed: dict[str, list[str]] = {finding.id: list(finding.because) for finding in report.findings}
    for finding in report.findings:
        for symptom in finding.explains:
            claimed.get(symptom, []).append(finding.id)
    cause_of: dict[str, str] = {}
    below: dict[str, list[Finding]] = {}
    for finding in by_id.values():
        if finding.role is Role.ROOT_CAUSE:
            continue
        for cause in claimed[finding.id]:
            if cause in by_id and cause != finding.id and not _reaches(cause, finding.id, cause_of):
                cause_of[finding.id] = cause
                below.setdefault(cause, []).append(finding)
                break

    def grow(finding: Finding) -> Branch:
        return Branch(finding, tuple(grow(other) for other in below.get(finding.id, ())))

    return [grow(finding) for finding in by_id.values() if finding.id not in cause_of]


def _reaches(start: str, goal: str, cause_of: dict[str, str]) -> bool:
    while start in cause_of:
        start = cause_of[start]
        if start == goal:
            return True
    return False


def checks(report: Report, outcome: Outcome) -> list[Check]:
    return [check for check in report.checked if check.outcome is outcome]


def next_collection(report: Report) -> Text | None:
    """The one collection that would decide most; None where nothing is missing."""
    if not report.missing_evidence:
        return None
    from advisor.collect.plan import next_collection as decide

    return decide(report)
