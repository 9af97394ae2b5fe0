"""Which kernels of a benchmark clear the cache before each launch of the one that is measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.basics.numbering import distinct
from advisor.facts.operators.kinds import moved_bytes
from advisor.facts.recording.limits import section
from advisor.sources.streams.kernels import Kernels, Signature


def clears(kernels: Kernels, types: Sequence[str], of: Ints) -> Mask:
    """For each type, whether it does nothing but clear the cache: it runs on one and the same large input between all
    launches of other kernels, which move less and take nothing from it."""
    return np.array([_clears(kernels, of == each) for each in range(len(types))], bool)


def _clears(kernels: Kernels, mine: Mask) -> bool:
    if not mine[:-1][~mine[1:]].all():  # something else runs before another kernel
        return False
    of_mine, of_others = (distinct(kernels.signature[rows]).tolist() for rows in (mine, ~mine))
    if len(of_mine) != 1 or not of_others or mine.sum() < section("repetition")["executions"]:
        return False
    own, others = kernels.signatures[of_mine[0]], [kernels.signatures[each] for each in of_others]
    moved, least = moved_bytes(own), section("benchmark")["cache_bytes"]
    return moved >= least and all(0 < moved_bytes(other) < moved and not _takes(other, own) for other in others)


def _takes(other: Signature, own: Signature) -> bool:
    """Whether the other kernel may read what this one wrote, or write what it reads."""
    written, read = (set(_each(shapes)) for shapes in (own.output_shapes, own.input_shapes))
    return not written.isdisjoint(_each(other.input_shapes)) or not read.isdisjoint(_each(other.output_shapes))


def _each(shapes: str) -> list[str]:
    return [shape.strip() for shape in shapes.split(";") if shape.strip()]
