"""Kernels of different work that share type and shapes, and cards that are slow: what a rank's speed is told from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.cluster.peers import kernel_speeds
from advisor.facts.device.course import Course
from advisor.facts.device.speeds import ENDS

KEY = ("MatMulV2", "4096,1024;1024,4096")
NOBODY = np.zeros(0)


def _speed(here: np.ndarray, elsewhere: np.ndarray) -> float:
    """The first of four ranks against three others, in calls of one type and shape, with one per cent of chance."""
    courses = {}
    for rank, us in enumerate((here, elsewhere, elsewhere, elsewhere)):
        times = us * np.random.default_rng(rank).normal(1, 0.01, len(us))
        middle = np.sort(times)[len(us) // 3 : len(us) - len(us) // 3].mean()
        speed = {KEY: (float(len(us)), float(middle))}
        courses[rank] = Course((), *([NOBODY] * 5), NOBODY.astype(int), speed, ends={KEY: np.quantile(times, ENDS)})
    run = SimpleNamespace(each=lambda key: courses, once=lambda key, make: make(run))
    return kernel_speeds(run)[0]


LAYER = np.repeat([420.0, 150.0, 560.0, 560.0, 840.0, 300.0, 1120.0, 1120.0], 30)
HEAD = np.repeat([300.0, 600.0], [30, 15])


def test_a_stage_with_other_work_of_the_same_shape_is_no_slow_card():
    """A stage without the head runs fewer of the short products: their usual time is longer, none of them is."""
    assert _speed(LAYER, np.concatenate((LAYER, HEAD))) == pytest.approx(1, abs=0.01)


def test_longer_and_shorter_calls_than_elsewhere_are_other_work():
    """Layers of its own whose products have the shape of the others' head: no card makes the shortest calls shorter."""
    assert _speed(np.concatenate((LAYER, HEAD)), HEAD) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("factor", [1.05, 1.3])
def test_a_slow_card_takes_longer_for_all_of_them(factor):
    """Short and long calls alike: it is found whatever it shares the work with."""
    assert _speed(LAYER * factor, LAYER) == pytest.approx(factor, abs=0.01)


def test_a_card_that_is_slow_now_and_then_is_still_slow():
    """Throttled in half of its calls: the shortest are as short as elsewhere, the longest are not."""
    calls = np.full(240, 500.0)
    assert _speed(calls * np.where(np.arange(240) < 120, 1.4, 1.0), calls) > 1.1


def test_one_kind_of_work_that_gets_longer_is_told():
    """Every call of the one kind there is takes a tenth longer."""
    assert _speed(np.full(60, 550.0), np.full(60, 500.0)) == pytest.approx(1.1, abs=0.01)
