"""Draws docs/performance.svg from the numbers measured last (benchmarks/measured.yaml).

    python -m benchmarks.picture

One row of bars a comparison (before and now, or scan and advise), and one line a quantity over the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "performance.svg"
WIDTH, LEFT, BAR, GAP = 760, 250, 14, 8
COLOURS = ("#8a94a6", "#0b6bcb")


def measured() -> Mapping[str, Any]:
    """The numbers as they were written down."""
    found: Mapping[str, Any] = yaml.safe_load((HERE / "measured.yaml").read_text(encoding="utf-8"))
    return found


def draw(numbers: Mapping[str, Any]) -> str:
    """The whole picture as SVG."""
    parts: list[str] = []
    height = 20.0
    for chart in numbers["bars"]:
        drawn = list(_bars(chart, height))
        parts += drawn
        height += 40 + len(chart["rows"]) * (2 * BAR + GAP) + 20
    for chart in numbers["lines"]:
        parts += _line(chart, height)
        height += 190
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{escape(numbers["title"])}</title>'
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="#1f2733">'
            f"{escape(text)}</text>")  # fmt: skip


def _bars(chart: Mapping[str, Any], top: float) -> Iterator[str]:
    most = max(value for _, *values in chart["rows"] for value in values)
    scale = (WIDTH - LEFT - 70) / most
    yield _text(10, top + 12, chart["title"], weight="bold")
    for place, name in enumerate(chart["series"]):
        x = LEFT + place * 190
        yield f'<rect x="{x}" y="{top + 22:.1f}" width="10" height="10" fill="{COLOURS[place]}"/>'
        yield _text(x + 15, top + 31, name)
    y = top + 42
    for name, *values in chart["rows"]:
        yield _text(LEFT - 10, y + BAR + 4, name, "end")
        for place, value in enumerate(values):
            width = max(value * scale, 1)
            at = y + place * BAR
            yield f'<rect x="{LEFT}" y="{at:.1f}" width="{width:.1f}" height="{BAR - 2}" fill="{COLOURS[place]}"/>'
            yield _text(LEFT + width + 5, at + BAR - 3, f"{value:g}")
        y += 2 * BAR + GAP


def _line(chart: Mapping[str, Any], top: float) -> list[str]:
    points: Sequence[Sequence[float]] = chart["points"]
    most_x, most_y = (max(point[axis] for point in points) for axis in (0, 1))
    place = [(LEFT + x / most_x * (WIDTH - LEFT - 70), top + 160 - y / most_y * 110) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    return [
        _text(10, top + 12, chart["title"], weight="bold"),
        f'<line x1="{LEFT}" y1="{top + 160:.1f}" x2="{WIDTH - 60}" y2="{top + 160:.1f}" stroke="#8a94a6"/>',
        f'<polyline points="{path}" fill="none" stroke="{COLOURS[1]}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[1]}"/>' for x, y in place),
        *(_text(x, y - 8, f"{value:g}", "middle") for (x, y), (_, value) in zip(place, points, strict=True)),
        *(_text(x, top + 176, f"{ranks:g}", "middle") for (x, _), (ranks, _) in zip(place, points, strict=True)),
        _text(LEFT - 10, top + 176, chart["axis"], "end"),
    ]


def main() -> None:
    """Writes the picture."""
    PICTURE.write_text(draw(measured()), encoding="utf-8")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
