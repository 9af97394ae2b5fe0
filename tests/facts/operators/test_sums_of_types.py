"""What a table that only sums kernels up tells, and what it leaves open."""

from __future__ import annotations

import pytest

from advisor.compare import compare
from advisor.pipeline import Options, advise
from advisor.render import render
from advisor.ruleset.files.loader import load_rules

TYPES = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
STEPS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"
MATMUL, SWIGLU = ("MatMulV2", "AI_CORE", 400, 90_000.0), ("SwiGlu", "AI_VECTOR_CORE", 400, 10_000.0)


def _report(folder, rows, steps=()):
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{c},{k},{us},{us / k / 2},{us / k},{us / k * 2},{100 * us / whole}" for n, c, k, us in rows]
    folder.mkdir(exist_ok=True)
    (folder / "op_statistic.csv").write_text("\n".join([TYPES, *lines]) + "\n", encoding="utf-8")
    if steps:
        lines = [f"0,{i},{c},0,0,0,{f},{c + f}" for i, (c, f) in enumerate(steps, 1)]
        (folder / "step_trace_time.csv").write_text("\n".join([STEPS, *lines]) + "\n", encoding="utf-8")
    return advise([folder], load_rules(), Options())


def _said(finding):
    return finding.message.en.replace("\xa0", " ")


def _on_aicpu(report):
    return next((f for f in report.findings if f.rule == "COMP050"), None)


def test_a_launcher_that_computing_leaves_no_room_for_delays_nobody(tmp_path):
    """Kernels sum up to twice of what the steps compute: what serves them on the AI CPU runs beside them."""
    rows = [
        ("fused_network", "MIX_AIC", 4, 124_000.0),
        ("serve_network", "AI_CPU", 4, 124_400.0),
        ("Add", *SWIGLU[1:3], 5e3),
    ]
    report = _report(tmp_path, rows, [(32_300.0, 48_000.0)] * 4)
    finding = _on_aicpu(report)
    assert finding.severity.value == "low" and "nobody waits for it" in finding.message.en
    assert report.summary.direction == "scheduling"


def test_an_operator_on_the_ai_cpu_that_computing_holds_is_blamed(tmp_path):
    """Computing is as long as all kernels: nothing runs beside it."""
    rows = [MATMUL, SWIGLU, ("ScatterElements", "AI_CPU", 4, 60_000.0)]
    finding = _on_aicpu(_report(tmp_path, rows, [(40_000.0, 1_000.0)] * 4))
    assert finding.severity.value == "critical"
    assert finding.saving.us == pytest.approx(15_000, rel=0.01)


def test_sums_of_more_than_the_steps_bound_nothing(tmp_path):
    """The statistic covers twice as many steps as the step table: its kernels do not fit in, and tell no overlap."""
    rows = [(n, c, 2 * k, 2 * us) for n, c, k, us in (MATMUL, SWIGLU, ("ScatterElements", "AI_CPU", 4, 20_000.0))]
    finding = _on_aicpu(_report(tmp_path, rows, [(30_000.0, 1_000.0)] * 4))
    assert "delays the operators that depend on it" in finding.message.en


@pytest.mark.parametrize("told", [True, False])
def test_a_share_of_kernels_weighs_only_in_a_step_that_somebody_timed(tmp_path, told):
    """Without its column of computing the step table times nothing: four tenths of the kernel time may be a hundredth
    of the step. The type is told all the same, and what its weight rests on."""
    rows = [MATMUL, SWIGLU, ("ScatterElements", "AI_CPU", 4, 60_000.0)]
    report = _report(tmp_path, rows, [(40_000.0, 1_000.0)] * 4)
    if not told:
        table = tmp_path / "step_trace_time.csv"
        lines = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()]
        table.write_text("\n".join(",".join(line[:2] + line[3:]) for line in lines) + "\n", encoding="utf-8")
        report = advise([tmp_path], load_rules(), Options())
    finding = _on_aicpu(report)
    assert finding.subject.id == "ScatterElements"
    assert finding.severity.value == ("critical" if told else "low")
    assert any("how long the step lasts" in doubt.en for doubt in finding.doubts) != told
    assert report.summary.direction == ("computation" if told else "undetermined")


