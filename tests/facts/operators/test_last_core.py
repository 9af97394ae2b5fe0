"""A launch lasts as long as the core that has most to do, and counters tell how long cores work on average."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import said_of_launch

from advisor.model import Finding

HEADING = (
    "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num,"
    "aicore_time(us),aic_mac_ratio,aic_mte2_ratio"
)


def _measured(folder: Path, us: float, blocks: int, worked: float) -> Finding:
    """What is said of one launch on `blocks` cores, which work for `worked` µs on average."""
    row = f"0,mm_custom,mm_custom,AI_CORE,1000000.000\t,{us},0,{blocks},{worked},0.4,0.9"
    return said_of_launch(folder, HEADING, row)


def test_cores_that_rest_for_a_quarter_of_a_long_launch_wait_for_the_last_one(tmp_path):
    """That part is what dealing the work evenly can give, and the first thing to do."""
    finding = _measured(tmp_path, 4000.0, 24, 3000.0)
    assert "those that have most to do" in finding.message.en
    assert finding.saving is not None and finding.saving.us == pytest.approx(1000.0)
    assert "First deal its work evenly" in finding.remedies[0].action.en


@pytest.mark.parametrize(("us", "blocks", "worked"), [(4000.0, 24, 3640.0), (80.0, 24, 62.0), (4000.0, 1, 3000.0)])
def test_a_clock_start_up_and_a_single_core_make_no_uneven_work(tmp_path, us, blocks, worked):
    """A lower clock explains a tenth, start-up a few microseconds, and one core waits for no other."""
    finding = _measured(tmp_path, us, blocks, worked)
    assert "most to do" not in finding.message.en and finding.saving is None


def test_no_block_takes_more_than_all_of_them_together(tmp_path):
    """Eight cores that work for a tenth of a launch on average: the slowest of them could not fill it."""
    finding = _measured(tmp_path, 82.0, 8, 9.0)
    assert "most to do" not in finding.message.en and finding.saving is None
    assert "run for only 11" in finding.message.en
