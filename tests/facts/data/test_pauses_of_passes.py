"""Passes of the same kernels that lie apart: by bursts of data, or by the loop's own code with data at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Confidence, Finding, Report, Role
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

_TYPES = ("Conv2D", "ReLU", "MatMulV2", "ReluGrad", "Conv2DBackpropFilter", "ApplyMomentum")
_DEVICE_MS, _BATCHES = 24, 200
_QUEUE = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
)


def recording(folder: Path, name: str, waits_ms: list[int], apart_ms: list[int], held: int, work_ms: float) -> Report:
    """Batches for which the host waits so long, passes that lie so far apart, a last queue that holds so many batches
    and one operation that works so long for each."""
    output = folder / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    raw = output.parent / "FRAMEWORK"
    output.mkdir(parents=True)
    raw.mkdir()
    rows, lines, now, idle, each = [], [], 0.0, 0.0, 1000.0 * _DEVICE_MS / len(_TYPES)
    for batch, (wait, apart) in enumerate(zip(waits_ms, apart_ms, strict=True), 1):
        now, idle = now + 1000 * apart, idle + 1000 * apart
        at = int(now / 1000)
        lines += [
            f"0 1 {batch} 0 {at}",
            f"0 2 {batch} {wait} {at}",
            f"0 0 {batch} {wait} {at}",
            f"1 16 {batch} {held} {at}",
        ]
        for place, name_of in enumerate(_TYPES):
            start = 1_700_000_000_000_000 + now + place * each
            rows.append(f"Default/net/{name_of}-op1,{name_of},AI_CORE,{start:.3f},{each:.3f},0")
        now += 1000 * _DEVICE_MS
    (raw / f"{name}_profiling_0.txt").write_text("\n".join(lines) + "\n")
    head = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    (output / "kernel_details.csv").write_text("\n".join([head, *rows]) + "\n")
    (output / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        f"Communication(Not Overlapped and Exclude Receive),Preparing\n0,{now - idle:.3f},0,0,0,{idle:.3f},0,0,0,10\n"
    )
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\n"
        f"MapOp(ID:1),WorkerProcess,{_BATCHES},{1000 * work_ms:.1f},\n"
        f"Pipeline,GetNext,{_BATCHES},{1000 * sum(waits_ms) / _BATCHES + 20:.1f},\n"
    )
    (output / "minddata_pipeline_raw_0.csv").write_text(
        f'{_QUEUE}0,BatchOp,1,"{[held] * 50}",{held},16,0.5,10,,[1]\n1,MapOp,1,"{[held] * 50}",{held},16,0.5,10,0,\n'
    )
    return advise([folder], load_rules())


def causes(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.role is Role.ROOT_CAUSE and f.saving is not None]


@pytest.mark.parametrize("every", [8, 20])
def test_a_device_that_starves_now_and_then_gets_its_data_in_bursts(tmp_path: Path, every: int) -> None:
    """The sending thread waits long for every so many batches, and the device with it, while nothing is busy."""
    long = 15 * every
    waits = [long + _DEVICE_MS if batch % every == every - 1 else _DEVICE_MS - 4 for batch in range(_BATCHES)]
    apart = [long if batch % every == every - 1 else 0 for batch in range(_BATCHES)]
    (found,) = causes(recording(tmp_path, "device_queue", waits, apart, 0, 12.0))
    assert (found.rule, found.verdict) == ("DATA016", "data-processing-bottleneck")
    assert found.saving is not None and found.saving.us_per_step == pytest.approx(15_000, rel=0.1)


@pytest.mark.parametrize(("own_ms", "wait_ms", "named"), [(9, 0, True), (1, 0, False), (9, 8, False)])
def test_a_loop_that_holds_its_batch_keeps_the_device_waiting(
    tmp_path: Path, own_ms: int, wait_ms: int, named: bool
) -> None:
    """Idle once for every batch, at one place of the kernels, while the loop does not wait for data: its own code. A
    loop that waits is innocent, and a millisecond is nobody's fault."""
    report = recording(
        tmp_path, "dataset_iterator", [wait_ms] * _BATCHES, [own_ms] * _BATCHES, 0 if wait_ms else 12, 6.0
    )
    found = [f for f in report.findings if f.verdict == "user-code-feeding-slow"]
    assert bool(found) is named
    if found:
        assert found[0].confidence is Confidence.MEDIUM and found[0].saving is not None
        assert found[0].saving.us_per_step == pytest.approx(1000 * own_ms, rel=0.1)
