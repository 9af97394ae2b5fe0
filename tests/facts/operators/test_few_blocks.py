"""A kernel that is measured by itself: which cards count as these counters do, and whether it computes at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import said_of_launch

from advisor.model import Finding
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num"
APART = "aicore_time(us),aic_mac_ratio,aiv_time(us),aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio,aiv_mte3_ratio"
ROW = "0,add_custom,add_custom,{core},1000000.000\t,130,0,{blocks},{counters}"


@pytest.mark.parametrize(
    ("counted", "counters", "core", "blocks", "told"),
    [
        (APART, "0,0,128,0.2,0.1,0.6,0.3", "AI_VECTOR_CORE", 8, "8 blocks; a data centre card with such counters"),
        (APART, "0,0,128,0.2,0.1,0.6,0.3", "AI_VECTOR_CORE", 32, ""),
        (APART, "0,0,128,N/A,0.1,0.6,0.3", "AI_VECTOR_CORE", 8, ""),
        ("aicore_time(us),mac_ratio,vec_ratio,mte2_ratio,mte3_ratio", "128,0,0.2,0.6,0.3", "AI_VECTOR_CORE", 8, ""),
    ],
)  # fmt: skip
def test_counters_of_vector_cores_tell_that_a_card_has_many(tmp_path, counted, counters, core, blocks, told):
    """Eight blocks are few where vector cores are counted by themselves, what they compute included; cards with 7 or 8
    cores of a kind do not count so."""
    said = said_of_launch(tmp_path, f"{HEADING},{counted}", ROW.format(core=core, blocks=blocks, counters=counters))
    assert told in said.message.en and ("blocks;" in said.message.en) == bool(told)
    assert ("Split the work" in said.remedies[0].action.en) == bool(told)


@pytest.mark.parametrize(("vector", "copies"), [(0.0, True), (0.05, False)])
def test_a_kernel_that_computes_nothing_has_nothing_to_reuse(tmp_path, vector, copies):
    """It reads and writes all the time: the copy itself is what can be saved."""
    said = said_of_launch(
        tmp_path, f"{HEADING},{APART}",
        ROW.format(core="AI_VECTOR_CORE", blocks=40, counters=f"0,0,128,{vector},0.1,0.83,0.7"),
    )  # fmt: skip
    assert ("Do without the copy" in said.remedies[0].action.en) == copies
    assert ("reuse of data" in said.remedies[0].action.en) != copies


def _older(folder: Path, operators: dict[str, tuple[int, float]], executions: int = 5) -> dict[str, Finding]:
    """What the rules of few cores say of older MindSpore's tables: type -> (blocks, milliseconds of each call)."""
    detail, graph = (
        ["full_kernel_name,execution_time,execution_frequency"],
        ["full_kernel_name,kernel_type,block_dim,op_info"],
    )
    for number, (kind, (blocks, ms)) in enumerate(operators.items()):
        detail.append(f"Default/net/{kind}-op{number},{ms},{executions}")
        graph.append(f'Default/net/{kind}-op{number},{kind},{blocks},"{{""input_0"": {{""shape"": ""8,{number}""}}}}"')
    step = round(1e5 * sum(ms for _, ms in operators.values()))
    steps = ["step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"]
    steps += [
        f"{n},{n * step},{(n + 1) * step},{step},{n * step},{(n + 1) * step},0,{step},0" for n in range(executions)
    ]
    (folder / "aicore_intermediate_0_detail.csv").write_text("\n".join(detail) + "\n")
    (folder / "framework_raw_0.csv").write_text("\n".join(graph) + "\n")
    (folder / "step_trace_raw_0_detail_time.csv").write_text("\n".join(steps) + "\n")
    report = advise([folder], load_rules(), Options(jobs=1))
    return {each.subject.id: each for each in report.findings if each.rule == "COMP086"}


NETWORK = {"Add": (40, 0.5), "Mul": (40, 0.5), "ReluV2": (40, 0.5), "MatMul": (24, 3.0), "Conv2D": (24, 3.0)}


def test_older_tables_tell_the_blocks_of_an_operator_in_the_graph(tmp_path):
    """One call on one block, a quarter of the step: framework_raw says so, and kernels one by one need not be there.
    That products have fewer blocks than vector operators is the card's way, and no finding."""
    (said,) = _older(tmp_path, NETWORK | {"ResizeBilinearGrad": (1, 2.5)}).values()
    assert said.subject.id == "ResizeBilinearGrad" and said.severity == "medium"
    assert "inputs 8,5 runs 1 block on 40 cores" in said.message.en
    assert said.saving.us_per_step == pytest.approx(2500 * 39 / 40)


@pytest.mark.parametrize(
    "operators",
    [
        {"Add": (40, 0.5), "Mul": (40, 0.5), "MatMul": (24, 3.0), "ResizeBilinearGrad": (1, 2.5)},
        NETWORK | {"ResizeBilinearGrad": (36, 2.5)},
        NETWORK | {"Assign": (1, 0.01)},
    ],
)
def test_of_older_tables_few_witnesses_nearly_all_cores_and_short_calls_are_no_finding(tmp_path, operators):
    """As of kernels one by one: two types that agree may do so by chance."""
    assert not _older(tmp_path, operators)


@pytest.mark.parametrize("kind", ["FlashAttentionScore", "FlashAttentionScoreGrad", "Conv2DBackpropInput"])
def test_of_older_tables_what_multiplies_is_held_against_cube_cores(tmp_path, kind):
    """A fused attention runs on the cube cores, as products do, and has one block for each of them; on a third of them
    it is told so, with their number."""
    network = NETWORK | {"BatchMatMul": (24, 1.0)}
    assert not _older(tmp_path, network | {kind: (24, 3.0)})
    said = _older(tmp_path, network | {kind: (8, 9.0)})[kind]
    assert "runs 8 blocks on 24 cores" in said.message.en
