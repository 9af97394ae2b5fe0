"""How far savings are off, what a direction can lose (knowledge_base/savings.yaml), and how much of a step matters
(knowledge_base/materiality.yaml)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from advisor.knowledge.statements import document
from advisor.knowledge.verdicts import verdict_words
from advisor.model import Confidence, Direction, Finding, Role, Severity


@lru_cache(maxsize=1)
def _terms() -> dict[str, Any]:
    return dict(document("savings.yaml"))


def usual_error(way: str) -> float:
    """Part of a saving by which it is off, at most, known in this way: replay, comparison or estimate."""
    return float(_terms()["error"][way]["value"])


def unexplained_part() -> float:
    """Part of a symptom's lost time up to which it is accounted for although its causes lose less."""
    return float(_terms()["explained"]["value"])


def is_certain(finding: Finding) -> bool:
    """Whether there is no doubt of a cause, and what it costs is enough to lead a report."""
    share = finding.saving.share if finding.saving is not None else None
    return share is not None and share >= _terms()["certain"]["value"] and finding.confidence == Confidence.HIGH


def unowned_part(*, weak: bool = False, certain: bool = False) -> float:
    """Part of lost time without a known cause that counts against what a known cause costs; `certain` where there is
    no doubt of that cause, `weak` where the finding that shows the time weighs little, for want of evidence or because
    much of it is needed."""
    return float(_terms()["unowned_beside_certain" if certain else "unowned_weak" if weak else "unowned"]["value"])


def _standing_us(finding: Finding, *, certain: bool = False) -> float:
    """By what causes compete for the first place, microseconds: what repairing it gives, or a part of what is lost to
    nobody or to a cause that is doubted; `certain` where a certain cause stands among them."""
    if finding.saving is not None and finding.confidence != Confidence.LOW:
        return finding.saving.us
    told = finding.saving or finding.at_stake
    return told.us * unowned_part(certain=certain) if told is not None else 0.0


def leading(findings: Sequence[Finding]) -> Finding | None:
    """The root cause to start with: the largest saving among those of medium severity or more; time that nobody is
    known to take, or only a doubted cause, stands behind, the further where a cause is certain. What one step alone
    lost, to a checkpoint or to garbage, is an event: it stands behind all that every step loses."""
    roots = [
        f
        for f in findings
        if f.role == Role.ROOT_CAUSE and f.direction != Direction.EVIDENCE and f.severity.rank >= Severity.MEDIUM.rank
    ]
    if not roots:
        return None
    certain = any(map(is_certain, roots))

    def standing(finding: Finding) -> tuple[bool, float, int, int]:
        us = _standing_us(finding, certain=certain)
        return not is_event(finding), us, finding.severity.rank, finding.confidence.rank

    return max(roots, key=standing)


def is_event(finding: Finding) -> bool:
    """Whether one step of several alone lost this time."""
    return finding.saving is not None and bool(finding.saving.lone_step)


def pools() -> dict[str, list[list[str]]]:
    """direction -> lists of facts: of each the first measured counts, their sum is what the direction can lose."""
    return dict(_terms()["pools"])


@lru_cache(maxsize=1)
def materiality() -> dict[Severity, float]:
    """Least share of the step that must be at stake for each severity."""
    least = document("materiality.yaml")["least_share_of_step"]
    return {Severity(name): float(entry["value"]) for name, entry in least.items()}


def trifle() -> float:
    """Share of the step under which a cause is none of its own beside one of weight, whatever else is repaired."""
    return float(document("materiality.yaml")["trifle"]["value"])


def allowed_by(share: float) -> Severity:
    """The highest severity that this share of the step allows."""
    return max((s for s, least in materiality().items() if share >= least), key=lambda s: s.rank, default=Severity.LOW)


def loses_enough(finding: Finding) -> bool:
    """Whether it tells of lost time that would matter if it is true, however weak its evidence."""
    told = finding.saving or finding.at_stake
    share = told.share if told is not None else None
    return finding.direction != Direction.EVIDENCE and share is not None and share >= materiality()[Severity.MEDIUM]


def is_remark(finding: Finding) -> bool:
    """Whether it only says where time goes: nothing is known to be wrong there, and nothing to be gained."""
    weighs = finding.severity != Severity.LOW or finding.saving is not None or finding.at_stake is not None
    known = verdict_words().get(finding.verdict)
    return finding.role == Role.CONTRIBUTING and known is not None and known.points and not weighs
