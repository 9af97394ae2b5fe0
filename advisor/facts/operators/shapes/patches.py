"""Convolutions over separate patches: where strides are as long as the kernel, every element of the input lies in one
patch, and the convolution is a product of two matrices, patches by weights (S56).

Vision models embed their images so. Convolution kernels pad few input channels to a whole block of the cube unit and
walk over small windows; a product of the same work does neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from advisor.facts.operators.kinds import dtypes, moved_bytes
from advisor.facts.operators.shapes.flops import convolved
from advisor.facts.operators.shapes.work import LAUNCH_US, matmul
from advisor.knowledge.cards import KINDS as PRECISIONS
from advisor.sources.streams.kernels import Signature


@dataclass(frozen=True)
class Patches:
    """The convolutions of one operator type over separate patches; microseconds over the profile."""

    us: float
    product_us: float
    """What the same operations take at the speed of the recording's matrix products, as far as memory lets them."""
    shape: str
    """Inputs of the costliest."""
    product: str
    """What it is as a product, rows × inner × columns."""


def product_speeds(
    signatures: Iterable[Signature], counts: Iterable[float], totals: Iterable[float]
) -> dict[str, float]:
    """Precision -> floating-point operations in a microsecond, over the matrix products that run long enough."""
    done: dict[str, float] = defaultdict(float)
    lasts: dict[str, float] = defaultdict(float)
    for signature, calls, us in zip(signatures, counts, totals, strict=True):
        product = matmul(signature)
        if product is not None and calls > 0 and us / calls >= LAUNCH_US:
            done[_precision(signature)] += product.flop * calls
            lasts[_precision(signature)] += us
    return {precision: flops / lasts[precision] for precision, flops in done.items() if precision}


def patches_of(
    signatures: Iterable[Signature], counts: Iterable[float], totals: Iterable[float], speeds: Mapping[str, float],
    carries: float,
) -> Patches | None:  # fmt: skip
    """None where no convolution is over separate patches, or no product tells how fast it could be. The card's memory
    `carries` so many bytes a second."""
    us = product_us = worst = 0.0
    shape = product = ""
    for signature, calls, took in zip(signatures, counts, totals, strict=True):
        found = convolved(signature)
        if found is None or not found.separate or not (speed := speeds.get(_precision(signature))):
            continue
        us += took
        product_us += calls * max(found.flop / speed, moved_bytes(signature) / carries * 1e6)
        if took > worst:
            worst, shape, product = took, signature.input_shapes, " × ".join(map(str, found.as_product))
    return Patches(us, product_us, shape, product) if us > 0 else None


def _precision(signature: Signature) -> str:
    return PRECISIONS.get((dtypes(signature.input_dtypes) or ("",))[0]) or ""
