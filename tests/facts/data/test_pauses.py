"""Pauses of the loop's own part are found among noise, and neither rounding nor the wait for data makes one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.data.pauses import find_pauses


def loop(own_ms: float, noise_ms: float, seed: int, batches: int = 200) -> np.ndarray:
    """Intervals as MindSpore writes them: whole milliseconds."""
    times = np.random.default_rng(seed).normal(own_ms, noise_ms, batches).clip(0.0)
    return np.diff(np.round(np.concatenate(([0.0], np.cumsum(times))))) * 1e3


def test_an_evaluation_after_every_fortieth_batch_is_a_pause() -> None:
    """300 ms after each fortieth batch of 10 ms: 7.5 ms per batch, three sevenths of the time."""
    intervals = loop(10.0, 0.2, 0)
    intervals[39::40] += 300e3
    found = find_pauses(intervals, np.zeros(200))
    assert found is not None
    assert (found.count, found.period) == (5, 40)
    assert found.cost_us == pytest.approx(7_500, rel=0.02)
    assert found.share == pytest.approx(7.5 / 17.5, rel=0.03)


def test_waiting_for_data_is_no_pause() -> None:
    """The same pattern in GetNext belongs to the data pipeline."""
    intervals, waits = loop(10.0, 0.2, 0), np.zeros(200)
    intervals[39::40] += 300e3
    waits[39::40] = 300e3
    assert find_pauses(intervals, waits) is None


@given(st.floats(2.0, 40.0), st.floats(0.0, 0.3), st.integers(0, 10_000))
def test_noise_and_rounding_make_no_pause(own_ms: float, noise: float, seed: int) -> None:
    """Steps that vary by up to 30 %, written in whole milliseconds."""
    assert find_pauses(loop(own_ms, noise * own_ms, seed), np.zeros(200)) is None
