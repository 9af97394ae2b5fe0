"""A host that is slow in all it does, against a loader that is slow by itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.cluster.lateness import Lateness, _by_host
from advisor.facts.cluster.ranks import _gap_of_last, _launch_gap
from advisor.facts.host.pace import Calls, _paces, slow_as_all, slower_alike

USUAL = {("Python", f"aten::op{i}"): 20.0 + i for i in range(8)}


def calls(pace: float, loader_us: float | None) -> Calls:
    """A host whose calls take `pace` times as long as usual."""
    return Calls({name: us * pace for name, us in USUAL.items()}, loader_us)


@pytest.mark.parametrize(
    ("pace", "loader_us", "slow"),
    [
        (4.2, 1100.0, True),  # its call for a batch takes 4.2 times as long as the others', as all its calls do
        (4.2, 9000.0, False),  # the loader is behind, whatever the host
        (1.1, 1100.0, False),  # the host is as fast as the others: the loader alone is slow
        (4.2, 270.0, False),  # its calls wait for the device, and its loader takes as long as the others'
        (4.2, None, False),  # nobody knows what the loader does
    ],
)
def test_a_wait_that_grows_as_all_calls_do_is_the_hosts(pace: float, loader_us: float | None, slow: bool) -> None:
    """One rank's host takes several times as long for everything: its loader is accused only beyond that."""
    ranks = {0: calls(1.0, 260.0), 1: calls(1.02, 255.0), 2: calls(pace, loader_us), 3: calls(0.98, 270.0)}
    assert _paces(ranks)[2] == pytest.approx(pace, rel=0.03)
    found = slower_alike(ranks)
    assert list(found) == ([2] if slow else [])
    if slow:
        assert found[2] == pytest.approx(pace, rel=0.03)


@pytest.mark.parametrize(
    ("pace", "planning_us", "slow"),
    [
        (3.5, 15_800.0, True),  # all that this host does takes 3.5 times as long, its scheduler as well
        (3.5, 60_000.0, False),  # the scheduler has more to do there, whatever the host
        (3.5, 4600.0, False),  # the scheduler takes no longer than elsewhere
        (1.1, 15_800.0, False),  # the host is as fast as the others: it does other work
    ],
)
def test_the_same_work_on_a_slow_host_is_no_other_work(pace: float, planning_us: float, slow: bool) -> None:
    """All ranks run the same scheduler before a step: on a slow CPU it takes as much longer as every other call."""
    name = "engine: schedule"
    usual = {rank: calls(1.0, None) for rank in (0, 1, 3)}
    ranks = {2: calls(pace, None), **usual}
    for rank, one in ranks.items():
        ranks[rank] = Calls({**one.mean_us, ("host", name): planning_us if rank == 2 else 4500.0}, None)
    assert slow_as_all(ranks, {2: name}) == ({2} if slow else set())
    assert slow_as_all(ranks, {2: "a call that no peer makes"}) == set()


def test_a_slow_host_is_late_before_its_first_kernel_as_well() -> None:
    """One cause is told once: what it waits before the step and between kernels is one lateness."""
    found = _by_host(Lateness(2, {"compute": 10.0, "data": 1200.0, "host": 500.0}, 1700.0, -1700.0, 1.0, None))
    assert found.cause == "host"
    assert (found.parts["host"], found.parts["data"], found.lead_us) == (1700.0, 0.0, 1200.0)
    early = Lateness(2, {"data": -10.0, "host": 500.0}, 490.0, -490.0, 1.0, None)
    assert _by_host(early) == early


@pytest.mark.parametrize(("lead_us", "gap_us"), [(5400.0, 5900.0), (0.0, 250.0)])
def test_a_rank_idles_no_less_than_it_idles_more_than_its_peers(lead_us: float, gap_us: float) -> None:
    """What its host is late by before the first kernel is part of what its device idles for it."""
    balance = SimpleNamespace(host=np.full((1, 3), 250.0), data=np.full((1, 3), 5650.0))
    entry = Lateness(0, {"host": 60.0 + lead_us}, 60.0 + lead_us, None, 1.0, None, lead_us=lead_us)
    assert _launch_gap(balance, 0, entry) == pytest.approx(gap_us) and gap_us >= entry.parts["host"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("part", "gap_us"), [("compute", 5400.0), ("host", None)])
def test_the_rank_that_all_wait_for_tells_what_launching_costs_the_step(part: str, gap_us: float | None) -> None:
    """Where a slow card makes its peers wait, their hosts run ahead meanwhile: its own idle time is the step's. One
    that is late for its host has a finding of its own."""
    parts = np.array([[3600.0] * 3, [5400.0] * 3])
    balance = SimpleNamespace(ranks=[0, 2], host=parts, data=np.zeros((2, 3)), told_as=lambda name: name)
    late = {
        0: Lateness(0, {"compute": -10.0}, -10.0, 0.0, 0.0, None),
        2: Lateness(2, {part: 2600.0}, 2600.0, -2600.0, 1.0, None),
    }
    assert _gap_of_last(balance, late) == gap_us  # type: ignore[arg-type]
