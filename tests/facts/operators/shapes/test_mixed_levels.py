"""Ranks that recorded no shapes do the same as those that did: what these tell holds for all of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure

HEAD = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,Output Shapes"


def _padding(root: Path, shaped: Collection[int]) -> float | None:
    """Microseconds a step that four ranks spend on padding, of whom these recorded shapes."""
    for rank in range(4):
        rows, at = [HEAD], 0
        for step in range(3):
            for call in range(10):
                told = '"3990,3990;3990,3990",DT_BF16;DT_BF16,"3990,3990"' if rank in shaped else "N/A,N/A,N/A"
                rows.append(f"{step},MatMul_{call},MatMulV3,AI_CORE,{1_000_000 + at},100,{told}")
                at += 110
        folder = root / f"rank_{rank}_20260101120000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    facts = measure([root], None, Options(jobs=1)).facts
    return facts.number("operator_type.padding_us", Subject("operator_type", "MatMulV3"))


def test_ranks_without_shapes_halve_nothing(tmp_path: Path) -> None:
    """Half of the ranks at Level 0 leave as much padding in each step as there is."""
    every = _padding(tmp_path / "every", range(4))
    assert every is not None and every > 0
    assert _padding(tmp_path / "half", (0, 1)) == pytest.approx(every)
    assert _padding(tmp_path / "none", ()) is None
