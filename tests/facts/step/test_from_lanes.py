"""Steps of a timeline alone: from mark to mark, where the device has begun."""

from __future__ import annotations

from pathlib import Path

from advisor.model import RUN
from advisor.pipeline import Options, measure
from benchmarks.simulator import Scenario, simulate, write_profile


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
