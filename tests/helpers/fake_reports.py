"""Reports as the pipeline writes them, made up, and a hypothesis strategy for any report at all."""

from __future__ import annotations

import math
import random

from hypothesis import strategies as st

from advisor.model import (
    COLLECTION,
    RUN,
    SUBJECT_KINDS,
    Check,
    Confidence,
    Direction,
    Evidence,
    Fact,
    Finding,
    MissingEvidence,
    Outcome,
    Parallelism,
    Problem,
    ProfileInfo,
    Remedy,
    Report,
    Role,
    Saving,
    Severity,
    Source,
    Subject,
    Summary,
    Text,
    Verify,
)

HOSTILE = (
    "<script>alert('x')</script>",
    '"><img src=x onerror=window.hacked=1>',
    "a|b`c`*d*_e_[f](http://evil.example)#g",
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "evil\u202egnp.exe\u2066",
    "line one\nline two\r\n::error::injected",
    "😀名字' or 1=1 --",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea></script><svg onload=window.hacked=1>",
    "@team javascript:window.hacked=1 %0A::error::x, y: z",
    "W" * 3000,
)


def _text(en: str, zh: str) -> Text:
    return Text(en, zh)


SPLIT = Remedy(
    "split-allreduce",
    _text("Split the gradient AllReduce", "切分梯度AllReduce"),
    _text(
        "Fuse gradients in three groups so that the first two hide behind backward.",
        "把梯度分三组融合，前两组由反向计算掩盖。",
    ),
    parameter="all_reduce_fusion_config",
    proposed=(85, 160),
    snippet="mindspore.set_auto_parallel_context(\n    all_reduce_fusion_config=[85, 160],\n)",
    verify=Verify("step.exposed_communication_share", "falls"),
    effort="minutes",
    risk=_text("none for accuracy", "不影响精度"),
)
WORKERS = Remedy(
    "raise-workers",
    _text("Give Map(2) more workers", "增加Map(2)的并行数"),
    _text("Run the decode with 6 workers instead of 2.", "解码并行数从2提高到6。"),
    parameter="num_parallel_workers",
    current=2,
    proposed=6,
    snippet='dataset = dataset.map(decode, input_columns=["image"], num_parallel_workers=6)',
    verify=Verify("pipeline_op.busy_share", "falls"),
    effort="minutes",
)
CHECKS = (
    Check("COMM001", Outcome.FAIL),
    Check("DATA001", Outcome.PASS, title=Text("The device waits for data", "设备等待数据")),
    Check("DATA002", Outcome.PASS),
    Check("OPER004", Outcome.PASS),
    Check("MEM001", Outcome.NO_DATA, ("memory.peak_bytes",), "no memory was recorded"),
    Check("LINK001", Outcome.NOT_APPLICABLE, (), "one rank"),
)
MISSING = (
    MissingEvidence("operator_memory.csv", "profile_memory=True", ("MEM001",)),
    MissingEvidence("communication.json", "profiler_level=ProfilerLevel.Level1", ("COMM010", "COMM011", "LINK001")),
)


def healthy() -> Report:
    """One rank that computes nearly all the time."""
    breakdown = {"computing": 0.962, "exposed_communication": 0.021, "idle": 0.017}
    return Report(
        ProfileInfo("runs/resnet50_ascend_ms", "mindspore", "ascend_ms", (0,), 1, tuple("56789"), (("4", "warm-up"),)),
        Summary(
            "healthy",
            _text("No bottleneck worth acting on: 96 % of the step computes.", "没有值得处理的瓶颈：单步96 %在计算。"),
            84210.0,
            breakdown,
        ),
        checked=CHECKS[1:],
        missing_evidence=MISSING,
        facts=(Fact("step.time_us", RUN, 84210.0, 5),),
        engine="native",
        charts={"breakdown_steps": _breakdown([str(step) for step in range(5, 10)], 84210.0, breakdown, 1)},
    )


def _breakdown(labels: list[str], step_us: float, shares: dict[str, float], seed: int) -> dict:
    noise = random.Random(seed)
    rows = [
        {"label": label, "values": [round(step_us * share * noise.uniform(0.95, 1.05), 1) for share in shares.values()]}
        for label in labels
    ]
    return {"parts": list(shares), "rows": rows}


