"""What is told of a profile, to be held against what is told of another form of it."""

from __future__ import annotations

from pathlib import Path

from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules


def report_on(folder: Path) -> Report:
    """By all shipped rules, in this process."""
    return advise([folder], load_rules(), Options(jobs=1))


def findings_of(report: Report) -> list[tuple[object, ...]]:
    """Rule, subject, severity, confidence, role and promise of each finding."""
    return [(f.rule, f.subject, f.severity, f.confidence, f.role, f.saving and f.saving.us) for f in report.findings]
