"""What vector operators gain from half precision: where their float32 bytes set the pace, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = (
    "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,Input Shapes,Input Data Types,"
    "Output Shapes,Output Data Types"
)
MATRIX, ROWS = '"4096,4096"', '"8192,4096"'


def write(folder: Path, relu_us: float = 300.0) -> Path:
    """Four steps in float32: a product of 1.8 ms, an activation of 256 MiB read and written, its update and loss."""
    kernels = [
        ("MatMulV3", "AI_CORE", 1800.0, '"8192,4096;4096,4096"', "FLOAT;FLOAT", ROWS),
        ("Relu", "AI_VECTOR_CORE", relu_us, ROWS, "FLOAT", ROWS),
        ("LogSoftmaxV2", "AI_VECTOR_CORE", 300.0, ROWS, "FLOAT", ROWS),
        ("ApplyAdamW", "AI_VECTOR_CORE", 300.0, '"4096,4096;4096,4096;4096,4096"', "FLOAT;FLOAT;FLOAT", MATRIX),
    ]
    rows, at = [HEADING], 1000.0
    for step in range(4):
        for type_, core, us, inputs, kinds, outputs in kernels:
            rows.append(f"{step},0,{type_}_1,{type_},{core},{at},{us},24,{inputs},{kinds},{outputs},FLOAT")
            at += us + 1
    output = folder / "node_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("relu_us", "ratio", "told"), [(300.0, 300 / 1800, True), (900.0, 0.0, False)])
def test_bytes_that_set_the_pace_are_half(tmp_path, relu_us, ratio, told):
    """At 0.9 TB/s the activation takes half as long in half precision; at 0.3 TB/s something else holds it up. The
    update and the loss stay in float32."""
    report = advise([write(tmp_path, relu_us)], load_rules(), Options())
    facts = {each.name: each.value for each in report.facts if each.subject == RUN}
    assert facts["operators.float32_paced_ratio"] == pytest.approx(ratio)
    (found,) = [f for f in report.findings if f.rule == "COMP010"]
    most = (0.75 + ratio / 2) * 1800
    assert found.saving.us * (1 + found.saving.error_share) == pytest.approx(most)
    assert ("half of their time" in found.saving.basis.en) == told
