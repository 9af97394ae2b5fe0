"""A loader that is behind sets the pace of its loop, whatever else is mended."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.base import Run
from advisor.facts.data.getnext import GET_NEXT, GetNext
from advisor.facts.data.loader_pace import IN_HAND, held_by, held_share, paced_by
from advisor.sources.base import Profile


@pytest.mark.parametrize(
    ("waits_us", "paced"),
    [
        ([96e3, 110, 110, 31e3, 2.9e3, np.nan], [1, 1, 1, 1, 0, 0]),
        ([110, 110, 31e3, 110, 110, np.nan], [0, 0, 0, 0, 0, 0]),  # once tells nothing of the steps around it
        ([31e3, 110, 110, 110, 110, 31e3], [0, 0, 0, 0, 0, 0]),  # between these all may have been in hand
        ([np.nan], [0]),
    ],
)
def test_from_one_wait_to_the_next_the_loader_sets_the_pace(waits_us, paced):
    """Two waits tell it of the time between them, where no more batches are taken between than are asked for ahead."""
    assert paced_by(np.array(waits_us)).tolist() == [bool(each) for each in paced]


@pytest.mark.parametrize(
    ("waits_us", "share"),
    [
        ([110, 25e3, 110, 0, 0, np.nan], 4 / 5),  # its batch was asked for before the recording
        ([110, 25e3, 110, 20e3, 0, np.nan], 1.0),
        ([25e3, 110, 110, 0, 0, np.nan], 1 / 5),  # where the run begins, nothing was gained before
        ([110, 110, 25e3, 0, 0, 0, 0, 0, np.nan], 0.0),  # an accident: five batches follow at once
        ([0, 0, 0, 0, 0, 110, 25e3, 0, np.nan], 0.0),
        ([0, 0, 25e3, 0, 0, 0, 0, np.nan], 4 / 7),  # as many follow as may have been in hand
        ([26e3, 23e3, 18e3, np.nan], 1.0),  # no kernel follows the last step, which shows no loader that keeps up
        ([1.1e3] * 6, 0.0),  # a batch is handed over, not waited for
    ],
)
def test_a_wait_takes_back_what_was_gained_since_its_batch_was_asked_for(waits_us, share):
    """Also one wait alone does, and two no more than the steps between them."""
    assert held_by(np.array(waits_us), 2e3) == pytest.approx(share)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.floats(2e3, 9e3), st.floats(0.0, 0.3), st.integers(0, 99))
def test_what_else_is_mended_gains_nothing_until_the_last_of_these_waits(workers, work, noise, seed):
    """A loop with `workers` that load two batches ahead each: with less work in each step, the batch of the last wait
    comes no sooner, as far back as steps are paced without a gap."""
    draw = np.random.default_rng(seed)
    loads = workers * 5e3 * np.exp(noise * draw.standard_normal(30))
    waits, taken = _loop(loads, workers, work)
    _, sooner = _loop(loads, workers, 0.7 * work)
    paced = paced_by(waits)
    runs = [step for step in range(1, 30) if paced[step - 1] and not paced[step]]
    for end in runs:
        begin = max((step for step in range(end) if not paced[step]), default=-1) + 1
        assert taken[end] - sooner[end] <= max(taken[begin] - sooner[begin], 0.0) + 1.0


def _loop(loads, workers, work):
    """(wait before each step, when its batch was taken) of a loop, microseconds; batches are dealt to workers."""
    ahead, free = max(2 * workers, IN_HAND), [0.0] * workers
    taken, waits, now = [], [], 0.0
    for place, lasts in enumerate(loads.tolist()):
        asked = taken[place - ahead] if place >= ahead else 0.0
        free[place % workers] = ready = max(free[place % workers], asked) + lasts
        waits.append(max(ready - now, 0.0))
        taken.append(max(ready, now))
        now = taken[-1] + work
    return np.array(waits), np.array(taken)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.floats(4e3, 6e3), st.floats(0.0, 0.3), st.integers(0, 99))
def test_mended_elsewhere_a_loop_gains_no_more_than_its_loader_leaves(workers, work, noise, seed):
    """Ten steps of a loop, and the same with a tenth less work in each: batches as late as before eat the rest."""
    draw = np.random.default_rng(seed)
    loads = workers * 5e3 * np.exp(noise * draw.standard_normal(60))
    waits, taken = _loop(loads, workers, work)
    _, sooner = _loop(loads, workers, 0.9 * work)
    gained = (taken[50] - taken[40]) - (sooner[50] - sooner[40])
    assert gained <= 0.1 * work * (10 * (1 - held_by(waits[41:51], 1e3)) + 2)


@pytest.mark.parametrize(
    ("waited", "beside", "held"), [(range(24), 0.0, 1.0), (range(6), 0.0, 0.0), (range(24), 1.0, 0.0)]
)
def test_the_queue_on_the_device_is_a_server_too(waited, beside, held):
    """Each fetch that waits found the queue empty, so that its batch comes no sooner whatever else is mended: but not
    of a start that is over, nor where kernels ran meanwhile."""
    lasts = np.array([13e3 if step in waited else 24.0 for step in range(24)])
    starts = np.cumsum(53e3 + lasts) - lasts
    run = Run(Profile("x", []))
    run.keep(0, {GET_NEXT: GetNext(24, float(np.median(lasts)), beside, (), 0.0, starts, starts + lasts)})
    assert held_share(run) == pytest.approx(held)
