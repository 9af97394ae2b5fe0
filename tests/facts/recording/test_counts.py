"""Kernels one by one against the statistic that counts them."""

from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.facts.recording.counts import is_cut
from advisor.model import Report
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
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


def test_types_that_only_repeat_the_core_are_none(tmp_path: Path) -> None:
    """Writers that put the core under both headings tell the type as the name: the statistic finds its kernels."""
    rows = [
        f"{name},AI_CORE,AI_CORE,{100 * (2 * n + i)},50" for n in range(20) for i, name in enumerate(["MatMul", "Mul"])
    ]
    heading = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    (tmp_path / "kernel_details.csv").write_text("\n".join([heading, *rows]))
    types = ["OP Type,Core Type,Count,Total Time(us)", "MatMul,AI_CORE,20,1000", "Mul,AI_CORE,30,1500"]
    (tmp_path / "op_statistic.csv").write_text("\n".join(types))
    report = measure([tmp_path], None, Options(jobs=1))
    told = [problem.problem for problem in report.problems]
    assert any("holds 10 kernels fewer" in text for text in told) and not any("contradicts" in text for text in told)


@pytest.mark.parametrize("every", [1, 2])
def test_a_statistic_whose_cells_were_moved_counts_nothing(tmp_path: Path, every: int) -> None:
    """Each cell stands one column to the left: a core for a type, a total for a number of calls. Nobody is blamed for
    what the kernels beside it do not show."""
    kernels = [f"k{n},MatMul,AI_CORE,{100 * n},50" for n in range(20)] + [
        f"m{n},Mul,AI_CORE,{100 * n + 60},20" for n in range(20)
    ]
    (tmp_path / "kernel_details.csv").write_text(
        "\n".join(["Name,Type,Accelerator Core,Start Time(us),Duration(us)", *kernels])
    )
    rows = ["0,MatMul,AI_CORE,20,1000.5,49.8,50.025,50.9,71.4", "0,Mul,AI_CORE,20,400.5,19.1,20.025,20.6,28.6"]
    moved = [f"{row.partition(',')[2]}," if at % every == 0 else row for at, row in enumerate(rows)]
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    for written, told in ((rows, 0), (moved, 2 // every)):
        (tmp_path / "op_statistic.csv").write_text("\n".join([heading, *written, ""]))
        found = measure([tmp_path], None, Options(jobs=1))
        kinds = {subject.id: fact.value for subject, fact in found.facts.of("operator_type.time_us").items()}
        assert kinds.keys() == {"MatMul", "Mul"}
        problems = [p.problem for p in found.problems]
        assert any(f"{told} of 2 rows have calls" in text for text in problems) == bool(told)
        assert not any("fewer than op_statistic.csv" in text for text in problems)


@pytest.mark.parametrize(
    ("ends", "told"), [("50.9,71.4", False), ("50.025,71.4", False), ("71.4,", False), ("0.7,", True)]
)
def test_a_mean_longer_than_the_longest_call_is_told(tmp_path: Path, ends: str, told: bool) -> None:
    """The longest call's cell was lost, and the type's share stands in its place: its total is right and still used."""
    heading = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    rows = [f"MatMul,AI_CORE,20,1000.5,49.8,50.025,{ends}", "Mul,AI_CORE,20,400.5,19.1,20.025,20.6,28.6"]
    (tmp_path / "op_statistic.csv").write_text("\n".join([heading, *rows, ""]))
    found = measure([tmp_path], None, Options(jobs=1))
    assert any("1 of 2 rows have a mean that is not between" in p.problem for p in found.problems) == told
    assert {subject.id for subject in found.facts.of("operator_type.time_us")} == {"MatMul", "Mul"}


def _cut(folder: Path, kept: int, steps: tuple[str, ...] = ("",)) -> Report:
    """6,000 kernels of 50 us in 600 ms by the step table, and these first rows of their table, a tenth conversions."""
    names = ["Cast" if n % 10 == 0 else "MatMul" for n in range(kept)]
    rows = [f"{name}_{n},{name},AI_CORE,{1000 + 100 * n},50" for n, name in enumerate(names)]
    heading = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    (folder / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n")
    us = 300000 / len(steps)
    (folder / "step_trace_time.csv").write_text(
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
        + "".join(f"0,{step},{us},0,0,0,{us},{2 * us},0\n" for step in steps)
    )
    return advise([folder], load_rules(config=load_config(None)))


def test_few_kernels_refute_no_step_table(tmp_path: Path) -> None:
    """With 50 of 6,000 rows the table of kernels is the one that is cut: half of the time is idle, for certain, and of
    operators nothing is known."""
    report = _cut(tmp_path, 50)
    (told,) = report.problems
    assert told.file.endswith("kernel_details.csv") and "neither operators nor idle time" in told.problem
    assert report.summary.direction == "scheduling"
    assert {finding.verdict for finding in report.findings} == {"device-idle-gaps"}


def test_kernels_of_one_of_many_steps_tell_of_operators(tmp_path: Path) -> None:
    """Whoever keeps the rows of one step of twelve has all its types, and the rest of the table does not matter."""
    report = _cut(tmp_path, 500, tuple(str(n) for n in range(12)))
    assert any("no idle time is judged" in problem.problem for problem in report.problems)
    assert "conversion-overhead" in {finding.verdict for finding in report.findings}


@pytest.mark.parametrize("name", ["-1", "["])
def test_what_is_no_word_is_no_type_of_operator(tmp_path: Path, name: str) -> None:
    """Whoever reads "-1 takes all the time" learns nothing: such a row is told, and counts nothing."""
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    rows = [f"0,{name},AI_CORE,20,1000,49.8,50,50.9,70", "0,Mul,AI_CORE,20,400,19.1,20,20.6,30"]
    (tmp_path / "op_statistic.csv").write_text("\n".join([heading, *rows, ""]))
    found = measure([tmp_path], None, Options(jobs=1))
    assert {subject.id for subject in found.facts.of("operator_type.time_us")} == {"Mul"}
    assert any("1 of 2 rows have no word in place of their operator's type" in p.problem for p in found.problems)
