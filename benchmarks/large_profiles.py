"""Writes profiles in the true format of MindSpore's Ascend profiler, of any size.

    python benchmarks/large_profiles.py OUT [--ranks 8] [--steps 15] [--kernels 13504]

The defaults give eight ranks of about 200,000 kernels: kernel_details.csv of 85 MB and trace_view.json of 200 MB each.
Host and device follow a simple machine: the host launches one kernel every `host_us`, the device runs them in order,
so that a slow host starves the device and a fast one runs ahead of it (the tests rely on that).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

EPOCH_NS = 1_700_000_000_000_000_000
LAUNCH_NS = 12_000
"""From launch to start where the device is idle."""

KERNEL_HEADER = (
    "Step ID,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),"
    "aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),"
    "aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,"
    "aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)


@dataclass(frozen=True)
class Kernel:
    """One kernel of the layer that is repeated to fill a step."""

    name: str
    type: str
    core: str
    us: float
    inputs: str
    dtypes: str
    output: str


_C, _V = "AI_CORE", "AI_VECTOR_CORE"
_H, _F = "DT_BF16;DT_BF16", "FLOAT;FLOAT"
LAYER = (
    Kernel("LayerNorm", "LayerNormV3", _V, 45.0, "4096,5120;5120", _H, "4096,5120"),
    Kernel("QKV/MatMul", "MatMulV3", _C, 420.0, "4096,5120;5120,1920", _H, "4096,1920"),
    Kernel("Split", "SplitD", _V, 22.0, "4096,1920", "DT_BF16", "4096,640"),
    Kernel("RoPE/Mul", "Mul", _V, 18.0, "4096,640;4096,640", _H, "4096,640"),
    Kernel("RoPE/Add", "Add", _V, 17.0, "4096,640;4096,640", _H, "4096,640"),
    Kernel("FlashAttention", "FlashAttentionScore", "MIX_AIC", 510.0, "1,4096,640;1,4096,640", _H, "1,4096,640"),
    Kernel("Proj/MatMul", "MatMulV3", _C, 150.0, "4096,640;640,5120", _H, "4096,5120"),
    Kernel("Residual/Add", "Add", _V, 52.0, "4096,5120;4096,5120", _H, "4096,5120"),
    Kernel("Norm/Cast", "Cast", _V, 31.0, "4096,5120", "DT_BF16", "4096,5120"),
    Kernel("MLP/MatMul", "MatMulV3", _C, 750.0, "4096,5120;5120,3456", _H, "4096,3456"),
    Kernel("MLP/Silu", "Swish", _V, 38.0, "4096,3456", "DT_BF16", "4096,3456"),
    Kernel("MLP/Down/MatMul", "MatMulV3", _C, 755.0, "4096,3456;3456,5120", _H, "4096,5120"),
    Kernel("Bias/Add", "Add", _V, 50.0, "4096,5120;5120", _H, "4096,5120"),
)
CONVERSIONS = (
    Kernel("trans_TransData", "TransData", _V, 260.0, "4096,5120", "DT_BF16", "320,256,16,16"),
    Kernel("trans_Cast", "Cast", _V, 140.0, "4096,5120", "FLOAT", "4096,5120"),
)
AICPU = (Kernel("Index", "Index", "AI_CPU", 900.0, "4096,5120;4096", "INT64;INT64", "4096,5120"),)


@dataclass(frozen=True)
class Workload:
    """What to write. `host_us` is the host's time a launch; above the kernels' mean the device starves."""

    ranks: int = 8
    steps: int = 15
    kernels: int = 13_504
    host_us: float = 14.0
    scale: float = 0.25
    """Kernel durations are those of the layer times this."""
    collective_every: int = 160
    layer: tuple[Kernel, ...] = LAYER
    slow_rank: int | None = None
    gap_us: float = 300.0
    """Between two steps the device is idle at least so long."""
    first_step_factor: float = 1.0
    """The first step's launches take this many times longer (compilation)."""
    trace: bool = True
    seed: int = 7


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _pmu(kernel: Kernel, us: float) -> str:
    """The counters of PipeUtilization: (time, ratio) pairs of cube kernels, then those of vector kernels."""
    vector = kernel.core == _V
    cycles = int(us * 1800)

    def pairs(*ratios: float) -> str:
        return ",".join(f"{us * ratio:.3f},{ratio:.3f}" for ratio in ratios)

    wobble = (cycles % 17) / 1000
    aic = "0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0"
    aiv = "0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0"
    if vector:
        aiv = f"{us:.3f},{cycles},{pairs(0.31 + wobble, 0.052, 0.811 - wobble, 0.423)},0.012"
    else:
        aic = f"{us:.3f},{cycles},{pairs(0.861 - wobble, 0.214, 0.622, 0.703 + wobble, 0.351)},0.001"
    return f"{aic},{aiv},{0 if vector else 95.512}"


