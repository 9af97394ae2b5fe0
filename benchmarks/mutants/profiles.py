"""Intact profiles of every layout, generated; the originals that mutants are made from."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from benchmarks.simulator import Fault, Scenario, Simulation, simulate, write_profile
from benchmarks.simulator.physics import group_key, transport
from benchmarks.simulator.recordings import RECORDINGS
from benchmarks.simulator.writers import write_info

EPOCH_NS = 1_700_000_000_000_000_000
CORPUS_LIMIT = 8_000_000
"""Larger profiles of the corpus are left out: a run has thousands of mutants."""


def write_originals(folder: Path, corpus: bool = True) -> dict[str, Path]:
    """name -> folder of every original below `folder`, and of the corpus where ADVISOR_CORPUS names one."""
    originals: dict[str, Path] = {}
    for name, write in _WRITERS.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        write(target)
        originals[name] = target
    root = os.environ.get("ADVISOR_CORPUS")
    if corpus and root:
        for path in sorted(p for p in Path(root).iterdir() if p.is_dir()):
            if sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) <= CORPUS_LIMIT:
                originals[f"corpus/{path.name}"] = path
    return originals


TRUE = {
    "ms": {("slow-compute-rank", "rank 2")},
    "pt": {("slow-link", "link 1-2"), ("slow-link", "link 2-1")},
    "pt-trace": {("host-dispatch-bound", "rank 1")},
    "db": {("slow-compute-rank", "rank 1")},
    "cluster": {("slow-compute-rank", "rank 2")},
    "archive-gz": {("slow-compute-rank", "rank 2")},
    "archive-zip": {("slow-link", "link 1-2"), ("slow-link", "link 2-1")},
}
"""(verdict, subject) of the faults that the originals were given."""


def _simulated(scenario: Scenario, trace: bool = False) -> Callable[[Path], None]:
    return lambda folder: void(write_profile(simulate(scenario), folder, trace=trace))


def void(_: object) -> None:
    """Drops a result."""


def _write_database(folder: Path) -> None:
    faults = (Fault("slow_compute", 1, 0.5),)
    write_databases(
        simulate(Scenario(data=2, steps=3, layers=2, framework="pytorch", faults=faults)), folder
    )  # fmt: skip


def write_databases(run: Simulation, folder: Path) -> None:
    """The run as torch_npu's databases, a folder for each rank that is not missing."""
    for rank in sorted(set(range(run.scenario.world_size)) - set(run.scenario.missing_ranks)):
        root = folder / f"{run.scenario.host_name(rank)}_{4000 + rank}_20240101{rank:09d}_ascend_pt"
        output = root / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True, exist_ok=True)
        write_info(run, rank, root)
        _fill(output / f"ascend_pytorch_profiler_{rank}.db", run, rank)


def _fill(path: Path, run: Simulation, rank: int) -> None:
    """The tables of a profiler's database that the advisor reads, from a simulation."""
    path.unlink(missing_ok=True)
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers) + 1)

    def ns(us: float) -> int:
        return EPOCH_NS + round((us + run.clock_offset[rank]) * 1000)

    key = {name: group_key(name) for name in run.groups}
    told = {
        key[name]: {"group_name": name.partition("-")[0], "group_rank": members.index(rank), "global_ranks": [*members]}
        for name, members in run.groups.items()
        if rank in members
    }
    tasks, infos, operations, interfaces, analysed, links = [], [], [], [], [], []
    ops = [op for step in run.ops for op in step[rank]]
    for index, op in enumerate(ops, 1):
        interfaces.append((ns(op.launch), ns(op.launched), 20000, index, number("launch")))
        if op.joint is None:
            tasks.append((ns(op.start), ns(op.end), 0, index, index, 2))
            shape, kind = number("4096,4096"), number("FLOAT16")
            infos.append((number(op.name), index, 20, number("AI_CORE"), number(op.type), shape, kind, shape, kind))
        else:
            members, group = run.groups[op.joint.group], key[op.joint.group]
            operations.append((number(op.name), ns(op.start), ns(op.end), number(group), index, len(members)))
            took = (op.end - op.start) / 1000
            analysed.append((op.name, group, ns(op.start) / 1000, took, took, 0, 0, 0, f"step{op.step}"))
            for (a, b), (size, lasts) in op.joint.links.items():
                if a == rank:
                    moved = size / 1e6, lasts / 1000, size / max(lasts, 1e-9) / 1000
                    kind = transport(run.scenario, a, b)
                    pair = str(members.index(a)), str(members.index(b))
                    links.append((op.name, group, *pair, kind, *moved, f"step{op.step}"))
    spans = [(run.scenario.first_step + i, ns(s[rank].begin), ns(s[rank].end)) for i, s in enumerate(run.spans)]
    connection = sqlite3.connect(path)
    connection.executescript(_SCHEMA)
    for table, rows in (
        ("TASK", tasks), ("COMPUTE_TASK_INFO", infos), ("COMMUNICATION_OP", operations), ("CANN_API", interfaces),
        ("CommAnalyzerTime", analysed), ("CommAnalyzerMatrix", links), ("STEP_TIME", spans),
        ("META_DATA", [("parallel_group_info", json.dumps(told))] if run.scenario.metadata else []),
        ("RANK_DEVICE_MAP", [(rank, rank)]),
        ("HOST_INFO", [("1", run.scenario.host_name(rank))]), ("ENUM_API_TYPE", [(20000, "node")]),
        ("STRING_IDS", [(number, text) for text, number in numbers.items()]),
    ):  # fmt: skip
        if rows:
            connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    connection.commit()
    connection.close()


