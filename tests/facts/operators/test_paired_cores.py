"""Kernels that run on cube and vector cores together: a cube core has two vector cores beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import said_of_launch

from advisor.model import Finding

HEADING = (
    "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num,"
    "Mix Block Num,aicore_time(us),aic_mac_ratio,aiv_time(us),aiv_vec_ratio"
)


def _measured(folder: Path, us: float, vectors: str, cube: float, vector: float) -> Finding:
    """What is said of one launch of a fused kernel on 24 cube cores and as many vector cores as `vectors` says."""
    row = f"0,fused_custom,fused_custom,MIX_AIC,1000000.000\t,{us},0,24,{vectors},{us},{cube},{us},{vector}"
    return said_of_launch(folder, HEADING, row)


@pytest.mark.parametrize(("cube", "vector", "gain"), [(0.34, 0.84, 0.42), (0.6, 0.8, 0.2)])
def test_half_of_the_vector_cores_can_share_the_work_of_the_others(tmp_path, cube, vector, gain):
    """Two vector cores need half the time, as far as the cube cores do not need longer."""
    finding = _measured(tmp_path, 600.0, "24", cube, vector)
    assert "one of the two vector cores beside each cube core" in finding.message.en
    assert finding.saving is not None and finding.saving.us == pytest.approx(gain * 600.0, rel=0.01)
    assert "__mix__(1, 2)" in finding.remedies[0].action.en


@pytest.mark.parametrize(("vectors", "cube", "vector"), [("48", 0.34, 0.84), ("N/A", 0.34, 0.84), ("24", 0.84, 0.34)])
def test_nobody_is_told_of_idle_vector_cores_that_work_or_that_limit_nothing(tmp_path, vectors, cube, vector):
    """Both of each pair work, or nothing tells how many do, or the cube cores are the limit."""
    finding = _measured(tmp_path, 600.0, vectors, cube, vector)
    assert "vector core for each" not in finding.message.en and finding.saving is None
