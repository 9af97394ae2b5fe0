"""Whose profiler wrote files that stand alone: their headings tell, as the two writers' differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, measure

STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"


@pytest.mark.parametrize(
    ("file", "heading", "row", "framework"),
    [
        ("step_trace_time.csv", f"Device_id,{STEPS}", "0,1,80,0,0,0,20,100,0", "pytorch"),
        ("step_trace_time.csv", STEPS, "1,80,0,0,0,20,100,0", "unknown"),
        ("kernel_details.csv", "Step Id,Name,Type,Start Time(us),Duration(us)", "1,a,MatMul,100,5", "pytorch"),
        ("kernel_details.csv", "Step ID,Name,Type,Start Time(us),Duration(us)", "1,a,MatMul,100,5", "mindspore"),
        ("kernel_details.csv", "Name,Type,Start Time(us),Duration(us)", "a,MatMul,100,5", "unknown"),
        ("op_summary_1.csv", "Device_id,Op Name,OP Type,Task Start Time(us),Task Duration(us)", "0,a,B,1,5", "unknown"),
    ],
)
def test_headings_tell_whose_table_it_is(tmp_path: Path, file: str, heading: str, row: str, framework: str) -> None:
    """Advice for the other framework cannot be followed; what msprof itself exports is anybody's."""
    (tmp_path / file).write_text(f"{heading}\n{row}\n")
    assert measure([tmp_path], ["run.framework"], Options(jobs=1)).facts.value("run.framework", RUN) == framework
