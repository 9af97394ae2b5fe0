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
    """The starved rank is told with what it waits longer, and what all ranks wait beside it, once each."""
    storage = replace(SMALL, faults=(Fault("slow_storage", 0, 0.5),), framework=framework, steps=8)
    usual, slow = simulate(replace(storage, faults=())).step_us, simulate(storage).step_us
    both = simulate(replace(storage, faults=(*storage.faults, Fault("slow_data", 1, 0.9))))
    write_profile(both, tmp_path, trace=True)
    told = _promised(tmp_path)
    common, longer = told["data-processing-bottleneck"], told["data-starved-rank"]
    assert longer.subject.id == "1"
    assert longer.saving.us_per_step == pytest.approx(both.step_us - slow, rel=0.15)
    if framework == "pytorch":  # of MindSpore's pipeline nobody knows which operation is slow: at stake
        assert common.saving.us_per_step == pytest.approx(slow - usual, rel=0.15)
        assert common.saving.us_per_step + longer.saving.us_per_step <= 1.05 * (both.step_us - usual)


def test_later_stages_load_nothing(tmp_path, monkeypatch):
    """Ranks of later pipeline stages take no batches: what both ranks of the first stage wait is told as common, and
    only the rest as one rank's."""
    scenario = replace(SMALL, data=2, pipeline=2, micro_batches=4, framework="pytorch", steps=8)
    usual = simulate(scenario).step_us
    waits = {0: 0.4 * usual, 1: 0.6 * usual}
    monkeypatch.setattr(
        physics._Course, "partial", lambda self: [[(1.0, waits.get(r, 0.0), 0.0) for r in range(4)]] * 8
    )
    write_profile(simulate(scenario), tmp_path, trace=True)
    told = _promised(tmp_path)
    assert told["data-processing-bottleneck"].saving.us_per_step == pytest.approx(waits[0], rel=0.1)
    assert told["data-starved-rank"].subject.id == "1"
    assert told["data-starved-rank"].saving.us_per_step == pytest.approx(waits[1] - waits[0], rel=0.2)
