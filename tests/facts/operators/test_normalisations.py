"""Normalisations that run as single operators, with their gradients."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from advisor.model import Finding, Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import RuleSet, load_rules

NORMS = 9
FORWARD = {"Cast": 2, "Pows": 1, "ReduceMean": 1, "Add": 1, "Rsqrt": 1, "Mul": 2}
BACKWARD = {"Mul": 6, "ReduceSum": 2, "Cast": 2, "Pows": 1, "Muls": 2, "RealDiv": 1, "Add": 1}
NETWORK = {
    "MatMulV3": 51, "FlashAttentionScore": 4, "FlashAttentionScoreGrad": 4, "ApplyAdamWV2": 8, "SwiGlu": 4,
    "SwiGluGrad": 4, "RotaryPositionEmbedding": 16, "LogSoftmaxV2": 1, "LogSoftmaxGrad": 1, "NLLLoss": 1,
    "NLLLossGrad": 1, "GatherV2": 1, "EmbeddingDenseGrad": 1, "LpNormV2": 1,
}  # fmt: skip
SHORT = ("Rsqrt", "RealDiv")
HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Ratio(%)"
KERNELS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Mix Block Num,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID"
)


@cache
def _rules() -> RuleSet:
    return load_rules()


def _calls(*parts: dict[str, int], of: int = NORMS) -> dict[str, int]:
    """Type -> calls a step of a network with so many normalisations, of which these parts are single operators."""
    found = dict(NETWORK)
    for part in parts:
        for name, calls in part.items():
            found[name] = found.get(name, 0) + calls * of
    return found


def _us(name: str) -> float:
    return 1.6 if name in SHORT else 2000.0 if name == "MatMulV3" else 150.0


def _by_sums(folder: Path, calls: dict[str, int]) -> Report:
    whole = sum(n * _us(name) for name, n in calls.items())
    rows = [f"0,{name},AI_VECTOR_CORE,{n},{n * _us(name)},{100 * n * _us(name) / whole}" for name, n in calls.items()]
    (folder / "op_statistic.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return advise([folder], _rules(), Options())


def _by_kernels(folder: Path, calls: dict[str, int]) -> Report:
    rows, at, task = [KERNELS], 1e6, 0
    for step in (3, 4, 5):
        for name, n in calls.items():
            for _ in range(n):
                rows.append(
                    f"{step},0,4294967295,{task},2,aclnn{name}_{name},{name},dynamic,AI_VECTOR_CORE,{at:.3f},{_us(name)},"
                    f'0.1,48,0,"""64,64""",FLOAT,ND,"""64,64""",FLOAT,ND,N/A'
                )
                at, task = at + _us(name) + 0.2, task + 1
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return advise([folder], _rules(), Options())


def _norms(report: Report) -> Finding | None:
    return next((f for f in report.findings if f.rule == "COMP063"), None)


def test_short_kernels_tell_how_many_normalisations_there_are(tmp_path: Path) -> None:
    """The root of one value a row is the shortest of many types, and still the one that tells of the rest."""
    found = _norms(_by_kernels(tmp_path, _calls(FORWARD, BACKWARD)))
    assert found is not None
    assert "9 times per step" in found.message.en


@pytest.mark.parametrize("write", [_by_sums, _by_kernels])
def test_gradients_go_with_what_they_differentiate(tmp_path: Path, write: object) -> None:
    """The same line of code removes both: what both take is told and saved, but for the division of one value a row."""
    assert callable(write)
    found = _norms(write(tmp_path, _calls(FORWARD, BACKWARD)))
    assert found is not None
    assert "so do 9 of its gradients" in found.message.en
    single = {**FORWARD, **{name: FORWARD.get(name, 0) + n for name, n in BACKWARD.items() if name != "RealDiv"}}
    single["Add"] -= 1  # adding one number to one value a row bears the name of other sums
    whole = NORMS * sum(n * _us(name) for name, n in single.items())
    assert found.saving is not None
    assert (found.saving.us_per_step or found.saving.us_of_recording) == pytest.approx(0.88 * whole, rel=0.01)


def test_layers_that_are_computed_again_are_differentiated_once(tmp_path: Path) -> None:
    """Attention runs forward twice for each gradient, and so does a normalisation."""
    calls = _calls(FORWARD, FORWARD, BACKWARD)
    calls["FlashAttentionScore"] = 8
    found = _norms(_by_sums(tmp_path, calls))
    assert found is not None
    assert "18 times in the recording" in found.message.en
    assert "so do 9 of its gradients" in found.message.en


def test_inference_differentiates_nothing(tmp_path: Path) -> None:
    """However many products and sums other layers have."""
    calls = _calls(FORWARD, BACKWARD)
    for name in [n for n in calls if n.endswith("Grad") or n.startswith("Apply")]:
        del calls[name]
    found = _norms(_by_sums(tmp_path, calls))
    assert found is not None
    assert "gradients" not in found.message.en