_SCHEMA = """
CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER,
 streamId INTEGER);
CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, taskType INTEGER,
 opType INTEGER, inputShapes INTEGER, inputDataTypes INTEGER, outputShapes INTEGER, outputDataTypes INTEGER);
CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, groupName INTEGER,
 opId INTEGER PRIMARY KEY, rankSize INTEGER);
CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER, connectionId INTEGER, name INTEGER);
CREATE TABLE CommAnalyzerTime(hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC,
 transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT);
CREATE TABLE CommAnalyzerMatrix(hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT,
 transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT);
CREATE TABLE META_DATA(name TEXT, value TEXT);
CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);
CREATE TABLE ENUM_API_TYPE(id INTEGER PRIMARY KEY, name TEXT);
"""


def _write_cluster(folder: Path) -> None:
    """A cluster analyser's output of four ranks, the third one slow."""
    output = folder / "cluster_analysis_output"
    output.mkdir(exist_ok=True)
    columns = "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
    rows, operations, links = [], {}, {}
    for step in ("7", "8", "9"):
        for rank in range(4):
            computing = 30_000 + 37 * rank + (9_000 if rank == 2 else 0)
            exposed = 48_000 - computing
            rows.append(f"{step},rank,{rank},{computing},{exposed},800,{exposed + 800},900,0,0")
        rows.append(f'{step},stage,"(0, 1, 2, 3)",39074,18000,800,18800,900,0,0')
        ranks = {
            str(rank): {
                "Communication Time Info": {
                    "Start Timestamp(us)": 1.7e15 + int(step) * 5e4 + rank,
                    "Elapse Time(ms)": 9.0 - (6 if rank == 2 else 0),
                    "Transit Time(ms)": 2.9, "Wait Time(ms)": 6.0 - (5.9 if rank == 2 else 0),
                    "Synchronization Time(ms)": 6.0 - (5.9 if rank == 2 else 0), "Idle Time(ms)": 0.1,
                },
                "Communication Bandwidth Info": {
                    "HCCS": {"Transit Size(MB)": 50.0, "Transit Time(ms)": 2.9, "Bandwidth(GB/s)": 17.2,
                             "Large Packet Ratio": 1.0, "Size Distribution": {"12.5": [4, 2.9]}},
                },
            }
            for rank in range(4)
        }  # fmt: skip
        operations[f"step{step}"] = {"hcom_allReduce__101_0_1@g101": ranks}
        links[f"step{step}"] = {
            "hcom_allReduce__101_0_1@g101": {
                f"{a}-{(a + 1) % 4}": {"Transport Type": "HCCS", "Transit Time(ms)": 2.9, "Transit Size(MB)": 50.0,
                                       "Bandwidth(GB/s)": 17.2}
                for a in range(4)
            }
        }  # fmt: skip
    (output / "cluster_step_trace_time.csv").write_text("\n".join((columns, *rows)) + "\n")
    (output / "cluster_communication.json").write_text(json.dumps({"(0, 1, 2, 3)": operations}))
    (output / "cluster_communication_matrix.json").write_text(json.dumps({"(0, 1, 2, 3)": links}))
    groups = [{"type": "collective", "rank_set": [0, 1, 2, 3], "group_name": "g101", "pg_name": "dp"}]
    (output / "communication_group.json").write_text(json.dumps({"comm_group_parallel_info": groups}))


