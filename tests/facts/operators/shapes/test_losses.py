"""Conversions that belong to a loss: of as many elements as it reads, from half to full precision or back."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.operators.shapes.losses import is_of_loss, loss_sizes
from advisor.model import Severity
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.streams.kernels import Signature


def call(kind: str, shape: str, into: str, out_of: str) -> Signature:
    return Signature(kind, "AI_VECTOR_CORE", "", shape, into, "ND", shape, out_of)


LOSS = call("LogSoftmaxV2", "4096,128256", "FLOAT", "FLOAT")


@pytest.mark.parametrize(
    ("conversion", "belongs"),
    [
        (call("Cast", "2,2048,128256", "DT_BF16", "FLOAT"), True),  # logits, before they are flattened
        (call("Cast", "4096,128256", "FLOAT", "DT_BF16"), True),  # their gradient
        (call("Cast", "4096,4096", "DT_BF16", "FLOAT"), False),  # of another size
        (call("Cast", "4096,128256", "FLOAT", "FLOAT"), True),  # of two types one is told wrong
        (call("Cast", "4096,128256", "INT64", "INT32"), False),
        (call("Transpose", "4096,128256", "DT_BF16", "DT_BF16"), False),
        (call("Add", "4096,128256", "DT_BF16", "FLOAT"), False),
        (call("Cast", "", "", ""), False),
    ],
)
def test_conversions_of_a_losses_size_belong_to_it(conversion: Signature, belongs: bool) -> None:
    """A loss is computed in float32 for its accuracy; whatever else is converted is the network's own."""
    assert is_of_loss(conversion, loss_sizes([LOSS, conversion])) is belongs
    assert not is_of_loss(conversion, loss_sizes([conversion]))


@pytest.mark.parametrize(("casts", "accused"), [("loss", False), ("layers", True)])
def test_without_shapes_the_casts_beside_the_loss_belong_to_it(tmp_path: Path, casts: str, accused: bool) -> None:
    """Level 0 records neither types nor shapes: the order of the kernels' names tells whose casts they are."""
    layer = ["aclnnMatmul_MatMulV3Common_MatMulV3"] * 6
    cast, loss = "aclnnCast_CastAiCore_Cast", "aclnnLogSoftmax_LogSoftmaxV2_LogSoftmaxV2"
    gradient = "aclnnLogSoftmaxBackward_LogSoftmaxGrad_LogSoftmaxGrad"
    if casts == "loss":
        step = [*layer, cast, loss, gradient, cast, *layer]
    else:
        step = [*layer, loss, gradient, *layer[:3], cast, *layer[:2], cast, layer[0]]
    rows, at = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"], 1_000_000
    for number in range(4):
        for name in step:
            core, us = ("AI_CORE", 1000) if "MatMul" in name else ("AI_VECTOR_CORE", 500)
            rows.append(f"{number},{name},N/A,{core},{at}.000,{us},0")
            at += us
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    around = [fact.value for fact in report.facts if fact.name == "operator_type.loss_us"]
    assert around == ([] if accused else [pytest.approx(1000.0)])
    found = report.findings
    told = [f for f in found if f.verdict == "conversion-overhead" and f.severity.rank > Severity.LOW.rank]
    assert bool(told) is accused
