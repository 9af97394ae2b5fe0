"""`advisor explain`: a rule, its thresholds and their origin; with a profile, every clause with the value it saw."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.jsonout import shield_json
from advisor.basics.suggest import suggest
from advisor.basics.units import EXACT, MEASURED, show
from advisor.facts.base import FactKind, Measured
from advisor.facts.registry import catalogue
from advisor.knowledge.fact_titles import fact_title, titles_of
from advisor.knowledge.statements import cited
from advisor.knowledge.values import say_value
from advisor.knowledge.words import word
from advisor.model import COLLECTION, LANGUAGES, RUN, Check, Finding, Subject
from advisor.pipeline import measure
from advisor.ruleset.files.loader import RuleSet
from advisor.ruleset.rule import Rule
from advisor.ruleset.truth.evaluate import Scope
from advisor.ruleset.truth.trace import Clause, trace

SUBJECTS_SHOWN = 6
"""Of more subjects than this, those about which the rule fired come first and the rest is a number."""


def explain(name: str, profile: Sequence[str], rules: RuleSet, form: str, lang: str) -> str:
    """The explanation as text or JSON. Raises UsageError for a rule that does not exist."""
    rule = _find(name, rules)
    told: dict[str, Any] = {"rule": _describe(rule)}
    if profile:
        told["profile"] = _judged(rule, measure(list(profile), rules.uses_facts()), rules)
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
        "explains": [{"verdict": e.verdict, "on": e.on} for e in rule.explains],
        "remedies": [use.id for use in rule.remedies],
        "false_positives": [trap.en for trap in rule.false_positives],
        "false_positives_zh": [trap.zh for trap in rule.false_positives],
        "file": str(rule.path),
    }


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _judged(rule: Rule, measured: Measured, rules: RuleSet) -> dict[str, Any]:
    """Outcome and clauses; the whole rule set is judged, because a rule may build on the verdicts of others."""
    from advisor.engine.judge import decide

    kinds = catalogue()
    verdicts = decide(rules, measured.facts)
    check = next((c for c in verdicts.checks if c.rule == rule.id), None)
    fired = {f.subject for f in verdicts.findings if f.rule == rule.id}
    subjects = {"run": [RUN], "collection": [COLLECTION]}.get(rule.subject_kind)
    subjects = measured.facts.subjects(rule.subject_kind) if subjects is None else subjects
    ordered = sorted(subjects, key=lambda s: (s not in fired, s))
    return {
        "path": measured.info.path,
        "outcome": check.outcome.value if check else "error",
        "missing": list(check.missing) if check else [],
        "reason": _reason(check),
        "subjects": [_subject(rule, s, s in fired, measured, kinds, verdicts.findings) for s in ordered],
    }


def _reason(check: Check | None) -> str:
    return check.reason if check else ""


def _subject(
    rule: Rule,
    subject: Subject,
    fired: bool,
    measured: Measured,
    kinds: Mapping[str, FactKind],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    scope = Scope(rule, subject, measured.facts, kinds)
    return {
        "subject": str(subject),
        "fired": fired,
        "clauses": [_clause(clause) for clause in trace(scope, findings)],
    }


def _clause(clause: Clause) -> dict[str, Any]:
    return {
        "part": clause.part,
        "text": clause.text,
        "truth": clause.truth,
        "threshold": clause.threshold,
        "observed": [
            {"fact": e.fact, "value": _plain(e.value), "unit": e.unit, "subject": str(e.subject)}
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
    if len(profile["subjects"]) > SUBJECTS_SHOWN:
        lines.append("  " + say("explain.more_subjects", count=len(profile["subjects"]) - SUBJECTS_SHOWN))
    return lines


def _seen(observed: Mapping[str, Any], lang: str) -> str:
    """ "idle share of the step: 30 %"."""
    value = tuple(observed["value"]) if isinstance(observed["value"], list) else observed["value"]
    text = say_value(value, observed["unit"], lang, observed["fact"], MEASURED)
    return word(lang, "conditions.titled", title=fact_title(observed["fact"], lang), line=text)
