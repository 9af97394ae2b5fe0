"""Groups of ranks that run different programs beside each other, as an actor and its critic, are no peers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.collectives.parallelism import Partition, _programs

ACTOR_CRITIC = {"a": (0, 1, 2, 3), "b": (4, 5, 6, 7), "all": tuple(range(8))}
COPIES = {"a": (0, 1, 2, 3), "b": (4, 5, 6, 7), **{f"x{i}": (i, i + 4) for i in range(4)}}
"""Ranks that shard weights among four, and copies of these that reduce together, or that shard operators."""


def _exchanges(groups, rank, joining, size):
    """One operation in each group of a rank: gradients in those of four ranks, `joining` of so many bytes elsewhere."""
    mine = tuple(name for name, members in groups.items() if rank in members)
    kinds = tuple("allreduce" if len(groups[name]) == 4 else joining for name in mine)
    n = len(mine)
    numbers, flat = np.arange(n), np.zeros(n)
    sizes = np.array([6e7 if len(groups[name]) == 4 else size for name in mine])
    return Exchanges(
        ("1",), mine, kinds, np.zeros(n, np.int64), numbers, numbers, kinds, np.zeros(n, np.int64),
        (numbers + 1) * 1_000_000, flat + 100.0, flat + 80.0, flat, sizes, flat + 80.0, None,
    )  # fmt: skip


def _found(groups, calls, joining="broadcast", size=4e6, role="data"):
    roles = {name: "data" if len(members) == 4 else role for name, members in groups.items()}
    layout = Partition(stage=dict.fromkeys(range(8), 0), groups=groups, role=roles)
    courses = {
        rank: SimpleNamespace(kernels=np.full(3, count), complete=True) for rank, count in enumerate(calls) if count
    }
    exchanges = {rank: _exchanges(groups, rank, joining, size) for rank in range(8)}
    layout.program = _programs(layout, list(range(8)), exchanges, courses)  # type: ignore[arg-type]
    return layout.peers()


@pytest.mark.parametrize(("joining", "size"), [("broadcast", 4e6), ("allreduce", 8.0)])
def test_ranks_that_share_no_weights_and_run_other_kernels_are_no_peers(joining, size):
    """A broadcast over all, or a flag that all reduce, binds no weights: each group has peers of its own."""
    assert _found(ACTOR_CRITIC, [50] * 4 + [40] * 4, joining, size) == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}


@pytest.mark.parametrize("calls", [[50] * 8, [50] * 7 + [40], [50, 51] * 4, [50] * 4 + [40] * 3 + [None]])
def test_where_no_two_programs_are_seen_all_are_peers(calls):
    """The same kernels on all, a rank that has fewer than those of its group, or one whose kernels are not told."""
    assert _found(ACTOR_CRITIC, calls) == {0: list(range(8))}


@pytest.mark.parametrize(("joining", "role"), [("allreduce", "data"), ("allreduce", "tensor"), ("alltoall", "expert")])
def test_ranks_that_share_weights_or_exchange_tokens_are_peers_whatever_they_run(joining, role):
    """What one of them has more to do than the others is uneven work."""
    assert _found(COPIES, [50] * 4 + [40] * 4, joining, 6e7, role) == {0: list(range(8))}
