"""Conversions of what a loss is computed from, and of its gradient: in float32, as its accuracy asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.facts.operators.kinds import dtypes, elements, is_conversion, is_loss, is_relayout, shapes
from advisor.facts.operators.shapes.work import FULL
from advisor.sources.streams.kernels import Kernels, Signature


def loss_sizes(signatures: Iterable[Signature]) -> frozenset[int]:
    """How many elements the inputs of the recording's losses have, the largest of each call."""
    return frozenset(size for each in signatures if is_loss(each.type) and (size := _size(each)))


def is_of_loss(signature: Signature, sizes: frozenset[int]) -> bool:
    """Whether it converts as many elements as a loss reads, to float32 or from it. A cast that is said to write the
    type it reads is none: of one of the two something else is told, and its size is what is left."""
    if not sizes or not is_conversion(signature.type):
        return False
    into, out_of = dtypes(signature.input_dtypes), dtypes(signature.output_dtypes)
    if not into or not out_of or _size(signature) not in sizes:
        return False
    misnamed = into == out_of and not is_relayout(signature.type)
    return misnamed or (into[0] in FULL) != (out_of[0] in FULL)


def beside_losses(kernels: Kernels, type_of: Ints, types: Sequence[str]) -> Mask:
    """The casts of which no shape is recorded (Level 0) and that run just before or after a loss on its stream: what
    they convert it reads, or has written."""
    found = np.zeros(len(kernels), bool)
    cast = np.array([name.lower() == "cast" for name in types], bool)
    loss = np.array([is_loss(name) for name in types], bool)
    if not (cast.any() and loss.any()):
        return found
    unshaped = np.array([not each.input_shapes for each in kernels.signatures], bool)[kernels.signature]
    known = np.flatnonzero(kernels.start >= 0)
    order = known[np.argsort(kernels.stream[known], kind="stable")]
    of_loss, stream = loss[type_of[order]], kernels.stream[order]
    same = stream[1:] == stream[:-1]
    beside = np.zeros(len(order), bool)
    beside[1:] |= of_loss[:-1] & same
    beside[:-1] |= of_loss[1:] & same
    found[order] = beside & cast[type_of[order]] & unshaped[order]
    return found


def _size(signature: Signature) -> int:
    return max(map(elements, shapes(signature.input_shapes) or ()), default=0)
