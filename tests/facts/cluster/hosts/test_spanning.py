"""Groups that shard layers and span hosts are told with what another order of the ranks gives."""

from dataclasses import dataclass, replace

import pytest
from clusters import SMALL, facts_of

from advisor.engine.judge import judge
from advisor.facts.cluster.hosts.spanning import Placement, placement
from advisor.facts.collectives.parallelism import Partition
from advisor.model import RUN
from advisor.pipeline import Options, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario

HOSTS = {0: "a", 1: "a", 2: "b", 3: "b"}


@dataclass(frozen=True)
class InTurn(Scenario):
    """Ranks are dealt out to the hosts in turn: neighbours lie on different ones."""

    def host(self, rank: int) -> int:
        return rank % (self.world_size // self.ranks_per_host)


def test_another_order_of_the_ranks_gives_what_was_promised(tmp_path):
    """Two ranks share each layer; on two hosts, each layer waits for the network. With both on one host the gradients
    cross instead, and the step is as much shorter as was said."""
    own = {**vars(SMALL), "framework": "pytorch", "data": 2, "tensor": 2, "layers": 6, "ranks_per_host": 2}
    sizes = {"activation_mb": 40.0, "hccs_gb_s": 60.0, "gradient_mb_per_layer": 20.0}
    in_turn, _ = facts_of(InTurn(**{**own, **sizes}), tmp_path / "in_turn")
    together, _ = facts_of(Scenario(**{**own, **sizes}), tmp_path / "together")
    truth = in_turn.number("step.time_us", RUN) - together.number("step.time_us", RUN)
    report = judge(measure([tmp_path / "in_turn"], None, Options(jobs=1)), load_rules())
    found = next(f for f in report.findings if f.rule == "COMM091")
    assert found.saving.us_per_step == pytest.approx(truth, rel=0.25)
    assert "(WORLD_SIZE // 2, 2)" in found.remedies[0].snippet  # the size stays as it is
    assert not any(remedy.id == "shard-within-hosts" for remedy in found.remedies)
    kept = judge(measure([tmp_path / "together"], None, Options(jobs=1)), load_rules())
    assert not any(f.rule == "COMM091" for f in kept.findings)


def test_groups_larger_than_a_host_gain_nothing_from_another_order(tmp_path):
    """What smaller groups would give, these files do not tell."""
    large = replace(SMALL, framework="pytorch", data=1, tensor=4, ranks_per_host=2, activation_mb=40.0, hccs_gb_s=60.0)
    facts, _ = facts_of(large, tmp_path)
    assert facts.number("placement.layer_group_size", RUN) == 4 and facts.number("placement.host_rank_count", RUN) == 2
    assert facts.number("placement.saving_us", RUN) is None
    found = next(f for f in judge(measure([tmp_path], None, Options(jobs=1)), load_rules()).findings
                 if f.verdict == "sharding-redistribution")  # fmt: skip
    (smaller,) = [remedy for remedy in found.remedies if remedy.id == "shard-within-hosts"]
    assert "--tensor-model-parallel-size 2 " in smaller.snippet


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({"tp0": (0, 2), "tp1": (1, 3)}, Placement(2, 2)),
        ({"tp0": (0, 1), "tp1": (2, 3)}, None),
        ({"tp0": (0, 2), "tp1": (1,)}, Placement(2, 2)),
        ({"tp0": (0, 2), "tp1": (1, 5)}, None),  # nobody tells where rank 5 runs
        ({"dp0": (0, 2)}, None),
    ],
)
def test_only_groups_of_which_all_span_hosts_count(groups, expected):
    """A single one inside a host shows that the order of the ranks is not the cause."""
    roles = {name: "tensor" if name.startswith("tp") else "data" for name in groups}
    assert placement(Partition(host=HOSTS, groups=groups, role=roles)) == expected
