"""What a late rank's host did instead of launching, as its timeline tells."""

from __future__ import annotations

import pytest

from advisor.facts.base import FactSet
from advisor.facts.cluster.lateness import Lateness
from advisor.facts.cluster.ranks import _owner
from advisor.model import Fact, Subject

RANK = Subject("rank", "0", (0,))


@pytest.mark.parametrize(
    ("loading_us", "long_us", "told"),
    [
        (0.0, 9000.0, "add_event"),
        (6000.0, 9000.0, None),  # it loads data
        (None, 9000.0, None),  # nothing tells whether it does
        (0.0, 2000.0, None),  # its long stretches are a small part: it launches each kernel late
    ],
)
def test_the_owner_explains_most_of_the_time_and_loads_no_data(
    loading_us: float | None, long_us: float, told: str | None
) -> None:
    """Logging on one rank is neither slow data nor slow launches, and the timeline is what tells."""
    facts = FactSet()
    for name, value in (("gap_owner", "add_event"), ("loader_idle_us", loading_us), ("long_gap_us", long_us)):
        if value is not None:
            facts.add(Fact(f"timeline.{name}", RANK, value, (), 1))
    for part in ("data", "host"):
        late = Lateness(0, {part: 10_000.0}, 10_000.0, -10_000.0, 1.0, None)
        assert _owner(facts, late, RANK) == told
