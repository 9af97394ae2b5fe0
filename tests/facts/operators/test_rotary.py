"""Rotary embeddings that run as single operators, told by the numbers of calls; what they take is nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Finding
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Ratio(%)"
ENCODER = {
    "MatMulV2": (486, 24_000.0), "PromptFlashAttention": (81, 22_000.0), "StridedSliceD": (324, 8_500.0),
    "Mul": (324, 3_200.0), "Gelu": (81, 3_000.0), "ConcatV2D": (243, 2_600.0), "Add": (162, 1_800.0),
    "Neg": (162, 1_400.0), "SplitVD": (81, 1_200.0),
}  # fmt: skip
"""27 layers, three times: queries and keys are turned, and the activation gates nothing."""


def _findings(folder: Path, types: dict[str, tuple[int, float]]) -> dict[str, Finding]:
    whole = sum(us for _, us in types.values())
    rows = [f"0,{name},AI_CORE,{count},{us},{100 * us / whole}" for name, (count, us) in types.items()]
    (folder / "op_statistic.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return {f.rule: f for f in advise([folder], load_rules(), Options()).findings}


def test_cuts_and_products_of_a_rotary_embedding_gate_nothing(tmp_path: Path) -> None:
    """All slices and products turn queries and keys, so that none is left for a gate around the activation."""
    found = _findings(tmp_path, ENCODER)
    assert "COMP062" not in found
    assert found["COMP101"].message.en.startswith("StridedSliceD → Neg → ConcatV2D → Mul → Add")
    assert "162 times" in found["COMP101"].message.en


def test_a_gate_beside_a_rotary_embedding_is_told_as_well(tmp_path: Path) -> None:
    """Products that are left gate the activations; each finding has its own evidence, saving and remedy."""
    found = _findings(tmp_path, {**ENCODER, "Mul": (405, 4_000.0)})
    assert found["COMP062"].verdict == found["COMP101"].verdict
    assert {e.fact for e in found["COMP062"].evidence}.isdisjoint(e.fact for e in found["COMP101"].evidence)
    assert [r.id for r in found["COMP101"].remedies] == ["fuse-rotary"]


@pytest.mark.parametrize(("name", "count"), [("Neg", 200), ("Mul", 300), ("Add", 100)])
def test_other_numbers_are_no_rotary_embedding(tmp_path: Path, name: str, count: int) -> None:
    """One join and sum, two products belong to whatever is negated."""
    assert "COMP101" not in _findings(tmp_path, {**ENCODER, name: (count, ENCODER[name][1])})


def test_what_a_rotary_embedding_cuts_and_joins_is_not_told_as_copying_too(tmp_path: Path) -> None:
    """One remedy removes it, and it is saved once."""
    types = {**ENCODER, "StridedSliceD": (324, 17_000.0)}
    assert "COMP064" not in _findings(tmp_path, types)
    types.pop("Neg")
    assert "COMP064" in _findings(tmp_path, types)
