"""Idle stretches, launches, compilation and memory on profiles whose cause is known because it was put there."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from advisor.facts.device.memory import reduce as reduce_memory
from advisor.facts.host.loader_waits import loader_waits
from advisor.facts.host.timeline import _cap_loading
from advisor.model import RUN, Severity, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from benchmarks.mutants.cells import load, store
from tests.helpers.large import CONVERSIONS, LAYER, Workload, write

SMALL = Workload(ranks=1, steps=4, kernels=650, collective_every=325, scale=0.25)


def profile(tmp_path: Path, **changes: object) -> Path:
    return write(replace(SMALL, **changes), tmp_path / "profile")


def judged(path: Path):  # type: ignore[no-untyped-def]
    return advise([path], load_rules(), Options(jobs=1))


def test_a_fast_host_runs_ahead_and_nothing_is_found(tmp_path: Path) -> None:
    """A healthy compute-bound run: links are slanted, and no finding of weight."""
    path = profile(tmp_path)
    facts = measure([path], None, Options(jobs=1)).facts
    assert facts.value("dispatch.lead_median_us", RUN) > 1000
    assert facts.value("dispatch.starved_share", RUN) < 0.05
    report = judged(path)
    assert [f for f in report.findings if f.severity.rank >= Severity.MEDIUM.rank] == []


def test_a_slow_host_starves_the_device(tmp_path: Path) -> None:
    """Launches take longer than kernels: links are vertical, in every step, and that is the verdict."""
    path = profile(tmp_path, host_us=300.0)
    facts = measure([path], None, Options(jobs=1)).facts
    assert facts.value("dispatch.starved_share", RUN) > 0.9
    idle = facts.value("timeline.idle_us", RUN)
    assert facts.value("dispatch.starved_idle_us", RUN) == pytest.approx(idle, rel=0.1)
    assert facts.value("dispatch.starved_share", Subject("step", "2")) > 0.9
    assert facts.value("dispatch.starved_steps", RUN).count(",") >= 2, (
        "all steps lose alike, not those above the others"
    )
    report = judged(path)
    found = next(f for f in report.findings if f.verdict == "host-dispatch-bound")
    assert found.severity.rank >= Severity.HIGH.rank and found.saving is not None
    assert report.summary.direction == "scheduling"


def test_one_slow_host_of_three_is_not_the_run(tmp_path: Path) -> None:
    """What only one rank loses is that rank's: the run's figures are those of its typical rank."""
    fast = write(replace(SMALL, ranks=3), tmp_path / "fast")
    slow = write(replace(SMALL, ranks=3, host_us=300.0), tmp_path / "slow")
    one, other = (sorted(path.glob("*_ascend_*"))[2] for path in (fast, slow))
    shutil.rmtree(one)
    shutil.copytree(other, fast / other.name)
    facts = measure([fast], ["dispatch.starved_share"], Options(jobs=1)).facts
    assert facts.value("dispatch.starved_share", Subject("rank", "2", (2,))) > 0.9
    assert facts.value("dispatch.starved_share", RUN) < 0.05


@pytest.mark.parametrize("form", ["cut", "gz"])
def test_a_timeline_cut_or_compressed_gives_the_same_idle_time_a_step(tmp_path: Path, form: str) -> None:
    """The steps that a cut file still holds are judged by themselves, not thinned out over those it lost."""
    path = profile(tmp_path, host_us=300.0)
    whole = measure([path], ["dispatch.starved_idle_share"], Options(jobs=1)).facts
    trace = next(path.glob("*/ASCEND_PROFILER_OUTPUT/trace_view.json"))
    data = trace.read_bytes()
    trace.unlink()
    if form == "cut":
        trace.write_bytes(data[: len(data) * 6 // 10])
    else:
        trace.with_suffix(".json.gz").write_bytes(gzip.compress(data, 1))
    found = measure([path], ["dispatch.starved_idle_share"], Options(jobs=1)).facts
    expected = whole.value("dispatch.starved_idle_share", RUN)
    assert expected > 0.5 and found.value("dispatch.starved_idle_share", RUN) == pytest.approx(expected, rel=0.05)


def test_a_timeline_alone_tells_idle_time_and_its_owner(tmp_path: Path) -> None:
    """Somebody handed over one trace_view.json: two long pauses, and the call of the host that covers them."""
    at, events = 1_000_000.0, [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Python"}},
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "thread_name", "pid": 2, "tid": 1, "args": {"name": "Stream 1"}},
    ]  # fmt: skip
    for step in range(9):
        begin = at
        pause = 40_000.0 if step in (3, 7) else 0.0
        if pause:
            host = {"ph": "X", "name": "aten::to", "pid": 1, "tid": 1, "ts": f"{at:.3f}", "dur": pause - 100}
            events.append(host)
        kernel = {"ph": "X", "name": "MatMulV2", "pid": 2, "tid": 1, "dur": 490, "args": {"Task Type": "AI_CORE"}}
        events += [kernel | {"ts": f"{at + pause + 500 * number:.3f}"} for number in range(20)]
        at += pause + 10_000
        mark = {"ph": "X", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": f"{begin:.3f}", "dur": at - begin}
        events.append(mark)
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("timeline.idle_share", RUN) == pytest.approx(81_700 / 170_000, rel=0.05)
    assert facts.value("timeline.gap_owner", RUN) == "aten::to"
    assert facts.value("step.slow_owner", RUN) == "aten::to"
    said = next(f for f in judged(tmp_path).findings if f.rule == "SCHED070")
    assert "aten::to" in said.message.en and "aten::to" in str(said.remedies[0].action.en)


def test_a_timeline_alone_tells_late_launches_as_kernels_do(tmp_path: Path) -> None:
    """The links from launch to start are the timeline's: without a table of kernels they tell the same."""
    path = profile(tmp_path, host_us=300.0)
    whole = measure([path], None, Options(jobs=1)).facts
    for file in list(path.rglob("*")):
        if file.is_file() and file.name != "trace_view.json":
            file.unlink()
    alone = measure([path], None, Options(jobs=1)).facts
    for name in ("dispatch.starved_share", "dispatch.starved_idle_share", "dispatch.launch_interval_us"):
        assert alone.number(name, RUN) == pytest.approx(whole.number(name, RUN), rel=0.1)


