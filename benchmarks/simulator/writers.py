"""Writes a simulation as the profiler would: one folder a rank, true columns, units and quirks.

MindSpore (`*_ascend_ms`): Step ID, Block Num, COMMUNICATION, CRLF in its own files, send and receive among the
collectives. torch_npu (`*_ascend_pt`): Step Id, Block Dim, HCCL, point-to-point under p2p. See the format notes of the
profiler documents; the golden files of the real writers were the model.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from advisor.basics.intervals import Intervals, clip, complement, measure, subtract, union
from benchmarks.simulator.busy import device_intervals
from benchmarks.simulator.communication_files import write_communication
from benchmarks.simulator.physics import ROWS, Simulation
from benchmarks.simulator.trace import write_trace

EPOCH_US = 1_700_000_000_000_000

_MS_KERNEL = (
    "Step ID,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,aicore_time(us),aic_mac_ratio,aic_mte2_ratio,aiv_time(us),aiv_vec_ratio,aiv_mte2_ratio"
)
_PT_KERNEL = _MS_KERNEL.replace("Step ID", "Step Id").replace("Block Num", "Block Dim")
_SHAPES = {
    "MatMulV2": ("4096,4096;4096,4096", "FLOAT16;FLOAT16", "ND;ND", "4096,4096", "FLOAT16", "ND"),
    "FlashAttentionScore": (
        "8,4096,1024;8,4096,1024;8,4096,1024", "FLOAT16;FLOAT16;FLOAT16", "ND;ND;ND", "8,4096,1024", "FLOAT16", "ND"
    ),
}  # fmt: skip
_PLAIN = ("4096,4096", "FLOAT16", "ND", "4096,4096", "FLOAT16", "ND")


def write_profile(run: Simulation, folder: str | Path, trace: bool = False) -> list[Path]:
    """One folder for each rank that is not missing; returns them in rank order."""
    base = Path(folder)
    scenario = run.scenario
    written = []
    for rank in range(scenario.world_size):
        if rank in scenario.missing_ranks:
            continue
        host = scenario.host_name(rank)
        suffix = "ms" if scenario.framework == "mindspore" else "pt"
        root = base / f"{host}_{4000 + rank}_20240101{rank:09d}_ascend_{suffix}"
        output = root / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True, exist_ok=True)
        write_info(run, rank, root)
        _write_steps(run, rank, output)
        if scenario.kernels:
            _write_kernels(run, rank, output)
        _write_statistics(run, rank, output)
        if scenario.level >= 1 and scenario.world_size > 1:
            write_communication(run, rank, output)
        if trace:
            write_trace(run, rank, output)
        written.append(root)
    return written


def stamp(run: Simulation, rank: int, us: float) -> str:
    """Time of day on the rank's host: 16 digits and three decimals."""
    ns = round((us + run.clock_offset[rank]) * 1000)
    return f"{EPOCH_US + ns // 1000}.{ns % 1000:03d}"


