"""One picture: its title, what it sums up, the table behind it; and which findings it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advisor.basics.units import show
from advisor.model import Finding, Report, Text
from advisor.render.report.pictures.svg import Cell, anchor_of
from advisor.render.wording import both

Series = Any


@dataclass(frozen=True)
class Figure:
    """`drawing` is SVG, or `graph` is drawn by the template; `head` and `rows` are the table behind it."""

    id: str
    title: Text
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    drawing: str = ""
    note: Text | None = None
    """What is summed up: "mean of 3 steps"."""
    legend: tuple[tuple[str, Text], ...] = ()
    """(class of its colour, what it means)"""
    graph: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()
    """Ids of the findings whose measurements it shows."""
    wide: bool = False

    def points_at(self, finding: str) -> bool:
        """Whether a mark of this finding stands in the drawing."""
        boxes = self.graph["boxes"] if self.graph else ()
        return f'href="#{anchor_of(finding)}"' in self.drawing or any(box["finding"] == finding for box in boxes)


_SCALES = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "bytes_per_s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
}


def caption(identity: str) -> str:
    """The id of a picture's title in the page, which names the drawing."""
    return f"caption-{identity}"


def scale(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    """Factor and unit in which the largest value reads well."""
    steps = _SCALES.get(unit)
    if steps is None:
        return (100.0, "%") if unit == "ratio" else (1.0, "")
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return next(((1 / size, name) for size, name in steps if largest >= size), (1 / steps[-1][0], steps[-1][1]))


def showing(report: Report, facts: Sequence[str], kinds: Sequence[str] = ()) -> list[Finding]:
    """The findings that rest on a measurement which the picture shows: a fact whose name begins with one of `facts`,
    of a subject of one of `kinds` (any, if empty). What a finding tells for context alone it does not rest on."""
    return [
        finding
        for finding in report.findings
        if any(
            item.fact.startswith(tuple(facts))
            and (not kinds or item.subject.kind in kinds or finding.subject.kind in kinds)
            for item in [item for item in finding.evidence if item.condition] or finding.evidence
        )
    ]


def ids(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.id for finding in findings)


def marks_of(findings: Sequence[Finding], places: Mapping[str, int], kind: str) -> dict[int, str]:
    """place -> the first finding about it: by its subject's id, for ranks also by the ranks of another subject."""
    marks: dict[int, str] = {}
    for finding in findings:
        names = [finding.subject.id] if finding.subject.kind == kind else []
        if kind == "rank" and finding.subject.kind in ("rank", "link"):
            names = [str(rank) for rank in finding.subject.ranks]
        for name in names:
            if name in places:
                marks.setdefault(places[name], finding.id)
    return marks


def made_of(data: Mapping[str, Any], over: str) -> Text | None:
    """What a picture sums up: the mean of its `steps`, the median of its `ranks`; None where it is one of them."""
    count = data.get(over)
    return both(f"figures.of_{over}", count=count) if isinstance(count, int) and count > 1 else None


def or_dash(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit)
