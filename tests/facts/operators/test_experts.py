"""Networks of experts: whether one kernel multiplies for several of them, or each product is launched by itself."""

from __future__ import annotations

import pytest

from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

TYPES = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
ATTENTION = ("FlashAttentionScore", "MIX_AIC", 48, 2_000.0)
GRADIENT = ("FlashAttentionScoreGrad", "MIX_AIC", 48, 4_000.0)
ROUTER = ("TopKV2", "MIX_AIV", 48, 700.0)
NORM = ("RmsNorm", "AI_VECTOR_CORE", 4_000, 9_000.0)
LOOP = ("MatMulV2", "AI_CORE", 18_000, 180_000.0)


@pytest.fixture
def written(tmp_path):
    """Writes rows of (type, core, calls, us) as op_statistic.csv and tells the folder."""

    def write(*rows):
        whole = sum(us for *_, us in rows)
        lines = [f"0,{n},{c},{k},{us},{us / k / 2},{us / k},{us / k * 2},{100 * us / whole}" for n, c, k, us in rows]
        (tmp_path / "op_statistic.csv").write_text("\n".join([TYPES, *lines]) + "\n", encoding="utf-8")
        return tmp_path

    return write


def _found(folder):
    return next((f for f in advise([folder], load_rules(), Options()).findings if f.rule == "COMP098"), None)


def test_a_loop_over_experts_is_told_with_what_replaces_it(written):
    """18,000 products in 48 layers, forward and back: 125 for each pass, where a layer without experts has nine."""
    folder = written(ATTENTION, GRADIENT, ROUTER, NORM, LOOP)
    assert measure([folder], ["operators.experts_layers"], Options(jobs=1)).facts.value(
        "operators.experts_layers", RUN
    ) == pytest.approx(144)
    finding = _found(folder)
    assert finding.subject == Subject("operator_type", "MatMulV2")
    assert "125 products for each pass of a layer" in finding.message.en
    assert finding.remedies[0].id == "group-experts"


@pytest.mark.parametrize(
    "rows",
    [
        (ATTENTION, GRADIENT, ROUTER, NORM, LOOP, ("GroupedMatmul", "MIX_AIC", 288, 90_000.0)),
        (ATTENTION, GRADIENT, ("TopKV2", "MIX_AIV", 2, 70.0), NORM, LOOP),
        (ATTENTION, GRADIENT, NORM, LOOP),
        (ROUTER, NORM, LOOP),
        (ATTENTION, GRADIENT, ROUTER, NORM, ("MatMulV2", "AI_CORE", 1_300, 180_000.0)),
    ],
    ids=["a group does it", "picks the next token", "no experts", "no layers told", "as many as a layer needs"],
)
def test_other_networks_have_no_loop_over_experts(written, rows):
    """Many products alone are no loop over experts."""
    assert _found(written(*rows)) is None
