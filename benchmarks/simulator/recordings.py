"""Recordings that are no whole training with steps: what users share besides, each with what is known of it.

Every maker writes one profile into a folder and says what it is. The kernels of those without marks are written as
msprof exports them; the cut, contradictory and partial ones are made of a simulated training.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.simulator.physics import simulate
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.writers import write_profile

_ORIGIN_US = 1_700_000_000_000_000
_HEAD = (
    "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type",
    "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)", "Block Dim",
)  # fmt: skip
_FORWARD = ("RmsNorm", "MatMulV2", "Add", "MatMulV2", "SwiGlu", "MatMulV2")
_TOKEN = ("RmsNorm", "MatMulV2", "ReshapeAndCache", "PagedAttentionMaskNd", "MatMulV2", "SwiGlu", "MatMulV2")
_TRAINING = (*_FORWARD, "SoftmaxGrad", "MatMulV2", "ReluGrad", "MatMulV2", "Cast", "ApplyAdamW")


@dataclass(frozen=True)
class Known:
    """What is known of a recording. Times in microseconds."""

    kind: str
    step_us: float | None = None
    """Length of a step; None where nothing marks steps."""
    recording_us: float | None = None
    """Length of what is to be judged, where nothing marks steps."""
    busy_share: float | None = None
    """Part of it in which kernels run."""


def write_kernels(folder: Path, kernels: list[tuple[str, float, float]]) -> None:
    """op_summary and op_statistic of (type, start, duration), microseconds, as msprof exports them."""
    output = folder / "PROF_000001" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows, until = [], 0.0
    for number, (kind, start, duration) in enumerate(kernels):
        wait = max(start - until, 0.0) if until else 0.0
        until = max(until, start + duration)
        core = "AI_CORE" if "MatMul" in kind else "AI_VECTOR_CORE"
        stamp = f"{_ORIGIN_US + int(start)}.{int(start * 1000) % 1000:03d}\t"
        rows.append((0, 4294967295, number, 1, f"aclnn{kind}_{kind}", kind, "dynamic", core, stamp, duration, wait, 24))
    with (output / "op_summary_20260101000000.csv").open("w", newline="") as file:
        csv.writer(file).writerows([_HEAD, *rows])
    totals: dict[str, list[float]] = {}
    for kind, _, duration in kernels:
        totals.setdefault(kind, []).append(duration)
    whole = sum(map(sum, totals.values()))
    lines = ["Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
    lines += [
        f"0,{kind},AI_CORE,{len(us)},{sum(us):.3f},{min(us)},{sum(us) / len(us):.3f},{max(us)},{100 * sum(us) / whole}"
        for kind, us in totals.items()
    ]
    (output / "op_statistic_20260101000000.csv").write_text("\n".join(lines) + "\n")


def _loop(
    rng: random.Random, sequence: tuple[str, ...], times: int, start: float, gap: float, duration: float
) -> list[tuple[str, float, float]]:
    found, at = [], start
    lengths = {kind: duration * rng.uniform(0.5, 2.0) for kind in sequence}
    for _ in range(times):
        for kind in sequence:
            us = lengths[kind] * rng.uniform(0.95, 1.05)
            found.append((kind, at, us))
            at += us + gap * rng.uniform(0.5, 1.5)
    return found


def _judged(kernels: list[tuple[str, float, float]], kind: str) -> Known:
    length = kernels[-1][1] + kernels[-1][2] - kernels[0][1]
    return Known(kind, recording_us=length, busy_share=sum(us for _, _, us in kernels) / length)


def kernel_benchmark(folder: Path, seed: int) -> Known:
    """One kernel again and again, after its inputs were made and it was compiled."""
    rng = random.Random(seed)
    before = [("Cast", 100.0, 3.0), ("DSARandomNormal", 900.0, 2.0)]
    compiled = rng.uniform(20_000, 2_000_000)
    kernels = _loop(rng, ("custom_kernel",), rng.randint(5, 200), compiled, rng.uniform(5, 300), rng.uniform(5, 400))
    write_kernels(folder, before + kernels)
    return _judged(kernels, "kernel_benchmark")


def decoding(folder: Path, seed: int) -> Known:
    """Tokens one after another, behind the loading of the weights and a first, longer pass over the prompt."""
    rng = random.Random(seed)
    weights = _loop(rng, ("TransData", "Cast"), 20, 100.0, 400.0, 30.0)
    kernels = _loop(rng, _TOKEN * rng.randint(2, 8), rng.randint(10, 60), 3_000_000.0, rng.uniform(2, 60), 15.0)
    write_kernels(folder, weights + kernels)
    return _judged(kernels, "inference")


def unmarked_training(folder: Path, seed: int) -> Known:
    """A whole training recorded by msprof alone: steps repeat, and nothing marks them."""
    rng = random.Random(seed)
    kernels = _loop(rng, _TRAINING * rng.randint(2, 6), rng.randint(8, 40), 0.0, rng.uniform(2, 200), 40.0)
    write_kernels(folder, kernels)
    return _judged(kernels, "unmarked")


def set_up_and_training(folder: Path, seed: int) -> Known:
    """The same behind seconds of compilation, with kernels of the initialisation before it."""
    rng = random.Random(seed)
    before = _loop(rng, ("Fill", "Cast", "StatelessRandomNormalV2"), 10, 0.0, 500.0, 5.0)
    begin = rng.uniform(1e6, 3e7)
    kernels = _loop(rng, _TRAINING * rng.randint(2, 6), rng.randint(8, 40), begin, rng.uniform(2, 200), 40.0)
    write_kernels(folder, before + kernels)
    return _judged(kernels, "unmarked")


def _training(folder: Path, seed: int) -> tuple[Known, Path]:
    scenario = Scenario(data=1, layers=3, steps=6, kernel_us=300.0, gradient_mb_per_layer=1.0, seed=seed)
    run = simulate(replace(scenario, framework="pytorch"))
    (root,) = write_profile(run, folder, trace=True)
    return Known("training_steps", step_us=run.mean_us), root / "ASCEND_PROFILER_OUTPUT"


def whole_training(folder: Path, seed: int) -> Known:
    """One device with all its tables, for comparison."""
    return _training(folder, seed)[0]


def _only(name: str) -> Callable[[Path, int], Known]:
    def make(folder: Path, seed: int) -> Known:
        known, output = _training(folder / "whole", seed)
        shutil.copy(output / name, folder / name)
        shutil.rmtree(folder / "whole")
        return known

    make.__doc__ = f"Of that training only {name} was shared."
    return make


def cut_kernels(folder: Path, seed: int) -> Known:
    """Half of the kernels were cut off; the step table is whole."""
    known, output = _training(folder, seed)
    path = output / "kernel_details.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    return known


def thinned_kernels(folder: Path, seed: int) -> Known:
    """Every second kernel was filtered out; the step table is whole."""
    known, output = _training(folder, seed)
    path = output / "kernel_details.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *rows[::2]]) + "\n")
    return known


RECORDINGS: dict[str, Callable[[Path, int], Known]] = {
    "kernel benchmark": kernel_benchmark, "decoding": decoding, "training without marks": unmarked_training,
    "set-up, then training": set_up_and_training, "training": whole_training,
    "only step_trace_time.csv": _only("step_trace_time.csv"), "only kernel_details.csv": _only("kernel_details.csv"),
    "only trace_view.json": _only("trace_view.json"), "kernels cut in half": cut_kernels,
    "every second kernel": thinned_kernels,
}  # fmt: skip
