"""Recordings of one kernel that somebody measures: what a launch is, and what its repetition is not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

BLOCKS = "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio"
HEAD = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Num,Mix Block Num,Input Shapes,aic_total_cycles,aic_mac_ratio,aic_scalar_ratio,"
    "aic_mte2_ratio,aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio,cube_utilization(%)"
)
ORIGIN_US = 1_700_000_000_000_000


def told(folder: Path, rows: list[list[object]]) -> Report:
    output = folder / "PROF_000001_20260101000000000_ABCDEFGH" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (output / "op_summary_20260101000000.csv").write_text(f"{HEAD}\n{text}\n")
    return advise([folder], load_rules(), Options())


@pytest.mark.parametrize("seed", range(4))
def test_repeated_launches_of_a_measured_kernel_are_no_chain_to_fuse(tmp_path, seed):
    """A loop around one short vector kernel launches it again and again: nothing is there to fuse it with."""
    draw = Random(seed)
    length, every = draw.uniform(1.5, 6), draw.uniform(8, 12)
    rows = [
        [
            0, 4294967295, i, 2, "cache_write_kernel", "cache_write_kernel", "dynamic", "AI_VECTOR_CORE",
            f"{ORIGIN_US + i * every:.3f}\t", f"{length:.3f}", f"{every - length:.3f}", 8, 0, "N/A",
            0, 0, 0, 0, 0.01, 0.89, 0.05, 0,
        ]
        for i in range(draw.randint(120, 300))
    ]  # fmt: skip
    report = told(tmp_path, rows)
    assert report.profile.recording == "kernel_benchmark"
    assert [each.rule for each in report.findings] == ["COMP087"]
    assert report.findings[0].saving is None


@pytest.mark.parametrize("core", ["N/A", "AI_CPU"])
@pytest.mark.parametrize("seed", range(3))
def test_what_feeds_a_kernel_from_the_ai_cpu_is_no_launch_of_its_own(tmp_path, seed, core):
    """A kernel that tasks on the AI CPU start and feed has three rows a launch, of one name and at the same time; those
    without counters are none of its launches, nor do they run by themselves."""
    draw = Random(seed)
    launches, length, every = draw.randint(10, 40), draw.uniform(60, 100), draw.uniform(170, 220)
    rows: list[list[object]] = []
    for i in range(launches):
        start = ORIGIN_US + i * every
        for stream, ahead, longer in ((42, 14, 0.6), (43, 12, 1.25), (46, 0, 1.0)):
            kernel = stream == 46
            rows.append([
                0, 4294967295, 2 * i + 1, stream, "tile_add", "N/A" if core == "N/A" else "tile_add", "N/A",
                ("MIX_AIC" if core == "AI_CPU" else "N/A") if kernel else core, f"{start - ahead:.3f}\t",
                f"{length * longer:.3f}", 0, 0, 0, "N/A",
                *([3000000, 0, 0.95, 0, 0, 0, 0, 88] if kernel else ["N/A"] * 8),
            ])  # fmt: skip
    report = told(tmp_path, rows)
    assert report.profile.recording == "kernel_benchmark"
    (finding,) = report.findings
    seen = {each.fact: each.value for each in finding.evidence}
    assert seen["operator_type.count"] == launches
    whole = every * (launches - 1) + length
    assert report.summary.breakdown["computing"] == pytest.approx(launches * length / whole, rel=1e-3)


def test_a_row_without_counters_that_runs_by_itself_is_a_launch(tmp_path):
    """The profiler missed the counters of some launches: those overlap none that has counters."""
    rows = [
        [
            0, 4294967295, i, 2, "tile_add", "N/A", "N/A", "N/A", f"{ORIGIN_US + 120 * i}\t", 80, 40, 0, 0, "N/A",
            *(["N/A"] * 8 if i % 5 == 0 else [3000000, 0, 0.95, 0, 0, 0, 0, 88]),
        ]
        for i in range(40)
    ]  # fmt: skip
    (finding,) = told(tmp_path, rows).findings
    assert {each.fact: each.value for each in finding.evidence}["operator_type.count"] == 40


@pytest.mark.parametrize("seed", range(3))
def test_blocks_that_tell_how_long_a_launch_takes_do_not_tell_what_lies_around_them(tmp_path, seed):
    """Without the launch's own time its slowest block stands for it, which leaves nothing for start and completion: so
    short a kernel is not called limited by what its blocks do alone."""
    draw = Random(seed)
    times = [draw.uniform(3.9, 4.5) for _ in range(8)]
    said = {}
    for case in ("blocks", "launch"):
        folder = tmp_path / case / "OPPROF_20260101000000_ABCDEFGH"
        folder.mkdir(parents=True)
        rows = [f"{i},vector0,{us:.6f},{us * 1650:.0f},0.1,0.7,0.77" for i, us in enumerate(times)]
        (folder / "PipeUtilization.csv").write_text("\n".join([BLOCKS, *rows]) + "\n")
        if case == "launch":
            row = f"add_custom,vector,{max(times) * 1.05:.6f},8,NA,0,1"
            head = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid"
            (folder / "OpBasicInfo.csv").write_text(f"{head}\n{row}\n")
        report = advise([folder.parent], load_rules(), Options())
        (finding,) = (each for each in report.findings if each.rule == "COMP087")
        said[case] = "start-up and completion" in finding.message.en
    assert said == {"blocks": True, "launch": False}


@pytest.mark.parametrize("blocks", [1, 4, 48])
def test_blocks_of_a_kernel_without_a_type_are_those_of_its_name(tmp_path, blocks):
    """Where no types are told the kernel's name stands for its type, in all that is said of it."""
    rows = [
        [
            0, 4294967295, i, 2, "stream_add", "N/A", "N/A", "N/A", f"{ORIGIN_US + 130 * i}\t", 120, 10, blocks, 0,
            "N/A", 0, 0, 0, 0, 0.2, 0.3, 0.8, 0,
        ]
        for i in range(30)
    ]  # fmt: skip
    (finding,) = told(tmp_path, rows).findings
    said = ("single block" in finding.message.en, f"only {blocks} blocks" in finding.message.en)
    assert said == (blocks == 1, blocks == 4)
    assert finding.subject.id == "stream_add"


@pytest.mark.parametrize("several", [True, False])
def test_launches_on_several_shapes_are_told_as_averages_over_them(tmp_path, several):
    """A short launch on a small input beside a long one on a large input: each is a measurement of its own, and their
    mean is too short for none of them."""
    rows = [
        [
            0, 4294967295, i, 2, "norm_custom", "norm_custom", "dynamic", "AI_VECTOR_CORE", f"{ORIGIN_US + 60 * i}\t",
            length, 60 - length, 40, 0, f'"{size if several else 64},512;512"', 0, 0, 0, 0, 0.2, 0.5, 0.3, 0,
        ]
        for i, (size, length) in enumerate([(64, 4.4), (1024, 12.7), (2048, 35.5)])
    ]  # fmt: skip
    (found,) = told(tmp_path, rows).findings
    said = found.message.en + found.remedies[0].action.en
    assert ("over 3 input shapes" in said) == ("Measure each shape by itself" in said) == several
    assert ("too short for its units" in said) != several
