"""The decision for services: SARIF 2.1.0, JUnit XML, GitHub workflow commands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from advisor.exchange import tool_version
from advisor.gate.model import Decision, Judgement, Result, Verdict
from advisor.knowledge.messages import translated
from advisor.knowledge.words import both
from advisor.model import Severity
from advisor.render.decision.phrases import (
    NOT_GATED,
    about,
    causes,
    details,
    difference,
    extent,
    headline,
    name_of,
    next_step,
    notes,
    reason,
    say,
    unsteady,
)  # fmt: skip
from advisor.render.escaping import markdown, printable, shorten, workflow_message, workflow_property
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
    lines = [about(name_of(judgement, lang), reason(judgement, lang), lang)]
    if judgement.finding is not None:
        lines += details(judgement.finding, lang)
    elif judgement.kind == "metric" and judgement.result is Result.FAIL:
        lines += [line for _, line in causes(decision, lang)]
    return [printable(line) for line in lines]


def render_sarif(decision: Decision, lang: str = "en", **_: Any) -> str:
    """One result per judgement, and one for a gate that could not tell; waived ones carry an accepted suppression with
    the waiver's reason."""
    ordered = worst_first(decision)
    undecided = decision.verdict is Verdict.INCONCLUSIVE
    rules = sorted({*(rule_of(judgement) for judgement in ordered), *([_UNDECIDED] if undecided else [])})
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
        "results": [
            *([_open_result(decision, rules, lang)] if undecided else []),
            *(_result(decision, judgement, rules, lang) for judgement in ordered),
        ],
        "invocations": [
            {
                "executionSuccessful": not undecided,
                "toolExecutionNotifications": [
                    {"message": {"text": printable(text)}, "level": "note"} for text in _besides(decision, lang)
                ],
            }
        ],
        "properties": {"verdict": decision.verdict.value, "headline": printable(headline(decision, lang))},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


_UNDECIDED = "gate/undecided"


def _open_result(decision: Decision, rules: list[str], lang: str) -> dict[str, Any]:
    lines = [printable(line) for line in (headline(decision, lang), *_besides(decision, lang)) if line]
    return {
        "ruleId": _UNDECIDED,
        "ruleIndex": rules.index(_UNDECIDED),
        "level": "none",
        "kind": "open",
        "message": {"text": "\n".join(lines), "markdown": "\n\n".join(map(markdown, lines))},
        "locations": [_location(decision, "gate", "gate")],
        "partialFingerprints": {"advisorGate/v1": hashlib.sha256(_UNDECIDED.encode()).hexdigest()},
    }


def _location(decision: Decision, kind: str, name: str) -> dict[str, Any]:
    """The profile, as services want a file: the first run, or the first that was named."""
    paths = [*(run.info.path for run in decision.runs[:1]), *decision.asked[:1]]
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri(paths[0] if paths else "profile")},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"name": name, "fullyQualifiedName": f"{kind}:{name}"}],
    }


def _besides(decision: Decision, lang: str) -> list[str]:
    """What stands beside the judgements: differences, unsteady runs, unreadable ones, notes."""
    return [
        *(difference(item, lang) for item in decision.differences),
        *(unsteady(item, lang) for item in decision.unsteady),
        *(about(p.file, translated(p.problem, lang), lang) for p in (*decision.unreadable, *decision.problems)),
        *notes(decision, lang),
    ]


def _rule(rule: str, judgements: list[Judgement], lang: str) -> dict[str, Any]:
    title = next((judgement.title for judgement in judgements if rule_of(judgement) == rule), both("gate.title"))
    return {"id": printable(rule), "shortDescription": {"text": printable(title.get(lang)) or printable(rule)}}


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
        "locations": [_location(decision, judgement.kind, name)],
        "partialFingerprints": {"advisorGate/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
    }
    if judgement.result is Result.WAIVED and judgement.waiver is not None:
        entry["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": printable(judgement.waiver.reason)}
        ]
    return entry


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
                error.text = _lines([*_besides(decision, lang), next_step(decision, lang)])
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
    output.text = _lines([headline(decision, lang), extent(decision, lang), *_besides(decision, lang)])
    totals = {key: str(count) for key, count in counts.items() if key != "skipped"}  # Jenkins' schema has none there
    suites = ElementTree.Element("testsuites", {"name": "advisor", **totals})
    suites.append(suite)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def render_github(decision: Decision, lang: str = "en", **_: Any) -> str:
    """Errors for what failed, warnings for what is waived, unconfirmed or open, notices for new findings that are not
    gated and for the verdict."""
    lines = []
    shown = (Result.WAIVED, Result.NOT_CONFIRMED, Result.NOT_JUDGED)
    commands: tuple[tuple[str, Callable[[Judgement], bool]], ...] = (
        ("error", lambda j: j.result is Result.FAIL),
        ("warning", lambda j: j.result in shown),
        ("notice", lambda j: j.reason in NOT_GATED),
    )
    for command, wanted in commands:
        told = [judgement for judgement in worst_first(decision) if wanted(judgement)]
        for judgement in told[:SHOWN]:
            title = workflow_property(name_of(judgement, lang))
            lines.append(
                f"::{command} title={title}::{workflow_message(chr(10).join(tell(decision, judgement, lang)))}"
            )
        if len(told) > SHOWN:
            rest = workflow_message(say(lang, "more_annotations", count=len(told) - SHOWN))
            lines.append(f"::{command} title=advisor::{rest}")
    for problem in decision.unreadable[:SHOWN]:
        title = workflow_property(shorten(problem.file, 100))
        lines.append(f"::warning title={title}::{workflow_message(translated(problem.problem, lang))}")
    apart = [difference(item, lang) for item in decision.differences]
    summary = " ".join([headline(decision, lang), *apart, next_step(decision, lang)]).strip()
    command = "warning" if decision.verdict is Verdict.INCONCLUSIVE else "notice"
    lines.append(f"::{command} title={workflow_property(say(lang, 'title'))}::{workflow_message(summary)}")
    return "\n".join(lines) + "\n"
