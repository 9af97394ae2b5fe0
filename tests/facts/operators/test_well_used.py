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
