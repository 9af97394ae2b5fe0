"""Every verdict of the contract is reached from files: each fault is written as the profiler would record it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from advisor.api import advise, load_rules
from advisor.knowledge.verdicts import verdict_words
from advisor.ruleset.files.loader import RuleSet
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

EPOCH_US = 1_700_000_000_000_000
STEPS = 6


@lru_cache(maxsize=1)
def rules() -> RuleSet:
    return load_rules()


# ---- writers -------------------------------------------------------------------------------------------------------
Kernel = tuple[str, str, str, float, str, str]
"""type, core, OP State, microseconds, input shapes, input data types"""


def matmul(shapes: str = "1024,1024;1024,1024", dtype: str = "FLOAT16", us: float = 400.0) -> Kernel:
    return ("MatMulV2", "AI_CORE", "static", us, shapes, f"{dtype};{dtype}")


MATMUL = matmul()


def modern(
    folder: Path,
    kernels: list[Kernel],
    *,
    gap_us: float = 20.0,
    first_factor: float = 1.0,
    between_us: float = 0.0,
    host: list[tuple[str, float, float]] = (),
) -> None:
    """One rank of MindSpore 2.x: each step runs these kernels one after the other, `gap_us` between steps. With
    `between_us` each is launched only once the one before has ended and the device has waited so long.
    `host`: (event, start and duration as shares of the step), written into every step of the timeline."""
    root = folder / "host_1_20260101000000000_ascend_ms"
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    info = {
        "profiler_parameters": {
            "activities": ["CPU", "NPU"], "profiler_level": "Level1", "export_type": ["text"], "is_set_schedule": True,
            "schedule": {"wait": 0, "active": STEPS, "warmup": 1, "repeat": 1, "skip_first": 0}, "data_process": False,
        },
        "ms_profiler_info": {"rank_id": "0", "device_id": "0"}, "ms_version": "2.10.0", "jit_level": "O1",
    }  # fmt: skip
    (root / "profiler_info_0.json").write_text(json.dumps(info))
    rows, table, events, now = [], [], [], 0.0
    busy = sum(kernel[3] for kernel in kernels)
    for step in range(STEPS):
        begin = now
        for number, (type_, core, state, lasts, shapes, dtypes) in enumerate(kernels):
            name = f"Default/net/{type_}-op{number}/{type_}"
            left, _, right = shapes.partition(";")
            outputs = f"{left.partition(',')[0]},{right.partition(',')[2]}" if right else left
            rows.append(
                f'{step},1,{number},2,{name},{type_},{state},{core},"{_stamp(now)}\t",{lasts:.3f},0,24,0,NO,'
                f'"""{shapes}""","{dtypes}","ND;ND","""{outputs}""",{dtypes.partition(";")[0]},ND'
            )
            if between_us:
                events += _launch(len(rows), now - 5.0, now)
            now += lasts + between_us
        pause = gap_us * (first_factor if step == 0 else 1.0)
        now += pause
        idle = pause + between_us * len(kernels)
        table.append(f"{step},{busy:.3f},0,0,0,{idle:.3f},0,0,0,0")
        span = now - begin
        events.append(_event(f"Python::PythonObserved::ProfilerStep#{step}", begin, span))
        events += [_event(name, begin + at * span, share * span) for name, at, share in host]
    heading = (
        "Step ID,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
        "Wait Time(us),"
        "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
        "Output Data Types,Output Formats"
    )
    (output / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n")
    columns = (
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing"
    )
    (output / "step_trace_time.csv").write_text("\n".join([columns, *table]) + "\n")
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in ((1, "MindSpore"), (255, "CANN"), (448, "Ascend Hardware"))
    ]
    if host:
        (output / "trace_view.json").write_text(json.dumps(names + events))


def _stamp(us: float) -> str:
    return f"{EPOCH_US + int(us)}.{round(us % 1 * 1000):03d}"


def _launch(number: int, launched: float, started: float) -> list[dict[str, Any]]:
    """The host's launch (process CANN) and the line from it to the kernel."""
    flow = {"name": f"HostToDevice{number}", "cat": "HostToDevice", "id": str(number), "tid": 1}
    return [
        {**_event("Node@launch", launched, 3.0), "pid": 255},
        {"ph": "s", "pid": 255, "ts": _stamp(launched), **flow},
        {"ph": "f", "pid": 448, "ts": _stamp(started), "bp": "e", **flow},
    ]


