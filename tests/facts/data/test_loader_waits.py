"""The timeline names the loader where the loop waits for it, and counts what one rank's pause costs all."""

from dataclasses import replace

import pytest
from clusters import SMALL

from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile


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