@dataclass(frozen=True)
class Launch:
    """One kernel's life: launched by the host, run by the device (nanoseconds)."""

    step: int
    index: int
    kernel: Kernel | None
    """None for a collective."""
    scope: str
    launch: int
    start: int
    duration: int
    wait: int


def simulate(load: Workload, rank: int) -> Iterator[Launch]:
    """Kernels of one rank in the order in which the device runs them."""
    rng = random.Random(load.seed * 1000 + rank)
    factor = load.scale * (1.25 if rank == load.slow_rank else 1.0)
    host = EPOCH_NS
    free = EPOCH_NS
    for step in range(load.steps):
        host = max(host, free) + int(load.gap_us * 1000)
        cost = load.host_us * (load.first_step_factor if step == 0 else 1.0)
        for index in range(load.kernels):
            collective = load.collective_every and (index + 1) % load.collective_every == 0
            kernel = None if collective else load.layer[index % len(load.layer)]
            us = 350.0 * load.scale if kernel is None else kernel.us * factor
            duration = int(1000 * us * rng.uniform(0.98, 1.02))
            host += int(1000 * cost * rng.uniform(0.9, 1.1))
            start = max(host + LAUNCH_NS, free + 1_000)
            layer = index // len(load.layer)
            yield Launch(step, index, kernel, f"Default/net/layers.{layer}", host, start, duration, start - free)
            free = start + duration


def _kernel_row(k: Launch) -> str:
    us = k.duration / 1000
    if k.kernel is None:
        return (
            f"{k.step},4294967295,N/A,N/A,hcom_allReduce__{k.index}_0_1,hcom_allReduce_,N/A,COMMUNICATION,{_us(k.start)}\t,"
            f"{us:.3f},{k.wait / 1000:.3f},0" + ",N/A" * 34
        )
    o = k.kernel
    formats = ";".join(["ND"] * (o.inputs.count(";") + 1))
    return (
        f"{k.step},4294967295,{k.index},2,Kernel::KernelLaunch::{k.scope}/{o.name}-op{k.index}/{o.type},{o.type},static,"
        f'{o.core},{_us(k.start)}\t,{us:.3f},{k.wait / 1000:.3f},24,0,NO,"""{o.inputs}""",{o.dtypes},{formats},'
        f'"""{o.output}""",{o.dtypes.split(";")[0]},ND,N/A,{_pmu(o, us)}'
    )


_HOST, _CANN, _NPU, _HCCL, _OVERLAP = 1, 255, 448, 512, 800


