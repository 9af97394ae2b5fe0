"""Steps that grow longer with nearly every one of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.step.growth import rises


@given(st.integers(8, 40), st.floats(0.005, 0.1), st.floats(1.0, 1e6))
def test_a_drift_above_the_noise_is_seen_at_any_scale(steps: int, growth: float, scale: float) -> None:
    """A card that heats up, whatever the unit of time."""
    noise = np.cos(np.arange(steps) * 2.4) * growth / 2
    lengths = scale * (1 + growth * np.arange(steps) + noise)
    assert rises(lengths)
    assert not rises(lengths[::-1])


def test_steps_that_vary_or_change_once_do_not_grow() -> None:
    """Noise has no order, and a change from one step on is told as such."""
    noisy = 100 + np.random.default_rng(3).normal(0, 2, 20)
    assert not rises(noisy)
    assert not rises(np.where(np.arange(20) < 10, noisy, noisy + 40))
    assert not rises(np.full(20, 100.0))
    assert not rises(np.arange(7.0) + 100)  # too few to tell
