"""SARIF 2.1.0: what code-scanning services read. One result per finding, one rule per rule that was checked."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from advisor.basics.jsonout import shield_json
from advisor.exchange import tool_version
from advisor.knowledge.messages import translated
from advisor.model import Check, Finding, Outcome, Report
from advisor.render.conditions import titled
from advisor.render.escaping import markdown, printable
from advisor.render.wording import check, gain, promise, where, word

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"low": "note", "medium": "warning", "high": "error", "critical": "error"}


def render_sarif(report: Report, lang: str = "en", **_: Any) -> str:
    """The report as a SARIF log. Symptoms are notes: their cause is what is to be fixed."""
    checked = {printable(item.rule) for item in report.checked}
    rules = sorted(checked | {printable(finding.rule) for finding in report.findings})
    titles = {printable(finding.rule): finding for finding in reversed(report.findings)}
    run = {
        "tool": {
            "driver": {
                "name": "advisor",
                "version": tool_version(),
                "rules": [_rule(rule, titles.get(rule), lang) for rule in rules],
            }
        },
        "language": "zh-CN" if lang == "zh" else "en-US",
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(report, finding, rules.index(printable(finding.rule)), lang) for finding in report.findings
        ],
        "invocations": [
            {
                "executionSuccessful": bool(report.checked or report.findings),
                "toolExecutionNotifications": [
                    *(
                        _notification(f"{file}: {translated(problem.problem, lang)}", "warning")
                        for problem in report.problems
                        for file in (problem.file, *problem.also)
                    ),
                    *(
                        _unjudged(item, lang)
                        for item in report.checked
                        if item.outcome in (Outcome.NO_DATA, Outcome.ERROR)
                    ),
                ],
            }
        ],
        "properties": {
            "direction": report.summary.direction,
            "headline": printable(report.summary.headline.get(lang)),
        },
    }
    return shield_json(
        json.dumps(
            {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, allow_nan=False, indent=1
        )
    )


def _rule(rule: str, finding: Finding | None, lang: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": rule}
    if finding is not None:
        entry["name"] = printable(finding.verdict)
        entry["shortDescription"] = {"text": printable(finding.title.get(lang)) or rule}
        entry["properties"] = {"tags": ["performance", finding.direction.value]}
    return entry


def _result(report: Report, finding: Finding, index: int, lang: str) -> dict[str, Any]:
    level = "note" if finding.role.value == "symptom" else _LEVELS[finding.severity.value]
    identity = f"{finding.rule}\0{finding.subject.kind}\0{finding.subject.id}"
    return {
        "ruleId": printable(finding.rule),
        "ruleIndex": index,
        "level": level,
        "message": _message(finding, lang),
        "locations": _locations(report, finding),
        "partialFingerprints": {"advisorFinding/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
        "properties": {
            "verdict": printable(finding.verdict),
            "role": finding.role.value,
            "severity": finding.severity.value,
            "confidence": finding.confidence.value,
            "subject": printable(where(finding.subject, lang)),
            "saving_us_per_step": None if finding.saving is None else finding.saving.us_per_step,
            "saving_us_of_recording": None if finding.saving is None else finding.saving.us_of_recording,
            "at_stake_us_per_step": None if finding.at_stake is None else finding.at_stake.us_per_step,
        },
    }


def _message(finding: Finding, lang: str) -> dict[str, str]:
    lines = [f"{finding.title.get(lang)}: {finding.message.get(lang)}"]
    lines += [titled(evidence, finding.evidence, lang) for evidence in finding.evidence]
    if (told := finding.saving or finding.at_stake) is not None:
        lines.append(f"{promise(finding, lang)} {gain(told, lang)}")
    for remedy in finding.remedies:
        verify = f" [{check(remedy, lang)}]" if check(remedy, lang) else ""
        lines.append(f"{remedy.action.get(lang)}{verify}")
    plain = [printable(line) for line in lines]
    return {"text": "\n".join(plain), "markdown": "\n\n".join(markdown(line) for line in plain)}


def _locations(report: Report, finding: Finding) -> list[dict[str, Any]]:
    """Files the evidence was read from; the profile itself where none is named (services ask for a location)."""
    files = [evidence.source.file for evidence in finding.evidence if evidence.source and evidence.source.file]
    kind = "module" if finding.subject.kind in ("rank", "host", "link", "stage") else "function"
    name = printable(finding.subject.id)
    return [
        {
            "physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": {"startLine": 1}},
            "logicalLocations": [{"name": name, "fullyQualifiedName": f"{finding.subject.kind}:{name}", "kind": kind}],
        }
        for file in list(dict.fromkeys(files))[:10] or [report.profile.path or "profile"]
    ]


def uri(file: str) -> str:
    """A relative reference as RFC 3986 wants it."""
    return quote(printable(file).replace("\\", "/").lstrip("/"), safe="/-._~") or "profile"


def _notification(text: str, level: str) -> dict[str, Any]:
    return {"message": {"text": printable(text)}, "level": level}


def _unjudged(item: Check, lang: str) -> dict[str, Any]:
    reason = item.reason or ", ".join(item.missing)
    level = "error" if item.outcome is Outcome.ERROR else "note"
    return _notification(f"{item.rule}: {word(lang, f'outcomes.{item.outcome.value}')}: {reason}", level)
