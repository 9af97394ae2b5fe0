"""Multiplications by their shapes: how much work they are, and what padding and data types add to it (S57, S68)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from advisor.facts.operators.kinds import dtypes, elements, is_cube, moved_bytes, result_rows, rows, shapes
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Signature

BLOCK = 16
"""The cube unit multiplies blocks of 16 × 16 (S57)."""
BURST = 32
"""Bytes of one access to device memory: a row that is no multiple of them starts inside of one (S57)."""
LAUNCH_US = limit("kernels", "launch_us")
"""Kernels shorter than this mostly start and stop: their time per unit of work says nothing about the work."""
BALANCE = limit("kernels", "balance")
"""Floating-point operations a device does in the time in which it moves a byte (half precision, about 320 TFLOP/s
against 1.6 TB/s): which of the two a call's time goes with."""
REACH = limit("kernels", "memory_reach")
"""Part of a card's memory bandwidth from which on memory limits a call, whatever the counters of its units say."""
SIZE_CLASS = limit("kernels", "size_class")
"""Time per unit of work is compared between calls whose work differs by no more than this factor."""


class MatMul(Struct, frozen=True):
    """A multiplication of batch × (m × k) by (k × n)."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def flop(self) -> int:
        return 2 * self.batch * self.m * self.k * self.n

    @property
    def balanced(self) -> float:
        """Bytes that the device moves in the time in which it computes this."""
        return self.flop / BALANCE

    @property
    def useful(self) -> float:
        """Useful part of what the cube unit computes once every dimension is padded to blocks of 16."""
        padded = 1
        for size in (self.m, self.k, self.n):
            padded *= ceil(size / BLOCK) * BLOCK
        return self.m * self.k * self.n / padded

    def padding(self, moved: float) -> float:
        """Part of a call's time that padding costs, by the slower of computing and of moving these bytes: where memory
        is the limit the cube unit has time to compute the padding. One row of a decoding model costs none."""
        return 1 - max(self.balanced, moved) / max(self.flop / self.useful / BALANCE, moved)

    def aligned(self) -> str:
        """The dimensions that are no multiples of 16 with their next multiple: `k 1000 → 1008`."""
        return ", ".join(
            f"{name} {size} → {ceil(size / BLOCK) * BLOCK}"
            for name, size in (("m", self.m), ("k", self.k), ("n", self.n))
            if size % BLOCK
        )


def matmul(signature: Signature) -> MatMul | None:
    """The multiplication of a MatMul in plain layout, from the sizes of its tensors, so that transposed inputs do not
    matter; None where shapes do not tell or the layout is blocked already."""
    if not is_cube(signature) or "Conv" in signature.type or "Grouped" in signature.type:
        return None
    layouts = {part.removeprefix("FORMAT_") for part in signature.input_formats.split(";")[:2]}
    if not layouts <= {"ND", "NCHW", ""}:
        return None
    inputs, outputs = shapes(signature.input_shapes), shapes(signature.output_shapes)
    if not inputs or not outputs or len(inputs) < 2 or len(outputs[0]) < 2 or min(map(elements, inputs[:2])) < 1:
        return None
    *batches, m, n = outputs[0]
    batch = elements(tuple(batches))
    if m < 1 or n < 1 or batch < 1:
        return None
    k, rest = divmod(elements(inputs[0]), batch * m)
    if rest or k < 1 or elements(inputs[1]) not in (k * n, batch * k * n):
        return None
    return MatMul(batch, m, k, n)


def unaligned_rows(signature: Signature) -> dict[int, int]:
    """Sizes of a multiplication's rows, read or written, that are no multiple of 32 bytes -> the next that is."""
    return {} if matmul(signature) is None else _off(rows(signature)) | _off(result_rows(signature))


