"""What a repaired rank of a pipeline gives: the input that lay ready for it while it was slow it then waits for."""

from dataclasses import replace

import pytest
from clusters import PIPELINE, judged

from benchmarks.simulator import Fault


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("virtual", [1, 2])
def test_a_slow_stage_gains_what_the_healthy_run_is_shorter(tmp_path, virtual, ahead):
    """The bubble that its slowness filled comes back, whenever it asks for its input."""
    scenario = replace(PIPELINE, pipeline=4, data=1, layers=2, micro_batches=8, steps=4, virtual=virtual)
    scenario, rank = replace(scenario, received_ahead=ahead), 1
    slow, found = judged(replace(scenario, faults=(Fault("slow_compute", rank, 0.25),)), tmp_path / "slow")
    healthy, _ = judged(scenario, tmp_path / "healthy")
    told = next(found[rule] for rule in ("CLUS010", "CLUS060") if rule in found)
    assert told.saving is not None and told.saving.us == pytest.approx(slow.step_us - healthy.step_us, rel=0.15)
