"""What ran when: lanes of one step, and all ranks of a step on one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from advisor.model import Text
from advisor.render.report.pictures.svg import WIDE, Cell, Drawing, shown, ticks

_LEFT = 180
_FIRST = 14


def lanes(
    rows: Sequence[tuple[Cell, str, Sequence[Sequence[float]]]], end: float, unit: str, factor: float,
    marks: Mapping[int, Sequence[str]], caption: str,
) -> str:  # fmt: skip
    """Rows of (name, class, spans [start, length] in microseconds); `end` is the step's."""
    pitch = 40
    drawing = Drawing(WIDE, _FIRST + pitch * len(rows) + 30)
    _axis(drawing, end, unit, factor, _FIRST + pitch * len(rows))
    scale = (WIDE - _LEFT - 14) / end
    for index, (name, css, spans) in enumerate(rows):
        top = _FIRST + pitch * index
        told = marks.get(index, ())
        drawing.text(_LEFT - 10, top + (16 if told else 23), name, "label", "end")
        drawing.boxes([(_LEFT + a * scale, top + 6, max(b * scale, 0.8), pitch - 12) for a, b in spans], css)
        for number, finding in enumerate(told):
            drawing.mark(_LEFT - 10 - 34 * number, top + 33, finding, "end")
    return drawing.markup(caption)


def all_ranks(data: Mapping[str, Any], names: Mapping[int, Text], unit: str, factor: float, marks: Mapping[int, str],
              caption: str) -> str:  # fmt: skip
    """Rows of ranks (computing above, collectives below: hatched while they wait for the last) and of groups (the part
    of their ranks that computes), links from the first to the last who comes, and the critical path."""
    rows = data["rows"]
    heights = [26 if "rank" in row else 18 for row in rows]
    bottom = _FIRST + sum(heights)
    drawing = Drawing(WIDE, bottom + 30)
    end = float(data["duration_us"])
    scale = (WIDE - _LEFT - 14) / end
    _axis(drawing, end, unit, factor, bottom)
    top = _FIRST
    middle: dict[int, float] = {}
    open_ranks = {int(row["rank"]) for row in rows if "rank" in row}
    for index, row in enumerate(rows):
        drawing.text(_LEFT - 10, top + 15, names[index], "label", "end")
        if "rank" in row:
            middle[int(row["rank"])] = top + 9
            for part, css, offset, thick in (
                ("computing", "p-computing", 4, 11), ("waiting", "p-waiting", 15, 7),
                ("communication", "p-exposed_communication", 15, 7),
            ):  # fmt: skip
                spans = [(_LEFT + a * scale, top + offset, max(b * scale, 0.6), thick) for a, b in row[part]]
                drawing.boxes(spans, css)
        else:
            middle.update((int(rank), top + 9) for rank in row["ranks"] if int(rank) not in middle)
            busy = row["busy"]
            wide = (WIDE - _LEFT - 14) / len(busy)
            levels: dict[int, list[tuple[float, float, float, float]]] = {}
            for column, percent in enumerate(busy):
                level = min(int(percent) // 20, 4)
                levels.setdefault(level, []).append((_LEFT + wide * column, top + 3, wide + 0.2, 12))
            for level, boxes in sorted(levels.items()):
                drawing.boxes(boxes, f"busy-{level}")
        if index in marks:
            drawing.mark(8, top + 15, marks[index], "start")
        top += heights[index]
    for link in data["links"]:
        (early, begun), (late, met) = link["first"], link["last"]
        if early in open_ranks and late in open_ranks:
            way = ((_LEFT + begun * scale, middle[early] + 9), (_LEFT + met * scale, middle[late] + 9))
            drawing.path(way, "meeting")
    _path(drawing, data["path"], middle, open_ranks, scale)
    return drawing.markup(caption)


def _path(
    drawing: Drawing, path: Sequence[Sequence[Any]], middle: Mapping[int, float], open_ranks: set[int], scale: float
) -> None:
    """The pieces on rows that are drawn, joined where the path goes from one of them to another."""
    before: tuple[float, float] | None = None
    for rank, begin, end, what in path:
        if rank not in middle:
            before = None
            continue
        y = middle[rank] + (9 if what == "communication" and rank in open_ranks else 0)
        points = [(_LEFT + begin * scale, y), (_LEFT + end * scale, y)]
        if before is not None and abs(before[0] - points[0][0]) < 2 and before[1] != y:
            points.insert(0, before)
        drawing.path(points, "way waits" if what in ("idle", "absent") else "way")
        before = points[-1]


def _axis(drawing: Drawing, end: float, unit: str, factor: float, bottom: float) -> None:
    scale = (WIDE - _LEFT - 14) / end
    for value in ticks(end * factor, 8):
        x = _LEFT + value / factor * scale
        drawing.line(x, _FIRST, x, bottom, "grid")
        drawing.text(x, bottom + 16, shown(value), anchor="middle")
    drawing.text(_LEFT - 10, bottom + 16, unit, anchor="end")


def curves(
    series: Sequence[tuple[str, bool, Sequence[tuple[float, float]]]], x_unit: str, unit: str, caption: str
) -> str:
    """Lines of (class, dashed, points in the units of the axes)."""
    width, height, left, bottom = 540, 260, 52, 226
    drawing = Drawing(width, height)
    high = max((y for _, _, points in series for _, y in points), default=0.0) or 1.0
    last = max((x for _, _, points in series for x, _ in points), default=0.0) or 1.0
    for value in ticks(high):
        y = bottom - (bottom - 24) * value / high
        drawing.line(left, y, width - 14, y, "grid")
        drawing.text(left - 6, y + 4, shown(value), anchor="end")
    for value in ticks(last):
        drawing.text(left + (width - left - 14) * value / last, bottom + 16, shown(value), anchor="middle")
    drawing.text(4, 13, unit)
    drawing.text(width - 4, height - 4, x_unit, anchor="end")
    for css, dashed, points in series:
        drawing.path(
            [(left + (width - left - 14) * x / last, bottom - (bottom - 24) * y / high) for x, y in points],
            f"curve {css}{' dashed' if dashed else ''}",
        )
    return drawing.markup(caption)
