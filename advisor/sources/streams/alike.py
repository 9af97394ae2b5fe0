"""What kernels of one name tell of each other: a name is one operator's, so that its type and its core are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.sources.frames import ABSENT

if TYPE_CHECKING:
    from advisor.sources.streams.kernels import Signature


def with_cores(signatures: Sequence[Signature], signature: Ints, name: Ints, lost: Mask) -> Ints:
    """The signature of each kernel; where its core is not told, or what stands there is `lost` (of each signature),
    that of the other kernels of its name which agree in all the rest: a damaged cell does not make two kernels of
    one."""
    untold = lost | np.array([each.core.lower() in ABSENT for each in signatures], bool)
    mine = untold[signature]
    if not mine.any() or mine.all():
        return signature
    told: dict[tuple[int, Signature], set[int]] = {}
    for of_name, kind in _pairs(name[~mine], signature[~mine], len(signatures)):
        told.setdefault((of_name, replace(signatures[kind], core="")), set()).add(kind)
    codes, of_code = np.unique(name[mine] * len(signatures) + signature[mine], return_inverse=True)
    found = codes % len(signatures)
    for place, (of_name, kind) in enumerate(zip((codes // len(signatures)).tolist(), found.tolist(), strict=True)):
        others = told.get((of_name, replace(signatures[kind], core="")), set())
        if len(others) == 1:
            (found[place],) = others
    filled: Ints = signature.copy()
    filled[mine] = found[of_code]
    return filled


def of_another_type(signatures: Sequence[Signature], signature: Ints, names: Sequence[str], name: Ints) -> int:
    """How many kernels bear another type than most of their name, or none."""
    index: dict[str, int] = {}
    types = np.array([index.setdefault(each.type, len(index)) for each in signatures], np.int64)[signature]
    first = np.zeros(len(names), np.int64)
    first[name] = types
    several = np.zeros(len(names), bool)
    several[name[first[name] != types]] = True
    several &= np.array([each.lower() not in ABSENT for each in names], bool)
    if not several.any():
        return 0
    mine = several[name]
    codes, counts = np.unique(name[mine] * len(index) + types[mine], return_counts=True)
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, codes // len(index), counts)
    return int(counts.sum() - most.sum())


def _pairs(name: Ints, signature: Ints, size: int) -> list[tuple[int, int]]:
    codes = np.unique(name * size + signature)
    return list(zip((codes // size).tolist(), (codes % size).tolist(), strict=True))