def write_info(run: Simulation, rank: int, root: Path) -> None:
    """What the profiler was asked for, and where it is told, the communication groups; `root` is the rank's folder."""
    s = run.scenario
    schedule = {"wait": 0, "active": s.steps, "warmup": 1, "repeat": 1, "skip_first": s.first_step - 1}
    level = f"Level{s.level}"
    if s.framework == "mindspore":
        info: dict[str, object] = {
            "profiler_parameters": {
                "activities": ["CPU", "NPU"], "profiler_level": level, "aic_metrics": "PipeUtilization",
                "data_process": False, "profile_memory": False, "l2_cache": False, "with_stack": False,
                "data_simplification": True, "export_type": ["text"], "is_set_schedule": True, "schedule": schedule,
                "parallel_strategy": False, "mstx": False,
            },
            "ms_profiler_info": {"rank_id": str(rank), "device_id": str(rank % s.ranks_per_host)},
            "cann_profiler_info": {}, "analysis_cost_time": {}, "ms_version": "2.10.0", "cann_version": "8.5.0",
            "jit_level": "O1",
        }  # fmt: skip
    else:
        info = {
            "config": {
                "common_config": {
                    "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "schedule": schedule,
                    "record_shapes": False, "profile_memory": False, "with_stack": False,
                },
                "experimental_config": {
                    "_profiler_level": level, "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_l2_cache": False,
                    "_data_simplification": True, "_export_type": "text",
                },
            },
            "rank_id": rank,
        }  # fmt: skip
    (root / f"profiler_info_{rank}.json").write_text(json.dumps(info, indent=4))
    if s.metadata:
        groups = {
            name: {
                "group_name": name.partition("-")[0],
                "group_rank": members.index(rank),
                "global_ranks": list(members),
            }
            for name, members in run.groups.items()
            if rank in members
        }
        (root / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": groups}))


def _write_steps(run: Simulation, rank: int, output: Path) -> None:
    s = run.scenario
    every = [op for step in run.ops for op in step[rank]]
    computing, communicating = device_intervals(every)
    exposed = subtract(communicating, computing)
    low = round(min(op.start for op in every) * 1000)
    high = round(max(op.end for op in every) * 1000)
    busy = union(np.concatenate((computing[0], communicating[0])), np.concatenate((computing[1], communicating[1])))
    free = complement(busy, low, high)
    pytorch = s.framework == "pytorch"
    rows = []
    for index, spans in enumerate(run.spans):
        begin, end = round(spans[rank].begin * 1000), round(spans[rank].end * 1000)
        if index == len(run.spans) - 1:
            end = max(end, high + 1)
        if not s.synchronous:
            # An asynchronous host is a step ahead; the parser assigns device work by its launch.
            begin, end = _device_window(run, rank, index)
        ops = run.ops[index][rank]
        host = begin
        if pytorch:
            host = round(spans[rank].begin * 1000)
            begin, end = _kernel_window(run, rank, index)
        compute_us, total_us = _started(computing, begin, end), _started(communicating, begin, end)
        exposed_us = _started(exposed, begin, end)
        total_us = max(total_us, exposed_us)  # of a collective that began in the step before, the rest starts here
        first = min(op.start for op in ops) * 1000
        preparing = max(first - host, 0.0) / 1000
        free_us = measure(clip(free, begin, end)) / 1000
        stage, bubble = 0.0, 0.0
        if (s.bubble_reported and not pytorch) or pytorch:
            joints = [op for op in ops if op.joint is not None]
            bubble = sum(op.end - op.start for op in joints if op.type in _bubble_types(pytorch))
            if pytorch:
                stage = compute_us + exposed_us + free_us - bubble
            elif joints:
                first_start = min(op.start for op in joints)
                last = max(joints, key=lambda op: op.start)
                stage = max(last.end - first_start - bubble, 0.0)
        values = (
            compute_us, exposed_us, total_us - exposed_us, total_us, free_us, stage, bubble, exposed_us - bubble,
            preparing,
        )  # fmt: skip
        step = s.first_step + index
        rows.append(f"{step}," + ",".join(f"{v:.3f}" if v else "0" for v in values))
    header = (
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing"
    )
    (output / "step_trace_time.csv").write_bytes(("\r\n".join([header, *rows]) + "\r\n").encode())


def _bubble_types(pytorch: bool) -> tuple[str, ...]:
    return ("hcom_receive_",) if pytorch else ("hcom_receive_", "hcom_send_")


def _device_window(run: Simulation, rank: int, index: int) -> tuple[int, int]:
    ends = [max(op.end for op in step[rank]) for step in run.ops]
    begin = run.spans[0][rank].begin if index == 0 else ends[index - 1]
    return round(begin * 1000), round(ends[index] * 1000)


def _kernel_window(run: Simulation, rank: int, index: int) -> tuple[int, int]:
    """torch_npu's row: from the step's first kernel to the next one's, the last one to its own last kernel."""
    begin = min(op.start for op in run.ops[index][rank])
    if index + 1 < len(run.ops):
        return round(begin * 1000), round(min(op.start for op in run.ops[index + 1][rank]) * 1000)
    return round(begin * 1000), round(max(op.end for op in run.ops[index][rank]) * 1000)


def _started(intervals: Intervals, low: int, high: int) -> float:
    """Microseconds of the intervals that start inside [low, high]: whole ones, as the viewer counts."""
    start, end = intervals
    inside = (start >= low) & (start < high)
    return float((end[inside] - start[inside]).sum()) / 1000


def _write_kernels(run: Simulation, rank: int, output: Path) -> None:
    s = run.scenario
    pytorch = s.framework == "pytorch"
    rows = [_PT_KERNEL if pytorch else _MS_KERNEL]
    streams: dict[str, int] = {}
    previous_end = 0.0
    task = 0
    for step in run.ops:
        for op in sorted(step[rank], key=lambda o: o.start):
            wait = max(0.0, op.start - previous_end) if previous_end else 0.0
            previous_end = max(previous_end, op.end)
            time = f"{stamp(run, rank, op.start)}\t,{op.end - op.start:.3f},{wait:.3f}"
            if op.joint is not None:
                core = "HCCL" if pytorch else "COMMUNICATION"
                rows.append(f"{op.step},4294967295,N/A,N/A,{op.name},{op.type},N/A,{core},{time},0" + ",N/A" * 15)
                continue
            stream = streams.setdefault(op.stream, 2 + len(streams))
            task = (task + 1) % 65536
            shapes = _SHAPES.get(op.type, _PLAIN)
            if op.rows != ROWS:
                shapes = (_taller(shapes[0], op.rows), *shapes[1:3], _taller(shapes[3], op.rows), *shapes[4:])
            name = f"aclnn{op.type}_{op.type}_{op.type}" if pytorch else f"Kernel::KernelLaunch::{op.name}/{op.type}"
            cube = op.core != "AI_VECTOR_CORE"
            work = op.end - op.start
            pmu = f"{work * 0.97:.3f},0.82,0.55,0.0,0.0,0.0" if cube else f"0.0,0.0,0.0,{work * 0.97:.3f},0.3,0.85"
            cells = f'"""{shapes[0]}""",{shapes[1]},{shapes[2]},"""{shapes[3]}""",{shapes[4]},{shapes[5]}'
            blocks = "24,0" if cube else "48,0"
            rows.append(
                f"{op.step},4294967295,{task},{stream},{name},{op.type},dynamic,{op.core},{time},{blocks},NO,{cells},N/A,{pmu}"
            )
    (output / "kernel_details.csv").write_bytes(("\r\n".join(rows) + "\r\n").encode())


def _taller(shape: str, rows: int) -> str:
    """The same tensors with another number of rows in the first one."""
    first, _, rest = shape.partition(",")
    return f"{rows},{rest}" if first == str(ROWS) else shape


def _write_statistics(run: Simulation, rank: int, output: Path) -> None:
    """op_statistic.csv (level 1), api_statistic.csv and dataset.csv."""
    s = run.scenario
    pytorch = s.framework == "pytorch"
    by_type: dict[tuple[str, str], list[float]] = defaultdict(list)
    launches: list[float] = []
    for step in run.ops:
        for op in step[rank]:
            launches.append(op.launched - op.launch)
            if op.joint is None:
                by_type[op.type, op.core].append(op.end - op.start)
    total = sum(map(sum, by_type.values()))
    prefix, title = ("", "") if pytorch else ("0,", "Device_id,")
    rows = [f"{title}OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
    for (type_, core), times in sorted(by_type.items(), key=lambda item: -sum(item[1])):
        used = sum(times)
        rows.append(
            f"{prefix}{type_},{core},{len(times)},{used:.3f},{min(times):.3f},{used / len(times):.3f},"
            f"{max(times):.3f},{100 * used / total:.3f}"
        )
    if s.level >= 1:
        (output / "op_statistic.csv").write_text("\n".join(rows) + "\n")
    host = "" if pytorch else "host,"
    every = np.array(launches)
    waits = [span[rank].data_wait for span in run.spans]
    rows = [
        f"{title}Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
        f"{host}node,launch,{every.sum():.3f},{every.size},{every.mean():.3f},{every.min():.3f},{every.max():.3f},{every.var():.3f}",
    ]
    (output / "api_statistic.csv").write_text("\n".join(rows) + "\n")
    if not pytorch:
        fetch = [w + 40.0 for w in waits]
        rows = [
            "Operation,Stage,Occurrences,Avg. time (us),Custom Info",
            f"Pipeline,GetNext,{len(fetch)},{sum(fetch) / len(fetch):.2f},{{}}",
        ]
        (output / "dataset.csv").write_bytes(("\r\n".join(rows) + "\r\n").encode())
