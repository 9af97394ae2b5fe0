"""Operations are those the model needs, and none where shapes leave a doubt."""

from __future__ import annotations

import pytest

from advisor.facts.operators.shapes.flops import flop
from advisor.sources.streams.kernels import Signature


def call(type_: str, inputs: str, outputs: str, formats: str = "ND;ND", dtypes: str = "FLOAT16;FLOAT16") -> Signature:
    return Signature(type_, "AI_CORE", "dynamic", inputs, dtypes, formats, outputs, "FLOAT16")


CONV = 2 * 32 * 64 * 56 * 56 * (3 * 7 * 7)


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (call("MatMulV2", "128,512;512,256", "128,256"), 2 * 128 * 512 * 256),
        (call("BatchMatMulV2", "8,128,64;8,64,32", "8,128,32"), 2 * 8 * 128 * 64 * 32),
        (call("Conv2D", "32,3,112,112;64,3,7,7", "32,64,56,56", "NCHW;NCHW"), CONV),
        (call("Conv2DBackpropInput", "64,3,7,7;32,64,56,56", "32,3,112,112", "NCHW;NCHW"), CONV),
        (call("Conv2DBackpropFilter", "32,3,112,112;32,64,56,56", "64,3,7,7", "NCHW;NCHW"), CONV),
        (call("FlashAttentionScore", "8,4096,1024;8,4096,1024;8,4096,1024", "8,4096,1024"), 4 * 8 * 4096 * 1024 * 4096),
        (call("FlashAttentionScore", "2,32,512,128;2,8,2048,128;2,8,2048,128", "2,32,512,128"),
         4 * 2 * 32 * 512 * 128 * 2048),
        (call("FlashAttentionScoreGrad", "8,64,1024;8,64,1024;8,64,1024", "8,64,1024"), 8 * 8 * 64 * 1024 * 64),
    ],
)  # fmt: skip
def test_work_follows_from_shapes(signature, expected):
    """Forward and backward alike, whichever input comes first."""
    assert flop(signature) == expected


@pytest.mark.parametrize(
    "signature",
    [
        call("FlashAttentionScore", "8192,32,128;8192,32,128;8192,32,128", "8192,32,128"),
        call("Conv2D", "32,1,112,112,16;49,4,16,16", "32,4,56,56,16", "NC1HWC0;FRACTAL_Z"),
        call("Conv2D", "32,64,112,112;64,1,3,3", "32,64,112,112", "NCHW;NCHW"),
        call("FlashAttentionScore", "8,0,1024;8,0,1024;8,0,1024", "8,0,1024"),
        call("Add", "128,512;128,512", "128,512"),
        call("MatMulV2", "", ""),
    ],
)
def test_a_doubtful_shape_counts_for_nothing(signature):
    """Packed sequences, blocked layouts, convolutions in groups, empty tensors: none is better than a wrong number."""
    assert flop(signature) == 0
