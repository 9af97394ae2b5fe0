"""The timeline names the loader where the loop waits for it, and counts what one rank's pause costs all."""

from dataclasses import replace

import pytest
from clusters import SMALL

from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, physics, simulate, write_profile


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_loader_that_all_ranks_wait_for(tmp_path, framework):
    """Slow storage is told as data processing, with what the wait costs, and the idle device as its symptom."""
    scenario = replace(SMALL, faults=(Fault("slow_storage", 0, 0.5),), framework=framework, steps=5)
    run = simulate(scenario)
    write_profile(run, tmp_path, trace=True)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    first = report.findings[0]
    assert (first.verdict, first.subject.id) == ("data-processing-bottleneck", "run")
    # which operation is slow is not known: time at stake, or at most what workers of torch's loader could hide
    assert first.saving is None or first.saving.kind == "upper_bound"
    lost = first.saving or first.at_stake
    assert lost is not None and lost.us_per_step == pytest.approx(run.spans[2][0].data_wait, rel=0.15)
    idle = [f for f in report.findings if f.verdict == "device-idle-gaps"]
    assert all(f.role == "symptom" for f in idle)


def test_one_ranks_loader_costs_all_of_them(tmp_path):
    """Three ranks wait for the fourth's loader: the cost is that of the longest wait, not the mean."""
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_data", 1, 0.5),))), tmp_path, trace=True)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    own = facts.value("timeline.loader_idle_us", Subject("rank", "1", (1,)))
    assert facts.value("timeline.loader_stall_us", RUN) == pytest.approx(own, rel=0.1)
    assert own > 0.1 * facts.value("step.time_us", RUN)


def _promised(folder):
    report = advise([folder], load_rules(), Options(jobs=1))
    return {f.verdict: f for f in report.findings if f.role == "root_cause" and f.saving is not None}


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_all_ranks_starve_and_one_of_them_longer(tmp_path, framework):
    """What all ranks wait and what one waits longer is told once each. Workers of torch's loader load ahead: if the
    others' were faster they would have batches in hand, so all are told together, and not one alone as certain."""
    storage = replace(SMALL, faults=(Fault("slow_storage", 0, 0.5),), framework=framework, steps=8)
    usual, slow = simulate(replace(storage, faults=())).step_us, simulate(storage).step_us
    both = simulate(replace(storage, faults=(*storage.faults, Fault("slow_data", 1, 0.9))))
    write_profile(both, tmp_path, trace=True)
    told = _promised(tmp_path)
    starved = told["data-starved-rank"]
    if framework == "pytorch":
        assert set(told) == {"data-starved-rank"}
        assert (starved.subject.ranks, starved.confidence) == ((0, 1, 2, 3), "medium")
        assert starved.saving.us_per_step == pytest.approx(both.step_us - usual, rel=0.15)
        return
    assert "data-processing-bottleneck" in told  # which operation is slow is not known: at stake
    assert starved.subject.ranks == (1,)
    assert starved.saving.us_per_step == pytest.approx(both.step_us - slow, rel=0.15)


def test_later_stages_load_nothing(tmp_path, monkeypatch):
    """Ranks of later pipeline stages take no batches: both ranks of the first stage are told, which load ahead, with
    what the longer wait costs."""
    scenario = replace(SMALL, data=2, pipeline=2, micro_batches=4, framework="pytorch", steps=8)
    usual = simulate(scenario).step_us
    waits = {0: 0.4 * usual, 1: 0.6 * usual}
    monkeypatch.setattr(
        physics._Course, "partial", lambda self: [[(1.0, waits.get(r, 0.0), 0.0) for r in range(4)]] * 8
    )
    write_profile(simulate(scenario), tmp_path, trace=True)
    told = _promised(tmp_path)
    assert set(told) == {"data-starved-rank"}
    assert told["data-starved-rank"].subject.ranks == (0, 1)
    assert told["data-starved-rank"].saving.us_per_step == pytest.approx(waits[1], rel=0.1)


LATE = replace(SMALL, framework="pytorch", fetches_late=True, steps=8)
"""A loop that clears its gradients before it asks for its batch: the device has run something of the step by then."""