def _off(sizes: Iterable[tuple[int, int]]) -> dict[int, int]:
    steps = ((size, BURST // width) for size, width in sizes)
    return {size: ceil(size / step) * step for size, step in steps if size % step}


def is_compute_bound(signature: Signature) -> bool:
    """Whether a multiplication is limited by the cube unit rather than by memory; False where shapes do not tell."""
    product = matmul(signature)
    return product is not None and product.balanced > moved_bytes(signature) > 0


class UnalignedRows(Struct, frozen=True):
    """Large multiplications whose rows are off 32 bytes: microseconds over the profile, busy part of the cube unit."""

    us: float
    mac_ratio: float | None
    aligned_ratio: float | None
    """Busy part in the large multiplications of the same type whose rows are aligned, of similar size where there are
    such; None without any."""
    shape: str
    align: str
    speed_ratio: float | None = None
    """Where nothing counted how busy the cube unit was: operations per second as a multiple of those of aligned ones of
    similar size and the same type of data."""


class _Large(NamedTuple):
    us: float
    mac: float
    flop: int
    rate: float
    """Operations per microsecond."""
    signature: Signature
    off: dict[int, int]


def unaligned(
    signatures: Sequence[Signature], counts: Sequence[float], totals: Sequence[float], macs: Sequence[float]
) -> UnalignedRows | None:
    """The unaligned ones among the signatures of one type; `macs` is NaN where the cube's counter was not collected.

    Small or memory-bound multiplications leave the cube idle anyway and do not enter. Tables tell a transposed input
    as it is used, a result as it lies: a size that is off in the rows of one is so in all calls that take it.
    """
    large = [
        _Large(us, mac, product.flop, product.flop * n / us, signature, unaligned_rows(signature))
        for signature, n, us, mac in zip(signatures, counts, totals, macs, strict=True)
        if n > 0 and us / n >= LAUNCH_US and is_compute_bound(signature) and (product := matmul(signature))
    ]
    counted = [call for call in large if call.mac == call.mac]
    by_speed, large = not counted, counted or large
    off = {size: even for call in large for size, even in _off(result_rows(call.signature)).items()}
    odd = [call for call in large if call.off or _sizes(call.signature) & off.keys()]
    if not odd:
        return None
    even = [call for call in large if call not in odd]
    if by_speed:
        return _by_speed(odd, even, off)
    beside = [(call.us, _busy(_alike(call, even))) for call in odd] if even else []
    worst = max(odd, key=lambda call: call.us * (1 - call.mac))
    return UnalignedRows(
        sum(call.us for call in odd), _busy(odd),
        sum(us * mac for us, mac in beside) / sum(us for us, _ in beside) if beside else None,
        worst.signature.input_shapes, _aligned(worst, off),
    )  # fmt: skip


def _aligned(call: _Large, off: Mapping[int, int]) -> str:
    """Its sizes that are off, and what they would be."""
    align = call.off or {size: off[size] for size in sorted(_sizes(call.signature) & off.keys())}
    return ", ".join(f"{size} → {even}" for size, even in align.items())


def _by_speed(odd: Sequence[_Large], even: Sequence[_Large], off: Mapping[int, int]) -> UnalignedRows | None:
    """What they reach of the speed of the middle one of those beside them; None where none of them can be compared."""
    pairs = [
        (call, median(other.rate for other in alike))
        for call in odd
        if (alike := [
            other for other in even
            if 1 / SIZE_CLASS <= other.flop / call.flop <= SIZE_CLASS
            and dtypes(other.signature.input_dtypes) == dtypes(call.signature.input_dtypes)
        ])
    ]  # fmt: skip
    if not pairs:
        return None
    us = sum(call.us for call, _ in pairs)
    worst, _ = max(pairs, key=lambda pair: pair[0].us * (1 - pair[0].rate / pair[1]))
    reached = sum(call.us * min(call.rate / usual, 1.0) for call, usual in pairs) / us
    return UnalignedRows(us, None, None, worst.signature.input_shapes, _aligned(worst, off), reached)


def _sizes(signature: Signature) -> set[int]:
    product = matmul(signature)
    return set() if product is None else {product.m, product.k, product.n}


def _alike(call: _Large, others: Sequence[_Large]) -> Sequence[_Large]:
    """Those of similar size; all of them where there are none."""
    return [each for each in others if 1 / SIZE_CLASS <= each.flop / call.flop <= SIZE_CLASS] or others


def _busy(calls: Sequence[_Large]) -> float:
    return sum(call.us * call.mac for call in calls) / sum(call.us for call in calls)


FULL, HALF = ("FLOAT", "FLOAT32"), ("FLOAT16", "BF16", "BFLOAT16")


def float32_ratio(
    signatures: Sequence[Signature], counts: Sequence[float], totals: Sequence[float]
) -> tuple[float, float] | None:
    """(microseconds over the profile of a type's float32 multiplications, what they would take at the speed of its
    half-precision ones of similar size); None where there are not both. Per FLOP: half precision also moves half."""
    rows = [
        (product.flop, t / n / product.flop, t, dtypes(s.input_dtypes)[:1])
        for s, n, t in zip(signatures, counts, totals, strict=True)
        if n > 0 and t / n >= LAUNCH_US and (product := matmul(s)) is not None
    ]
    halves = [(flop, rate) for flop, rate, _, kind in rows if kind and kind[0] in HALF]
    full = half = 0.0
    for flop, rate, t, kind in rows:
        alike = [h for h in halves if 1 / SIZE_CLASS <= h[0] / flop <= SIZE_CLASS]
        if kind and kind[0] in FULL and alike:
            nearest = min(alike, key=lambda h: (max(h[0] / flop, flop / h[0]), h[1]))
            full += t
            half += t * min(nearest[1] / rate, 1.0)
    return (full, half) if full else None
