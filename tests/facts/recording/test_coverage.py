"""Steps that only some files hold are no ground for an all-clear."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.recording.coverage import partial_steps, uneven_tables
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.cells import load, store
from benchmarks.mutants.profiles import write_databases
from benchmarks.simulator import Scenario, simulate, write_profile


@given(st.integers(3, 9), st.lists(st.tuples(st.booleans(), st.booleans()), max_size=4))
def test_tables_that_begin_and_end_differently_lack_nothing(length: int, ends: list[tuple[bool, bool]]) -> None:
    """A step at the edge is cut in one table and whole in another."""
    tables = [set(range(10 - before, 10 + length + after)) for before, after in ends]
    assert partial_steps(tables) == set()


def test_collectives_are_not_missed_in_steps_without_any(tmp_path: Path) -> None:
    """Gradients are accumulated over several marked steps: those without an update communicate nothing."""
    write_profile(simulate(Scenario(data=4, steps=6, layers=2)), tmp_path)
    for path in tmp_path.rglob("step_trace_time.csv"):
        rows = load(path)
        told = {name: rows[0].index(name) for name in ("Communication(Not Overlapped)", "Overlapped", "Communication")}
        for row in (rows[3], rows[4]):
            for place in told.values():
                row[place] = "0"
        store(path, rows)
    for path in tmp_path.rglob("communication.json"):
        steps = json.loads(path.read_text())
        for name in sorted(steps)[2:4]:
            steps[name] = {"p2p": {}, "collective": {}}
        path.write_text(json.dumps(steps))
    assert measure([tmp_path], None, Options(jobs=1)).facts.value("run.partial_steps", RUN) == 0


def test_a_rank_that_lost_a_step_clears_nothing(tmp_path: Path) -> None:
    """What happened in the step that its table lacks may be what is wrong."""
    write_profile(simulate(Scenario(data=4, steps=6, layers=2)), tmp_path)
    assert advise([tmp_path], load_rules()).summary.direction == "healthy"
    for path in sorted(tmp_path.rglob("step_trace_time.csv"))[:2]:
        rows = load(path)
        store(path, [*rows[:3], *rows[4:]])
    report = advise([tmp_path], load_rules())
    assert report.summary.direction == "undetermined" and "lack steps" in report.summary.headline.en


@pytest.mark.parametrize("whole", [True, False])
def test_idle_time_of_ranks_none_of_which_tells_of_communication_is_a_suspicion(tmp_path: Path, whole: bool) -> None:
    """Databases without their communication operations: what looks idle may be communication."""
    run = simulate(Scenario(data=4, steps=4, layers=2, framework="pytorch", gradient_mb_per_layer=90.0))
    write_databases(run, tmp_path)
    for path in () if whole else tmp_path.rglob("*.db"):
        with sqlite3.connect(path) as connection:
            for table in ("COMMUNICATION_OP", "CommAnalyzerTime", "CommAnalyzerMatrix"):
                connection.execute(f"DROP TABLE {table}")
    report = advise([tmp_path], load_rules())
    idle = [finding for finding in report.findings if finding.verdict == "device-idle-gaps"]
    if whole:
        assert not idle
    else:
        assert [finding.severity.value for finding in idle] == ["low"] and "4 ranks" in idle[0].doubts[0].en
        assert report.summary.direction != "healthy"


@pytest.mark.parametrize("lost", ["communication_matrix.json", "communication.json"])
def test_a_rank_that_lost_a_file_of_the_others_clears_nothing(tmp_path: Path, lost: str) -> None:
    """What is wrong with that rank may stand in it; the file is named as what would tell."""
    write_profile(simulate(Scenario(data=4, steps=6, layers=2)), tmp_path)
    sorted(tmp_path.rglob(lost))[0].unlink()
    report = advise([tmp_path], load_rules())
    assert report.summary.direction == "undetermined" and lost in report.summary.headline.en


def test_steps_that_only_the_timeline_marks_are_not_cleared(tmp_path: Path) -> None:
    """Two steps of a kernel table are all that is left of six, and the timeline still marks the others."""
    write_profile(simulate(Scenario(data=1, steps=6, layers=2, framework="pytorch")), tmp_path, trace=True)
    for name in ("step_trace_time.csv", "op_statistic.csv", "api_statistic.csv", "profiler_info_0.json"):
        for path in tmp_path.rglob(name):
            path.unlink()
    (path,) = tmp_path.rglob("kernel_details.csv")
    rows = load(path)
    step = rows[0].index("Step Id")
    names = sorted({row[step] for row in rows[1:]})
    store(path, [rows[0], *(row for row in rows[1:] if row[step] in names[1:3])])
    report = advise([tmp_path], load_rules())
    assert report.summary.direction == "undetermined" and "lack steps" in report.summary.headline.en


def test_a_file_that_single_ranks_have_is_lacked_by_nobody() -> None:
    """One rank may record more than the others; what half of them have, all should."""
    kinds = [{"steps": None, "trace": None}, {"steps": None}, {"steps": None}]
    ranks = [SimpleNamespace(tables=tables, has=tables.__contains__) for tables in kinds]
    assert uneven_tables(ranks) == []
    assert uneven_tables([*ranks[:1], *ranks[:1], ranks[1]]) == ["trace"]


def test_a_timeline_that_half_of_the_ranks_have_spoils_no_verdict() -> None:
    """Kernels and steps of both ranks are at hand: without any timeline they would be judged as well."""
    kinds = [{"steps": None, "kernels": None, "trace": None}, {"steps": None, "kernels": None}]
    ranks = [SimpleNamespace(tables=tables, has=tables.__contains__) for tables in kinds]
    assert uneven_tables(ranks) == []
    bare = SimpleNamespace(tables=(tables := {"steps": None}), has=tables.__contains__)
    assert uneven_tables([ranks[0], bare]) == ["kernels", "trace"]


def test_kernels_of_which_the_timeline_has_computed_more_clear_nothing(tmp_path: Path) -> None:
    """The first half of a kernel table, and of the timeline only the profiler's own sums: it worked on behind them."""
    write_profile(simulate(Scenario(data=1, steps=6, layers=2, framework="pytorch")), tmp_path, trace=True)
    for path in (p for p in tmp_path.rglob("*") if p.is_file()):
        if path.name not in ("kernel_details.csv", "trace_view.json"):
            path.unlink()
    (path,), (timeline,) = tmp_path.rglob("kernel_details.csv"), tmp_path.rglob("trace_view.json")
    events = json.loads(timeline.read_text())
    own = {e["pid"] for e in events if e["ph"] == "M" and e.get("args", {}).get("name") == "Overlap Analysis"}
    timeline.write_text(json.dumps([event for event in events if event.get("pid") in own]))
    rows = load(path)
    for part, direction in ((rows, "healthy"), (rows[: len(rows) // 2], "undetermined")):
        store(path, part)
        assert advise([tmp_path], load_rules()).summary.direction == direction
