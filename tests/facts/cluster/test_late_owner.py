"""What a late rank's host did instead of launching, as its timeline tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.base import FactSet
from advisor.facts.cluster.accounts import Accounts
from advisor.facts.cluster.groups import is_late_in
from advisor.facts.cluster.lateness import Lateness, _among_peers
from advisor.facts.cluster.ranks import _most_for_data, _owner
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


_US = st.none() | st.floats(1.0, 1e6)


@given(preparing=_US, waited=_US, loading=_US, fetching=st.floats(0.0, 1e5), lone=st.booleans())
def test_no_wait_for_data_exceeds_what_any_file_records(
    preparing: float | None, waited: float | None, loading: float | None, fetching: float, lone: bool
) -> None:
    """Idle time before a step is blamed on the data only as far as Preparing, dataset.csv and the timeline allow; of
    what lies before a lone step's first kernel the timeline's idle stretches tell nothing."""
    told = {"step.preparing_us": preparing, "data.wait_us": waited, "timeline.loader_idle_us": loading}
    facts = FactSet()
    facts.add(Fact("data.mode", RANK, "iterator", (), 1))
    for name, value in told.items():
        if value is not None:
            facts.add(Fact(name, RANK, value, (), 1))
    known = [us for name, us in told.items() if us is not None and not (lone and name.startswith("timeline"))]
    most = _most_for_data(facts, RANK, fetching, lone=lone)
    assert (most is None) == (not known)
    assert most is None or all(most <= value + fetching for value in known)


def test_a_loader_that_delivers_in_bursts_costs_the_mean_of_its_waits() -> None:
    """Two batches at once, then a long wait: the mean step is longer by the mean wait, not by what it usually is. A
    single long wait among alike ones is no burst, nor is idling for another reason."""

    def late(data: list[float], host: list[float]) -> Lateness:
        waits, gaps = (np.zeros((4, 5)) for _ in range(2))
        waits[1], gaps[1] = data, host
        own = waits + gaps
        exposed = own.max(axis=0) - own
        ranks, steps, computing = [0, 1, 2, 3], list("01234"), np.full((4, 5), 15e3)
        whole = computing + own + exposed
        return _among_peers(Accounts(ranks, steps, whole, computing, waits, gaps, exposed, own, True), ranks, {})[1]

    waits = [14e3, 14e3, 45e3, 12e3, 56e3]
    bursts = late(waits, [0.0] * 5)
    assert bursts.recurrence * bursts.late_us == pytest.approx(np.mean(waits))
    assert late([14e3, 14e3, 14e3, 12e3, 56e3], [0.0] * 5).recurrence == 1
    assert late([0.0] * 5, waits).recurrence == 1


def test_a_step_that_was_spared_is_not_replayed() -> None:
    """A loader that keeps up in every second step: one of these gains nothing, and tells nothing of the rest."""
    waits = np.array([[0.0] * 4, [0.0] * 4, [40e3, 0.0, 41e3, 100.0]])
    rest = np.full_like(waits, 10e3)
    balance = Accounts([0, 1, 2], ["5", "6", "7", "8"], waits + rest, rest, waits, 0 * rest, rest, waits, True)
    late = Lateness(2, {"data": 20e3, "compute": 0.0}, 20e3, -20e3, 0.5, None)
    assert [is_late_in(step, balance, [late]) for step in balance.steps] == [True, False, True, False]
    assert is_late_in("of another table", balance, [late])
