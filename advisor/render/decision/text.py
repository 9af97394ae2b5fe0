"""The decision for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from advisor.compare.changes import Change
from advisor.exchange import tool_version
from advisor.gate.model import Decision, Judgement, Recorded, Result, Unsteady, Verdict
from advisor.gate.sample import Sample
from advisor.knowledge.messages import translated
from advisor.model import LANGUAGES
from advisor.render.decision.phrases import (
    about,
    amount,
    both_sides,
    cause,
    causes,
    change,
    details,
    difference,
    extent,
    headline,
    hindrances,
    limit,
    name_of,
    next_step,
    notes,
    outcome,
    reason,
    say,
    threshold,
    unsteady,
)  # fmt: skip
from advisor.render.escaping import printable, shorten
from advisor.render.wording import word

_Told = TypeVar("_Told")

SCHEMA_VERSION = "1.1"
_MARKS = {
    Result.PASS: "✓", Result.FAIL: "✗", Result.NOT_CONFIRMED: "~", Result.WAIVED: "~", Result.WATCHED: "·",
    Result.NOT_JUDGED: "?",
}  # fmt: skip
_ROWS = 40
_DETAILED = 5
_STYLES = {Result.PASS: "32", Result.FAIL: "1;31", Result.NOT_JUDGED: "33"}
_VERDICTS = {Verdict.PASS: "1;32", Verdict.FAIL: "1;31", Verdict.INCONCLUSIVE: "1;33", Verdict.RECORDED: "1;33"}


def render_text(decision: Decision, lang: str = "en", *, color: bool = False, **_: Any) -> str:
    """The decision for a terminal: verdict, what was judged, what accounts for it, what was not judged, what to do."""
    paint = (lambda text, style: f"\x1b[{style}m{text}\x1b[0m") if color else (lambda text, style: text)
    lines = [paint(printable(headline(decision, lang)), _VERDICTS[decision.verdict])]
    if decision.runs:
        lines.append(printable(extent(decision, lang)))
    judged = [j for j in decision.judgements if j.result is not Result.NOT_JUDGED]
    lines += ["", *_table(judged[:_ROWS], lang, paint)] if judged else []
    if len(judged) > _ROWS:
        lines.append(f"  {say(lang, 'shown_rows', count=len(judged) - _ROWS)}")
    accounts = "accounts" if decision.verdict is Verdict.FAIL else "shown_changes"
    for title, rows in (
        ("failed_findings", _failed(decision, lang)),
        ("differences", [difference(item, lang) for item in decision.differences]),
        (accounts, [f"{'  ' * indent}{line}" for indent, line in causes(decision, lang)]),
        ("not_judged", [f"? {_open(j, lang)}" for j in decision.of(Result.NOT_JUDGED)]),
        ("unsteady", [f"~ {unsteady(item, lang)}" for item in decision.unsteady[:3]]),
        ("notes", notes(decision, lang)),
        ("unreadable", [f"! {about(p.file, translated(p.problem, lang), lang)}" for p in decision.unreadable[:5]]),
        ("problems", [f"! {about(p.file, translated(p.problem, lang), lang)}" for p in decision.problems[:5]]),
    ):
        if rows:
            lines += ["", say(lang, title), *(f"  {printable(row)}" for row in rows)]
    step = next_step(decision, lang)
    if step:
        lines += ["", f"→ {printable(step)}"]
    return "\n".join(lines) + "\n"


def _open(judgement: Judgement, lang: str) -> str:
    return about(name_of(judgement, lang), reason(judgement, lang), lang)


def _failed(decision: Decision, lang: str) -> list[str]:
    """For findings that failed: evidence and first remedy."""
    rows: list[str] = []
    for judgement in [j for j in decision.of(Result.FAIL) if j.finding is not None][:_DETAILED]:
        assert judgement.finding is not None
        rows.append(name_of(judgement, lang))
        rows += [f"  {line}" for line in details(judgement.finding, lang)]
    return rows


def _table(judgements: Sequence[Judgement], lang: str, paint: Any) -> list[str]:
    rows = [_row(judgement, lang) for judgement in judgements]
    widths = [max((_width(row[column]) for row in rows), default=0) for column in range(3)]
    lines = []
    for judgement, row in zip(judgements, rows, strict=True):
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)]
        mark = paint(_MARKS[judgement.result], _STYLES.get(judgement.result, "0"))
        lines.append(f"  {mark} {'  '.join(cells)}  {row[3]}".rstrip())
    return lines


def _row(judgement: Judgement, lang: str) -> tuple[str, str, str, str]:
    found = judgement.comparison
    if found is not None:
        values = " → ".join(both_sides(found.before, found.after, judgement.unit))
        bound = say(lang, "aside", first=change(judgement), second=f"{say(lang, 'threshold')} {threshold(judgement)}")
        bound = change(judgement) if judgement.result is Result.WATCHED else bound
    elif judgement.kind == "budget":
        values, bound = amount(judgement.value, judgement.unit), limit(judgement)
    else:
        severity = judgement.finding.severity.value if judgement.finding is not None else ""
        values, bound = (word(lang, f"severities.{severity}") if severity else ""), ""
    name = shorten(printable(name_of(judgement, lang)), 60)
    return name, values, bound, printable(outcome(judgement, lang))


def _width(text: str) -> int:
    """Columns of a terminal that the text takes: Chinese characters take two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def render_json(decision: Decision, lang: str = "en", **_: Any) -> str:
    """The decision as JSON (`reports/schemas/gate.schema.json`)."""
    return json.dumps(to_json(decision), ensure_ascii=False, sort_keys=True, allow_nan=False, indent=2) + "\n"