def test_a_batch_asked_for_behind_the_first_kernel_is_waited_for_all_the_same(tmp_path):
    """One rank's loader is slow and the wait lies between kernels: it starves, its host launches nothing late."""
    slow = simulate(replace(LATE, faults=(Fault("slow_data", 1, 0.5),)))
    write_profile(slow, tmp_path, trace=True)
    facts, rank = measure([tmp_path], None, Options(jobs=1)).facts, Subject("rank", "1", (1,))
    within = facts.value("timeline.loader_within_us", rank)
    assert within == pytest.approx(facts.value("timeline.loader_idle_us", rank), rel=0.05)
    assert facts.value("rank.late_cause", rank) == "data"
    told = _promised(tmp_path)["data-starved-rank"]
    assert told.subject.id == "1"
    assert told.saving.us_per_step == pytest.approx(slow.step_us - simulate(LATE).step_us, rel=0.15)


def test_in_some_steps_as_well(tmp_path, monkeypatch):
    """It stalls in two of eight steps: its loader is the cause, not a host that pauses."""
    stall = 0.8 * simulate(LATE).step_us
    waits = [[(1.0, stall if rank == 2 and index in (2, 5) else 0.0, 0.0) for rank in range(4)] for index in range(8)]
    monkeypatch.setattr(physics._Course, "partial", lambda self: waits)
    write_profile(simulate(LATE), tmp_path, trace=True)
    told = _promised(tmp_path)
    assert "step-jitter" not in told
    assert told["data-starved-rank"].subject.id == "2"
    assert told["data-starved-rank"].saving.us_per_step == pytest.approx(stall / 4, rel=0.15)
    remedies = [each.id for each in told["data-starved-rank"].remedies]
    assert remedies[0] == "raise-loader-workers"


def test_whoever_is_last_in_a_step_its_loader_is_asked(tmp_path, monkeypatch):
    """Loaders stall on another rank each time, on one of them longest: the run's loading is too slow, and what is
    promised is what all of them cost together."""
    step_us = simulate(LATE).step_us
    stalls = {(1, 2): 0.5, (3, 0): 1.2, (5, 3): 0.4, (6, 0): 0.6}
    waits = [
        [(1.0, stalls.get((index, rank), 0.0) * step_us, 0.0) for rank in range(4)] for index in range(8)
    ]  # fmt: skip
    monkeypatch.setattr(physics._Course, "partial", lambda self: waits)
    write_profile(simulate(LATE), tmp_path, trace=True)
    told = _promised(tmp_path)
    assert "data-starved-rank" not in told
    lost = sum(stalls.values()) * step_us / 8
    assert told["data-processing-bottleneck"].saving.us_per_step == pytest.approx(lost, rel=0.15)


@pytest.mark.parametrize("late", [(4, 5, 6, 7), (1, 3)])
def test_several_loaders_that_stall_once_are_named(tmp_path, monkeypatch, late):
    """Those of all ranks of one host, or of some ranks: in one step alone each is waited for, and mending one of them
    brings next to nothing."""
    scenario = replace(LATE, data=8, ranks_per_host=4)
    stall = 2.0 * simulate(scenario).step_us
    waits = [
        [(1.0, stall * (1 - 0.05 * rank / 8) if index == 4 and rank in late else 0.0, 0.0) for rank in range(8)]
        for index in range(8)
    ]
    monkeypatch.setattr(physics._Course, "partial", lambda self: waits)
    write_profile(simulate(scenario), tmp_path, trace=True)
    told = _promised(tmp_path)
    assert "step-jitter" not in told
    assert told["data-starved-rank"].subject.ranks == late
    assert told["data-starved-rank"].saving.us_per_step == pytest.approx(stall / 8, rel=0.15)


def test_a_first_step_that_waits_for_its_batch_does_not_compile(tmp_path, monkeypatch):
    """The loader's workers start in the first step: it is told as a wait for data, not as compilation."""
    start = 4 * simulate(LATE).step_us
    waits = [[(1.0, 0.0 if index else start, 0.0) for _ in range(4)] for index in range(8)]
    monkeypatch.setattr(physics._Course, "partial", lambda self: waits)
    write_profile(simulate(LATE), tmp_path, trace=True)
    told = {f.rule for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    assert "DATA055" in told
    assert "SCHED050" not in told
