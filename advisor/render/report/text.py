"""The terminal report: what matters on one screen, in the order of the HTML report."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.text import Text as Line

from advisor.basics.units import MEASURED, show
from advisor.knowledge.fact_titles import fact_title
from advisor.model import Finding, Outcome, Report
from advisor.render.conditions import line as told_line
from advisor.render.conditions import telling
from advisor.render.escaping import first_sentences, printable, shorten
from advisor.render.report.groups import group_lines
from advisor.render.report.outline import (
    Branch,
    branches,
    checks,
    direction_words,
    in_full,
    next_collection,
    problems_together,
    said_counts,
)  # fmt: skip
from advisor.render.report.whatif import ladder, spent, used
from advisor.render.wording import (
    about_recording,
    amount,
    aside,
    breakdown,
    brief_gain,
    change,
    check,
    extent,
    full_name,
    gain,
    labelled,
    made_of,
    promise,
    where,
    word,
)  # fmt: skip
from advisor.render.wrapping import wrapped

PHASE_STYLES = {
    "computing": "green",
    "exposed_communication": "yellow",
    "idle": "bright_black",
    "bubble": "magenta",
    "unknown": "dim",
    "undivided": "dim",
}
_SEVERITY_STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}
SCREEN = 40
"""Lines of a usual terminal window."""
_FILLS = "█▓░▒"
_UNKNOWN = "·"


def render_text(
    report: Report,
    lang: str = "en",
    *,
    color: bool = False,
    width: int | None = 100,
    limit: int = 3,
    verbose: bool = False,
    **_: Any,
) -> str:
    """The report for a terminal of `width` columns, with escape codes if `color`. At most `limit` causes are told in
    full, fewer where they would not fit a screen, all of them if `verbose`."""
    if verbose:
        return _write(report, lang, color, width, None, 0)
    for full, short in [(full, short) for full in range(limit, 0, -1) for short in (5, 2)]:
        text = _write(report, lang, color, width, full, short)
        if text.count("\n") <= SCREEN:
            break
    return text


def _write(report: Report, lang: str, color: bool, width: int | None, full: int | None, short: int) -> str:
    columns = max(40, min(width or 100, 120))
    parts = _parts(report, lang, columns, full, short)
    lines = [(line, indent) for part, indent in parts for line in wrapped(part, columns - indent)]
    output = _coloured(lines, columns) if color else "\n".join(" " * indent + line.plain for line, indent in lines)
    return "\n".join(line.rstrip() for line in output.splitlines()) + "\n"


def _coloured(lines: Iterable[_Indented], columns: int) -> str:
    """With the terminal's codes for their styles."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console(
        file=io.StringIO(), width=columns, force_terminal=True, color_system="standard",
        markup=False, highlight=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    for line, indent in lines:
        console.print(Padding(line, (0, 0, 0, indent)), no_wrap=True, crop=False, overflow="ignore")
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def _line(*parts: tuple[str, str] | str) -> Line:
    """A line of (text, style) parts, every text made harmless."""
    line = Line()
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        line.append(printable(text), style)
    return line


_Indented = tuple[Line, int]
"""A paragraph and how far from the left it stands."""


def _parts(report: Report, lang: str, width: int, full: int | None, short: int) -> list[_Indented]:
    trees = branches(report)
    told = trees if full is None else in_full(report, trees)[:full]
    named = [branch for branch in trees if all(branch is not other for other in told)][:short]
    parts: list[_Indented] = [(line, 0) for line in (*_head(report, lang), *_breakdown(report, lang, width))]
    if trees:
        parts.append((_line(""), 0))
    for index, branch in enumerate(told, 1):
        parts += _cause(branch, lang, index, full is None)
    parts += [(_short(branch.finding, lang), 0) for branch in named]
    if len(trees) > len(told) + len(named):
        rest = word(lang, "report.more_findings", count=len(trees) - len(told) - len(named))
        parts.append((_line((f"  {rest}", "dim")), 0))
    parts += [(line, 0) for line in _ladder(report, lang)]
    return [*parts, (_line(""), 0), *((line, 0) for line in _foot(report, lang, width))]


