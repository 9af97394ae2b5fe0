"""The decision as Markdown for a pull request comment and for $GITHUB_STEP_SUMMARY, always under 60 kB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.gate.model import Decision, Judgement, Result, Verdict
from advisor.knowledge.messages import translated
from advisor.model import Problem
from advisor.render.decision.phrases import (
    about,
    amount,
    both_sides,
    causes,
    change,
    details,
    difference,
    extent,
    headline,
    limit,
    name_of,
    next_step,
    notes,
    outcome,
    reason,
    result,
    say,
    threshold,
    unsteady,
)  # fmt: skip
from advisor.render.escaping import markdown, markdown_code, shorten
from advisor.render.wording import labelled

LIMIT = 60_000
"""Bytes; GitHub refuses comments of more than 65,536 characters."""
_VERDICTS = {Verdict.PASS: "✅", Verdict.FAIL: "❌", Verdict.INCONCLUSIVE: "❔", Verdict.RECORDED: "📝"}
_MARKS = {
    Result.PASS: "✅", Result.FAIL: "❌", Result.NOT_CONFIRMED: "🔁", Result.WAIVED: "🕓", Result.WATCHED: "👁",
    Result.NOT_JUDGED: "❔",
}  # fmt: skip
_ROWS = 40


def render_markdown(decision: Decision, lang: str = "en", *, limit: int = LIMIT, **_: Any) -> str:
    """GitHub-flavoured Markdown under `limit` bytes; what did not fit is said."""
    blocks = [
        f"## {_VERDICTS[decision.verdict]} {_say(about(say(lang, 'title'), headline(decision, lang), lang))}",
        _say(extent(decision, lang)),
        _metrics(decision, lang),
        _list(say(lang, "differences"), [_say(difference(item, lang)) for item in decision.differences[:_ROWS]]),
        _list(say(lang, "accounts"), [f"{'  ' * indent}{_say(line)}" for indent, line in causes(decision, lang)]),
        _findings(decision, lang),
        _list(say(lang, "not_judged"), [_open(item, lang) for item in decision.of(Result.NOT_JUDGED)[:_ROWS]]),
        _list(say(lang, "unsteady"), [_say(unsteady(item, lang)) for item in decision.unsteady[:10]]),
        _list(say(lang, "notes"), [_say(note) for note in notes(decision, lang)]),
        _list(say(lang, "unreadable"), _problems(decision.unreadable, lang)),
        _list(say(lang, "problems"), _problems(decision.problems, lang)),
    ]
    foot = f"**→ {_say(next_step(decision, lang))}**" if next_step(decision, lang) else ""
    cut = f"_{_say(say(lang, 'truncated'))}_"
    room = limit - len(foot.encode()) - len(cut.encode()) - 10
    kept: list[str] = []
    for block in filter(None, blocks):
        room -= len(block.encode()) + 2
        if room < 0:
            kept.append(cut)
            break
        kept.append(block)
    return "\n\n".join(filter(None, [*kept, foot])) + "\n"


def _say(text: str) -> str:
    return markdown(shorten(text, 600))


def _code(text: str) -> str:
    return markdown_code(shorten(text, 200))


def _metrics(decision: Decision, lang: str) -> str:
    shown = [j for j in decision.judgements if j.comparison is not None or (j.kind == "budget" and j.value is not None)]
    if not shown:
        return ""
    head = [say(lang, key) for key in ("metric", "baseline", "now", "change", "threshold", "result")]
    rows = [f"| {' | '.join(map(_say, head))} |", "|---|---:|---:|---:|---:|---|"]
    return "\n".join([*rows, *(_row(judgement, lang) for judgement in shown[:_ROWS])])


def _row(judgement: Judgement, lang: str) -> str:
    found = judgement.comparison
    told = f"{_MARKS[judgement.result]} {_say(result(judgement, lang))}"
    if judgement.result is not Result.PASS:
        told = f"{_MARKS[judgement.result]} {_say(outcome(judgement, lang))}"
    if found is not None:
        (before, now), moved = both_sides(found.before, found.after, judgement.unit), change(judgement)
        bound = threshold(judgement)
    else:
        before, now, moved, bound = "–", amount(judgement.value, judgement.unit), "–", limit(judgement)
    cells = [_say(name_of(judgement, lang)), *map(_say, (before, now, moved, bound)), told]
    return f"| {' | '.join(cells)} |"


def _findings(decision: Decision, lang: str) -> str:
    found = [j for j in decision.judgements if j.finding is not None]
    rows = []
    for judgement in sorted(found, key=lambda j: (j.result is not Result.FAIL, -j.finding.severity.rank)):  # type: ignore[union-attr]
        finding = judgement.finding
        assert finding is not None
        told = details(finding, lang) if judgement.result is Result.FAIL else [finding.message.get(lang)]
        lines = [_say(about(name_of(judgement, lang), reason(judgement, lang), lang)), *map(_say, told)]
        rows.append(f"{_MARKS[judgement.result]} {_code(finding.rule)} " + "<br>".join(lines))
    extra = [_say(say(lang, "more_annotations", count=len(rows) - _ROWS))] if len(rows) > _ROWS else []
    return _list(say(lang, "findings"), [*rows[:_ROWS], *extra])


def _open(judgement: Judgement, lang: str) -> str:
    return _say(about(name_of(judgement, lang), reason(judgement, lang), lang))


def _list(title: str, rows: list[str]) -> str:
    """Rows as a list; blanks before a row put it a level deeper."""
    points = [f"{row[: len(row) - len(row.lstrip(' '))]}- {row.lstrip(' ')}" for row in rows]
    return "\n".join([f"**{_say(title)}**", "", *points]) if rows else ""


def _problems(problems: Sequence[Problem], lang: str) -> list[str]:
    return [labelled(_code(each.file), _say(translated(each.problem, lang)), lang) for each in problems[:10]]
