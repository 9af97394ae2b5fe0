"""Tables that sum kernels up tell no overlap, but computation hides no more than its own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def _report(folder: Path, reduced_us: float):
    """What is said of a model whose kernels take 600 ms, with reductions between its cards."""
    rows = [("hcom_allReduce_", "HCCL", 7748, reduced_us), ("MatMulV2", "AI_CORE", 7710, 245_000.0)]
    rows += [(name, "AI_VECTOR_CORE", 1920, 71_000.0) for name in ("SwiGlu", "AddRmsNorm", "Sort", "Softmax", "Mul")]
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, c, k, us in rows]
    (folder / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    return advise([folder], load_rules(), Options())


def test_reductions_six_times_as_long_as_computation_pass_mostly_alone(tmp_path):
    """It is told without a direction, for nobody knows who waits; and the first screen does not pass it over."""
    report = _report(tmp_path, 3_750_000.0)
    (finding,) = (f for f in report.findings if f.rule == "COMM013")
    assert finding.saving is None and "waiting for a late rank" in finding.message.en
    assert report.summary.direction == "undetermined"
    assert "Collectives take longer than all computation" in report.summary.headline.en


@pytest.mark.parametrize("reduced_us", [0.0, 500_000.0, 1_100_000.0])
def test_collectives_that_computation_or_each_other_may_hide_are_not_told(tmp_path, reduced_us):
    """Two groups at once, all of it behind computation, or no collective at all."""
    assert not [f for f in _report(tmp_path, reduced_us).findings if f.rule == "COMM013"]