def _event(name: str, begin: float, lasts: float) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": _stamp(begin), "dur": f"{lasts:.3f}", "args": {}}


def older(
    folder: Path,
    *,
    gap_ms: float,
    host_queue: int,
    data_queue: int,
    step_ms: float = 90.0,
    getnext_ms: float | None = None,
    push_ms: int = 1,
) -> None:
    """Older MindSpore with data sinking: step trace, both queues with these fills, optionally GetNext's time."""
    folder.mkdir(parents=True, exist_ok=True)
    head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    rows, start = [], 0
    for step in range(1, 31):
        gap = int(gap_ms * 1e5) if step > 1 else 0
        rest = int((step_ms - gap_ms) * 1e5)
        total = gap + rest
        rows.append(
            f"{step},{start},{start + total},{total},{start + gap},{start + total - 5000},{gap},{rest - 5000},5000"
        )
        start += total
    (folder / "step_trace_raw_0_detail_time.csv").write_text(head + "\n".join(rows) + "\n")
    every = int(step_ms)
    (folder / "device_queue_profiling_0.txt").write_text(
        "".join(
            f"0 1 {b} {push_ms} {b * every}\n0 2 {b} {push_ms + 1} {b * every}\n"
            f"0 0 {b} 1 {b * every}\n1 16 {b} {host_queue} {b * every}\n"
            for b in range(1, 31)
        )
    )
    lasts = int((gap_ms if getnext_ms is None else getnext_ms) * 1000)
    (folder / "minddata_aicpu_0.txt").write_text(
        "".join(
            f"GetNext_dequeue_wait {b * every * 1000} {b * every * 1000 + lasts} {data_queue}\n" for b in range(1, 31)
        )
    )
    if getnext_ms is not None:
        lines = ["serial_number,op_type,total_time,dispatch_time,execution_time,run_start,run_end"]
        lines += [
            f"{b},GetNext,{getnext_ms},0.1,{getnext_ms},{b * every},{b * every + getnext_ms}" for b in range(1, 31)
        ]
        (folder / "aicpu_intermediate_0.csv").write_text("\n".join(lines) + "\n")


def batches(folder: Path, waits_ms: list[int], step_ms: list[int], sizes: list[int]) -> None:
    """dataset_iterator_profiling: the wait for each batch, the time between batches, what lay ready."""
    lines, now = [], 1000
    for batch, (wait, step, size) in enumerate(zip(waits_ms, step_ms, sizes, strict=True), 1):
        now += step
        lines += [f"0 {kind} {batch} {0 if kind == 1 else wait} {now}" for kind in (1, 2, 0)]
        lines.append(f"1 16 {batch} {size} {now}")
    (folder / "dataset_iterator_profiling_0.txt").write_text("\n".join(lines) + "\n")


def iterator(folder: Path, waits_ms: list[int], step_ms: list[int], sizes: list[int], workers: int = 1) -> None:
    """MindSpore 2.x without sinking: the loop's waits, and a pipeline of one source and one map."""
    raw = folder / "host_1_20260101000000000_ascend_ms" / "FRAMEWORK"
    raw.mkdir(parents=True)
    batches(raw, waits_ms, step_ms, sizes)
    queue = lambda fill: {"output_queue": {"length": 16, "size": [fill] * 60}}  # noqa: E731
    operations = [
        {"op_id": 0, "op_type": "BatchOp", "num_workers": 1, "children": [1], "metrics": queue(0)},
        {"op_id": 1, "op_type": "MapOp", "num_workers": workers, "children": [2], "metrics": queue(0)},
        {"op_id": 2, "op_type": "ImageFolderOp", "num_workers": 4, "metrics": queue(16)},
    ]
    (raw / "pipeline_profiling_0.json").write_text(json.dumps({"op_info": operations, "sampling_interval": 100}))


