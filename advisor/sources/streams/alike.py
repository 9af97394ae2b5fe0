"""What kernels of one name tell of each other: a name is one operator's, so that its type and its core are the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.sources.frames import ABSENT


def with_cores(cores: Sequence[str], rest: Callable[[int], Hashable], kind: Ints, name: Ints, lost: Mask) -> Ints:
    """The kind of each kernel, of which `cores` tells the core and `rest` all else; where the core is not told, or what
    stands there is `lost` (of each kind), that of the other kernels of its name which agree in the rest: a damaged cell
    does not make two kernels of one."""
    untold = lost | np.array([core.lower() in ABSENT for core in cores], bool)
    mine = untold[kind]
    if not mine.any() or mine.all():
        return kind
    told: dict[tuple[int, Hashable], set[int]] = {}
    for of_name, each in _pairs(np.unique(name[~mine] * len(cores) + kind[~mine]), len(cores)):
        told.setdefault((of_name, rest(each)), set()).add(each)
    codes, of_code = np.unique(name[mine] * len(cores) + kind[mine], return_inverse=True)
    found = codes % len(cores)
    for place, (of_name, each) in enumerate(_pairs(codes, len(cores))):
        others = told.get((of_name, rest(each)), set())
        if len(others) == 1:
            (found[place],) = others
    filled: Ints = kind.copy()
    filled[mine] = found[of_code]
    return filled


def of_another_type(types: Sequence[str], kind: Ints, names: Sequence[str], name: Ints) -> int:
    """How many kernels bear another type than most of their name, or none; `types` are those of their kinds."""
    index: dict[str, int] = {}
    of = np.array([index.setdefault(each, len(index)) for each in types], np.int64)[kind]
    first = np.zeros(len(names), np.int64)
    first[name] = of
    several = np.zeros(len(names), bool)
    several[name[first[name] != of]] = True
    several &= np.array([each.lower() not in ABSENT for each in names], bool)
    if not several.any():
        return 0
    mine = several[name]
    codes, counts = np.unique(name[mine] * len(index) + of[mine], return_counts=True)
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, codes // len(index), counts)
    return int(counts.sum() - most.sum())


def _pairs(codes: Ints, size: int) -> list[tuple[int, int]]:
    """(name, kind) of codes."""
    return list(zip((codes // size).tolist(), (codes % size).tolist(), strict=True))
