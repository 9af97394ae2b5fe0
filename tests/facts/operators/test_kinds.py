"""Kinds of kernels by the names that makers give them."""

import pytest

from advisor.config import load_config
from advisor.facts.operators.kinds import is_cube, is_fused_exchange, is_own, shapes
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.streams.kernels import Signature


@pytest.mark.parametrize("text", ["4,8;" + "9" * 400, "4;" + ",".join(["99999999"] * 60), "0," + "9" * 400])
def test_a_shape_larger_than_any_memory_is_none(text):
    """A damaged cell costs its own shapes: such numbers fit no float, and once ended the facts of all operators."""
    assert shapes(text) is None
    assert shapes(f"{1 << 40},2") == ((1 << 40, 2),)


@pytest.mark.parametrize(
    "name",
    ["MatmulAllReduce", "MatmulAllReduceAddRmsNorm", "MatmulReduceScatter", "AllGatherMatmul", "MatmulAlltoAll",
     "AlltoAllAllGatherBatchMatMul", "BatchMatMulReduceScatterAlltoAll", "GroupedMatMulAllReduce",
     "MoeDistributeDispatch", "MoeDistributeCombineV2", "DispatchFFNCombine", "DispatchGmmCombineDecode",
     "CamMoeDispatchNormal", "CamMoeCombineNormal", "MoeLowLatencyDispatchV2", "NotifyDispatch", "FusedDeepMoe",
     "MegaMoe", "udma_all_to_all_kernel", "shmem_allgather_kernel", "my_ReduceScatter_kernel"],
)  # fmt: skip
def test_kernels_that_communicate_are_no_measure_of_a_card(name):
    """Ranks wait for each other inside of them, so neither speed nor use of the cube unit is judged by their time."""
    assert is_fused_exchange(name)
    assert not is_cube(Signature(name, "MIX_AIC", "", "", "", "", "", ""))


@pytest.mark.parametrize(
    "name",
    [
        "MatMulV2",
        "GroupedMatmul",
        "BatchMatMul",
        "MoeTokenPermute",
        "allreduce",
        "Gather",
        "MoeFinalizeRoutingV2",
        "MoeInitRoutingV3",
        "LayerNorm",
        "DispatchLayout",
        "allreduceAicpuKernel",
        "reduce_max_kernel",
        "scatter_kernel",
    ],
)
def test_others_compute_or_communicate_only(name):
    """A grouped multiplication or a permutation of tokens waits for nobody."""
    assert not is_fused_exchange(name)


@pytest.mark.parametrize(
    "name", ["amin_mid_kernel", "_gelu_kernel", "triton_unk_fused_add_0", "add_custom", "AddCustom", "bgmv_expand_half"]
)
def test_kernels_that_somebody_wrote_bear_names_of_their_own(name):
    """AscendC and Triton name a kernel as its author named the function."""
    assert is_own(name)


@pytest.mark.parametrize(
    "name",
    ["MatMulV2", "ApplyAdamWV2", "hcom_allReduce_", "aclnnAdd", "te_cast_0", "trans_TransData_1", "DSARandomNormal"],
)
def test_operators_of_the_library_are_written_alike(name):
    """Nobody is told to rewrite what CANN brings."""
    assert not is_own(name)


@pytest.mark.parametrize(
    ("name", "remedy"), [("bgmv_expand_half", "rewrite-own-kernel"), ("Scatter", "avoid-scalar-code")]
)
def test_the_author_of_a_kernel_is_advised_how_to_write_it(tmp_path, name, remedy):
    """An operator of the library can be replaced by another call; a kernel of one's own can be written anew."""
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),aiv_vec_ratio,aiv_scalar_ratio"
    rows, at = [], 1_000_000.0
    for step in range(8):
        for kind, us, scalar in (("MatMulV2", 600, 0.1), (name, 400, 0.9), ("Add", 50, 0.1), ("ReluGrad", 50, 0.1)):
            core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
            rows.append(f"{step},{kind}_{step},{kind},{core},{at:.3f},{us},0.05,{scalar}")
            at += us + 1
    (tmp_path / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n")
    report = advise([tmp_path], load_rules(config=load_config(None)))
    (found,) = [each for each in report.findings if each.rule == "COMP088"]
    assert found.subject.id == name and remedy in [each.id for each in found.remedies]
    assert {"rewrite-own-kernel", "avoid-scalar-code"} - {each.id for each in found.remedies}
