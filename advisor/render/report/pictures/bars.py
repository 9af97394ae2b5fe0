"""Bars: columns of a step's parts, and named rows of one quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len

from advisor.model import Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.pictures.svg import NARROW, WIDE, Cell, Drawing, shown, ticks

SINGLE_BARS = 96
"""Up to so many columns each has its numbers under the pointer; more are drawn as one shape."""
_LEFT, _TOP, _ROW = 52, 24, 22


@dataclass(frozen=True)
class Bars:
    """Labels, and for each series its colour's class with one value a label. `marks` are findings by label's index;
    `line` a value to compare with, and what it is called."""

    labels: Sequence[Cell]
    series: Sequence[tuple[str, Sequence[float]]]
    unit: str
    title: Cell = ""
    marks: Mapping[int, str] = field(default_factory=dict)
    line: tuple[float, Text] | None = None
    beside: bool = False
    """Series stand beside each other, not on top."""
    ticks: Mapping[int, float] = field(default_factory=dict)
    """A second value to compare with, of single lying bars."""


def columns(bars: Bars, caption: str, wide: bool = False) -> str:
    """Upright bars, one a label."""
    names = [shorten(printable(label if isinstance(label, str) else label.en), 22) for label in bars.labels]
    turned = max(map(len, names)) > 6
    width, height = (WIDE if wide else NARROW), 250 + (70 if turned else 0)
    bottom = height - (110 if turned else 42)
    drawing = Drawing(width, height)
    count = len(bars.labels)
    totals = [sum(values[i] for _, values in bars.series) for i in range(count)]
    if bars.beside:
        totals = [max(values[i] for _, values in bars.series) for i in range(count)]
    largest = max([*totals, bars.line[0] if bars.line else 0.0]) or 1.0
    room, tall = width - _LEFT - 14, bottom - _TOP
    pitch = room / count
    thick = min(pitch * 0.8, 46.0) if count <= SINGLE_BARS else pitch  # gaps thinner than a pixel are only moiré
    for value in ticks(largest):
        y = bottom - tall * value / largest
        drawing.line(_LEFT, y, width - 14, y, "grid")
        drawing.text(_LEFT - 6, y + 4, shown(value), anchor="end")
    drawing.text(4, 13, bars.unit)
    longest = 3 if turned else max(map(len, names))
    every = max(-(-count * (7 * longest + 8) // int(room)), 1)
    shapes: dict[str, list[tuple[float, float, float, float]]] = {css: [] for css, _ in bars.series}
    for index in range(count):
        left = _LEFT + pitch * index + (pitch - thick) / 2
        at = float(bottom)
        part = thick / len(bars.series) if bars.beside else thick
        parts = " / ".join(f"{values[index]:.3g}" for _, values in bars.series)
        told = f"{names[index]}: {parts} {bars.unit}"
        for number, (css, values) in enumerate(bars.series):
            long = tall * values[index] / largest
            at = bottom - long if bars.beside else at - long
            x = left + part * number if bars.beside else left
            if count <= SINGLE_BARS:
                drawing.rect(x, at, part, long, css, told)
            else:
                shapes[css].append((x, at, part, long))
        middle = left + thick / 2
        if index in bars.marks:
            drawing.mark(middle, bottom - tall * totals[index] / largest - 5, bars.marks[index])
        if index % every == 0:
            anchor, turn = ("end", -35.0) if turned else ("middle", 0.0)
            drawing.text(middle, bottom + 15, _label(bars.labels[index]), "small", anchor, turn)
    for css, boxes in shapes.items():
        drawing.boxes(boxes, css)
    drawing.line(_LEFT, bottom, width - 14, bottom, "axis")
    if bars.line is not None:
        y = bottom - tall * bars.line[0] / largest
        drawing.line(_LEFT, y, width - 14, y, "limit")
        drawing.text(width - 14, 13, bars.line[1], "small over", "end")
    drawing.text(_LEFT + room / 2, height - 6, bars.title, anchor="middle")
    return drawing.markup(caption)


def rows(bars: Bars, caption: str, told: Sequence[Cell] = (), wide: bool = False) -> str:
    """Lying bars, one a label, with `told` at their ends and marks before the labels: for names that are long."""
    width = WIDE if wide else NARROW
    left, right = 216, max([max(map(_room, told), default=0) * 6.2 + 12, 60.0])
    height = 26 + _ROW * len(bars.labels) + 22
    drawing = Drawing(width, height)
    largest = max((value for _, values in bars.series for value in values), default=0.0) or 1.0
    room = width - left - right
    for value in ticks(largest, 4):
        x = left + room * value / largest
        drawing.line(x, 18, x, height - 22, "grid")
        drawing.text(x, height - 8, shown(value), anchor="middle")
    drawing.text(width - 4, height - 8, bars.unit, anchor="end")
    if bars.line is not None:
        x = left + room * min(bars.line[0] / largest, 1.0)
        drawing.line(x, 14, x, height - 22, "limit")
        drawing.text(x, 11, bars.line[1], anchor="middle")
    for index, label in enumerate(bars.labels):
        top = 22 + _ROW * index
        thick = (_ROW - 6) / len(bars.series)
        for number, (css, values) in enumerate(bars.series):
            long = room * values[index] / largest
            drawing.rect(left, top + thick * number, max(long, 1.0), thick, css)
        if index in bars.ticks:
            x = left + room * bars.ticks[index] / largest
            drawing.line(x, top - 3, x, top + _ROW - 3, "limit solid")
        drawing.text(left - 8, top + 13, _label(label), "label", "end")
        long = room * max(values[index] for _, values in bars.series) / largest
        if told:
            drawing.text(left + long + 6, top + 13, told[index])
        if index in bars.marks:
            drawing.mark(4, top + 13, bars.marks[index], "start")
    return drawing.markup(caption)


def _room(text: Cell) -> int:
    """Columns that a text takes in the wider of its languages."""
    return max(map(cell_len, (text,) if isinstance(text, str) else (text.en, text.zh)))


def _label(label: Cell) -> Cell:
    if isinstance(label, Text):
        return label
    return shorten(printable(label), 26)
