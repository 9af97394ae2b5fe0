"""Did you mean …? By edit distance: what was mistyped, not what merely looks alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_FARTHEST = 0.25
"""Part of a word's letters that may be wrong."""
_LONGEST = 80
_ALIKE = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1", "_": "-", " ": "-"})


def suggest(word: str, known: Iterable[str]) -> list[str]:
    """The known word that was most likely meant, alone in a list; an empty list where none is near."""
    wanted = word[:_LONGEST]
    best = min(((_distance(wanted, each[:_LONGEST]), each) for each in known), default=None)
    if best is None or best[0] > max(1.0, _FARTHEST * len(wanted)):
        return []
    return [best[1]]


def _distance(given: str, known: str) -> float:
    """Letters to insert, remove, exchange or swap; a wrong case, or a letter that looks like the other, is a tenth."""
    if given == known:
        return 0.0
    if abs(len(given) - len(known)) > max(1.0, _FARTHEST * len(given)):
        return float(len(given) + len(known))
    before: list[float] = []
    row = [float(index) for index in range(len(known) + 1)]
    for i, letter in enumerate(given, 1):
        earlier, before = before, row
        row = [float(i)]
        for j, other in enumerate(known, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + _price(letter, other))
            if i > 1 and j > 1 and letter == known[j - 2] and given[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


@lru_cache(4096)
def _price(letter: str, other: str) -> float:
    if letter == other:
        return 0.0
    return 0.1 if letter.casefold() == other.casefold() or letter.translate(_ALIKE) == other.translate(_ALIKE) else 1.0