def _ladder(report: Report, lang: str) -> list[Line]:
    """What repairing the causes gives together, in the best order, on one line."""
    rows = ladder(report, lang)
    if not rows:
        return []
    steps = " → ".join(f"{then} ({names})" for names, then, _ in rows)
    now = show(report.whatif.step_time_us[""], "us", MEASURED) if report.whatif else ""
    return [_line(""), _line((labelled(word(lang, "whatif.together"), "", lang), "bold"), f"{now} → {steps}")]


def _head(report: Report, lang: str) -> list[Line]:
    summary = report.summary
    style = {"healthy": "bold green", "undetermined": "bold yellow"}.get(summary.direction, "bold red")
    head = _line((direction_words(report).get(lang), style), ("  ", ""), (summary.headline.get(lang), "bold"))
    about = [report.profile.path, report.profile.framework, *extent(report, lang)]
    if report.findings:
        about.append(said_counts(report, lang))
    lines = [head, _line((" · ".join(shorten(printable(part), 60) for part in about), "dim"))]
    if recorded := about_recording(report, lang):
        lines.append(_line((printable(recorded), "dim")))
    return lines


def _breakdown(report: Report, lang: str, width: int) -> list[Line]:
    """The step as one bar with its legend; its length alone where no breakdown was measured."""
    parts = breakdown(report)
    total = sum(share for _, share in parts)
    bar, legend = Line(), Line()
    if report.summary.recording_us is not None:
        length = show(report.summary.recording_us, "us", MEASURED)
        legend.append(f"{word(lang, 'report.recording_time')} {length}   ")
    if report.summary.step_time_us is not None:
        summed = aside(made_of(report, lang), lang)
        length = show(report.summary.step_time_us, "us", MEASURED)
        legend.append(f"{word(lang, 'report.step_time')} {length}{summed}   ")
    if not parts:
        return [_line(""), legend] if legend.plain else []
    room = min(width, 80)
    edges = [round(room * sum(share for _, share in parts[:index]) / total) for index in range(len(parts) + 1)]
    for index, (name, share) in enumerate(parts):
        style = PHASE_STYLES.get(name, "blue")
        fill = _UNKNOWN if name in ("unknown", "undivided") else _FILLS[index % len(_FILLS)]
        bar.append(fill * (edges[index + 1] - edges[index]), style)
        legend.append(f"{fill} ", style)
        legend.append(f"{printable(word(lang, f'phases.{name}'))} {show(share, 'ratio')}   ")
    told = spent(report, lang)
    below = [*group_lines(report, lang), " · ".join(told), used(report, lang)]
    return [_line(""), bar, legend, *(_line((line, "dim")) for line in below if line)]


def _title(finding: Finding, lang: str, lead: str) -> Line:
    marks = f" [{word(lang, 'report.experimental')}]" if finding.status == "experimental" else ""
    return _line(
        (lead, "bold"),
        (word(lang, f"severities.{finding.severity.value}"), _SEVERITY_STYLES[finding.severity.value]),
        "  ",
        (finding.title.get(lang), "bold"),
        (f"  {shorten(printable(where(finding.subject, lang)), 60)}", "cyan"),
        (f"  {finding.rule} {finding.id}{marks}", "dim"),
    )


def _named(fact: str, lang: str, everything: bool) -> str:
    """The title of the fact; with everything asked for, its id as well."""
    title = fact_title(fact, lang)
    return f"{title} [{fact}]" if everything and title != fact else title


