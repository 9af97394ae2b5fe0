"""The decision for services: SARIF 2.1.0, JUnit XML, GitHub workflow commands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from advisor.exchange import tool_version
from advisor.gate.model import Decision, Judgement, Result, Verdict
from advisor.model import Severity
from advisor.render.decision.phrases import cause, extent, headline, name_of, next_step, notes, reason, say
from advisor.render.escaping import markdown, printable, workflow_message, workflow_property
from advisor.render.report.sarif import SCHEMA, uri

SHOWN = 9
"""GitHub shows ten annotations of a kind and drops the rest silently: the worst nine, and a pointer."""
_LEVELS = {
    Result.FAIL: "error", Result.WAIVED: "warning", Result.NOT_CONFIRMED: "warning", Result.NOT_JUDGED: "warning",
    Result.WATCHED: "note", Result.PASS: "none",
}  # fmt: skip
_KINDS = {
    Result.FAIL: "fail", Result.WAIVED: "fail", Result.NOT_CONFIRMED: "review", Result.NOT_JUDGED: "open",
    Result.WATCHED: "informational", Result.PASS: "pass",
}  # fmt: skip


def worst_first(decision: Decision) -> list[Judgement]:
    """Failures before the rest; metrics and budgets before findings, and of these the severe ones first."""
    order = list(_LEVELS)

    def mildness(judgement: Judgement) -> int:
        return -len(Severity) if judgement.finding is None else -judgement.finding.severity.rank

    return sorted(decision.judgements, key=lambda j: (order.index(j.result), mildness(j)))


def rule_of(judgement: Judgement) -> str:
    """The id under which services group results: a finding's rule, or `gate/` with the metric or budget."""
    return judgement.finding.rule if judgement.finding is not None else f"gate/{judgement.kind}/{judgement.name}"


def tell(decision: Decision, judgement: Judgement, lang: str) -> list[str]:
    """The judgement in full: reason, a finding's message, and what accounts for a metric that failed."""
    lines = [f"{name_of(judgement, lang)}: {reason(judgement, lang)}"]
    if judgement.finding is not None:
        lines.append(judgement.finding.message.get(lang))
        lines += [remedy.action.get(lang) for remedy in judgement.finding.remedies[:1]]
    elif judgement.kind == "metric" and judgement.result is Result.FAIL:
        lines += [cause(item, lang) for item in decision.changes]
    return [printable(line) for line in lines]


def render_sarif(decision: Decision, lang: str = "en", **_: Any) -> str:
    """One result per judgement; waived ones carry an accepted suppression with the waiver's reason."""
    ordered = worst_first(decision)
    rules = sorted({rule_of(judgement) for judgement in ordered})
    run = {
        "tool": {
            "driver": {
                "name": "advisor",
                "version": tool_version(),
                "rules": [_rule(rule, ordered, lang) for rule in rules],
            }
        },
        "language": "zh-CN" if lang == "zh" else "en-US",
        "columnKind": "unicodeCodePoints",
        "results": [_result(decision, judgement, rules, lang) for judgement in ordered],
        "invocations": [
            {
                "executionSuccessful": decision.verdict is not Verdict.INCONCLUSIVE,
                "toolExecutionNotifications": [
                    {"message": {"text": printable(text)}, "level": "note"}
                    for text in (*_apart(decision, lang), *notes(decision, lang))
                ],
            }
        ],
        "properties": {"verdict": decision.verdict.value, "headline": printable(headline(decision, lang))},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _rule(rule: str, judgements: list[Judgement], lang: str) -> dict[str, Any]:
    first = next(judgement for judgement in judgements if rule_of(judgement) == rule)
    return {"id": printable(rule), "shortDescription": {"text": printable(first.title.get(lang)) or printable(rule)}}


def _result(decision: Decision, judgement: Judgement, rules: list[str], lang: str) -> dict[str, Any]:
    lines = tell(decision, judgement, lang)
    subject = judgement.finding.subject if judgement.finding is not None else None
    identity = f"{rule_of(judgement)}\0{subject.kind if subject else ''}\0{subject.id if subject else ''}"
    name = printable(subject.id if subject is not None else judgement.name)
    entry: dict[str, Any] = {
        "ruleId": printable(rule_of(judgement)),
        "ruleIndex": rules.index(rule_of(judgement)),
        "level": _LEVELS[judgement.result] if _KINDS[judgement.result] == "fail" else "none",
        "kind": _KINDS[judgement.result],
        "message": {"text": "\n".join(lines), "markdown": "\n\n".join(map(markdown, lines))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri(decision.runs[0].info.path)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"name": name, "fullyQualifiedName": f"{judgement.kind}:{name}"}],
            }
        ],
        "partialFingerprints": {"advisorGate/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
    }
    if judgement.result is Result.WAIVED and judgement.waiver is not None:
        entry["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": printable(judgement.waiver.reason)}
        ]
    return entry


