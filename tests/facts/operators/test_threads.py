"""Vector kernels whose threads access memory themselves: their units that carry data have nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import said_of_launch

from advisor.model import Finding

HEADING = (
    "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num,"
    "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,aiv_time(us),"
    "aiv_vec_ratio,aiv_mte2_ratio,aiv_mte3_ratio"
)


def _measured(folder: Path, rows: int, read: str, written: str) -> Finding:
    """What is said of one launch of 130 µs over `rows` rows of 1024 numbers of 4 bytes, by its units' shares."""
    shape = f'"""{rows},1024"""'
    row = (
        f"0,rows_custom,rows_custom,AI_VECTOR_CORE,1000000.000\t,130,0,64,{shape},FLOAT,ND,{shape},FLOAT,ND,128,"
        f"0.95,{read},{written}"
    )
    return said_of_launch(folder, HEADING, row)


def test_a_vector_unit_that_waits_for_memory_is_not_told_to_compute_less(tmp_path):
    """64 MB in 130 µs that no unit carried: threads fetched them, and neighbouring addresses are what helps."""
    finding = _measured(tmp_path, 8192, "0.0", "0.0")
    assert "its threads access memory themselves" in finding.message.en
    action = finding.remedies[0].action.en
    assert "128 bytes" in action and "Compute less" not in action


@pytest.mark.parametrize(
    ("rows", "read", "written"),
    [(8192, "0.3", "0.2"), (16, "0.001", "0.0"), (8192, "N/A", "N/A"), (8192, "0.0", "N/A")],
)
def test_units_that_carry_the_data_leave_the_vector_unit_its_work(tmp_path, rows, read, written):
    """Data that units carry, so little that they carry it at once, or units that nobody counted: it computes."""
    finding = _measured(tmp_path, rows, read, written)
    assert "threads" not in finding.message.en and "Compute less" in finding.remedies[0].action.en
