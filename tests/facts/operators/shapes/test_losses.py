"""Conversions that belong to a loss: of as many elements as it reads, from half to full precision or back."""

from __future__ import annotations

import pytest

from advisor.facts.operators.shapes.losses import is_of_loss, loss_sizes
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
