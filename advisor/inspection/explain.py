"""`advisor explain`: a rule, its thresholds and their origin; with a profile, every clause with the value it saw, the
file and column that was read in, and the finding that came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.jsonout import shield_json
from advisor.basics.suggest import suggest
from advisor.basics.units import EXACT, MEASURED, show
from advisor.engine.judge import judge
from advisor.facts.base import FactKind, Measured
from advisor.facts.registry import catalogue
from advisor.knowledge.fact_titles import fact_title, titles_of
from advisor.knowledge.statements import cited
from advisor.knowledge.values import say_value
from advisor.knowledge.words import word
from advisor.model import COLLECTION, LANGUAGES, RUN, Check, Finding, Report, Subject
from advisor.pipeline import measure
from advisor.render.wording import aside
from advisor.ruleset.files.loader import RuleSet
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.evaluate import Scope, readiness
from advisor.ruleset.truth.trace import Clause, trace

SUBJECTS_SHOWN = 6
"""Of more subjects than this, those about which the rule fired come first and the rest is a number."""


def explain(name: str, profile: Sequence[str], rules: RuleSet, form: str, lang: str) -> str:
    """The explanation of a rule, or with a profile of one of its findings (F1), as text or JSON. Raises UsageError for
    what does not exist."""
    measured = measure(list(profile), rules.uses_facts()) if profile else None
    report = judge(measured, rules) if measured is not None else None
    finding = next((f for f in report.findings if f.id == name.upper()), None) if report is not None else None
    rule = _find(name if finding is None else finding.rule, rules)
    told: dict[str, Any] = {"rule": _describe(rule)}
    if measured is not None and report is not None:
        told["profile"] = _judged(rule, measured, report, finding)
    if form == "json":
        return shield_json(json.dumps(told, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)) + "\n"
    return "\n".join(_text(told, lang)) + "\n"


def _find(name: str, rules: RuleSet) -> Rule:
    by_name = {rule.id.lower(): rule for rule in rules.rules}
    verdicts = {rule.verdict: rule for rule in reversed(rules.rules)}
    found = by_name.get(name.lower()) or verdicts.get(name)
    if found is None:
        near = suggest(name.lower(), [*by_name, *verdicts])
        hint = (
            f"did you mean {by_name[near[0]].id if near[0] in by_name else near[0]}?"
            if near
            else "`advisor rules list` names all rules"
        )
        raise UsageError(f"there is no rule {name!r}", hint=hint)
    return found


def _describe(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "title": {"en": rule.title.en, "zh": rule.title.zh},
        "verdict": rule.verdict,
        "direction": rule.direction.value,
        "kind": rule.kind,
        "status": rule.status,
        "for": rule.subject_kind,
        "params": {
            key: {
                "value": _plain(p.value),
                "unit": p.unit,
                "origin": p.origin.en,
                "origin_zh": p.origin.zh,
                "overridden": p.overridden,
            }
            for key, p in rule.params.items()
        },
        "statements": list(rule.statements),
        "references": [dict(reference) for reference in rule.references],
        "explains": [{"verdict": e.verdict, "on": e.on, "apart": e.apart, "but": list(e.but)} for e in rule.explains],
        "remedies": [use.id for use in rule.remedies],
        "false_positives": [trap.en for trap in rule.false_positives],
        "false_positives_zh": [trap.zh for trap in rule.false_positives],
        "file": str(rule.path),
    }


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _judged(rule: Rule, measured: Measured, report: Report, only: Finding | None) -> dict[str, Any]:
    """Outcome and clauses; the whole rule set was judged, because a rule may build on the verdicts of others. Only of
    the subjects of this finding, where it is asked for."""
    kinds = catalogue()
    check = next((c for c in report.checked if c.rule == rule.id), None)
    subjects = {"run": [RUN], "collection": [COLLECTION]}.get(rule.subject_kind)
    subjects = measured.facts.subjects(rule.subject_kind) if subjects is None else subjects
    if only is not None:
        subjects = [subject for subject in subjects if _is_about(only, subject)]
    told = [_subject(rule, subject, measured, kinds, report.findings) for subject in subjects]
    return {
        "path": measured.info.path,
        "outcome": check.outcome.value if check else "error",
        "missing": list(check.missing) if check else [],
        "reason": _reason(check),
        "subjects": sorted(told, key=lambda each: not each["fired"]),
    }


def _is_about(finding: Finding, subject: Subject) -> bool:
    """Whether the finding tells of this subject, alone or with others: what many ranks have in common is one."""
    if finding.subject.kind == subject.kind and finding.subject.id == subject.id:
        return True
    return bool(subject.ranks) and set(subject.ranks) <= set(finding.subject.ranks)


def _reason(check: Check | None) -> str:
    return check.reason if check else ""


def _subject(
    rule: Rule,
    subject: Subject,
    measured: Measured,
    kinds: Mapping[str, FactKind],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    scope = Scope(rule, subject, measured.facts, kinds)
    own = next((f for f in findings if f.rule == rule.id and _is_about(f, subject)), None)
    ready = readiness(rule, subject, measured.facts, kinds).state == "ready"
    fired = own is not None or (ready and scope.truth(rule.when, findings) is True)
    finding = own or (next((f for f in findings if f.verdict == rule.verdict and _is_about(f, subject)), None))
    return {
        "subject": str(subject),
        "fired": fired,
        "finding": None if finding is None or not fired else _conclusion(finding),
        "clauses": [_clause(clause) for clause in trace(scope, findings)],
    }


def _conclusion(finding: Finding) -> dict[str, Any]:
    """The finding that a subject stands in: of this rule, or of the one that says the same about it with more."""
    return {
        "id": finding.id, "rule": finding.rule, "role": finding.role.value, "severity": finding.severity.value,
        "confidence": finding.confidence.value, "because": list(finding.because), "explains": list(finding.explains),
        "message": {"en": finding.message.en, "zh": finding.message.zh},
        "doubts": [{"en": doubt.en, "zh": doubt.zh} for doubt in finding.doubts],
    }  # fmt: skip


def _clause(clause: Clause) -> dict[str, Any]:
    return {
        "part": clause.part,
        "text": clause.text,
        "truth": clause.truth,
        "threshold": clause.threshold,
        "observed": [
            {
                "fact": e.fact,
                "value": _plain(e.value),
                "unit": e.unit,
                "subject": str(e.subject),
                "sources": [
                    {"file": source.file, "columns": list(source.columns)}
                    for source in (e.source, *e.more_sources)
                    if source is not None and source.file
                ],
            }
            for e in clause.observed
        ],
    }


def _text(told: Mapping[str, Any], lang: str) -> list[str]:
    rule, say = told["rule"], partial(word, lang)
    judges = say(
        "explain.judges", verdict=rule["verdict"], direction=say(f"directions.{rule['direction']}").lower(),
        kind=say(f"rule_kinds.{rule['kind']}"), subject=say(f"kinds.{rule['for']}"),
    )  # fmt: skip
    ending = "" if lang == LANGUAGES[0] else f"_{lang}"
    lines = [f"{rule['id']}  {rule['title'][lang]}", f"  {judges}", f"  {rule['file']}"]
    if rule["params"]:
        lines.append("  " + say("explain.thresholds"))
        for name, p in rule["params"].items():
            key = "explain.threshold_overridden" if p["overridden"] else "explain.threshold"
            value = show(p["value"], p["unit"], EXACT)
            lines.append("    " + say(key, name=name, value=value, by=p["overridden"], origin=p[f"origin{ending}"]))
    for reference in rule["references"]:
        names = [name.get(lang) for name in cited(reference)]
        lines.append("  " + say("explain.document", reference=", ".join(filter(None, names))))
    if rule["statements"]:
        lines.append("  " + say("explain.statements", names=", ".join(rule["statements"])))
    if rule["false_positives"]:
        lines.append("  " + say("explain.traps", traps=say("report.semicolon").join(rule[f"false_positives{ending}"])))
    if "profile" in told:
        lines += _profile_lines(told["profile"], lang)
    return lines


def _profile_lines(profile: Mapping[str, Any], lang: str) -> list[str]:
    say = partial(word, lang)
    lines = ["", say("explain.outcome", path=profile["path"], outcome=say(f"outcomes.{profile['outcome']}"))]
    if profile["missing"]:
        lines.append("  " + say("explain.not_measured", facts=titles_of(profile["missing"], lang)))
    if profile["reason"]:
        lines.append(f"  {profile['reason']}")
    for subject in profile["subjects"][:SUBJECTS_SHOWN]:
        lines.append("  " + say(f"explain.{'fired' if subject['fired'] else 'silent'}", subject=subject["subject"]))
        for clause in subject["clauses"]:
            seen = say("report.semicolon").join(_seen(o, lang) for o in clause["observed"][:4])
            truth = "unknown" if clause["truth"] is None else str(clause["truth"]).lower()
            line = f"    {say(f'explain.clause_{truth}'):8}{clause['part']}: {clause['text']}"
            lines.append(line + (f"   [{seen}]" if seen else ""))
        if subject["fired"]:
            lines += _trail(subject, lang)
    if len(profile["subjects"]) > SUBJECTS_SHOWN:
        lines.append("  " + say("explain.more_subjects", count=len(profile["subjects"]) - SUBJECTS_SHOWN))
    return lines


def _trail(subject: Mapping[str, Any], lang: str) -> list[str]:
    """Where each value was read, and what was concluded of them."""
    say = partial(word, lang)
    read: dict[str, None] = {}
    for observed in (o for clause in subject["clauses"] for o in clause["observed"] if o["sources"]):
        files = say("report.separator").join(
            source["file"] + (aside(", ".join(source["columns"]), lang) if source["columns"] else "")
            for source in observed["sources"]
        )
        read[say("explain.read_in", fact=fact_title(observed["fact"], lang), files=files)] = None
    lines = [f"    {line}" for line in read]
    if (finding := subject["finding"]) is not None:
        names = say("report.separator").join(finding["because"] or finding["explains"])
        relation = ("because" if finding["because"] else "accounts") if names else "alone"
        lines.append(
            "    " + say(
                f"explain.{relation}", id=finding["id"], rule=finding["rule"], names=names,
                role=say(f"roles.{finding['role']}"), severity=say(f"severities.{finding['severity']}"),
                confidence=say(f"confidences.{finding['confidence']}"),
            )
        )  # fmt: skip
        lines.append(f"      {finding['message'][lang]}")
        lines += [f"      ? {doubt[lang]}" for doubt in finding["doubts"]]
    return lines


def _seen(observed: Mapping[str, Any], lang: str) -> str:
    """ "idle share of the step: 30 %"."""
    value = tuple(observed["value"]) if isinstance(observed["value"], list) else observed["value"]
    text = say_value(value, observed["unit"], lang, observed["fact"], MEASURED)
    return word(lang, "conditions.titled", title=fact_title(observed["fact"], lang), line=text)
