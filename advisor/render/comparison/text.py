"""A comparison as text, Markdown or JSON, in English or Chinese."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from advisor.basics.jsonout import shield_json
from advisor.basics.units import MEASURED, show, show_apart, signed
from advisor.compare.changes import Change, Role, is_rounding
from advisor.compare.matching import NOT_COMPARABLE, NOT_RUN, RENAMED
from advisor.compare.model import Cause, Comparison, Effect, Matched, Metric, Obstacle
from advisor.engine.concluding.summary import named
from advisor.knowledge.comparison import settings
from advisor.knowledge.fact_titles import as_recorded, fact_title, titles_of
from advisor.knowledge.words import both, word
from advisor.model import LANGUAGES, RUN, Finding, Subject, Text, Value
from advisor.render.escaping import printable
from advisor.render.wording import where

SCHEMA_VERSION = "1.1"


def render_text(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison for a terminal."""
    return _joined(_text(comparison, lang))


def render_markdown(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison for a comment on a change."""
    return _joined(_markdown(comparison, lang))


def render_json(comparison: Comparison, lang: str = "en", **_: Any) -> str:
    """The comparison as a JSON document."""
    document = comparison_to_json(comparison)
    return shield_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)) + "\n"


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(printable(line) for line in lines) + "\n"


def _value(value: Value | None, unit: str) -> str:
    return "–" if value is None else show(value, unit, MEASURED)


def metric_change(metric: Metric, lang: str) -> str:
    """ "−40 %", "within noise"; the difference itself where next to nothing was there before."""
    if metric.before is None or metric.after is None:
        return "–"
    if not metric.moved:
        return word(lang, "comparison.within_noise")
    if abs(metric.before) <= settings().limits["nothing_before"] * abs(metric.after):
        return signed(metric.after, metric.unit)
    assert metric.change is not None
    return signed(metric.change, "ratio")


def _rows(comparison: Comparison, lang: str) -> list[tuple[str, str, str, str]]:
    return [
        (fact_title(m.fact, lang), _value(m.before, m.unit), _value(m.after, m.unit), metric_change(m, lang))
        for m in comparison.metrics
    ]


def _obstacle_line(obstacle: Obstacle, lang: str) -> str:
    said = both(
        "comparison.obstacle_blocks" if obstacle.blocks else "comparison.obstacle",
        what=both(f"differences.{obstacle.what}"), before=obstacle.before, after=obstacle.after, why=obstacle.why,
    )  # fmt: skip
    return as_recorded(said).get(lang)


def _cause_line(cause: Cause, lang: str) -> str:
    side = "before" if cause.state == "resolved" else "after"
    return word(
        lang, "comparison.cause", cause=named(cause.finding), change=signed(cause.us, "us"),
        state=both(f"comparison.cause_{cause.state}"), id=f"{side}/{cause.finding.id}",
    )  # fmt: skip


_LINES = {Role.SEEN_AT: "comparison.seen_line", Role.WITHIN: "comparison.within_line"}
"""How lines are told that are no part of a change."""
_OPPOSED = "comparison.opposed_line"
"""How parts are told of which some fall while others rise: a share of all that moved is none of the change."""


def change_line(line: Change, title: Text, lang: str) -> str:
    """ "operator type MatMul: 10 ms → 15 ms (+5 ms, 62 % of the change)"; `title` is the fact's."""
    name: Text | str = title
    if line.rest:
        name = as_recorded(both(f"comparison.rest_of_{'step' if line.role is Role.PART else 'part'}"))
    elif line.subject != RUN:
        name = " ".join(filter(None, (where(line.subject, lang), line.inputs)))
        if line.role in _LINES:
            name = word(lang, "comparison.seen_name", name=name, what=title)
    before, after = show_apart(line.before, line.after, "us", MEASURED)
    said = word(
        lang, _LINES.get(line.role, _OPPOSED if line.opposed else "comparison.part_line"), name=name, before=before,
        after=after, difference=signed(line.difference, "us"), share=show(line.share, "ratio"),
    )  # fmt: skip
    if line.calls is not None:
        calls = show_apart(*line.calls, "count")
        each = show_apart(line.before / line.calls[0], line.after / line.calls[1], "us", MEASURED)
        said = word(lang, "comparison.with_calls", line=said, calls=" → ".join(calls), each=" → ".join(each))
    return word(lang, "comparison.with_overlap", line=said) if line.overlaps else said


def accounts_title(comparison: Comparison, lang: str) -> str:
    """What is listed below: where a change stands, or what changed in a step that as a whole did not."""
    within = any(line.role is Role.WITHIN for line in comparison.accounts)
    return word(lang, "comparison.stirred" if within else "comparison.accounts")


def account_lines(comparison: Comparison, lang: str) -> list[str]:
    """Where in the step the change stands, a line each; lines below a part are indented."""
    below = "  " * any(line.role is Role.PART for line in comparison.accounts)
    told = [line for line in comparison.accounts if not is_rounding(line)]
    titles = [Text(*(fact_title(line.fact, each) for each in LANGUAGES)) for line in told]
    return [
        below * (line.role is not Role.PART) + change_line(line, title, lang)
        for line, title in zip(told, titles, strict=True)
    ]


_REASONS = {
    NOT_RUN: "comparison.not_run", NOT_COMPARABLE: "comparison.not_comparable", RENAMED: "comparison.renamed",
}  # fmt: skip
_WHY = {"new": "not_judged_before", "remaining": "other_evidence", "unjudged": "because"}
"""What the reason of a match tells, by its state."""


def _finding_line(match: Matched, lang: str) -> str:
    old, new = match.before, match.after
    sides = [each for each in (old, new) if each is not None]
    told = [_each_once(each.rule for each in sides), _severities([each.severity.value for each in sides], lang)]
    if old is not None and new is not None and not match.reason and old.saving is not None and new.saving is not None:
        told.append(" → ".join(show_apart(old.saving.us, new.saving.us, "us")))
    title = _each_once(each.title.get(lang) for each in sides)
    about = title if is_whole(match.subject) else f"{title} · {where(match.subject, lang)}"
    text = word(lang, "comparison.finding", about=about, told=word(lang, "values.separator").join(told))
    unmeasured = titles_of(match.reason.split(", "), lang)
    own = _REASONS.get(match.reason)
    reason = word(lang, own) if own else unmeasured
    if not reason:
        return text
    lone = match.state == "remaining" and None in (old, new)
    return word(lang, f"comparison.{'as_large' if lone else _WHY[match.state]}", finding=text, reason=reason)


def is_whole(subject: Subject) -> bool:
    """A subject that needs no naming: the run, the collection."""
    return subject.kind == subject.id


def _severities(values: Sequence[str], lang: str) -> str:
    return _each_once(word(lang, f"severities.{value}") for value in values)


def _each_once(told: Iterable[str]) -> str:
    """What both sides say, or the one's and the other's."""
    return " → ".join(dict.fromkeys(told))


def _effect_line(effect: Effect, lang: str) -> str:
    measured = effect.before is not None or effect.after is not None
    line = word(
        lang, "comparison.effect" if measured else "comparison.effect_unmeasured",
        finding=effect.finding.id, remedy=effect.remedy.title,
        outcome=both(f"comparison.{effect.outcome}"), fact=fact_title(effect.fact, lang),
        before=_value(effect.before, effect.unit),
        after=_value(effect.after, effect.unit), expect=both(f"expectations.{effect.expect}"),
    )  # fmt: skip
    if effect.promised_us is not None:
        line = word(lang, "comparison.with_promise", effect=line, time=show(effect.promised_us, "us"))
        if effect.gained_us is not None and effect.outcome in ("kept", "partly"):
            line = word(lang, "comparison.with_gain", effect=line, time=show(effect.gained_us, "us"))
    return line


def _sections(comparison: Comparison, lang: str) -> Iterator[tuple[str, list[str]]]:
    yield word(lang, "comparison.differs"), [_obstacle_line(o, lang) for o in comparison.obstacles]
    told = [_cause_line(c, lang) for c in comparison.causes]
    step = comparison.metric("step.time_us") or comparison.metric("data.step_us")
    if comparison.unattributed_us is not None and step is not None and (not told or _matters(comparison, step)):
        unexplained = both("comparison.unattributed", change=signed(comparison.unattributed_us, "us"))
        told.append(as_recorded(unexplained).get(lang))
    yield word(lang, "comparison.causes"), told
    yield accounts_title(comparison, lang), account_lines(comparison, lang)
    for state in ("new", "remaining", "unjudged", "resolved"):
        yield word(lang, f"comparison.{state}"), [_finding_line(m, lang) for m in comparison.of(state)]
    # a metric that stayed as it was tells nothing of a remedy that promised nothing
    asked = [e for e in comparison.effects if e.promised_us is not None or e.outcome != "unmoved"]
    yield word(lang, "comparison.effects"), [_effect_line(e, lang) for e in asked]


def _matters(comparison: Comparison, step: Metric) -> bool:
    """Whether what no cause explains is more than runs of one program differ by."""
    return abs(comparison.unattributed_us or 0.0) > step.noise * max(step.before or 0.0, step.after or 0.0)


def _head(lang: str) -> tuple[str, str, str, str]:
    metric, before, after, change = (word(lang, f"comparison.{key}") for key in ("metric", "before", "after", "change"))
    return metric, before, after, change


def _text(comparison: Comparison, lang: str) -> Iterator[str]:
    yield comparison.headline.get(lang)
    yield f"{comparison.before.path} → {comparison.after.path}"
    rows = [_head(lang), *_rows(comparison, lang)]
    if len(rows) > 1:
        widths = [max(cell_len(row[i]) for row in rows) for i in range(3)]
        yield ""
        for row in rows:
            pads = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False)]
            cells = (row[0] + pads[0], pads[1] + row[1], pads[2] + row[2], row[3])
            yield "  ".join(cells).rstrip()
    for title, lines in _sections(comparison, lang):
        if lines:
            yield ""
            yield f"{title} ({len(lines)})"
            yield from (f"  {line}" for line in lines)


