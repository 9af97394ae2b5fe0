"""A rank's databases as torch_npu exports them: ascend_pytorch_profiler_N.db and analysis.db."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.large_communication import Collective, matrix_cells, transports
from benchmarks.large_workload import Launch

_MAIN = """
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT);
CREATE TABLE NPU_INFO (id INTEGER, name TEXT);
CREATE TABLE META_DATA (name TEXT, value TEXT);
CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, mixBlockDim INTEGER,
 taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER,
 outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER, waitNs INTEGER);
CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER,
 globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER,
 depth INTEGER);
CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC);
CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER,
 groupName INTEGER, opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER,
 count NUMERIC, opType INTEGER, waitNs INTEGER);
CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
 connectionId INTEGER PRIMARY KEY, name INTEGER, depth INTEGER);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER,
 sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER,
 type INTEGER, depth INTEGER);
"""
_ANALYSIS = """
CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC,
 communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC,
 communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC);
CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC,
 transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT);
CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC,
 transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC,
 total_duration NUMERIC, step TEXT, type TEXT);
CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT,
 transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT,
 op_name TEXT);
"""
COUNTERS = (
    "aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aiv_vec_ratio",
    "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "cube_utilization", "aicore_time", "aic_total_cycles",
)  # fmt: skip
"""Counters of each kernel; real databases have up to 28."""


class _Strings(dict[str, int]):
    """Numbers of texts, given as they come."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]], width: int) -> None:
    connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * width)})", rows)


def _counters(launches: Iterable[Launch], strings: _Strings) -> Iterator[tuple[int, int, float]]:
    names = [strings[name] for name in COUNTERS]
    for number, k in enumerate(launches):
        if k.kernel is not None:
            for place, name in enumerate(names):
                yield number, name, (number % 97 + place) / 1000 + 0.3


def write_main(
    path: Path, rank: int, launches: list[Launch], found: list[Collective], steps: list[tuple[int, int, int]]
) -> None:
    """The main database: tasks, what they computed, counters, host interfaces. `steps` are (step, start, end) in ns."""
    path.unlink(missing_ok=True)
    strings = _Strings()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.executescript(_MAIN)
        _insert(connection, "RANK_DEVICE_MAP", [(rank, rank % 8)], 2)
        _insert(connection, "HOST_INFO", [("0", f"host{rank // 8}")], 2)
        _insert(connection, "NPU_INFO", [(0, "Ascend910B")], 2)
        _insert(connection, "ENUM_API_TYPE", [(5000, "runtime"), (10000, "node"), (20000, "acl")], 2)
        _insert(connection, "STEP_TIME", steps, 3)
        computed = [(number, k) for number, k in enumerate(launches) if k.kernel is not None]
        _insert(connection, "COMPUTE_TASK_INFO", (_info(n, k, strings) for n, k in computed), 14)
        rows = ((k.start, k.start + k.duration, rank % 8, n, n, 1, 1, 4294967295, 2, k.index % 65536, 4294967295, 0)
                for n, k in computed)  # fmt: skip
        _insert(connection, "TASK", rows, 12)
        _insert(connection, "TASK_PMU_INFO", _counters(launches, strings), 3)
        _insert(connection, "COMMUNICATION_OP", (
            (strings[one.name], one.start, one.start + one.duration, 10_000_000 + n, strings[one.group.key], n, 0, 0, 4,
             strings["RING"], 1e6, strings[f"hcom_{one.kind}_"], 0) for n, one in enumerate(found)), 13)  # fmt: skip
        _insert(connection, "CANN_API", (
            (k.launch, k.launch + 4250, 20000, 77, n, strings[f"aclnn{k.kernel.type if k.kernel else 'Hccl'}"], 0)
            for n, k in enumerate(launches)), 7)  # fmt: skip
        _insert(connection, "PYTORCH_API", (
            (str(k.launch - 6000), str(k.launch + 5250), 77, n,
             strings[f"aten::{k.kernel.type if k.kernel else 'c10d'}"], n, None, None, None, None, 50002, 3)
            for n, k in enumerate(launches)), 12)  # fmt: skip
        _insert(connection, "STRING_IDS", ((number, text) for text, number in strings.items()), 2)
        connection.commit()


def _info(number: int, k: Launch, strings: _Strings) -> tuple[Any, ...]:
    o = k.kernel
    assert o is not None
    formats = ";".join(["ND"] * (o.inputs.count(";") + 1))
    return (
        strings[f"{o.name}-op{k.index}"], number, 24, 0, strings[o.core], strings[o.type], strings[formats],
        strings[o.dtypes], strings[o.inputs], strings["ND"], strings[o.dtypes.split(";")[0]], strings[o.output],
        strings[""], k.wait,
    )  # fmt: skip


def write_analysis(path: Path, rank: int, steps: dict[int, list[float]], found: list[Collective]) -> None:
    """The analysis: step phases (computing, exposed, free in µs), collectives, transports and links."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.executescript(_ANALYSIS)
        rows = ((str(s), computing, exposed, 0.0, exposed, free, 0.0, 0.0, exposed, 14.0)
                for s, (computing, exposed, free) in steps.items())  # fmt: skip
        _insert(connection, "StepTraceTime", rows, 10)
        _insert(connection, "CommAnalyzerTime", map(_times, found), 10)
        _insert(connection, "CommAnalyzerBandwidth", (row for one in found for row in _bandwidths(one)), 12)
        cells = ((name, group, str(a), str(b), kind, size, ms, size / ms, f"step{step}", "collective", operation)
                 for step, name, group, a, b, kind, size, ms, operation in matrix_cells(found, rank))  # fmt: skip
        _insert(connection, "CommAnalyzerMatrix", cells, 11)
        connection.commit()


def _times(one: Collective) -> tuple[Any, ...]:
    ms = one.duration / 1e6
    return (one.name, one.group.key, one.start / 1000, ms, ms * 0.62, ms * 0.3, ms * 0.21, ms * 0.08, f"step{one.step}",
            "collective")  # fmt: skip


def _bandwidths(one: Collective) -> Iterator[tuple[Any, ...]]:
    for name, size, ms, packets in transports(one):
        for each, number, lasts in packets or ((0, 0, 0.0),):
            yield (one.name, one.group.key, name, size, ms, round(size / ms, 4), 0.5, each, number, lasts,
                   f"step{one.step}", "collective")  # fmt: skip