def _apart(decision: Decision, lang: str) -> list[str]:
    unknown = say(lang, "unknown")
    return [f"{d.field}: {d.before or unknown} → {d.after or unknown}" for d in decision.differences]


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(printable, lines))


def render_junit(decision: Decision, lang: str = "en", **_: Any) -> str:
    """One test case per judgement; what could not be judged is skipped, an inconclusive gate is an error."""
    suite = ElementTree.Element("testsuite", name="advisor gate")
    cases = [("gate", say(lang, "title"), None), *((rule_of(j), name_of(j, lang), j) for j in worst_first(decision))]
    for classname, name, judgement in cases:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"advisor.{printable(classname).replace('/', '.')}",
            name=printable(name),
            time="0",
        )
        if judgement is None:
            if decision.verdict is Verdict.INCONCLUSIVE:
                error = ElementTree.SubElement(
                    case, "error", type="inconclusive", message=printable(headline(decision, lang))
                )
                error.text = _lines([*_apart(decision, lang), next_step(decision, lang)])
        elif judgement.result is Result.FAIL:
            failure = ElementTree.SubElement(
                case, "failure", type=printable(judgement.kind), message=printable(reason(judgement, lang))
            )
            failure.text = _lines(tell(decision, judgement, lang))
        elif judgement.result in (Result.NOT_JUDGED, Result.WAIVED, Result.NOT_CONFIRMED):
            ElementTree.SubElement(case, "skipped", message=printable(reason(judgement, lang)))
        else:
            ElementTree.SubElement(case, "system-out").text = _lines(tell(decision, judgement, lang))
    counts = {
        "tests": len(cases),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.set("time", "0")
    output = ElementTree.SubElement(suite, "system-out")
    output.text = _lines([headline(decision, lang), extent(decision, lang), *notes(decision, lang)])
    suites = ElementTree.Element("testsuites", {"name": "advisor", **{k: str(v) for k, v in counts.items()}})
    suites.append(suite)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def render_github(decision: Decision, lang: str = "en", **_: Any) -> str:
    """Errors for what failed, warnings for what is waived, unconfirmed or open, a notice for the verdict."""
    lines = []
    for command, results in (
        ("error", (Result.FAIL,)),
        ("warning", (Result.WAIVED, Result.NOT_CONFIRMED, Result.NOT_JUDGED)),
    ):
        told = [judgement for judgement in worst_first(decision) if judgement.result in results]
        for judgement in told[:SHOWN]:
            title = workflow_property(name_of(judgement, lang))
            lines.append(
                f"::{command} title={title}::{workflow_message(chr(10).join(tell(decision, judgement, lang)))}"
            )
        if len(told) > SHOWN:
            rest = workflow_message(say(lang, "more_annotations", count=len(told) - SHOWN))
            lines.append(f"::{command} title=advisor::{rest}")
    summary = " ".join([headline(decision, lang), *_apart(decision, lang), next_step(decision, lang)]).strip()
    lines.append(f"::notice title={workflow_property(say(lang, 'title'))}::{workflow_message(summary)}")
    return "\n".join(lines) + "\n"
