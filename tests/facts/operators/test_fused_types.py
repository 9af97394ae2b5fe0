"""Fused operators whose names tell no product, in tables that sum kernels up."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


@pytest.mark.parametrize(("core", "told"), [("MIX_AIC", True), ("AI_VECTOR_CORE", False)])
def test_what_dominates_on_cube_cores_is_where_to_start_whatever_its_name(tmp_path: Path, core: str, told: bool):
    """A fused feed-forward takes half of the time; on vector cores the same name is no matrix work."""
    rows = [("FFN", core, 2640, 1_020_000.0), ("MatMulV2", "AI_CORE", 10670, 260_000.0)]
    rows += [(f"Norm{i}", "AI_VECTOR_CORE", 2640, 200_000.0) for i in range(3)]
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, c, k, us in rows]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    found = [f.subject.id for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMP080"]
    assert found == (["FFN"] if told else [])


@pytest.mark.parametrize(("other", "told"), [(1700.0, True), (9000.0, False)])
def test_a_few_calls_that_tower_over_all_others_are_named(tmp_path: Path, other: float, told: bool):
    """Three calls take a fifth of the time, each twenty times as long as any other kernel: the largest types are the
    model, these are what somebody can repair. Calls that other kernels come near to are layers like them."""
    rows = [("PromptFlashAttention", round(300_000.0 / other), other), ("Conv3D", 3, 36_000.0), ("MatMul", 400, 300.0)]
    whole = sum(calls * each for _, calls, each in rows)
    lines = [
        f"0,{name},AI_CORE,{calls},{calls * each},{each},{each},{each},{100 * calls * each / whole}"
        for name, calls, each in rows
    ]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    found = [f for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMP091"]
    assert [f.subject.id for f in found] == (["Conv3D"] if told else [])
    assert not told or "21 times as long" in found[0].message.en


KERNELS = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num"


@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_that_hands_out_work_from_an_ai_cpu_delays_nobody(tmp_path: Path, seed: int):
    """It runs for as long as the fused kernel it serves; without it, an operator that the next one waits for delays it.
    The fused kernel is no vector operator, although no other kernel tells of vector cores."""
    draw = Random(seed)
    own, lead, between = draw.uniform(200.0, 900.0), draw.uniform(1.0, 8.0), draw.uniform(20.0, 200.0)
    said = []
    for name, apart in (("beside", 0.0), ("before", own)):
        at, lines = 1_000_000.0, []
        for _ in range(8):
            fused = at + apart + lead
            lines.append(
                f"0,scheduler_exec,scheduler_exec,AI_CPU,{at:.3f},{own + 2 * lead if not apart else own:.3f},0,1"
            )
            lines.append(f"0,fused_mode_0,fused_mode_0,MIX_AIC,{fused:.3f},{own:.3f},0,24")
            at = fused + own + lead + between
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel_details.csv").write_text("\n".join([KERNELS, *lines]) + "\n", encoding="utf-8")
        report = advise([tmp_path / name], load_rules(), Options())
        (found,) = (f for f in report.findings if f.rule == "COMP050")
        said.append(("delays the operators" in found.message.en, bool(found.remedies)))
        assert not [f for f in report.findings if f.rule == "COMP085"]
    assert said == [(False, False), (True, True)]


@pytest.mark.parametrize(("beside", "told"), [(False, True), (True, False)])
def test_an_engine_that_draws_masks_is_told_where_the_cores_wait_for_it(tmp_path: Path, beside: bool, told: bool):
    """Masks of dropout come from an engine of its own: what is drawn beside other kernels costs nothing."""
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID"]
    for step in range(3):
        for call in range(10):
            at = step * 10_000 + call * 1000
            rows.append(f"{step},mm_{call},MatMulV3,MIX_AIC,{at},799,2")
            drawn = at + 100 if beside else at + 800
            rows.append(f"{step},aclnnDropoutGenMaskV2_{call},DSAGenBitMask,DSA_SQE,{drawn},190,3")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = [f.subject.id for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMP089"]
    assert found == (["DSAGenBitMask"] if told else [])
