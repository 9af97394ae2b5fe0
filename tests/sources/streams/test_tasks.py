"""task_time_*.csv: the kernels of a recording that tells nothing but how long tasks took."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.sources.discover import load_profile
from advisor.sources.streams.kernels import load_kernels

HEADING = "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)"
HASH = "1c4543fdfe7149b6b0717bd88f061562"


def _write(folder: Path, devices: tuple[int, ...] = (0,)) -> Path:
    output = folder / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows = []
    for device in devices:
        for number in range(20):
            at = 1_000_000 + 100 * number
            rows += [
                f"{device},N/A,EVENT_WAIT,42,{number},2.5,{at}.000\t,{at + 2}.500\t",
                f"{device},MatMulV2_{HASH}_high_performance_21,KERNEL_AICORE,46,{number},50,{at + 10}.000\t,0\t",
                f"{device},tilefwk_0_mix_aic,KERNEL_MIX_AIC,46,{number},20.000,{at + 70}.250\t,0\t",
                f"{device},N/A,KERNEL_AICPU,43,{number},5,{at + 92}.000\t,0\t",
            ]
    (output / "task_time_20260823165619.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return output


def test_tasks_on_cores_are_the_kernels(tmp_path: Path) -> None:
    """Waiting for events is none; types are names without what the compiler adds, to the nanosecond of their start."""
    _write(tmp_path)
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and len(kernels) == 60
    assert {(s.type, s.core) for s in kernels.signatures} == {
        ("MatMulV2", "AI_CORE"), ("tilefwk", "MIX_AIC"), ("AI_CPU", "AI_CPU")
    }  # fmt: skip
    assert int(kernels.start.min()) == 1_000_010_000 and kernels.duration.sum() == pytest.approx(20 * 75)


@pytest.mark.parametrize(
    ("kind", "core"),
    [
        ("KERNEL_AICORE", "AI_CORE"), ("KERNEL_AIVEC", "AI_VECTOR_CORE"), ("KERNEL_MIX_AIV", "MIX_AIV"),
        ("AI_VECTOR_CORE", "AI_VECTOR_CORE"), ("KERNEL_AICPU", "AI_CPU"),
    ],
)  # fmt: skip
def test_a_task_is_a_kernel_on_whatever_core_it_runs(tmp_path: Path, kind: str, core: str) -> None:
    """Kernels of the vector cores are tasks of their own name; without them a busy device seems to idle."""
    path = tmp_path / "task_time_1.csv"
    path.write_text(f"{HEADING}\n0,Mul,{kind},2,7,20,1000.000\t,1020.000\t\n", encoding="utf-8")
    (rank,) = load_profile([path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and [s.core for s in kernels.signatures] == [core]


def test_a_table_of_operators_comes_first(tmp_path: Path) -> None:
    """Where op_summary is there, tasks are not read beside it."""
    output = _write(tmp_path)
    (output / "op_summary_20260823165619.csv").write_text("Op Name,Task Start Time(us),Task Duration(us)\na,5.0,7\n")
    (rank,) = load_profile([tmp_path]).ranks
    assert [path.name for path in rank.tables["kernels"].paths] == ["op_summary_20260823165619.csv"]


def test_tasks_of_several_devices_are_several_ranks(tmp_path: Path) -> None:
    """One file for all devices of a process: each has its own kernels."""
    _write(tmp_path, (0, 1))
    ranks = load_profile([tmp_path]).ranks
    assert [rank.device for rank in ranks] == ["0", "1"]
    assert [len(kernels) for rank in ranks if (kernels := load_kernels(rank)) is not None] == [60, 60]


def test_a_table_that_does_not_say_what_tasks_are_is_left_out(tmp_path: Path) -> None:
    """Without the column of kinds nobody knows which tasks computed."""
    path = tmp_path / "task_time_1.csv"
    path.write_text("kernel_name,task_time(us),task_start(us)\na,5,1.0\n", encoding="utf-8")
    (rank,) = load_profile([path]).ranks
    assert load_kernels(rank) is None and "which tasks are kernels" in rank.problems[0].problem
