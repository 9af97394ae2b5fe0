"""Kernels called by their binaries: the operator's type is what they share."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure
from advisor.sources.streams.binaries import type_of_binary

HASH = "3b09d2a54b5f9bd2c1bb47b0e2f3a4ff"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MatMulV2_ND_ND_FP16_FP16_false_true_all_98513", "MatMulV2"),
        (f"FusedInferAttentionScore_{HASH}_5000000000010200203", "FusedInferAttentionScore"),
        ("RmsNorm_normal_all_bf16_high_performance_2", "RmsNorm"),
        (f"Cast_{HASH}_high_performance_210010000", "Cast"),
        ("Slice_4d0e_high_performance_210000000", "Slice"),
        ("reshape_and_cache_200000000", "reshape_and_cache"),
        *((name, name) for name in ("MatMulV2", "_sage_attn_fwd_kernel", "aclnnMatmul_MatMulCommon_MatMulV2", "conv_2",
                                    "allgather_AicpuKernel", "my_high_performance_kernel", "ND_NZ", "")),
    ],
)  # fmt: skip
def test_a_binary_is_of_its_operators_type(name: str, kind: str) -> None:
    """What a compiler adds tells two binaries of one operator apart; names of one's own kernels stay whole."""
    assert type_of_binary(name) == kind


def test_the_share_of_a_type_counts_all_its_binaries(tmp_path: Path) -> None:
    """A captured graph launches products by their binaries, what stands beside it by their types: one operator."""
    rows = [("MatMulV2_ND_ND_FP16_FP16_false_true_all_98513", 1920, 70.0), ("MatMulV2", 500, 60.0),
            ("MatMulV2_ND_ND_FP16_FP16_false_true_all_98499", 1920, 40.0), ("RmsNorm", 2000, 9.6)]  # fmt: skip
    whole = sum(count * us for _, count, us in rows)
    lines = [
        f"0,{kind},AI_CORE,{count},{count * us},{us},{us},{us},{100 * count * us / whole}" for kind, count, us in rows
    ]
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    (tmp_path / "op_statistic.csv").write_text("\n".join((heading, *lines, "")))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    share = facts.value("operator_type.compute_share", Subject("operator_type", "MatMulV2"))
    assert share == pytest.approx(1 - 2000 * 9.6 / whole)
