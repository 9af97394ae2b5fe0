"""What statistics tell by themselves: sums of kernels, of collectives and of host calls, without any start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from advisor.knowledge.without_steps import reworded
from advisor.model import Report, Text
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

TYPES = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def told(folder: Path) -> Report:
    return advise([folder], load_rules(), Options())


def exported(folder: Path) -> Path:
    output = folder / "PROF_000001_20260101000000000_ABCDEFGH" / "mindstudio_profiler_output"
    output.mkdir(parents=True, exist_ok=True)
    return output


def statistic(folder: Path, types: Sequence[tuple[str, str, int, float]]) -> Path:
    """(type, core, calls, microseconds) as msprof exports them."""
    whole = sum(us for *_, us in types)
    rows = [f"0,{t},{c},{n},{us},1,{us / n:.3f},{2 * us / n:.3f},{100 * us / whole:.3f}" for t, c, n, us in types]
    (exported(folder) / "op_statistic_20260101000000.csv").write_text("\n".join([TYPES, *rows]) + "\n")
    return folder


def network(draw: Random) -> list[tuple[str, str, int, float]]:
    """A network none of whose types stands out."""
    layers = draw.randint(20, 60) * 10
    return [
        ("MatMulV2", "AI_CORE", 4 * layers, 70.0 * 4 * layers),
        ("GroupedMatmul", "MIX_AIC", layers, 200.0 * layers),
        ("SparseAttention", "MIX_AIC", layers, 220.0 * layers),
        *((f"Norm{i}", "AI_VECTOR_CORE", 2 * layers, 20.0 * 2 * layers) for i in range(5)),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_headline_names_no_operator_that_is_next_to_nothing(tmp_path, seed):
    """What an operator on the AI CPU costs is at most its part of all kernels: one of 1 to 2 % is in the list of
    findings, one of 5 to 10 % is what the files show."""
    draw = Random(seed)
    said = []
    for name, low, high in (("little", 0.013, 0.024), ("much", 0.05, 0.1)):
        others = network(draw)
        us = draw.uniform(low, high) * sum(row[3] for row in others)
        report = told(statistic(tmp_path / name, [*others, ("SparseAttentionMetadata", "AI_CPU", 300, us)]))
        assert "COMP050" in [each.rule for each in report.findings]
        said.append("SparseAttentionMetadata" in report.summary.headline.en)
    assert said == [False, True]


@pytest.mark.parametrize("seed", range(4))
def test_short_kernels_that_take_most_of_a_statistic_are_told(tmp_path, seed):
    """How kernels follow each other, a table of sums does not show: no rule of sequences tells of short ones there."""
    draw = Random(seed)
    calls = draw.randint(100, 300)
    types = [
        ("TopKV2", "MIX_AIV", 2 * calls, draw.uniform(8, 19) * 2 * calls),
        ("Softmax", "AI_VECTOR_CORE", calls, 10.0 * calls),
        ("Gather", "AI_VECTOR_CORE", calls, 6.0 * calls),
    ]
    report = told(statistic(tmp_path, types))
    found = [each for each in report.findings if each.rule == "COMP085"]
    assert [each.subject.id for each in found] == ["TopKV2"]
    assert found[0].saving is None and found[0].severity == "low"


CALLS = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"


def calls(folder: Path, rows: Sequence[tuple[str, str, float, int, float]]) -> Path:
    """(level, interface, microseconds, calls, the longest of them) as msprof exports them."""
    lines = [f"host,{level},{name},{us},{n},{us / n:.3f},0.1,{longest},1" for level, name, us, n, longest in rows]
    (exported(folder) / "api_statistic_20260101000000.csv").write_text("\n".join([CALLS, *lines]) + "\n")
    return folder


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["MemCopySync", "StreamSynchronize"])
def test_calls_that_outlast_all_kernels_are_told(tmp_path, seed, name):
    """One thread makes its calls one after another: where those of one interface take several times as long as all
    kernels, the device idled. A first call that sets something up tells nothing, nor do calls of which most waited for
    the kernels."""
    draw = Random(seed)
    said = {}
    for case, factor, first in (("outlast", draw.uniform(2.3, 6), 0.0), ("wait", draw.uniform(0.5, 1.8), 0.0),
                                ("set-up", draw.uniform(0.3, 1.5), 4.0)):  # fmt: skip
        types = network(draw)
        kernels, count = sum(row[3] for row in types), sum(row[2] for row in types)
        folder = statistic(tmp_path / case, types)
        own = factor * kernels
        report = told(calls(folder, [
            ("runtime", "KernelLaunch", 4.0 * count, count, 90.0),
            ("runtime", "SetDevice", 9 * kernels, 500, 8 * kernels),
            ("runtime", name, own + first * kernels, count // 2, max(first * kernels, own / 50)),
        ]))  # fmt: skip
        said[case] = [each for each in report.findings if each.rule == "SCHED081"]
        if said[case]:
            evidence = {each.fact: each.value for each in said[case][0].evidence}
            assert evidence["host_api.repeated_us"] == pytest.approx(own * 49 / 50, rel=1e-6)
            assert name in said[case][0].message.en and name in said[case][0].message.zh
            assert said[case][0].title.en in report.summary.headline.en
    assert [bool(each) for each in said.values()] == [True, False, False]


@pytest.mark.parametrize(("each_us", "told_of"), [(8.0, True), (4.0, False)])
def test_a_host_of_several_devices_calls_for_all_of_them(tmp_path, each_us, told_of):
    """One process launches on three devices and sets the device before each launch, which is no set-up: each device's
    share of that is held against its kernels of 10 us, and twice as long is told."""
    types = [(device, f"Op{kind}", 100) for device in range(3) for kind in range(4)]
    rows = ["Device_id,OP Type,Core Type,Count,Total Time(us)"]
    rows += [f"{device},{name},AI_VECTOR_CORE,{count},{10 * count}" for device, name, count in types]
    (exported(tmp_path) / "op_statistic_20260101000000.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = told(calls(tmp_path, [
        ("acl", "aclrtSetDevice", 3 * each_us * 1200, 3 * 1200, 0.0), ("node", "launch", 4.0 * 1200, 1200, 90.0),
    ]))  # fmt: skip
    found = [each for each in report.findings if each.rule == "SCHED081"]
    assert [each.subject.id for each in found] == (["run"] if told_of else [])
    if found:
        assert "3 devices" in found[0].message.en and "3个设备" in found[0].message.zh
        assert {each.fact: each.value for each in found[0].evidence}["host_api.repeated_us"] == each_us * 1200
    assert not any("left out" in each.problem for each in report.problems)


def test_calls_of_a_process_of_which_the_device_recorded_a_part_are_not_compared(tmp_path):
    """The host counted three times as many launches as there are kernels: its calls are of more than they are."""
    types = network(Random(0))
    count = 3 * sum(row[2] for row in types)
    folder = statistic(tmp_path, types)
    report = told(calls(folder, [
        ("runtime", "KernelLaunch", 4.0 * count, count, 90.0),
        ("runtime", "MemCopySync", 9 * sum(row[3] for row in types), count, 90.0),
    ]))  # fmt: skip
    assert "SCHED081" not in [each.rule for each in report.findings]


COLLECTIVES = "Device_id,OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


@pytest.mark.parametrize("seed", range(4))
def test_collectives_of_a_table_of_their_own_count_once(tmp_path, seed):
    """msprof sums collectives up in a table of their own. They compute nothing; one call of many that takes half
    of all is where ranks met that began at different times, and counts for nothing."""
    draw = Random(seed)
    shares = {}
    for case, share, first in (("much", draw.uniform(0.25, 0.5), 0.0), ("little", draw.uniform(0.02, 0.15), 0.0),
                               ("once", draw.uniform(0.02, 0.15), draw.uniform(0.6, 2))):  # fmt: skip
        types = network(draw)
        kernels = sum(row[3] for row in types)
        folder, usual = statistic(tmp_path / case, types), share / (1 - share) * kernels
        count, once = draw.randint(200, 2000), max(first * kernels, usual / 50)
        rows = [("hcom_allReduce_", count, usual + once * (first > 0), once), ("hcom_broadcast_", 12, usual / 90, 9.0)]
        lines = [f"0,{name},{n},{us},1,{us / n},{longest},50" for name, n, us, longest in rows]
        table = exported(folder) / "communication_statistic_20260101000000.csv"
        table.write_text("\n".join([COLLECTIVES, *lines]) + "\n")
        report = told(folder)
        found = [each for each in report.findings if each.rule in ("COMM013", "COMM015")]
        facts = {each.fact: each.value for finding in found for each in finding.evidence}
        shares[case] = bool(found)
        if found:
            assert facts["operators.compute_us"] == pytest.approx(kernels, rel=1e-3)
            assert not report.problems
    assert shares == {"much": True, "little": False, "once": False}


def test_one_long_call_of_many_on_the_ai_cpu_is_told(tmp_path):
    """A table of sums tells how long the longest call takes: eleven short ones are no reason to replace an operator."""
    types = network(Random(1))
    us = 0.05 * sum(row[3] for row in types)
    said = []
    for case, longest in (("one", 0.9 * us), ("all", us / 11)):
        folder = statistic(tmp_path / case, types)
        table = next(folder.rglob("op_statistic*"))
        table.write_text(table.read_text() + f"0,IndexPut,AI_CPU,12,{us},1,{us / 12},{longest},5\n")
        (finding,) = (each for each in told(folder).findings if each.rule == "COMP050")
        said.append("One of its 12 calls alone" in finding.message.en)
        assert ("12次调用中有一次" in finding.message.zh) == said[-1]
    assert said == [True, False]


def test_advice_for_every_nth_step_is_of_steps_in_a_recording_without_them():
    """Figures are of the recording where nothing marks steps; the loop that shall read results less often has steps."""
    said = reworded(
        Text("read results back every n steps: 5 ms per step", "结果每n个step取回一次：每个step 5 ms，该step较长")
    )
    assert said == Text(
        "read results back every n steps: 5 ms in the recording", "结果每n个step取回一次：整段记录 5 ms，该记录较长"
    )


def test_a_thread_that_waits_for_callbacks_is_no_work_of_the_host(tmp_path):
    """It waits for as long as the process lives: what the others call is told, beside it and without it."""
    types = network(Random(0))
    kernels, count = sum(row[3] for row in types), sum(row[2] for row in types)
    for case, copies in (("waits", 0.5), ("copies", 3.0)):
        report = told(calls(statistic(tmp_path / case, types), [
            ("runtime", "KernelLaunch", 4.0 * count, count, 90.0),
            ("acl", "aclrtProcessReport", 9 * kernels, 1700, 5e5),
            ("runtime", "MemCopySync", copies * kernels, count, 90.0),
        ]))  # fmt: skip
        found = [each.message.en for each in report.findings if each.rule == "SCHED081"]
        assert ["MemCopySync" in each and "ProcessReport" not in each for each in found] == [True] * (copies > 1)


def test_a_few_kernels_one_by_one_take_nothing_from_the_sums(tmp_path):
    """Beside the statistic lies a table of kernels that was cut to its first rows: the host's calls are those of all
    kernels that the statistic counts, with it as without it."""
    types = network(Random(0))
    kernels, count = sum(row[3] for row in types), sum(row[2] for row in types)
    folder = calls(statistic(tmp_path, types), [
        ("runtime", "KernelLaunch", 4.0 * count, count, 90.0), ("runtime", "MemCopySync", 3 * kernels, count, 90.0),
    ])  # fmt: skip
    head = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)"
    rows = [f"{types[0][0]}_{n},{types[0][0]},AI_CORE,{1_700_000_000_000_000 + 40 * n}.0,20.0,20.0" for n in range(30)]
    (exported(folder) / "op_summary_20260101000000.csv").write_text("\n".join([head, *rows]) + "\n")
    assert [each.rule for each in told(folder).findings if each.rule == "SCHED081"] == ["SCHED081"]


def test_a_graph_that_is_captured_makes_none_of_the_calls_before(tmp_path):
    """Launches one by one warm up for it: nobody is told to run as a graph what runs as one."""
    types = network(Random(0))
    kernels, count = sum(row[3] for row in types), sum(row[2] for row in types)
    told_by = {}
    for case, captures in (("eager", ()), ("captured", (("acl", "aclmdlRICaptureBegin", 3000.0, 2, 1800.0),))):
        report = told(calls(statistic(tmp_path / case, types), [
            ("node", "launch", 4.0 * count, count, 90.0), ("acl", "aclnnMul", 4 * kernels, count, 90.0), *captures,
        ]))  # fmt: skip
        told_by[case] = "SCHED081" in {each.rule for each in report.findings}
    assert told_by == {"eager": True, "captured": False}


@pytest.mark.parametrize(("beside", "serves"), [("KvRmsNormRopeCache", True), ("FlashAttentionScoreGrad", False)])
def test_advice_for_sums_is_that_for_what_their_kernels_do(tmp_path, beside, serves):
    """No table tells steps or times, but kernels of a cache of keys serve and gradients train: exchanges of a server
    hide behind no backward pass, and those of a training do."""
    types = [
        ("MatMulV2", "AI_CORE", 400, 90_000.0), ("hcom_allGather_", "COMMUNICATION", 400, 60_000.0),
        (beside, "AI_VECTOR_CORE", 400, 4_000.0),
    ]  # fmt: skip
    (found,) = (each for each in told(statistic(tmp_path, types)).findings if each.rule == "COMM015")
    said = {each.id for each in found.remedies}
    assert said == {"shrink-serving-exchange" if serves else "overlap-or-shrink"}


@pytest.mark.parametrize(("beside", "operator"), [
    ("LayerNormV3", "npu_fused_infer_attention_score"), ("LayerNormV3Grad", "npu_fusion_attention"),
])  # fmt: skip
def test_attention_is_fused_by_what_the_run_can_use(tmp_path, beside, operator):
    """A forward pass alone takes the fused operator of inference; where gradients are, the one that has a backward."""
    output = tmp_path / "worker_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    types = [
        ("BatchMatMulV2", "AI_CORE", 400, 60_000.0), ("SoftmaxV2", "AI_VECTOR_CORE", 200, 20_000.0),
        (beside, "AI_VECTOR_CORE", 200, 8_000.0),
    ]  # fmt: skip
    rows = [f"0,{t},{c},{n},{us},1,{us / n:.3f},{2 * us / n:.3f},{us / 880:.3f}" for t, c, n, us in types]
    (output / "op_statistic.csv").write_text("\n".join([TYPES, *rows]) + "\n")
    (found,) = (each for each in told(tmp_path).findings if each.rule == "COMP061")
    assert operator in found.remedies[0].snippet
