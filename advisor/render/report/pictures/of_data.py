"""The data pipeline as a graph with the use of its queues on the edges, drawn without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.model import Report
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure, Series, ids, or_dash, showing
from advisor.render.wording import both


def draw_pipeline(data: Series, report: Report) -> Iterator[Figure]:
    """The data pipeline from source (top) to device, one row an operation; branches side by side."""
    nodes = {int(node["id"]): node for node in data["nodes"]}
    if not nodes:
        return
    found = showing(report, ("pipeline_op.", "queue."), ("pipeline_op", "queue", "run"))
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
            or_dash(node.get("workers"), "count"),
            or_dash(node.get("us"), "us"),
            or_dash(node.get("busy"), "ratio"),
            or_dash(queue.get(key, {}).get("use"), "ratio"),
            or_dash(queue.get(key, {}).get("empty"), "ratio"),
        )
        for key, node in sorted(nodes.items(), reverse=True)
    )
    words = ("operation", "workers", "time", "busy", "queue_use", "queue_empty")
    head = tuple(both(f"figures.{name}") for name in words)
    note = both("figures.pipeline_legend")
    yield Figure("pipeline", both("figures.pipeline"), head, rows, note=note, graph=graph, findings=ids(found))


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
