"""Batches that are sunk: the sending thread runs ahead of the device while the queue there fills, and the step is the
device's pace, which steps are as many as whatever marks them."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

import pytest

from advisor.facts.base import FactSet
from advisor.facts.data.batches import BatchTimes, read_batches
from advisor.model import RUN
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Rank
from advisor.sources.minddata.minddata import find_minddata

_KERNELS = 6


def sink(folder: Path, device_ms: int, pipeline_ms: int, room: int, batches: int, stall: int | None = None) -> float:
    """Writes device_queue_profiling of a pipeline that needs so long for a batch and a device that keeps `room` of
    them; behind batch `stall` the device rests for two seconds once. Returns the device's mean step, microseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    lines, now, free, waiting = [], 1000.0, 0.0, deque[float]()
    begun = []
    for batch in range(1, batches + 1):
        while waiting and waiting[0] <= now:
            waiting.popleft()
        if len(waiting) >= room:
            now = waiting.popleft()
        now += pipeline_ms + 0.4
        start = max(now, free)
        free = start + device_ms + (2000 if batch == stall else 0)
        waiting.append(start)
        begun.append(start)
        at = int(now)
        lines += [f"0 1 {batch} 0 {at}", f"0 2 {batch} {pipeline_ms} {at}", f"0 0 {batch} {pipeline_ms} {at}"]
        lines.append(f"1 16 {batch} {min(len(waiting), 16)} {at}")
    (folder / "device_queue_profiling_0.txt").write_text("\n".join(lines) + "\n")
    return 1000 * (free - begun[0]) / batches


def kernels(folder: Path, device_ms: int, passes: int) -> None:
    """Kernels and the one row of a step table of a device that runs so many steps without a pause."""
    folder.mkdir(parents=True, exist_ok=True)
    each, rows = 1000.0 * device_ms / _KERNELS, []
    for step in range(passes):
        for place in range(_KERNELS):
            at = 1_700_000_000_000_000 + (step * _KERNELS + place) * each
            rows.append(f"Default/net/Op{place}-op1,Op{place},AI_CORE,{at:.3f},{each - 2:.3f},0")
    head = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    (folder / "kernel_details.csv").write_text("\n".join([head, *rows]) + "\n")
    busy, whole = passes * _KERNELS * (each - 2), passes * _KERNELS * each
    (folder / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        f"Communication(Not Overlapped and Exclude Receive),Preparing\n0,{busy:.3f},0,0,0,{whole - busy:.3f},0,0,0,10\n"
    )


def times_of(folder: Path) -> BatchTimes:
    found = read_batches(Rank(0, folder, find_minddata(folder, 0), base=folder))
    assert found is not None
    return found


@pytest.mark.parametrize("device_ms", [20, 45])
@pytest.mark.parametrize("pipeline_ms", [4, 12])
@pytest.mark.parametrize("room", [2, 20, 100])
def test_batches_that_fill_the_queue_are_no_steps(tmp_path: Path, device_ms: int, pipeline_ms: int, room: int) -> None:
    """However much room the device has: the interval is the device's from where the sending thread rests."""
    step = sink(tmp_path, device_ms, pipeline_ms, room, 400)
    found = times_of(tmp_path)
    assert found.step_mean_us == pytest.approx(step, rel=0.02)
    assert found.wait_us == pytest.approx(1000 * pipeline_ms, rel=0.05)


@pytest.mark.parametrize("stall", [None, 150])
def test_a_thread_that_is_waited_for_fills_nothing(tmp_path: Path, stall: int | None) -> None:
    """A slow pipeline sets the pace from the first batch on, also where it could rest while the device paused once."""
    sink(tmp_path, 10, 25, 20, 300, stall)
    found = times_of(tmp_path)
    assert found.step_us == pytest.approx(25_400, rel=0.05)
    assert found.steady > 250


def recording(folder: Path, device_ms: int, batches: int, passes: int) -> FactSet:
    """The facts of a healthy sink whose kernels repeat so often, in one row."""
    output = folder / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    kernels(output, device_ms, passes)
    sink(output.parent / "FRAMEWORK", device_ms, 4, 20, batches)
    report = advise([folder], load_rules())
    assert not [f for f in report.findings if f.verdict == "too-few-samples"]
    assert report.summary.step_time_us == pytest.approx(1000 * device_ms, rel=0.02)
    return FactSet(report.facts)


def test_the_devices_passes_are_the_steps(tmp_path: Path) -> None:
    """As many passes of the same kernels as batches: the row is divided by them, and nobody asks for more steps, for
    which a schedule would be needed that switches the data pipeline's files off."""
    facts = recording(tmp_path, 30, 200, 200)
    assert facts.value("step.count", RUN) == 200
    assert facts.value("step.time_us", RUN) == pytest.approx(30_000, rel=1e-3)
    assert not facts.has("step.longest_us")


