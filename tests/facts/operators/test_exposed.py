"""What a type of operators can give back at most: its time on the way of what computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.facts.operators.reduction import reduce
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef

TIMED = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
UNTIMED = "Step Id,Name,Type,Accelerator Core,Duration(us)"


def rank_with(folder: Path, heading: str, *rows: str) -> Rank:
    path = folder / "kernel_details.csv"
    path.write_text("\n".join((heading, *rows)) + "\n")
    return Rank(0, folder, {"kernels": TableRef("kernels", (path,), "kernels.csv")}, base=folder)


def test_a_conversion_beside_a_collective_can_still_be_saved(tmp_path: Path) -> None:
    """A reduction in the background hides nothing of a conversion that the next kernel waits for; a kernel that
    computes beside it does."""
    found = reduce(rank_with(
        tmp_path, TIMED,
        "1,MatMul,MatMulV2,AI_CORE,100.000,50,0",
        "1,hcom_allReduce_1,hcom_allReduce_,HCCL,140.000,200,0",
        "1,Cast,Cast,AI_VECTOR_CORE,150.000,60,0",
        "1,MatMul,MatMulV2,AI_CORE,200.000,50,0",
    ))  # fmt: skip
    assert found is not None
    assert found.types["Cast"].alone_us.sum() == pytest.approx(50)
    assert found.conversion_us.sum() == pytest.approx(50)


def test_without_start_times_nothing_is_told_of_overlap(tmp_path: Path) -> None:
    """Durations alone do not tell what ran beside an operator: no time of it is called exposed."""
    found = reduce(rank_with(tmp_path, UNTIMED, "1,MatMul,MatMulV2,AI_CORE,50", "1,Cast,Cast,AI_VECTOR_CORE,60"))
    assert found is not None
    assert np.isnan(found.types["Cast"].alone_us).all()
    assert found.types["Cast"].total_us.sum() == pytest.approx(60)
