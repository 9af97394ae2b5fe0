"""Columns of texts as numbers: what stands in a hundred thousand rows is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.basics.arrays import Ints


@dataclass(frozen=True)
class Coded:
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

    def each(self, function: Callable[[Any], Hashable]) -> Coded:
        """What the function makes of each cell; cells of which it makes the same are told apart no longer."""
        made = Coded.of([function(cell) for cell in self.told])
        return Coded(made.codes[self.codes], made.told)

    def at(self, places: Ints) -> npt.NDArray[np.object_]:
        """The cells at these places."""
        cells = np.empty(len(self.told), object)
        cells[:] = self.told
        found: npt.NDArray[np.object_] = cells[self.codes[places]]
        return found

    def everything(self) -> list[Any]:
        """All cells."""
        return [self.told[code] for code in self.codes.tolist()]