def data_bound() -> Report:
    """A single rank that waits for its data pipeline: one slow decode."""
    breakdown = {"computing": 0.31, "exposed_communication": 0.0, "idle": 0.69}
    culprit = Subject("pipeline_op", "Map(2)")
    root = Finding(
        "F1",
        "DATA010",
        "data-processing-bottleneck",
        Direction.SCHEDULING,
        Role.ROOT_CAUSE,
        Severity.CRITICAL,
        Confidence.HIGH,
        culprit,
        _text("One data operation limits the pipeline", "单个数据操作限制了数据处理速度"),
        _text(
            "Map(2) is busy 98 % of the time on 2 workers while the step waits 41 ms for data.",
            "Map(2)的2个并行线程98 %的时间忙碌，而每步等待数据41 ms。",
        ),
        (
            Evidence(
                "pipeline_op.busy_share",
                0.9812345,
                "ratio",
                "> 0.85",
                culprit,
                Source("ASCEND_PROFILER_OUTPUT/dataset.csv", ("Occurrences", "Avg. time (us)")),
            ),
            Evidence(
                "step.idle_us",
                41230.7,
                "us",
                "> 5000",
                RUN,
                Source("ASCEND_PROFILER_OUTPUT/step_trace_time.csv", ("Free",), ("50", "51")),
            ),
        ),
        explains=("F2", "F3"),
        saving=Saving(36100.0, 0.605, _text("until Batch(1) limits", "直到Batch(1)成为瓶颈")),
        remedies=(WORKERS,),
        statements=("S07", "S71"),
        references=({"document": "Data pipeline", "section": "Operator parallelism"},),
        doubts=(
            _text(
                "Only 2 steps were collected; 10 or more show the spread.", "只采集了2个step；10个以上才能看出波动。"
            ),
        ),
    )
    starved = Finding(
        "F2",
        "DATA001",
        "data-sending-bottleneck",
        Direction.SCHEDULING,
        Role.SYMPTOM,
        Severity.HIGH,
        Confidence.MEDIUM,
        RUN,
        _text("The device waits for data", "设备等待数据"),
        _text("The host queue is empty 93 % of the time.", "主机队列93 %的时间为空。"),
        (Evidence("queue.host_empty_share", 0.93, "ratio", "> 0.3"),),
        because=("F1",),
    )
    gaps = Finding(
        "F3",
        "IDLE001",
        "device-idle-gaps",
        Direction.SCHEDULING,
        Role.SYMPTOM,
        Severity.HIGH,
        Confidence.HIGH,
        RUN,
        _text("The device is idle", "设备空闲"),
        _text("69 % of the step nothing runs on the device.", "单步69 %的时间设备上没有任务。"),
        (Evidence("step.idle_share", 0.69, "ratio", "> 0.1"),),
        because=("F1",),
        explains=("F2",),
    )
    small = Finding(
        "F4",
        "OPER009",
        "conversion-overhead",
        Direction.COMPUTATION,
        Role.ROOT_CAUSE,
        Severity.LOW,
        Confidence.LOW,
        Subject("operator_type", "TransData"),
        _text("Format conversions", "格式转换"),
        _text("57 TransData take 1.2 ms of a step.", "57个TransData占单步1.2 ms。"),
        (Evidence("operator_type.time_us", 1203.1, "us", "> 1000"),),
        saving=Saving(900.0, 0.015, _text("upper bound", "上限")),
        status="experimental",
    )
    nodes = [
        {"id": 0, "type": "EpochCtrl", "name": "EpochCtrl(0)", "workers": None, "busy": None, "us": None},
        {"id": 1, "type": "Batch", "name": "Batch(1)", "workers": 8, "busy": 0.22, "us": 1800.0},
        {"id": 2, "type": "Map", "name": "Map(2)", "workers": 2, "busy": 0.98, "us": 38400.0},
        {"id": 3, "type": "Shuffle", "name": "Shuffle(3)", "workers": None, "busy": 0.04, "us": 120.0},
        {"id": 4, "type": "TFReader", "name": "TFReader(4)", "workers": 4, "busy": 0.31, "us": 950.0},
    ]
    edges = [
        {"source": 1, "target": 0, "use": 0.02, "empty": 0.94, "capacity": 16},
        {"source": 2, "target": 1, "use": 0.05, "empty": 0.81, "capacity": 16},
        {"source": 3, "target": 2, "use": 0.97, "empty": 0.0, "capacity": 16},
        {"source": 4, "target": 3, "use": 0.91, "empty": 0.01, "capacity": 16},
    ]
    return Report(
        ProfileInfo(
            "runs/data_bound_ascend_ms",
            "mindspore",
            "ascend_ms",
            (0,),
            1,
            ("50", "51"),
            (("49", "warm-up"),),
            versions={"mindspore": "2.10.0"},
        ),
        Summary(
            "scheduling",
            _text("69 % of the step waits for data: Map(2) is too slow.", "单步69 %在等待数据：Map(2)太慢。"),
            59700.0,
            breakdown,
        ),
        (root, starved, gaps, small),
        CHECKS[1:],
        MISSING,
        facts=(Fact("step.time_us", RUN, 59700.0, 2),),
        engine="native",
        charts={
            "breakdown_steps": _breakdown(["50", "51"], 59700.0, breakdown, 2),
            "pipeline": {"nodes": nodes, "edges": edges},
            "operator_types": [
                {"name": name, "us": us, "share": us / 18500.0, "count": count, "core": core}
                for name, us, count, core in (
                    ("Conv2D", 9200.0, 53, "AI_CORE"),
                    ("Conv2DBackpropFilter", 4100.0, 53, "AI_CORE"),
                    ("TransData", 1203.1, 57, "AI_VECTOR_CORE"),
                    ("BNTrainingReduce", 900.0, 53, "AI_VECTOR_CORE"),
                    ("MatMul", 410.0, 3, "AI_CORE"),
                    ("ReLU", 220.0, 49, "AI_VECTOR_CORE"),
                )
            ],
            "timeline": [_timeline("50", 0, "typical", 59700.0, 4)],
        },
    )


