"""The order in which every format tells a report: causes with what they account for, then the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from advisor.knowledge.messages import in_both
from advisor.knowledge.savings import is_remark, leading, outweighing
from advisor.knowledge.words import both, word
from advisor.model import Check, Direction, Finding, Outcome, Report, Role, Text

DEEPEST = 12
"""Symptoms of symptoms that are told one below the other."""
Claim = tuple[str, str, Sequence[str], Sequence[str]]
"""A finding's id, role, what it follows from and what it accounts for."""


@dataclass(frozen=True)
class Branch:
    """A finding and the findings it accounts for."""

    finding: Finding
    symptoms: tuple[Branch, ...] = ()

    def below(self) -> list[Finding]:
        """Everything this finding accounts for, nearest first."""
        return [found for branch in self.symptoms for found in (branch.finding, *branch.below())]


def branches(report: Report) -> list[Branch]:
    """Findings as trees in the report's order, behind the one that leads it, mere remarks last; each finding stands in
    exactly one place, whatever they claim of each other (a cycle is cut at its first member, what is chained deeper
    than `DEEPEST` stands side by side)."""
    by_id = {finding.id: finding for finding in report.findings}
    cause_of = _causes([(f.id, f.role.value, f.because, f.explains) for f in report.findings])
    below: dict[str, list[Finding]] = {}
    for symptom, cause in cause_of.items():
        below.setdefault(cause, []).append(by_id[symptom])

    def grow(finding: Finding, depth: int) -> Branch:
        nearest = below.get(finding.id, [])
        if depth < DEEPEST:
            return Branch(finding, tuple(grow(other, depth + 1) for other in nearest))
        every = list(nearest)
        for other in every:
            every += below.get(other.id, [])
        return Branch(finding, tuple(Branch(other) for other in every))

    first = _headed(report, cause_of)
    trees = [grow(finding, 1) for finding in by_id.values() if finding.id not in cause_of]
    return sorted(trees, key=lambda branch: _place(branch.finding, first))


def _headed(report: Report, cause_of: Collection[str]) -> Finding | None:
    """What the headline names: the finding that leads the report, else, where more time is lost in another direction
    than that gives back, the suspect there that would give back most; of what nothing is promised for, the type that
    takes most of the time."""
    first, direction = leading(report.findings), report.summary.direction
    if first is not None and first.direction.value == direction:
        return first
    told = [f for f in report.findings if f.direction is not Direction.EVIDENCE and f.id not in cause_of]
    noticed = next((f for f in told if not is_remark(f)), None)
    if direction == "undetermined" and first is None and noticed is not None:
        larger = outweighing(noticed, told, report.facts)
        return None if larger is noticed else larger
    suspects = [
        f
        for f in report.findings
        if f.direction.value == direction and f.id not in cause_of and f.saving and f.saving.after_others_us != 0
    ]  # what gives nothing once others are repaired is their consequence
    return max(suspects, key=lambda finding: finding.weight_us, default=first)


def _place(finding: Finding, first: Finding | None) -> tuple[bool, bool, bool, float]:
    """Causes as they are numbered; behind them what may lose most, whether or not its gain is known."""
    cause = finding.role == Role.ROOT_CAUSE
    return finding is not first, is_remark(finding), not cause, 0.0 if cause else -finding.weight_us


def in_full(report: Report, trees: Sequence[Branch]) -> list[Branch]:
    """What is worth telling with its evidence and remedy: mere remarks only where a profile has nothing else, and is
    not healthy, and the one that it is headed by."""
    weighty = [branch for branch in trees if not is_remark(branch.finding)]
    if weighty and weighty[0] is not trees[0]:
        return [trees[0], *weighty]
    return weighty or ([] if report.summary.direction == "healthy" else list(trees))


def _causes(findings: Sequence[Claim]) -> dict[str, str]:
    """symptom -> the cause under which it stands."""
    claimed = {identity: list(because) for identity, _, because, _ in findings}
    for identity, _, _, explains in findings:
        for symptom in explains:
            claimed.get(symptom, []).append(identity)
    cause_of: dict[str, str] = {}
    for identity, role in {identity: role for identity, role, _, _ in findings}.items():
        if role != Role.SYMPTOM.value:  # what is explained in part loses time of its own, too
            continue
        for cause in claimed[identity]:
            if cause in claimed and cause != identity and not _reaches(cause, identity, cause_of):
                cause_of[identity] = cause
                break
    return cause_of


def _reaches(start: str, goal: str, cause_of: dict[str, str]) -> bool:
    while start in cause_of:
        start = cause_of[start]
        if start == goal:
            return True
    return False


def causes_and_symptoms(findings: Sequence[Claim]) -> tuple[int, int]:
    """(causes and what has none, symptoms that one of them accounts for)."""
    known = len({identity for identity, *_ in findings})
    symptoms = len(_causes(findings))
    return known - symptoms, symptoms


def said_counts(report: Report, lang: str) -> str:
    """How many causes and how many symptoms were found: the same words wherever findings are counted."""
    claims = [(f.id, f.role.value, f.because, f.explains) for f in report.findings]
    return say_counts(*causes_and_symptoms(claims), lang)


def say_counts(causes: int, symptoms: int, lang: str) -> str:
    return word(
        lang, "report.counts", causes=word(lang, "report.count_causes", count=causes),
        symptoms=word(lang, "report.count_symptoms", count=symptoms),
    )  # fmt: skip


def direction_words(report: Report) -> Text:
    """The direction in words."""
    return both(f"directions.{report.summary.direction}")


def has_gaps(report: Report) -> bool:
    """Whether a healthy run was not measured in full: files that were not collected."""
    return bool(report.missing_evidence)


def problems_together(report: Report) -> list[tuple[Text, list[str]]]:
    """(problem, files that have it) in the order of the report."""
    found: dict[str, list[str]] = {}
    for problem in report.problems:
        found.setdefault(problem.problem, []).extend((problem.file, *problem.also))
    return [(in_both(problem), files) for problem, files in found.items()]


def checks(report: Report, outcome: Outcome) -> list[Check]:
    return [check for check in report.checked if check.outcome is outcome]


def next_collection(report: Report) -> Text | None:
    """The one collection that would decide most; None where nothing is missing."""
    if not report.missing_evidence:
        return None
    from advisor.collect.plan import next_collection as decide

    return decide(report)
