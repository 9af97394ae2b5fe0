"""A table of operator types in which no rule finds anything still has a largest one."""

from __future__ import annotations

from pathlib import Path

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def test_the_largest_type_of_a_table_is_named_where_nothing_else_is(tmp_path: Path) -> None:
    """Whoever recorded sums alone gets one number of them, and not only the files that are missing."""
    rows = [("CausalConv1d", 18, 13_660.0)] + [(f"Kernel{i}", 18, 5_000.0) for i in range(9)]
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},AI_VECTOR_CORE,{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, k, us in rows]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    assert not report.findings and report.summary.direction == "undetermined"
    assert "The largest operator type is CausalConv1d, 23 % of the kernel time." in report.summary.headline.en.replace(
        "\u00a0", " "
    )
