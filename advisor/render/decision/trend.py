"""A baseline over time: for a terminal, as JSON, and as a page of `advisor serve`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advisor.basics.errors import UsageError
from advisor.basics.units import MEASURED, show, signed
from advisor.gate.history.baselines import Baseline, Reference
from advisor.gate.history.trend import Event, Line, Point, Trend, follow, metrics_of
from advisor.gate.policy import Policy
from advisor.gate.sample import Sample
from advisor.knowledge.messages import translated
from advisor.model import LANGUAGES, Finding, Text
from advisor.render.decision.history import alike, heading, load, say
from advisor.render.decision.phrases import counted, placed
from advisor.render.escaping import printable
from advisor.render.report.html import render_page
from advisor.render.wording import word

_BAR = 24
_NAME = 40
"""Characters of a run's name; the end of a path tells runs apart."""
_NAMED = 3
"""Findings named of those that came or went with a run."""
_WIDTH, _HEIGHT, _EDGE = 900, 180, 12


def trend_text(reference: Reference, policy: Policy, form: str, lang: str, metric: str | None = None) -> str:
    """The history of a baseline, a section for each kind of run. Raises UsageError where there is no such baseline or
    metric, NoVerdict where it has no runs."""
    baseline = load(reference, policy)
    if metric is not None:
        known = sorted({name for history in baseline.histories for name in metrics_of(history, policy)})
        if metric not in known:
            raise UsageError(say(lang, "no_metric", metric=metric, names=", ".join(known)))
    trends = [follow(history, policy, metric) for history in baseline.histories]
    if form == "json":
        document = {"reference": str(reference), "kinds": [_to_json(trend) for trend in trends]}
        return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False) + "\n"
    lines = [say(lang, "trend_of", reference=reference), *alike(baseline.histories, lang)]
    for trend in trends:
        lines += ["", heading(trend.history, baseline.histories, lang)]
        for line in trend.lines:
            lines += [f"  {_head(line, lang)}", *(f"    {row}" for row in _rows(line, trend, lang))]
    lines += [
        say(lang, "problem", file=item.file, problem=translated(item.problem, lang)) for item in baseline.problems
    ]
    return "\n".join(printable(line).rstrip() for line in lines) + "\n"


def _head(line: Line, lang: str) -> str:
    unit, name = line.metric.unit, line.metric.title.get(lang)
    beyond = say(lang, "fails_beyond", limit=show(line.limit, unit, MEASURED))
    limit = beyond if line.metric.gates else say(lang, "watched")
    return say(lang, "metric_line", name=name, level=show(line.level, unit, MEASURED), spread="", limit=limit, few="")


def _rows(line: Line, trend: Trend, lang: str) -> list[str]:
    shown = [
        (run, point, event) for run, point, event in zip(trend.runs, line.points, trend.events, strict=True) if point
    ]
    texts = [show(point.value, line.metric.unit, MEASURED) for _, point, _ in shown]
    width = max(map(len, texts), default=0)
    low = min(min(point.value, point.level or point.value) for _, point, _ in shown)
    high = max(max(point.value, point.limit or point.value) for _, point, _ in shown)
    rows = []
    for (run, point, event), text in zip(shown, texts, strict=True):
        told = word(lang, "gate.separator").join(remarks(point, event, lang))
        rows.append(f"{when(run)}  {text:>{width}}  {_bar(point, low, high)}  {name_of(run)}  {told}")
    return rows


def _bar(point: Point, low: float, high: float) -> str:
    """Where the value lies between the lowest and the highest, with the limit that held for it."""
    cells = [" "] * _BAR
    if point.limit is not None and low <= point.limit <= high:
        cells[_cell(point.limit, low, high)] = "┊"
    cells[_cell(point.value, low, high)] = "○" if point.unsteady else "●"
    return "".join(cells)


def _cell(value: float, low: float, high: float) -> int:
    return round((value - low) / (high - low) * (_BAR - 1)) if high > low else 0


def name_of(run: Sample) -> str:
    """Its commit where that was kept, else its profile."""
    name = run.metadata.get("commit") or run.info.path
    return name if len(name) <= _NAME else "…" + name[1 - _NAME :]


def when(run: Sample) -> str:
    """Day and minute at which the run was added, as the baseline tells it."""
    return run.added[:16].replace("T", " ")


def remarks(point: Point | None, event: Event, lang: str) -> list[str]:
    """What is to be said of a run: out of line, a new level, findings that came and went."""
    told = []
    if event.accepted is not None:
        told.append(say(lang, "accepted", reason=event.accepted.reason))
    if point is not None and point.unsteady and point.change is not None:
        told.append(say(lang, "unsteady", change=signed(point.change, "ratio")))
    for key, findings in (("appeared", event.appeared), ("gone", event.gone)):
        if findings:
            told.append(say(lang, key, findings=_named(findings, lang)))
    return told


