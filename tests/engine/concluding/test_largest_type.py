"""A table of operator types in which no rule finds anything still has a largest one."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


@pytest.mark.parametrize("trifle_us", [0.0, 900.0])
def test_the_largest_type_of_a_table_is_named_where_nothing_else_is(tmp_path: Path, trifle_us: float) -> None:
    """Whoever recorded sums alone gets one number of them, and not only the files that are missing; one and a half per
    cent on the AI CPU is told, and takes its place in no headline."""
    rows = [("CausalConv1d", "AI_VECTOR_CORE", 13_660.0)]
    rows += [(f"Kernel{i}", "AI_VECTOR_CORE", 5_000.0) for i in range(9)]
    rows += [("Metadata", "AI_CPU", trifle_us)] if trifle_us else []
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{core},18,{us},{us / 18},{us / 18},{us / 18},{100 * us / whole}" for n, core, us in rows]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    assert [each.rule for each in report.findings] == (["COMP050"] if trifle_us else [])
    assert report.summary.direction == "undetermined"
    assert "The largest operator type is CausalConv1d, 23 % of the kernel time." in report.summary.headline.en.replace(
        "\u00a0", " "
    )
