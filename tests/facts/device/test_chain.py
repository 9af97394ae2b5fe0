"""A step as a chain: what lets a collective start is told by ends that are rounded to nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.device.chain import chain_of
from advisor.sources.streams.kernels import Kernels, Signature

NAMES = ("aclnnMatmul", "hcom_alltoallv__077_0_1", "hcom_allReduce__011_0_1")


def kernels_of(*rows: tuple[int, int, int]) -> Kernels:
    """(which of the names, start, end in nanoseconds)."""
    name, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    us, zero = (end - start) / 1000, np.zeros(len(rows), np.int64)
    return Kernels(
        start, end, us, name, name, zero, zero, us, us,
        [Signature(each, "AI_CORE", *[""] * 6) for each in NAMES], list(NAMES), ["0"], ["2"], {}, {},
    )  # fmt: skip


@pytest.mark.parametrize("off_ns", [-1, 0, 1])
def test_a_collective_queued_behind_one_of_another_communicator_is_released_by_its_end(off_ns):
    """Experts' tokens arrive, and the gradients behind them go in that very moment: a nanosecond earlier or later, they
    waited for the tokens, not for themselves for as long as those took."""
    kernels = kernels_of((0, 0, 100_000), (1, 100_000, 400_000), (2, 400_000 + off_ns, 500_000), (0, 400_000, 900_000))
    communication = np.array([False, True, True, False])
    chain = chain_of(kernels, communication, np.arange(4), np.zeros(4, bool), "1")
    assert chain is not None
    place = {name: at for at, name in enumerate(chain.name) if name}
    reduces, sends = place[NAMES[2]], place[NAMES[1]]
    assert chain.after[reduces] == sends and chain.lag[reduces] == pytest.approx(0.0, abs=0.002)
