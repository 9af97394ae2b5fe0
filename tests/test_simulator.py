"""The simulator's profiles are what the readers expect of the real ones, and its physics holds."""

from dataclasses import replace

import pytest

from advisor.sources.discover import load_profile
from benchmarks.simulator import Fault, Scenario, random_scenario, simulate, truths, write_profile
from benchmarks.simulator.scenario import FAULTS

SMALL = Scenario(data=2, pipeline=2, layers=1, micro_batches=2, steps=3, seed=2)


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_readers_take_every_file_without_complaint(tmp_path, framework):
    """All tables are read, nothing is noted, ranks and groups are known."""
    write_profile(simulate(replace(SMALL, framework=framework)), tmp_path, trace=True)
    profile = load_profile([tmp_path])
    assert [rank.rank for rank in profile.ranks] == [0, 1, 2, 3]
    assert profile.framework == framework
    for rank in profile.ranks:
        for table in ("steps", "kernels", "collectives", "transports", "links", "operator_types", "host_api"):
            frame = rank.read(table)
            assert frame is not None, table
            assert len(frame), table
        assert rank.has("trace")
        assert not rank.problems
        assert {(0, 1), (2, 3)} & {tuple(members) for members in rank.groups.values()}


def test_a_collective_ends_together_and_starts_with_the_last(tmp_path):
    """Every member leaves a collective at once, and none before the last has come."""
    run = simulate(replace(SMALL, faults=(Fault("slow_compute", 1, 0.5),)))
    for step in run.ops:
        for op in (op for ops in step for op in ops if op.joint is not None):
            ends = [other.end for other in op.joint.ops.values()]
            assert max(ends) - min(ends) < 50
            assert min(ends) >= max(other.start for other in op.joint.ops.values())


@pytest.mark.parametrize("kind", [k for k in FAULTS if k != "stage_imbalance"])
def test_every_fault_costs_time(kind):
    """A fault makes the step longer, and only names what it broke."""
    scenario = random_scenario(kind, 5)
    assert len(truths(scenario)) == 1
    healthy = simulate(replace(scenario, faults=())).step_us
    assert simulate(scenario).step_us > 0.99 * healthy


def test_same_seed_same_run():
    """Two simulations of one scenario are equal."""
    assert simulate(SMALL).step_us == simulate(SMALL).step_us
