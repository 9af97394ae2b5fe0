"""Steps that only some files hold are no ground for an all-clear."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.recording.coverage import partial_steps
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.cells import load, store
from benchmarks.simulator import Scenario, simulate, write_profile


@given(st.integers(3, 9), st.lists(st.tuples(st.booleans(), st.booleans()), max_size=4))
def test_tables_that_begin_and_end_differently_lack_nothing(length: int, ends: list[tuple[bool, bool]]) -> None:
    """A step at the edge is cut in one table and whole in another."""
    tables = [set(range(10 - before, 10 + length + after)) for before, after in ends]
    assert partial_steps(tables) == set()


def test_a_rank_that_lost_a_step_clears_nothing(tmp_path: Path) -> None:
    """What happened in the step that its table lacks may be what is wrong."""
    write_profile(simulate(Scenario(data=4, steps=6, layers=2)), tmp_path)
    assert advise([tmp_path], load_rules()).summary.direction == "healthy"
    for path in sorted(tmp_path.rglob("step_trace_time.csv"))[:2]:
        rows = load(path)
        store(path, [*rows[:3], *rows[4:]])
    report = advise([tmp_path], load_rules())
    assert report.summary.direction == "undetermined" and "lack steps" in report.summary.headline.en
