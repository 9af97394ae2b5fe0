"""What to do about exposed communication is about what moves most of it."""

from __future__ import annotations

import pytest

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Role, Subject
from advisor.ruleset.files.loader import load_rules


@pytest.mark.parametrize(("waited", "gradients"), [(0.0, 0.02), (0.11, 0.02), (0.11, 0.12)])
def test_the_remedy_is_for_what_moves_most(waited: float, gradients: float) -> None:
    """Experts' exchange is most of what moves: no gradients are to be split for it, however long ranks wait besides.
    Gradients that are exposed as well are."""
    shares = {
        "step.exposed_communication_share": 0.13 + gradients + waited, "communication.exposed_wait_share": waited,
        "communication.exposed_transfer_share": 0.13 + gradients, "communication.expert_share": 0.13,
        "communication.expert_needed_share": 0.05, "run.world_size": 8, "step.time_us": 45_900.0, "step.count": 4,
    }  # fmt: skip
    facts = FactSet([Fact(name, RUN, value) for name, value in shares.items()])
    found = next(f for f in decide(load_rules(strict=False), facts).findings if f.rule == "COMM010")
    split = {"overlap-communication"} if gradients > 0.1 else set()
    assert {remedy.id for remedy in found.remedies} == {"hide-expert-exchange"} | split


@pytest.mark.parametrize(("edge_us", "wanted"), [(5_700.0, set()), (1_000.0, {"prefetch-weights"})])
def test_weights_that_are_fetched_ahead_are_not_to_be_fetched_ahead(edge_us: float, wanted: set[str]) -> None:
    """What is exposed is the first gather of a step and its last reduction, and hardly anything else: then there is
    nothing to change."""
    told = {
        "step.exposed_communication_share": 0.12, "communication.exposed_wait_share": 0.001,
        "communication.exposed_transfer_share": 0.119, "communication.weights_share": 0.067, "run.world_size": 8,
        "communication.edge_us": edge_us, "step.time_us": 56_800.0, "step.count": 4,
    }  # fmt: skip
    facts = FactSet([Fact(name, RUN, value) for name, value in told.items()])
    found = next(f for f in decide(load_rules(strict=False), facts).findings if f.rule == "COMM010")
    assert {remedy.id for remedy in found.remedies} == wanted


def test_ranks_that_only_wait_shard_no_operators() -> None:
    """Data-parallel ranks that wait for a late one exchange nothing inside of their layers: sequence parallelism and
    fused products have no hold there."""
    told = {
        "step.exposed_communication_share": 0.2, "communication.exposed_wait_share": 0.2,
        "communication.exposed_transfer_share": 0.0, "communication.redistribution_share": 0.0, "run.world_size": 8,
        "step.time_us": 74_300.0, "step.count": 4,
    }  # fmt: skip
    facts = FactSet([Fact(name, RUN, value) for name, value in told.items()])
    found = next(f for f in decide(load_rules(strict=False), facts).findings if f.rule == "COMM010")
    assert "shrink-layer-exchange" not in {remedy.id for remedy in found.remedies}


def test_weights_that_are_gathered_late_stand_beside_a_late_rank() -> None:
    """What ranks transfer while nothing computes is no waiting: with that rank on time it remains."""
    run = {
        "step.exposed_communication_share": 0.31, "communication.exposed_wait_share": 0.15,
        "communication.exposed_transfer_share": 0.16, "communication.exposed_transfer_us": 48_000.0,
        "communication.weights_us": 46_000.0, "communication.edge_us": 4_000.0, "run.world_size": 8,
        "run.missing_ranks": 0, "run.rank_count": 8, "step.time_us": 303_000.0, "step.count": 6,
    }  # fmt: skip
    rank = {
        "rank.compute_excess_share": 0.16, "rank.compute_excess_us": 49_000.0, "rank.lateness_share": 0.16,
        "rank.lateness_us": 49_000.0, "rank.lateness_steadiness": 1.0, "rank.late_cause": "compute",
        "rank.kernel_speed_ratio": 1.24, "rank.saving_us": 47_800.0, "rank.saving_share": 0.158,
        "rank.saving_basis": "replay", "rank.peer_group": "stage 0", "rank.lateness_deviation": 9.0,
        "rank.alike_ranks": "5", "rank.alike_count": 1,
    }  # fmt: skip
    slow = Subject("rank", "5", (5,))
    facts = FactSet([Fact(n, RUN, v) for n, v in run.items()] + [Fact(n, slow, v) for n, v in rank.items()])
    found = {f.rule: f for f in decide(load_rules(strict=False), facts).findings}
    assert found["COMM011"].role == Role.ROOT_CAUSE and found["COMM011"].saving is not None
    assert found["CLUS040"].verdict == "waiting-on-slow-rank"
