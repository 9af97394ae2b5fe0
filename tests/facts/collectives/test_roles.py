"""A communication group's purpose is read from what it exchanges, and when."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.collectives.exchanges import Exchanges
from advisor.facts.collectives.roles import roles_of

STEP_US, COMPUTING_US = 25_000.0, 24_000.0
"""Three steps: 8 ms of forward, 16 ms of backward, 1 ms between."""


def exchanges(program: list[tuple[str, float]]) -> Exchanges:
    """Three steps of these operations: kind and start within the step, microseconds; each takes 100."""
    kinds = tuple(dict.fromkeys(kind for kind, _ in program))
    count = len(program)
    start = np.array([[step * STEP_US + at for _, at in program] for step in range(3)]).ravel()
    flat = np.zeros(3 * count)
    whole = np.zeros(3 * count, np.int64)
    return Exchanges(
        ("1", "2", "3"), ("g",), kinds, np.repeat(np.arange(3), count), whole,
        np.tile([kinds.index(kind) for kind, _ in program], 3), kinds, whole, ((start + 1.0) * 1000).astype(np.int64),
        np.full(3 * count, 100.0), flat + 80.0, flat, flat + 1e6, flat + 80.0, None, 1,
    )  # fmt: skip


def layers(kind: str, begin: float, end: float, count: int = 8) -> list[tuple[str, float]]:
    return [(kind, float(at)) for at in np.linspace(begin, end, count, endpoint=False)]


@pytest.mark.parametrize(
    ("program", "role"),
    [
        (layers("allreduce", 8000, 24000), "data"),
        (layers("allreduce", 0, 24000, 16), "tensor"),
        (layers("allgather", 0, 24000, 16) + layers("reducescatter", 9000, 24000), "data"),
        (layers("allgather", 0, 24000, 16) + layers("reducescatter", 500, 24000, 16), "tensor"),
    ],
    ids=["gradients", "tensor-parallel layers", "sharded weights (FSDP)", "sequence-parallel layers"],
)
def test_purpose_of_the_only_kind_of_group(program, role):
    """Weights may be gathered in forward; only sharded layers reduce there."""
    found = roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, False, {})
    assert found == {"g": role}


@pytest.mark.parametrize(("experts", "role"), [(True, "expert"), (False, "tensor")])
def test_exchange_of_tokens_is_the_experts_where_kernels_serve_some(experts, role):
    """All ranks exchange in every layer: tokens, where kernels send them to experts; else what operators shard."""
    program = layers("alltoall", 0, 24000, 16)
    assert roles_of({"g": (0, 1)}, {}, {0: exchanges(program)}, {0: COMPUTING_US}, experts, {})["g"] == role
