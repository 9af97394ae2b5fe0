"""Multiplications by their shapes: how much work they are, and what padding and data types add to it (S57, S68)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from advisor.facts.operators.kinds import dtypes, elements, is_cube, moved_bytes, rows, shapes
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


@dataclass(frozen=True)
class MatMul:
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


def unaligned_rows(signature: Signature) -> str:
    """Sizes of a multiplication's input rows that are no multiple of 32 bytes, with the next that is: `1023 → 1024`."""
    if matmul(signature) is None:
        return ""
    steps = ((size, BURST // width) for size, width in rows(signature))
    return ", ".join(dict.fromkeys(f"{size} → {ceil(size / step) * step}" for size, step in steps if size % step))


def is_compute_bound(signature: Signature) -> bool:
    """Whether a multiplication is limited by the cube unit rather than by memory; False where shapes do not tell."""
    product = matmul(signature)
    return product is not None and product.balanced > moved_bytes(signature) > 0


@dataclass(frozen=True)
class UnalignedRows:
    """Large multiplications whose rows are off 32 bytes: microseconds over the profile, busy part of the cube unit."""

    us: float
    mac_ratio: float
    aligned_ratio: float | None
    """Busy part in the large multiplications of the same type whose rows are aligned; None without such."""
    shape: str
    align: str


def unaligned(
    signatures: Sequence[Signature], counts: Sequence[float], totals: Sequence[float], macs: Sequence[float]
) -> UnalignedRows | None:
    """The unaligned ones among the signatures of one type; `macs` is NaN where the cube's counter was not collected.

    Small or memory-bound multiplications leave the cube idle anyway and do not enter.
    """
    large = [
        (us, mac, signature, unaligned_rows(signature))
        for signature, n, us, mac in zip(signatures, counts, totals, macs, strict=True)
        if n > 0 and us / n >= LAUNCH_US and mac == mac and is_compute_bound(signature)
    ]
    odd = [row for row in large if row[3]]
    if not odd:
        return None
    even = [row for row in large if not row[3]]
    worst = max(odd, key=lambda row: row[0] * (1 - row[1]))
    return UnalignedRows(
        sum(row[0] for row in odd), _busy(odd), _busy(even) if even else None, worst[2].input_shapes, worst[3]
    )


def _busy(weighted: Sequence[tuple[float, float, Signature, str]]) -> float:
    return sum(us * mac for us, mac, _, _ in weighted) / sum(us for us, _, _, _ in weighted)


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
