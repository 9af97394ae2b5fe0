"""Gradients that kernels of their own add to a sum in float32, weight by weight, in every micro-batch.

The product that computes a gradient of half precision could add it to the sum itself (gradient accumulation fusion):
neither the gradient nor the sum is then read and written once more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from advisor.basics.arrays import Ints, Mask
from advisor.facts.operators.kinds import dtypes, is_conversion, shapes
from advisor.facts.operators.shapes.work import FULL, matmul
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Signature

_SUM = re.compile(r"^(aclnn)?(Inplace)?(Add|Axpy|AssignAdd)(V\d+)?$", re.IGNORECASE)
_FILL = re.compile(r"Zero|Fill|Ones|Memset", re.IGNORECASE)
OTHERS = limit("kernels", "sums_others")
"""Other float32 kernels on tensors as large as weights, of as many sums, from which on these are an update's."""

Shape = tuple[int, ...]


def gradient_sums(signatures: Sequence[Signature], counts: Ints) -> Mask:
    """Which of these, each called so often, add a gradient of half precision to a sum in float32: both are as large as
    a weight. Nothing where other float32 kernels work on tensors of these shapes as well: the sums are an update's."""
    found = np.zeros(len(signatures), bool)
    weights = _weights(signatures, counts)
    if not weights:
        return found
    others = 0
    for place, signature in enumerate(signatures):
        if not counts[place] or not _is_full(signature) or _written(signature) not in weights:
            continue
        if _SUM.match(signature.type):
            read = shapes(signature.input_shapes) or ()
            found[place] = len(read) > 1 and read[0] == read[1] == _written(signature)
        elif not (is_conversion(signature.type) or _FILL.search(signature.type)):
            others += int(counts[place])
    return found if others < OTHERS * counts[found].sum() else np.zeros(len(signatures), bool)


def _weights(signatures: Sequence[Signature], counts: Ints) -> set[Shape]:
    """Shapes of weights: products of half precision that sum over the tokens write their gradients. Most products,
    those of the forward pass and of the inputs' gradients, have as many rows as there are tokens."""
    rows: Counter[int] = Counter()
    summing: dict[int, set[Shape]] = {}
    for signature, count in zip(signatures, counts.tolist(), strict=True):
        product = matmul(signature) if count else None
        kinds = dtypes(signature.input_dtypes)
        if product is None or not kinds or kinds[0] in FULL:
            continue
        rows[product.batch * product.m] += count
        if product.batch == 1:
            summing.setdefault(product.k, set()).add((product.m, product.n))
    tokens = max(rows, key=lambda m: (rows[m], m), default=0)
    return {shape for shape in summing.get(tokens, ()) if shape[0] != tokens}


def _is_full(signature: Signature) -> bool:
    """Whether it reads and writes a tensor in float32."""
    read, wrote = dtypes(signature.input_dtypes), dtypes(signature.output_dtypes)
    return bool(read and wrote) and read[0] in FULL and wrote[0] in FULL


def _written(signature: Signature) -> Shape | None:
    wrote = shapes(signature.output_shapes)
    return wrote[0] if wrote else None
