"""Extra work is evened out where it lies: a hot expert has it in its own layers, a slow card everywhere."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from meeting import meeting

from advisor.facts.cluster.groups import _above_mean
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import Change, gain
from advisor.facts.device.chain import Chain

ROUNDS = 4
USUAL, HOT = 100.0, 180.0


def chain(hot: bool, experts: float = HOT, received: int = ROUNDS) -> Chain:
    """Attention, a collective, the expert, a collective, again and again; the hot rank's experts take longer. Before
    one of the rounds something is received from another stage."""
    name, start, busy, after, now = [], [], [], [], 0.0
    for number in range(ROUNDS):
        if number == received:
            name.append(f"hcom_receive__2_{number}_1")
            start.append(now)
            busy.append(1.0)
            after.append(-1)
            now += 1.0
        for work in (USUAL, experts if hot else USUAL):
            name.append("")
            start.append(now)
            busy.append(work)
            after.append(len(name) - 2)
            now += work
            name.append(f"hcom_alltoall__1_{len(name)}_1")
            start.append(now)
            busy.append(1.0)
            after.append(-1)
            now += 1.0
    zeros = np.zeros(len(name))
    return Chain("1", tuple(name), np.array(start), np.array(busy), zeros, zeros.copy(), np.array(after))


@pytest.fixture
def step() -> Model:
    chains = {rank: chain(hot=rank == 0) for rank in range(4)}
    return meeting(chains)


def test_a_hot_expert_is_evened_out_where_its_work_lies(step, monkeypatch):
    """One factor for all segments would leave half of the extra work in the expert: the promise was half."""
    from advisor.facts.cluster import replay
    from advisor.facts.collectives.parallelism import Partition

    class Layout(Partition):
        def __init__(self) -> None:
            pass

        def peers(self) -> dict[int, list[int]]:
            return {0: [0, 1, 2, 3]}

    monkeypatch.setattr(replay, "partition", lambda run: Layout())
    own = float(step.chains[0].busy[[not name for name in step.chains[0].name]].sum())
    share = ROUNDS * (HOT - USUAL) / own
    evened = gain(step, {0: Change(replay._evened(None, step, 0, {0}, share))})
    uniform = gain(step, {0: Change(1 - share)})
    assert evened == pytest.approx(ROUNDS * (HOT - USUAL))
    assert uniform is not None and uniform < 0.75 * ROUNDS * (HOT - USUAL)


def test_transfers_between_stages_hide_no_hot_expert(monkeypatch):
    """They come when another stage is ready, on each rank at another place among its collectives."""
    from advisor.facts.cluster import replay

    monkeypatch.setattr(replay, "_members", lambda run, rank: range(4))
    chains = {rank: chain(hot=rank == 0, received=rank) for rank in range(4)}
    found, own = SimpleNamespace(chains=chains), float(chains[0].busy[chains[0].computes].sum())
    share = ROUNDS * (HOT - USUAL) / own
    factor = np.broadcast_to(replay._evened(None, found, 0, {0}, share), len(chains[0].name))
    work = (chains[0].busy * factor)[chains[0].computes]
    assert work == pytest.approx([USUAL] * (2 * ROUNDS))
    changes: dict[int, Change] = {0: Change()}
    replay._deal_out(None, found, range(4), (0,), changes)
    each = [(one.busy * changes[rank].compute)[one.computes] for rank, one in chains.items()]
    assert np.array(each)[:, 1::2] == pytest.approx(USUAL + (HOT - USUAL) / 4)
    assert np.array(each)[:, ::2] == pytest.approx(USUAL)


@pytest.mark.parametrize("taken", [(180.0, 140.0), (260.0, 120.0), (400.0, 380.0)])
def test_uneven_work_dealt_anew_is_the_mean_of_all(monkeypatch, taken):
    """Nothing is lost and nobody is left with more: what two ranks have too much, those take that have less."""
    from advisor.facts.cluster import replay

    monkeypatch.setattr(replay, "_members", lambda run, rank: range(4))
    chains = {rank: chain(rank < 2, (*taken, USUAL, USUAL)[rank]) for rank in range(4)}
    changes: dict[int, Change] = {0: Change(), 1: Change()}
    replay._deal_out(None, meeting(chains), range(4), (0, 1), changes)
    work = {rank: np.where([not name for name in each.name], each.busy, 0.0) for rank, each in chains.items()}
    dealt = [float((work[rank] * changes.get(rank, Change()).compute).sum()) for rank in chains]
    assert dealt == pytest.approx([np.mean([each.sum() for each in work.values()])] * 4)


def test_without_a_replay_uneven_work_gives_what_the_longest_has_above_the_mean():
    """A rank that computes three times as long as its three peers is left with one and a half times as much."""
    balance = SimpleNamespace(ranks=[0, 1, 2, 3], compute=np.array([[30.0], [10.0], [10.0], [10.0]]))
    assert _above_mean(balance, [0, 1, 2, 3], {0}) == 15.0
    assert _above_mean(balance, [1, 2, 3], {0}) == 0.0
