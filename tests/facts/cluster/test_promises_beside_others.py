"""What is promised of one cause stands beside another that hides a part of it, on simulated steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import judged

from benchmarks.simulator import Fault, Scenario, simulate

STAGES = Scenario(data=2, pipeline=4, micro_batches=8, layers=3, steps=4, seed=5)
WHOLE = Scenario(data=8, layers=4, steps=4, seed=3)
CASES = {
    "a loader, beside a slow card of the same stage that does not set the pace yet": (
        "CLUS020", replace(STAGES, faults=(Fault("slow_data", 0, 0.2), Fault("slow_compute", 1, 0.15))), 0,
    ),
    "many small collectives, of which a slow card hides a part": (
        "COMM070", replace(WHOLE, faults=(Fault("small_packets"), Fault("slow_compute", 1, 0.3))), 0,
    ),
    "a card's slow links, whose messages mostly start up": (
        "COMM040", replace(WHOLE, sharded=True, faults=(Fault("slow_card", 1, 2.0), Fault("small_packets"))), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_a_cause_promises_what_mending_it_alone_gains(case, tmp_path):
    """Within a quarter of what the simulator gains without it, the other one still there."""
    rule, scenario, fault = CASES[case]
    run, found = judged(scenario, tmp_path)
    left = tuple(f for i, f in enumerate(scenario.faults) if i != fault)
    gained = run.step_us - simulate(replace(scenario, faults=left)).step_us
    assert found[rule].saving is not None
    assert found[rule].saving.us == pytest.approx(gained, rel=0.25)


def test_what_one_rank_holds_up_is_not_what_all_of_them_wait_for(tmp_path):
    """The others wait in collectives while one rank pauses, and idle while all wait for data: both are gained."""
    scenario = replace(WHOLE, steps=8, faults=(Fault("slow_storage", 0, 0.3), Fault("pauses", 1, 0.2)))
    run, found = judged(scenario, tmp_path, trace=True)
    gained = run.mean_us - simulate(replace(scenario, faults=())).mean_us
    after = [f.saving.after_others_us for f in found.values() if f.saving and f.saving.after_others_us]
    assert sum(after) == pytest.approx(gained, rel=0.2)


def test_stages_that_a_slow_link_hides_are_told_with_what_they_give_behind_it(tmp_path):
    """While all wait for the link nobody waits for the longest stage; once it is mended everybody does."""
    faults = (Fault("stage_imbalance", 1, 0.5), Fault("slow_link", (2, 3), 150.0))
    scenario = replace(STAGES, data=1, layers=4, faults=faults)
    run, found = judged(scenario, tmp_path)
    mended = simulate(replace(scenario, faults=faults[:1])).step_us
    even = simulate(replace(scenario, faults=())).step_us * 18 / 16  # the longest stage has two layers more
    told, link = found["CLUS060"], found["COMM040"]
    assert link.saving is not None and link.saving.us == pytest.approx(run.step_us - mended, rel=0.2)
    assert told.saving is not None and told.saving.after_others_us == pytest.approx(mended - even, rel=0.3)
