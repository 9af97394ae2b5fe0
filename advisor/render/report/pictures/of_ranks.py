"""Pictures of the ranks together: who comes late, the links between them, and pipeline stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from advisor.basics.units import show
from advisor.model import Finding, Report, Text
from advisor.render.conditions import limit_of
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, Series, caption, ids, marks_of, or_dash, scale, showing
from advisor.render.report.pictures import bars, fields
from advisor.render.report.pictures.svg import Cell
from advisor.render.wording import both

BARS_SHOWN = 48
MATRIX_PAIRS = 9
"""Fewer links than this are easier to compare as bars than in an almost empty matrix."""
ROWS = 200
_SPEEDS = ("link.bandwidth_ratio", "host.bandwidth_ratio")


def draw_lateness(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = [f for f in showing(report, ("rank.late", "lateness.")) if f.role.value != "symptom"]
    ordered = sorted(data, key=lambda entry: -entry["us"])
    drawn = ordered[:BARS_SHOWN]
    factor, unit = scale([entry["us"] for entry in ordered], "us")
    labels = [str(entry["rank"]) for entry in drawn]
    series = [("p-accent", [entry["us"] * factor for entry in drawn])]
    marks = marks_of(found, {label: index for index, label in enumerate(labels)}, "rank")
    drawing = bars.columns(bars.Bars(labels, series, unit, both("kinds.rank"), marks), caption("lateness"))
    rows = tuple((str(entry["rank"]), show(entry["us"], "us")) for entry in ordered)
    head = (both("kinds.rank"), both("figures.late_by"))
    note = both("figures.lateness_note")
    yield Figure("lateness", both("figures.lateness"), head, rows, drawing, note, (), None, ids(found))


def draw_links(data: Series, report: Report) -> Iterator[Figure]:
    """One picture a transport."""
    found = showing(report, ("link.", "transfer.", "host.bandwidth"))
    for index, matrix in enumerate(data[:4]):
        figure = _matrix(matrix, index, found)
        if figure is not None:
            yield figure


def _matrix(data: Any, index: int, every: list[Finding]) -> Figure | None:
    labels = [printable(label) for label in data["labels"]]
    cells = [(int(a), int(b), float(v), ratio) for a, b, v, ratio in data["cells"]]
    if not cells:
        return None
    transport = shorten(printable(data["transport"]), 24)
    median, high = float(np.median([v for _, _, v, _ in cells])), max(v for _, _, v, _ in cells)
    factor, unit = scale([high], "bytes_per_s")
    limits = {f.id: _limit([f]) for f in every}
    shown = {
        f.id: [(a, b) for a, b, _, ratio in cells
               if _is_slow(ratio, limits[f.id]) and _is_about(f, labels[a], labels[b])]
        for f in every
    }  # fmt: skip
    found = [f for f in every if shown[f.id]]
    places = {label: at for at, label in enumerate(labels)}
    key = f"links-{index}"
    slowest = sorted(cells, key=lambda cell: cell[2])
    rows = tuple(
        (f"{labels[a]} → {labels[b]}", show(v, "bytes_per_s"), "–" if ratio is None else show(ratio, "ratio"))
        for a, b, v, ratio in slowest[:ROWS]
    )
    head = (both("kinds.link"), both("figures.bandwidth"), both("figures.of_usual"))
    title = both("figures.links", transport=transport)
    lines = [(median * factor, both("figures.median_line", value=show(median, "bytes_per_s")))]
    if (limit := _limit(found)) is not None:
        lines.append((median * limit * factor, both("figures.limit_line", value=show(median * limit, "bytes_per_s"))))
    if len(cells) < MATRIX_PAIRS:
        series = [("p-accent", [v * factor for _, _, v, _ in slowest])]
        named = [f"{labels[a]} → {labels[b]}" for a, b, _, _ in slowest]
        at = {f"{labels[a]}-{labels[b]}": place for place, (a, b, _, _) in enumerate(slowest)}
        marks: dict[int, str] = {}
        for finding in found:
            for a, b in shown[finding.id]:
                marks.setdefault(at[f"{labels[a]}-{labels[b]}"], finding.id)
        told = [show(v, "bytes_per_s") for _, _, v, _ in slowest]
        drawing = bars.rows(bars.Bars(named, series, unit, "", marks, lines[0]), caption(key), told)
    else:
        grid = [[-1.0] * len(labels) for _ in labels]
        for a, b, v, _ in cells:
            grid[a][b] = v
        accused = {pair for pairs in shown.values() for pair in pairs}
        slow = [
            (a, b, f"{labels[a]} → {labels[b]}: {show(v, 'bytes_per_s')}") for a, b, v, _ in cells if (a, b) in accused
        ][:ROWS]
        groups = [(_group(data, group), int(group["at"])) for group in data.get("groups", ())]
        words = (both("figures.source"), both("figures.destination"))
        drawing = fields.matrix(
            labels, grid, groups, high, unit, factor, slow, marks_of(found, places, "rank"), lines, words, key,
            caption(key),
        )  # fmt: skip
    note = both("figures.links_note_host" if data["of"] == "host" else "figures.links_note")
    return Figure(key, title, head, rows, drawing, note, (), None, ids(found))


def _group(data: Any, group: Any) -> Cell:
    name = shorten(printable(group["name"]), 12)
    if data.get("grouped_by") != "stage":
        return name
    word = both("kinds.stage")
    return Text(f"{word.en} {name}", f"{word.zh} {name}")


def _limit(found: list[Finding]) -> float | None:
    """Part of the usual bandwidth below which a link counts as slow: the limit of the finding that says so."""
    limits = [limit_of(item) for finding in found for item in finding.evidence if item.fact in _SPEEDS]
    return next((limit for limit in limits if limit is not None and 0 < limit < 1), None)


def _is_slow(ratio: float | None, limit: float | None) -> bool:
    """Whether a link that reaches this part of its usual bandwidth is below the limit, as far as both are known."""
    return limit is None or ratio is None or ratio < limit


def _is_about(finding: Finding, source: str, destination: str) -> bool:
    """Whether a finding about a link, a card's links or a host is about this link."""
    subject, ends = finding.subject, {source, destination}
    if subject.kind != "link":
        return subject.kind != "host" or subject.id in ends or bool({str(r) for r in subject.ranks} & ends)
    first, _, last = subject.id.partition("-")
    if "*" in (first, last):
        return bool(({first, last} | {str(rank) for rank in subject.ranks}) & ends)
    return subject.id == f"{source}-{destination}"


