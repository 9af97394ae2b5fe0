"""What data-parallel ranks reduce beside their gradients: the statistics of a normalisation, a loss, a norm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from advisor.facts.base import Run
from advisor.facts.collectives import allreduce, size_classes
from advisor.facts.collectives.exposure import Exposure
from advisor.facts.collectives.joints import Joint

RUN = cast(Run, None)


def joint(group: str, count: int, size: float, us: float, ranks: tuple[int, ...] = (0, 1)) -> Joint:
    """So many all-reduces of one size in a step."""
    shape = (count, len(ranks))
    nothing, names = np.full(shape, np.nan), [f"hcom_allReduce__{group}_{i}_1" for i in range(count)]
    return Joint(
        group, "allreduce", ranks, ranks, True, ["1"] * count, names, np.arange(count), np.full(shape, us),
        np.full(shape, us), nothing, np.zeros(shape, np.int64), np.full(shape, size), nothing,
    )  # fmt: skip


GRADIENTS, STATISTICS = joint("1", 4, 140e6, 390.0), joint("2", 24, 9e3, 60.0)


def test_the_statistics_of_a_normalisation_are_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers wait for them one by one, and no split of the gradients hides them: neither their number nor their time
    counts among the gradients'."""
    layout = SimpleNamespace(role_of=lambda group: "data")
    exposed = {rank: Exposure({"data": 4 * 390.0 + 24 * 60.0}) for rank in (0, 1)}
    monkeypatch.setattr(allreduce, "partition", lambda run: layout)
    monkeypatch.setattr(allreduce, "joints", lambda run: [GRADIENTS, STATISTICS])
    monkeypatch.setattr(allreduce, "exposures", lambda run: exposed)

    def exposed_of(run: Run, role: str, kind: str, rows: Any) -> float:
        return sum(float(each.transfer_us[rows(each)].sum()) for each in (GRADIENTS, STATISTICS))

    monkeypatch.setattr(allreduce, "exposed_of", exposed_of)
    found = allreduce.gradients(RUN)
    assert found is not None
    assert (found.count, found.transfer_us, found.exposed_us) == (4, 4 * 390.0, 4 * 390.0)


@pytest.mark.parametrize("groups", [[STATISTICS], [STATISTICS, joint("3", 24, 9e3, 60.0, (2, 3))]])
def test_a_rank_counts_the_collectives_of_all_its_groups(monkeypatch: pytest.MonkeyPatch, groups: list[Joint]) -> None:
    """Two groups of one role may have the same ranks: each of them runs both. Those of other ranks it does not."""
    other = [joint("4", 4, 140e6, 390.0, (2, 3))] if len(groups) > 1 else []
    monkeypatch.setattr(size_classes, "whole_joints", lambda run, role, kind: [GRADIENTS, *other, *groups])
    monkeypatch.setattr(size_classes, "exposed_of", lambda *told, **rows: None)
    small = size_classes.small_beside_larger(RUN, "data", "allreduce")
    assert small is not None
    assert (small.count, small.transfer_us) == pytest.approx((24, 24 * 60.0))
