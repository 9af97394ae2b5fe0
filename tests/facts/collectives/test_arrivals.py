"""Collectives alone tell who comes last, how long the others wait for it, and how long a step is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters import SMALL

from advisor.facts.collectives.joints import Joint
from advisor.facts.collectives.workmates import measure_arrivals
from advisor.model import Report, Source
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


def of_collectives(folder: Path, scenario: Scenario) -> Report:
    """The report on a run of which communication.json alone is left."""
    write_profile(simulate(scenario), folder)
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "communication.json" and not file.name.startswith("profiler_info"):
            file.unlink()
    return advise([folder], load_rules(strict=False), Options(jobs=1))


@pytest.mark.parametrize("fault", [Fault("slow_compute", 2, 0.4), Fault("slow_host", 2, 2.0)])
def test_the_last_in_every_collective_is_named_whatever_makes_it_late(tmp_path: Path, fault: Fault) -> None:
    """Rank and length of the step are told, and a bound no less than what the run would gain; without kernels nobody
    knows whether computation hides these waits, so that it is a suspicion."""
    scenario = replace(SMALL, steps=5, faults=(fault,))
    report = of_collectives(tmp_path / "late", scenario)
    even = of_collectives(tmp_path / "even", replace(scenario, faults=()))
    found = next(f for f in report.findings if f.rule == "CLUS042")
    assert found.subject.ranks == (2,) and (found.confidence.value, found.severity.value) == ("low", "medium")
    assert report.summary.direction == "communication" and "rank 2" in report.summary.headline.en
    assert not any(f.rule == "CLUS042" for f in even.findings)
    slow, usual = report.summary.step_time_us, even.summary.step_time_us
    assert slow is not None and usual is not None and found.at_stake is not None
    assert found.at_stake.us >= 0.95 * (slow - usual) > 0


def test_collectives_of_one_step_tell_no_length(tmp_path: Path) -> None:
    """Nothing follows the only step: no time of a step is made up, and nobody is accused of a share of it."""
    report = of_collectives(tmp_path, replace(SMALL, steps=1, faults=(Fault("slow_compute", 2, 0.4),)))
    assert report.summary.step_time_us is None and not any(f.rule == "CLUS042" for f in report.findings)


@pytest.mark.parametrize(("collectives", "told"), [(1, 1.0), (2, 0.5), (6, 1 / 32)])
def test_of_few_collectives_one_rank_is_last_in_all_by_chance(collectives: int, told: float) -> None:
    """Of two ranks one is last in both of two collectives in every second case, though neither is late."""
    elapsed = np.array([[4.0, 1.0]] * collectives)
    nothing = np.full(elapsed.shape, np.nan)
    joint = Joint(
        "g", "allreduce", (0, 1), (0, 1), True, ["1"] * collectives, ["a"] * collectives, np.zeros(2, np.int64),
        elapsed, nothing, nothing, np.zeros(elapsed.shape, np.int64), nothing, nothing,
        sources=(Source("communication.json"),),
    )  # fmt: skip
    found = [f for f in measure_arrivals([joint], None, 1, {}) if f.name == "rank.awaited_chance"]
    assert [(f.subject.id, f.value) for f in found] == [("1", pytest.approx(told))]


@pytest.mark.parametrize(("recorded", "told"), [(4, {1.0}), (5, set())])
def test_who_came_last_in_few_of_the_steps_is_not_always_late(recorded: int, told: set[float]) -> None:
    """The other ranks may take turns in the steps whose collectives are lost."""
    elapsed = np.array([[4.0, 1.0], [4.0, 1.0]])
    nothing = np.full(elapsed.shape, np.nan)
    joint = Joint(
        "g", "allreduce", (0, 1), (0, 1), True, ["1", "2"], ["a"] * 2, np.zeros(2, np.int64), elapsed, nothing,
        nothing, np.zeros(elapsed.shape, np.int64), nothing, nothing, sources=(Source("communication.json"),),
    )  # fmt: skip
    assert {f.value for f in measure_arrivals([joint], None, recorded, {}) if f.name == "rank.awaited_in_steps"} == told


@pytest.mark.parametrize("steps", [("9", "10", "11"), ("11", "9", "10"), ("10", "11", "9")])
def test_the_first_step_is_the_one_of_the_least_number(steps: tuple[str, ...]) -> None:
    """Files list steps in any order; the first of a recording, which is left out, is told by its name."""
    late = {"9": [4.0, 1.0], "10": [1.0, 4.0], "11": [1.0, 4.0]}
    elapsed = np.array([late[step] for step in steps])
    nothing = np.full(elapsed.shape, np.nan)
    joint = Joint(
        "g", "allreduce", (0, 1), (0, 1), True, list(steps), ["a"] * 3, np.zeros(3, np.int64), elapsed, nothing,
        nothing, np.zeros(elapsed.shape, np.int64), nothing, nothing, sources=(Source("communication.json"),),
    )  # fmt: skip
    told = {f.subject.id: f.value for f in measure_arrivals([joint], None, 3, {}) if f.name == "rank.awaited_in_steps"}
    assert told == {"0": 1.0, "1": 0.0}


@pytest.mark.parametrize(("received", "told"), [(3.0, 1.0), (1.5, 0.5), (0.5, 0.0)])
def test_who_waits_for_an_earlier_stage_is_told_to_wait(received: float, told: float) -> None:
    """What its receives last beyond those of the ranks that wait for it is no lateness of its own."""
    elapsed = np.array([[4.0, 2.0], [4.0, 2.0]])
    nothing = np.full(elapsed.shape, np.nan)
    joint = Joint(
        "g", "allreduce", (0, 1), (0, 1), True, ["1", "2"], ["a"] * 2, np.zeros(2, np.int64), elapsed, nothing,
        nothing, np.zeros(elapsed.shape, np.int64), nothing, nothing, sources=(Source("communication.json"),),
    )  # fmt: skip
    receives = {0: dict.fromkeys("12", 0.5), 1: dict.fromkeys("12", received)}
    found = {f.subject.id: f.value for f in measure_arrivals([joint], None, 2, receives) if f.name.endswith("received")}
    assert found == {"1": told}
