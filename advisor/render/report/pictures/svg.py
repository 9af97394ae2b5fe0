"""A drawing as SVG: shapes with classes (the page's style gives colours), text in both languages, axes."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence

from markupsafe import Markup

from advisor.model import Text
from advisor.render.escaping import printable

Cell = Text | str
WIDE, NARROW = 1120, 540
"""Widths of a picture across the page and of one of two side by side, in units of the drawing."""


class Drawing:
    """Shapes in the order in which they are painted."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[Markup] = []
        self._role = "img"

    def rect(self, x: float, y: float, width: float, height: float, css: str, title: str = "") -> None:
        if title:
            self._add(
                '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
                css, _n(x), _n(y), _n(max(width, 0)), _n(max(height, 0)), title,
            )  # fmt: skip
            return
        shape = '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>'
        self._add(shape, css, _n(x), _n(y), _n(max(width, 0)), _n(max(height, 0)))

    def boxes(self, boxes: Sequence[tuple[float, float, float, float]], css: str) -> None:
        """Many rectangles (x, y, width, height) as one shape, which takes a quarter of the room."""
        if boxes:
            path = "".join(f"M{_n(x)} {_n(y)}h{_n(w)}v{_n(h)}h-{_n(w)}z" for x, y, w, h in boxes if w > 0 and h > 0)
            self._add('<path class="{}" d="{}"/>', css, path)

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        self._add('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>', css, _n(x1), _n(y1), _n(x2), _n(y2))

    def path(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """A line through these points."""
        if points:
            way = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
            self._add('<path class="{}" d="{}"/>', css, way)

    def text(
        self, x: float, y: float, words: Cell, css: str = "small", anchor: str = "start", turn: float = 0.0
    ) -> None:
        where: tuple[object, ...] = (_n(x), _n(y), anchor)
        turned = Markup(' transform="rotate({} {} {})"').format(_n(turn), _n(x), _n(y)) if turn else Markup("")
        if isinstance(words, str) or words.en == words.zh:
            said = words if isinstance(words, str) else words.en
            text = '<text class="{}" x="{}" y="{}" text-anchor="{}"{}>{}</text>'
            self._add(text, css, *where, turned, said)
            return
        for lang, said in (("en", words.en), ("zh", words.zh)):
            text = '<text class="{} {}" x="{}" y="{}" text-anchor="{}"{}>{}</text>'
            self._add(text, css, lang, *where, turned, said)

    def mark(self, x: float, y: float, finding: str, anchor: str = "middle") -> None:
        """The finding that this place shows, linked to it."""
        self._role = "group"  # what holds links is no image to those who listen to a page
        self._add(
            '<a href="#{}"><text class="mark" x="{}" y="{}" text-anchor="{}">{}</text></a>',
            anchor_of(finding), _n(x), _n(y), anchor, finding,
        )  # fmt: skip

    def field(
        self, x: float, y: float, width: float, height: float, levels: Sequence[Sequence[float]], name: str
    ) -> None:
        """A grid of values from 0 to 1 as shades of one colour, nothing where a value is below 0. It is a small image
        that masks the colour, so that thousands of cells take a few kilobytes and still follow the page's theme."""
        rows, columns = len(levels), len(levels[0])
        place = (_n(x), _n(y), _n(width), _n(height))
        for part, css in (("seen", "base"), ("shade", "shade")):
            pixels = [
                [0 if v < 0 else 255 if part == "seen" else round(min(max(v, 0.0), 1.0) * 15) * 17 for v in row]
                for row in levels
            ]
            self._add(
                '<mask id="{}-{}" maskUnits="userSpaceOnUse" x="{}" y="{}" width="{}" height="{}"><image x="{}" y="{}" '
                'width="{}" height="{}" preserveAspectRatio="none" href="{}"/></mask>'
                '<rect class="{}" mask="url(#{}-{})" x="{}" y="{}" width="{}" height="{}"/>',
                name, part, *place, *place, _png(pixels, columns, rows), css, name, part, *place,
            )  # fmt: skip

    def markup(self, caption: str) -> Markup:
        """The drawing, named by the element with the id `caption`."""
        return Markup(
            '<svg class="picture{}" viewBox="0 0 {} {}" role="{}" aria-labelledby="{}">{}</svg>'
        ).format(
            " broad" if self.width > NARROW else "", _n(self.width), _n(self.height), self._role, caption,
            self._joined(),
        )  # fmt: skip

    def _joined(self) -> Markup:
        return Markup("").join(self._parts)

    def _add(self, form: str, *values: object) -> None:
        """Texts lose control characters: what a saved report calls a part of a step may stand in any attribute."""
        inert = (printable(v) if isinstance(v, str) and not isinstance(v, Markup) else v for v in values)
        self._parts.append(Markup(form).format(*inert))


def _n(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def anchor_of(identity: str) -> str:
    """The id of a finding as an id of the page; anything unusual is hashed."""
    import hashlib

    if identity.isascii() and identity.isalnum():
        return f"finding-{identity}"
    return "finding-x" + hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:12]


def ticks(largest: float, most: int = 5) -> list[float]:
    """Round numbers from 0 to at least nine tenths of the largest value."""
    if not largest > 0 or not math.isfinite(largest):
        return [0.0]
    raw = largest / most
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    return [step * i for i in range(int(largest / step + 1e-9) + 1)]


def shown(value: float) -> str:
    """A number of an axis."""
    return f"{value:.4g}"


def rounded(value: float, digits: int) -> str:
    """A number of a scale's end, which need not be round, with so many digits."""
    places = 0 if not value else max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{places}f}"


def _png(pixels: Sequence[Sequence[int]], width: int, height: int) -> str:
    """Rows of grey values (0 to 255) as the address of an image."""
    raw = b"".join(b"\0" + bytes(row) for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(whole).decode()
