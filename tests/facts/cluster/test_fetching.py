"""A rank that waits for data in GetNext waits each time it runs, not once before a recording."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meeting import meeting

from advisor.facts.cluster.replay import _fed, gain
from advisor.facts.device.chain import Chain

WORK, USUAL = 100.0, 2.0


def chain(waits: list[float]) -> Chain:
    """Again and again: GetNext waits so long, the step computes, all ranks meet."""
    name, start, busy, fetching, after, now = [], [], [], [], [], 0.0
    for wait in waits:
        for label, lasts, fetched in (("", wait + WORK, wait), (f"hcom_allReduce__1_{len(name) + 1}_1", 1.0, 0.0)):
            name.append(label)
            start.append(now)
            busy.append(lasts)
            fetching.append(fetched)
            after.append(-1 if label else len(name) - 2)
            now += lasts
    zeros = np.zeros(len(name))
    return Chain(
        "0", tuple(name), np.array(start), np.array(busy), zeros, zeros.copy(), np.array(after), 0, np.array(fetching)
    )


@given(st.lists(st.floats(5.0, 500.0), min_size=1, max_size=12))
def test_all_waits_of_a_starved_rank_are_put_right(longer):
    """What it waits longer than its peers, summed over all its turns, is what the recording gains."""
    usual = [USUAL] * len(longer)
    step = meeting({0: chain([USUAL + us for us in longer]), 1: chain(usual), 2: chain(usual)})
    change = _fed(step.chains[0], sum(longer))
    assert gain(step, {0: change}) == pytest.approx(sum(longer), rel=0.05)
