"""Pictures of a report: for each chart series a title, the table behind it and what the page's script draws.

The script knows a few general forms (stacked bars, bars, lines, spans, heat map, treemap); what the numbers mean is
decided here. A series that is missing or not as expected brings no picture and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from advisor.basics.units import show
from advisor.model import Report, Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, Series, about, ids, name_of, or_dash, rounded, scale, stacked
from advisor.render.report.pipeline_graph import draw_pipeline
from advisor.render.wording import both

BARS_SHOWN = 48
MATRIX_PAIRS = 9
"""Fewer links than this are easier to compare as bars than in an almost empty matrix."""


def figures(report: Report) -> list[Figure]:
    """Every picture whose data exist, in the order in which people ask; two side by side, an odd one across."""
    makers: tuple[tuple[str, Callable[[Series, Report], Iterator[Figure]]], ...] = (
        ("breakdown_steps", _breakdown_steps),
        ("breakdown_ranks", _breakdown_ranks),
        ("timeline", _timelines),
        ("pipeline", draw_pipeline),
        ("operator_types", _operator_types),
        ("lateness", _lateness),
        ("links", _links),
        ("stages", _stages),
        ("memory", _memory),
    )
    made: list[Figure] = []
    for name, maker in makers:
        try:
            made += maker(report.charts[name], report)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            continue
    narrow = [index for index, figure in enumerate(made) if not figure.wide]
    if len(narrow) % 2 and len(narrow) > 1:
        made[narrow[-1]] = replace(made[narrow[-1]], wide=True)
    return made


def _breakdown_steps(data: Series, report: Report) -> Iterator[Figure]:
    if len(data["rows"]) > 1:
        found = about(report, "step")
        marked = [finding.subject.id for finding in found]
        yield stacked(data, "breakdown-steps", both("kinds.step"), both("figures.breakdown_steps"), marked, found)


def _breakdown_ranks(data: Series, report: Report) -> Iterator[Figure]:
    if len(data["rows"]) > 1:
        found = about(report, "rank")
        marked = [finding.subject.id for finding in found]
        yield stacked(data, "breakdown-ranks", both("kinds.rank"), both("figures.breakdown_ranks"), marked, found)


_LANE_DIRECTIONS = {"computing": "computation", "exposed_communication": "communication", "idle": "scheduling"}


def _timelines(data: Series, report: Report) -> Iterator[Figure]:
    for index, timeline in enumerate(data):
        factor, unit = scale([timeline["duration_us"]], "us")
        lanes = [lane for lane in timeline["lanes"] if lane["spans"]]
        rank, step = int(timeline["rank"]), str(timeline["step"])
        here = [
            finding
            for finding in report.findings
            if finding.direction.value in {_LANE_DIRECTIONS.get(lane["name"]) for lane in lanes}
            and (finding.subject.kind == "run" or rank in finding.subject.ranks or finding.subject.id == step)
        ]
        series = []
        for lane in lanes:
            marks = [finding.id for finding in here if finding.direction.value == _LANE_DIRECTIONS.get(lane["name"])]
            spans = [[rounded(start, factor), rounded(start + length, factor)] for start, length in lane["spans"]]
            series.append(
                {
                    "name": name_of(both(f"phases.{lane['name']}")),
                    "color": lane["name"],
                    "spans": spans,
                    "marks": marks[:3],
                }
            )
        rows = tuple(
            (
                both(f"phases.{lane['name']}"),
                str(len(lane["spans"])),
                show(sum(length for _, length in lane["spans"]), "us"),
                show(max(length for _, length in lane["spans"]), "us"),
            )
            for lane in lanes
        )
        title = both(f"figures.timeline_{timeline['which']}", step=printable(step), rank=rank)
        head = (both("figures.lane"), both("figures.spans"), both("figures.total"), both("figures.longest"))
        spec = {"kind": "spans", "unit": unit, "end": rounded(timeline["duration_us"], factor), "series": series}
        yield Figure(f"timeline-{index}", title, head, rows, spec, None, ids(here), True)


def _operator_types(data: Series, report: Report) -> Iterator[Figure]:
    types = [entry for entry in data if entry["us"] > 0]
    if not types:
        return
    found = about(report, "operator_type", "operator")
    flagged = {finding.subject.id for finding in found}
    factor, unit = scale([entry["us"] for entry in types], "us")
    items = [
        {
            "name": shorten(printable(entry["name"]), 60),
            "value": rounded(entry["us"], factor),
            "share": show(entry["share"], "ratio"),
            "group": shorten(printable(entry.get("core") or ""), 30),
            "marked": entry["name"] in flagged,
        }
        for entry in types
    ]
    rows = tuple(
        (
            printable(entry["name"]),
            printable(entry.get("core") or "–"),
            or_dash(entry.get("count"), "number"),
            show(entry["us"], "us"),
            show(entry["share"], "ratio"),
        )
        for entry in types
    )
    head = tuple(both(f"figures.{name}") for name in ("operator_type", "core", "count", "time", "share"))
    spec = {"kind": "treemap", "unit": unit, "items": items}
    yield Figure("operator-types", both("figures.operator_types"), head, rows, spec, None, ids(found))


def _lateness(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = [finding for finding in about(report, "rank") if finding.role.value != "symptom"]
    flagged = {finding.subject.id for finding in found}
    ordered = sorted(data, key=lambda entry: -entry["us"])
    shown = ordered[:BARS_SHOWN]
    factor, unit = scale([entry["us"] for entry in ordered], "us")
    spec = {
        "kind": "bars",
        "labels": [str(entry["rank"]) for entry in shown],
        "unit": unit,
        "x": name_of(both("kinds.rank")),
        "marked": [index for index, entry in enumerate(shown) if str(entry["rank"]) in flagged],
        "series": [
            {
                "name": name_of(both("figures.late_by")),
                "color": "accent",
                "values": [rounded(entry["us"], factor) for entry in shown],
            }
        ],
    }
    rows = tuple((str(entry["rank"]), show(entry["us"], "us")) for entry in ordered)
    head = (both("kinds.rank"), both("figures.late_by"))
    yield Figure("lateness", both("figures.lateness"), head, rows, spec, None, ids(found))


def _links(data: Series, report: Report) -> Iterator[Figure]:
    sources, destinations = [str(name) for name in data["sources"]], [str(name) for name in data["destinations"]]
    pairs = [
        (source, destination, value)
        for source, row in zip(sources, data["values"], strict=True)
        for destination, value in zip(destinations, row, strict=True)
        if value is not None
    ]
    if not pairs:
        return
    found = about(report, "link")
    flagged = {finding.subject.id for finding in found}
    transport = printable(data.get("transport", ""))
    title = both("figures.links", transport=transport)
    slowest = sorted(pairs, key=lambda pair: pair[2])
    rows = tuple((f"{a} → {b}", show(value, "bytes_per_s")) for a, b, value in slowest[:200])
    head = (both("kinds.link"), both("figures.bandwidth"))
    factor, unit = scale([value for _, _, value in pairs], "bytes_per_s")
    cells = [
        {"x": b, "y": a, "v": rounded(value, factor), "marked": bool({f"{a}-{b}", f"{a}-*", f"*-{b}"} & flagged)}
        for a, b, value in pairs
    ]
    spec: dict[str, Any] = {
        "kind": "matrix", "unit": unit, "xs": destinations, "ys": sources, "cells": cells,
        "x": name_of(both("figures.destination")), "y": name_of(both("figures.source")),
    }  # fmt: skip
    if len(pairs) < MATRIX_PAIRS:
        spec = {
            "kind": "bars", "labels": [f"{a} → {b}" for a, b, _ in slowest], "unit": unit,
            "x": name_of(both("kinds.link")),
            "marked": [index for index, (a, b, _) in enumerate(slowest) if f"{a}-{b}" in flagged],
            "series": [{
                "name": name_of(both("figures.bandwidth")), "color": "accent",
                "values": [rounded(value, factor) for _, _, value in slowest],
            }],
        }  # fmt: skip
    yield Figure("links", title, head, rows, spec, None, ids(found))


def _stages(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = about(report, "stage")
    flagged = {finding.subject.id for finding in found}
    factor, unit = scale([entry["compute_us"] + (entry["bubble_us"] or 0) for entry in data], "us")
    spec = {
        "kind": "stacked",
        "labels": [str(entry["stage"]) for entry in data],
        "unit": unit,
        "x": name_of(both("kinds.stage")),
        "marked": [index for index, entry in enumerate(data) if str(entry["stage"]) in flagged],
        "series": [
            {
                "name": name_of(both(f"phases.{color}")),
                "color": color,
                "values": [rounded(entry[key], factor) for entry in data],
            }
            for color, key in (("computing", "compute_us"), ("bubble", "bubble_us"))
        ],
    }
    rows = tuple(
        (
            str(entry["stage"]),
            or_dash(entry["compute_us"], "us"),
            or_dash(entry["bubble_us"], "us"),
            str(len(entry["ranks"])),
        )
        for entry in data
    )
    head = (both("kinds.stage"), both("phases.computing"), both("phases.bubble"), both("report.ranks"))
    yield Figure("stages", both("figures.stages"), head, rows, spec, None, ids(found))


def _memory(data: Series, report: Report) -> Iterator[Figure]:
    curves = [entry for entry in data if entry["time_us"]]
    if not curves:
        return
    time_factor, time_unit = scale([entry["time_us"][-1] for entry in curves], "us")
    every = [value for entry in curves for value in entry["reserved_bytes"]]
    factor, unit = scale(every, "bytes")
    rank_word = both("kinds.rank")
    series, rows = [], []
    for entry in curves:
        for key in ("reserved_bytes", "allocated_bytes"):
            values = entry.get(key)
            if not values:
                continue
            kind = both(f"figures.{key}")
            name = Text(f"{rank_word.en} {entry['rank']} {kind.en}", f"{rank_word.zh} {entry['rank']} {kind.zh}")
            points = [
                [rounded(at, time_factor), rounded(value, factor)]
                for at, value in zip(entry["time_us"], values, strict=True)
            ]
            series.append(
                {"name": name_of(name), "rank": entry["rank"], "dashed": key == "allocated_bytes", "points": points}
            )
            rows.append((name, show(max(values), "bytes"), or_dash(entry.get("capacity_bytes"), "bytes")))
    head = (both("figures.curve"), both("figures.peak"), both("figures.capacity"))
    found = [finding for finding in report.findings if finding.verdict == "memory-pressure"]
    spec = {"kind": "lines", "unit": unit, "x_unit": time_unit, "series": series}
    yield Figure("memory", both("figures.memory"), head, tuple(rows), spec, None, ids(found))
