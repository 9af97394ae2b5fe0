"""A stage that computes its forward passes again, with as many layers as the others."""

from dataclasses import replace

import pytest
from clusters import PIPELINE, judged

from benchmarks.simulator import Fault

STAGES = replace(PIPELINE, pipeline=4, data=1, layers=3, micro_batches=6, steps=4)


def _judged(faults, tmp_path):
    return judged(replace(STAGES, faults=faults), tmp_path)


@pytest.mark.parametrize(("stage", "part"), [(1, 1.0), (2, 1.0), (1, 2 / 3)])
def test_what_one_stage_computes_again_costs_what_the_step_is_longer(tmp_path, stage, part):
    """No whole layer that moves evens it out; without it the step is as long as that of equal stages."""
    slow, found = _judged((Fault("recompute", stage, part),), tmp_path / "slow")
    even, _ = _judged((), tmp_path / "even")
    told = found["CLUS061"]
    assert told.subject.id == str(stage) and told.role.value == "root_cause" and "CLUS060" not in found
    assert told.saving is not None and told.saving.us == pytest.approx(slow.step_us - even.step_us, rel=0.25)
    shares = [each.value for each in told.evidence if each.fact == "stage.recomputed_share"]
    assert shares == [pytest.approx(part, abs=0.01)]


def test_where_all_stages_compute_again_none_stands_out(tmp_path):
    """Recomputing saves memory everywhere: nobody waits for it."""
    _, found = _judged(tuple(Fault("recompute", stage, 1.0) for stage in range(4)), tmp_path)
    assert not {"CLUS060", "CLUS061"} & found.keys()