def test_what_every_kernel_waits_for_is_no_late_launch(tmp_path: Path) -> None:
    """From kernel to kernel the device takes 2 us, however early they are launched. Of ten that are launched only when
    it has run dry, what they start later than that is the host's."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Python"}},
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "thread_name", "pid": 2, "tid": 1, "args": {"name": "Stream 1"}},
    ]  # fmt: skip
    end = 1_000_000.0
    for step in range(4):
        begin = end
        for number in range(40):
            late = 5.0 if number >= 30 else 0.0
            start = end + late + 2.0
            launch = end + late if late else end - 200.0
            flow = str(40 * step + number)
            link = {"name": f"HostToDevice{flow}", "cat": "HostToDevice", "id": flow}
            events += [
                {"ph": "X", "name": "aclnnMatmul", "pid": 1, "tid": 1, "ts": f"{launch:.3f}", "dur": 1},
                {"ph": "X", "name": "MatMulV2", "pid": 2, "tid": 1, "ts": f"{start:.3f}", "dur": 50,
                 "args": {"Task Type": "AI_CORE"}},
                link | {"ph": "s", "pid": 1, "tid": 1, "ts": f"{launch:.3f}"},
                link | {"ph": "f", "bp": "e", "pid": 2, "tid": 1, "ts": f"{start:.3f}"},
            ]  # fmt: skip
            end = start + 50
        mark = {"ph": "X", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": f"{begin:.3f}", "dur": end - begin}
        events.append(mark)
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("dispatch.starved_share", RUN) == pytest.approx(0.25, abs=0.02)
    assert facts.number("dispatch.starved_idle_us", RUN) == pytest.approx(10 * 5.0, rel=0.03)


def test_launches_that_take_longer_than_kernels_starve_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each launch begins while the kernel before still runs, and is not done in time: vertical links all the same."""
    monkeypatch.setattr("benchmarks.large_workload.LAUNCH_NS", 290_000)
    path = profile(tmp_path, host_us=300.0)
    facts = measure([path], None, Options(jobs=1)).facts
    assert facts.value("dispatch.starved_share", RUN) > 0.9
    assert facts.value("dispatch.starved_idle_us", RUN) == pytest.approx(facts.value("timeline.idle_us", RUN), rel=0.1)
    assert judged(path).summary.direction == "scheduling"


def test_conversions_in_every_layer_are_the_verdict(tmp_path: Path) -> None:
    """TransData and Cast behind every layer: one finding with both, and what removing them gives."""
    report = judged(profile(tmp_path, layer=(*LAYER, *CONVERSIONS)))
    found = [f for f in report.findings if f.verdict == "conversion-overhead"]
    assert [f.subject.id for f in found] == ["TransData"]
    assert "Cast" in found[0].message.en
    assert report.summary.direction == "computation"


