"""Writes a simulation as MindSpore before 2.3 did: flat files a rank, steps in ticks of the card's own counter.

step_trace_raw (points in ticks of 10 ns), ascend_cluster_analyse (ms; its last row is an average; computation there is
the step less exposed communication) for sharded models and pipelines, hccl_raw (transit and wait of each collective,
links that lead to the rank).
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from advisor.basics.intervals import Intervals, clip, measure, subtract, union
from benchmarks.simulator.busy import device_intervals
from benchmarks.simulator.physics import OPTIMIZER, Op, Simulation, transport

TICKS_PER_US = 100
_STEPS = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
_PHASES = ("computation_time", "communication_alone_time")
_STAGE_PHASES = (*_PHASES, "stage_time", "receive_alone_time", "collective_communication_alone_time")
_COSTS = ("step_num", "communication_cost", "wait_cost", "link_info", "communication_operator_cost")


def write_legacy_profile(run: Simulation, folder: str | Path) -> Path:
    """All files of all ranks in one folder."""
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    for rank in range(run.scenario.world_size):
        spans = _write_steps(run, rank, base)
        _write_phases(run, rank, spans, base)
        _write_collectives(run, rank, base)
    return base


def _write_steps(run: Simulation, rank: int, base: Path) -> list[tuple[float, float]]:
    """Gives the steps' begin and end, microseconds."""
    shift = 1_000_000_000 + 12_345 * rank
    rows: list[list[int]] = []
    spans: list[tuple[float, float]] = []
    previous: float | None = None
    for ops in (step[rank] for step in run.ops):
        work = [op for op in ops if op.joint is None]
        forward = min(op.start for op in work)
        backward = max(op.end for op in work if op.type != OPTIMIZER[0])
        begin, end = forward if previous is None else previous, max(op.end for op in ops)
        previous = end
        spans.append((begin, end))
        start, stop, fp, bp = (round(us * TICKS_PER_US) + shift for us in (begin, end, forward, backward))
        rows.append([start, stop, stop - start, fp, bp, fp - start, bp - fp, stop - bp])
    lines = [_STEPS, *(f"{i}," + ",".join(map(str, row)) for i, row in enumerate(rows, 1))]
    lines.append("-," + ",".join(str(round(float(v))) for v in np.mean(rows, axis=0)))
    (base / f"step_trace_raw_{rank}_detail_time.csv").write_text("\n".join(lines) + "\n")
    return spans


def _write_phases(run: Simulation, rank: int, spans: list[tuple[float, float]], base: Path) -> None:
    s = run.scenario
    if s.tensor == s.pipeline == 1:
        return
    every = [op for step in run.ops for op in step[rank]]
    computing, communicating = device_intervals(every)
    exposed = subtract(communicating, computing)
    receiving = subtract(_intervals([op for op in every if op.type == "hcom_receive_"]), computing)
    rows = []
    for begin, end in spans:
        inside = (clip(part, round(begin * 1e3), round(end * 1e3)) for part in (exposed, receiving))
        whole, (alone, waiting) = (end - begin) / 1e3, (measure(part) / 1e6 for part in inside)
        row = [whole - alone, alone]
        rows.append(row if s.pipeline == 1 else [*row, whole - waiting, waiting, alone - waiting])
    rows.append(np.mean(rows, axis=0).tolist())
    kind, names = ("model", _PHASES) if s.pipeline == 1 else ("pipeline", _STAGE_PHASES)
    lines = [",".join(names), *(",".join(f"{v:.4f}" for v in row) for row in rows)]
    name = f"ascend_cluster_analyse_{kind}-parallel_{s.pipeline}_{s.world_size}_{rank}.csv"
    (base / name).write_text("\n".join(lines) + "\n")


def _intervals(ops: list[Op]) -> Intervals:
    return union(
        np.array([round(op.start * 1000) for op in ops], np.int64),
        np.array([round(op.end * 1000) for op in ops], np.int64),
    )


def _write_collectives(run: Simulation, rank: int, base: Path) -> None:
    with (base / f"hccl_raw_{rank}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COSTS)
        for number, step in enumerate(run.ops, 1):
            operations = {}
            total: dict[str, dict[str, list[float]]] = {}
            moved = waited = 0.0
            for index, op in enumerate(op for op in step[rank] if op.joint is not None):
                links = _incoming(run, op)
                longest = max((cell[0] for link in links.values() for cell in link.values()), default=0.0)
                elapsed = (op.end - op.start) / 1000
                transit = min(longest or elapsed, elapsed)
                kind = op.type.removeprefix("hcom_").rstrip("_")
                label = f"stream_{20 + index % 3}_{index}_{kind[0].upper()}{kind[1:]}-op{300 + index}"
                operations[label] = [str(number), transit, elapsed - transit, links]
                moved, waited = moved + transit, waited + elapsed - transit
                for pair, cells in links.items():
                    for name, (lasts, size, _) in cells.items():
                        cell = total.setdefault(pair, {}).setdefault(name, [0.0, 0.0, 0.0])
                        cell[0], cell[1] = cell[0] + lasts, cell[1] + size
            writer.writerow([number, moved, waited, json.dumps(total), json.dumps(operations)])


def _incoming(run: Simulation, op: Op) -> dict[str, dict[str, list[float]]]:
    """ "3-2": {"SDMA": [ms, KB, rate]}: what reaches this rank; point-to-point operations tell no links here."""
    assert op.joint is not None
    if op.joint.kind == "send":
        return {}
    names = {"HCCS": "SDMA"}
    return {
        f"{a}-{b}": {names.get(transport(run.scenario, a, b), "RDMA"): [lasts / 1000, size / 1000, size / lasts * 1000]}
        for (a, b), (size, lasts) in op.joint.links.items()
        if b == op.rank
    }
