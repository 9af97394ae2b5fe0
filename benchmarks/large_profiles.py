"""Writes profiles in the true format of MindSpore's and PyTorch's Ascend profilers, of any size.

    python -m benchmarks.large_profiles OUT [--ranks 8] [--steps 15] [--kernels 13504] [--kind pytorch]

The defaults give eight ranks of about 200,000 kernels and 15,000 collectives: kernel_details.csv of 73 MB,
trace_view.json of 200 to 270 MB and communication.json of 19 MB each, or databases of the same.
Host and device follow a simple machine: the host launches one kernel every `host_us`, the device runs them in order,
so that a slow host starves the device and a fast one runs ahead of it (the tests rely on that).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks import large_pytorch
from benchmarks.large_communication import Collective, collective, groups_of, write_communication, write_matrix
from benchmarks.large_databases import write_analysis, write_main
from benchmarks.large_workload import EPOCH_NS, KINDS, Kernel, Launch, Workload, real_size, simulate

KERNEL_HEADER = (
    "Step ID,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),"
    "aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),"
    "aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,"
    "aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _pmu(kernel: Kernel, us: float) -> str:
    """The counters of PipeUtilization: (time, ratio) pairs of cube kernels, then those of vector kernels."""
    vector = kernel.core == "AI_VECTOR_CORE"
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


def _kernel_row(k: Launch, name: str) -> str:
    us = k.duration / 1000
    if k.kernel is None:
        return (
            f"{k.step},4294967295,N/A,N/A,{name},{name.partition('__')[0]}_,N/A,COMMUNICATION,{_us(k.start)}\t,"
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


def _events(k: Launch, number: int, collective: str) -> Iterator[str]:
    launch, start, us = _us(k.launch), _us(k.start), k.duration / 1000
    name = k.kernel.type if k.kernel else collective
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


class _Recorder:
    """What all files of a rank have in common: where steps begin and end, sums, and the collectives."""

    def __init__(self, load: Workload, rank: int) -> None:
        self.load, self.groups = load, groups_of(rank, load.ranks)
        self.phases: dict[int, list[float]] = {}
        """step -> computing, communication, free in µs"""
        self.types: dict[tuple[str, str], list[float]] = {}
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.collectives: list[Collective] = []
        self.ordinal = self.end = 0

    def take(self, k: Launch) -> str:
        """Adds a kernel to the sums; the name it goes by where it is a collective."""
        name = ""
        phases = self.phases.setdefault(k.step, [0.0, 0.0, 0.0])
        if k.step not in self.first:
            self.first[k.step], self.ordinal = k.launch, 0
        elif self.end:
            phases[2] += max(0, k.start - self.end) / 1000
        self.end = self.last[k.step] = k.start + k.duration
        phases[0 if k.kernel else 1] += k.duration / 1000
        if k.kernel is None:
            name = f"hcom_allReduce__{k.index}_0_1"
            if self.load.communication:
                whole = len(self.collectives)
                one = collective(self.groups, k.step, self.ordinal, whole, k.start, k.duration)
                self.collectives.append(one)
                self.ordinal, name = self.ordinal + 1, one.name
        key = (k.kernel.type, k.kernel.core) if k.kernel else ("hcom_allReduce_", "COMMUNICATION")
        total = self.types.setdefault(key, [0.0, 0.0])
        total[0] += 1
        total[1] += k.duration / 1000
        return name

    def steps(self) -> list[tuple[int, int, int]]:
        """(step, start, end) in nanoseconds, on the host."""
        return [(step, start - 5000, self.last[step] - 5000) for step, start in self.first.items()]


def write_rank(load: Workload, out: Path, rank: int) -> None:
    """One rank's folder, with the files or databases that its profiler writes."""
    framework = "pt" if load.pytorch else "ms"
    folder = out / f"host{rank // 8}_{4000 + rank}_20260101000000000_ascend_{framework}"
    files = folder / "ASCEND_PROFILER_OUTPUT"
    files.mkdir(parents=True, exist_ok=True)
    recorder = _Recorder(load, rank)
    if load.kind == "database":
        launches = [*simulate(load, rank)]
        for k in launches:
            recorder.take(k)
        write_main(files / f"ascend_pytorch_profiler_{rank}.db", rank, launches, recorder.collectives, recorder.steps())
        write_analysis(files / "analysis.db", rank, recorder.phases, recorder.collectives)
    else:
        _write_texts(load, files, rank, recorder)
    _write_identity(load, folder, rank)


