"""Which hosts and loaders make several ranks late from one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest

from advisor.facts.base import Run
from advisor.facts.cluster import groups as late_groups
from advisor.facts.cluster.lateness import Lateness
from advisor.facts.collectives.parallelism import Partition


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[int, float], Mapping[int, float]], Any]:
    def of(late_us: Mapping[int, float], paces: Mapping[int, float]) -> Any:
        entries = {r: Lateness(r, {"host": us}, us, -us, 1.0, None) for r, us in late_us.items()}
        monkeypatch.setattr(late_groups, "latenesses", lambda run: entries)
        monkeypatch.setattr(late_groups, "_launch_intervals", lambda run: dict(paces))
        monkeypatch.setattr(late_groups, "paced_together", lambda run: None)
        monkeypatch.setattr(late_groups, "accounts", lambda run: None)
        return late_groups.groups.__wrapped__(cast(Run, None))  # type: ignore[attr-defined]

    return of


LATE = {0: 0.0, 1: 0.0, 4: 3900.0, 5: 1700.0, 6: 6700.0, 7: 4000.0}


def test_ranks_whose_hosts_launch_alike_are_late_together(grouped: Any) -> None:
    """Each waits for the others inside of the step: how long it idles by itself differs by four times."""
    slow = {0: 25.0, 1: 25.0, 4: 135.0, 5: 132.0, 6: 137.0, 7: 135.0}
    assert grouped(LATE, slow) == dict.fromkeys((4, 5, 6, 7), (4, 5, 6, 7))


def test_without_launches_only_the_time_tells(grouped: Any) -> None:
    """Twice as late is another thing, as before."""
    assert grouped(LATE, {}) == {4: (4, 6, 7), 5: (5,), 6: (4, 6, 7), 7: (4, 6, 7)}


def test_hosts_that_launch_as_fast_as_those_on_time_are_late_from_something_else(grouped: Any) -> None:
    """One of them pauses for long, and the pace of its launches does not tell of it."""
    assert grouped(LATE, dict.fromkeys(LATE, 25.0))[5] == (5,)


def test_peers_wait_for_one_late_host_after_the_other() -> None:
    """Late launches fall between different kernels: peers wait for all of them, where those of slow cards wait for the
    slowest."""
    layout = cast(Partition, type("Layout", (), {"kin": {4: 0, 5: 0}, "pipeline": 1}))

    def waited(cause: str) -> float:
        return late_groups._waited_for([Lateness(r, {cause: us}, us, -us, 1.0, None) for r, us in ((4, 3.0), (5, 2.0))],
                                       layout)  # fmt: skip

    assert (waited("host"), waited("compute")) == (5.0, 3.0)
    assert np.isfinite(waited("host"))


def test_a_host_that_does_other_work_is_late_from_something_else_than_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both start their steps late by as much; the timeline of one tells that it hardly waits for its loader."""
    entries = {r: Lateness(r, {"data": us}, us, -us, 1.0, None) for r, us in {2: 4900.0, 5: 4950.0}.items()}
    waits = {2: 100.0, 5: 8000.0}

    class Told:
        def each(self, key: object) -> dict[int, Any]:
            return {r: type("Idle", (), {"loader_us": np.array([us, np.nan, us])}) for r, us in waits.items()}

    monkeypatch.setattr(late_groups, "latenesses", lambda run: entries)
    monkeypatch.setattr(late_groups, "paced_together", lambda run: None)
    assert late_groups.groups.__wrapped__(cast(Run, Told())) == {2: (2,), 5: (5,)}  # type: ignore[attr-defined]
    waits[2] = 8000.0
    assert late_groups.groups.__wrapped__(cast(Run, Told())) == {2: (2, 5), 5: (2, 5)}  # type: ignore[attr-defined]
