"""A report on a recording in which nothing marks steps: nothing in it is "per step"."""

from __future__ import annotations

from dataclasses import replace

from advisor.knowledge.without_steps import reworded
from advisor.model import Direction, Finding, Remedy, Report, Saving

OF_BATCHES = ("pipeline_op", "queue")
"""Kinds of subjects of which figures are told for a batch."""


def tell_of_recording(report: Report) -> Report:
    """The same report with savings, lengths and sentences about the recording instead of about a step."""
    summary = replace(
        report.summary, step_time_us=None, recording_us=report.summary.step_time_us,
        headline=reworded(report.summary.headline),
    )  # fmt: skip
    return replace(report, summary=summary, findings=tuple(map(_finding, report.findings)))


def _finding(finding: Finding) -> Finding:
    """Reworded, unless it is about the collection: the steps of a schedule are steps."""
    if finding.direction == Direction.EVIDENCE:
        return finding
    into = "of_batches" if finding.subject.kind in OF_BATCHES else "without_steps"
    return replace(
        finding, title=reworded(finding.title), message=reworded(finding.message, into),
        saving=None if finding.saving is None else _saving(finding.saving),
        at_stake=None if finding.at_stake is None else _saving(finding.at_stake),
        remedies=tuple(map(_remedy, finding.remedies)), doubts=tuple(map(reworded, finding.doubts)),
    )  # fmt: skip


def _saving(saving: Saving) -> Saving:
    basis = reworded(saving.basis)
    return replace(
        saving, us_per_step=None, share_of_step=None, basis=basis, us_of_recording=saving.us,
        share_of_recording=saving.share,
    )  # fmt: skip


def _remedy(remedy: Remedy) -> Remedy:
    """Reworded, unless it asks for another recording: that one has steps."""
    if remedy.brings_evidence:
        return remedy
    risk = None if remedy.risk is None else reworded(remedy.risk)
    return replace(remedy, title=reworded(remedy.title), action=reworded(remedy.action), risk=risk)
