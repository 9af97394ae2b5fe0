"""Fields of cells: rank by step, and rank by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.model import Text
from advisor.render.escaping import printable, shorten
from advisor.render.report.pictures.svg import NARROW, Cell, Drawing, rounded

LABELS = 12


def heat_map(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]], low: float, high: float,
    unit: str, factor: float, words: tuple[Cell, Cell], marks: Mapping[int, str], identity: str, caption: str,
) -> str:  # fmt: skip
    """A cell for each row and column, its shade from `low` to `high`, darkest beyond; what is below 0 was not
    measured."""
    left, top, width = 62, 22, NARROW
    tall = min(max(len(rows) * 14, 90), 420)
    wide = width - left - 96
    drawing = Drawing(width, top + tall + 38)
    drawing.rect(left, top, wide, tall, "unmeasured")
    spread = (high - low) or 1.0
    levels = [[-1.0 if v < 0 else max((v - low) / spread, 0.0) for v in row] for row in values]
    drawing.field(left, top, wide, tall, levels, identity)
    every = -(-len(rows) // LABELS)
    pitch = tall / len(rows)
    _marks(drawing, marks, top, pitch)
    for index, name in enumerate(rows):
        middle = top + pitch * (index + 0.5)
        if index % every == 0:
            drawing.text(left - 6, middle + 4, name, anchor="end")
    every = -(-len(columns) // LABELS)
    for index, name in enumerate(columns):
        if index % every == 0:
            x = left + wide * (index + 0.5) / len(columns)
            drawing.text(x, top + tall + 15, shorten(printable(name), 10), anchor="middle")
    drawing.text(left - 6, 13, words[0], anchor="end")
    drawing.text(left + wide / 2, top + tall + 32, words[1], anchor="middle")
    beyond = max(max(row) for row in values) > high * (1 + 1e-6)
    scale(drawing, width - 82, top, min(tall, 160), low * factor, high * factor, unit, identity, beyond=beyond)
    return drawing.markup(caption)


def matrix(
    labels: Sequence[str], values: Sequence[Sequence[float]], groups: Sequence[tuple[Cell, int]], high: float,
    unit: str, factor: float, slow: Sequence[tuple[int, int, str]], marks: Mapping[int, str],
    lines: Sequence[tuple[float, Text]], words: tuple[Cell, Cell], identity: str, caption: str,
) -> str:  # fmt: skip
    """From (rows) to (columns): bandwidth by shade, hatched where none was measured; `groups` are (name, first place)
    with a line before each, `slow` cells are outlined, `lines` are told on the scale."""
    left, top = 78, 46
    size = min(max(len(labels) * 26, 130), 310)
    drawing = Drawing(NARROW, top + size + 34)
    pitch = size / len(labels)
    drawing.rect(left, top, size, size, "unmeasured")
    drawing.field(left, top, size, size, [[v if v < 0 else v / high for v in row] for row in values], identity)
    every = -(-len(labels) // (LABELS if len(labels) > 16 else 16))
    longest = max(len(shorten(name, 12)) for name in labels)
    beside = max(-(-(7 * longest + 6) // max(int(pitch), 1)), 1)
    for index, name in enumerate(labels):
        if index % every == 0:
            at = pitch * (index + 0.5)
            drawing.text(left - 6, top + at + 4, shorten(name, 12), anchor="end")
        if index % beside == 0:
            drawing.text(left + pitch * (index + 0.5), top - 6, shorten(name, 12), anchor="middle")
    _marks(drawing, marks, top, pitch)
    ends = [at for _, at in groups[1:]] + [len(labels)]
    for (group, at), end in zip(groups, ends, strict=False):
        if 7 * len(group if isinstance(group, str) else group.en) < pitch * (end - at):
            drawing.text(left + pitch * (at + end) / 2, top + size + 16, group, anchor="middle")
    for _, at in groups[1:]:
        drawing.line(left + pitch * at, top, left + pitch * at, top + size, "between")
        drawing.line(left, top + pitch * at, left + size, top + pitch * at, "between")
    for row, column, told in slow:
        drawing.rect(left + pitch * column, top + pitch * row, pitch, pitch, "slow", told)
    drawing.text(left - 6, 14, words[0], anchor="end")
    drawing.text(left + size / 2, 14, words[1], anchor="middle")
    x = left + size + 18
    scale(drawing, x, top, min(size, 200), 0.0, high * factor, unit, identity, lines)
    return drawing.markup(caption)


def _marks(drawing: Drawing, marks: Mapping[int, str], top: float, pitch: float) -> None:
    """Findings before their rows; of neighbours with the same one, the first."""
    below, last = 0.0, ""
    for index, finding in sorted(marks.items()):
        at = top + pitch * (index + 0.5) + 4
        if at < below and finding == last:
            continue
        drawing.mark(2, max(at, below), finding, "start")
        below, last = max(at, below) + 13, finding


def scale(
    drawing: Drawing, x: float, y: float, height: float, low: float, high: float, unit: str, identity: str,
    lines: Sequence[tuple[float, Text]] = (), beyond: bool = False,
) -> None:  # fmt: skip
    """What the shades mean: from `high` (top) to `low`, with values to compare with, told below each other where they
    lie too close. `beyond`: some values are above `high`."""
    steps = 16
    drawing.field(x, y, 12, height, [[1 - i / (steps - 1)] for i in range(steps)], f"{identity}-scale")
    drawing.text(x + 17, y + 9, f"{'≥ ' if beyond else ''}{rounded(high, 3)} {unit}")
    drawing.text(x + 17, y + height, f"{rounded(low, 3)} {unit}")
    free = y + 24
    for value, words in sorted(lines, key=lambda line: -line[0]):
        if low < value <= high and high > low:
            at = y + height * (1 - (value - low) / (high - low))
            drawing.line(x - 4, at, x + 16, at, "limit")
            told = max(at + 4, free)
            drawing.text(x + 19, told if told < y + height - 12 else y + height + 15, words)
            free = told + 15
