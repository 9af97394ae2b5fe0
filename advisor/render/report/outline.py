"""The order in which every format tells a report: causes with what they account for, then the rest."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.knowledge.words import both, word
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


def said_counts(report: Report, lang: str) -> str:
    """How many causes and how many symptoms were found: the same words wherever findings are counted."""
    return say_counts(*counts(report), lang)


def say_counts(causes: int, symptoms: int, lang: str) -> str:
    return word(
        lang, "report.counts", causes=word(lang, "report.count_causes", count=causes),
        symptoms=word(lang, "report.count_symptoms", count=symptoms),
    )  # fmt: skip


def counts(report: Report) -> tuple[int, int]:
    """(causes and what has none, symptoms that one of them accounts for)."""
    trees = branches(report)
    return len(trees), len(report.findings) - len(trees)


def direction_words(report: Report) -> Text:
    """The direction in words; of a healthy run whose device was not measured, that."""
    if report.summary.direction == "healthy" and not _device_measured(report):
        return both("report.healthy_gaps")
    return both(f"directions.{report.summary.direction}")


def _device_measured(report: Report) -> bool:
    return bool({"computing", "exposed_communication", "fp_bp"} & set(report.summary.breakdown))


def has_gaps(report: Report) -> bool:
    """Whether a healthy run was not measured in full: its device, or files that were not collected."""
    return not _device_measured(report) or bool(report.missing_evidence)


def problems_together(report: Report) -> list[tuple[str, list[str]]]:
    """(problem, files that have it) in the order of the report."""
    found: dict[str, list[str]] = {}
    for problem in report.problems:
        found.setdefault(problem.problem, []).append(problem.file)
    return list(found.items())


def checks(report: Report, outcome: Outcome) -> list[Check]:
    return [check for check in report.checked if check.outcome is outcome]


def next_collection(report: Report) -> Text | None:
    """The one collection that would decide most; None where nothing is missing."""
    if not report.missing_evidence:
        return None
    from advisor.collect.plan import next_collection as decide

    return decide(report)
