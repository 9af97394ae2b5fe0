"""A device behind its host: steps are the same, however far the host runs ahead."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.base import Measured
from advisor.model import RUN
from advisor.pipeline import Options, measure
from advisor.sources.database.devicewindows import on_device
from advisor.sources.streams.behind import first_asked
from benchmarks.mutants.profiles import write_databases
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

AHEAD = (0.0, 0.3, 0.9, 1.4, 2.5)
"""Steps."""
SLOW = Scenario(
    data=4, layers=4, steps=4, first_step=5, framework="pytorch", gradient_mb_per_layer=30.0,
    faults=(Fault("slow_compute", 2, 0.3),),
)  # fmt: skip
TOLD = ("step.time_us", "step.computing_share", "step.exposed_communication_share")


def _told(folder: Path) -> tuple[list[float | None], float | None]:
    facts = _measured(folder).facts
    (slow,) = {fact.subject for fact in facts if fact.subject.kind == "rank" and fact.subject.id == "2"}
    return [facts.number(name, RUN) for name in TOLD], facts.number("rank.saving_us", slow)


def _measured(folder: Path) -> Measured:
    return measure([folder], [*TOLD, "rank.saving_us"], Options(jobs=1))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1), st.integers(0, 10**6))
def test_a_mark_lies_where_its_first_task_starts(tasks, mark):
    """Whatever the order in which they start: the earliest start of all that is asked for from then on."""
    asked, started = np.array(tasks, np.int64).T
    later = [start for ask, start in tasks if ask >= mark]
    assert first_asked(asked, started, np.array([mark]), 2 * 10**6).tolist() == [min(later, default=2 * 10**6)]


def test_databases_tell_the_same_however_far_the_host_is_ahead(tmp_path: Path) -> None:
    """By the host's marks, nine tenths of a step ahead made steps a third longer, and three tenths hid a slow card."""
    write_databases(simulate(SLOW), tmp_path)
    files = [path for path in tmp_path.rglob("*.db") if "STEP_TIME" in _tables(path)]
    expected, saving = _told(tmp_path)
    assert saving is not None and saving > 0
    moved = 0.0
    for ahead in AHEAD[1:]:
        for path in files:
            with sqlite3.connect(path) as database:
                (step,) = database.execute("SELECT MIN(endNs - startNs) FROM STEP_TIME").fetchone()
                by = round(step * (ahead - moved))
                for table in ("STEP_TIME", "CANN_API"):
                    database.execute(f"UPDATE {table} SET startNs = startNs - {by}, endNs = endNs - {by}")
            database.close()
        moved = ahead
        told, gain = _told(tmp_path)
        assert told == pytest.approx(expected, rel=0.01) and gain == pytest.approx(saving, rel=0.02), ahead


@pytest.mark.parametrize("framework", [True, False], ids=["calls of the framework", "the launching thread alone"])
def test_a_step_begins_with_the_collective_that_was_asked_for_first(framework: bool) -> None:
    """Sharded weights are gathered before the first kernel of a step, for as long as another rank is late: what was
    asked for in a step is no end of the one before."""
    with sqlite3.connect(":memory:") as database:
        database.executescript(
            """CREATE TABLE TASK (startNs, endNs, connectionId); CREATE TABLE CANN_API (startNs, connectionId);
            CREATE TABLE COMMUNICATION_OP (startNs, endNs, connectionId);
            CREATE TABLE PYTORCH_API (startNs, connectionId); CREATE TABLE CONNECTION_IDS (id, connectionId);"""
        )
        work = [("TASK", 100, 5000, 5900), ("COMMUNICATION_OP", 1010, 6000, 6800), ("TASK", 1020, 6800, 9000)]
        for number, (table, asked, start, end) in enumerate(work):
            database.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", (start, end, number))
            launched = asked if not framework else asked + 500
            database.execute("INSERT INTO CANN_API VALUES (?, ?)", (launched, number))
            if framework:
                database.execute("INSERT INTO PYTORCH_API VALUES (?, ?)", (asked, 10 + number))
                database.execute("INSERT INTO CONNECTION_IDS VALUES (?, ?)", (10 + number, number))
        steps = on_device(database, [("1", 0, 1000), ("2", 1000, 2000)])
    database.close()
    assert steps == [("1", 5000, 6000), ("2", 6000, 9000)]


def _tables(path: Path) -> set[str]:
    with sqlite3.connect(path) as database:
        found = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    return found


@pytest.mark.parametrize("ahead", AHEAD)
def test_kernels_without_ids_belong_to_the_step_that_launched_them(tmp_path: Path, ahead: float) -> None:
    """Older writers put no step's id into the table of kernels: by the host's marks its kernels contradicted the table
    of steps, and nothing was certain."""
    run = simulate(SLOW)
    write_profile(run, tmp_path / "with", trace=True)
    write_profile(run, tmp_path / "without", trace=True)
    for path in (tmp_path / "without").rglob("kernel_details.csv"):
        with path.open(newline="") as stream:
            heading, *rows = csv.reader(stream)
        place = heading.index("Step Id")
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows(row[:place] + row[place + 1 :] for row in (heading, *rows))
    for path in (tmp_path / "without").rglob("trace_view.json"):
        events = json.loads(path.read_text())
        for event in events:
            if (event.get("cat") == "HostToDevice" and event["ph"] == "s") or "ProfilerStep" in event["name"]:
                event["ts"] = f"{float(event['ts']) - ahead * run.step_us:.3f}"
        path.write_text(json.dumps(events))
    (expected, saving), (told, gain) = _told(tmp_path / "with"), _told(tmp_path / "without")
    assert told == pytest.approx(expected, rel=0.01) and gain == pytest.approx(saving, rel=0.05)