def _write_legacy(folder: Path) -> None:
    """Files of older MindSpore: steps, operators, AICPU, the data pipeline and its queues, one device. A map is too
    slow: its queue is empty, the sending thread waits for it, and so does the device for a fifth of each step."""
    ticks = [(n, n * 2_000_000) for n in range(1, 9)]
    steps = "".join(
        f"{n},{t},{t + 1_900_000},1900000,{t + 400_000},{t + 1_800_000},400000,1400000,100000\n" for n, t in ticks
    )
    head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    average = "-,2000000,3900000,1900000,2400000,3800000,400000,1400000,100000\n"
    types = "op_type,execution_time,execution_frequency,percent\nMatMul,9.1,6,61\nTransData,4.2,9,28\nMul,1.6,30,11\n"
    details = "full_op_name,execution_time\n" + "".join(
        f"Default/network-Net/layer{n}-Dense/MatMul-op{n},1.52\nDefault/TransData-op{90 + n},0.47\n" for n in range(6)
    )
    pipeline = (
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        '0,Batch,2,"[1, 0, 2, 0, 1, 0]",0.66,16,0.04,10,,[1]\n'
        '1,Map,4,"[0, 0, 1, 0, 0, 0]",0.16,16,0.01,10,0,[2]\n'
        '2,ImageFolder,4,"[15, 16, 16, 16, 16, 16]",15.8,16,0.98,10,1,\n'
    )
    operations = [
        {"op_id": 2, "op_type": "ImageFolder", "num_workers": 4,
         "metrics": {"output_queue": {"length": 16, "size": [15, 16, 16, 16, 16, 16]}}},
        {"op_id": 1, "op_type": "Map", "num_workers": 4, "children": [2],
         "metrics": {"output_queue": {"length": 16, "size": [0, 0, 1, 0, 0, 0]}}},
        {"op_id": 0, "op_type": "Batch", "num_workers": 2, "children": [1],
         "metrics": {"output_queue": {"length": 16, "size": [1, 0, 2, 0, 1, 0]}}},
    ]  # fmt: skip
    usage = {
        "cpu_processor_num": 16, "sampling_interval": 10, "time_stamp": [10, 20, 30, 40, 50, 60],
        "device_info": {"user_utilization": [30] * 6, "sys_utilization": [4] * 6, "idle_utilization": [66] * 6},
        "op_info": [
            {"op_id": n, "metrics": {"user_utilization": [u] * 6, "sys_utilization": [1] * 6}}
            for n, u in ((0, 20), (1, 390), (2, 40))
        ],
    }  # fmt: skip
    queue = "".join(f"0 {kind} {n} {value} {n * 20}\n" for n in range(1, 40) for kind, value in ((0, 15), (1, 5)))
    iterator = "".join(f"1 64 {n} {n % 3} {n * 20}\n" for n in range(1, 40))
    aicpu = "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end\n" + "".join(
        f"{n},GetNext,0.9,0.1,0.7,{1000 * n},{1000 * n + 700}\n" for n in range(1, 9)
    )
    files = {
        "step_trace_raw_0_detail_time.csv": head + steps + average,
        "aicore_intermediate_0_type.csv": types,
        "aicore_intermediate_0_detail.csv": details,
        "aicpu_intermediate_0.csv": aicpu,
        "minddata_pipeline_raw_0.csv": pipeline,
        "pipeline_profiling_0.json": json.dumps({"sampling_interval": 10, "op_info": operations}),
        "minddata_cpu_utilization_0.json": json.dumps(usage),
        "device_queue_profiling_0.txt": queue,
        "dataset_iterator_profiling_0.txt": iterator,
        "profiler_info_0.json": json.dumps({"context_mode": "graph", "rank_size": 1, "step_num": [1, 8]}),
    }
    for name, text in files.items():
        (folder / name).write_text(text)


def _recorded(kind: str) -> Callable[[Path], None]:
    """A recording that is no whole training with steps."""
    return lambda folder: void(RECORDINGS[kind](folder, 0))


def _packed(name: str, form: str) -> Callable[[Path], None]:
    """A folder with nothing but an archive of another original in it."""

    def write(folder: Path) -> None:
        inner = folder / "packing" / name
        inner.mkdir(parents=True)
        _WRITERS[name](inner)
        shutil.make_archive(str(folder / "run"), form, inner.parent, name)
        shutil.rmtree(inner.parent)

    return write


ARCHIVES = (".gz", ".tar", ".zip")


def what_to_judge(profile: Path) -> Path:
    """The folder of an original or mutant; for an original that is an archive, the archive in it."""
    if profile.name.startswith("archive-"):
        for suffix in ARCHIVES:
            for path in profile.glob(f"run*{suffix}"):
                return path
    return profile


_WRITERS: dict[str, Callable[[Path], None]] = {
    "ms": _simulated(Scenario(data=4, steps=4, layers=2, faults=(Fault("slow_compute", 2, 0.5),))),
    "ms-healthy": _simulated(Scenario(data=4, steps=4, layers=2)),
    "ms-pipeline": _simulated(Scenario(data=2, pipeline=2, micro_batches=4, steps=3, layers=2)),
    "pt": _simulated(
        Scenario(data=4, steps=4, layers=2, framework="pytorch", gradient_mb_per_layer=30.0,
                 faults=(Fault("slow_link", (1, 2), 4.0),))
    ),
    "pt-trace": _simulated(
        Scenario(data=2, steps=3, layers=2, framework="pytorch", faults=(Fault("slow_host", 1, 0.5),)), trace=True
    ),
    "ms-trace": _simulated(Scenario(data=2, steps=3, layers=2), trace=True),
    "db": _write_database,
    "cluster": _write_cluster,
    "legacy": _write_legacy,
    **{f"recording-{kind.replace(' ', '-').replace(',', '')}": _recorded(kind)
       for kind in ("kernel benchmark", "decoding", "training without marks", "set-up, then training",
                    "only trace_view.json", "kernels cut in half")},
    "archive-gz": _packed("ms", "gztar"), "archive-tar": _packed("legacy", "tar"), "archive-zip": _packed("pt", "zip"),
}  # fmt: skip
