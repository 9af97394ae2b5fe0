"""GetNext: how long it takes, and whether kernels run beside it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from advisor.facts.base import FactSet, Run
from advisor.facts.getnext import FAMILIES, GetNext, reduce
from advisor.model import Fact, Subject
from advisor.sources.base import Profile
from advisor.sources.discover import load_profile
from tests.facts.test_host import rank_with


def test_overlap_is_the_part_beside_compute_kernels(tmp_path: Path) -> None:
    """Half of GetNext runs beside a MatMul; other AI CPU operators are no computation."""
    output = tmp_path / "host_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
        "Default/GetNext,GetNext,AI_CPU,1700000000000000.000\t,10.0,0\n"
        "Default/MatMul,MatMul,AI_CORE,1700000000000005.000\t,100.0,0\n"
        "Default/Other,Other,AI_CPU,1700000000000000.000\t,10.0,0\n"
    )
    (rank,) = load_profile([tmp_path]).ranks
    found = reduce(rank)
    assert found is not None and found.overlap == pytest.approx(0.5) and found.time_us == 10.0


def test_without_kernels_the_ai_cpu_table_tells_the_time_only() -> None:
    """An operator merely named like it (a GetNextLayer's weights) is no reason to miss the real one."""
    frame = pd.DataFrame({"name": ["GetNext", "InitData", "Default/GetNext-op3"], "total_us": [800.0, 9.0, 400.0]})
    found = reduce(rank_with(aicpu=frame))
    assert found is not None and (found.count, found.time_us, found.overlap) == (2, 600.0, None)


def test_the_share_counts_every_execution_of_a_step() -> None:
    """Two GetNext a step count twice."""
    run = Run(Profile("x", []), {0: {"getnext": GetNext(20, 500.0, None, ())}})
    of_rank = Subject("rank", "0", (0,))
    facts = FactSet([Fact("step.time_us", of_rank, 10_000.0), Fact("step.count", of_rank, 10)])
    measured = {fact.name: fact.value for fact in FAMILIES[0].measure(run, facts)}
    assert measured["getnext.share_of_step"] == pytest.approx(0.1)