def processors(
    folder: Path, *, user: int, system: int, idle: int, process: int, pipeline: int, runnable: int = 2
) -> None:
    """Samples of a host with 16 processors; process and pipeline in percent of one."""
    raw = next(folder.glob("*_ascend_ms")) / "FRAMEWORK"
    count = 60

    def twice(value: int) -> list[int]:
        return [number for _ in range(count) for number in (value, 0)]

    document = {
        "cpu_processor_num": 16,
        "device_info": {
            "context_switch_count": twice(5000), "idle_utilization": twice(idle), "io_utilization": twice(0),
            "sys_utilization": twice(system), "user_utilization": twice(user), "runnable_process": twice(runnable),
        },
        "op_info": [
            {"op_id": number, "metrics": {"sys_utilization": [0] * count, "user_utilization": [use] * count}}
            for number, use in ((0, 1), (1, pipeline), (2, 1))
        ],
        "process_info": {"user_utilization": [process] * count, "sys_utilization": [0] * count},
        "sampling_interval": 1000, "time_stamp": [1000 * n for n in range(count)],
    }  # fmt: skip
    (raw / "minddata_cpu_utilization_0.json").write_text(json.dumps(document))


def simulated(folder: Path, *faults: Fault, trace: bool = False, **scenario: Any) -> None:
    write_profile(simulate(Scenario(seed=3, faults=faults, **scenario)), folder, trace=trace)


# ---- faults --------------------------------------------------------------------------------------------------------
CASES: dict[str, Callable[[Path], None]] = {}


