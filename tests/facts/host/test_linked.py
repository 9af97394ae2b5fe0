"""What anything waits for of a device's work, told from launches and from calls that wait for the device."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.host.linked import Linked, awaited, turns
from advisor.model import Source

US = 1000
NONE = np.zeros(0, np.int64), np.zeros(0, np.int64)


def _linked(launched: list[float], start: list[float], length_us: float, step: list[int]) -> Linked:
    """Kernels of one length, one after the other."""
    began = np.array([round(us * US) for us in start], np.int64)
    ended = began + round(length_us * US)
    names = tuple(map(str, range(max(step) + 1)))
    steps = np.array(step)
    return Linked(
        np.array([round(us * US) for us in launched], np.int64), began, np.append(began[:1], ended[:-1]), steps,
        names, np.zeros(len(names)), np.array([ended[steps == i].max() for i in range(len(names))]), length_us,
        Source(""), np.full(len(began), length_us), ("x",), np.zeros(len(began), np.int64),
    )  # fmt: skip


# launches 100 us apart, kernels of 20 us; the step's last two are launched at once and lie in the queue
SLOW = [0.0, 100, 200, 300, 301, 500, 600, 700, 800, 801]
STARTS = [10.0, 110, 210, 310, 330, 510, 610, 710, 810, 830]
STEPS = [0] * 5 + [1] * 5


@pytest.mark.parametrize(
    ("waits", "kernels", "us"),
    [
        (NONE, [8, 9], [0.0, 40.0]),  # nobody waits for the first step's work: the host goes on launching
        ((np.array([305 * US]), np.array([350 * US])), [3, 4, 8, 9], [40.0, 40.0]),  # a result of each step
        ((np.array([335 * US]), np.array([350 * US])), [3, 4, 8, 9], [15.0, 40.0]),  # asked for later
        ((np.array([360 * US]), np.array([370 * US])), [8, 9], [0.0, 40.0]),  # the device had done all that
    ],
)
def test_work_before_a_late_launch_is_waited_for_by_nobody(waits, kernels, us) -> None:
    """Where the host waits for its device, the step gains what that does sooner from the last late launch on."""
    linked = _linked(SLOW, STARTS, 20.0, STEPS)
    found = awaited(linked, turns(linked).late, waits)
    assert np.flatnonzero(found.kernels).tolist() == kernels
    assert found.us == pytest.approx(us)
    assert found.between_us == 0.0


def test_a_device_that_never_runs_dry_is_waited_for_all_the_time() -> None:
    """The host is far ahead: whatever is done sooner shortens the recording."""
    linked = _linked([1.0 * i for i in range(10)], [20.0 * i + 10 for i in range(10)], 20.0, STEPS)
    found = awaited(linked, turns(linked).late, NONE)
    assert found.kernels.all()
    assert found.us.sum() == pytest.approx(200.0)
