"""A device that only copies between memories is neither idle for an unknown reason nor launched late."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.api import advise
from advisor.model import Report

STEPS, KERNELS, STEP_US, COMPUTING_US = 5, 40, 50_000, 20_000


def _rank(root: Path, rank: int, copy_us: float, name: str = "MEMCPY_ASYNC", pieces: int = 1, last: float = 1) -> None:
    """A rank whose steps of 50 ms compute for 20 ms and copy a batch before the first kernel, the rest of the step
    waiting at its end for the host. Of several pieces each lasts for `last` of the time until the next."""
    output = root / f"node_{4000 + rank}_20260101120000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "config": {}}))
    each = COMPUTING_US / KERNELS
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes"]
    table = [
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"
    ]
    processes = ((1, "Ascend Hardware"), (2, "Python"), (3, "CANN"))
    events = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": title}} for pid, title in processes]
    for step in range(STEPS):
        begin = 1e9 + step * STEP_US
        events.append({"ph": "X", "name": f"ProfilerStep#{step + 3}", "pid": 2, "tid": 1, "ts": f"{begin - 35_000:.3f}",
                       "dur": STEP_US, "args": {}})  # fmt: skip
        events += [{"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": f"{begin - copy_us * (1 - i / pieces):.3f}",
                    "dur": last * copy_us / pieces, "args": {"Task Type": "PCIE_DMA_SQE"}}
                   for i in range(pieces)]  # fmt: skip
        for i in range(KERNELS):
            start = begin + i * each
            rows.append(f'{step + 3},aclnnMatmul_{i % 8},MatMulV2,AI_CORE,{start:.3f},{each:.3f},0,"1024,1024"')
            events.append({"ph": "X", "name": f"aclnnMatmul_{i % 8}", "pid": 1, "tid": 2, "ts": f"{start:.3f}",
                           "dur": each, "args": {}})  # fmt: skip
        free = STEP_US - COMPUTING_US if step + 1 < STEPS else 0
        table.append(f"{rank},{step + 3},{COMPUTING_US},0,0,0,{free},{COMPUTING_US + free},0,0")
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    (output / "step_trace_time.csv").write_text("\n".join(table) + "\n")
    (output / "trace_view.json").write_text(json.dumps(events))


def _found(report: Report, rule: str) -> list[str]:
    return [f.subject.id for f in report.findings if f.rule == rule]


def test_copies_that_fill_the_idle_time_are_named(tmp_path: Path) -> None:
    """28 of 30 idle ms a step are one copy: that is what the device waits for, and what can be gained."""
    _rank(tmp_path, 0, 28_000)
    report = advise(tmp_path)
    found = next(f for f in report.findings if f.rule == "DATA027")
    assert found.saving is not None and 27_000 < found.saving.us < 29_000
    assert found.role == "root_cause"


def test_a_timeline_alone_names_copies_that_fill_the_idle_time(tmp_path: Path) -> None:
    """Its own lanes tell kernels from copies: whose host waits for a copy, runs no other work."""
    _rank(tmp_path, 0, 28_000)
    for file in (*tmp_path.rglob("kernel_details.csv"), *tmp_path.rglob("step_trace_time.csv")):
        file.unlink()
    found = next(f for f in advise(tmp_path).findings if f.rule == "DATA027")
    assert found.saving is not None and 21_000 < found.saving.us < 29_000
    assert found.role == "root_cause"


def test_a_copy_inside_an_idle_stretch_that_it_hardly_fills_is_no_cause(tmp_path: Path) -> None:
    """2 of 30 idle ms: the rest has another owner."""
    _rank(tmp_path, 0, 2_000)
    assert not _found(advise(tmp_path), "DATA027")


def test_hundreds_of_short_copies_hold_the_device_up_as_one_long_one_does(tmp_path: Path) -> None:
    """700 copies of 6 us, one every 20 us: the batch goes tensor by tensor. As many that come 200 us apart leave the
    device idle for another reason."""
    _rank(tmp_path / "row", 0, 14_000, pieces=700, last=0.3)
    report = advise(tmp_path / "row")
    found = next(f for f in report.findings if f.rule == "DATA027")
    assert found.role == "root_cause" and found.saving is not None and 13_500 < found.saving.us < 14_100
    assert "(700 per step" in found.message.en and found.remedies[0].id == "pack-copies"
    assert not _found(report, "DATA019")
    _rank(tmp_path / "apart", 0, 14_000, pieces=70, last=0.03)
    assert not _found(advise(tmp_path / "apart"), "DATA027")


def test_other_tasks_of_the_device_are_no_copies(tmp_path: Path) -> None:
    """A task that waits for an event keeps the lane busy and copies nothing."""
    _rank(tmp_path, 0, 28_000, name="EVENT_WAIT")
    assert not _found(advise(tmp_path), "DATA027")


def test_the_rank_whose_copies_take_longer_is_named(tmp_path: Path) -> None:
    """The same batch takes 2 ms on one card and 28 ms on the other: the way to that card, not its host."""
    _rank(tmp_path, 0, 2_000)
    _rank(tmp_path, 1, 28_000)
    report = advise(tmp_path)
    assert _found(report, "DATA028") == ["1"]
    assert not _found(report, "DATA027")


def _offloading(root: Path, rank: int, copy_us: float, collective_us: float) -> None:
    """A rank whose steps compute five blocks of 8 ms; behind each its gradients are reduced and its activations copied,
    and the next block waits for both."""
    output = root / f"node_{4000 + rank}_20260101120000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "config": {}}))
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes"]
    table = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Ascend Hardware"}}]
    both = max(copy_us, collective_us)
    for step in range(STEPS):
        for block in range(5):
            begin = 1e9 + (step * 5 + block) * (8_000 + both)
            tasks = [(f"aclnnMatmul_{i}", "MatMulV2", "AI_CORE", begin + 800 * i, 800.0) for i in range(10)]
            tasks.append((f"hcom_allReduce__1_{5 * step + block}_1", "hcom_allReduce_", "COMMUNICATION", begin + 8_000,
                          collective_us))  # fmt: skip
            rows += [
                f'{step},{name},{kind},{core},{at:.3f},{us:.3f},0,"1024,1024"' for name, kind, core, at, us in tasks
            ]
            events += [{"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": f"{at:.3f}", "dur": us, "args": {}}
                       for name, _, _, at, us in tasks]  # fmt: skip
            events.append({"ph": "X", "name": "MEMCPY_ASYNC", "pid": 1, "tid": 3, "ts": f"{begin + 8_000:.3f}",
                           "dur": copy_us, "args": {}})  # fmt: skip
        talk = 5 * collective_us
        table.append(f"{rank},{step},40000,{talk},0,{talk},{5 * (both - collective_us)}")
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    (output / "step_trace_time.csv").write_text("\n".join(table) + "\n")
    (output / "trace_view.json").write_text(json.dumps(events))


def test_computing_that_goes_on_behind_a_copy_waited_for_the_copy(tmp_path: Path) -> None:
    """Collectives of 3 ms and copies of 4 ms start together, and nothing computes: without the copies the collectives
    would lie beside the next block. Where the collectives take longer, they hold it up."""
    for name, copy, collective in (("copy", 4_000.0, 3_000.0), ("collective", 3_000.0, 4_000.0)):
        for rank in (0, 1):
            _offloading(tmp_path / name, rank, copy, collective)
    report = advise(tmp_path / "copy")
    found = next(f for f in report.findings if f.rule == "DATA029")
    assert found.role == "root_cause" and found.saving is not None and 19_000 < found.saving.us < 21_000
    assert report.summary.direction == "scheduling"
    assert not _found(advise(tmp_path / "collective"), "DATA029")
