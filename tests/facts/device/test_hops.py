"""A block of keys and values can be under way while attention computes another one, and no other computation is its."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.device.hops import Hops
from advisor.sources.streams.kernels import Kernels, Signature

TYPES = ("MatMulV3", "FlashAttentionScore", "RingUpdate", "hcom_batchSendRecv_")


def beside(order: str, hop_us: float = 20.0, attention_us: float = 10.0) -> dict[str, float]:
    """m a product with weights, a the attention of a block, u an update of its result, h a hop before what follows, H
    one that starts together with what follows."""
    start, end, kind, at = [], [], [], 0.0
    for letter in order:
        lasts = {"a": attention_us, "h": hop_us, "H": hop_us}.get(letter, 1.0)
        start.append(at)
        end.append(at + lasts)
        kind.append("mauh".index(letter.lower()))
        at += 0.0 if letter == "H" else lasts
    at_ns = np.array(start) * 1000
    hops = [f"hcom_batchSendRecv__590_{number}_1" for number in range(len(order))]
    number = np.array([place if letter == 3 else len(order) + letter for place, letter in enumerate(kind)])
    us, zero = np.array(end) - np.array(start), np.zeros(len(order), np.int64)
    kernels = Kernels(
        at_ns.astype(np.int64), (np.array(end) * 1000).astype(np.int64), us, np.array(kind), number, zero, zero, us, us,
        [Signature(name, "AI_CORE", *[""] * 6) for name in TYPES], [*hops, *TYPES], ["0"], ["2"], {}, {},
    )  # fmt: skip
    work, talks = np.flatnonzero(np.array(kind) != 3), np.flatnonzero(np.array(kind) == 3)
    exposed = np.array([0.0 if order[place] == "H" else hop_us for place in talks])
    return {name.split("_")[4]: us for name, us in Hops(kernels).beside(work, talks, exposed).items()}


@pytest.mark.parametrize("order", ["mhahauhauaum", "mahauhauhaum"])
def test_each_hop_could_run_beside_one_block(order):
    """Four blocks and three hops between them, whether the own block is computed before the first hop or behind it."""
    assert list(beside(order).values()) == [10.0, 10.0, 10.0]


def test_attention_that_hides_a_hop_already_hides_no_other():
    """Blocks that are sent while attention computes leave nothing to gain, however long they take."""
    assert set(beside("mHaHaHaam", hop_us=30.0).values()) == {0.0}


def test_heads_that_are_exchanged_around_one_attention_could_run_beside_none():
    """The only block of a layer has nothing to compute before it arrives; other layers' attention is no help."""
    assert beside("mhahm" * 3) == {}


def test_more_hops_than_blocks_share_them():
    """Gradients of keys and values go round as well: together with the blocks they hide no longer than there is
    attention."""
    assert sum(min(us, 4.0) for us in beside("mhhahhaahm", hop_us=4.0).values()) == pytest.approx(10.0 + 8.0)
    assert sum(min(us, 20.0) for us in beside("mhhahhaahm").values()) == pytest.approx(20.0)
