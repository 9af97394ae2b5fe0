"""Kinds of kernels by the names that makers give them."""

import pytest

from advisor.facts.operators.kinds import is_cube, is_fused_exchange
from advisor.sources.streams.kernels import Signature


@pytest.mark.parametrize(
    "name",
    ["MatmulAllReduce", "MatmulAllReduceAddRmsNorm", "MatmulReduceScatter", "AllGatherMatmul", "MatmulAlltoAll",
     "AlltoAllAllGatherBatchMatMul", "BatchMatMulReduceScatterAlltoAll", "GroupedMatMulAllReduce",
     "MoeDistributeDispatch", "MoeDistributeCombineV2"],
)  # fmt: skip
def test_kernels_that_communicate_are_no_measure_of_a_card(name):
    """Ranks wait for each other inside of them, so neither speed nor use of the cube unit is judged by their time."""
    assert is_fused_exchange(name)
    assert not is_cube(Signature(name, "MIX_AIC", "", "", "", "", "", ""))


@pytest.mark.parametrize("name", ["MatMulV2", "GroupedMatmul", "BatchMatMul", "MoeTokenPermute", "allreduce", "Gather"])
def test_others_compute_or_communicate_only(name):
    """A grouped multiplication or a permutation of tokens waits for nobody."""
    assert not is_fused_exchange(name)