def _write_texts(load: Workload, files: Path, rank: int, recorder: _Recorder) -> None:
    events, metadata = (large_pytorch.events, large_pytorch.metadata) if load.pytorch else (_events, _metadata)
    with (files / "kernel_details.csv").open("w", newline="") as table, (files / "trace_view.json").open("w") as trace:
        table.write((KERNEL_HEADER.replace("Step ID", "Step Id") if load.pytorch else KERNEL_HEADER) + "\r\n")
        trace.write("[" + ", ".join(metadata()))
        for number, k in enumerate(simulate(load, rank)):
            name = recorder.take(k)
            table.write(_kernel_row(k, name) + "\r\n")
            if load.trace:
                trace.write(", " + ", ".join(events(k, number, name)))
        for step, start, end in recorder.steps():
            trace.write(", " + (large_pytorch.step_event if load.pytorch else _step_event)(step, start, end))
        trace.write("]")
    if not load.trace:
        (files / "trace_view.json").unlink()
    with (files / "step_trace_time.csv").open("w", newline="") as table:
        table.write(
            "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing\r\n"
        )
        for step, (computing, exposed, free) in recorder.phases.items():
            table.write(
                f"{step},{computing:.3f},{exposed:.3f},0.000,{exposed:.3f},{free:.3f},0,0,{exposed:.3f},{load.host_us:.3f}\r\n"
            )
    with (files / "op_statistic.csv").open("w") as table:
        table.write(
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        )
        for (kind, core), (count, us) in sorted(recorder.types.items(), key=lambda item: -item[1][1]):
            if core != "COMMUNICATION":
                mean = us / count
                table.write(f"{rank},{kind},{core},{count:.0f},{us:.3f},{mean:.3f},{mean:.3f},{mean:.3f},0\n")
    if load.communication:
        write_communication(files / "communication.json", recorder.collectives)
        heading = "Op Name" if load.pytorch else "op_name"
        write_matrix(files / "communication_matrix.json", recorder.collectives, rank, heading)
    if load.memory:
        _write_memory(load, files, rank)


def _step_event(step: int, start: int, end: int) -> str:
    return (
        f'{{"ph": "X", "name": "Python::PythonObserved::ProfilerStep#{step}", "pid": 1, "tid": 100, '
        f'"ts": "{_us(start)}", "dur": "{_us(end - start)}", "cat": "", "args": {{}}}}'
    )


def _write_memory(load: Workload, files: Path, rank: int) -> None:
    """memory_record.csv and operator_memory.csv: a sawtooth of allocations, tens of GB."""
    device = f"NPU:{rank % 8}"
    with (files / "memory_record.csv").open("w") as record, (files / "operator_memory.csv").open("w") as operators:
        record.write("Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,")
        record.write("Device Type\n")
        operators.write(
            "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),"
            "Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
            "Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
            "Release Total Active(MB),Stream Ptr,Device Type\n"
        )
        for number in range(load.memory):
            at, used = EPOCH_NS + number * 1_000_000, 20_000 + number % 400 * 25.5
            record.write(f"PTA+GE,{_us(at)}\t,{used},46080.0,{used},733279888,{device}\n")
            operators.write(
                f"aten::empty,{number % 900 + 0.5},{_us(at)}\t,{_us(at + 400_000)}\t,{_us(at + 400_000)}\t,400.0,400.0,"
                f"{used},46080.0,{used},{used},46080.0,{used},733279888,{device}\n"
            )


def _write_identity(load: Workload, folder: Path, rank: int) -> None:
    schedule = {"wait": 0, "active": load.steps, "warmup": 1, "repeat": 1, "skip_first": 20}
    if load.pytorch:
        info: dict[str, object] = {
            "config": {
                "common_config": {
                    "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "schedule": schedule,
                    "record_shapes": True, "profile_memory": bool(load.memory), "with_stack": True,
                },
                "experimental_config": {"_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION"},
            },
            "rank_id": rank, "torch_npu_version": "2.7.1", "cann_version": "8.5.0",
        }  # fmt: skip
    else:
        info = {
            "profiler_parameters": {
                "is_set_schedule": True, "activities": ["CPU", "NPU"], "profiler_level": "Level1",
                "data_process": False, "schedule": schedule,
            },
            "ms_profiler_info": {"rank_id": str(rank), "device_id": str(rank)},
            "ms_version": "2.10.0", "cann_version": "8.5.0", "jit_level": "O0",
        }  # fmt: skip
    (folder / f"profiler_info_{rank}.json").write_text(json.dumps(info, indent=4))
    groups = {
        group.key: {"group_name": group.name, "group_rank": group.members.index(rank), "global_ranks": group.members}
        for group in groups_of(rank, load.ranks)
        if load.communication or group.name == "hccl_world_group"
    }
    (folder / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": groups}))


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
    parser.add_argument("--kind", choices=KINDS, default="mindspore")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    write(real_size(args.ranks, args.kind, args.steps, args.kernels), args.out, args.jobs)


if __name__ == "__main__":
    main()