def _timeline(step: str, rank: int, which: str, us: float, seed: int) -> dict:
    noise = random.Random(seed)
    computing, communication, idle, at = [], [], [], 0.0
    while at < us:
        length = noise.uniform(us / 60, us / 20)
        kind = noise.choice((computing, computing, communication, idle))
        kind.append([round(at, 1), round(min(length, us - at), 1)])
        at += length
    lanes = [("computing", computing), ("exposed_communication", communication), ("idle", idle)]
    return {
        "step": step,
        "rank": rank,
        "which": which,
        "duration_us": us,
        "lanes": [{"name": name, "spans": spans} for name, spans in lanes],
    }


def _course(ranks) -> dict:
    """One step: rank 3 computes longer, all meet in one collective."""
    rows = [
        {"rank": r, "computing": [[0.0, 140000.0 if r == 3 else 98000.0]],
         "waiting": [] if r == 3 else [[98000.0, 42000.0]], "communication": [[140000.0, 60000.0]]}
        for r in list(ranks)[:8]
    ]  # fmt: skip
    return {
        "step": "50", "duration_us": 200000.0, "ranks": len(ranks), "rows": rows,
        "links": [{"name": "allReduce", "group": "g", "first": [0, 98000.0], "last": [3, 140000.0], "members": 8}],
        "path": [[3, 0.0, 140000.0, "computing"], [3, 140000.0, 200000.0, "communication"]],
    }  # fmt: skip


