"""The example of a remedy suits what runs beside the conversion."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Report
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


CALLS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types"


def _of_calls(tmp_path: Path, calls: tuple[tuple[str, float], ...]) -> Report:
    """Steps of a product and of these kernels, each by its call and type, with its microseconds."""
    rows, at = [CALLS], 1_000_000.0
    for step in range(3):
        for number in range(20):
            for name, us in (("aclnnMatmul_MatMulV3Common_MatMulV3", 300.0), *calls):
                kind = name.rpartition("_")[2]
                core = "AI_CORE" if kind.startswith("MatMul") else "DSA_SQE" if "DSA" in kind else "AI_VECTOR_CORE"
                rows.append(f'{step},{name},{kind},{core},{at + number / 10:.3f},{us},"64,64",FLOAT')
                at += us + 1
    output = tmp_path / "node_1_20260601142437309_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return advise([tmp_path], load_rules(), Options(jobs=1))


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("aclnnUpsampleBilinear2d_TransposeAiCore_Transpose", "spare-converting-calls"),
        ("aclnnInplaceCopy_TransposeAiCore_Transpose", "remove-conversions"),
        ("aclnnCast_CastAiCore_Cast", "remove-conversions"),
    ],
)
def test_a_conversion_inside_another_call_is_not_looked_for_in_the_program(
    tmp_path: Path, call: str, remedy: str
) -> None:
    """An interpolation brings its images into its own layout: no line of the program transposes there."""
    (found,) = [each for each in _of_calls(tmp_path, ((call, 90.0),)).findings if each.rule == "COMP020"]
    assert remedy in {each.id for each in found.remedies}
    assert ("aclnnUpsampleBilinear2d (60)" in found.message.en) == (remedy == "spare-converting-calls")


def test_drawing_random_inputs_is_no_fault_of_the_network(tmp_path: Path) -> None:
    """What draws them knows float32 alone and casts for half precision; and an engine of its own draws, no vector core
    does."""
    call = "aclnnInplaceNormal"
    drawn = ((f"{call}_DSARandomNormal_DSARandomNormal", 400.0), (f"{call}_CastAiCore_Cast", 90.0))
    found = _of_calls(tmp_path, drawn).findings
    assert not [each for each in found if each.subject.id in ("Cast", "DSARandomNormal")]
