"""Micro-batches of unequal lengths: ranks that compute as much in another order are alike, whoever has more is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

LENGTHS = (1638, 3277, 4915, 6554)
STEPS, RANKS, LAYERS = 4, 4, 4
KERNELS = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types,"
    "Output Shapes,Output Data Types"
)
STEP = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"


def _work(tokens: int, draw: random.Random, slow: float) -> list[tuple[str, str, float, str]]:
    """One micro-batch, forward and backward: products grow with its tokens, attention with their square."""
    part = tokens / 4096 * slow
    rows = []
    for kind, core, us, shapes in [
        ("MatMulV2", "AI_CORE", 900 * part, f"{tokens},1024;1024,4096"),
        ("FlashAttentionScore", "MIX_AIC", 700 * part * tokens / 4096, f"{tokens},1024;{tokens},1024"),
        ("MatMulV2", "AI_CORE", 1500 * part, f"{tokens},1024;1024,4096"),
        ("Add", "AI_VECTOR_CORE", 60 * part, f"{tokens},1024"),
    ] * LAYERS:
        rows.append((kind, core, us * draw.gauss(1, 0.004), shapes))
    return rows


def _write(folder: Path, lengths: Callable[[int, int], list[int]], slow: dict[int, float]) -> Path:
    """Ranks that reduce their gradients together behind the last micro-batch; `lengths` of (rank, step)."""
    draw, at = random.Random(7), 1_000_000.0
    outputs = [folder / f"node_{r}_20260101000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT" for r in range(RANKS)]
    kernels: list[list[str]] = [[KERNELS] for _ in outputs]
    steps: list[list[str]] = [[STEP] for _ in outputs]
    for step in range(STEPS):
        ends, busy = [], []
        for rank, rows in enumerate(kernels):
            now = at
            for tokens in lengths(rank, step):
                for kind, core, us, shapes in _work(tokens, draw, slow.get(rank, 1.0)):
                    result = f"{tokens},{4096 if kind == 'MatMulV2' else 1024}"
                    rows.append(
                        f'{step},aclnn{kind},{kind},{core},{now:.3f},{us:.3f},0,"{shapes}",BF16;BF16,"{result}",BF16'
                    )
                    now += us + 1
            ends.append(now)
            busy.append(now - at)
        last = max(ends) + 400
        for rank, (rows, end) in enumerate(zip(kernels, ends, strict=True)):
            rows.append(
                f"{step},hcom_allReduce__1_{step}_1,hcom_allReduce_,HCCL,{end:.3f},{last - end:.3f},0,N/A,N/A,N/A,N/A"
            )
            steps[rank].append(
                f"{rank},{step},{busy[rank]:.3f},{last - end:.3f},0,{last - end:.3f},20,{last - at:.3f},0,20"
            )
        at = last + 20
    for output, rows, table in zip(outputs, kernels, steps, strict=True):
        output.mkdir(parents=True)
        (output / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (output / "step_trace_time.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
        info = output.parent / f"profiler_info_{outputs.index(output)}.json"
        info.write_text("{}", encoding="utf-8")
    return folder


def _shuffled(rank: int, step: int) -> list[int]:
    return random.Random(rank * 100 + step).sample(LENGTHS, len(LENGTHS))


def _longer(rank: int, step: int) -> list[int]:
    return [tokens * (5 if rank == 2 else 4) // 64 * 16 for tokens in _shuffled(rank, step)]


def _unlike(rank: int, step: int) -> list[int]:
    return [tokens + 16 * rank for tokens in _shuffled(rank, step)]


@pytest.mark.parametrize(("lengths", "slow", "told"), [
    (_shuffled, {}, set()), (_longer, {}, {"CLUS014"}), (_shuffled, {2: 1.2}, {"CLUS010"}),
    (_unlike, {2: 1.2}, {"CLUS010"}),
])  # fmt: skip
def test_unequal_micro_batches_accuse_who_computes_more_and_for_what(
    tmp_path: Path, lengths: Callable[[int, int], list[int]], slow: dict[int, float], told: set[str]
) -> None:
    """The same lengths in another order are no imbalance; longer ones are more work and no slow card, which is told by
    calls of the same shapes however they are ordered, or by as many operations where no shape is another rank's."""
    report = advise([_write(tmp_path, lengths, slow)], load_rules(), Options(jobs=1))
    late = {f.rule for f in report.findings if f.rule.startswith("CLUS01")}
    assert late == told
    assert all(f.subject.id == "2" for f in report.findings if f.rule in told)
    if told == {"CLUS014"}:
        (finding,) = (f for f in report.findings if f.rule == "CLUS014")
        assert "times as many operations" in finding.message.en
