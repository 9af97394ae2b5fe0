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


def told(tmp_path: Path, *rows: tuple[str, str, float]) -> str:
    """What the headline says of a table of these types, of which other small ones fill the rest of a second."""
    filled = [*rows, *((f"Kernel{i}", "AI_VECTOR_CORE", (1e6 - sum(us for *_, us in rows)) / 60) for i in range(60))]
    lines = [f"0,{n},{core},1800,{us},{us / 1800},{us / 1800},{us / 1800},{us / 1e4}" for n, core, us in filled]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    return advise([tmp_path], load_rules(), Options()).summary.headline.en.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("largest", "core", "share", "named"),
    [
        ("Im2col", "AI_VECTOR_CORE", 0.42, "operator type Im2col"),
        ("MatMulV2", "AI_CORE", 0.42, "operator type Transpose"),
        ("MatMulV2", "AI_CORE", 0.6, "operator type MatMulV2"),
    ],
)
def test_a_vector_operator_that_takes_more_than_conversions_is_named(
    tmp_path: Path, largest: str, core: str, share: float, named: str
) -> None:
    """Where nothing promises a gain, what takes most is what a table shows. Networks live on products: these stand
    behind conversions of some size."""
    assert named in told(tmp_path, (largest, core, share * 1e6), ("Transpose", "AI_VECTOR_CORE", 0.11e6))


@pytest.mark.parametrize(("largest_us", "named"), [(184e3, True), (39e3, False)])
def test_a_type_that_takes_more_than_the_one_named_is_named_as_well(
    tmp_path: Path, largest_us: float, named: bool
) -> None:
    """An operator on the AI CPU is put right first; what takes four times as much is not left unsaid."""
    said = told(tmp_path, ("EmbeddingBag", "AI_VECTOR_CORE", largest_us), ("IndexPut", "AI_CPU", 40e3))
    assert "operator type IndexPut" in said and ("The largest operator type is EmbeddingBag" in said) is named