def _markdown(comparison: Comparison, lang: str) -> Iterator[str]:
    yield f"**{_escape(comparison.headline.get(lang))}**"
    rows = _rows(comparison, lang)
    if rows:
        yield ""
        yield f"| {' | '.join(_head(lang))} |"
        yield "|---|---:|---:|---:|"
        yield from (f"| {_escape(row[0])} | {row[1]} | {row[2]} | {row[3]} |" for row in rows)
    for title, lines in _sections(comparison, lang):
        if lines:
            yield ""
            yield f"### {title} ({len(lines)})"
            yield from (f"{'  ' if line.startswith(' ') else ''}- {_escape(line.strip())}" for line in lines)


def _escape(text: str) -> str:
    for letter in "\\`*_[]<>|#@":
        text = text.replace(letter, f"\\{letter}")
    return text


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Plain dictionaries and lists; numbers that are not finite become null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": comparison.before.path,
        "after": comparison.after.path,
        "comparable": comparison.comparable,
        "outcome": comparison.outcome,
        "headline": {"en": comparison.headline.en, "zh": comparison.headline.zh},
        "obstacles": [
            {
                "what": o.what, "before": o.before, "after": o.after, "blocks": o.blocks,
                "why": {"en": o.why.en, "zh": o.why.zh},
            }
            for o in comparison.obstacles
        ],
        "metrics": [
            {
                "fact": m.fact, "unit": m.unit, "before": _plain(m.before), "after": _plain(m.after),
                "change": _plain(m.change), "noise": _plain(m.noise), "moved": m.moved,
            }
            for m in comparison.metrics
        ],
        "findings": [
            {
                "state": m.state, "verdict": m.verdict, "subject": _subject(m.subject),
                "reason": f"not judged before: {m.reason}" if m.reason and m.state == "new" else m.reason,
                "before": _finding(m.before), "after": _finding(m.after),
            }
            for m in comparison.findings
        ],
        "effects": [
            {
                "finding": e.finding.id, "remedy": e.remedy.id, "fact": e.fact, "unit": e.unit, "expect": e.expect,
                "before": _plain(e.before), "after": _plain(e.after), "outcome": e.outcome,
                "promised_us_per_step": _plain(e.promised_us), "gained_us_per_step": _plain(e.gained_us),
            }
            for e in comparison.effects
        ],
        "unattributed_us": _plain(comparison.unattributed_us),
        "causes": [
            {
                "state": c.state, "finding": _finding(c.finding), "subject": _subject(c.finding.subject),
                "us": _plain(c.us),
            }
            for c in comparison.causes
        ],
        "accounts": [
            {
                "role": a.role.value, "part": a.part, "fact": a.fact, "subject": _subject(a.subject),
                "before": _plain(a.before), "after": _plain(a.after), "change_us": _plain(a.difference),
                "share": _plain(a.share), "opposed": a.opposed, "rest": a.rest, "calls": _plain(a.calls),
                "overlaps": a.overlaps, "inputs": a.inputs,
            }
            for a in comparison.accounts
        ],
    }  # fmt: skip


def _finding(finding: Finding | None) -> dict[str, Any] | None:
    if finding is None:
        return None
    return {
        "id": finding.id, "rule": finding.rule, "severity": finding.severity.value, "role": finding.role.value,
        "saving_us_per_step": _plain(finding.saving.us) if finding.saving else None,
    }  # fmt: skip


def _subject(subject: Any) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "ranks": list(subject.ranks)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