def _metadata() -> Iterator[str]:
    names = {_HOST: "MindSpore", _CANN: "CANN", _NPU: "Ascend Hardware", _HCCL: "HCCL", _OVERLAP: "Overlap Analysis"}
    for pid, name in names.items():
        yield json.dumps({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    lanes = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
    for tid, lane in enumerate(lanes):
        yield json.dumps({"ph": "M", "name": "thread_name", "pid": _OVERLAP, "tid": tid, "args": {"name": lane}})


def _events(k: Launch, number: int) -> Iterator[str]:
    launch, start, us = _us(k.launch), _us(k.start), k.duration / 1000
    name = k.kernel.type if k.kernel else f"hcom_allReduce__{k.index}_0_1"
    op = f"Kernel::KernelLaunch::{k.scope}/{k.kernel.name if k.kernel else 'AllReduce'}-op{k.index}"
    pid, tid = (_NPU, 2) if k.kernel else (_HCCL, 0)
    yield (
        f'{{"ph": "X", "name": "{op}", "pid": 1, "tid": 100, "ts": "{_us(k.launch - 3000)}", "dur": "9.000", '
        f'"cat": "", "args": {{}}}}'
    )
    yield (
        f'{{"name": "Node@launch", "pid": 255, "tid": 100, "ts": "{launch}", "dur": 4.25, "args": {{"Thread Id": 100, '
        f'"Mode": "launch", "level": "node", "id": "{name}", "item_id": "{name}", "connection_id": {number}}}, '
        f'"ph": "X"}}'
    )
    yield (
        f'{{"name": "{name}", "pid": {pid}, "tid": {tid}, "ts": "{start}", "dur": {us:.3f}, "args": {{"Model Id": '
        f'4294967295, "Task Type": "{k.kernel.core if k.kernel else "COMMUNICATION"}", "Stream Id": {tid}, "Task Id": '
        f'{k.index}, "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": {number}, "mindspore_op": "{op}"}}, '
        f'"ph": "X"}}'
    )
    name, flow = f'"name": "HostToDevice{number}"', f'"cat": "HostToDevice", "id": "{number}"'
    yield f'{{{name}, "ph": "s", {flow}, "pid": 255, "tid": 100, "ts": "{launch}"}}'
    yield f'{{{name}, "ph": "f", "bp": "e", {flow}, "pid": {pid}, "tid": {tid}, "ts": "{start}"}}'


def write_rank(load: Workload, out: Path, rank: int) -> None:
    """One rank's folder: kernel_details.csv, trace_view.json, step_trace_time.csv, op_statistic.csv, profiler_info."""
    folder = out / f"host0_{4000 + rank}_20260101000000000_ascend_ms"
    files = folder / "ASCEND_PROFILER_OUTPUT"
    files.mkdir(parents=True, exist_ok=True)
    steps: dict[int, list[float]] = {}
    types: dict[tuple[str, str], list[float]] = {}
    with (files / "kernel_details.csv").open("w", newline="") as table, (files / "trace_view.json").open("w") as trace:
        table.write(KERNEL_HEADER + "\r\n")
        trace.write("[" + ", ".join(_metadata()))
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        end = 0
        for number, k in enumerate(simulate(load, rank)):
            table.write(_kernel_row(k) + "\r\n")
            if load.trace:
                trace.write(", " + ", ".join(_events(k, number)))
            if k.step not in first:
                first[k.step] = k.launch
            elif end:
                steps.setdefault(k.step, [0.0, 0.0, 0.0])[2] += max(0, k.start - end) / 1000
            end = k.start + k.duration
            last[k.step] = end
            steps.setdefault(k.step, [0.0, 0.0, 0.0])[0 if k.kernel else 1] += k.duration / 1000
            key = (k.kernel.type, k.kernel.core) if k.kernel else ("hcom_allReduce_", "COMMUNICATION")
            total = types.setdefault(key, [0.0, 0.0])
            total[0] += 1
            total[1] += k.duration / 1000
        for step, start in first.items():
            trace.write(
                f', {{"ph": "X", "name": "Python::PythonObserved::ProfilerStep#{step}", "pid": 1, "tid": 100, '
                f'"ts": "{_us(start - 5000)}", "dur": "{_us(last[step] - start)}", "cat": "", "args": {{}}}}'
            )
        trace.write("]")
    if not load.trace:
        (files / "trace_view.json").unlink()
    with (files / "step_trace_time.csv").open("w", newline="") as table:
        table.write(
            "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing\r\n"
        )
        for step, (computing, exposed, free) in steps.items():
            table.write(
                f"{step},{computing:.3f},{exposed:.3f},0.000,{exposed:.3f},{free:.3f},0,0,{exposed:.3f},{load.host_us:.3f}\r\n"
            )
    with (files / "op_statistic.csv").open("w") as table:
        table.write(
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        )
        for (kind, core), (count, us) in sorted(types.items(), key=lambda item: -item[1][1]):
            if core != "COMMUNICATION":
                mean = us / count
                table.write(f"{rank},{kind},{core},{count:.0f},{us:.3f},{mean:.3f},{mean:.3f},{mean:.3f},0\n")
    info = {
        "profiler_parameters": {
            "is_set_schedule": True, "activities": ["CPU", "NPU"], "profiler_level": "Level1", "data_process": False,
            "schedule": {"wait": 0, "active": load.steps, "warmup": 1, "repeat": 1, "skip_first": 20},
        },
        "ms_profiler_info": {"rank_id": str(rank), "device_id": str(rank)},
        "ms_version": "2.10.0", "cann_version": "8.5.0", "jit_level": "O0",
    }  # fmt: skip
    (folder / f"profiler_info_{rank}.json").write_text(json.dumps(info, indent=4))
    members = list(range(load.ranks))
    group = {"hccl_world_group": {"group_name": "hccl_world_group", "group_rank": rank, "global_ranks": members}}
    (folder / "profiler_metadata.json").write_text(
        json.dumps({"parallel_group_info": {"hash": group["hccl_world_group"]}})
    )


def write(load: Workload, out: Path, jobs: int = 1) -> Path:
    """The whole profile; `jobs` processes write ranks side by side."""
    work = partial(write_rank, load, out)
    if jobs == 1:
        for rank in range(load.ranks):
            work(rank)
    else:
        with ProcessPoolExecutor(jobs) as pool:
            list(pool.map(work, range(load.ranks)))
    return out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--kernels", type=int, default=13_504, help="kernels a step and rank")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    write(Workload(ranks=args.ranks, steps=args.steps, kernels=args.kernels), args.out, args.jobs)


if __name__ == "__main__":
    main()
