"""What a file holds decides, where its name tells another table."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure

STATISTIC = (
    "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
    "0,Conv,AI_CORE,25,2500.0,90.0,100.0,110.0,80.0\n0,Add,AI_VECTOR_CORE,25,625.0,20.0,25.0,30.0,20.0\n"
)
KERNELS = (
    "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)\n"
    + "".join(f"Conv_{n},Conv,AI_CORE,{1_700_000_000_000_000 + 40 * n}.0,20.0,20.0\n" for n in range(30))
)  # fmt: skip


@pytest.mark.parametrize("name", ["op_summary.csv", "rank0_op_summary_20260101000000.csv", "op_statistic.csv"])
def test_a_statistic_saved_as_the_table_of_kernels_is_read_as_what_it_is(tmp_path: Path, name: str) -> None:
    """A script that exports either under one name loses nothing."""
    (tmp_path / name).write_text(STATISTIC)
    found = measure([tmp_path], None, Options(jobs=1))
    assert found.facts.value("operator_type.count", Subject("operator_type", "Conv")) == 25
    assert found.facts.value("operator_type.compute_share", Subject("operator_type", "Conv")) == pytest.approx(0.8)
    assert not [each for each in found.problems if "lacks the column" in each.problem]


def test_a_table_that_is_what_its_name_says_keeps_it(tmp_path: Path) -> None:
    """Kernels one by one, and a table of kernels whose times were lost: what lacks is told under its own name."""
    (tmp_path / "op_summary.csv").write_text(KERNELS)
    found = measure([tmp_path], None, Options(jobs=1))
    assert found.facts.value("operator_type.count", Subject("operator_type", "Conv")) == 30
    (tmp_path / "op_summary.csv").write_text(KERNELS.replace("Task Duration(us)", "Task Length"))
    found = measure([tmp_path], None, Options(jobs=1))
    assert [each for each in found.problems if "lacks the column Duration" in each.problem]
