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
    kernels = (("Transpose", "AI_VECTOR_CORE", 48), (after, core, 24))
    assert told in _snippet(tmp_path / "node_1_20260601142437309_ascend_pt", kernels)


def test_a_transpose_without_a_norm_beside_it_is_shown_no_norm(tmp_path: Path) -> None:
    """A language model has no norm over channels: no example is better than one of another network."""
    kernels = (("Transpose", "AI_VECTOR_CORE", 48), ("Mul", "AI_VECTOR_CORE", 48))
    assert _snippet(tmp_path / "node_1_20260601142437309_ascend_pt", kernels) == ""


@pytest.mark.parametrize(("kind", "told"), [("TransData", "MS_FORMAT_MODE"), ("Cast", "to_float")])
def test_a_cast_at_the_border_is_no_remedy_against_formats(tmp_path: Path, kind: str, told: str) -> None:
    """A network in float16 still lays its tensors out anew: only another format spares that."""
    kernels = ((kind, "AI_VECTOR_CORE", 24), ("MatMulV3", "AI_CORE", 24))
    snippet = _snippet(tmp_path / "node_1_20260601142437309_ascend_ms", kernels)
    assert told in snippet
    assert ("to_float" in snippet) == (kind == "Cast")


def _snippet(rank: Path, kernels: tuple[tuple[str, str, int], ...]) -> str:
    """The example of the only conversion in a profile of these (type, core, blocks), run in turn in each step."""
    rows, at = [HEAD], 0
    for step in range(3):
        for number in range(20):
            for kind, core, blocks in kernels:
                rows.append(f'{step},{kind}_{number},{kind},{core},{1_000_000 + at},300,{blocks},"8,512,16,256"')
                at += 301
    output = rank / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([rank.parent], load_rules(), Options(jobs=1))
    (found,) = [each for each in report.findings if each.rule == "COMP020"]
    (snippet,) = [each.snippet for each in found.remedies if each.id == "remove-conversions"]
    return str(snippet)
