"""JUnit XML: one test case per rule, failed where it found something, skipped where it could not judge."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from xml.etree import ElementTree

from advisor.knowledge.fact_titles import titles_of
from advisor.knowledge.messages import translated
from advisor.model import Check, Finding, Outcome, Report
from advisor.render.conditions import titled
from advisor.render.escaping import printable, xml
from advisor.render.wording import change, check, gain, promise, where, word


def render_junit(report: Report, lang: str = "en", **_: Any) -> str:
    """The report as JUnit XML. A rule that found something fails its case whatever the exit status is."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        found[finding.rule].append(finding)
    outcomes = {item.rule: item for item in report.checked}
    rules = [*outcomes, *(rule for rule in found if rule not in outcomes)]
    suite = ElementTree.Element("testsuite", name="advisor")
    for rule in rules:
        item = outcomes.get(rule, Check(rule, Outcome.FAIL))
        case = ElementTree.SubElement(suite, "testcase", classname=_class(found[rule]), name=printable(rule), time="0")
        _fill(case, item, found[rule], lang)
    counts = {
        "tests": len(rules),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", "0")
    output = ElementTree.SubElement(suite, "system-out")
    output.text = xml(f"{report.summary.headline.get(lang)}\n{report.profile.path}")
    if report.problems:
        errors = ElementTree.SubElement(suite, "system-err")
        errors.text = xml(
            "\n".join(f"{file}: {translated(p.problem, lang)}" for p in report.problems for file in (p.file, *p.also))
        )
    totals = {key: str(count) for key, count in counts.items() if key != "skipped"}  # Jenkins' schema has none there
    suites = ElementTree.Element("testsuites", {"name": "advisor", **totals})
    suites.append(suite)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _class(findings: list[Finding]) -> str:
    return f"advisor.{findings[0].direction.value}" if findings else "advisor"


def _fill(case: ElementTree.Element, item: Check, findings: list[Finding], lang: str) -> None:
    if findings:
        worst = max(findings, key=lambda finding: finding.severity.rank)
        failure = ElementTree.SubElement(
            case, "failure", type=printable(worst.verdict), message=printable(worst.title.get(lang))
        )
        failure.text = xml("\n\n".join(_describe(finding, lang) for finding in findings))
    elif item.outcome is Outcome.ERROR:
        ElementTree.SubElement(case, "error", type="rule", message=printable(item.reason))
    elif item.outcome in (Outcome.NO_DATA, Outcome.NOT_APPLICABLE):
        reason = item.reason or titles_of(item.missing, lang)
        words = word(lang, f"outcomes.{item.outcome.value}")
        ElementTree.SubElement(case, "skipped", message=printable(f"{words}: {reason}" if reason else words))
    elif item.outcome is Outcome.FAIL:  # no finding of its own, and yet nothing that passed
        ElementTree.SubElement(case, "skipped", message=word(lang, "report.told_elsewhere"))


def _describe(finding: Finding, lang: str) -> str:
    severity = word(lang, f"severities.{finding.severity.value}")
    lines = [f"[{severity}] {where(finding.subject, lang)}: {finding.message.get(lang)}"]
    lines += [f"  {titled(evidence, finding.evidence, lang)}" for evidence in finding.evidence]
    if (told := finding.saving or finding.at_stake) is not None:
        lines.append(f"  {promise(finding, lang)} {gain(told, lang)}")
    for remedy in finding.remedies:
        lines.append(f"  -> {remedy.action.get(lang)} {change(remedy)}".rstrip())
        if check(remedy, lang):
            lines.append(f"     {word(lang, 'report.verify')}: {check(remedy, lang)}")
    return "\n".join(printable(line) for line in lines)
