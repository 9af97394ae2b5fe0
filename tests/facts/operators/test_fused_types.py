"""Fused operators whose names tell no product, in tables that sum kernels up."""

from __future__ import annotations

from pathlib import Path

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
