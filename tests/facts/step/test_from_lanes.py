"""Steps of a timeline alone: from mark to mark, where the device has begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, measure
from benchmarks.simulator import Scenario, simulate, write_profile
from benchmarks.simulator.recordings import RECORDINGS


def test_a_device_that_is_steps_behind_its_host_has_no_idle_step(tmp_path: Path) -> None:
    """A host that runs ahead marks a step before any of its kernels runs: that is no step in which the device idles."""
    ahead = Scenario(data=2, layers=4, steps=3, first_step=5, run_up=6, synchronous=False, warm_up=True)
    write_profile(simulate(ahead), tmp_path, trace=True)
    whole = measure([tmp_path], None, Options(jobs=1)).facts.number("step.idle_share", RUN)
    for path in list(tmp_path.rglob("*")):
        if path.is_file() and path.name != "trace_view.json":
            path.unlink()
    part = measure([tmp_path], None, Options(jobs=1)).facts.number("step.idle_share", RUN)
    assert whole is not None and part is not None and part < whole + 0.1


def test_a_step_of_a_device_that_is_behind_lasts_as_its_kernels_do(tmp_path: Path) -> None:
    """The host marks five steps in the time of one: the links from launch to start tell which kernels belong to each."""
    ahead = Scenario(data=2, layers=4, steps=5, first_step=5, run_up=2, synchronous=False)
    write_profile(simulate(ahead), tmp_path, trace=True)
    whole = measure([tmp_path], None, Options(jobs=1)).facts.number("step.time_us", RUN)
    for path in list(tmp_path.rglob("*")):
        if path.is_file() and path.name != "trace_view.json":
            path.unlink()
    alone = measure([tmp_path], None, Options(jobs=1)).facts.number("step.time_us", RUN)
    assert alone == pytest.approx(whole, rel=0.1)


@pytest.mark.parametrize("part", [0.35, 0.5, 0.8])
def test_a_timeline_that_ends_within_a_step_does_not_idle_to_its_end(tmp_path: Path, part: float) -> None:
    """The step's mark was written before the kernels that the cut took away: what is behind these is not recorded."""
    RECORDINGS["only trace_view.json"](tmp_path, 0)
    (path,) = tmp_path.rglob("trace_view.json")
    whole = measure([tmp_path], ["step.idle_share", "step.time_us"], Options(jobs=1)).facts
    events = json.loads(path.read_text())
    path.write_text(json.dumps(events[: int(part * len(events))]))
    rest = measure([tmp_path], ["step.idle_share", "step.time_us"], Options(jobs=1)).facts
    for name, close in (("step.idle_share", 0.01), ("step.time_us", 2000)):
        assert rest.number(name, RUN) == pytest.approx(whole.number(name, RUN), abs=close)
