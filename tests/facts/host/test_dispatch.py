"""Launches that come late within a step are the host's dispatching; what is late before its first kernel is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor import load_rules
from advisor.facts.host.dispatch import LAUNCHES, _bound, _catching_up, _first_of_each, reduce
from advisor.model import Subject
from advisor.pipeline import Options, advise, measure
from advisor.sources.discover import load_profile
from benchmarks.simulator.physics import simulate
from benchmarks.simulator.scenario import Fault, Scenario
from benchmarks.simulator.writers import write_profile

RANK = Subject("rank", "1", (1,))


def test_the_kernel_that_starts_first_opens_its_step() -> None:
    """Kernels come in the order of their launches or starts: of each step, one is the first."""
    step = np.array([1, 0, 0, 1, 2])
    start = np.array([70, 20, 10, 60, 90])
    assert _first_of_each(step, start).tolist() == [False, False, True, True, True]
    assert not _first_of_each(step[:0], start[:0]).size


def test_a_host_catches_up_behind_a_stall_until_it_is_ahead_again() -> None:
    """What is late before the stall, or once the host was ahead, is late by itself."""
    start = np.array([60, 10, 20, 30, 40, 50])
    stall, ahead = start == 20, start == 50
    assert _catching_up(start, stall, ahead).tolist() == [False, False, True, True, True, False]
    assert not _catching_up(start, np.zeros(6, bool), ahead).any()


@pytest.mark.parametrize(
    ("pace", "lead", "bound"), [(95.0, 5.0, 95.0), (104.0, 5.0, 100.0), (85.0, 5.0, None), (99.0, 60.0, None)]
)
def test_a_host_that_launches_all_the_time_bounds_the_step(pace: float, lead: float, bound: float | None) -> None:
    """Unless its launches lie in the queue for half of the step: then they may wait until the device has room."""
    rows = {0: {"dispatch.pace_us": 20.0, "dispatch.lead_high_us": 70.0}}
    rows[1] = {"dispatch.pace_us": pace, "dispatch.lead_high_us": lead}
    assert _bound(rows, 100.0) == bound
    assert _bound(rows, None) is None


@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_waited_for_is_known_where_waiting_is_recorded(tmp_path: Path, recorded: bool) -> None:
    """Without the calls of AscendCL nobody knows when the host waited for its device."""
    run = simulate(Scenario(data=1, kernel_us=30.0, faults=(Fault("slow_host", 0, 0.6),), framework="pytorch"))
    write_profile(run, tmp_path, trace=True)
    for file in tmp_path.rglob("trace_view.json") if recorded else ():
        file.write_text(file.read_text().replace('"Node@launch"', '"AscendCL@aclrtLaunchKernel"'))
    (rank,) = load_profile([tmp_path]).ranks
    found = reduce(rank)
    assert isinstance(found, LAUNCHES.type)
    assert (found.awaited_us is not None) == bool(found.awaited_of) == recorded
    if found.awaited_us is not None:  # all but the end of the recording waits for launches
        assert found.awaited_us.sum() < 0.1 * found.window_us.sum()


@pytest.mark.parametrize(("kind", "size", "dispatch"), [("slow_data", 0.1, False), ("slow_host", 0.6, True)])
def test_one_late_launch_at_the_beginning_of_a_step_is_no_dispatch(
    tmp_path: Path, kind: str, size: float, dispatch: bool
) -> None:
    """A rank whose host comes back late to each step launches one kernel late, and the kernels are not too many."""
    faults = (Fault(kind, 1, size),)
    run = simulate(Scenario(data=4, kernel_us=30.0, faults=faults, framework="pytorch"))
    write_profile(run, tmp_path, trace=True)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    idle, inside = (facts.number(f"dispatch.starved_{name}_us", RANK) for name in ("idle", "inside"))
    assert idle is not None and inside is not None and idle > 200
    assert inside > 0.5 * idle if dispatch else inside < 0.1 * idle
    found = [f.rule for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings]
    assert dispatch or "SCHED011" not in found
