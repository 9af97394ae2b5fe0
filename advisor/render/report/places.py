"""Where to look in a timeline for what a finding tells: rank, step and the time from the step's start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from advisor.model import Direction, Finding, Report

_KINDS = ("rank", "run", "stage", "host", "link", "collective", "step", "queue")
"""Subjects whose time shows in a picture of a step; an operator's call is told in its message."""
_LANES = {
    Direction.COMPUTATION: ("computing",),
    Direction.COMMUNICATION: ("communication", "waiting", "absent", "exposed_communication"),
    Direction.SCHEDULING: ("idle",),
}


class Place(NamedTuple):
    """Microseconds from the step's start."""

    rank: int
    step: str
    start_us: float
    end_us: float


def place_of(report: Report, finding: Finding) -> Place | None:
    """The longest piece that the finding's ranks put on the critical path, else the longest of its direction that one
    of its ranks shows; None where no step is drawn or nothing of it belongs to the finding."""
    if finding.subject.kind not in _KINDS or finding.direction not in _LANES:
        return None
    try:
        return _on_path(report, finding) or _in_rows(report, finding) or _in_timeline(report, finding)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None  # a picture of a saved report that is not as it should be


def _on_path(report: Report, finding: Finding) -> Place | None:
    course: Any = report.charts.get("step_ranks") or {"path": ()}
    lanes = _LANES[finding.direction]
    own = [piece for piece in course["path"] if piece[0] in finding.subject.ranks]
    wanted = [piece for piece in own if piece[3] in lanes] if finding.direction != Direction.SCHEDULING else own
    return _longest((int(rank), str(course["step"]), float(a), float(b)) for rank, a, b, _ in wanted)


def _in_rows(report: Report, finding: Finding) -> Place | None:
    course: Any = report.charts.get("step_ranks") or {"rows": ()}
    return _longest(
        (int(row["rank"]), str(course["step"]), float(begin), float(begin) + float(length))
        for row in course["rows"]
        if row.get("rank") in finding.subject.ranks
        for lane in _LANES[finding.direction]
        for begin, length in row.get(lane, ())
    )


def _in_timeline(report: Report, finding: Finding) -> Place | None:
    return _longest(
        (int(drawn["rank"]), str(drawn["step"]), float(begin), float(begin) + float(length))
        for drawn in report.charts.get("timeline", ())[:1]
        if drawn["rank"] in finding.subject.ranks or not finding.subject.ranks
        for lane in drawn["lanes"]
        if lane["name"] in _LANES[finding.direction]
        for begin, length in lane["spans"]
    )


def _longest(pieces: Iterable[tuple[int, str, float, float]]) -> Place | None:
    return max((Place(*piece) for piece in pieces), key=lambda place: place.end_us - place.start_us, default=None)
