"""Convolutions over separate patches: where strides are as long as the kernel, every element of the input lies in one
patch, and the convolution is a product of two matrices, patches by weights (S56).

Vision models embed their images so. Convolution kernels pad few input channels to a whole block of the cube unit and
walk over small windows; a product of the same work does neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import prod

from msgspec import Struct

from advisor.facts.operators.kinds import dtypes, is_cube, moved_bytes, shapes
from advisor.facts.operators.shapes.flops import convolved
from advisor.facts.operators.shapes.work import LAUNCH_US, matmul
from advisor.knowledge.cards import KINDS as PRECISIONS
from advisor.knowledge.cards import least_peak
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Signature


class Patches(Struct, frozen=True):
    """The convolutions of one operator type over separate patches; microseconds over the profile."""

    us: float
    product_us: float
    """What the same operations take at the speed of the recording's matrix products, as far as memory lets them."""
    shape: str
    """Inputs of the costliest."""
    product: str
    """What it is as a product, rows × inner × columns."""
    by_card: bool = False
    """Whether no product of the recording tells how fast one is, and the slowest card stands for this one."""


class Product(Struct, frozen=True):
    """A convolution over separate patches as the product that it is; `padded` where a blocked layout fills the
    channels up, and the inner dimension is no longer than this."""

    rows: int
    inner: int
    columns: int
    padded: bool = False

    @property
    def flop(self) -> int:
        return 2 * self.rows * self.inner * self.columns

    def __str__(self) -> str:
        return f"{self.rows} × {'≤ ' * self.padded}{self.inner} × {self.columns}"


def product_of(signature: Signature) -> Product | None:
    """The product of a convolution over separate patches, in plain layouts or in blocks of channels; else None."""
    found = convolved(signature)
    if found is not None:
        return Product(*found.as_product) if found.separate else None
    return _of_blocks(signature) if "Conv" in signature.type and is_cube(signature) else None


_BLOCKED = {("NC1HWC0", "FRACTAL_Z"): 1, ("NDC1HWC0", "FRACTAL_Z_3D"): 2}
"""Formats of inputs and weights in blocks of channels -> which dimension of inputs and outputs counts the blocks."""


def _of_blocks(signature: Signature) -> Product | None:
    """Of blocks of channels: the weights have a block for each point of the kernel, by which the windows' size tells
    whether as many of them as there are results lie side by side."""
    images, weights, *_ = [part.removeprefix("FORMAT_") for part in (*signature.input_formats.split(";"), "", "")]
    at = _BLOCKED.get((images, weights))
    inputs, outputs = shapes(signature.input_shapes) or (), shapes(signature.output_shapes) or ()
    if at is None or len(inputs) < 2 or not outputs:
        return None
    given, kernel, results = inputs[0], inputs[1], outputs[0]
    if [*map(len, (given, kernel, results))] != [at + 4, 4, at + 4] or given[0] != results[0]:
        return None
    size, places = ([length for i, length in enumerate(shape[1:-1], 1) if i != at] for shape in (given, results))
    if not prod(places) or any(whole % place for whole, place in zip(size, places, strict=True)):
        return None
    window = prod(size) // prod(places)
    if window < 2 or given[at] * window != kernel[0]:
        return None
    return Product(given[0] * prod(places), kernel[0] * given[-1], kernel[1] * kernel[2], padded=True)


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
    carries: float, card: str = "",
) -> Patches | None:  # fmt: skip
    """None where no convolution is over separate patches. Where no product tells how fast it could be, a part of the
    `card`'s peak does, of the slowest where it is not named. Its memory `carries` so many bytes a second."""
    us = product_us = worst = 0.0
    shape, product, by_card = "", "", False
    for signature, calls, took in zip(signatures, counts, totals, strict=True):
        found, precision = product_of(signature), _precision(signature)
        measured = speeds.get(precision)
        speed = measured or limit("patches", "of_peak") * least_peak(card, precision) / 1e6
        if found is None or not speed:
            continue
        us += took
        product_us += calls * max(found.flop / speed, moved_bytes(signature) / carries * 1e6)
        if took > worst:
            worst, shape, product, by_card = took, signature.input_shapes, str(found), measured is None
    return Patches(us, product_us, shape, product, by_card) if us > 0 else None


def _precision(signature: Signature) -> str:
    return PRECISIONS.get((dtypes(signature.input_dtypes) or ("",))[0]) or ""
