"""Where most cards are slow, the median is: the others show what the work needs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.cluster.peers import kernel_speeds, yardsticks
from advisor.facts.cluster.ranks import _told_by
from advisor.facts.device.course import Course
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

KEYS = [("MatMulV3", "4096,4096;4096,4096"), ("Add", "4096,4096"), ("RmsNorm", "4096,4096")]
NOBODY = np.zeros(0)


def _run(factors, noise=0.01):
    """Ranks that make the same calls, each so many times as long as they need."""
    courses = {}
    for rank, factor in enumerate(factors):
        rng = np.random.default_rng(rank)
        speed = {key: (10.0, 300.0 / (i + 1) * factor * (1 + noise * rng.uniform(-1, 1))) for i, key in enumerate(KEYS)}
        courses[rank] = Course((), *([NOBODY] * 5), NOBODY.astype(int), speed)
    run = SimpleNamespace(each=lambda key: courses)
    run.once = lambda function, make: make(run)
    return run


@given(st.integers(8, 24), st.floats(0.3, 0.7), st.floats(1.15, 2.0))
def test_a_slow_card_is_slow_whatever_the_majority(ranks, part, factor):
    """Three to seven of ten cards are slow: each takes as many times as long as the work needs, none of the others
    does, on either side of a half."""
    slow = round(part * ranks)
    speeds = kernel_speeds(_run([factor] * slow + [1.0] * (ranks - slow)))
    assert all(speeds[rank] == pytest.approx(factor, rel=0.03) for rank in range(slow))
    assert all(speeds[rank] < 1.03 for rank in range(slow, ranks))


@pytest.mark.parametrize("factors", [
    [0.8] + [1.0] * 7, [0.8, 0.8] + [1.0] * 14, [1.0] * 8, [1.0, 1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12],
    [0.95] * 3 + [1.0] * 5, [0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2],
])  # fmt: skip
def test_the_many_are_not_accused_for_one_that_is_faster(factors):
    """One card of another kind, two of sixteen, equal cards and cards that differ by degrees: the median tells."""
    run = _run(factors)
    assert not yardsticks(run)
    assert kernel_speeds(run)[len(factors) - 2] < 1.2


SMALL = Scenario(data=8, layers=2, steps=4, buckets=2, micro_batches=1)


def _judged(faults, tmp_path):
    run = simulate(replace(SMALL, faults=faults))
    write_profile(run, tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    return [f for f in report.findings if f.verdict == "slow-compute-rank"], run.step_us


def test_five_slow_cards_of_eight_are_one_finding_that_promises_what_all_of_them_cost(tmp_path):
    """The three that wait show what the work needs; and that most are slow is told, for these may be of another
    kind."""
    (found,), step_us = _judged(tuple(Fault("slow_compute", rank, 0.3) for rank in range(5)), tmp_path)
    assert found.subject.ranks == (0, 1, 2, 3, 4) and found.confidence.value == "medium"
    assert found.saving.us == pytest.approx(step_us - simulate(SMALL).step_us, rel=0.2)
    assert "ranks 5-7" in found.message.en


def test_seven_cards_are_not_slow_because_one_is_faster(tmp_path):
    """Nobody knows of what kind that one is."""
    assert not _judged((Fault("slow_compute", 3, -0.2),), tmp_path)[0]


def test_who_has_no_peers_is_measured_by_nobody():
    """One rank a stage: no list of ranks that are faster, for there are none of its work."""
    balance = SimpleNamespace(shown=frozenset({5, 6}))
    assert _told_by(balance, []) is None and _told_by(balance, [5, 7]) is None and _told_by(balance, [5, 6]) == "5-6"