def case(verdict: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def register(function: Callable[[Path], None]) -> Callable[[Path], None]:
        CASES[verdict] = function
        return function

    return register


CASES |= {
    "slow-compute-rank": lambda f: simulated(f, Fault("slow_compute", 2, 0.4), data=4),
    "waiting-on-slow-rank": lambda f: simulated(f, Fault("slow_compute", 2, 0.4), data=4),
    "exposed-communication": lambda f: simulated(f, Fault("unsplit_allreduce"), data=4, gradient_mb_per_layer=60.0),
    "allreduce-not-overlapped": lambda f: simulated(f, Fault("unsplit_allreduce"), data=4, gradient_mb_per_layer=60.0),
    "data-starved-rank": lambda f: simulated(f, Fault("slow_data", 1, 0.6), data=4),
    "idle-imbalance": lambda f: simulated(f, Fault("slow_data", 1, 0.6), data=4),
    "host-dispatch-bound": lambda f: simulated(f, Fault("slow_host", 1, 0.4), data=4, trace=True),
    "slow-link": lambda f: simulated(f, Fault("slow_link", (1, 2), 2), data=8),
    "small-packets": lambda f: simulated(f, Fault("small_packets"), data=4),
    "sharding-redistribution": lambda f: simulated(f, Fault("redistribution"), data=2, tensor=4),
    "stage-imbalance": lambda f: simulated(f, Fault("stage_imbalance", 1, 0.5), data=2, pipeline=2, micro_batches=8),
    "pipeline-bubble": lambda f: simulated(f, Fault("stage_imbalance", 1, 0.5), data=2, pipeline=2, micro_batches=8),
    "incomplete-collection": lambda f: simulated(f, data=4, missing_ranks=(3,)),
    "collection-misconfigured": lambda f: simulated(f, data=4, level=0),
    "too-few-samples": lambda f: simulated(f, data=2, steps=2),
    "compile-in-profile": lambda f: modern(f, [MATMUL] * 10, gap_us=100.0, first_factor=400.0),
    "operator-hotspot": lambda f: modern(f, [MATMUL] * 20),
    "float32-heavy": lambda f: modern(f, [matmul(dtype="FLOAT")] * 20),
    "unaligned-shapes": lambda f: modern(f, [matmul("4001,305;305,4001")] * 20),
    "conversion-overhead": lambda f: modern(
        f, [MATMUL, ("TransData", "AI_VECTOR_CORE", "static", 200.0, "1024,1024", "FLOAT16")] * 20
    ),
    "aicpu-operators": lambda f: modern(f, [MATMUL, ("Index", "AI_CPU", "static", 300.0, "1024,1024", "INT64")] * 20),
    "fusible-small-operators": lambda f: modern(
        f, [MATMUL] * 10 + [("Mul", "AI_VECTOR_CORE", "static", 8.0, "1024", "FLOAT16")] * 400
    ),
    "update-tail-slow": lambda f: modern(
        f, [MATMUL] * 10 + [("ApplyAdamW", "AI_VECTOR_CORE", "static", 150.0, "1024,1024", "FLOAT")] * 40
    ),
    "shape-sensitive-operator": lambda f: modern(
        f, [MATMUL] * 10 + [matmul("1040,1024;1024,1008", us=1600.0)] * 10
    ),
    "getnext-not-prefetched": lambda f: modern(
        f, [("GetNext", "AI_CPU", "static", 3000.0, "", ""), *[MATMUL] * 20]
    ),
    "device-idle-gaps": lambda f: modern(
        f, [MATMUL] * 10, gap_us=6000.0, host=[("Python::PythonObserved::sleep", 0.4, 0.6)]
    ),
    "dynamic-shape-recompilation": lambda f: modern(
        f, [MATMUL] * 10, gap_us=6000.0, host=[("Compiler::CompileGraph::kernel_graph_7", 0.4, 0.5)]
    ),
    "data-processing-bottleneck": lambda f: older(f, gap_ms=60, host_queue=0, data_queue=0),
    "data-sending-bottleneck": lambda f: older(f, gap_ms=60, host_queue=12, data_queue=0, push_ms=58),
    "getnext-slow": lambda f: older(f, gap_ms=60, host_queue=12, data_queue=8, getnext_ms=50.0),
    "step-jitter": lambda f: iterator(
        f, ([1] * 9 + [300]) * 20, ([30] * 9 + [330]) * 20, ([8] * 9 + [0]) * 20
    ),
}  # fmt: skip


@case("sink-mode-off")
def _sink_mode_off(folder: Path) -> None:
    simulated(folder, Fault("slow_data", 1, 0.6), data=4)


@case("pynative-mode")
def _pynative(folder: Path) -> None:
    """Operators are launched one by one, each later than the device could have started it."""
    modern(
        folder, [matmul(us=40.0)] * 60, between_us=60.0, host=[("PynativeFramework::FrontendTask::MatMul", 0.1, 0.5)]
    )


@case("user-code-feeding-slow")
def _user_code(folder: Path) -> None:
    """The gap is long, the queue is full and the iterator answers at once: the time goes between the two."""
    older(folder, gap_ms=60, host_queue=12, data_queue=8)
    (folder / "device_queue_profiling_0.txt").unlink()
    (folder / "minddata_aicpu_0.txt").unlink()
    batches(folder, [0] * 30, [90] * 30, [12] * 30)


@case("cpu-threads-underused")
def _threads(folder: Path) -> None:
    iterator(folder, [40] * 200, [50] * 200, [0] * 200)
    processors(folder, user=10, system=2, idle=88, process=150, pipeline=95)


@case("cpu-oversubscribed")
def _oversubscribed(folder: Path) -> None:
    iterator(folder, [40] * 200, [50] * 200, [0] * 200, workers=64)
    processors(folder, user=55, system=44, idle=1, process=1500, pipeline=1400, runnable=90)


@case("cpu-contention")
def _contention(folder: Path) -> None:
    iterator(folder, [40] * 200, [50] * 200, [0] * 200)
    processors(folder, user=95, system=4, idle=1, process=200, pipeline=95, runnable=40)
    output = next(folder.glob("*_ascend_ms")) / "ASCEND_PROFILER_OUTPUT"
    output.mkdir()
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\r\nMapOp(ID:1),WorkerProcess,200,45000,\r\n"
        "Pipeline,GetNext,200,40000,{}\r\n"
    )


