"""Step tables name no unit: what their kernels take tells in which one they are."""

from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.model import Report
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

STEPS = "step_trace_time.csv"
HEADING = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"
TYPES = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"
COUNT = 20
PER_STEP = {"MatMulV2": (32, 180.0), "FlashAttentionScore": (32, 90.0), "RmsNorm": (64, 10.0)}
"""Type -> (calls in a step, microseconds a call): a step computes for 9.28 ms, and waits for 2.72 ms."""
COMPUTING = sum(calls * us for calls, us in PER_STEP.values())


def _write(folder: Path, steps_unit: float, types_unit: float = 1.0, stage: str = "") -> Path:
    """A rank whose step table and statistic are in these parts of a microsecond."""
    folder.mkdir()
    row = f"{COMPUTING * steps_unit},0,0,0,{2720 * steps_unit},{stage},0,0"
    steps = [HEADING, *(f"0,{step},{row}" for step in range(1, COUNT + 1))]
    (folder / STEPS).write_text("\n".join(steps) + "\n")
    types = [TYPES]
    for name, (calls, us) in PER_STEP.items():
        one = us * types_unit
        share = 100 * calls * us / COMPUTING
        types.append(f"0,{name},AI_CORE,{calls * COUNT},{calls * COUNT * one},{one},{one},{one},{share:.3f}")
    (folder / "op_statistic.csv").write_text("\n".join(types) + "\n")
    return folder


def _add_kernels(folder: Path, unit: float = 1.0) -> Path:
    """With the kernels one by one, whose durations are in these parts of a microsecond."""
    rows = [KERNELS]
    for step in range(1, COUNT + 1):
        at = 1e6 + step * 12000.0
        for name, (calls, us) in PER_STEP.items():
            for _ in range(calls):
                rows.append(f"{step},{name},{name},AI_CORE,{at:.3f},{us * unit:.3f},0,24")
                at += us
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    return folder


def _report(folder: Path) -> Report:
    return advise([folder], load_rules(config=load_config(None)))


def _told(report: Report) -> bool:
    return any("milliseconds" in problem.problem for problem in report.problems)


@pytest.mark.parametrize("kernels", [False, True])
def test_a_step_table_in_milliseconds_is_read_as_that(tmp_path: Path, kernels: bool) -> None:
    """The step lasts as long as its kernels need, and what is told of it is no guess."""
    folder = _write(tmp_path / "run", 0.001)
    report = _report(_add_kernels(folder) if kernels else folder)
    assert report.summary.step_time_us == pytest.approx(12000, rel=0.02)
    assert _told(report) and not any(fact.doubted for fact in report.facts)


def test_a_step_table_in_microseconds_stays_as_it_is(tmp_path: Path) -> None:
    """Witnesses that agree move nothing."""
    report = _report(_add_kernels(_write(tmp_path / "run", 1.0)))
    assert report.summary.step_time_us == pytest.approx(12000, rel=0.02) and not _told(report)


def test_kernels_in_another_unit_move_no_step_table(tmp_path: Path) -> None:
    """Durations a thousand times too long make kernels overlap, which start where the step table says."""
    report = _report(_add_kernels(_write(tmp_path / "run", 1.0, 1000.0), 1000.0))
    assert not _told(report)


def test_where_either_may_be_in_another_unit_no_step_is_told(tmp_path: Path) -> None:
    """Calls that last longer than a step computes contradict it; where a thousandth of them could be kernels as well,
    nobody knows which of the two tables is wrong: neither a step time nor a saving rests on it."""
    report = _report(_write(tmp_path / "run", 1.0, 1000.0))
    assert not _told(report) and report.summary.step_time_us is None
    assert not any(f.saving is not None and f.saving.us for f in report.findings)
    assert any("longer than all that a step computes" in problem.problem for problem in report.problems)


def test_words_in_one_column_damage_no_other(tmp_path: Path) -> None:
    """Writers of their own put the name of a phase where MindSpore tells a time: the other columns are intact."""
    report = _report(_write(tmp_path / "run", 1.0, stage="Decode"))
    assert report.summary.step_time_us == pytest.approx(12000, rel=0.02)
    assert report.summary.direction == "scheduling" and not any(fact.doubted for fact in report.facts)