@pytest.mark.parametrize("core", ["AI_CPU", "HCCL"])
def test_collectives_of_a_statistic_are_told(tmp_path, core):
    """Whether computation hides them, nobody knows; that they take four tenths of the device's time is told."""
    name = "allreduceAicpuKernel" if core == "AI_CPU" else "hcom_allReduce_"
    report = _report(tmp_path, [MATMUL, SWIGLU, (name, core, 800, 70_000.0)])
    (finding,) = (f for f in report.findings if f.rule == "COMM015")
    assert "41 %" in _said(finding) and finding.saving is None
    assert report.summary.direction == "undetermined"
    assert "Exchanges between ranks" in report.summary.headline.en


def test_a_collective_and_what_carries_it_out_count_once(tmp_path):
    """Two accounts of one exchange: the library's own, and the kernel's that serves it."""
    rows = [
        MATMUL,
        SWIGLU,
        ("hcom_allReduce_", "HCCL", 400, 70_000.0),
        ("allreduceAicpuKernel", "AI_CPU", 400, 69_000.0),
    ]
    (finding,) = (f for f in _report(tmp_path, rows).findings if f.rule == "COMM015")
    assert "70 ms" in _said(finding) and "41 %" in _said(finding)


def test_the_dispatch_of_experts_is_an_exchange(tmp_path):
    """Ranks wait inside of it: it is no operator to compute less in."""
    rows = [MATMUL, SWIGLU, ("MoeDistributeDispatchV2", "MIX_AIV", 40, 150_000.0)]
    report = _report(tmp_path, rows)
    (finding,) = (f for f in report.findings if f.rule == "COMM015")
    assert "MoeDistributeDispatchV2" in _said(finding) and "60 %" in _said(finding)


def test_few_collectives_are_not_told(tmp_path):
    """A tenth is easily hidden."""
    report = _report(tmp_path, [MATMUL, SWIGLU, ("hcom_allReduce_", "HCCL", 400, 11_000.0)])
    assert not [f for f in report.findings if f.rule == "COMM015"]


