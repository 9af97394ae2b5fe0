"""Whose idle time makes a rank late: a host that launches more kernels at its peers' pace is not late, one that takes
longer for each is, and idle time may be waiting where no communication was recorded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.cluster import lateness
from advisor.facts.cluster.accounts import Accounts

STEPS = ["1", "2", "3"]


def launch_lateness(calls: list[int], idle_each: list[float]) -> dict[int, lateness.Lateness]:
    """Ranks with so many kernels a step and so much idle time between each two of them, microseconds."""
    ranks = list(range(len(calls)))
    idle = np.array([[n * us] * len(STEPS) for n, us in zip(calls, idle_each, strict=True)])
    zeros = np.zeros_like(idle)
    balance = Accounts(ranks, STEPS, zeros + 1e5, zeros, zeros, idle, zeros, idle, True)
    course = {
        r: SimpleNamespace(steps=tuple(STEPS), kernels=np.full(len(STEPS), calls[r]), complete=True) for r in ranks
    }
    run = SimpleNamespace(each=lambda reduction: course)
    return lateness._with_work(run, balance, lateness._among_peers(balance, ranks, {}))  # type: ignore[arg-type]


@given(st.integers(2, 7), st.integers(2, 5), st.floats(0.5, 50.0))
def test_more_kernels_at_the_same_pace_are_no_slow_host(ranks, times, each):
    """What such a rank idles more than its peers comes with its work, all of it."""
    late = launch_lateness([100 * times] + [100] * (ranks - 1), [each] * ranks)[0]
    assert late.parts["host"] == pytest.approx(0.0, abs=1e-6)
    assert late.work_idle_us == pytest.approx(100 * (times - 1) * each)


@given(st.integers(2, 7), st.floats(1.5, 5.0), st.floats(0.5, 50.0))
def test_the_same_kernels_launched_slowly_are(ranks, times, each):
    """With as many kernels as its peers a rank's idle time is its host's."""
    late = launch_lateness([100] * ranks, [each * times] + [each] * (ranks - 1))[0]
    assert late.parts["host"] == pytest.approx(100 * (times - 1) * each)
    assert late.work_idle_us == 0.0


@pytest.mark.parametrize(("waited", "late_us"), [(5e3, 3e4), (0.0, 0.0)])
def test_a_rank_without_peers_that_idles_more_may_be_the_one_that_waits(waited, late_us):
    """Stages of one rank each: the one that idles longer is late if the others are known to wait. Where no
    communication was recorded, its idle time may be its own waiting."""
    idle = np.array([[4e4] * 3, [1e4] * 3])
    zeros = np.zeros_like(idle)
    balance = Accounts([0, 1], STEPS, zeros + 1e5, zeros, zeros, idle, zeros + waited, idle, False)
    above = {"host": idle - idle[::-1]}
    assert lateness._alone(balance, 0, None, above).late_us == late_us
