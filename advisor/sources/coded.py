"""Columns of texts as numbers: what stands in a hundred thousand rows is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from advisor.basics.arrays import Ints, Mask
from advisor.basics.numbering import numbered


class Coded(Struct, frozen=True):
    """A column whose cells are indices into what they may say."""

    codes: Ints
    told: Sequence[Any]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, cells: Sequence[Hashable]) -> Coded:
        """A column of any cells."""
        index: dict[Hashable, int] = {}
        codes = np.fromiter((index.setdefault(cell, len(index)) for cell in cells), np.int64, len(cells))
        return cls(codes, [*index])

    def __iter__(self) -> Iterator[Any]:
        return map(self.told.__getitem__, self.codes.tolist())

    def each(self, function: Callable[[Any], Hashable]) -> Coded:
        """What the function makes of each cell; cells of which it makes the same are told apart no longer."""
        made = Coded.of([function(cell) for cell in self.told])
        return Coded(made.codes[self.codes], made.told)

    def beside(self, other: Coded, function: Callable[[Any, Any], Hashable]) -> Coded:
        """What the function makes of each cell and the one beside it in another column."""
        width = max(len(other.told), 1)
        pairs, code = numbered(self.codes * width + other.codes)
        return Coded(code, [(self.told[pair // width], other.told[pair % width]) for pair in pairs.tolist()]).each(
            lambda pair: function(*pair)
        )

    def where(self, function: Callable[[Any], bool]) -> Mask:
        """Of which cells it holds."""
        holds: Mask = np.array([*map(function, self.told)], bool)[self.codes]
        return holds

    def chosen(self, places: Ints | Mask) -> Coded:
        """The cells at these places."""
        return Coded(self.codes[places], self.told)

    def in_order(self) -> Coded:
        """The same, with what the cells say in the order in which it is first said; what none says is left out."""
        used, code = numbered(self.codes)
        first = np.empty(len(used), np.int64)
        first[code[::-1]] = np.arange(len(code))[::-1]
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return Coded(rank[code], [self.told[each] for each in used[order].tolist()])

    def texts(self) -> npt.NDArray[np.object_]:
        """All cells, as an array."""
        cells = np.empty(len(self.told), object)
        cells[:] = self.told
        found: npt.NDArray[np.object_] = cells[self.codes]
        return found