@pytest.mark.parametrize("passes", [100, 400])
def test_passes_that_are_no_steps_divide_nothing(tmp_path: Path, passes: int) -> None:
    """Half as many, or twice as many: a pass is two steps, or half of one. The batches mark the steps all the same."""
    facts = recording(tmp_path, 30, 200, passes)
    assert facts.value("step.count", RUN) == 1
    assert facts.value("step.marked_count", RUN) == 200


@pytest.mark.parametrize(("batches", "marks"), [(2, False), (16, False), (17, True)])
def test_no_more_batches_than_a_queue_holds_mark_no_step(tmp_path: Path, batches: int, marks: bool) -> None:
    """Nobody need have taken one while they were sent: their rate is the pipeline's own, not that of a step."""
    sink(tmp_path, 500, 12, 100, batches)
    found = times_of(tmp_path)
    assert (found.step_us is not None) == marks and found.is_ahead != marks


def test_a_device_that_keeps_the_sender_waiting_paces_few_batches_too(tmp_path: Path) -> None:
    """Where the sending thread rests, the queue on the device is full: then the device takes what is sent."""
    sink(tmp_path, 100, 4, 2, 12)
    assert times_of(tmp_path).step_us == pytest.approx(100_000, rel=0.02)


def test_batches_that_only_fill_a_queue_accuse_nobody(tmp_path: Path) -> None:
    """A queue that is filled for the first time is low, and nobody waits for it: no operation is too slow for that, and
    the recording has no steps."""
    sink(tmp_path, 500, 1, 100, 2)
    (tmp_path / "minddata_pipeline_raw_0.csv").write_text(
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        "0,DataQueueOp,1,,,,,1000,,[1]\n1,GeneratorOp,1,[3],3.0,16,0.1875,1000,0,\n"
    )
    report = advise([tmp_path], load_rules())
    assert report.summary.step_time_us is None and report.profile.recording != "training_steps"
    assert not [f for f in report.findings if f.direction == "scheduling"]
    assert any("than a queue holds" in problem.problem for problem in report.problems)


def test_computing_that_may_be_waiting_in_getnext_is_no_health(tmp_path: Path) -> None:
    """Without kernels a step table counts GetNext as computing, all of which may be waiting: the pipeline's files tell
    that batches are awaited, and the table does not refute them."""
    output = tmp_path / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    kernels(output, 60, 200)
    (output / "kernel_details.csv").unlink()
    sink(output.parent / "FRAMEWORK", 20, 60, 20, 200)
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nBatchOp(ID:1),WorkerProcess,200,59000.0,\n"
    )
    (output / "minddata_pipeline_raw_0.csv").write_text(
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        '0,DataQueueOp,1,,,,,100,,[1]\n1,BatchOp,1,"[0, 0]",0.0,16,0.0,100,0,\n'
    )
    report = advise([tmp_path], load_rules())
    (found,) = [f for f in report.findings if f.verdict == "data-processing-bottleneck"]
    assert found.subject.id == "Batch(1)"
    assert "computing" not in report.summary.breakdown


def starving(folder: Path, ranks: int, slow: int) -> None:
    """Older MindSpore's files of ranks that are fed, and of one whose source delivers too slowly: all take its step."""
    operations = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    operations += "output_queue_usage_rate,sample_interval,parent_id,children_id"
    steps = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
    for rank in reversed(range(ranks)):  # `sink` writes those of rank 0
        sink(folder, 45, 45 if rank == slow else 4, 20, 60)
        sent = (folder / "device_queue_profiling_0.txt").read_text()
        full = 0 if rank == slow else 16
        of_queue = [re.sub(r"^(1 16 [0-9]+) [0-9]+", rf"\1 {full}", line) for line in sent.splitlines()]
        (folder / f"device_queue_profiling_{rank}.txt").write_text("\n".join(of_queue) + "\n")
        cells = f'"{[full] * 20}",{full},16,{full / 16},100'
        rows = ["0,DeviceQueueOp,1,,,,,100,,[1]", f"1,BatchOp,1,{cells},0,[2]", f"2,GeneratorOp,1,{cells},1,"]
        (folder / f"minddata_pipeline_raw_{rank}.csv").write_text("\n".join([operations, *rows]) + "\n")
        step, gap = 4_500_000, 2_500_000 if rank == slow else 0
        rows = [
            f"{n},{n * step},{(n + 1) * step},{step},{n * step + gap},{(n + 1) * step},{gap},{step - gap},0"
            for n in range(60)
        ]
        (folder / f"step_trace_raw_{rank}_detail_time.csv").write_text("\n".join([steps, *rows]) + "\n")


def test_an_operation_is_judged_by_the_queues_of_its_own_ranks(tmp_path: Path) -> None:
    """One of four ranks is starved by its source: that the others' queues are full is no evidence against it."""
    starving(tmp_path, 4, 0)
    report = advise([tmp_path], load_rules())
    (said,) = [each for each in report.findings if each.rule == "DATA015"]
    assert said.subject.id == "Generator(2)" and said.subject.ranks == (0,)