def draw_stages(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = showing(report, ("stage.", "pipeline."), ("stage", "run"))
    parts = (("computing", "compute_us"), ("bubble", "bubble_us"), ("exposed_communication", "communication_us"),
             ("idle", "idle_us"))  # fmt: skip
    drawn = [(part, key) for part, key in parts if any(entry.get(key) for entry in data)]
    factor, unit = scale([sum(entry.get(key) or 0.0 for _, key in drawn) for entry in data], "us")
    labels = [str(entry["stage"]) for entry in data]
    series = [(f"p-{part}", [(entry.get(key) or 0.0) * factor for entry in data]) for part, key in drawn]
    marks = marks_of(found, {label: index for index, label in enumerate(labels)}, "stage")
    drawing = bars.columns(bars.Bars(labels, series, unit, both("kinds.stage"), marks), caption("stages"))
    rows = tuple(
        (
            str(entry["stage"]),
            *(or_dash(entry.get(key), "us") for _, key in drawn),
            str(len(entry["ranks"])),
        )
        for entry in data
    )
    words = {part: both("figures.other_communication" if part == "exposed_communication" else f"phases.{part}")
             for part, _ in drawn}  # fmt: skip
    head = (both("kinds.stage"), *words.values(), both("report.ranks"))
    legend = tuple((f"p-{part}", word) for part, word in words.items())
    note = both("figures.stages_note")
    yield Figure("stages", both("figures.stages"), head, rows, drawing, note, legend, None, ids(found))
