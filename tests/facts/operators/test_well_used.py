"""Kernels of a benchmark that use their unit well: what is told of them accuses nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Role, Severity
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = (
    "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,Input Shapes,Input Data Types,"
    "aicore_time(us),aic_mac_time(us),aic_mac_ratio,aic_mte2_time(us),aic_mte2_ratio"
)


def write(folder: Path, ratio: float, blocks: int = 24) -> Path:
    """Sixty launches of one multiplication of 200 µs whose cube unit works for `ratio` of the time."""
    output = folder / "node_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [
        f'0,matmul_kernel,matmul_kernel,AI_CORE,{1000 + n * 201.5},200.0,{blocks},"2048,2048;2048,2048",BF16;BF16,'
        f"196.0,{196.0 * ratio},{ratio},100.0,0.51"
        for n in range(60)
    ]
    (output / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("ratio", "severity"), [(0.82, Severity.LOW), (0.66, Severity.MEDIUM)])
def test_a_full_cube_unit_is_told_and_accuses_nobody(tmp_path, ratio, severity):
    """82 % of the cube unit is what the kernel is for; at 66 % a third of it is left to gain."""
    report = advise([write(tmp_path, ratio)], load_rules(), Options())
    (found,) = [f for f in report.findings if f.role == Role.ROOT_CAUSE]
    assert (found.rule, found.severity, found.saving) == ("COMP087", severity, None)
    assert ("only less work for it" in found.message.en) == (severity is Severity.LOW)
    assert report.summary.direction == "computation"
    named = "matmul_kernel" in report.summary.headline.en
    assert named == (severity is Severity.MEDIUM)


@pytest.mark.parametrize(("written", "severity"), [(0.45, Severity.LOW), (0.05, Severity.MEDIUM)])
def test_an_operator_that_carries_data_all_the_time_accuses_nobody(tmp_path, written, severity):
    """A custom kernel looks up a table in half of each step, reading for half of its time; with the writing it is at
    the memory's limit."""
    rows, at = (
        [
            HEADING.replace("aic_mte2_ratio", "aic_mte2_ratio,aiv_mte2_ratio,aiv_mte3_ratio"),
        ],
        1000.0,
    )
    for _ in range(4):
        for place in range(30):
            rows.append(
                f'0,mul{place},Mul{place},AI_VECTOR_CORE,{at},100.0,48,"4,4;4,4",FLOAT16;FLOAT16,98.0,0,0,0,0,0.3,0.2'
            )
            at += 101
        rows.append(f'0,lookup_bwd,Lookup,MIX_AIV,{at},3000.0,48,"9,3;9,2",FLOAT;FLOAT16,2998.0,0,0,0,0,0.5,{written}')
        at += 3001
    rows = [f"Step Id,{rows[0]}", *(f"{(n - 1) // 31},{row}" for n, row in enumerate(rows) if n)]
    output = tmp_path / "node_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    (found,) = [f for f in report.findings if f.rule == "COMP084"]
    assert (found.subject.id, found.severity) == ("lookup_bwd", severity)
