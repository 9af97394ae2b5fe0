"""Lines for a terminal: broken at blanks and between wide characters, never before a mark that closes."""

from __future__ import annotations

from unicodedata import category

from rich.cells import cell_len
from rich.text import Text as Line

from advisor.basics.units import NBSP

_NOT_FIRST = ("Pe", "Pf", "Po")
_NOT_LAST = ("Ps", "Pi")
"""Unicode categories of what closes (brackets, quotes, stops) and of what opens."""


def wrapped(line: Line, width: int) -> list[Line]:
    """The line in pieces of at most `width` columns, with its styles."""
    if cell_len(line.plain) <= width:
        return [line]
    pieces = line.divide(_breaks(line.plain, width))
    for number, piece in enumerate(pieces):
        if number:
            blanks = len(piece.plain) - len(piece.plain.lstrip(" "))
            pieces[number] = piece[blanks:] if blanks else piece
        pieces[number].rstrip()
    return [piece for piece in pieces if piece.plain]


def _breaks(text: str, width: int) -> list[int]:
    """Where to break: the last place in reach that allows it, anywhere in a word that is too long."""
    found, start, column, allowed, index = [], 0, 0, 0, 0
    while index < len(text):
        if index > start and _may_break(text[index - 1], text[index]):
            allowed = index
        column += cell_len(text[index])
        if column > width and text[index] != " ":
            start = allowed if allowed > start else max(index, start + 1)
            found.append(start)
            while start < len(text) and text[start] == " ":
                start += 1
            index, column = start, 0
            continue
        index += 1
    return found


def _may_break(before: str, after: str) -> bool:
    if before == " ":
        return after != " "
    if NBSP in (before, after):
        return False
    wide = cell_len(before) > 1 or cell_len(after) > 1
    return wide and category(after) not in _NOT_FIRST and category(before) not in _NOT_LAST and after != " "