@case("allreduce-reduce-slow")
def _reduce(folder: Path) -> None:
    """AllReduce whose planes spend most of their time in Reduce_TBE."""
    simulated(folder, data=4, gradient_mb_per_layer=60.0, trace=True)
    for path in folder.rglob("trace_view.json"):
        events = json.loads(path.read_text())
        hccl = next(
            e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] in ("HCCL", "Communication")
        )
        operations = [e for e in events if e["ph"] == "X" and e["pid"] == hccl]
        for event in operations:
            for name, share in (("Reduce_TBE", 0.6), ("Memcpy", 0.3)):
                events.append({**event, "name": name, "dur": float(event["dur"]) * share, "tid": 99})
        path.write_text(json.dumps(events))


@case("uneven-transfer")
def _uneven(folder: Path) -> None:
    """One rank moves three times the bytes of its peers, which takes twice as long."""
    simulated(folder, data=4)
    path = sorted(folder.rglob("communication.json"))[1]

    def more(match: re.Match[str]) -> str:
        return f"{match[1]}{float(match[2]) * 3}{match[3]}{float(match[4]) * 2}"

    both = r'("Transit Size\(MB\)": )([\d.]+)(, "Transit Time\(ms\)": )([\d.]+)'
    path.write_text(re.sub(both, more, path.read_text()))


@case("memory-pressure")
def _memory(folder: Path) -> None:
    """The framework holds all but a gigabyte of a card with 64."""
    modern(folder, [MATMUL] * 10)
    output = next(folder.rglob("ASCEND_PROFILER_OUTPUT"))
    rows = ["Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type"]
    rows += [f"MindSpore,{_stamp(1000 * n)},{50000 + n % 7},61000,{50000 + n % 7},NPU:0" for n in range(200)]
    (output / "memory_record.csv").write_text("\n".join(rows) + "\n")


@case("host-stage-slow")
def _host_stage(folder: Path) -> None:
    """Building the graph takes most of the host's recorded time."""
    older(folder, gap_ms=1, host_queue=12, data_queue=8)
    place = folder / "host_info"
    place.mkdir()
    rows = ["tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)"]
    for name, begin, end in (("Compiler", 0, 6_000_000), ("RunGraph", 6_000_000, 8_000_000)):
        rows += [f"1,1,1,Framework,{name},All,0,{mark},,0,{at}" for mark, at in ((0, begin), (1, end))]
    (place / "host_info_0.csv").write_text("\n".join(rows) + "\n")


@case("unparsed-profile")
def _unparsed(folder: Path) -> None:
    """The training died before its data was analysed."""
    root = folder / "host_1_20260101000000000_ascend_ms"
    for name in ("FRAMEWORK", "PROF_000001_20260101000000000_ABC/host", "PROF_000001_20260101000000000_ABC/device_0"):
        (root / name).mkdir(parents=True)
    (root / "FRAMEWORK" / "mindspore.op_range").write_bytes(b"\x01\x00")
    (root / "profiler_info_0.json").write_text(
        json.dumps({"ms_profiler_info": {"rank_id": "0"}, "ms_version": "2.10.0"})
    )


# ---- the promise ---------------------------------------------------------------------------------------------------
def test_every_verdict_has_a_case():
    """A verdict that only hand-made facts reach may never be reached."""
    assert set(verdict_words()) <= set(CASES)


@pytest.mark.parametrize("verdict", sorted(CASES))
def test_reached_from_files(verdict, tmp_path):
    """Written as files, read, measured, judged: the verdict is there, with evidence and something to do."""
    CASES[verdict](tmp_path)
    report = advise(tmp_path, rules())
    found = [finding for finding in report.findings if finding.verdict == verdict]
    assert found, sorted({finding.verdict for finding in report.findings})
    assert found[0].evidence and (found[0].remedies or found[0].because)
    assert not [check for check in report.checked if check.outcome.value == "error"]
