"""The example of a remedy suits what runs beside the conversion."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEAD = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Num,Input Shapes"


@pytest.mark.parametrize(
    ("after", "core", "told"),
    [("MatMulV3", "AI_CORE", "npu_fusion_attention"), ("LayerNormV3", "AI_VECTOR_CORE", "GroupNorm")],
)
def test_a_transpose_before_a_product_is_no_matter_of_norms(tmp_path: Path, after: str, core: str, told: str) -> None:
    rows, at = [HEAD], 0
    for step in range(3):
        for number in range(20):
            for kind, on, blocks in (("Transpose", "AI_VECTOR_CORE", 48), (after, core, 24)):
                rows.append(f'{step},{kind}_{number},{kind},{on},{1_000_000 + at},300,{blocks},"8,512,16,256"')
                at += 301
    output = tmp_path / "node_1_20260601142437309_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    (found,) = [each for each in report.findings if each.rule == "COMP020"]
    (snippet,) = [each.snippet for each in found.remedies if each.id == "remove-conversions"]
    assert told in str(snippet)


@pytest.mark.parametrize(("kind", "told"), [("TransData", "MS_FORMAT_MODE"), ("Cast", "to_float")])
def test_a_cast_at_the_border_is_no_remedy_against_formats(tmp_path: Path, kind: str, told: str) -> None:
    """A network in float16 still lays its tensors out anew: only another format spares that."""
    rows, at = [HEAD], 0
    for step in range(3):
        for number in range(20):
            for each, on in ((kind, "AI_VECTOR_CORE"), ("MatMulV3", "AI_CORE")):
                rows.append(f'{step},{each}_{number},{each},{on},{1_000_000 + at},300,24,"8,512,16,256"')
                at += 301
    output = tmp_path / "node_1_20260601142437309_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    (found,) = [each for each in report.findings if each.rule == "COMP020"]
    (snippet,) = [each.snippet for each in found.remedies if each.id == "remove-conversions"]
    assert told in str(snippet)
    assert ("to_float" in str(snippet)) == (kind == "Cast")
