"""Exchanges of all with all, in which one rank sends or is sent more than the others."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.base import FactSet
from advisor.facts.cluster.uneven import measure
from advisor.facts.collectives.link_speed import Links, Sums

RANKS = 8
PER_US = 20_000.0


def told(bytes_to, ranks=RANKS, steps=2, kind="alltoall", files=None):
    """(rank, fact) -> value, of a mesh in which each rank sends so much to each other one in a step."""
    reductions = {
        source: Links({}, steps, (), {("g", kind): {
            (source, to, "HCCS"): Sums(steps * size / PER_US, steps * size)
            for to in range(ranks) if to != source and (size := bytes_to(source, to)) > 0
        }})
        for source in (range(ranks) if files is None else files)
    }  # fmt: skip
    run = SimpleNamespace(each=lambda _: reductions, once=lambda _, make: make(run))
    return {(f.subject.id, f.name): f.value for f in measure(run, FactSet())}


def test_a_rank_that_all_send_four_times_as_much_to_holds_up_all():
    """With the same bytes spread evenly the longest link is as long as the mean one."""
    found = told(lambda source, to: 16e6 if to == 3 else 4e6)
    mean = (7 * 16e6 + 49 * 4e6) / 56
    assert found["3", "rank.exchange_ratio"] == pytest.approx(4) and found["4", "rank.exchange_ratio"] == 1
    assert found["3", "rank.exchange_longer_us"] == pytest.approx((16e6 - mean) / PER_US, rel=0.01)


def test_a_rank_that_sends_more_holds_them_up_as_much():
    """Each of its transfers is as long as those to the one that is sent more."""
    sent = told(lambda source, to: 16e6 if source == 3 else 4e6)
    received = told(lambda source, to: 16e6 if to == 3 else 4e6)
    assert sent.pop(("3", "rank.exchange_sent")) and not received.pop(("3", "rank.exchange_sent"))
    own = {key: value for key, value in sent.items() if key[0] == "3"}
    assert own == {key: value for key, value in received.items() if key[0] == "3"}


@given(st.integers(0, RANKS - 1), st.floats(1.0, 20.0))
def test_spreading_evenly_never_gives_more_than_the_exchange(hot: int, times: float):
    """Nor anything where all are sent alike."""
    found = told(lambda source, to: 4e6 * (times if to == hot else 1.0))
    longest = 4e6 * times / PER_US
    assert 0 <= found[str(hot), "rank.exchange_longer_us"] <= longest
    assert times > 1 or found[str(hot), "rank.exchange_longer_us"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("case", [{"kind": "allreduce"}, {"ranks": 2}, {"files": range(RANKS - 1)}])
def test_nothing_is_said_of_other_collectives_pairs_or_where_a_sender_is_absent(case):
    """What an absent rank sends, and to whom, nobody knows."""
    assert not told(lambda source, to: 16e6 if to == 1 else 4e6, **case)
