"""The same collectives of all ranks stand in one row, whatever the ranks call them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.collectives.joints import join


def _exchanges(rows: list[tuple[str, str]], first_us: float) -> Exchanges:
    """Operations (step, name) of one group; the n-th of the file takes `first_us` + n."""
    steps, names = (tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True))
    seen: dict[str, int] = {}
    ordinal = [seen.update({step: seen.get(step, -1) + 1}) or seen[step] for step, _ in rows]
    count = len(rows)
    return Exchanges(
        steps, ("g",), names, np.array([steps.index(s) for s, _ in rows]), np.zeros(count, np.int64),
        np.array([names.index(n) for _, n in rows]), ("allreduce",) * len(names), np.array(ordinal),
        np.arange(count) + 1, first_us + np.arange(count), *(np.full(count, np.nan) for _ in range(4)), None,
        early=np.full(count, np.nan),
    )  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from("abcdefg")), min_size=1, unique=True), st.data())
def test_operations_are_matched_by_step_and_name(rows, data):
    """In whatever order a rank's file has them: each row holds one operation, and what a rank lacks is in none."""
    other = data.draw(st.lists(st.sampled_from(rows), min_size=(len(rows) + 1) // 2, unique=True))
    joint = next(join({0: _exchanges(rows, 100.0), 1: _exchanges(other, 500.0)}, {"g": (0, 1)}, True))
    assert list(zip(joint.steps, joint.names, strict=True)) == [row for row in rows if row in other]
    for place, row in enumerate(zip(joint.steps, joint.names, strict=True)):
        assert joint.elapsed_us[place].tolist() == [100.0 + rows.index(row), 500.0 + other.index(row)]


def test_operations_named_differently_are_matched_by_their_order():
    """Names with a number of their own on each rank say nothing; the n-th of a step is the n-th everywhere."""
    one = _exchanges([("1", "a0"), ("1", "a1"), ("2", "a2")], 10.0)
    other = _exchanges([("1", "b7"), ("2", "b8"), ("2", "b9")], 20.0)
    joint = next(join({0: one, 1: other}, {}, True))
    assert joint.steps == ["1", "2"] and joint.names == ["a0", "a2"]
    assert joint.elapsed_us.tolist() == [[10.0, 20.0], [12.0, 21.0]]


def test_a_rank_alone_in_a_group_waited_for_somebody():
    """Nobody exchanges with itself: what exceeds the rank's own transfer is no transfer, though no other file tells of
    a larger world."""
    alone = replace(_exchanges([("1", "a0"), ("1", "a1")], 900.0), transit_us=np.array([100.0, 101.0]))
    joint = next(join({0: alone}, {}, True))
    assert not joint.complete and joint.transfer_us.tolist() == [100.0, 101.0]


@pytest.mark.parametrize("sized", [True, False])
def test_waiting_that_was_booked_as_transit_is_no_transfer(sized):
    """The same bytes take 150 us in most steps and 99 ms in two: no link is so much slower for a moment; an absent
    member is late there. Half as slow again, or of other bytes, it may be the link."""
    rows = [(str(step), f"a{step}") for step in range(6)]
    took = np.array([150.0, 99_000.0, 155.0, 98_000.0, 160.0, 500.0])
    sizes = np.full(6, 4e6 if sized else np.nan)
    alone = replace(_exchanges(rows, 0.0), elapsed_us=took, transit_us=took, size_bytes=sizes)
    joint = next(join({0: alone}, {"g": (0, 1)}, True))
    assert joint.transfer_us.tolist() == [150.0, 157.5, 155.0, 157.5, 160.0, 500.0]
    other = replace(alone, size_bytes=np.array([4e6, 4e9, 4e6, 4e9, 4e6, 4e6]))
    assert next(join({0: other}, {"g": (0, 1)}, True)).transfer_us.tolist() == took.tolist()


def test_ranks_of_one_job_share_their_names():
    """Thousands of ranks with thousands of collectives each would otherwise keep millions of the same texts."""
    sent = [pickle.dumps(_exchanges([("1", f"hcom_allReduce__586_{i}_1") for i in range(9)], us)) for us in (1.0, 2.0)]
    one, other = map(pickle.loads, sent)
    assert one.names is other.names and one.kind is other.kind
    assert replace(one, elapsed_us=other.elapsed_us).counts() == {("g", "allreduce"): 9}
    assert one.of("g", "allreduce").tolist() == list(range(9)) and not one.of("g", "send").size


@pytest.mark.parametrize(
    ("waits_us", "early", "moves_us"),
    [
        ([1000.0, 2000.0, 1000.0, 2000.0], 0.0, [2000.0, 4000.0, 2000.0, 4000.0]),  # as long again as each moves
        ([1000.0, 2000.0, 1000.0, 2000.0], 1.0, [1000.0, 2000.0, 1000.0, 2000.0]),  # before anything moves
        ([9000.0, 2000.0, 1000.0, 2000.0], 0.0, [1000.0, 2000.0, 1000.0, 2000.0]),  # longest behind most computing
        ([9000.0, 18000.0, 9000.0, 18000.0], 0.0, [1000.0, 2000.0, 1000.0, 2000.0]),  # longer than any hop takes
    ],
    ids=["a slower hop", "a late neighbour", "a late rank", "beyond any hop"],
)
def test_an_absent_rank_is_late_only_where_no_slower_hop_explains_the_wait(
    waits_us: list[float], early: float, moves_us: list[float]
) -> None:
    """A member of a ring without a file: the ranks at hand are inside each reduction for longer than their own bytes
    move. Where that is the same multiple each time, and none of it before the first transfer, the ring moves so."""
    rows = [("1", name) for name in "abcd"]
    own = np.array([1000.0, 2000.0, 1000.0, 2000.0])
    told = replace(_exchanges(rows, 0.0), transit_us=own, early=np.full(4, early))
    told = replace(told, elapsed_us=own + np.array(waits_us))
    joint = next(join({0: told, 1: told}, {"g": (0, 1, 2)}, False))
    assert not joint.complete and joint.transfer_us.tolist() == moves_us
