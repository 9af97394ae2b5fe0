"""Whether device memory grows: from step to step where a few steps are marked, else from part to part of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

ORIGIN_US = 1_700_000_000_000_000
STEP_US = 60_000
KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
HEADING = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"


def _profile(folder: Path, left: list[float]) -> Path:
    """Steps of a forward pass that fills memory and a backward pass that frees it again; `left` is what each leaves
    behind, in MB."""
    kernels, steps, memory, kept = [KERNELS], [HEADING], [], 20_000.0
    for step, more in enumerate(left):
        begin = ORIGIN_US + step * STEP_US
        kernels += [
            f"{step},MatMul{n},MatMul,AI_CORE,{begin + n * 3000:.3f},2990,{10 if n else 0}"
            for n in range(STEP_US // 3000)
        ]
        steps.append(f"{step},{2990 * 20},0,0,0,200,{STEP_US}")
        for n in range(40):
            live = kept + (n if n < 20 else 40 - n) * 500.0 + (more if n > 30 else 0.0)
            memory.append(f"PTA,{begin + n * STEP_US / 40:.3f},{live:.3f},40000.0,{live:.3f},0,NPU:0")
        kept += more
    folder.mkdir(parents=True)
    (folder / "kernel_details.csv").write_text("\n".join(kernels) + "\n")
    (folder / "step_trace_time.csv").write_text("\n".join(steps) + "\n")
    head = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"
    (folder / "memory_record.csv").write_text("\n".join([head, *memory]) + "\n")
    return folder


@pytest.mark.parametrize(
    ("left", "grows"),
    [([600.0] * 6, True), ([0.0] * 6, False), ([900.0, 0.0, 600.0, 600.0, -1500.0, 300.0], False),
     ([4000.0, 0.0, 0.0, 0.0, 0.0, 0.0], False)],
    ids=["a leak", "none", "up and down", "the first step fills it"],
)  # fmt: skip
def test_growth_is_told_from_step_to_step(tmp_path: Path, left: list[float], grows: bool) -> None:
    """Each eighth of six steps holds a step's end or not: its least use says nothing, that of each step does."""
    folder = _profile(tmp_path / "p", left)
    facts = measure([folder], ["memory.growth_bytes", "memory.growth_steps"], Options(jobs=1)).facts
    told = facts.number("memory.growth_bytes", RUN)
    assert told == (600 * 2**20 if grows else 0.0) and facts.number("memory.growth_steps", RUN) == 5
    found = [f for f in advise([folder], load_rules()).findings if f.rule == "MEM030"]
    assert bool(found) is grows
    assert not grows or "from one to the next" in found[0].message.en


def test_many_steps_are_compared_by_parts_of_the_time(tmp_path: Path) -> None:
    """Twenty steps of which every other one leaves something: each eighth of them holds more than the one before."""
    folder = _profile(tmp_path / "p", [400.0, 0.0] * 10)
    facts = measure([folder], ["memory.growth_bytes", "memory.growth_steps"], Options(jobs=1)).facts
    assert (facts.number("memory.growth_bytes", RUN) or 0.0) > 0
    assert facts.number("memory.growth_steps", RUN) is None
