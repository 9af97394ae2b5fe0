"""GetNext: how long it takes, and whether kernels run beside it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from advisor.facts.base import FactSet, Run
from advisor.facts.data.getnext import FAMILIES, GET_NEXT, GetNext, reduce
from advisor.model import Fact, Role, Severity, Subject
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Profile
from advisor.sources.discover import load_profile
from tests.facts.data.test_processors import rank_with


def test_overlap_is_the_part_beside_compute_kernels(tmp_path: Path) -> None:
    """Half of GetNext runs beside a MatMul; other AI CPU operators are no computation."""
    output = tmp_path / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
        "Default/GetNext,GetNext,AI_CPU,1700000000000000.000\t,10.0,0\n"
        "Default/MatMul,MatMul,AI_CORE,1700000000000005.000\t,100.0,0\n"
        "Default/Other,Other,AI_CPU,1700000000000000.000\t,10.0,0\n"
    )
    (rank,) = load_profile([tmp_path]).ranks
    found = reduce(rank)
    assert found is not None and found.overlap == pytest.approx(0.5) and found.time_us == 10.0


def test_without_kernels_the_ai_cpu_table_tells_the_time_only() -> None:
    """An operator merely named like it (a GetNextLayer's weights) is no reason to miss the real one."""
    frame = pd.DataFrame({"name": ["GetNext", "InitData", "Default/GetNext-op3"], "total_us": [800.0, 9.0, 400.0]})
    found = reduce(rank_with(aicpu=frame))
    assert found is not None and (found.count, found.time_us, found.overlap) == (2, 600.0, None)


def test_the_share_counts_every_execution_of_a_step() -> None:
    """Two GetNext a step count twice."""
    run = Run(Profile("x", []))
    run.keep(0, {GET_NEXT: GetNext(20, 500.0, None, ())})
    of_rank = Subject("rank", "0", (0,))
    facts = FactSet([Fact("step.time_us", of_rank, 10_000.0), Fact("step.count", of_rank, 10)])
    measured = {fact.name: fact.value for fact in FAMILIES[0].measure(run, facts)}
    assert measured["getnext.share_of_step"] == pytest.approx(0.1)


def test_waiting_in_getnext_is_waiting_for_data(tmp_path: Path) -> None:
    """With batches sunk, a starved device waits inside of GetNext: the step table calls that computing, the slow source
    is to blame and nobody else."""
    output = tmp_path / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    raw = output.parent / "FRAMEWORK"
    output.mkdir(parents=True)
    raw.mkdir()
    kernels, batches, start = [], [], 1_700_000_000_000_000.0
    for i in range(60):
        kernels.append(f"Default/GetNext-op1,GetNext,AI_CPU,{start:.3f}\t,12000.0,0")
        kernels += [f"Default/MatMul-op{k},MatMul,AI_CORE,{start + 12000 + 4000 * k:.3f}\t,4000.0,0" for k in range(5)]
        start += 32000
        batches += [f"0 1 {i + 1} 0 {32 * i}", f"0 2 {i + 1} 31 {32 * i}", f"0 0 {i + 1} 31 {32 * i}"]
        batches.append(f"1 16 {i + 1} 0 {32 * i}")
    (output / "kernel_details.csv").write_text(
        "\n".join(["Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)", *kernels]) + "\n"
    )
    (output / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing\n0,1920000,0,0,0,100,0,0,0,10\n"
    )
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nGeneratorOp(ID:1),__next__,240,7990.0,\n"
        "BatchOp(ID:0),WorkerProcess,60,100.0,\n"
    )
    (output / "minddata_pipeline_raw_0.csv").write_text(
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        'output_queue_usage_rate,sample_interval,parent_id,children_id\n0,BatchOp,2,"[0, 0]",0,16,0,10,,[1]\n'
        '1,GeneratorOp,1,"[0, 0]",0,16,0,10,0,\n'
    )
    (raw / "device_queue_profiling_0.txt").write_text("\n".join(batches) + "\n")
    report = advise([tmp_path], load_rules())
    first = report.findings[0]
    assert (first.verdict, first.subject.id) == ("data-processing-bottleneck", "Generator(1)")
    assert first.saving is not None and first.saving.us_per_step == pytest.approx(12_000, rel=0.1)
    weighty = [f.verdict for f in report.findings if f.severity is not Severity.LOW and f.role != Role.SYMPTOM]
    assert weighty == ["data-processing-bottleneck"]


def test_one_long_wait_at_the_start_is_not_how_long_getnext_takes() -> None:
    """The first executions wait for the pipeline to start: the median does not see them."""
    frame = pd.DataFrame({"name": ["GetNext"] * 5, "total_us": [90_000.0, 200.0, 210.0, 190.0, 200.0]})
    found = reduce(rank_with(aicpu=frame))
    assert found is not None and found.time_us == 200.0


def test_without_marks_of_steps_shares_are_of_the_recording() -> None:
    """Twelve waits of 40 ms in a recording of one second are half of it, not a twenty-fifth."""
    run = Run(Profile("x", []))
    run.keep(0, {GET_NEXT: GetNext(12, 40_000.0, 0.0, (), 480_000.0)})
    facts = FactSet([Fact("step.time_us", Subject("rank", "0", (0,)), 960_000.0)])
    measured = {fact.name: fact.value for fact in FAMILIES[0].measure(run, facts)}
    assert measured["getnext.share_of_step"] == measured["getnext.alone_share"] == pytest.approx(0.5)
