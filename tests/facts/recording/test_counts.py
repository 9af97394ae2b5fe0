"""Kernels one by one against the statistic that counts them."""

from pathlib import Path

from advisor.facts.recording.counts import is_cut
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from advisor.sources.streams.kernels import load_kernels

KERNELS = """Name,Type,Accelerator Core,Start Time(us),Duration(us)
a,MatMul,AI_CORE,100,5
b,MatMul,AI_CORE,200,-1
c,Lost,AI_CORE,300,5
"""


def test_types_of_which_no_kernel_is_left_end_nothing(tmp_path: Path) -> None:
    """The last type of the table may stand at rows that cannot be used, or at tasks that are no kernels."""
    (tmp_path / "kernel_details.csv").write_text(KERNELS.replace("c,Lost,AI_CORE", "c,Lost,EVENT_WAIT"))
    (tmp_path / "op_statistic.csv").write_text("OP Type,Core Type,Count,Total Time(us)\nMatMul,AI_CORE,1,5\n")
    tables = {
        "kernels": TableRef("kernels", (tmp_path / "kernel_details.csv",), "kernels.csv"),
        "operator_types": TableRef("operator_types", (tmp_path / "op_statistic.csv",), "csv.table"),
    }
    rank = Rank(0, tmp_path, tables, base=tmp_path)
    kernels = load_kernels(rank)
    assert kernels is not None and len(kernels) == 1
    assert not is_cut(rank, kernels)
