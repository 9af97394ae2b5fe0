"""The public JSON form of a report (`reports/schemas/report.schema.json`) and back again.

Sorted keys, units beside the values, no NaN or Infinity. Fields beyond the contract are additions; their removal or a
change of meaning needs a new `SCHEMA_VERSION`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import metadata
from typing import Any

from advisor.basics.errors import UsageError
from advisor.conformity import require
from advisor.model import (
    RUN,
    Accounting,
    Check,
    Confidence,
    Direction,
    Evidence,
    Fact,
    Finding,
    MissingEvidence,
    Outcome,
    Parallelism,
    Problem,
    ProfileInfo,
    Remedy,
    Report,
    Role,
    Saving,
    Severity,
    Source,
    Subject,
    Summary,
    Text,
    Verify,
    WhatIf,
)

SCHEMA_VERSION = "1.1"


def tool_version() -> str:
    """Version of the installed package; "0" in a checkout that is not installed."""
    try:
        return metadata.version("advisor")
    except metadata.PackageNotFoundError:
        return "0"


def report_to_json(report: Report, *, facts: str = "compared") -> dict[str, Any]:
    """Plain dictionaries and lists of the contract; numbers that are not finite become null."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "advisor", "version": tool_version()},
        "profile": _profile(report.profile),
        "summary": {
            "direction": report.summary.direction,
            "headline": _text(report.summary.headline),
            "step_time_us": report.summary.step_time_us,
            "breakdown": dict(report.summary.breakdown),
        },
        "findings": [_finding(finding) for finding in report.findings],
        "checked": [
            {
                "rule": check.rule,
                "outcome": check.outcome.value,
                "missing": list(check.missing),
                "reason": check.reason,
                "title": None if check.title is None else _text(check.title),
            }
            for check in report.checked
        ],
        "missing_evidence": [
            {"evidence": missing.evidence, "setting": missing.setting, "rules": list(missing.rules)}
            for missing in report.missing_evidence
        ],
        "problems": [{"file": problem.file, "problem": problem.problem} for problem in report.problems],
        "facts": [_fact(fact) for fact in _kept(report, facts)],
        "engine": report.engine,
        "charts": report.charts,
        "whatif": None if report.whatif is None else asdict(report.whatif),
        "accounting": None if report.accounting is None else asdict(report.accounting),
    }
    return _plain(document)


def _kept(report: Report, which: str) -> list[Fact]:
    facts = report.facts
    if which == "all":
        return list(facts)
    names: frozenset[str] = frozenset()
    if which == "compared":
        from advisor.knowledge.comparison import compared_facts

        names = compared_facts() | report.promised
    return [fact for fact in facts if fact.name in names or (fact.subject == RUN and which != "none")]


