"""A lower clock of the AI Core is a loss where kernels felt it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.pipeline import Options, measure

STEPS = 4


@pytest.mark.parametrize(("slower", "felt"), [(1.0, 0.0), (1.5, 0.2), (2.0, 1 / 3)])
def test_what_a_lower_clock_costs_is_told_by_the_same_kernels_at_both(tmp_path: Path, slower: float, felt: float):
    """Half of the steps run at half the clock. Kernels of one shape that are long and short by their place in the step
    are compared with those at the same place; what takes as long as before has lost nothing."""
    rows, clock, at = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes"], [], 0.0
    for step in range(STEPS):
        low = step >= STEPS // 2
        clock.append((at, 900 if low else 1800))
        for place in range(6):
            us = (100 + 40 * place) * (slower if low else 1.0)
            rows.append(f'{step},net/MatMulV2-op{place},MatMulV2,AI_CORE,{at + 1:.1f},{us},"64,64;64,64"')
            at += us + 2
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    events = [
        {"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0, "ts": f"{us:.3f}", "args": {"MHz": mhz}}
        for us, mhz in clock
    ]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert [fact.value for fact in facts.of("timeline.core_mhz_felt_drop").values()] == pytest.approx([felt])
    assert all(fact.value > 0.2 for fact in facts.of("timeline.core_mhz_drop").values())