def cluster(ranks: int = 8) -> Report:
    """Ranks that wait for rank 3, which has a slow link, too."""
    breakdown = {"computing": 0.42, "exposed_communication": 0.47, "idle": 0.11}
    everyone = tuple(range(ranks))
    late = Subject("rank", "3", (3,))
    findings = [
        Finding(
            "F1",
            "RANK003",
            "slow-compute-rank",
            Direction.COMPUTATION,
            Role.ROOT_CAUSE,
            Severity.HIGH,
            Confidence.HIGH,
            late,
            _text("A rank computes more slowly than its peers", "某卡计算慢于同组"),
            _text(
                "Rank 3 computes 142 ms a step, its peers 98 ms; all of them wait for it.",
                "卡3每步计算142 ms，同组98 ms；其他卡都在等它。",
            ),
            (
                Evidence(
                    "rank.compute_us",
                    142310.0,
                    "us",
                    "> 108000",
                    late,
                    Source("rank3/ASCEND_PROFILER_OUTPUT/step_trace_time.csv", ("Computing",), ("50",)),
                ),
            ),
            explains=("F3", "F4"),
            saving=Saving(
                44000.0, 0.19, _text("the step replayed with rank 3 as fast as the median", "假设卡3达到中位数速度重放")
            ),
            remedies=(
                Remedy(
                    "check-host",
                    _text("Check the card of rank 3", "检查卡3"),
                    _text("Compare frequency and temperature with rank 2.", "与卡2比较频率和温度。"),
                    snippet="npu-smi info -t common -i 3",
                    verify=Verify("rank.compute_us", "falls"),
                ),
            ),
            statements=("S17", "S29"),
            references=({"document": "Cluster", "section": "Slow ranks"},),
        ),
        Finding(
            "F2",
            "COMM001",
            "allreduce-not-overlapped",
            Direction.COMMUNICATION,
            Role.ROOT_CAUSE,
            Severity.MEDIUM,
            Confidence.MEDIUM,
            RUN,
            _text("The gradient AllReduce is not hidden", "梯度AllReduce未被掩盖"),
            _text("One fused AllReduce of 31 ms runs after backward.", "一个31 ms的融合AllReduce在反向之后执行。"),
            (
                Evidence("step.exposed_communication_share", 0.47, "ratio", "> 0.1"),
                Evidence("allreduce.count", 1, "count", "< 2"),
            ),
            saving=Saving(21000.0, 0.09, _text("upper bound: two thirds hidden", "上限：掩盖三分之二")),
            remedies=(SPLIT,),
            statements=("S19",),
        ),
        Finding(
            "F3",
            "COMM005",
            "exposed-communication",
            Direction.COMMUNICATION,
            Role.SYMPTOM,
            Severity.HIGH,
            Confidence.HIGH,
            RUN,
            _text("Communication is exposed", "通信未被掩盖"),
            _text("47 % of the step is communication that nothing hides.", "单步47 %是未被掩盖的通信。"),
            (Evidence("step.exposed_communication_share", 0.47, "ratio", "> 0.10"),),
            because=("F1", "F2"),
        ),
        Finding(
            "F4",
            "COMM007",
            "waiting-on-slow-rank",
            Direction.COMMUNICATION,
            Role.SYMPTOM,
            Severity.HIGH,
            Confidence.HIGH,
            Subject("collective", "hcom_allReduce_", everyone),
            _text("Collectives wait for the last rank", "通信等待最慢的卡"),
            _text("In 9 of 10 AllReduce rank 3 comes last.", "10次AllReduce中9次卡3最后到达。"),
            because=("F1",),
        ),
        Finding(
            "F5",
            "LINK001",
            "slow-link",
            Direction.COMMUNICATION,
            Role.ROOT_CAUSE,
            Severity.MEDIUM,
            Confidence.LOW,
            Subject("link", "1-2", (1, 2)),
            _text("A link is slow", "链路慢"),
            _text("Link 1-2 moves 4.1 GB/s, others 17.9 GB/s.", "链路1-2为4.1 GB/s，其他为17.9 GB/s。"),
            (Evidence("link.bytes_per_s", 4.1e9, "bytes_per_s", "< 10e9", Subject("link", "1-2", (1, 2))),),
            statements=("S24",),
        ),
        Finding(
            "F6",
            "EVID001",
            "too-few-samples",
            Direction.EVIDENCE,
            Role.CONTRIBUTING,
            Severity.LOW,
            Confidence.HIGH,
            COLLECTION,
            _text("Few steps", "step太少"),
            _text("Two steps were collected.", "只采集了2个step。"),
        ),
    ]
    noise = random.Random(7)
    shown = list(range(min(ranks, 16)))
    links = [
        [a, b, 4.1e9, 0.23] if (a, b) == (1, 2) else [a, b, round(noise.uniform(17e9, 19e9), -6), 1.0]
        for a in shown
        for b in shown
        if a != b
    ]
    lateness = sorted(
        ({"rank": rank, "us": 44100.0 if rank == 3 else round(noise.uniform(0, 900), 1)} for rank in everyone),
        key=lambda row: -row["us"],
    )
    return Report(
        ProfileInfo(
            "runs/pangu_cluster",
            "pytorch",
            "ascend_pt",
            everyone,
            ranks,
            ("50", "51"),
            (("49", "warm-up"),),
            Parallelism(ranks // 2, 1, 2, None, "profiler_metadata.json"),
            ("Ascend910B",),
            {"cann": "8.0"},
        ),
        Summary(
            "computation",
            _text("Rank 3 is slow and everyone waits for it: 19 % of the step.", "卡3慢，其他卡都在等：占单步19 %。"),
            232000.0,
            breakdown,
        ),
        tuple(findings),
        CHECKS,
        MISSING[:1],
        (Problem("rank5/kernel_details.csv", "truncated after 1843 rows; the rest was not read"),),
        (Fact("step.time_us", RUN, 232000.0, 2), Fact("rank.compute_us", late, 142310.0, 2)),
        "durable",
        {
            "breakdown_steps": _breakdown(["50", "51"], 232000.0, breakdown, 3),
            "breakdown_ranks": _breakdown([str(rank) for rank in everyone], 232000.0, breakdown, 4),
            "link_matrix": [
                {
                    "transport": "HCCS",
                    "of": "rank",
                    "labels": [str(rank) for rank in shown],
                    "grouped_by": "host",
                    "groups": [{"name": "a", "at": 0}, {"name": "b", "at": len(shown) // 2}],
                    "cells": links,
                }
            ],
            "rank_steps": {
                "ranks": list(everyone),
                "steps": ["50", "51"],
                "parts": [{"name": "computing", "us": [[142310 if r == 3 else 100000] * 2 for r in everyone]}],
            },
            "step_ranks": _course(everyone),
            "lateness": lateness,
            "stages": [
                {
                    "stage": stage,
                    "ranks": [rank for rank in everyone if rank % 2 == stage],
                    "compute_us": us,
                    "bubble_us": bubble,
                }
                for stage, us, bubble in ((0, 142310.0, 12000.0), (1, 98200.0, 55000.0))
            ],
            "memory": [
                {
                    "rank": rank,
                    "capacity_bytes": 64e9,
                    "time_us": [i * 500.0 for i in range(120)],
                    "reserved_bytes": [40e9 + 9e9 * math.sin(i / 11 + rank) for i in range(120)],
                    "allocated_bytes": [31e9 + 8e9 * math.sin(i / 11 + rank) for i in range(120)],
                }
                for rank in everyone[:4]
            ],
            "timeline": [_timeline("50", 0, "typical", 229000.0, 5), _timeline("51", 3, "worst", 262000.0, 6)],
        },
    )


def hostile() -> Report:
    """Every text a profile can bring is an attack."""
    findings = tuple(
        Finding(
            f"F{index}",
            f"X{index:03}",
            f"acme/{index}",
            Direction.COMPUTATION,
            Role.ROOT_CAUSE,
            Severity.HIGH,
            Confidence.LOW,
            Subject("operator_type", name, (0,)),
            _text(name, name),
            _text(f"{name} is slow", f"{name}慢"),
            (Evidence(name, name, "text", name, Subject("operator_type", name), Source(name, (name,), (name,))),),
            saving=Saving(1000.0 + index, 0.01, _text(name, name)),
            remedies=(
                Remedy(
                    name,
                    _text(name, name),
                    _text(name, name),
                    name,
                    name,
                    (name,),
                    name,
                    Verify(name, name),
                    name,
                    _text(name, name),
                ),
            ),
            references=({"document": name, "section": name},),
            doubts=(_text(name, name),),
        )
        for index, name in enumerate(HOSTILE, 1)
    )
    names = [
        {"name": name, "us": 10.0 + index, "share": 0.1, "count": 1, "core": name} for index, name in enumerate(HOSTILE)
    ]
    return Report(
        ProfileInfo(
            HOSTILE[0],
            HOSTILE[1],
            HOSTILE[2],
            (0,),
            1,
            HOSTILE,
            ((HOSTILE[0], HOSTILE[1]),),
            devices=HOSTILE,
            versions=dict.fromkeys(HOSTILE, HOSTILE[0]),
        ),
        Summary("computation", _text(HOSTILE[0], HOSTILE[8]), 1000.0, {"computing": 0.5, HOSTILE[0]: 0.5}),
        findings,
        tuple(Check(name, Outcome.NO_DATA, (name,), name) for name in HOSTILE),
        tuple(MissingEvidence(name, name, (name,)) for name in HOSTILE),
        tuple(Problem(name, name) for name in HOSTILE),
        charts={
            "operator_types": names,
            "breakdown_steps": {
                "parts": ["computing", HOSTILE[0]],
                "rows": [{"label": name, "values": [1.0, 2.0]} for name in HOSTILE],
            },
            "pipeline": {
                "nodes": [
                    {"id": i, "type": name, "name": name, "workers": 1, "busy": 0.5, "us": 1.0}
                    for i, name in enumerate(HOSTILE)
                ],
                "edges": [
                    {"source": i + 1, "target": i, "use": 0.5, "empty": 0.1, "capacity": 4}
                    for i in range(len(HOSTILE) - 1)
                ],
            },
        },
    )


SAMPLES = {"healthy": healthy, "data_bound": data_bound, "cluster": cluster, "hostile": hostile}

# --- any report at all -------------------------------------------------------------------------------------------

_names = st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE))
_texts = st.builds(Text, _names, _names)
_numbers = st.floats(allow_nan=False, allow_infinity=False)
_values = st.recursive(
    st.one_of(_numbers, st.integers(-(2**53), 2**53), _names, st.booleans()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
_ranks = st.lists(st.integers(0, 5000), max_size=3).map(tuple)
_subjects = st.builds(Subject, st.sampled_from(SUBJECT_KINDS), _names, _ranks)
_sources = st.builds(Source, _names, st.lists(_names, max_size=2).map(tuple), st.lists(_names, max_size=2).map(tuple))
_ids = st.sampled_from([f"F{index}" for index in range(1, 6)])
_evidence = st.builds(
    Evidence,
    _names,
    _values,
    st.sampled_from(["us", "ratio", "text", "bytes"]),
    _names,
    _subjects,
    st.none() | _sources,
)
_remedies = st.builds(
    Remedy,
    _names,
    _texts,
    _texts,
    st.none() | _names,
    st.none() | _values,
    st.none() | _values,
    _names,
    st.none() | st.builds(Verify, _names, _names),
    _names,
    st.none() | _texts,
)
_findings = st.builds(
    Finding,
    _ids,
    _names,
    _names,
    st.sampled_from(Direction),
    st.sampled_from(Role),
    st.sampled_from(Severity),
    st.sampled_from(Confidence),
    _subjects,
    _texts,
    _texts,
    st.lists(_evidence, max_size=2).map(tuple),
    st.lists(_ids, max_size=2).map(tuple),
    st.lists(_ids, max_size=2).map(tuple),
    st.none() | st.builds(Saving, st.floats(0, 1e12), st.none() | st.floats(0, 1), _texts),  # what a step can gain
    st.lists(_remedies, max_size=2).map(tuple),
    st.lists(_names, max_size=2).map(tuple),
    st.lists(st.dictionaries(_names, _names, max_size=2), max_size=2).map(tuple),
    st.lists(_texts, max_size=2).map(tuple),
    st.sampled_from(["stable", "experimental"]),
)
_profiles = st.builds(
    ProfileInfo,
    _names,
    _names,
    _names,
    _ranks,
    st.none() | st.integers(1, 5000),
    st.lists(_names, max_size=3).map(tuple),
    st.lists(st.tuples(_names, _names), max_size=2).map(tuple),
    st.builds(Parallelism, st.none() | st.integers(1, 64)),
    st.lists(_names, max_size=2).map(tuple),
    st.dictionaries(_names, _names, max_size=2),
)
_shares = st.dictionaries(st.sampled_from(["computing", "exposed_communication", "idle"]), st.floats(0, 1))
reports = st.builds(
    Report,
    _profiles,
    st.builds(
        Summary,
        st.sampled_from(["computation", "healthy", "undetermined"]),
        _texts,
        st.none() | st.floats(0, 1e12),
        _shares,
    ),
    st.lists(_findings, max_size=5, unique_by=lambda finding: finding.id).map(tuple),
    st.lists(
        st.builds(
            Check, _names, st.sampled_from(Outcome), st.lists(_names, max_size=2).map(tuple), _names, st.none() | _texts
        ),
        max_size=4,
    ).map(tuple),
    st.lists(st.builds(MissingEvidence, _names, _names, st.lists(_names, max_size=2).map(tuple)), max_size=2).map(
        tuple
    ),
    st.lists(st.builds(Problem, _names, _names), max_size=2).map(tuple),
    st.lists(
        st.builds(Fact, _names, _subjects, _values, st.integers(1, 99), st.lists(_sources, max_size=1).map(tuple)),
        max_size=3,
    ).map(tuple),
    _names,
)