def _named(findings: Sequence[Finding], lang: str) -> str:
    names = [placed(finding, lang) for finding in findings]
    what = word(lang, "gate.separator").join(names[:_NAMED])
    return what if len(names) <= _NAMED else word(lang, "gate.and_more", what=what, count=len(names) - _NAMED)


def _to_json(trend: Trend) -> dict[str, Any]:
    return {
        "key": dict(trend.history.key),
        "runs": [
            {
                "id": run.id, "added": run.added, "metadata": dict(run.metadata),
                "counts": index >= len(trend.history.earlier),
                "accepted": None if event.accepted is None else event.accepted.reason,
                "appeared": [_finding(finding) for finding in event.appeared],
                "gone": [_finding(finding) for finding in event.gone],
            }
            for index, (run, event) in enumerate(zip(trend.runs, trend.events, strict=True))
        ],
        "metrics": [
            {
                "name": line.metric.name, "unit": line.metric.unit, "gates": line.metric.gates,
                "points": [None if point is None else vars(point) for point in line.points],
            }
            for line in trend.lines
        ],
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule, "verdict": finding.verdict, "severity": finding.severity.value,
        "subject": {"kind": finding.subject.kind, "id": finding.subject.id},
    }  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A metric as a picture: coordinates in the view box `0 0 width height`."""

    title: Text
    level: str
    width: int
    height: int
    dots: tuple[tuple[float, float, bool, str], ...]
    """(x, y, unsteady, what it shows)"""
    value_line: str
    level_line: str
    limit_line: str
    accepted: tuple[float, ...]


def render_trends(baselines: Sequence[Baseline], policy: Policy, lang: str = "en") -> str:
    """Baselines over time as one HTML page: for each its kinds of run, for each kind pictures and a table of its
    runs."""
    shown = [
        {
            "reference": str(baseline.reference),
            "problems": baseline.problems,
            "kinds": [_kind(follow(history, policy), baseline) for history in baseline.histories],
        }
        for baseline in baselines
    ]
    return render_page(
        "gate_history.html", lang, styles=("style.css", "gate.css"), lines=False, baselines=shown
    )  # fmt: skip


def _kind(trend: Trend, baseline: Baseline) -> dict[str, Any]:
    first = trend.lines[0].points if trend.lines else (None,) * len(trend.runs)
    told = [
        [remarks(point, event, lang) for point, event in zip(first, trend.events, strict=True)] for lang in LANGUAGES
    ]
    return {
        "label": Text(*(heading(trend.history, baseline.histories, lang) for lang in LANGUAGES)),
        "runs": Text(*(counted(lang, "runs", len(trend.runs)) for lang in LANGUAGES)),
        "drawings": [_drawing(line, trend) for line in trend.lines],
        "rows": [
            {
                "when": when(run), "run": name_of(run),
                "value": "–" if point is None else show(point.value, trend.lines[0].metric.unit, MEASURED),
                "told": Text(*("; ".join(rows[index]) for rows in told)),
            }
            for index, (run, point) in reversed(list(enumerate(zip(trend.runs, first, strict=True))))
        ],
    }  # fmt: skip


def _drawing(line: Line, trend: Trend) -> Drawing:
    unit = line.metric.unit
    points = [(index, point) for index, point in enumerate(line.points) if point is not None]
    values = [v for _, point in points for v in (point.value, point.level, point.limit) if v is not None]
    frame = _Frame(len(line.points), min(values), max(values))
    dots = [
        (frame.x(index), frame.y(p.value), p.unsteady, f"{name_of(trend.runs[index])}: {show(p.value, unit, MEASURED)}")
        for index, p in points
    ]
    return Drawing(
        title=line.metric.title,
        level=show(line.level, unit, MEASURED),
        width=_WIDTH,
        height=_HEIGHT,
        dots=tuple(dots),
        value_line=frame.path([(index, point.value) for index, point in points]),
        level_line=frame.path([(index, point.level) for index, point in points]),
        limit_line=frame.path([(index, point.limit) for index, point in points]) if line.metric.gates else "",
        accepted=tuple(frame.x(index) for index, event in enumerate(trend.events) if event.accepted is not None),
    )


@dataclass(frozen=True)
class _Frame:
    """Runs from left to right, values from bottom to top."""

    runs: int
    low: float
    high: float

    def x(self, index: int) -> float:
        return round(_EDGE + (_WIDTH - 2 * _EDGE) * (index / max(1, self.runs - 1)), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * share, 1)

    def path(self, points: Sequence[tuple[int, float | None]]) -> str:
        return " ".join(f"{self.x(index)},{self.y(value)}" for index, value in points if value is not None)
