"""Sends find their receives by ending together, whatever the clocks say."""

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.collectives.handovers import Handover, pair_up


@st.composite
def pipelines(draw):
    """(operations of each rank, true pairs): transfers between neighbours, on clocks of their own."""
    stages = draw(st.integers(2, 5))
    shift = draw(st.lists(st.floats(-1e6, 1e6), min_size=stages, max_size=stages))
    known = draw(st.booleans())
    operations = {stage: [] for stage in range(stages)}
    pairs = set()
    at = 0.0
    for transfer in range(draw(st.integers(1, 8))):
        # forward through all stages, then backward: as a micro-batch does
        hops = [(s, s + 1) for s in range(stages - 1)]
        for source, target in hops + [(b, a) for a, b in reversed(hops)]:
            at += draw(st.floats(1_000, 50_000)) + transfer
            members = frozenset((source, target)) if known else frozenset(range(stages))
            places = {}
            for rank, kind in ((source, "send"), (target, "receive")):
                places[rank] = len(operations[rank])
                late = draw(st.floats(0, 20))
                operations[rank].append(Handover(places[rank], kind, at + shift[rank] + late, members))
            pairs.add(frozenset(places.items()))
    return operations, pairs, stages


@settings(max_examples=40)
@given(pipelines())
def test_every_send_finds_its_receive(case):
    """Clocks of different hosts and communicators of many ranks do not mislead."""
    operations, expected, stages = case
    pairs, missed, _ = pair_up(operations, [tuple(range(stages))])
    assert {frozenset(pair.items()) for pair in pairs} == expected
    assert missed == 0


def test_what_has_no_partner_is_told():
    """A receive nobody sends to is counted, not paired with the next best."""
    members = frozenset((0, 1, 2))
    lonely = {
        0: [
            Handover(0, "send", 1000.0, members),
            Handover(1, "send", 2500.0, members),
            Handover(2, "send", 7e3, members),
        ],
        1: [
            Handover(0, "receive", 1000.0, members),
            Handover(1, "receive", 2500.0, members),
            Handover(2, "receive", 9e3, members),
        ],
        2: [],
    }
    assert pair_up(lonely, [(0, 1, 2)]) == ([{0: 0, 1: 0}, {0: 1, 1: 1}], 2, [])


@settings(max_examples=30)
@given(
    st.integers(3, 6),
    st.integers(1, 8),
    st.booleans(),
    st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6),
    st.data(),
)
def test_round_a_ring_all_send_to_the_next(ranks, hops, backwards, shift, data):
    """In either direction, on clocks of their own; nothing is left without a partner, and what all send at one point of
    their program is told."""
    members = frozenset(range(ranks))
    shift = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=ranks, max_size=ranks))
    operations = {rank: [] for rank in members}
    expected = set()
    for hop in range(hops):
        for rank in range(ranks):
            other = (rank + (-1 if backwards else 1)) % ranks
            at = 10_000 * hop + data.draw(st.floats(0, 6_000))
            places = {}
            for side, kind in ((rank, "send"), (other, "receive")):
                places[side] = len(operations[side])
                operations[side].append(Handover(places[side], kind, at + shift[side], members))
            expected.add(frozenset(places.items()))
    paired = pair_up(operations, [])
    found = [frozenset(pair.items()) for pair in paired.pairs]
    if hops > 2:  # one or two transfers a rank fit both ways round
        assert set(found) == expected
    assert len(found) == ranks * hops and paired.missed == 0
    assert sorted(place for transfers in paired.alike for place in transfers) == list(range(len(found)))
    assert all(len(transfers) == ranks for transfers in paired.alike)


def test_who_sends_more_than_the_others_is_no_part_of_a_ring():
    """Nothing is paired by counting where the counts differ."""
    members = frozenset((0, 1, 2))
    operations = {
        rank: [Handover(n, kind, 1000.0 * n, members) for n, kind in enumerate(["send"] * (1 + rank) + ["receive"])]
        for rank in members
    }
    assert pair_up(operations, []) == ([], 0, [])