def _plain(value: Any) -> Any:
    """JSON's own types only: tuples as lists, keys as texts, nothing infinite, no half characters."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return _plain(str(value))


def _text(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _subject(subject: Subject) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "ranks": list(subject.ranks)}


def _source(source: Source) -> dict[str, Any]:
    return {"file": source.file, "columns": list(source.columns), "steps": list(source.steps)}


def _profile(profile: ProfileInfo) -> dict[str, Any]:
    parallelism = profile.parallelism
    return {
        "path": profile.path,
        "framework": profile.framework,
        "layout": profile.layout,
        "ranks": list(profile.ranks),
        "world_size": profile.world_size,
        "steps": list(profile.steps),
        "excluded_steps": [{"step": step, "reason": reason} for step, reason in profile.excluded_steps],
        "parallelism": {
            "data": parallelism.data,
            "tensor": parallelism.tensor,
            "pipeline": parallelism.pipeline,
            "expert": parallelism.expert,
            "source": parallelism.source,
        },
        "devices": list(profile.devices),
        "versions": dict(profile.versions),
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "name": fact.name,
        "subject": _subject(fact.subject),
        "value": fact.value,
        "samples": fact.samples,
        "sources": [_source(source) for source in fact.sources],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "fact": evidence.fact,
        "value": evidence.value,
        "unit": evidence.unit,
        "condition": evidence.condition,
        "subject": _subject(evidence.subject),
        "source": None if evidence.source is None else _source(evidence.source),
    }


def _saving(saving: Saving) -> dict[str, Any]:
    return {
        "us_per_step": saving.us_per_step,
        "share_of_step": saving.share_of_step,
        "basis": saving.basis.en,
        "basis_zh": saving.basis.zh,
        "range_us": saving.range_us,
        "after_others_us": saving.after_others_us,
        "us_of_recording": saving.us_of_recording,
        "removes": saving.removes,
        "kind": saving.kind,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "id": remedy.id,
        "title": _text(remedy.title),
        "action": _text(remedy.action),
        "parameter": remedy.parameter,
        "current": remedy.current,
        "proposed": remedy.proposed,
        "snippet": remedy.snippet,
        "verify": None if remedy.verify is None else {"fact": remedy.verify.fact, "expect": remedy.verify.expect},
        "effort": remedy.effort,
        "brings_evidence": remedy.brings_evidence,
        "risk": None if remedy.risk is None else remedy.risk.en,
        "risk_zh": None if remedy.risk is None else remedy.risk.zh,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "rule": finding.rule,
        "verdict": finding.verdict,
        "direction": finding.direction.value,
        "role": finding.role.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "subject": _subject(finding.subject),
        "title": _text(finding.title),
        "message": _text(finding.message),
        "evidence": [_evidence(evidence) for evidence in finding.evidence],
        "because": list(finding.because),
        "explains": list(finding.explains),
        "saving": None if finding.saving is None else _saving(finding.saving),
        "at_stake": None if finding.at_stake is None else _saving(finding.at_stake),
        "remedies": [_remedy(remedy) for remedy in finding.remedies],
        "statements": list(finding.statements),
        "references": [dict(reference) for reference in finding.references],
        "doubts": [_text(doubt) for doubt in finding.doubts],
        "status": finding.status,
    }


def report_from_json(document: str | bytes | Mapping[str, Any]) -> Report:
    """The report a JSON text (or its parsed form) describes; unknown fields are passed over.

    Raises UsageError where the text is not a report of this `schema_version`.
    """
    try:
        data = document if isinstance(document, Mapping) else json.loads(document)
        version = str(data["schema_version"])
        if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
            raise UsageError(f"report of schema version {version}", hint=f"this advisor reads {SCHEMA_VERSION}")
        report = _read_report(data)
        require(report, Report, "report")
        return report
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise UsageError(
            f"not a report of the advisor ({type(error).__name__}: {error})",
            hint="write one with: advisor advise PROFILE --format json:report.json",
        ) from error


def _read_report(data: Mapping[str, Any]) -> Report:
    profile, summary = data["profile"], data["summary"]
    return Report(
        profile=ProfileInfo(
            path=profile["path"],
            framework=profile["framework"],
            layout=profile["layout"],
            ranks=tuple(profile["ranks"]),
            world_size=profile.get("world_size"),
            steps=tuple(profile["steps"]),
            excluded_steps=tuple((entry["step"], entry["reason"]) for entry in profile.get("excluded_steps", ())),
            parallelism=_read_parallelism(profile.get("parallelism") or {}),
            devices=tuple(profile.get("devices", ())),
            versions=dict(profile.get("versions", {})),
        ),
        summary=Summary(
            direction=summary["direction"],
            headline=_read_text(summary["headline"]),
            step_time_us=summary.get("step_time_us"),
            breakdown=dict(summary.get("breakdown", {})),
        ),
        findings=tuple(map(_read_finding, data["findings"])),
        checked=tuple(
            Check(
                check["rule"],
                Outcome(check["outcome"]),
                tuple(check.get("missing", ())),
                check.get("reason", ""),
                None if check.get("title") is None else _read_text(check["title"]),
            )
            for check in data["checked"]
        ),
        missing_evidence=tuple(
            MissingEvidence(missing["evidence"], missing["setting"], tuple(missing["rules"]))
            for missing in data.get("missing_evidence", ())
        ),
        problems=tuple(Problem(problem["file"], problem["problem"]) for problem in data.get("problems", ())),
        facts=tuple(
            Fact(
                fact["name"],
                _read_subject(fact["subject"]),
                _read_value(fact["value"]),
                fact.get("samples", 1),
                tuple(map(_read_source, fact.get("sources", ()))),
            )
            for fact in data.get("facts", ())
        ),
        engine=data.get("engine", ""),
        charts=dict(data.get("charts", {})),
        whatif=_read_whatif(data.get("whatif")),
        accounting=_read_accounting(data.get("accounting")),
        promised=frozenset(fact["name"] for fact in data.get("facts", ())),
    )


def _read_parallelism(data: Mapping[str, Any]) -> Parallelism:
    return Parallelism(
        data.get("data"), data.get("tensor"), data.get("pipeline"), data.get("expert"), data.get("source", "unknown")
    )


def _read_text(data: Mapping[str, str]) -> Text:
    return Text(data["en"], data["zh"])


def _read_subject(data: Mapping[str, Any] | None) -> Subject:
    return RUN if data is None else Subject(data["kind"], data["id"], tuple(data.get("ranks", ())))


def _read_source(data: Mapping[str, Any]) -> Source:
    return Source(data["file"], tuple(data.get("columns", ())), tuple(data.get("steps", ())))


def _read_value(value: Any) -> Any:
    return tuple(map(_read_value, value)) if isinstance(value, list) else value


def _read_saving(data: Mapping[str, Any]) -> Saving:
    basis = data["basis"]
    between = data.get("range_us")
    return Saving(
        data["us_per_step"],
        data.get("share_of_step"),
        Text(basis, data.get("basis_zh", basis)),
        None if between is None else tuple(between),
        data.get("after_others_us"),
        data.get("us_of_recording"),
        data.get("removes", ""),
        data.get("kind", "estimate"),
    )


def _read_whatif(data: Mapping[str, Any] | None) -> WhatIf | None:
    return None if data is None else WhatIf(tuple(data["causes"]), data["step_time_us"], data.get("shares", {}))


def _read_accounting(data: Mapping[str, Any] | None) -> Accounting | None:
    return None if data is None else Accounting(**{own.name: data[own.name] for own in fields(Accounting)})


def _read_evidence(data: Mapping[str, Any]) -> Evidence:
    source = data.get("source")
    return Evidence(
        data["fact"],
        _read_value(data["value"]),
        data["unit"],
        data.get("condition", ""),
        _read_subject(data.get("subject")),
        None if source is None else _read_source(source),
    )


def _read_remedy(data: Mapping[str, Any]) -> Remedy:
    verify, risk = data.get("verify"), data.get("risk")
    plain = {"en": data["id"], "zh": data["id"]}
    return Remedy(
        id=data["id"],
        title=_read_text(data.get("title", plain)),
        action=_read_text(data.get("action", plain)),
        parameter=data.get("parameter"),
        current=_read_value(data.get("current")),
        proposed=_read_value(data.get("proposed")),
        snippet=data.get("snippet", ""),
        verify=None if verify is None else Verify(verify["fact"], verify["expect"]),
        effort=data.get("effort", ""),
        risk=None if risk is None else Text(risk, data.get("risk_zh", risk)),
        brings_evidence=bool(data.get("brings_evidence", False)),
    )


def _read_finding(data: Mapping[str, Any]) -> Finding:
    saving, at_stake = data.get("saving"), data.get("at_stake")
    return Finding(
        id=data["id"],
        rule=data["rule"],
        verdict=data["verdict"],
        direction=Direction(data["direction"]),
        role=Role(data["role"]),
        severity=Severity(data["severity"]),
        confidence=Confidence(data["confidence"]),
        subject=_read_subject(data["subject"]),
        title=_read_text(data["title"]),
        message=_read_text(data["message"]),
        evidence=tuple(map(_read_evidence, data.get("evidence", ()))),
        because=tuple(data.get("because", ())),
        explains=tuple(data.get("explains", ())),
        saving=None if saving is None else _read_saving(saving),
        at_stake=None if at_stake is None else _read_saving(at_stake),
        remedies=tuple(map(_read_remedy, data.get("remedies", ()))),
        statements=tuple(data.get("statements", ())),
        references=tuple(dict(reference) for reference in data.get("references", ())),
        doubts=tuple(map(_read_text, data.get("doubts", ()))),
        status=data.get("status", "stable"),
    )
