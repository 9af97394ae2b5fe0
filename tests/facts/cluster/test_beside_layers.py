"""What one stage computes beside its layers, as many as the others have: an embedding, a head."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from clusters import PIPELINE, judged

from advisor.facts.cluster.pipeline.beside import with_shapes
from advisor.facts.device.course import Course
from advisor.pipeline import Options, measure
from benchmarks.simulator import Fault, simulate, write_profile

STAGES = replace(PIPELINE, pipeline=4, data=1, layers=2, micro_batches=8, steps=4)


def _judged(faults, tmp_path, scenario=STAGES):
    return judged(replace(scenario, faults=faults), tmp_path)


@pytest.mark.parametrize(("stage", "layers"), [(0, 0.6), (3, 0.6), (2, 0.45)])
def test_gathers_of_one_stage_cost_what_the_step_is_longer(tmp_path, stage, layers):
    """No whole layer that moves evens it out; the operators that make it are named."""
    slow, found = _judged((Fault("lookups", stage, layers),), tmp_path / "slow")
    even, _ = _judged((), tmp_path / "even")
    told = found["CLUS062"]
    assert told.subject.id == str(stage) and told.role.value == "root_cause" and "CLUS060" not in found
    assert told.saving is not None and told.saving.us == pytest.approx(slow.step_us - even.step_us, rel=0.2)
    named = [each.value for each in told.evidence if each.fact == "stage.beside_operators"]
    assert "GatherV2" in told.message.en and all("GatherV2" in str(each) for each in named)


def test_products_that_somebody_has_to_do_are_shared_not_gone(tmp_path):
    """A head of half a layer: its stage is longer, and all four with a quarter of it are as even as can be."""
    slow, found = _judged((Fault("head", 3, 0.6),), tmp_path / "slow")
    shared, _ = _judged(tuple(Fault("head", stage, 0.15) for stage in range(4)), tmp_path / "shared")
    told = found["CLUS062"]
    assert told.subject.id == "3" and told.confidence.value == "medium"
    assert told.saving is not None and told.saving.us == pytest.approx(slow.step_us - shared.step_us, rel=0.2)


def test_a_small_head_is_every_models(tmp_path):
    """It is less than what a change of the stages repays, and nobody is accused of it."""
    _, found = _judged((Fault("head", 3, 0.12), Fault("lookups", 0, 0.05)), tmp_path)
    assert not {"CLUS060", "CLUS061", "CLUS062"} & found.keys()


def test_every_stage_with_the_same_beside_its_layers_holds_nobody_up(tmp_path):
    """It lies beside no stage alone: all are even."""
    _, found = _judged(tuple(Fault("lookups", stage, 0.6) for stage in range(4)), tmp_path)
    assert not {"CLUS060", "CLUS061", "CLUS062"} & found.keys()


def test_where_layers_can_move_they_do(tmp_path):
    """A head as long as two layers: the stage with it gives layers away."""
    scenario = replace(STAGES, layers=4)
    _, found = _judged((Fault("head", 3, 2.0),), tmp_path, scenario)
    assert "CLUS060" in found and "CLUS062" not in found


def test_a_head_is_named_by_its_own_shapes():
    """The layers' products run longer in all, but in every stage: they are not what this one has beside them."""
    layers, head = ("MatMulV3", "2048,2048;5504,2048"), ("MatMulV3", "2048,2048;8000,2048")
    step = ("1",), *[np.zeros(1)] * 5, np.ones(1, np.int64)
    own = Course(*step, {layers: (96.0, 310.0), head: (12.0, 450.0)})
    other = Course(*step, {layers: (96.0, 310.0)})
    assert with_shapes("MatMulV3", own, other, 1.0) == f"MatMulV3 ({head[1]})"


def test_what_a_slow_card_of_the_stage_costs_is_no_gain_of_the_stage(tmp_path):
    """Its head is as small as any model's; with one slow card in the stage, all that stage sheds looks like a gain."""
    _, found = _judged((Fault("head", 3, 0.2), Fault("slow_compute", 6, 1.4)), tmp_path, replace(STAGES, data=2))
    assert "CLUS062" not in found and "CLUS010" in found


def test_without_shapes_nobody_knows_what_is_beside_the_layers(tmp_path):
    """A type's kernels of the layers and of the head are unlike long, and only their shapes tell them apart."""
    scenario = replace(STAGES, faults=(Fault("head", 3, 0.6),))
    for root in write_profile(simulate(scenario), tmp_path):
        path = root / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
        heading, *rows = csv.reader(path.read_text().splitlines())
        at = heading.index("Input Shapes")
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([heading, *([*row[:at], "N/A", *row[at + 1 :]] for row in rows)])
    facts = measure([tmp_path], ["stage.beside_us", "stage.layers"], Options(jobs=1)).facts
    assert facts.of("stage.layers") and not facts.of("stage.beside_us")
