"""Gradients reduced in every micro-batch are told from one backward pass in buckets, and from sharded operators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.facts.collectives.accumulation import repetitions
from advisor.facts.collectives.roles import roles_of
from tests.facts.collectives.test_roles import COMPUTING_US, exchanges, layers

MB = 1e6


def backward(buckets: list[float], micro_batches: int, compute: float) -> tuple[np.ndarray, np.ndarray]:
    """(computed before each reduction, its size): a third of each micro-batch is forward, the rest makes gradients."""
    computed, size = [], []
    for number in range(micro_batches):
        for place, bucket in enumerate(buckets, start=1):
            computed.append(compute * (number + 1 / 3 + 2 / 3 * place / len(buckets)))
            size.append(bucket)
    return np.array(computed), np.array(size)


@given(
    buckets=st.lists(st.floats(1 * MB, 200 * MB), min_size=1, max_size=6),
    micro_batches=st.integers(2, 12),
    compute=st.floats(1e3, 1e6),
)
@example(buckets=[100 * MB + 1, MB, 100 * MB + 1], micro_batches=2, compute=1e3)
def test_one_backward_after_another_reduces_as_often_as_there_are_micro_batches(buckets, micro_batches, compute):
    """However the gradients are cut into buckets, the repetitions are the micro-batches; one is no repetition."""
    assert repetitions(*backward(buckets, micro_batches, compute)) == micro_batches
    assert repetitions(*backward(buckets, 1, compute)) == 1


@given(count=st.integers(2, 24), recomputed=st.booleans())
def test_equal_buckets_of_one_backward_are_no_repetitions(count, recomputed):
    """A quarter of the step and more is computed before backward begins, and nothing but backward between buckets."""
    forward = 1 / 4 if recomputed else 1 / 3
    computed = 1e5 * (forward + (1 - forward) * np.arange(1, count + 1) / count)
    assert repetitions(computed, np.full(count, 25 * MB)) == 1


def test_a_loss_beside_the_gradients_hides_no_repetition():
    """One small reduction at the end of the step is none of the gradients'."""
    computed, size = backward([90 * MB, 30 * MB], 4, 1e4)
    assert repetitions(np.append(computed, computed[-1]), np.append(size, 4.0)) == 4


def test_sizes_that_are_not_told_tell_nothing():
    """Without bytes nobody knows whether the same gradients return."""
    computed, size = backward([90 * MB], 4, 1e4)
    assert repetitions(computed, np.full(len(size), np.nan)) is None
    assert repetitions(np.empty(0), np.empty(0)) is None


@pytest.mark.parametrize(("hidden", "role"), [(0.6, "data"), (0.4, "tensor"), (0.0, "tensor")])
def test_what_computation_hides_is_no_exchange_of_operators(hidden, role):
    """Reductions all over the step are gradients of micro-batches where computation runs beside most of their time."""
    program = layers("allreduce", 0, 24000, 16)
    assert roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, False, {"g": hidden})["g"] == role
