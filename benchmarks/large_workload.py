"""What a large profile records: the layer that is repeated, and when host and device run its kernels."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

EPOCH_NS = 1_700_000_000_000_000_000


LAUNCH_NS = 12_000
"""From launch to start where the device is idle."""


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
    kind: str = "mindspore"
    """mindspore or pytorch (files), or database (PyTorch's)."""
    communication: bool = False
    """Whether communication.json and its matrix are written, and collectives bear the names they have there."""
    memory: int = 0
    """Rows of memory_record.csv and operator_memory.csv."""

    @property
    def pytorch(self) -> bool:
        return self.kind != "mindspore"


KINDS = ("mindspore", "pytorch", "database")


def real_size(ranks: int, kind: str, steps: int = 15, kernels: int = 13_504) -> Workload:
    """What a rank of a real training writes: a collective every 13 kernels, with all files."""
    return Workload(
        ranks=ranks, steps=steps, kernels=kernels, collective_every=13, communication=True, memory=steps * 1500,
        kind=kind,
    )  # fmt: skip


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
