"""A late host put right launches what its peers launch, also into the background."""

from dataclasses import replace

import pytest
from clusters import SMALL, facts_of

from advisor.facts.cluster.replay import Change, model, play
from advisor.model import RUN, Subject
from advisor.pipeline import Options, measure
from benchmarks.simulator import Fault, simulate, write_profile

SHARDED = replace(SMALL, data=4, ranks_per_host=2, layers=6, sharded=True, gradient_mb_per_layer=60.0)


def test_gathers_that_a_late_host_launches_late_are_part_of_what_it_costs(tmp_path):
    """Weights are gathered in the background, layer by layer: launched late, they are exposed on all ranks;
    launched on time, they are not."""
    on_time, _ = facts_of(SHARDED, tmp_path / "on_time")
    late, _ = facts_of(replace(SHARDED, faults=(Fault("slow_host", 3, 0.5),)), tmp_path / "late")
    costs = late.number("step.time_us", RUN) - on_time.number("step.time_us", RUN)
    assert late.number("rank.saving_us", Subject("rank", "3", (3,))) == pytest.approx(costs, rel=0.1)


def test_a_rank_that_launches_as_its_peer_keeps_what_it_has_to_compute(tmp_path):
    """Only launches come on time: a card that is slow besides stays as slow."""
    _, run = facts_of(replace(SHARDED, faults=(Fault("slow_host", 3, 0.5), Fault("slow_compute", 3, 0.3))), tmp_path)
    found = model(run)
    alike, faster = ({3: Change(compute, like=0)} for compute in (1.0, 1 / 1.3))
    assert play(found, alike) > 1.15 * play(found, faster)
    assert play(found, {}) > 1.1 * play(found, alike)


def test_a_peer_whose_files_hold_nothing_is_no_example(tmp_path):
    """Its folder is there, and nobody knows whether it was on time."""
    write_profile(simulate(replace(SHARDED, faults=(Fault("slow_host", 3, 0.5),))), tmp_path)
    for path in next(tmp_path.glob("*_4002_*")).rglob("*.*"):
        if path.is_file():
            path.write_bytes(b"")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("run.failed_measures", RUN) is None
    assert facts.number("rank.saving_us", Subject("rank", "3", (3,))) > 0
