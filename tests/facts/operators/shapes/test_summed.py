"""Sums of gradients are told from activations that are added, and from an update that nobody fused."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.operators.shapes.summed import gradient_sums
from advisor.sources.streams.kernels import Signature

TOKENS, WIDTH, INNER = 4096, 3072, 8192


def product(a: str, b: str, out: str, kind: str = "DT_BF16") -> Signature:
    return Signature("MatMulV3", "AI_CORE", "dynamic", f"{a};{b}", f"{kind};{kind}", "ND;ND", out, kind)


def vector(kind: str, shape: str, into: str = "FLOAT;FLOAT", out: str = "FLOAT") -> Signature:
    read = ";".join([shape] * (into.count(";") + 1))
    return Signature(kind, "AI_VECTOR_CORE", "dynamic", read, into, "ND;ND", shape, out)


def layer(kind: str = "DT_BF16") -> list[Signature]:
    """One product of a layer forward, and backward those of its input's gradient and of its weight's."""
    tokens, inner, weight = f"{TOKENS},{WIDTH}", f"{TOKENS},{INNER}", f"{INNER},{WIDTH}"
    return [
        product(tokens, weight, inner, kind),
        product(inner, weight, tokens, kind),
        product(inner, tokens, weight, kind),
    ]


def sums(*others: Signature, products: list[Signature] | None = None) -> list[Signature]:
    signatures = [*(layer() if products is None else products), *others]
    found = gradient_sums(signatures, np.full(len(signatures), 8))
    return [signature for signature, chosen in zip(signatures, found, strict=True) if chosen]


WEIGHT = f"{INNER},{WIDTH}"


@pytest.mark.parametrize("into", ["FLOAT;FLOAT", "FLOAT;DT_BF16"])
def test_a_gradient_that_is_added_to_its_sum(into):
    """Converted before or while it is added; residuals, sums in half precision and zeroed sums are none."""
    added = vector("Add", WEIGHT, into)
    residual, halves = vector("Add", f"{TOKENS},{WIDTH}"), vector("Add", WEIGHT, "DT_BF16;DT_BF16", "DT_BF16")
    assert sums(added, residual, halves, vector("ZerosLike", WEIGHT)) == [added]


def test_additions_of_an_update_in_pieces_are_no_sums_of_gradients():
    """It multiplies, divides and takes roots of the same tensors."""
    assert sums(vector("Add", WEIGHT), vector("Mul", WEIGHT), vector("Sqrt", WEIGHT)) == []


def test_products_in_float32_have_no_kernel_that_adds_as_well():
    """What the fused kernel reads is of half precision."""
    assert sums(vector("Add", WEIGHT), products=layer("FLOAT")) == []
