"""Steps of a timeline alone: from mark to mark, where the device has begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.facts.step.from_kernels import KERNEL_STEPS
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


@pytest.mark.parametrize("linked", [True, False])
def test_a_step_of_a_device_that_is_behind_lasts_as_its_kernels_do(tmp_path: Path, linked: bool) -> None:
    """The host marks five steps of 3 ms, and their kernels run for 30 ms each: the links from launch to start tell
    which belong to which step; without these the marks tell how many steps there are."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        for pid, name in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"))
    ]
    for step in range(5):
        mark = {"ph": "X", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "dur": 3000}
        events.append(mark | {"ts": f"{1_000_000 + 3000 * step}.000"})
        for number in range(10):
            count = 10 * step + number
            launch, start = f"{1_000_100 + 3000 * step + 200 * number}.000", f"{1_000_500 + 3000 * count}.000"
            flow = {"name": f"HostToDevice{count}", "cat": "HostToDevice", "id": str(count)}
            links = [
                {"ph": "s", "pid": 2, "tid": 1, "ts": launch, **flow},
                {"ph": "f", "bp": "e", "pid": 3, "tid": 2, "ts": start, **flow},
            ]
            events += [
                *(links if linked else ()),
                {"ph": "X", "name": "MatMulV2", "pid": 3, "tid": 2, "ts": start, "dur": 2990,
                 "args": {"Task Type": "AI_CORE"}},
            ]  # fmt: skip
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], ["step.time_us", "step.idle_share"], Options(jobs=1)).facts
    assert facts.number("step.time_us", RUN) == pytest.approx(30_000, rel=0.01)
    assert facts.number("step.idle_share", RUN) < 0.01


@pytest.mark.parametrize(("called", "name"), [(True, "torch_to_npu"), (True, "async_npu"), (False, "")])
def test_what_a_queue_launches_late_belongs_to_the_step_that_asked_for_it(
    tmp_path: Path, called: bool, name: str
) -> None:
    """A second thread launches the last three of ten kernels when the loop is in its next step already. By their
    launches each step would begin with the last kernels of the one before, and the first lack its own."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": title}}
        for pid, title in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"))
    ]
    for step in range(4):
        begin = 1_000_000 + 30_000 * step
        mark = {"ph": "X", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "dur": 30_000}
        events.append(mark | {"ts": f"{begin}.000"})
        for number in range(10):
            call, launch, start = begin + 100 * number, begin + 4000 * number, begin + 9000 + 3000 * number
            late = {"name": f"HostToDevice{10 * step + number}", "cat": "HostToDevice"}
            flows = [({"ts": f"{launch}.000", "pid": 2}, late)]
            if called:
                flows.append(({"ts": f"{call}.000", "pid": 1}, {"name": name, "cat": "async_npu", "id": start * 1000}))
            for sent, flow in flows:
                events.append({"ph": "s", "tid": 1, **sent, **flow})
                events.append({"ph": "f", "bp": "e", "tid": 2, "pid": 3, "ts": f"{start}.000", **flow})
            events.append(
                {"ph": "X", "name": "MatMulV2", "pid": 3, "tid": 2, "ts": f"{start}.000", "dur": 2900 - 200 * number,
                 "args": {"Task Type": "AI_CORE"}}
            )  # fmt: skip
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    run = measure([tmp_path], ["step.time_us"], Options(jobs=1)).run
    assert run is not None
    (found,) = run.each(KERNEL_STEPS).values()
    computing = [step.computing_us for step in found.steps]
    assert computing == ([20_000.0] * 4 if called else [17_600.0, 20_000.0, 20_000.0, 22_400.0])


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
