"""Ranks whose loaders set the pace together are one cause; what one of them gives alone is not what all give."""

from dataclasses import replace

import numpy as np
import pytest
from clusters import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.data.common_pace import limited, mended_us
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, physics, simulate, write_profile

NOBODY = np.nan


def _run(ready_every, work, depth, steps=60):
    """A synchronous training: loaders that work on alone, `depth` batches ahead at most. (waits, step ends)"""
    ranks = len(ready_every)
    ready = np.zeros((ranks, steps))
    begins, waits, now = np.zeros((ranks, steps)), np.zeros((ranks, steps)), 0.0
    ends = []
    for step in range(steps):
        for rank, lasts in enumerate(ready_every):
            free = begins[rank, step - depth] if step >= depth else 0.0
            ready[rank, step] = max(ready[rank, step - 1] if step else 0.0, free) + lasts[step]
            waits[rank, step] = max(ready[rank, step] - now, 0.0)
            begins[rank, step] = now + waits[rank, step]
        now = float((begins[:, step] + work).max())
        ends.append(now)
    return waits, np.array(ends)


@given(st.floats(1.1, 1.6), st.integers(2, 5), st.floats(0.05, 0.2), st.integers(2, 6), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_all_mended_is_what_the_step_computes_and_fewer_bring_less(load, ranks, noise, depth, seed):
    """Loaders as slow as each other, uneven from batch to batch, some batches ahead: with all of them mended the step
    takes what it computes. The more are mended the more is promised; one is never promised what it waits beyond the
    moment at which another one, who waits in the last step, had its batch."""
    draw, work, fast = np.random.default_rng(seed), 100.0, np.full(60, 30.0)
    ready = [100 * load * (1 + noise * draw.standard_normal(60)) for _ in range(ranks)]
    waits, ends = _run([*ready, fast], work, depth)
    waits = waits[:, 20:]
    bound, still = limited(waits, waits), np.full((ranks + 1, 40), work)
    every = [row for row in range(ranks + 1) if bound[row].any()]
    told = [mended_us(waits, still, bound, every[:n]).sum() for n in range(len(every) + 1)]
    assert ranks not in every
    assert told[-1] == pytest.approx((ends[-1] - ends[19]) - 40 * work, rel=0.02, abs=1.0)
    assert told == sorted(told)
    last = waits[:, -1].argsort()
    if bound[last[-2], -1]:
        assert mended_us(waits, still, bound, [int(last[-1])]).sum() <= waits[last[-1], -1] - waits[last[-2], -1] + 1e-6


def test_a_pause_that_no_loader_is_seen_in_bounds_nothing():
    """One rank starves, another pauses once: in a timeline without its loader, or without a timeline."""
    waits = np.array([[40.0] * 6, [0.4, 0.4, 30.0, 0.4, 0.4, 0.4], [0.4] * 6])
    for seen in (np.array([[40.0] * 6, [0.3] * 6, [0.3] * 6]), np.full(waits.shape, NOBODY)):
        bound = limited(waits, seen)
        assert bound.any(axis=1).tolist() == [True, False, False]


def test_nobody_waits_nobody_is_limited():
    """Noise around nothing."""
    assert not limited(np.zeros((4, 5)), np.full((4, 5), NOBODY)).any()


@pytest.mark.parametrize(("sizes", "seed"), [((0.3, 0.31), 1), ((0.45, 0.43), 5), ((0.33, 0.32, 0.32), 9)])
def test_slow_loaders_of_several_ranks_are_told_together(tmp_path, sizes, seed):
    """Of four ranks two or three have slow loaders: all of them are named, with what mending all of them brings."""
    healthy = replace(SMALL, seed=seed, steps=8)
    slow = replace(healthy, faults=tuple(Fault("slow_data", rank, size) for rank, size in enumerate(sizes)))
    write_profile(simulate(slow), tmp_path)
    promising = [f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.saving]
    gained = simulate(slow).step_us - simulate(healthy).step_us
    assert [f.verdict for f in promising] == ["data-starved-rank"]
    assert promising[0].subject.ranks == tuple(range(len(sizes)))
    assert promising[0].saving.us == pytest.approx(gained, rel=0.15)


def _loaded_ahead(pipeline, seed):
    """Two data parallel ranks or two stages, the loader of each as slow as the other's, two batches ahead at most.
    (scenario, course of its steps)"""
    scenario = replace(SMALL, data=2 // pipeline, pipeline=pipeline, micro_batches=4, framework="pytorch", steps=6)
    usual, draw = simulate(scenario).step_us, np.random.default_rng(seed)
    ready = [1.5 * usual * (1 + 0.15 * draw.standard_normal(60)) for _ in range(2)]
    waits = _run(ready, usual, 2)[0][:, 30:36]
    return scenario, [[(1.0, float(waits[rank, step]), 0.0) for rank in range(2)] for step in range(6)]


def _told(scenario, course, folder, monkeypatch):
    """(findings that promise something, what the step gains without any wait for data)"""
    usual = simulate(scenario).step_us
    monkeypatch.setattr(physics._Course, "partial", lambda self: course)
    slow = simulate(scenario)
    write_profile(slow, folder, trace=True)
    found = advise([folder], load_rules(), Options(jobs=1)).findings
    return [f for f in found if f.saving], slow.step_us - usual


@pytest.mark.parametrize(("pipeline", "seed"), [(1, 4), (1, 10), (2, 10)])
def test_all_that_load_are_told_together_where_their_workers_load_ahead(tmp_path, monkeypatch, pipeline, seed):
    """The batches of the one come no sooner with the other's loader mended, so neither is told alone."""
    promising, gained = _told(*_loaded_ahead(pipeline, seed), tmp_path, monkeypatch)
    assert [(f.verdict, f.subject.ranks) for f in promising] == [("data-starved-rank", (0, 1))]
    assert promising[0].saving.us == pytest.approx(gained, rel=0.3)


@pytest.mark.parametrize("seed", [6, 7, 11])
def test_waits_of_any_length_hide_as_much_in_every_step(tmp_path, monkeypatch, seed):
    """A last stage whose batches come late by another time in each step: a part of each wait is hidden behind the
    stage before it, and only the rest is promised."""
    scenario, course = _loaded_ahead(2, seed)
    promising, gained = _told(scenario, course, tmp_path, monkeypatch)
    starved = next(f for f in promising if f.verdict == "data-starved-rank")
    assert starved.saving.us == pytest.approx(gained, rel=0.2)
