"""A kernel that is measured by itself: which cards count as these counters do, and whether it computes at all."""

from __future__ import annotations

import pytest
from launch import said_of_launch

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
