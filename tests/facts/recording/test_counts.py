"""Kernels one by one against the statistic that counts them."""

from pathlib import Path

from advisor.facts.recording.counts import is_cut
from advisor.pipeline import Options, measure
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


def test_level_0_knows_conversions_by_the_names_of_their_kernels(tmp_path: Path) -> None:
    """Without types, the operator library's names and the graph compiler's end with the type they are of."""
    names = (
        "aclnnMatmul_MatMulV3Common_MatMulV3", "trans_TransData_3", "aclnnCast_CastAiCore_Cast",
        "aclnnInplaceCopy_TransposeAiCore_Transpose", "Default/network/TransData-op12", "aclnnMatmul",
    )  # fmt: skip
    rows = [f"{name},{101 * (6 * turn + i)},100" for turn in range(10) for i, name in enumerate(names)]
    (tmp_path / "kernel_details.csv").write_text("\n".join(["Name,Start Time(us),Duration(us)", *rows]))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    kinds = {subject.id: fact.value for subject, fact in facts.of("operator_type.category").items()}
    assert {name for name, kind in kinds.items() if kind == "conversion"} == {"TransData", "Cast", "Transpose"}
    assert {"MatMulV3", "aclnnMatmul"} < set(kinds)
