"""Sharded operators exchange in forward; gradients are reduced in backward, in all micro-batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.device.forward import gradients, in_forward, rounds
from advisor.sources.streams.kernels import Kernels, Signature

TYPES = ("MatMulV2", "SwiGluGrad", "ApplyAdamW", "hcom_allReduce_", "SwiGlu")


def kernels_of(order: str) -> Kernels:
    """m a matrix, s what has the gradient g, a an update, r a reduction, q one that starts at once where the last one
    ends; one runs after the other, 10 us each."""
    index = {letter: place for place, letter in enumerate("mgars")}
    kind = np.array([index[letter.replace("q", "r")] for letter in order], np.int64)
    start = np.arange(len(order), dtype=np.int64) * 10_000
    us, zero = np.full(len(order), 10.0), np.zeros(len(order), np.int64)
    names = ["aclnnMatmul", "aclnnSwiGluGrad", "aclnnApplyAdamW", "hcom_allReduce__718_0_1", "aclnnSwiGlu"]
    return Kernels(
        start, start + 10_000, us, kind, kind, zero, zero, us, us,
        [Signature(name, "AI_CORE", *[""] * 6) for name in TYPES], names, ["0"], ["2"], {}, {},
    )  # fmt: skip


def forward_part(order: str) -> float | None:
    kernels = kernels_of(order)
    talks = kernels.name == 3
    work = np.flatnonzero(~talks)
    return in_forward(kernels, gradients(kernels), work, np.flatnonzero(talks)).get("718")


@given(st.integers(1, 5), st.integers(2, 6))
def test_gradients_are_reduced_in_no_forward_pass(batches, layers):
    """Each micro-batch reduces its gradients anew, half of them queued behind the others: still none in forward."""
    batch = "mm" * layers + "mgmrq" * layers
    assert forward_part("mm" + batch * batches + "a") in ((0.0,) if batches * layers >= 4 else (0.0, None))


@given(st.integers(1, 5), st.integers(3, 6), st.booleans())
def test_sharded_operators_exchange_in_forward(batches, layers, recomputed):
    """One exchange for each half of a layer, forward and backward, whether backward computes forward again or not."""
    batch = "mmr" * 2 * layers + ("mmrmmr" * recomputed + "mgmrmgmr") * layers
    part = forward_part("mm" + batch * batches + "a")
    assert part is not None and part >= 0.2


@given(st.integers(2, 4), st.integers(4, 8))
def test_products_of_a_large_head_are_no_forward_pass(layers, head):
    """Those of its backward pass follow one another, and in a small model they take as long as the forward pass."""
    step = "msm" * layers + "m" * head + "g" + "m" * head + "r" + "mmgmmr" * layers + "a"
    assert forward_part("s" + step * 3) == 0.0


def test_names_without_gradients_tell_nothing():
    """Inference has no backward pass, and kernels that all bear the name of a gradient cannot be told apart."""
    assert forward_part("mmr" * 8) is None
    assert forward_part("ggr" * 8) is None


@given(st.integers(1, 5), st.integers(1, 4), st.integers(2, 6))
def test_updates_are_counted_with_a_forward_pass_between(times, batches, layers):
    """However many kernels one update has, and however many micro-batches it sums."""
    batch = "mm" * layers + "mgmr" * layers
    kernels = kernels_of((batch * batches + "aamaa") * times)
    work = np.flatnonzero(kernels.name != 3)
    assert rounds(kernels, gradients(kernels), work)[1] == times
