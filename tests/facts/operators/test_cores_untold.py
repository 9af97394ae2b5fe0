"""How many cores a card has where no file tells: as many as most types of operators have blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure

HEAD = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Num"


def _idle(tmp_path: Path, blocks: dict[str, int]) -> dict[str, float | None]:
    rows, at = [HEAD], 0
    for step in range(3):
        for kind, count in blocks.items():
            rows.append(f"{step},{kind}_{step},{kind},AI_VECTOR_CORE,{1_000_000 + at},100,{count}")
            at += 110
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    return {kind: facts.number("operator_type.core_idle_share", Subject("operator_type", kind)) for kind in blocks}


def test_a_type_on_one_of_the_cores_that_others_use_leaves_the_rest_idle(tmp_path: Path) -> None:
    """Three types run 48 blocks, one a single block; one of more blocks than cores runs in rounds that nobody knows."""
    idle = _idle(tmp_path, {"Add": 48, "Mul": 48, "RmsNorm": 48, "TopKV2": 1, "Cast": 96})
    assert idle["TopKV2"] == pytest.approx(47 / 48)
    assert idle["Add"] == 0 and idle["Cast"] == 0


@pytest.mark.parametrize(
    "blocks", [{"Add": 48, "Mul": 48, "TopKV2": 1}, {"Add": 8, "Mul": 16, "Cast": 32, "TopKV2": 1}]
)
def test_too_few_types_that_agree_tell_nothing(tmp_path: Path, blocks: dict[str, int]) -> None:
    """Tilings of two types, or of types that differ, are no witness of the card."""
    assert set(_idle(tmp_path, blocks).values()) <= {None, 0.0}
