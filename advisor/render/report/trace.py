"""The judged step as a small trace in Chrome's format, which Perfetto and MindStudio Insight open: what ran on each
rank, the critical path, and the findings as marks. Times are relative to the start of the step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from advisor.basics.jsonout import shield_json
from advisor.model import Finding, Report
from advisor.render.escaping import printable, shorten
from advisor.render.report.places import place_of
from advisor.render.wording import where, word

_LANES = ("computing", "waiting", "communication", "exposed_communication", "idle")
_PATH = 1_000_000
"""Where the critical path stands: behind every rank."""
_MARKS = _PATH + 1


def render_trace(report: Report, lang: str = "en", **_: Any) -> str:
    """The step as JSON; without a picture of a step there are the marks alone."""
    events = [*_course(report, lang), *_marks(report, lang)]
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "profile": printable(report.profile.path),
            "headline": printable(report.summary.headline.get(lang)),
        },
        "traceEvents": events,
    }
    return shield_json(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))) + "\n"


def _course(report: Report, lang: str) -> Iterator[dict[str, Any]]:
    """Rows of the step of all ranks, else of the single ranks' steps."""
    whole = report.charts.get("step_ranks")
    if isinstance(whole, dict):
        for row in whole.get("rows", ()):
            if "rank" in row:
                yield from _rank(int(row["rank"]), {lane: row.get(lane, ()) for lane in _LANES}, lang)
        yield from _named(_PATH, word(lang, "figures.critical_path"))
        for rank, begin, end, what in whole.get("path", ()):
            said = f"{word(lang, 'kinds.rank')} {int(rank)}: {word(lang, f'phases.{what}')}"
            yield _span(_PATH, 0, said, float(begin), float(end) - float(begin))
        return
    for timeline in report.charts.get("timeline", ())[:1]:
        lanes = {str(lane["name"]): lane["spans"] for lane in timeline["lanes"]}
        yield from _rank(int(timeline["rank"]), {lane: lanes.get(lane, ()) for lane in _LANES}, lang)


def _rank(rank: int, lanes: dict[str, Any], lang: str) -> Iterator[dict[str, Any]]:
    yield from _named(rank, f"{word(lang, 'kinds.rank')} {rank}")
    for number, (lane, spans) in enumerate(lanes.items()):
        if not spans:
            continue
        name = word(lang, "figures.waiting" if lane == "waiting" else f"phases.{lane}")
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": number, "args": {"name": name}}
        for begin, length in spans:
            yield _span(rank, number, name, float(begin), float(length))


def _named(process: int, name: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": printable(name)}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "args": {"sort_index": process}}


def _span(process: int, thread: int, name: str, begin: float, length: float) -> dict[str, Any]:
    return {"ph": "X", "name": printable(name), "pid": process, "tid": thread, "ts": begin, "dur": max(length, 0.0)}


def _marks(report: Report, lang: str) -> Iterator[dict[str, Any]]:
    """Each finding where its time shows, else at the start of the first rank that it is about, else beside them all."""
    drawn = {row["rank"] for row in (report.charts.get("step_ranks") or {}).get("rows", ()) if "rank" in row}
    yield from _named(_MARKS, word(lang, "page.findings"))
    for finding in report.findings:
        place = place_of(report, finding)
        here, at = next(((rank, 0.0) for rank in finding.subject.ranks if rank in drawn), (_MARKS, 0.0))
        if place is not None and (place.rank in drawn or not drawn):
            here, at = place.rank, place.start_us
        yield {
            "ph": "i", "s": "p", "name": f"{finding.id} {_said(finding, lang)}", "pid": here, "tid": 0, "ts": at,
            "cat": finding.direction.value, "args": {"rule": finding.rule, "severity": finding.severity.value},
        }  # fmt: skip


def _said(finding: Finding, lang: str) -> str:
    return shorten(printable(f"{finding.title.get(lang)} ({where(finding.subject, lang)})"), 200)
