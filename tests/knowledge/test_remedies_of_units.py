"""What to do about a kernel suits the unit that limits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEAD = (
    "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim,aicore_time(us),"
    "total_cycles,vec_exe_ratio,mac_exe_ratio,scalar_exe_ratio,mte1_exe_ratio,mte2_exe_ratio,mte3_exe_ratio"
)

OF_BOTH = (
    HEAD.partition("vec_exe_ratio")[0]
    + "aic_mac_ratio,aic_scalar_ratio,aic_mte1_ratio,aic_mte2_ratio,aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio,"
    "aiv_mte3_ratio"
)
"""Of chips whose vector cores are cores of their own."""


@pytest.mark.parametrize(
    ("core", "ratios", "said"),
    [
        ("AI_VECTOR_CORE", "0.005,0.0,0.965,0.0,0.014,0.004", "Replace scalar loops"),
        ("AI_CORE", "0.0,0.7,0.3,0.85,0.7,0.0", "larger tiles there (baseM, baseN, baseK)"),
        ("AI_CORE", "0.0,0.95,0.3,0.5,0.7,0.0", "Multiply less"),
        ("AI_VECTOR_CORE", "0.85,0.0,0.3,0.0,0.3,0.3", "repeat and mask settings"),
    ],
)
@pytest.mark.parametrize("within", [37.7, 94.0])
def test_a_unit_that_limits_its_blocks_is_what_to_work_on(
    tmp_path: Path, core: str, ratios: str, said: str, within: float
) -> None:
    """However much of a launch lies outside its blocks: what limits these is no "no unit"."""
    folder = tmp_path / "PROF_000001_20260101000000000_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    row = f"my_kernel,my_kernel,{core},1700000000000000.0,95.7,0,40,{within},47130,{ratios}"
    (folder / "op_summary_20260101000000.csv").write_text(f"{HEAD}\n{row}\n")
    (found,) = [each for each in advise([tmp_path], load_rules(), Options(jobs=1)).findings if each.rule == "COMP087"]
    (remedy,) = [each for each in found.remedies if each.id == "tune-kernel"]
    assert said in remedy.action.en and "No unit is its limit" not in remedy.action.en


@pytest.mark.parametrize(("blocks", "length", "within", "advised"), [
    (4, 38.1, 37.2, True), (4, 3.81, 3.2, True), (4, 3.81, 1.6, False),
])  # fmt: skip
def test_more_blocks_are_advised_where_they_share_more_than_starting_them_takes(
    tmp_path: Path, blocks: int, length: float, within: float, advised: bool
) -> None:
    """What lies outside the blocks of a short launch grows with their number."""
    folder = tmp_path / "PROF_000001_20260101000000000_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    rows = (
        f"my_kernel,my_kernel,AI_VECTOR_CORE,{1.7e15 + 30 * i:.3f},{length},0,{blocks},{within},47130,"
        "0.3,0.0,0.45,0.0,0.3,0.1"
        for i in range(20)
    )
    (folder / "op_summary_20260101000000.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    (found,) = [each for each in advise([tmp_path], load_rules(), Options(jobs=1)).findings if each.rule == "COMP087"]
    (remedy,) = [each for each in found.remedies if each.id == "tune-kernel"]
    assert ("at least as many blocks" in remedy.action.en) is advised
    assert (f"runs as only {blocks} blocks" in found.message.en) is advised


def test_a_core_that_does_nothing_but_scalar_code_may_be_waiting(tmp_path: Path) -> None:
    """Whoever adds vectors reads them: where no unit reads or computes, a loop may just ask whether it may go on."""
    said = _message(tmp_path / "spins", "0.0,0.98,0.0,0.0,0.0,0.0,0.0,0.0", OF_BOTH)
    assert "waits in a loop, or handles single elements" in said and "Scalar control code limits" not in said
    assert "Scalar control code limits" in _message(tmp_path / "works", "0.0,0.0,0.0,0.0,0.0,0.98,0.01,0.0", OF_BOTH)


def test_counters_that_are_all_zero_were_recorded_all_the_same(tmp_path: Path) -> None:
    """A counter that ran over makes every ratio nothing: whoever recorded them is not told to switch them on."""
    said = _message(tmp_path / "zero", "0.0,0.0,0.0,0.0,0.0,0.0")
    assert "show no unit at work" in said and "No counters were recorded" not in said
    assert "No counters were recorded" in _message(tmp_path / "none", "N/A,N/A,N/A,N/A,N/A,N/A")


def _message(folder: Path, ratios: str, head: str = HEAD) -> str:
    output = folder / "PROF_000001_20260101000000000_ABC" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    row = f"Eye,Eye,AI_VECTOR_CORE,1700000000000000.0,218.5,0,40,115350428.6,7613128287051,{ratios}"
    (output / "op_summary_20260101000000.csv").write_text(f"{head}\n{row}\n")
    (found,) = [each for each in advise([folder], load_rules(), Options(jobs=1)).findings if each.rule == "COMP087"]
    return found.message.en
