"""The promises of the comparison, for any numbers."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.gate.judging.measures import result_of
from advisor.gate.judging.statistics import compare, robust_sigma
from advisor.gate.model import Result
from benchmarks.gate import default_limits

LIMITS = replace(default_limits(), absolute=0.0)
"""The numbers here are bare; only one test is about the floor."""
amounts = st.floats(1e-3, 1e9)
sides = st.lists(amounts, min_size=1, max_size=25)
directions = st.booleans()


@given(sides, directions)
def test_a_run_against_itself_never_fails(values, lower):
    """A gate that fails on its own baseline would be switched off the same day."""
    found = compare(values, values[-LIMITS.recent :], LIMITS, lower_is_better=lower)
    assert not found.worse and not found.better


@given(sides, sides, directions, st.data())
def test_slower_never_passes_where_faster_failed(history, runs, lower, data):
    """Nobody gets a change through by making it worse."""
    sign = 1 if lower else -1
    added = data.draw(st.lists(st.floats(0, 1e6), min_size=len(runs), max_size=len(runs)))
    worse_runs = [run + sign * more for run, more in zip(runs, added, strict=True)]
    first = compare(history, runs, LIMITS, lower_is_better=lower, confirming=runs[:1])
    second = compare(history, worse_runs, LIMITS, lower_is_better=lower, confirming=worse_runs[:1])
    assert second.worse >= first.worse
    assert (second.worse or second.divided) >= (first.worse or first.divided)
    assert bool(second.confirmed) >= bool(first.confirmed)


@given(sides, sides, st.randoms(use_true_random=False))
def test_order_of_runs_is_irrelevant(history, runs, draw):
    """Which of five jobs finished first says nothing about the code."""
    shuffled = list(runs)
    draw.shuffle(shuffled)
    assert compare(history, runs, LIMITS) == compare(history, shuffled, LIMITS)


@given(sides, sides)
def test_better_and_worse_mirror_each_other(history, runs):
    """What is worse where less is better is better where more is."""
    down = compare(history, runs, LIMITS, lower_is_better=True)
    up = compare(history, runs, LIMITS, lower_is_better=False)
    assert (down.worse, down.better) == (up.better, up.worse)
    assert not (down.worse and down.better)


def test_one_disturbed_run_moves_nothing():
    """A bad node under one of five runs is the usual flaky red."""
    history = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]
    assert not compare(history, [100.0, 100.5, 99.5, 100.2, 180.0], LIMITS).worse
    assert not compare(history, [100.0, 100.5, 150.0, 160.0, 180.0], LIMITS).worse
    assert compare(history, [107.0, 106.5, 107.5, 106.8, 107.2], LIMITS).worse


def test_runs_that_are_divided_are_neither_worse_nor_the_same():
    """Three of five runs 8 % slower: half of the nodes may be bad, or half of the runs had the change."""
    history = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]
    found = compare(history, [100.0, 100.5, 108.0, 108.2, 107.9], LIMITS)
    assert found.divided and not found.worse and found.beyond == 3
    assert result_of(found) == (Result.NOT_JUDGED, "divided")
    quiet = compare(history, [100.0, 100.5, 108.0, 108.2, 107.9], LIMITS, confirming=[100.1])
    assert result_of(quiet)[0] is Result.NOT_CONFIRMED


def test_disturbed_runs_in_the_history_do_not_widen_the_band():
    """One bad night must not blind the gate for the next twenty runs."""
    clean = compare([100.0, 101.0, 99.0, 100.5, 99.5] * 2, [106.0] * 5, LIMITS)
    dirty = compare([100.0, 101.0, 99.0, 100.5, 199.5] * 2, [106.0] * 5, LIMITS)
    assert clean.worse and dirty.worse


def test_absolute_floor_keeps_small_amounts_quiet():
    """Ten microseconds more of a 50 us part are no regression, whatever the percentage."""
    assert not compare([50.0] * 10, [60.0] * 5, replace(LIMITS, absolute=20.0)).worse
    assert compare([50.0] * 10, [60.0] * 5, replace(LIMITS, absolute=5.0)).worse


def test_slow_drift_does_not_accumulate_into_an_alarm():
    """A level that creeps by 0.1 % a run is 1 % away after ten: old runs must leave the level."""
    draw = random.Random(3)
    drifting = [100 * 1.001**day * draw.gauss(1, 0.002) for day in range(100)]
    now = [100 * 1.001**100 * draw.gauss(1, 0.002) for _ in range(5)]
    assert not compare(drifting, now, LIMITS).worse


def test_level_is_that_of_the_newest_runs():
    """After an improvement was merged, the old and slower runs must not hide its loss."""
    assert compare([110.0] * 10 + [100.0] * 10, [107.0] * 5, LIMITS).before == 100.0
    assert compare([1.0] * 100 + [100.0] * 20, [107.0] * 5, LIMITS).sigma == 0.0


def test_short_history_assumes_noise():
    """Two equal runs are no proof that runs never differ."""
    found = compare([100.0, 100.0], [104.0, 104.0, 104.0], LIMITS)
    assert found.sigma > 0
    assert found.threshold > 0.03 * 100.0


def test_robust_sigma_of_normal_samples_is_about_right():
    """The small-sample correction makes five runs tell about what fifty do."""
    draw = random.Random(1)
    for size in (5, 10, 50):
        estimates = [robust_sigma([draw.gauss(0, 1) for _ in range(size)]) for _ in range(4000)]
        assert abs(sum(estimates) / len(estimates) - 1) < 0.06
    assert robust_sigma([5.0]) == 0
