"""CSV files just as programs write them: no quotes, as many cells in every line as in the heading, no row twice.

Nearly all are. Every other one is left to `csvfiles`, which looks at each row and says what is wrong; both give the
same cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path

from msgspec import Struct

from advisor.sources.text.textfiles import require_file

_LARGEST = 1 << 26
"""Bytes of a file that is taken apart as a whole."""
_TOGETHER = 1 << 12
"""Rows that are cut into cells at once: those of all columns are there until the wanted ones are picked."""


class Plain(Struct, frozen=True):
    """The lines of such a file."""

    heading: list[str]
    lines: list[str]

    def columns(self, positions: Sequence[int]) -> list[list[str | None]]:
        """The cells of these columns."""
        picked: list[list[str | None]] = [[] for _ in positions]
        for cells in self._cells():
            for column, position in zip(picked, positions, strict=True):
                column += cells[position :: len(self.heading)]
        return picked

    def _cells(self) -> Iterator[list[str]]:
        for first in range(0, len(self.lines), _TOGETHER):
            yield ",".join(self.lines[first : first + _TOGETHER]).split(",")


def read_plain(path: Path, *, once: bool) -> Plain | None:
    """The lines of a file that is as programs write it, else None. A row may stand there again unless `once`."""
    if require_file(path) > _LARGEST:
        return None
    data = path.read_bytes()
    if not data.isascii() or b'"' in data or b"\x00" in data:
        return None
    text = data.decode("ascii").replace("\r\n", "\n").removesuffix("\n")
    if "\r" in text or ";" in text:
        return None
    heading, *lines = text.split("\n")
    commas = heading.count(",")
    if not lines or not commas or {*map(str.count, lines, repeat(","))} != {commas}:
        return None
    begun = {line[0] for line in (heading, *lines)}  # what begins with a cell is no blank row
    if "," in begun or any(map(str.isspace, begun)) or heading in lines or (once and len(set(lines)) < len(lines)):
        return None
    return Plain(heading.split(","), lines)
