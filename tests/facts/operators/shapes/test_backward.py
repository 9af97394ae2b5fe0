"""Attention backward beside forward on the same inputs."""

from __future__ import annotations

import pytest

from advisor.facts.operators.shapes.backward import TIMES, Call, backward_of
from advisor.sources.streams.kernels import Signature

FORWARD, GRADIENT = "FlashAttentionScore", "FlashAttentionScoreGrad"


def call(kind: str, inputs: str, us: float, mac: float = float("nan"), calls: int = 4) -> Call:
    dtypes = ";".join(["DT_BF16"] * (inputs.count(";") + 1))
    return Call(Signature(kind, "MIX_AIC", "dynamic", inputs, dtypes, "ND", "", ""), calls, calls * us, mac)


SHAPE = "2048,1,2048;2048,1,2048;2048,1,2048"


def test_backward_is_measured_by_what_forward_takes_for_its_operations() -> None:
    """Ten times as long for two and a half times the work; inputs that only one of both has tell nothing."""
    other = SHAPE.replace("2048", "4096")
    calls = [call(FORWARD, SHAPE, 150, 0.55), call(GRADIENT, f"{SHAPE};2048,1,2048", 1500, 0.14),
             call(GRADIENT, other, 9000, 0.1), call(FORWARD, "", 10)]  # fmt: skip
    found = backward_of(GRADIENT, calls)
    assert found is not None and found.shape == SHAPE
    assert (found.us, found.forward_us) == (pytest.approx(6000), pytest.approx(4 * TIMES * 150))
    assert (found.mac_ratio, found.forward_mac_ratio) == (0.14, 0.55)


def test_how_often_forward_runs_does_not_matter() -> None:
    """Recomputation runs it twice; what each call takes is asked for."""
    once = backward_of(GRADIENT, [call(FORWARD, SHAPE, 150), call(GRADIENT, SHAPE, 400)])
    twice = backward_of(GRADIENT, [call(FORWARD, SHAPE, 150, calls=8), call(GRADIENT, SHAPE, 400)])
    assert once == twice and once is not None and once.mac_ratio is None


def test_what_is_no_gradient_or_has_no_forward_is_left_out() -> None:
    """Forward itself, and a gradient whose forward ran elsewhere."""
    assert backward_of(FORWARD, [call(FORWARD, SHAPE, 150), call(GRADIENT, SHAPE, 400)]) is None
    assert backward_of(GRADIENT, [call(GRADIENT, SHAPE, 400)]) is None
