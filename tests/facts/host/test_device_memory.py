"""Device memory that is asked for and freed while steps run, and in how many of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.model import RUN, Report
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"


def _processes(*names: str) -> list[dict[str, object]]:
    """What a timeline says first: process 1 is called the first of these."""
    return [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}} for pid, name in enumerate(names, 1)
    ]


def _judged(folder: Path, rows: list[str], events: list[dict[str, object]]) -> Report:
    """The report on these kernels beside this timeline."""
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (folder / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    return advise([folder], load_rules(config=load_config(None)))


@pytest.mark.parametrize(
    ("freeing", "says"), [((1, 2, 3, 4, 5), "in 5 of 6 steps"), (tuple(range(6)), "in every step"), ((), "")]
)
def test_device_memory_is_asked_for_in_the_steps_that_do(tmp_path: Path, freeing: tuple[int, ...], says: str) -> None:
    """Two calls of 4 ms in some of six steps are told with how many these are."""
    at, rows = 1_000_000.0, []
    events = _processes("CANN")
    for step in range(6):
        for n in range(20):
            for name in ("aclrtFree", "aclrtMalloc") if n == 10 and step in freeing else ():
                call = {"name": f"AscendCL@{name}", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 4000}
                events.append(call)
                at += 4000
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    report = _judged(tmp_path, rows, events)
    told = [finding.message.en for finding in report.findings if finding.rule == "MEM040"]
    assert bool(told) is bool(freeing) and all(says in text for text in told)
    counted = [f.value for f in report.facts if f.name == "host_api.memory_steps" and f.subject == RUN]
    assert counted == ([len(freeing)] if freeing else [])


def test_what_memory_calls_hold_up_is_computation_also_behind_a_collective(tmp_path: Path) -> None:
    """The host frees memory, which waits for a reduction that computation would have hidden: 3 ms of it and 1 ms of
    idle time in each of six steps; a call that returns while the device has work holds nothing up."""
    at, rows = 1_000_000.0, []
    events = _processes("CANN")

    def call(name: str, start: float, us: float) -> None:
        events.append({"name": f"AscendCL@{name}", "ph": "X", "pid": 1, "tid": 1, "ts": f"{start:.1f}", "dur": us})

    for step in range(6):
        call("aclrtMalloc", at + 2500, 1000)
        for n in range(20):
            if n == 10:
                rows.append(f"{step},hcom_allReduce__1_{step},hcom_allReduce_,COMMUNICATION,{at - 2000:.1f},5000")
                call("aclrtFree", at - 1000, 5000)
                at += 4000
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    report = _judged(tmp_path, rows, events)
    told = {f.name: f.value for f in report.facts if f.subject == RUN}
    assert told["host_api.memory_held_us"] == pytest.approx(4000, abs=1)
    assert told["host_api.memory_idle_us"] == pytest.approx(1000, abs=1)
    (found,) = [f for f in report.findings if f.rule == "MEM040"]
    assert found.saving is not None and found.saving.us == pytest.approx(4000, rel=0.01)
    assert report.accounting is not None and report.accounting.useful_us == pytest.approx(40_000, rel=0.01)


def test_memory_calls_behind_the_last_kernel_of_the_last_step_count_by_its_mark(tmp_path: Path) -> None:
    """Each of four steps frees memory for 8 ms behind its kernels: the step's period holds them, and so does the mean,
    though no kernel follows the last ones. What lies behind the mark is tear-down."""
    at, rows = 1_000_000.0, []
    events = _processes("CANN", "Python")
    free = {"name": "AscendCL@aclrtFree", "ph": "X", "pid": 1, "tid": 1, "dur": 8000}
    for step in range(4):
        begin = at
        for n in range(20):
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
        events.append(free | {"ts": f"{at:.1f}"})
        at += 8000
        mark = {"name": f"ProfilerStep#{step}", "ph": "X", "pid": 2, "tid": 1, "ts": f"{begin:.1f}", "dur": at - begin}
        events.append(mark)
    events.append(free | {"ts": f"{at + 500:.1f}"})
    report = _judged(tmp_path, rows, events)
    (found,) = [f for f in report.findings if f.rule == "MEM040"]
    assert found.saving is not None and found.saving.us == pytest.approx(8000, rel=0.01)
    assert "in every step" in found.message.en and "8 ms per step" in found.message.en.replace("\u00a0", " ")


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_calls_before_the_first_recorded_kernel_are_none_that_hold_nothing_up(tmp_path: Path, steps: int) -> None:
    """Each step asks for memory for 8 ms before its kernels. Before the first one nobody saw the device: the others
    tell, and two steps do not halve it."""
    at, rows = 1_000_000.0, []
    events = _processes("CANN", "Python")
    for step in range(steps):
        mark = {"name": f"ProfilerStep#{step}", "ph": "X", "pid": 2, "tid": 1, "ts": f"{at:.1f}", "dur": 48_000}
        call = {"name": "AscendCL@aclrtMalloc", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 8000}
        events += [mark, call]
        at += 8000
        for n in range(20):
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    report = _judged(tmp_path, rows, events)
    told = {f.name: f.value for f in report.facts if f.subject == RUN}
    assert told["host_api.memory_held_us"] == pytest.approx(8000, rel=0.01)
