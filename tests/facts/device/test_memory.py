"""What memory files tell of the largest allocation."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from advisor.facts.device.memory import _largest, reduce
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef


@pytest.mark.parametrize(("name", "told"), [("aten::_foreach_add", "aten::_foreach_add"), (None, "")])
def test_an_allocation_without_a_name_is_nobodys(name: str | None, told: str) -> None:
    """A text that a database lacks is no operator called nan."""
    frame = pd.DataFrame({"name": pd.array([name, "aten::add"], dtype="string"), "size_bytes": [3e6, 1e6]})
    rank = SimpleNamespace(has=lambda table: True, read=lambda table, columns: frame)
    assert _largest(cast(Rank, rank)) == (told, 3e6)


@pytest.mark.parametrize(("last", "told"), [(1.7e15 + 3.6e9, False), (1.7e12, True)])
def test_samples_that_lie_years_apart_are_told(last: float, told: bool, tmp_path: Path) -> None:
    """Instants in another unit from some row on: the memory's course between them is nobody's."""
    rows = [f"PTA,{time:.3f},{100 + at},200" for at, time in enumerate([1.7e15, 1.7e15 + 1e6, last])]
    path = tmp_path / "memory_record.csv"
    path.write_text("\n".join(["Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)", *rows, ""]))
    rank = Rank(0, tmp_path, {"memory": TableRef("memory", (path,), "csv.table")}, base=tmp_path)
    assert reduce(rank) is not None
    assert [p.doubted for p in rank.problems if "its samples lie" in p.problem] == [("memory",)] * told


@pytest.mark.parametrize(("component", "told"), [("abc", 1), ("APP", 0), ("", 0)])
def test_memory_of_an_unknown_component_is_told(component: str, told: int, tmp_path: Path) -> None:
    """Where its name is lost, the whole process's memory would count as the framework's without a word."""
    path = tmp_path / "memory_record.csv"
    rows = ["PTA,1700000000000000,100,200", f"{component},1700000000000000,100,900"]
    path.write_text("\n".join(["Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)", *rows, ""]))
    rank = Rank(0, tmp_path, {"memory": TableRef("memory", (path,), "csv.table")}, base=tmp_path)
    assert reduce(rank) is not None
    assert sum("1 of 2 samples are of a component that is not known" in p.problem for p in rank.problems) == told
