"""GitHub workflow commands. Ten annotations of a kind are shown and the rest is dropped silently: the worst nine of
each kind go out, and a pointer to the rest."""

from __future__ import annotations

from typing import Any

from advisor.model import Finding, Report, Role
from advisor.render.escaping import workflow_message, workflow_property
from advisor.render.wording import gain, promise, where, word

SHOWN = 9
_COMMANDS = {"critical": "error", "high": "error", "medium": "warning", "low": "notice"}


def render_github(report: Report, lang: str = "en", **_: Any) -> str:
    """One line per finding, causes before symptoms, the worst first."""
    by_command: dict[str, list[Finding]] = {}
    order = sorted(report.findings, key=lambda finding: (finding.role is Role.SYMPTOM, -finding.severity.rank))
    for finding in order:
        command = "notice" if finding.role is Role.SYMPTOM else _COMMANDS[finding.severity.value]
        by_command.setdefault(command, []).append(finding)
    lines = []
    for command, findings in by_command.items():
        lines += [_annotation(command, finding, lang) for finding in findings[:SHOWN]]
        if len(findings) > SHOWN:
            rest = word(lang, "report.more_annotations", count=len(findings) - SHOWN)
            lines.append(f"::{command} title=advisor::{workflow_message(rest)}")
    if not report.findings:
        lines.append(f"::notice title=advisor::{workflow_message(report.summary.headline.get(lang))}")
    return "\n".join(lines) + "\n"


def _annotation(command: str, finding: Finding, lang: str) -> str:
    title = f"{finding.rule} {finding.title.get(lang)} ({where(finding.subject, lang)})"
    lines = [finding.message.get(lang)]
    if (told := finding.saving or finding.at_stake) is not None:
        lines.append(f"{promise(finding, lang)} {gain(told, lang)}")
    lines += [remedy.action.get(lang) for remedy in finding.remedies[:1]]
    return f"::{command} title={workflow_property(title)}::{workflow_message(chr(10).join(lines))}"
