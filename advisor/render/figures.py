"""Pictures of a report: for each chart series a title, the table behind it and what the page's script draws.

The script knows a few general forms (stacked bars, bars, lines, spans, heat map, treemap); what the numbers mean is
decided here. A series that is missing or not as expected brings no picture and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.model import Finding, Report, Text
from advisor.render.escaping import printable, shorten
from advisor.render.wording import both
from advisor.units import show

Series = Any
Cell = Text | str
BARS_SHOWN = 48


@dataclass(frozen=True)
class Figure:
    """`spec` is drawn by the page's script, or `graph` by the template; `head` and `rows` are the table behind it."""

    id: str
    title: Text
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    graph: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()
    wide: bool = False


def figures(report: Report) -> list[Figure]:
    """Every picture whose data exist, in the order in which people ask."""
    makers: tuple[tuple[str, Callable[[Series, Report], Iterator[Figure]]], ...] = (
        ("breakdown_steps", _breakdown_steps),
        ("breakdown_ranks", _breakdown_ranks),
        ("timeline", _timelines),
        ("pipeline", _pipeline),
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
    return made


def _name(text: Text) -> dict[str, str]:
    return {"en": printable(text.en), "zh": printable(text.zh)}


def _scale(values: Sequence[float | None], unit: str) -> tuple[float, str]:
    """Factor and unit in which the largest value reads well."""
    steps = {
        "us": ((1e6, "s"), (1e3, "ms"), (1.0, "us")),
        "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
        "bytes_per_s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    }[unit]
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return next(((1 / size, name) for size, name in steps if largest >= size), (1 / steps[-1][0], steps[-1][1]))


def _round(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.4g}")


def _about(report: Report, *kinds: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.subject.kind in kinds]


def _ids(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.id for finding in findings[:6])


def _stacked(
    data: Series, key: str, label: Text, title: Text, marked: Sequence[str], findings: Sequence[Finding]
) -> Figure:
    parts = [str(part) for part in data["parts"]]
    labels = [printable(row["label"]) for row in data["rows"]]
    values = [[float(value) for value in row["values"]] for row in data["rows"]]
    totals = [sum(row) for row in values]
    factor, unit = _scale(totals, "us")
    names = [both(f"phases.{part}") for part in parts]
    spec = {
        "kind": "stacked",
        "labels": labels,
        "unit": unit,
        "x": _name(label),
        "marked": [index for index, text in enumerate(labels) if text in marked],
        "series": [
            {"name": _name(name), "color": part, "values": [_round(row[index], factor) for row in values]}
            for index, (part, name) in enumerate(zip(parts, names, strict=True))
        ],
    }
    rows = tuple(
        (
            text,
            show(total, "us"),
            *(f"{show(value, 'us')} ({show(value / total, 'ratio')})" if total else "–" for value in row),
        )
        for text, total, row in zip(labels, totals, values, strict=True)
    )
    return Figure(
        key, title, (label, both("report.step_time"), *names), rows, spec, None, _ids(findings), len(labels) > 40
    )


def _breakdown_steps(data: Series, report: Report) -> Iterator[Figure]:
    if data["rows"]:
        found = _about(report, "step")
        marked = [finding.subject.id for finding in found]
        yield _stacked(data, "breakdown-steps", both("kinds.step"), both("figures.breakdown_steps"), marked, found)


def _breakdown_ranks(data: Series, report: Report) -> Iterator[Figure]:
    if len(data["rows"]) > 1:
        found = _about(report, "rank")
        marked = [finding.subject.id for finding in found]
        yield _stacked(data, "breakdown-ranks", both("kinds.rank"), both("figures.breakdown_ranks"), marked, found)


_LANE_DIRECTIONS = {"computing": "computation", "exposed_communication": "communication", "idle": "scheduling"}


def _timelines(data: Series, report: Report) -> Iterator[Figure]:
    for index, timeline in enumerate(data):
        factor, unit = _scale([timeline["duration_us"]], "us")
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
            spans = [[_round(start, factor), _round(start + length, factor)] for start, length in lane["spans"]]
            series.append(
                {
                    "name": _name(both(f"phases.{lane['name']}")),
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
        spec = {"kind": "spans", "unit": unit, "end": _round(timeline["duration_us"], factor), "series": series}
        yield Figure(f"timeline-{index}", title, head, rows, spec, None, _ids(here), True)


def _pipeline(data: Series, report: Report) -> Iterator[Figure]:
    """The data pipeline from source (top) to device, one row an operation; branches side by side."""
    nodes = {int(node["id"]): node for node in data["nodes"]}
    if not nodes:
        return
    found = _about(report, "pipeline_op", "queue")
    culprits = {finding.subject.id: finding for finding in reversed(found) if finding.role.value != "symptom"}
    depth = _depths(nodes, data["edges"])
    deepest = max(depth.values())
    columns: dict[int, int] = {}
    boxes = {}
    for key in sorted(nodes):
        level = deepest - depth[key]
        column = columns.get(level, 0)
        columns[level] = column + 1
        node = nodes[key]
        told = culprits.get(str(node["name"]))
        boxes[key] = {
            "x": 10 + column * 270,
            "y": 10 + level * 96,
            "name": shorten(printable(node["name"]), 30),
            "full": printable(node["name"]),
            "workers": node.get("workers"),
            "busy": node.get("busy"),
            "finding": told.id if told else None,
        }
    lines = []
    for edge in data["edges"]:
        if edge["source"] in boxes and edge["target"] in boxes:
            a, b = boxes[edge["source"]], boxes[edge["target"]]
            lines.append(
                {"x1": a["x"] + 125, "y1": a["y"] + 56, "x2": b["x"] + 125, "y2": b["y"], "use": edge.get("use")}
            )
    graph = {
        "boxes": list(boxes.values()),
        "lines": lines,
        "width": max(columns.values()) * 270,
        "height": (deepest + 1) * 96 - 20,
    }
    queue = {edge["source"]: edge for edge in data["edges"]}
    rows = tuple(
        (
            printable(node["name"]),
            _or_dash(node.get("workers"), "count"),
            _or_dash(node.get("us"), "us"),
            _or_dash(node.get("busy"), "ratio"),
            _or_dash(queue.get(key, {}).get("use"), "ratio"),
            _or_dash(queue.get(key, {}).get("empty"), "ratio"),
        )
        for key, node in sorted(nodes.items(), reverse=True)
    )
    words = ("operation", "workers", "time", "busy", "queue_use", "queue_empty")
    head = tuple(both(f"figures.{name}") for name in words)
    yield Figure("pipeline", both("figures.pipeline"), head, rows, {}, graph, _ids(found))


def _depths(nodes: Mapping[int, Any], edges: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Distance of each operation from the consumer; edges that would close a loop are passed over."""
    target = {edge["source"]: edge["target"] for edge in edges if edge["target"] in nodes}
    depths = {}
    for start in nodes:
        seen = [start]
        while seen[-1] in target and target[seen[-1]] not in seen:
            seen.append(target[seen[-1]])
        depths[start] = len(seen) - 1
    return depths


def _or_dash(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit)


def _operator_types(data: Series, report: Report) -> Iterator[Figure]:
    types = [entry for entry in data if entry["us"] > 0]
    if not types:
        return
    found = _about(report, "operator_type", "operator")
    flagged = {finding.subject.id for finding in found}
    factor, unit = _scale([entry["us"] for entry in types], "us")
    items = [
        {
            "name": shorten(printable(entry["name"]), 60),
            "value": _round(entry["us"], factor),
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
            _or_dash(entry.get("count"), "number"),
            show(entry["us"], "us"),
            show(entry["share"], "ratio"),
        )
        for entry in types
    )
    head = tuple(both(f"figures.{name}") for name in ("operator_type", "core", "count", "time", "share"))
    spec = {"kind": "treemap", "unit": unit, "items": items}
    yield Figure("operator-types", both("figures.operator_types"), head, rows, spec, None, _ids(found))


def _lateness(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = [finding for finding in _about(report, "rank") if finding.role.value != "symptom"]
    flagged = {finding.subject.id for finding in found}
    ordered = sorted(data, key=lambda entry: -entry["us"])
    shown = ordered[:BARS_SHOWN]
    factor, unit = _scale([entry["us"] for entry in ordered], "us")
    spec = {
        "kind": "bars",
        "labels": [str(entry["rank"]) for entry in shown],
        "unit": unit,
        "x": _name(both("kinds.rank")),
        "marked": [index for index, entry in enumerate(shown) if str(entry["rank"]) in flagged],
        "series": [
            {
                "name": _name(both("figures.late_by")),
                "color": "accent",
                "values": [_round(entry["us"], factor) for entry in shown],
            }
        ],
    }
    rows = tuple((str(entry["rank"]), show(entry["us"], "us")) for entry in ordered)
    head = (both("kinds.rank"), both("figures.late_by"))
    yield Figure("lateness", both("figures.lateness"), head, rows, spec, None, _ids(found))


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
    found = _about(report, "link")
    flagged = {finding.subject.id for finding in found}
    factor, unit = _scale([value for _, _, value in pairs], "bytes_per_s")
    cells = [
        {"x": b, "y": a, "v": _round(value, factor), "marked": bool({f"{a}-{b}", f"{a}-*", f"*-{b}"} & flagged)}
        for a, b, value in pairs
    ]
    transport = printable(data.get("transport", ""))
    spec = {
        "kind": "matrix", "unit": unit, "xs": destinations, "ys": sources, "cells": cells,
        "x": _name(both("figures.destination")), "y": _name(both("figures.source")),
    }  # fmt: skip
    slowest = sorted(pairs, key=lambda pair: pair[2])[:200]
    rows = tuple((f"{a} → {b}", show(value, "bytes_per_s")) for a, b, value in slowest)
    head = (both("kinds.link"), both("figures.bandwidth"))
    yield Figure("links", both("figures.links", transport=transport), head, rows, spec, None, _ids(found))


def _stages(data: Series, report: Report) -> Iterator[Figure]:
    if len(data) < 2:
        return
    found = _about(report, "stage")
    flagged = {finding.subject.id for finding in found}
    factor, unit = _scale([entry["compute_us"] + (entry["bubble_us"] or 0) for entry in data], "us")
    spec = {
        "kind": "stacked",
        "labels": [str(entry["stage"]) for entry in data],
        "unit": unit,
        "x": _name(both("kinds.stage")),
        "marked": [index for index, entry in enumerate(data) if str(entry["stage"]) in flagged],
        "series": [
            {
                "name": _name(both(f"phases.{color}")),
                "color": color,
                "values": [_round(entry[key], factor) for entry in data],
            }
            for color, key in (("computing", "compute_us"), ("bubble", "bubble_us"))
        ],
    }
    rows = tuple(
        (
            str(entry["stage"]),
            _or_dash(entry["compute_us"], "us"),
            _or_dash(entry["bubble_us"], "us"),
            str(len(entry["ranks"])),
        )
        for entry in data
    )
    head = (both("kinds.stage"), both("phases.computing"), both("phases.bubble"), both("report.ranks"))
    yield Figure("stages", both("figures.stages"), head, rows, spec, None, _ids(found))


def _memory(data: Series, report: Report) -> Iterator[Figure]:
    curves = [entry for entry in data if entry["time_us"]]
    if not curves:
        return
    time_factor, time_unit = _scale([entry["time_us"][-1] for entry in curves], "us")
    every = [value for entry in curves for value in entry["reserved_bytes"]]
    factor, unit = _scale(every, "bytes")
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
                [_round(at, time_factor), _round(value, factor)]
                for at, value in zip(entry["time_us"], values, strict=True)
            ]
            series.append(
                {"name": _name(name), "rank": entry["rank"], "dashed": key == "allocated_bytes", "points": points}
            )
            rows.append((name, show(max(values), "bytes"), _or_dash(entry.get("capacity_bytes"), "bytes")))
    head = (both("figures.curve"), both("figures.peak"), both("figures.capacity"))
    found = [finding for finding in report.findings if finding.verdict == "memory-pressure"]
    spec = {"kind": "lines", "unit": unit, "x_unit": time_unit, "series": series}
    yield Figure("memory", both("figures.memory"), head, tuple(rows), spec, None, _ids(found))