def test_a_first_step_that_compiles_is_told_and_left_out(tmp_path: Path) -> None:
    """Its figures do not enter those of the others (S54)."""
    path = profile(tmp_path, first_step_factor=100.0)
    result = measure([path], None, Options(jobs=1))
    assert result.facts.value("compile.step_ratio", Subject("step", "0")) > 2
    assert ("0", "warm-up") in result.info.excluded_steps
    assert result.facts.value("timeline.idle_share", RUN) < 0.1
    assert any(f.verdict == "compile-in-profile" for f in judged(path).findings)


def test_a_cut_timeline_still_tells_the_launches_before_the_cut(tmp_path: Path) -> None:
    """Half of trace_view.json: the links of that half, no calls a step, and a line that says so."""
    path = profile(tmp_path)
    assert measure([path], None, Options(jobs=1)).facts.value("host_api.launch_count", RUN) > 0
    (file,) = path.rglob("trace_view.json")
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    result = measure([path], None, Options(jobs=1))
    assert 0 < result.facts.value("dispatch.linked_count", RUN) < 650
    assert result.facts.value("host_api.launch_count", RUN) is None
    assert any("ends in the middle" in p.problem for p in result.problems)


def memory_of(tmp_path: Path, allocated: np.ndarray, reserved_mb: float = 10_000):  # type: ignore[no-untyped-def]
    path = tmp_path / "memory_record.csv"
    rows = [
        f"PTA,{1_700_000_000_000_000 + 1000 * i}.000\t,{mb},{reserved_mb},{mb},NPU:0" for i, mb in enumerate(allocated)
    ]
    heading = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type"
    path.write_text("\n".join((heading, *rows, "")))
    return reduce_memory(Rank(0, tmp_path, {"memory": TableRef("memory", (path,), "csv.table")}, base=tmp_path))


def test_growth_needs_every_part_to_rise(tmp_path: Path) -> None:
    """A leak raises the least use of every part of the time; activations that come and go do not."""
    wave = 1000 + 100 * (np.arange(160) % 10)
    steady, leaking = memory_of(tmp_path, wave), memory_of(tmp_path, wave + 5 * np.arange(160))
    assert steady.growth == 0.0
    assert leaking.growth == pytest.approx(100 * 2**20) and leaking.growth_share > 0.5


def test_fragmentation_is_measured_at_the_highest_allocation(tmp_path: Path) -> None:
    """What lies unused when tensors need most cannot be used at all."""
    found = memory_of(tmp_path, np.array([1000, 6000, 2000] * 20))
    assert found.unused == pytest.approx(4000 * 2**20) and found.unused_share == pytest.approx(0.4)


@pytest.mark.parametrize(("launches", "told"), [(650 * 4, True), (650 * 400, False)])
def test_calls_of_more_than_the_recorded_steps_are_nobodys(tmp_path: Path, launches: int, told: bool) -> None:
    """The statistic counts the calls of the whole process, of which the device may have recorded a part: launches
    that no kernel answers are of the rest. Calls inside other calls count once."""
    path = profile(tmp_path)
    (file,) = path.rglob("trace_view.json")
    lines = [
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
        f"host,node,launch,{launches * 10},{launches},10,8,12,1",
        f"host,acl,aclrtLaunchKernelWithHostArgs,{launches * 9},{launches},9,7,11,1",
    ]
    (file.parent / "api_statistic.csv").write_text("\n".join(lines) + "\n")
    result = measure([path], None, Options(jobs=1))
    assert result.facts.value("host_api.launch_count", RUN) == (650 if told else None)
    assert not [p for p in result.problems if "api_statistic" in p.file]


@pytest.mark.parametrize(("launches", "told"), [(24, True), (12_000, False)])
def test_a_statistic_of_types_counts_the_kernels_too(tmp_path: Path, launches: int, told: bool) -> None:
    """Two statistics and no timeline: launches of the whole process are no calls of a recording of 15 kernels, and no
    damage either."""
    (tmp_path / "op_statistic.csv").write_text(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,Conv2D,AI_CORE,1,8225.66,8225.66,8225.66,8225.66,95\n0,Add,AI_VECTOR_CORE,14,420,30,30,30,5\n"
    )
    (tmp_path / "step_trace_time.csv").write_text(
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing\n0,,8645.66,0,0,0,20,8665.66,0,0,100\n"
    )
    (tmp_path / "api_statistic.csv").write_text(
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
        f"host,node,launch,{launches * 12},{launches},12,6,80,81\n"
    )
    result = measure([tmp_path], None, Options(jobs=1))
    assert (result.facts.value("host_api.launch_count", RUN) is not None) == told
    assert not [p for p in result.problems if "api_statistic" in p.file]