def _cause(branch: Branch, lang: str, number: int, everything: bool) -> list[_Indented]:
    """Message, the evidence that counts, the saving, the first remedy with its check, and symptoms on one line. The
    first cause is told whole: who reads only that can act on it."""
    finding = branch.finding
    whole = everything or number == 1
    body: list[Line] = [_line(finding.message.get(lang) if whole else first_sentences(finding.message.get(lang), 400))]
    if everything and full_name(finding.subject):
        body.append(_line((full_name(finding.subject), "dim")))
    body += [
        _line(
            (labelled(_named(evidence.fact, lang, everything), "", lang), "dim"),
            (told_line(evidence, finding.evidence, lang), "bold"),
        )
        for evidence in telling(finding.evidence)[: None if everything else 2]
    ]
    if (lost := finding.saving or finding.at_stake) is not None:
        style = "bold green" if finding.saving else "bright_black"
        body.append(_line(f"{promise(finding, lang)} ", (gain(lost, lang), style)))
    for remedy in finding.remedies if everything else finding.remedies[:1]:
        proposal = change(remedy)
        action = remedy.action.get(lang) if whole else first_sentences(remedy.action.get(lang), 240)
        body.append(_line(("→ ", "green"), action + aside(proposal, lang)))
        if whole and remedy.snippet:
            body += [_line((f"    {row}", "dim")) for row in printable(remedy.snippet, lines=True).splitlines()]
        if check(remedy, lang):
            body.append(_line((f"  {labelled(word(lang, 'report.verify'), check(remedy, lang), lang)}", "dim")))
    if everything or 0 in (finding.confidence.rank, finding.severity.rank):  # why it is a suspicion, or weighs little
        body += [_line((f"? {doubt.get(lang)}", "yellow")) for doubt in finding.doubts]
    below = branch.below()
    if below:
        told = below if everything else below[:3]
        named = (f"{symptom.title.get(lang)}{_of(symptom, lang)}" for symptom in told)
        names = word(lang, "report.separator").join(named)
        more = "" if len(told) == len(below) else " … " + word(lang, "report.more", count=len(below) - len(told))
        body.append(_line((f"↳ {labelled(word(lang, 'report.symptoms'), names, lang)}{more}", "dim")))
    return [(_title(finding, lang, f"{number}. "), 0), *((line, 3) for line in body)]


def _of(finding: Finding, lang: str) -> str:
    return (
        ""
        if finding.subject.kind == finding.subject.id
        else word(lang, "report.aside", text=where(finding.subject, lang))
    )


def _short(finding: Finding, lang: str) -> Line:
    line = _title(finding, lang, "·  ")
    if finding.saving is not None and (finding.saving.us > 0 or finding.saving.after_others_us):
        line.append(f"  {brief_gain(finding.saving, '−').get(lang)}", "green")
    elif finding.at_stake is not None:
        line.append(f"  {word(lang, 'report.lost', amount=amount(finding.at_stake))}", "bright_black")
    return line


def _foot(report: Report, lang: str, width: int) -> list[Line]:
    """What was fine, what could not be judged with the one next collection, and problems with the input."""
    counts = [
        (word(lang, "outcomes.pass"), len(checks(report, Outcome.PASS))),
        (word(lang, "outcomes.no_data"), len(checks(report, Outcome.NO_DATA))),
        (word(lang, "outcomes.not_applicable"), len(checks(report, Outcome.NOT_APPLICABLE))),
        (word(lang, "outcomes.error"), len(checks(report, Outcome.ERROR))),
    ]
    lines: list[Line] = []
    if report.checked:
        lines.append(
            _line(
                (
                    " · ".join(labelled(name, count, lang) for name, count in counts if count),
                    "dim",
                )
            )
        )
    collection = next_collection(report)
    if collection is not None:
        waiting = len({rule for missing in report.missing_evidence for rule in missing.rules})
        lines.append(
            _line(("? ", "yellow"), word(lang, "report.not_judged_line", count=waiting, setting=collection.get(lang)))
        )
    problems = problems_together(report)
    for both, files in problems[:3]:
        problem = both.get(lang)
        if len(files) == 1:
            lines.append(_line(("! ", "red"), labelled(shorten(printable(files[0]), width // 2), problem, lang)))
            continue
        bare = word(lang, "report.problem_files", problem=problem, count=len(files), files="")
        first = ", ".join(files[:2]) + ("" if len(files) == 2 else ", …")
        named = shorten(printable(first), max(width - len(bare), 24))
        together = word(lang, "report.problem_files", problem=problem, count=len(files), files=named)
        lines.append(_line(("! ", "red"), together))
    if len(problems) > 3:
        lines.append(_line((f"  {word(lang, 'report.more', count=len(problems) - 3)}", "dim")))
    return lines
