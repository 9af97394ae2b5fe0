"""What the step gains where kernels get shorter: as much as the collectives that they hid leave of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters import facts_of
from meeting import meeting

from advisor.facts.account import shortened
from advisor.facts.account.shortened import PARTS, in_line, kept_ratios, lined_up, shorter, shorter_by
from advisor.facts.cluster.replay import gain, play
from advisor.facts.device.chain import Chain
from advisor.model import RUN
from benchmarks.simulator import Scenario

BUSY = Scenario(
    data=4, layers=6, steps=5, kernel_us=500.0, launch_us=4.0, gradient_mb_per_layer=200.0, buckets=6, noise=0.2, seed=5
)  # fmt: skip


@pytest.mark.parametrize("left", [0.5, 0.25])
def test_the_step_gains_what_it_loses_when_kernels_are_shorter(tmp_path: Path, left: float) -> None:
    """The same training with shorter kernels is as much shorter as the replay says, and not by what kernels take less:
    reductions that were hidden are not, one behind the other."""
    facts, run = facts_of(BUSY, tmp_path / "long")
    then, _ = facts_of(replace(BUSY, kernel_us=BUSY.kernel_us * left), tmp_path / "short")
    before, computing = (facts.number(name, RUN) for name in ("step.time_us", "step.computing_us"))
    after, computed = (then.number(name, RUN) for name in ("step.time_us", "step.computing_us"))
    assert before and computing and after and computed
    gone, gained = computing - computed, before - after
    assert gained < 0.85 * gone, "the scenario hides collectives"
    ratios = kept_ratios(run, facts)
    assert ratios is not None
    told = float(np.interp(gone / computing, PARTS, np.multiply(PARTS, ratios))) * computing
    assert told == pytest.approx(gained, rel=0.1)


@pytest.mark.parametrize(
    "scenario",
    [replace(BUSY, gradient_mb_per_layer=0.5), replace(BUSY, data=1, tensor=4), replace(BUSY, data=1, pipeline=2)],
    ids=["small gradients", "tensor parallel", "pipeline"],
)
def test_where_computing_hides_nothing_all_is_gained(tmp_path: Path, scenario: Scenario) -> None:
    """Collectives that computing waits for stay as they are, and what is behind them comes as much sooner."""
    facts, run = facts_of(scenario, tmp_path)
    assert kept_ratios(run, facts) == (1.0,) * len(PARTS)


def test_one_rank_at_hand_tells_the_same(tmp_path: Path) -> None:
    """Its collectives last as long as their data moves, whoever is absent."""
    whole, all_ranks = facts_of(BUSY, tmp_path / "all")
    facts, run = facts_of(replace(BUSY, missing_ranks=(1, 2, 3)), tmp_path / "one")
    assert kept_ratios(run, facts) == pytest.approx(kept_ratios(all_ranks, whole), abs=0.08)


def test_of_many_ranks_one_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where replaying all of them takes too long, the first one's own step does."""
    facts, run = facts_of(BUSY, tmp_path)
    monkeypatch.setattr(shortened, "MOST_EVENTS", 400)
    _, again = facts_of(BUSY, tmp_path / "again")
    told = kept_ratios(again, facts)
    assert told != kept_ratios(run, facts) and told == pytest.approx(kept_ratios(run, facts), abs=0.08)
    assert 0 < shortened.affordable_replays(again) < 400


def test_without_collectives_nothing_tells_and_nothing_is_taken_back(tmp_path: Path) -> None:
    """A single device's step is no matter of a replay."""
    facts, run = facts_of(replace(BUSY, data=1), tmp_path)
    assert in_line(run) is None and kept_ratios(run, facts) is None
    assert not facts.has("step.kept_ratios") and not facts.has("operator_type.kept_ratios")


def test_types_are_told_by_where_their_kernels_lie(tmp_path: Path) -> None:
    """Each type has its own ratios, none above 1, and gains grow ever slower with what goes."""
    facts, run = facts_of(BUSY, tmp_path)
    told = facts.of("operator_type.kept_ratios")
    assert told
    for fact in told.values():
        assert isinstance(fact.value, tuple)
        ratios = [float(ratio) for ratio in fact.value]
        assert all(0 <= ratio <= 1 for ratio in ratios) and ratios == sorted(ratios, reverse=True)
    found = in_line(run)
    assert found is not None
    kind = next(iter(told)).id
    own = np.mean([chain.of_type[kind].sum() for chain in found.chains.values()])
    assert gain(found, shorter_by(found, kind, own / 2)) == pytest.approx(
        gain(found, shorter(found, kind, 0.5)), rel=0.02
    )
    assert shorter(found, "no such type", 1.0) == {}


def test_collectives_that_never_queued_do_so_once_kernels_are_shorter() -> None:
    """Two reductions of 60 µs, each released by 100 µs of computing: with a tenth of it the second waits for the
    first, and both stand at the end."""
    name = ("", "hcom_allReduce__1_0_1", "", "hcom_allReduce__1_1_1")
    start, busy = np.array([0.0, 100.0, 100.0, 200.0]), np.array([100.0, 60.0, 100.0, 60.0])
    chain = Chain("1", name, start, busy, np.zeros(4), np.zeros(4), np.full(4, -1))
    found = meeting({0: chain, 1: chain})
    found.pure = [60.0, 60.0]
    queued = lined_up(found)
    assert play(queued, {}) == pytest.approx(260.0)
    assert play(queued, shorter(queued, "", 0.9)) == pytest.approx(130.0)
    assert play(found, shorter(found, "", 0.9)) == pytest.approx(80.0), "who never queued would not wait"
