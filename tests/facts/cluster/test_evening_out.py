"""Extra work is evened out where it lies: a hot expert has it in its own layers, a slow card everywhere."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from meeting import meeting
from msgspec.structs import replace

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

    class Layout:
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
    monkeypatch.setattr(replay, "slow_besides", lambda run: {})
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
    monkeypatch.setattr(replay, "slow_besides", lambda run: {})
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


def test_peers_that_were_not_recorded_take_their_part_of_uneven_work(monkeypatch):
    """Two of eight at hand: the surplus of one is dealt out to seven others, not to the one that was recorded."""
    from advisor.facts.cluster import replay

    balance = SimpleNamespace(ranks=[0, 1], compute=np.array([[30.0], [14.0]]))
    assert _above_mean(balance, [0, 1], {0}, absent=6) == pytest.approx(14.0)
    monkeypatch.setattr(replay, "_members", lambda run, rank: range(2))
    monkeypatch.setattr(replay, "slow_besides", lambda run: {})
    chains = {rank: chain(hot=rank == 0) for rank in range(2)}
    changes: dict[int, Change] = {0: Change()}
    replay._deal_out(None, SimpleNamespace(chains=chains), range(2), (0,), changes, absent=6)
    work = {rank: float((one.busy * changes[rank].compute)[one.computes].sum()) for rank, one in chains.items()}
    fair = ROUNDS * (2 * USUAL + (HOT - USUAL) / 8)
    assert work == pytest.approx({0: fair, 1: fair})


def test_balanced_work_leaves_a_slow_card_slow(monkeypatch):
    """Hot experts on a slow card: dealt out, each rank has the same work, which that card takes longer for as before;
    at its peers' speed as well, it takes as long as they do."""
    from advisor.facts.cluster import replay

    slowness = 1.3
    monkeypatch.setattr(replay, "_members", lambda run, rank: range(4))
    monkeypatch.setattr(replay, "slow_besides", lambda run: {0: slowness})
    hot = chain(hot=True)
    chains = {0: replace(hot, busy=np.where(hot.computes, slowness * hot.busy, hot.busy))}
    chains |= {rank: chain(hot=False) for rank in range(1, 4)}
    changes: dict[int, Change] = {0: Change()}
    replay._deal_out(None, SimpleNamespace(chains=chains), range(4), (0,), changes)
    work = {rank: float((one.busy * changes[rank].compute)[one.computes].sum()) for rank, one in chains.items()}
    fair = ROUNDS * (2 * USUAL + (HOT - USUAL) / 4)
    assert work == pytest.approx({0: slowness * fair, 1: fair, 2: fair, 3: fair})
    both = changes[0].times(Change(1 / slowness))
    assert float((chains[0].busy * both.compute)[chains[0].computes].sum()) == pytest.approx(fair)


@pytest.mark.parametrize(
    ("speed", "types", "more", "slow"),
    [
        (1.3, (1.27, 1.31), True, True),  # everything takes longer, and there is more of it
        (1.3, (1.27, 1.31), False, False),  # the card alone: it is no second cause
        (1.3, (1.0, 1.6), True, False),  # some types only: other work of equal shapes
        (1.02, (1.01, 1.03), True, False),  # cards differ by as much
    ],
)
def test_a_card_is_slow_besides_more_work(monkeypatch, speed, types, more, slow):
    """Calls that its peers make as well take longer, all types by about as much."""
    from advisor.facts.cluster import lateness, replay

    entry = lateness.Lateness(2, {"compute": 24000.0}, 24000.0, -24000.0, 1.0, None, speed)
    monkeypatch.setattr(lateness, "latenesses", lambda run: {2: entry})
    monkeypatch.setattr(lateness, "type_speeds", lambda run, rank, others: types)
    monkeypatch.setattr(replay, "_members", lambda run, rank: range(4))
    monkeypatch.setattr(replay, "has_more_work", lambda run, entry: more)
    assert replay.slow_besides.__wrapped__(SimpleNamespace()) == ({2: speed} if slow else {})


@pytest.mark.parametrize(("products", "apart"), [({1: 1.02, 6: 1.34}, True), ({1: 1.3, 6: 1.34}, False)])
def test_cards_slow_in_unlike_ways_are_told_one_by_one(monkeypatch, products, apart):
    """Slow memory on one card and slow cores on another hold up the step together: the words of one fit not both."""
    from advisor.facts.cluster import lateness

    others = {1: 1.8, 6: 1.0} if apart else {1: 1.28, 6: 1.33}
    speeds = {"MatMulV3": products, "Add": others}
    monkeypatch.setattr(
        lateness, "speed_of",
        lambda run, rank, peers, chosen: next(by[rank] for name, by in speeds.items() if chosen(name)),
    )  # fmt: skip
    monkeypatch.setattr(lateness, "slow_operators", lambda run, rank, peers, most: (f"type of {rank}",))
    told = lateness.unlike_ways(SimpleNamespace(), (1, 6), (0, 2), lambda name: name == "Add")
    assert told == ("rank 1: type of 1; rank 6: type of 6" if apart else None)
