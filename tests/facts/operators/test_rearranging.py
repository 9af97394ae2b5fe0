"""Kernels that compute nothing: they cut tensors, join them, repeat them or move them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from advisor.model import Finding
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def _told(folder: Path, rows: list[tuple[str, str, int, float]]) -> list[str]:
    """What is said of copying beside products of 140 ms."""
    return [f.message.en for f in _findings(folder, rows) if f.rule == "COMP064"]


def _findings(folder: Path, rows: list[tuple[str, str, int, float]]) -> tuple[Finding, ...]:
    rows = [("BatchMatMulV2", "AI_CORE", 7337, 140_000.0), ("Add", "AI_CORE", 3000, 20_000.0), *rows]
    whole = sum(us for *_, us in rows)
    lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, c, k, us in rows]
    (folder / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    return advise([folder], load_rules(), Options()).findings


def test_slices_and_joins_of_a_decoder_are_told_together(tmp_path):
    """None of them is a quarter of the time by itself; together they are a third of what the model computes."""
    (message,) = _told(tmp_path, [("ConcatD", "AI_CORE", 3277, 20_000.0), ("StridedSliceD", "AI_CORE", 4872, 49_000.0)])
    assert message.startswith("StridedSliceD, ConcatD: 8149 kernels")


@pytest.mark.parametrize(("name", "remedy"), [("ViewCopy", "keep-in-place"), ("Sort", "examine-operator")])
def test_one_type_that_takes_so_much_is_examined_unless_it_only_copies(tmp_path, name, remedy):
    """Of what computes nothing one asks where it comes from, not why it takes so long; and it is told once."""
    found = _findings(tmp_path, [(name, "AI_VECTOR_CORE", 40, 90_000.0)])
    (told,) = (f for f in found if f.rule in ("COMP064", "COMP085"))
    assert ("compute nothing" in told.message.en) == (name == "ViewCopy")
    assert [each.id for each in told.remedies] == [remedy]


@pytest.mark.parametrize(
    "row",
    [
        ("SplitVD", "AI_CORE", 96, 9_000.0),
        ("GatherV2", "AI_CORE", 1653, 90_000.0),
        ("ConcatD", "AI_CPU", 3277, 90_000.0),
        ("SplitFuseNorm", "AI_CORE", 1653, 90_000.0),
    ],
)
def test_little_copying_lookups_and_what_runs_on_ai_cpus_are_not_told(tmp_path, row):
    """A projection that is split, tables that are read, a fallback with a rule of its own, and other names."""
    assert not _told(tmp_path, [row])


@pytest.mark.parametrize("seed", range(4))
def test_transposes_among_cuts_and_joins_are_told_with_them(tmp_path, seed):
    """A chain moves data for a third of the time, and no kind of its links takes a fifth; transposes that take
    longer than all else that moves data are conversions, which have a rule of their own."""
    draw = Random(seed)
    whole = 160_000.0 / 0.66
    cut, joined, turned = (whole * draw.uniform(0.09, 0.105) for _ in range(3))
    links = [("Slice", cut), ("ConcatD", joined), ("Transpose", turned)]
    (tmp_path / "chain").mkdir()
    (message,) = _told(tmp_path / "chain", [(name, "AI_VECTOR_CORE", 900, us) for name, us in links])
    assert "2700 kernels" in message and "Transpose" in message
    (tmp_path / "layouts").mkdir()
    layouts = [("Slice", "AI_VECTOR_CORE", 900, cut / 8), ("Transpose", "AI_VECTOR_CORE", 900, 3 * turned)]
    assert not _told(tmp_path / "layouts", layouts)
