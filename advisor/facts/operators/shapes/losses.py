"""Conversions of what a loss is computed from, and of its gradient: in float32, as its accuracy asks for."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.facts.operators.kinds import dtypes, elements, is_conversion, is_loss, shapes
from advisor.facts.operators.shapes.work import FULL
from advisor.sources.streams.kernels import Signature


def loss_sizes(signatures: Iterable[Signature]) -> frozenset[int]:
    """How many elements the inputs of the recording's losses have, the largest of each call."""
    return frozenset(size for each in signatures if is_loss(each.type) and (size := _size(each)))


def is_of_loss(signature: Signature, sizes: frozenset[int]) -> bool:
    """Whether it converts as many elements as a loss reads, to float32 or from it."""
    into, out_of = dtypes(signature.input_dtypes), dtypes(signature.output_dtypes)
    widened = bool(into and out_of) and (into[0] in FULL) != (out_of[0] in FULL)
    return widened and is_conversion(signature.type) and _size(signature) in sizes


def _size(signature: Signature) -> int:
    return max(map(elements, shapes(signature.input_shapes) or ()), default=0)
