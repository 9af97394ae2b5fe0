"""Extra work is evened out where it lies: a hot expert has it in its own layers, a slow card everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from meeting import meeting

from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import Change, gain
from advisor.facts.device.course import Chain

ROUNDS = 4
USUAL, HOT = 100.0, 180.0


def chain(hot: bool) -> Chain:
    """Attention, a collective, the expert, a collective, again and again; the hot rank's experts take longer."""
    name, start, busy, after, now = [], [], [], [], 0.0
    for _ in range(ROUNDS):
        for work in (USUAL, HOT if hot else USUAL):
            name.append("")
            start.append(now)
            busy.append(work)
            after.append(len(name) - 2)
            now += work
            name.append(f"hcom_alltoall__1_{len(name)}_1")
            start.append(now)
            busy.append(1.0)
            after.append(-1)
            now += 1.0
    zeros = np.zeros(len(name))
    return Chain("1", tuple(name), np.array(start), np.array(busy), zeros, zeros.copy(), np.array(after))


@pytest.fixture
def step() -> Model:
    chains = {rank: chain(hot=rank == 0) for rank in range(4)}
    return meeting(chains)


def test_a_hot_expert_is_evened_out_where_its_work_lies(step, monkeypatch):
    """One factor for all segments would leave half of the extra work in the expert: the promise was half."""
    from advisor.facts.cluster import replay
    from advisor.facts.collectives.parallelism import Partition

    class Layout(Partition):
        def __init__(self) -> None:
            pass

        def peers(self) -> dict[int, list[int]]:
            return {0: [0, 1, 2, 3]}

    monkeypatch.setattr(replay, "partition", lambda run: Layout())
    own = float(step.chains[0].busy[[not name for name in step.chains[0].name]].sum())
    share = ROUNDS * (HOT - USUAL) / own
    evened = gain(step, {0: Change(replay._evened(None, step, 0, {0}, share))})
    uniform = gain(step, {0: Change(1 - share)})
    assert evened == pytest.approx(ROUNDS * (HOT - USUAL))
    assert uniform is not None and uniform < 0.75 * ROUNDS * (HOT - USUAL)
