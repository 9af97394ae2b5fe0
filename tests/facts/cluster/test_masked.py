"""Attention under a mask that leaves more of its inputs on some ranks: the same calls, and no slow card."""

from dataclasses import replace

import pytest
from clusters import SMALL, judged

from benchmarks.simulator import Fault, simulate


def test_contiguous_parts_under_a_causal_mask_are_dealt_out_evenly(tmp_path):
    """Each rank's part of the sequence attends to all before it: the step gains down to the mean, not to the median."""
    parts = (-0.5, -0.5 / 3, 0.5 / 3, 0.5)
    slow, found = judged(
        replace(SMALL, faults=tuple(Fault("masked", rank, more) for rank, more in enumerate(parts))), tmp_path / "slow"
    )
    even = simulate(SMALL)
    told = found["CLUS010"]
    assert told.saving is not None and told.saving.us == pytest.approx(slow.step_us - even.step_us, rel=0.2)
    assert "The card is not slow" in told.message.en and [r.id for r in told.remedies] == ["even-rank-work"]


def test_a_slow_card_is_slow_in_products_as_well(tmp_path):
    """All of its types take longer: nothing of that is a mask's."""
    _, found = judged(replace(SMALL, faults=(Fault("slow_compute", 2, 0.3),)), tmp_path)
    told = found["CLUS010"]
    assert "The card is not slow" not in told.message.en and "the card is slow, not its work" in told.message.en
