"""Which late ranks are one cause."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.cluster import groups as module
from advisor.facts.cluster.lateness import Lateness


@given(
    st.dictionaries(st.integers(0, 15), st.tuples(st.booleans(), st.floats(1e3, 1e5)), min_size=1, max_size=8),
)
def test_a_slow_card_and_more_work_are_never_one_cause(late):
    """However alike their lateness is: each has its own reason, its own remedy and its own saving. Ranks with more work
    are one thing, however much of it each has."""
    loaded = {rank for rank, (more, _) in late.items() if more}
    found = _groups({rank: us for rank, (_, us) in late.items()}, loaded, 2e4)
    assert found.keys() == late.keys()
    for group in found.values():
        assert set(group) <= loaded or not set(group) & loaded
    assert all(set(found[rank]) == loaded for rank in loaded)


@given(
    st.floats(1e4, 1e6),
    st.lists(st.floats(0.02, 1.0), min_size=1, max_size=4),
    st.lists(st.floats(0.0001, 0.009), min_size=1, max_size=4),
)
def test_ranks_that_differ_as_equal_cards_do_have_no_more_work(computing, much, little):
    """Experts draw other tokens on every rank: those that compute a few thousandths longer than their peers are late by
    chance, and not with the one whose experts are in demand."""
    late = {rank: share * computing for rank, share in enumerate([*much, *little])}
    found = _groups(late, set(late), computing)
    assert all(found[rank] == tuple(range(len(much))) for rank in range(len(much)))


def _groups(late: dict[int, float], loaded: set[int], computing: float) -> dict[int, tuple[int, ...]]:
    """Ranks late by so much from computing, these of them from more work; all compute so long."""
    ranks = sorted(late)
    entries = {rank: Lateness(rank, {"compute": late[rank]}, late[rank], -late[rank], 1.0, None) for rank in ranks}
    balance = SimpleNamespace(ranks=ranks, compute=np.full((len(ranks), 2), computing))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "latenesses", lambda run: entries)
        patch.setattr(module, "accounts", lambda run: balance)
        patch.setattr(module, "has_more_work", lambda run, entry: entry.rank in loaded)
        patch.setattr(module, "paced_together", lambda run: None)
        return module.groups.__wrapped__(SimpleNamespace())  # type: ignore[no-any-return]
