"""How far savings are off, what a direction can lose (knowledge_base/savings.yaml), and how much of a step matters
(knowledge_base/materiality.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from advisor.knowledge.statements import document
from advisor.knowledge.verdicts import verdict_words
from advisor.model import Confidence, Direction, Fact, Finding, Role, Severity


@lru_cache(maxsize=1)
def _terms() -> dict[str, Any]:
    return dict(document("savings.yaml"))


def usual_error(way: str) -> float:
    """Part of a saving by which it is off, at most, known in this way: replay, comparison or estimate."""
    return float(_terms()["error"][way]["value"])


def unexplained_part() -> float:
    """Part of a symptom's lost time up to which it is accounted for although its causes lose less."""
    return float(_terms()["explained"]["value"])


def unowned_part(causes: Sequence[Finding] = (), *, weak: bool = False) -> float:
    """Part of lost time without a known cause that counts against what these causes cost: none where one of them
    certainly gives what it promises, less where there is no doubt of one that costs enough to matter. `weak`
    where the finding that shows the time weighs little, for want of evidence or because much of it is needed."""
    terms = _terms()
    sure = [f for f in causes if f.confidence == Confidence.HIGH and not is_event(f)]
    savings = [f.saving for f in sure if f.saving is not None and loses_enough(f)]
    if any(saving.kind == "estimate" for saving in savings):
        return 0.0
    if savings:
        return float(terms["unowned_beside_certain"]["value"])
    return float(terms["unowned_weak" if weak else "unowned"]["value"])


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
    part = unowned_part(roots)

    def standing(finding: Finding) -> tuple[bool, float, int, int]:
        known = finding.saving is not None and finding.confidence != Confidence.LOW
        us = finding.weight_us * (1.0 if known else part)
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


def outweighing(noticed: Finding, findings: Sequence[Finding], facts: Iterable[Fact]) -> Finding:
    """What a table of sums shows in the first place: where nothing is promised, the operator that takes most of the
    time, if it is none that networks live on; beside products, which they do live on, no trifle."""
    if noticed.saving is not None or noticed.at_stake is not None or not (own := part_of_kernels(noticed)):
        return noticed
    unusual = {fact.subject.id for fact in facts if fact.name == "operator_type.category" and fact.value == "vector"}
    times = float(document("materiality.yaml")["outweighed"]["value"])
    larger = [
        finding
        for finding in filter(is_remark, findings)
        if (part := part_of_kernels(finding)) >= times * own or (finding.subject.id in unusual and part > own)
    ]
    return max(larger, key=part_of_kernels, default=noticed)


def part_of_kernels(finding: Finding) -> float:
    """The part of the kernel time of the types it is about, as its evidence tells."""
    shares = {e.subject: e.value for e in finding.evidence if e.fact == "operator_type.compute_share"}
    return sum(float(share) for share in shares.values() if isinstance(share, int | float))