def test_calls_of_no_known_level_are_told_and_count_once(tmp_path: Path) -> None:
    """Launches that stand in the statistic once for each layer they pass are no more launches where a damaged column
    does not tell the layers apart."""
    path = profile(tmp_path)
    (file,) = path.rglob("trace_view.json")
    found = []
    for levels in (("node", "acl"), ("%/&", "%/&"), ("", "7")):
        lines = ["Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"]
        for level, name in zip(levels, ("launch", "aclrtLaunchKernelWithHostArgs"), strict=True):
            lines.append(f"{level},{name},26000,2600,10,8,12,1")
        (file.parent / "api_statistic.csv").write_text("\n".join(lines) + "\n")
        result = measure([path], None, Options(jobs=1))
        told = [p.problem for p in result.problems if "api_statistic" in p.file]
        found.append((result.facts.value("host_api.launch_count", RUN), bool(told) and "Level" in told[0]))
    assert found == [(650, False), (650, True), (650, True)]


def test_waiting_for_the_loader_is_a_part_of_the_idle_time() -> None:
    """The waits between twelve steps are eleven: their mean is no more than what the steps are idle."""
    row = {"timeline.idle_us": 20.0, "timeline.idle_share": 0.38, "timeline.loader_idle_us": 21.6,
           "timeline.loader_idle_share": 0.41}  # fmt: skip
    _cap_loading(row)
    assert (row["timeline.loader_idle_us"], row["timeline.loader_idle_share"]) == (20.0, 0.38)
    less = {"timeline.idle_us": 20.0, "timeline.loader_idle_us": 15.0}
    _cap_loading(less)
    assert less["timeline.loader_idle_us"] == 15.0


def test_kernels_of_another_day_than_the_timeline_are_told(tmp_path: Path) -> None:
    """Nothing links them: one of the two files is of another run, or its clock was set."""
    path = profile(tmp_path)
    (file,) = path.rglob("kernel_details.csv")
    rows = load(file)
    at = rows[0].index("Start Time(us)")
    day_us = 86_400e6
    store(file, [rows[0], *([*row[:at], f"{float(row[at]) + day_us:.3f}\t", *row[at + 1 :]] for row in rows[1:])])
    problems = measure([path], None, Options(jobs=1)).problems
    assert any("apart from the timeline" in problem.problem for problem in problems)


@pytest.mark.parametrize(("count", "told"), [(3, [0.0, 0.0]), (0, None)])
def test_a_loader_whose_calls_are_all_short_is_waited_for_by_nobody(count: int, told: list[float] | None) -> None:
    """Short events are summed up by name and not kept one by one: that nothing of the idle time is the loader's is
    known all the same. Where no call was recorded nobody knows."""
    no, name = np.zeros(0, np.int64), "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    kept = SimpleNamespace(names=[], name=no, start=no, end=no)
    trace = SimpleNamespace(host=kept, activities={("Python", name): SimpleNamespace(count=count)})
    last = np.array([60, 160, 260])
    found = loader_waits(trace, False, np.array([0, 100]), np.array([50, 150]), np.array([0, 1]), last)
    assert (None if found is None else found.us[:2].tolist()) == told


def test_waits_for_the_loader_lie_before_a_step_or_within_it() -> None:
    """A stretch that reaches to the next step's first kernel is before that one; any other is within its own, also in
    the last step, which nothing follows."""
    start, end = np.array([10_000, 80_000, 120_000]), np.array([30_000, 100_000, 150_000])
    names = ["enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"]
    kept = SimpleNamespace(names=names, name=np.zeros(3, np.int64), start=start, end=end)
    trace = SimpleNamespace(host=kept, activities={})
    found = loader_waits(trace, True, start, end, np.array([0, 0, 1]), np.array([100_000, 200_000]))
    assert found is not None
    assert found.us[0] == 40.0
    assert np.isnan(found.us[1])
    assert found.within_us.tolist() == [20.0, 30.0]
