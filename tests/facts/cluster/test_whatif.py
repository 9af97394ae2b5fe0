"""Causes that hide each other, replayed together on a simulated step."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from benchmarks.simulator import Fault, Scenario, simulate, write_profile

CASES = {
    "three ranks alike": Scenario(
        data=8, layers=3, steps=4, seed=3, faults=tuple(Fault("slow_compute", rank, 0.25) for rank in (2, 5, 7))
    ),
    "two ranks of tensor-parallel pairs": Scenario(
        data=8, tensor=2, layers=6, buckets=6, steps=3, seed=3, kernel_us=540.0, gradient_mb_per_layer=4.0,
        activation_mb=1.4, ranks_per_host=4, faults=(Fault("slow_compute", 1, 0.3), Fault("slow_compute", 15, 0.28)),
    ),
    "a rank and a link": Scenario(
        data=8, layers=3, steps=4, seed=3, gradient_mb_per_layer=24,
        faults=(Fault("slow_compute", 2, 0.3), Fault("slow_link", (3, 4), 4.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_what_causes_give_together_is_what_removing_them_gains(case, tmp_path):
    """One finding for ranks late alike, and a joint promise within a fifth of the simulator's own gain."""
    from advisor.api import load_rules
    from advisor.pipeline import Options, advise

    scenario = CASES[case]
    broken = simulate(scenario)
    write_profile(broken, tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    promised = [f for f in report.findings if f.role.value == "root_cause" and f.saving]
    late = [f for f in promised if f.verdict == "slow-compute-rank"]
    slow = tuple(fault.where for fault in scenario.faults if fault.kind == "slow_compute")
    assert [f.subject.ranks for f in late] == [slow]
    assert report.whatif is not None
    told = report.whatif.step_time_us[""] - report.whatif.step_time_us[",".join(report.whatif.causes)]
    gained = broken.step_us - simulate(replace(scenario, faults=())).step_us
    assert told == pytest.approx(gained, rel=0.2)
    keys = report.whatif.step_time_us
    for size in range(1, len(report.whatif.causes) + 1):
        for chosen in combinations(report.whatif.causes, size):
            assert keys[",".join(chosen)] <= keys[""]
