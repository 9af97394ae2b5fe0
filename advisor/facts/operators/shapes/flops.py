"""Floating-point operations of a call, from the shapes of its tensors: multiplications, convolutions, attention; and
where the same work takes longer (S56).

What a model needs, not what padding adds. Calls whose shapes leave a doubt have none: packed sequences, blocked
layouts, convolutions in groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.facts.operators.kinds import is_attention, is_cube, moved_bytes, shapes
from advisor.facts.operators.shapes.work import BALANCE, LAUNCH_US, SIZE_CLASS, is_compute_bound, matmul
from advisor.knowledge.measuring import limit
from advisor.knowledge.thresholds import shared_threshold
from advisor.sources.streams.kernels import Signature

WIDEST_HEAD = 256
"""A last dimension up to this is one head's, a larger one all heads' together: (tokens, heads, width) is packed."""
BACKWARD = 2
"""Backward multiplies twice for each time that forward does; what it computes again is no need of the model."""
ALIKE = limit("kernels", "alike")
"""Calls of similar size whose time per unit of work differs by no more than this factor are slow, or fast, alike."""
_PLAIN = ("ND", "NCHW", "NCDHW", "")

Shape = tuple[int, ...]


def flop(signature: Signature) -> int:
    """Operations of one call; 0 where shapes do not tell."""
    if is_attention(signature.type):
        return _attention(signature)
    if "Conv" in signature.type:
        convolution = convolved(signature)
        return 0 if convolution is None else convolution.flop
    product = matmul(signature)
    return 0 if product is None else product.flop


def _attention(signature: Signature) -> int:
    """Queries by keys, and the result by values; all of it, for no table tells of a mask."""
    tensors = [shape for shape in shapes(signature.input_shapes) or () if len(shape) in (3, 4)]
    if len(tensors) < 3 or len({len(shape) for shape in tensors[:3]}) > 1 or min(map(prod, tensors[:3])) < 1:
        return 0
    query, key = tensors[0], tensors[1]
    if len(query) == 3 and query[-1] <= WIDEST_HEAD:
        return 0
    length = max(key[:2]) if len(key) == 3 else max(key[1:3])
    return 4 * prod(query) * length * (BACKWARD if "grad" in signature.type.lower() else 1)


class Convolution(Struct, frozen=True):
    """One convolution, whichever of the three that training computes: shapes with the channels second."""

    data: Shape
    weights: Shape
    result: Shape
    forward: bool

    @property
    def flop(self) -> int:
        """Every output element takes the weights of one output channel."""
        return 2 * prod(self.result) * prod(self.weights[1:])

    @property
    def separate(self) -> bool:
        """Whether it takes separate patches: as many outputs along each axis as kernels fit beside each other."""
        kernel = self.weights[2:]
        tiled = all(out * k == size for out, k, size in zip(self.result[2:], kernel, self.data[2:], strict=True))
        return self.forward and tiled and prod(kernel) > 1

    @property
    def as_product(self) -> tuple[int, int, int]:
        """Rows, inner dimension and columns of the product that separate patches are with the weights."""
        return prod(self.result) // self.result[1], prod(self.weights[1:]), self.weights[0]


def convolved(signature: Signature) -> Convolution | None:
    """The convolution of a call; which tensor is which, the channels tell. None where they leave a doubt."""
    if "Conv" not in signature.type or not is_cube(signature):
        return None
    formats = [part.removeprefix("FORMAT_") for part in signature.input_formats.split(";")]
    inputs = [shape for shape in shapes(signature.input_shapes) or () if len(shape) in (4, 5) and prod(shape) > 0]
    outputs = [shape for shape in shapes(signature.output_shapes) or () if len(shape) in (4, 5) and prod(shape) > 0]
    if len(inputs) < 2 or not outputs or any(part not in _PLAIN for part in formats[:2]):
        return None
    first, second, out = inputs[0], inputs[1], outputs[0]
    # forward (data, weights -> out), gradient of the data (weights, gradient -> data), of the weights (data, gradient)
    for data, weights, result in ((first, second, out), (out, first, second), (out, second, first),
                                  (first, out, second), (second, out, first)):  # fmt: skip
        if weights[1] == data[1] and weights[0] == result[1] and data[0] == result[0]:
            return Convolution(data, weights, result, forward=result is out)
    return None


def work(signature: Signature) -> float:
    """Units of work of one call: bytes moved, or floating-point operations ÷ `BALANCE` where these are more (a small
    multiplication reads longer than it computes); 0 where unknown, as of attention: masks take from it."""
    moved = float(moved_bytes(signature))
    if is_attention(signature.type) or not is_cube(signature):
        return 0.0 if is_attention(signature.type) or "Conv" in signature.type else moved
    done = flop(signature)
    return max(moved, done / BALANCE) if done else 0.0


class SlowCase(Struct, frozen=True):
    """A shape or data type at which an operator is slower, per unit of work, than at another of similar size."""

    shape: str
    dtype: str
    calls: int
    ratio: float
    excess_us: float
    """What it takes longer, with all other cases of the type that are slow for the same reason."""
    reference: str


class _Pace(NamedTuple):
    """All calls of one signature."""

    signature: Signature
    calls: int
    us: float
    rate: float
    """Microseconds for a unit of work."""
    size: float
    """Units of work of one call."""

    def above(self, best: float) -> float:
        """Microseconds that they take longer than at the best rate."""
        return self.us * (1 - best / self.rate)

    def like(self, other: _Pace) -> bool:
        """Whether it is as slow as the other, at similar size and in the same data types."""
        return (
            self.signature.input_dtypes == other.signature.input_dtypes
            and 1 / SIZE_CLASS <= self.size / other.size <= SIZE_CLASS
            and 1 / ALIKE <= self.rate / other.rate <= ALIKE
        )


def _reads_alike(one: Signature, other: Signature) -> bool:
    return (one.input_shapes, one.input_dtypes) == (other.input_shapes, other.input_dtypes)


def _asks_else(one: Signature, other: Signature) -> bool:
    """Whether two calls on the same inputs write as much in other shapes: there is as much to do for both."""
    sizes = [sum(map(prod, shapes(each.output_shapes) or ())) for each in (one, other)]
    return one.output_shapes != other.output_shapes and 0 < max(sizes) <= SIZE_CLASS * min(sizes)


def slow_case(
    signatures: Sequence[Signature], counts: Sequence[float], totals: Sequence[float], reach: float = inf
) -> SlowCase | None:
    """The case that costs most among the signatures of one type, with what all slow ones of it cost; times are
    microseconds over the profile. What moves `reach` bytes a second is at the speed of memory and not slow, however
    fast smaller tensors come out of a cache. Two that read the same are one case, where what they write differs in
    size: their inputs do not tell how much there is to do. Where it is as much, as of a sum over another axis, what
    they were asked for makes them differ, and no shape or data type that both have. Products of matrices that are slow
    in another data type than this case are slow for that: what it costs is known by itself, and counts once."""
    rows = [
        _Pace(s, int(n), t, t / n / w, w)
        for s, n, t in zip(signatures, counts, totals, strict=True)
        if n > 0 and t / n >= LAUNCH_US and (w := work(s)) > 0
    ]
    slower = shared_threshold("slow_case")
    found, slow, usual = [], list[tuple[_Pace, float]](), list[_Pace]()
    for row in rows:
        s, size = row.signature, row.size
        peers = [
            (other.rate, other.signature)
            for other in rows
            if 1 / SIZE_CLASS <= other.size / size <= SIZE_CLASS
            and (_asks_else(s, other.signature) or not _reads_alike(s, other.signature))
        ]
        if moved_bytes(s) * row.calls / row.us * 1e6 >= reach:
            continue
        on_the_same = [peer for peer in peers if _reads_alike(s, peer[1]) and row.rate >= slower * peer[0]]
        best, reference = min(on_the_same or peers, key=lambda peer: peer[0], default=(row.rate, s))
        if row.rate < slower * best:
            usual.append(row)
            continue
        ours, theirs = (f"{each.input_shapes}{f' → {each.output_shapes}' * bool(on_the_same)}"
                        for each in (s, reference))  # fmt: skip
        beside = f"{theirs} {reference.input_dtypes}"
        found.append(SlowCase(ours, s.input_dtypes, row.calls, row.rate / best, row.above(best), beside))
        slow.append((row, best))
    if not found:
        return None
    worst = max(found, key=lambda case: case.excess_us)
    typed = any(is_cube(s) for s in signatures)
    alike = [case for case in found if not typed or case.dtype == worst.dtype]
    others = _as_slow(usual, [each for each in slow if each[0].signature.input_dtypes == worst.dtype])
    return replace(worst, excess_us=sum(case.excess_us for case in alike) + others)


def _as_slow(usual: Sequence[_Pace], slow: Sequence[tuple[_Pace, float]]) -> float:
    """What products take longer than at the speed that slow ones are compared with, who are as slow as these and of
    similar size, or so through others: too small for a peer of their size that is fast, they are slow alike."""
    pending, left, excess = list(slow), [row for row in usual if is_compute_bound(row.signature)], 0.0
    while pending:
        case, best = pending.pop()
        joined = [row for row in left if row.like(case)]
        pending += [(row, best) for row in joined]
        excess += sum(row.above(best) for row in joined)
        left = [row for row in left if row not in joined]
    return excess