def to_json(decision: Decision) -> dict[str, Any]:
    """Plain dictionaries; texts in both languages, amounts in the unit beside them."""

    def both(tell: Callable[[Decision, str], _Told]) -> dict[str, _Told]:
        return {lang: tell(decision, lang) for lang in LANGUAGES}

    def each(tell: Callable[[Decision, str], Sequence[str]]) -> list[dict[str, str]]:
        return [dict(zip(LANGUAGES, said, strict=True)) for said in zip(*both(tell).values(), strict=True)]

    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "advisor", "version": tool_version()},
        "verdict": decision.verdict.value,
        "headline": both(headline),
        "next": both(next_step),
        "baseline": decision.baseline,
        "key": dict(decision.runs[0].key) if decision.runs else {},
        "runs": [_run(sample) for sample in decision.runs],
        "confirming": [_run(sample) for sample in decision.confirming],
        "history": [_run(sample) for sample in decision.history],
        "recorded": None if decision.recorded is None else _recorded(decision.recorded),
        "differences": [
            {"field": item.field, "before": item.before, "after": item.after} for item in decision.differences
        ],
        "judgements": [_judgement(item) for item in decision.judgements],
        "changes": [_change(item) for item in decision.changes],
        "unsteady": [_unsteady(item) for item in decision.unsteady],
        "hindrances": each(hindrances),
        "notes": each(notes),
        "unreadable": [{"file": item.file, "problem": item.problem} for item in decision.unreadable],
        "problems": [{"file": item.file, "problem": item.problem} for item in decision.problems],
    }


def _recorded(item: Recorded) -> dict[str, Any]:
    return {"runs": [run.id for run in item.runs], "total": item.total, "needed": item.needed}


def _change(item: Change) -> dict[str, Any]:
    return {
        "role": item.role.value,
        "rest": item.rest,
        "part": item.part,
        "fact": item.fact,
        "subject": {"kind": item.subject.kind, "id": item.subject.id, "ranks": list(item.subject.ranks)},
        "before_us": item.before,
        "after_us": item.after,
        "share_of_change": item.share,
        "text": {lang: cause(item, lang) for lang in LANGUAGES},
    }


def _unsteady(item: Unsteady) -> dict[str, Any]:
    return {
        "run": item.run, "metric": item.metric, "unit": item.unit, "value": item.value, "others": item.others,
        "text": {lang: unsteady(item, lang) for lang in LANGUAGES},
    }  # fmt: skip


def _run(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id, "added": sample.added or None, "step_time_us": sample.summary.step_time_us,
        "metadata": dict(sample.metadata),
    }  # fmt: skip


def _judgement(item: Judgement) -> dict[str, Any]:
    found = item.comparison
    entry: dict[str, Any] = {
        "kind": item.kind,
        "name": item.name,
        "result": item.result.value,
        "reason": item.reason,
        "text": {lang: reason(item, lang) for lang in LANGUAGES},
        "unit": item.unit,
        "value": item.value,
        "comparison": None,
        "budget": None,
        "finding": None,
        "waiver": None,
    }
    if found is not None:
        entry["comparison"] = {
            "before": found.before, "after": found.after, "worsening": found.worsening, "threshold": found.threshold,
            "sigma": found.sigma, "effect": found.effect, "runs": found.runs, "history_runs": found.history_runs,
            "confirmed": found.confirmed, "relative": found.change,
        }  # fmt: skip
    if item.kind == "budget":
        entry["budget"] = {"limit": item.limit, "at_most": item.at_most}
    if item.finding is not None:
        finding = item.finding
        entry["finding"] = {
            "rule": finding.rule, "verdict": finding.verdict, "severity": finding.severity.value,
            "subject": {"kind": finding.subject.kind, "id": finding.subject.id, "ranks": list(finding.subject.ranks)},
            "title": {"en": finding.title.en, "zh": finding.title.zh},
            "message": {"en": finding.message.en, "zh": finding.message.zh},
        }  # fmt: skip
    if item.waiver is not None:
        entry["waiver"] = {"until": item.waiver.until.isoformat(), "reason": item.waiver.reason}
    return entry
