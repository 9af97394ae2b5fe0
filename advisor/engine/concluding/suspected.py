"""A symptom that a suspect would account for is a suspicion as well.

A suspect is a finding of low severity that may lose much: it rests on too little to be a cause of weight. It cannot
account for a symptom then, and yet the symptom's own remedies are not the answer while somebody is suspected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from advisor.engine.concluding.allclear import Loss
from advisor.knowledge.savings import materiality, unexplained_part
from advisor.knowledge.words import both
from advisor.model import Direction, Finding, Role, Severity


def is_suspect(finding: Finding) -> bool:
    """Whether the finding would have weight, were its evidence as good as what it may lose is large."""
    told = finding.saving or finding.at_stake
    if finding.direction == Direction.EVIDENCE or finding.severity != Severity.LOW:
        return False
    return told is not None and told.share is not None and told.share >= materiality()[Severity.MEDIUM]


def suspected(symptom: Finding, suspects: Sequence[Finding]) -> Finding:
    """The symptom, of low severity where these suspects may account for it."""
    if not suspects or not _may_account(symptom, suspects):
        return symptom
    first = max(suspects, key=lambda finding: finding.weight_us)
    return replace(
        symptom, severity=Severity.LOW, doubts=(*symptom.doubts, both("remainder.suspected", title=first.title))
    )


def suspected_owner(loss: Loss, findings: Sequence[Finding]) -> Finding | None:
    """The suspect that names who is late or what is slow, has the finding that shows this loss among its symptoms, and
    gives as much as is lost: waiting for a late host is no communication, however little tells why the host is late."""
    shown = {finding.id for finding in findings if finding.verdict in loss.verdicts}
    least = (1.0 - unexplained_part()) * loss.share
    owners = [
        finding for finding in findings
        if is_suspect(finding) and finding.role != Role.SYMPTOM and shown & set(finding.explains)
        and finding.saving is not None and (finding.saving.share or 0.0) >= least
    ]  # fmt: skip
    return max(owners, key=lambda finding: finding.weight_us, default=None)


def _may_account(symptom: Finding, suspects: Sequence[Finding]) -> bool:
    """As much is at stake there; unknown of uneven stages, for which the others wait far longer than the step gains."""
    lost = symptom.at_stake or symptom.saving
    told = [saving for finding in suspects if (saving := finding.saving or finding.at_stake) is not None]
    if any(saving.removes == "stages" for saving in told):
        return True
    if lost is None or lost.share is None:
        return False
    return sum(saving.share or 0.0 for saving in told) >= (1.0 - unexplained_part()) * lost.share
