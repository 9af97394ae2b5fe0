"""What stages that end early wait for behind the schedule."""

import pytest

from advisor.facts.collectives.exposure import _Alone, _estimated, _measured
from advisor.facts.collectives.parallelism import Partition


@pytest.mark.parametrize(("waited", "transfer"), [(40.0, 0.02), (0.0, 5.0)])
def test_waiting_where_stages_meet_is_the_drain_of_the_pipeline(waited, transfer):
    """The norm of all gradients is four bytes that are summed over the stages: the first stage ends last, and the
    others wait there as they wait in what they receive. What it moves stays transfer; elsewhere, waiting is waiting."""
    inside = waited + transfer
    exposed = {"hcom_receive__1_1": 10.0, "hcom_allReduce__2_1": inside, "hcom_allReduce__3_1": 7.0}
    pure = {"hcom_allReduce__2_1": ("tensor", transfer, inside), "hcom_allReduce__3_1": ("data", 4.0, 7.0)}
    for found in (
        _measured(_Alone.of({0: exposed}), 0, pure, 100.0, joining={"hcom_allReduce__2_1"}),
        _estimated(pure, 17.0 + inside, 10.0, {"hcom_allReduce__2_1"}),
    ):
        assert (found.bubble, found.wait) == pytest.approx((10.0 + waited, 3.0))
        assert found.transfer["tensor"] == pytest.approx(transfer)


def test_only_groups_of_several_stages_join_them():
    """Ranks that reduce gradients are of one stage, and neighbours that hand activations on wait as part of it."""
    groups = {"dp": (0, 1), "norm": (0, 2), "pp": (0, 2)}
    layout = Partition(
        pipeline=2, stage={0: 0, 1: 0, 2: 1, 3: 1}, groups=groups, role={"norm": "tensor", "pp": "pipeline"}
    )
    assert [name for name in groups if layout.joins_stages(name)] == ["norm"]
    assert not Partition(pipeline=1, stage=dict.fromkeys(range(4), 0), groups=groups).joins_stages("norm")
