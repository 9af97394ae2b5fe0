"""Tables that sum kernels up tell no overlap, but computation hides no more than its own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
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


@pytest.mark.parametrize(
    ("dispatch_us", "reduced_us", "remedies"),
    [
        (3_000_000.0, 250_000.0, ["shrink-expert-serving"]),
        (600_000.0, 700_000.0, ["shrink-expert-serving", "shrink-serving-exchange"]),
        (0.0, 700_000.0, ["shrink-serving-exchange"]),
    ],
)
def test_the_exchange_of_experts_has_another_remedy_than_that_of_split_layers(
    tmp_path: Path, dispatch_us: float, reduced_us: float, remedies: list[str]
):
    """Fewer cards for one copy of the model do nothing where nearly all of the time is dispatch and combine."""
    rows = [
        ("hcom_allReduce_", "HCCL", 774, reduced_us),
        ("MoeDistributeDispatchV2", "AI_VECTOR_CORE", 960, dispatch_us),
    ]
    rows += [("FusedInferAttentionScore", "MIX_AIC", 960, 500_000.0), ("GroupedMatmul", "AI_CORE", 960, 700_000.0)]
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, c, k, us in rows if us]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    found = next(f for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMM015")
    assert [remedy.id for remedy in found.remedies] == remedies


@pytest.mark.parametrize(("kernel", "fused"), [("MoeDistributeDispatchV2", False), ("DispatchFFNCombine", True)])
def test_who_exchanges_in_one_kernel_is_not_told_to(tmp_path: Path, kernel: str, fused: bool):
    """The kernel that dispatches, multiplies and combines is the remedy: where it runs, the balance is what is left."""
    rows = [(kernel, "MIX_AIC", 960, 900_000.0), ("FusedInferAttentionScore", "MIX_AIC", 960, 500_000.0)]
    lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{us / 14_000}" for n, c, k, us in rows]
    output = tmp_path / "node_1_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    found = next(f for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMM015")
    (remedy,) = found.remedies
    assert ("one fused kernel" in remedy.action.en) == ("融合为一个kernel" in remedy.action.zh) == (not fused)
    assert ("fused_mc2" in remedy.snippet) != fused
    assert "eplb_config" in remedy.snippet


@pytest.mark.parametrize(("shortest_us", "told"), [(150.0, True), (8000.0, False)])
def test_what_calls_take_beyond_the_shortest_of_their_row_is_named(tmp_path: Path, shortest_us: float, told: bool):
    """One type on two kinds of cores: each row has a shortest call of its own, and half of the time decides."""
    kernel = "MoeDistributeDispatchV2"
    rows = [(kernel, "MIX_AIV", 1000, 9000.0, shortest_us), (kernel, "AI_VECTOR_CORE", 2000, 200.0, 120.0)]
    rows.append(("FusedInferAttentionScore", "MIX_AIC", 1000, 5000.0, 4000.0))
    lines = [f"0,{n},{core},{k},{k * us},{least},{us},{2 * us},{k * us / 144e3}" for n, core, k, us, least in rows]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    facts = {each.name: each.value for each in report.facts if each.subject.kind == "run"}
    assert facts["operators.fused_exchange_least_us"] == pytest.approx(1000 * shortest_us + 2000 * 120)
    found = next(f for f in report.findings if f.rule == "COMM015")
    assert ("for the rest a rank waits" in found.message.en) == ("其余时间在等待其他rank" in found.message.zh) == told


@pytest.mark.parametrize(("kind", "handed"), [("hcom_allReduce_", 0.0), ("hcom_receive_", 30_000.0), ("Add", None)])
def test_sums_tell_whether_anybody_sends_or_receives(tmp_path: Path, kind: str, handed: float | None):
    """Stages of a pipeline would; sums without any collective tell nothing of it."""
    core = "AI_VECTOR_CORE" if kind == "Add" else "HCCL"
    rows = [f"0,{kind},{core},20,30000,1500,1500,1500,50", "0,MatMulV2,AI_CORE,20,30000,1500,1500,1500,50"]
    (tmp_path / "op_statistic.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], ["operators.handover_us"], Options(jobs=1)).facts
    assert facts.value("operators.handover_us", RUN) == handed
