"""Markdown for a pull request: the verdict first, details folded, and never more than a comment may hold."""

from __future__ import annotations

from typing import Any

from advisor.basics.units import MEASURED, show
from advisor.model import Finding, Outcome, Report
from advisor.render.conditions import telling, titled
from advisor.render.escaping import html_line, markdown, markdown_block, markdown_code, shorten
from advisor.render.report.groups import group_lines
from advisor.render.report.outline import Branch, branches, checks, direction_words, next_collection, problems_together
from advisor.render.report.whatif import ladder, spent, used
from advisor.render.wording import (
    about_recording,
    aside,
    breakdown,
    change,
    check,
    gain,
    labelled,
    promise,
    where,
    word,
)

LIMIT = 60_000
"""Bytes; GitHub refuses comments of more than 65,536 characters."""
_MARKS = {"critical": "🔴", "high": "🟠", "medium": "🟡", "low": "🔵"}
_LONGEST = 2000


def render_markdown(report: Report, lang: str = "en", *, limit: int = LIMIT, **_: Any) -> str:
    """The report as GitHub-flavoured Markdown under `limit` bytes; what did not fit is counted and said."""
    trees = branches(report)
    blocks = [_head(report, lang), _breakdown(report, lang), _table(trees, lang), _ladder(report, lang)]
    blocks += [_cause(branch, lang) for branch in trees]
    foot = _foot(report, lang)
    room = limit - len(foot.encode()) - 300
    kept: list[str] = []
    for block in filter(None, blocks):
        room -= len(block.encode()) + 2
        if room < 0:
            kept.append(f"_{markdown(word(lang, 'report.truncated'))}_")
            break
        kept.append(block)
    return "\n\n".join([*kept, foot]).rstrip() + "\n"


def _say(text: str) -> str:
    return markdown(shorten(text, _LONGEST))


def _code(text: str) -> str:
    return markdown_code(shorten(text, 300))


def _head(report: Report, lang: str) -> str:
    headline = labelled(_say(direction_words(report).get(lang)), _say(report.summary.headline.get(lang)), lang)
    head = f"## {headline}\n\n{_code(report.profile.path)}"
    recorded = about_recording(report, lang)
    return f"{head}\n\n{_say(recorded)}" if recorded else head


def _breakdown(report: Report, lang: str) -> str:
    shares = breakdown(report)
    parts = [f"{_say(word(lang, f'phases.{name}'))} **{show(share, 'ratio')}**" for name, share in shares]
    step = report.summary.step_time_us
    label = "report.step_time" if step is not None else "report.recording_time"
    length = step if step is not None else report.summary.recording_us
    lead = f"{_say(word(lang, label))} **{show(length, 'us', MEASURED)}**" if length is not None else ""
    told = spent(report, lang)
    below = [*group_lines(report, lang), " · ".join(told), used(report, lang)]
    whole = labelled(lead, " · ".join(parts), lang) if lead and parts else lead or " · ".join(parts)
    return "\n\n".join([*filter(None, [whole]), *(_say(line) for line in below if line)])


def _table(trees: list[Branch], lang: str) -> str:
    if not trees:
        return _say(word(lang, "report.no_findings"))
    head = [word(lang, f"report.{key}") for key in ("causes", "where", "gain_column", "first")]
    rows = [f"| {' | '.join(_say(cell) for cell in head)} |", "|---|---|---|---|"]
    rows += [_row(branch.finding, lang) for branch in trees[:20]]
    if len(trees) > 20:
        rows.append(f"| {_say(word(lang, 'report.more', count=len(trees) - 20))} | | | |")
    return "\n".join(rows)


def _ladder(report: Report, lang: str) -> str:
    """What repairing the causes gives together, in the best order."""
    rows = ladder(report, lang)
    if not rows:
        return ""
    head = [word(lang, f"whatif.{key}") for key in ("without", "step_then", "gained")]
    lines = [f"| {' | '.join(map(_say, cells))} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---|---:|---:|", *lines[1:]])


def _row(finding: Finding, lang: str) -> str:
    remedy = finding.remedies[0].title.get(lang) if finding.remedies else ""
    told = finding.saving or finding.at_stake
    saving = "–" if told is None else gain(told, lang)
    if finding.at_stake is not None:
        saving = f"{promise(finding, lang)} {saving}"
    cells = (
        f"{_MARKS[finding.severity.value]} {finding.id} {_say(finding.title.get(lang))}",
        _say(shorten(where(finding.subject, lang), 80)),
        _say(saving),
        _say(remedy),
    )
    return f"| {' | '.join(cells)} |"


def _cause(branch: Branch, lang: str) -> str:
    finding = branch.finding
    title = f"{finding.rule} · {finding.title.get(lang)} · {where(finding.subject, lang)}"
    lines = [f"<details><summary>{html_line(shorten(title, 200))}</summary>", "", _say(finding.message.get(lang)), ""]
    lines += [f"- {_say(titled(evidence, finding.evidence, lang))}" for evidence in telling(finding.evidence)[:12]]
    for remedy in finding.remedies:
        action = _say(remedy.action.get(lang)) + (aside(_code(change(remedy)), lang) if change(remedy) else "")
        lines += ["", labelled(f"**{_say(remedy.title.get(lang))}**", action, lang)]
        if remedy.snippet:
            lines += ["", markdown_block(shorten(remedy.snippet, _LONGEST))]
        if check(remedy, lang):
            lines += ["", labelled(_say(word(lang, "report.verify")), _say(check(remedy, lang)), lang)]
    below = branch.below()
    if below:
        lines += ["", labelled(_say(word(lang, "report.symptoms")), "", lang).rstrip(), ""]
        lines += [
            f"- {_say(symptom.title.get(lang))}{aside(_say(where(symptom.subject, lang)), lang)}"
            for symptom in below[:10]
        ]
        if len(below) > 10:
            lines.append(f"- {_say(word(lang, 'report.more', count=len(below) - 10))}")
    lines += [f"\n_{_say(doubt.get(lang))}_" for doubt in finding.doubts]
    return "\n".join([*lines, "", "</details>"])


def _foot(report: Report, lang: str) -> str:
    counts = [(outcome, len(checks(report, outcome))) for outcome in Outcome]
    parts = [labelled(_say(word(lang, f"outcomes.{outcome.value}")), count, lang) for outcome, count in counts if count]
    paragraphs = [" · ".join(parts)] if parts else []
    collection = next_collection(report)
    if collection is not None:
        waiting = len({rule for missing in report.missing_evidence for rule in missing.rules})
        paragraphs.append(_say(word(lang, "report.not_judged_line", count=waiting, setting=collection.get(lang))))
    problems = problems_together(report)
    bullets = []
    for problem, files in problems[:10]:
        more = f" {_say(word(lang, 'report.more', count=len(files) - 1))}" if len(files) > 1 else ""
        told = markdown(shorten(problem.get(lang), 300))
        bullets.append(f"- {labelled(f'{_code(files[0])}{more}', told, lang)}")
    if len(problems) > 10:
        bullets.append(f"- {_say(word(lang, 'report.more', count=len(problems) - 10))}")
    return "\n\n".join([*paragraphs, "\n".join(bullets)]).rstrip()
