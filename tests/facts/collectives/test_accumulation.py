"""Gradients reduced in every micro-batch are told from one backward pass in buckets, and from sharded operators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import facts_of
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.facts.collectives.accumulation import queued_round, repetitions
from advisor.facts.collectives.roles import roles_of
from advisor.model import RUN
from benchmarks.simulator import Scenario, simulate
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


ACCUMULATING = Scenario(
    data=4, layers=4, micro_batches=4, kernel_us=60, gradient_mb_per_layer=80, framework="pytorch", seed=3
)
"""Reducing all gradients takes longer than a micro-batch computes."""


def test_rounds_that_queue_are_told_by_the_forward_passes_and_promise_what_one_costs(tmp_path):
    """Reductions that take longer than a micro-batch drift away from the passes they belong to; they are one
    round a pass all the same, and the promise is what the step gains without the early ones."""
    every = replace(ACCUMULATING, reduced_each_pass=True)
    facts, _ = facts_of(every, tmp_path)
    assert facts.value("allreduce.repeats", RUN) == 4
    gain = simulate(every).mean_us - simulate(ACCUMULATING).mean_us
    assert facts.number("allreduce.early_exposed_us", RUN) == pytest.approx(gain, rel=0.1)


def test_one_long_reduction_behind_the_last_micro_batch_is_no_repetition(tmp_path):
    """As many equal buckets as micro-batches, queued behind the last backward pass, are reduced once."""
    facts, _ = facts_of(ACCUMULATING, tmp_path)
    assert facts.value("allreduce.repeats", RUN) == 1


def test_what_a_step_before_left_over_is_no_round():
    """A bucket of the previous step that ends during the first forward pass tells of no round between two passes."""
    forward = np.array([[0, 10], [40, 50], [80, 90]], float)
    size = np.full(3, 25 * MB)
    assert queued_round(np.array([30.0, 60, 110]), size, forward) == 1
    assert queued_round(np.array([5.0, 100, 110]), size, forward) == 0
    assert queued_round(np.array([95.0, 100, 110]), size, forward) == 0
    assert queued_round(np.array([30.0, 60, 110]), np.array([25.0, 30, 25]) * MB, forward) == 0


@pytest.mark.parametrize(("hidden", "role"), [(0.6, "data"), (0.4, "tensor"), (0.0, "tensor")])
def test_what_computation_hides_is_no_exchange_of_operators(hidden, role):
    """Reductions all over the step are gradients of micro-batches where computation runs beside most of their time."""
    program = layers("allreduce", 0, 24000, 16)
    assert roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, False, {"g": hidden})["g"] == role
