"""Which late ranks are one cause."""

from types import SimpleNamespace

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
    entries = {rank: Lateness(rank, {"compute": us}, us, -us, 1.0, None) for rank, (_, us) in sorted(late.items())}
    loaded = {rank for rank, (more, _) in late.items() if more}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "latenesses", lambda run: entries)
        patch.setattr(module, "has_more_work", lambda run, entry: entry.rank in loaded)
        patch.setattr(module, "paced_together", lambda run: None)
        found = module.groups.__wrapped__(SimpleNamespace())
    assert found.keys() == entries.keys()
    for group in found.values():
        assert set(group) <= loaded or not set(group) & loaded
    assert all(set(found[rank]) == loaded for rank in loaded)