def test_without_their_number_calls_are_not_counted(tmp_path):
    """Somebody kept three columns: what has run was not called zero times."""
    rows = ["OP Type,Core Type,Total Time(us)", "GroupedMatmul,MIX_AIC,130", "Transpose,AI_VECTOR_CORE,90"]
    (tmp_path / "op_statistic.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    assert {f.rule for f in report.findings} >= {"COMP020", "COMP080"}
    assert not [f for f in report.findings if "calls" in f.message.en]


def test_two_statistics_compare_by_their_kernel_time(tmp_path):
    """Nothing tells how long either took; what their kernels take is said."""
    before = _report(tmp_path / "before", [MATMUL, SWIGLU])
    after = _report(tmp_path / "after", [("SuperKernel", "MIX_AIC", 400, 95_000.0)])
    found = compare(before, after)
    metric = found.metric("operators.compute_us")
    assert (metric.before, metric.after) == (100_000.0, 95_000.0)
    assert "kernel time in the recording" in render(found, "text")


def test_two_statistics_name_the_types_that_take_longer(tmp_path):
    """The same calls, one type of which takes half as long again: it accounts for all of the difference."""
    slower = (MATMUL[0], MATMUL[1], MATMUL[2], MATMUL[3] * 1.5)
    found = compare(_report(tmp_path / "before", [MATMUL, SWIGLU]), _report(tmp_path / "after", [slower, SWIGLU]))
    whole, member = (line for line in found.accounts if not line.rest)
    assert (whole.fact, member.subject.id) == ("operators.compute_us", MATMUL[0])
    assert member.difference == pytest.approx(MATMUL[3] / 2) and member.share == pytest.approx(1.0)
    assert "in the step" not in render(found, "text")


def test_a_statistic_beside_steps_is_not_divided(tmp_path):
    """Of one side a step is known, of the other the sum of a recording: their difference is none."""
    stepped = _report(tmp_path / "before", [MATMUL, SWIGLU], [(30_000.0, 1_000.0)] * 4)
    assert not compare(stepped, _report(tmp_path / "after", [MATMUL, SWIGLU])).accounts


def _ranks(folder, factors, attention=1.0):
    """A statistic of each rank, whose types take `factors` times as long; the attention `attention` times more."""
    for rank, factor in enumerate(factors):
        rows = [(n, c, k, us * factor) for n, c, k, us in (MATMUL, SWIGLU, ("RmsNorm", "AI_VECTOR_CORE", 800, 9_000.0))]
        rows.append(("FlashAttentionScore", "MIX_AIC", 100, 40_000.0 * factor * (attention if factor > 1 else 1)))
        lines = [f"{rank},{n},{c},{k},{us},{us / k},{us / k},{us / k},0" for n, c, k, us in rows]
        target = folder / f"rank_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        target.mkdir(parents=True)
        (target / "op_statistic.csv").write_text("\n".join([TYPES, *lines]) + "\n", encoding="utf-8")
    report = advise([folder], load_rules(), Options())
    return [f for f in report.findings if f.rule == "CLUS019"]


def test_a_rank_that_takes_longer_for_all_types_is_a_slow_device(tmp_path):
    """Four ranks call the same types as often; one of them takes 1.4 times as long for each."""
    (finding,) = _ranks(tmp_path, [1.0, 1.01, 1.4, 0.99])
    assert finding.subject.id == "2" and "what a slow device does" in finding.message.en


def test_a_rank_with_larger_inputs_may_be_one(tmp_path):
    """Its attention takes far more than its products: that is what longer inputs do."""
    (finding,) = _ranks(tmp_path, [1.0, 1.3], attention=1.3)
    assert finding.subject.id == "1" and "or its inputs are larger" in finding.message.en


def test_ranks_that_differ_by_little_are_alike(tmp_path):
    """Cards differ by a few percent."""
    assert not _ranks(tmp_path, [1.0, 1.05, 0.97])


CALLS = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"


def _waiting(folder, waits, selected):
    """Ten steps of a decoder that idles for half of each, with so many waits and operators that select by value."""
    folder.mkdir(exist_ok=True)
    lines = ["host,node,launch,21500,860,25,5,90,1", f"host,acl,aclrtSynchronizeStream,190000,{waits},2500,2,8900,1"]
    (folder / "api_statistic.csv").write_text("\n".join([CALLS, *lines]) + "\n", encoding="utf-8")
    chosen = [("NonZero", "MIX_AIV", selected, 5.0 * selected)] if selected else []
    return _report(folder, [MATMUL, SWIGLU, *chosen], [(50_000.0, 50_000.0)] * 10)


def test_results_that_size_themselves_are_what_the_host_waits_for(tmp_path):
    """Six masks a step are turned into indices, and the host waits seven times a step: it must know how many."""
    report = _waiting(tmp_path, 70, 60)
    finding = next(f for f in report.findings if f.rule == "SCHED078")
    assert "NonZero" in _said(finding) and "per step: 6" in _said(finding)
    assert finding.saving.us_per_step == pytest.approx(19_000)
    assert report.summary.direction == "scheduling"


@pytest.mark.parametrize(("waits", "selected"), [(70, 0), (700, 60), (20, 60)])
def test_other_waits_are_not_blamed_on_them(tmp_path, waits, selected):
    """No such operator; ten times as many waits; and fewer waits than such operators, as inside of a graph."""
    assert not [f for f in _waiting(tmp_path, waits, selected).findings if f.rule == "SCHED078"]


def test_what_takes_most_of_a_table_of_sums_is_what_it_shows(tmp_path):
    """Conversions of a fifteenth promise nothing without steps: beside a scatter of 85 % they are not the headline;
    conversions of a sixth beside products of two thirds are."""
    scattered = [("ScatterNdUpdate", "AI_VECTOR_CORE", 33, 1_700_000.0), ("Transpose", "AI_VECTOR_CORE", 66, 130_000.0)]
    small = [("Relu", "AI_VECTOR_CORE", 33, 22_000.0), ("BatchMatMulV2", "AI_CORE", 33, 100_000.0)]
    told = _report(tmp_path / "a", [*scattered, *small]).summary.headline.en
    assert "ScatterNdUpdate" in told and "Transpose" not in told
    usual = [("MatMulV2", "AI_CORE", 33, 660_000.0), ("Transpose", "AI_VECTOR_CORE", 66, 160_000.0)]
    rest = [(f"Op{n}", "AI_VECTOR_CORE", 33, 18_000.0) for n in range(10)]
    assert "Transpose" in _report(tmp_path / "b", [*usual, *rest]).summary.headline.en
