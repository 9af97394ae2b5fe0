"""Steps: warm-up and incomplete ones do not count, shares are of the step, scaling time changes no ratio."""

from dataclasses import replace

import numpy as np
import pytest
from clusters import SMALL
from hypothesis import given
from hypothesis import strategies as st
from step_times import times

from advisor.facts.base import FactSet, Run
from advisor.facts.step.means import measure
from advisor.facts.step.steps import excluded_steps, steady
from advisor.facts.step.times import STEPS, StepTimes
from advisor.model import RUN, Subject
from advisor.pipeline import Options
from advisor.pipeline import measure as measure_profile
from advisor.sources.base import Profile
from benchmarks.simulator import simulate, write_profile


def run_of(**ranks):
    run = Run(Profile("p"))
    for name, value in ranks.items():
        run.keep(int(name[1:]), {STEPS: value})
    return run


def facts_of(run):
    facts = FactSet()
    for item in measure(run, facts):
        facts.add(item)
    return facts


def test_a_long_first_step_is_warm_up_and_a_short_last_one_incomplete():
    """Compilation and a cut collection are left out, with the reason."""
    kept = steady(run_of(r0=times([900, 100, 102, 98, 30], [0] * 5, [0] * 5)))[0]
    assert kept.steps == ("1", "2", "3")
    reasons = [(name, reason.split(":")[0]) for name, reason, _ in kept.excluded]
    assert reasons == [("0", "warm-up"), ("4", "incomplete")]


def test_a_few_first_steps_that_lie_apart_from_all_others_are_warm_up():
    """A clock that ramps up slows two steps by half as little as a compilation; steps that merely vary are kept."""
    kept = steady(run_of(r0=times([140, 138, 100, 101, 99, 102, 100], [0] * 7, [0] * 7)))[0]
    assert kept.steps == ("2", "3", "4", "5", "6")
    noisy = steady(run_of(r0=times([140, 138, 100, 125, 99, 130, 100], [0] * 7, [0] * 7)))[0]
    assert noisy.steps == tuple("0123456")
    slow = times([140, 138, 100, 101, 99, 102, 100], [0] * 7, [0] * 7)
    waiting = times([100, 101, 100, 101, 99, 102, 100], [40, 37] + [0] * 5, [0] * 7)
    assert steady(run_of(r0=slow, r1=waiting, r2=waiting))[0].steps == tuple("0123456")


def test_a_device_behind_its_host_idles_in_the_first_step_only():
    """Steps from mark to mark: the first one begins before any of the device's work, and says nothing of the others."""
    late = StepTimes(("0", "1", "2"), np.full(3, 100.0), {"idle": np.array([80.0, 0.1, 0.1])}, "kernels")
    assert steady(run_of(r0=late))[0].steps == ("1", "2")


def test_two_steps_are_too_few_to_call_one_odd():
    """Nothing is excluded where nothing can be compared."""
    assert steady(run_of(r0=times([900, 100], [0, 0], [0, 0])))[0].steps == ("0", "1")


def test_a_step_that_is_warm_up_on_one_rank_is_left_out_on_all():
    """The others waited for it: their rows of that step are no steady state either."""
    run = run_of(r0=times([100] * 4, [0] * 4, [0] * 4), r1=times([900, 100, 100, 100], [0] * 4, [0] * 4))
    assert all(t.steps == ("1", "2", "3") for t in steady(run).values())
    assert excluded_steps(run) == (("0", "warm-up"),)


def test_breakdown_adds_up_to_the_step():
    """Computing, exposed communication and idle are shares of one whole, on a rank and over the run."""
    facts = facts_of(run_of(r0=times([60, 60, 60], [30, 30, 30], [10, 10, 10]), r1=times([40] * 3, [50] * 3, [10] * 3)))
    for subject in (RUN, Subject("rank", "0", (0,))):
        names = ("computing", "exposed_communication", "idle")
        assert sum(facts.value(f"step.{n}_share", subject) for n in names) == pytest.approx(1.0)
    assert facts.value("step.computing_share", RUN) == pytest.approx(0.5)
    assert facts.value("step.time_us", RUN) == pytest.approx(100)


durations = st.lists(st.floats(1, 1e6), min_size=1, max_size=8)


@given(durations, st.floats(1e-3, 1e3))
def test_scaling_all_times_scales_times_and_no_ratio(values, factor):
    """A profile recorded in other units, or of a machine half as fast, has the same shares."""
    before = facts_of(run_of(r0=times(values, values, values)))
    scaled = [factor * v for v in values]
    after = facts_of(run_of(r0=times(scaled, scaled, scaled)))
    assert {f.name for f in before} == {f.name for f in after}
    for item in before:
        other = after.value(item.name, item.subject)
        expected = item.value * factor if item.name.endswith("_us") else item.value
        assert other == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_steps_that_nothing_names_are_told_by_their_order(tmp_path, framework):
    """Without the column `Step` each row is still a step, and the kernels lend it their name."""
    write_profile(simulate(replace(SMALL, framework=framework)), tmp_path)
    whole = measure_profile([tmp_path], None, Options(jobs=1)).facts
    for path in tmp_path.rglob("step_trace_time.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        gone = rows[0].index("Step")
        path.write_text("".join(",".join(row[:gone] + row[gone + 1 :]) + "\n" for row in rows))
    measured = measure_profile([tmp_path], None, Options(jobs=1))
    for name in ("step.count", "step.time_us", "step.exposed_communication_share", "step.jitter"):
        assert measured.facts.value(name, RUN) == pytest.approx(whole.value(name, RUN)), name
    assert any("does not name its steps" in problem.problem for problem in measured.problems)


def test_who_waits_behind_a_warm_up_for_the_last_one_waits_for_the_warm_up():
    """The ranks that were ready first stand in the next step for as long as the last one still warmed up."""
    ready = times([900, 100, 100, 100], [0, 160, 10, 10], [0] * 4)
    last = times([1050, 100, 100, 100], [0, 10, 10, 10], [0] * 4)
    run = run_of(r0=ready, r1=last)
    assert [t.time.tolist() for t in steady(run).values()] == [[110.0] * 3, [110.0] * 3]
    idle = run_of(r0=times([900, 100, 100], [0, 0, 10], [0, 160, 0]), r1=times([1050, 100, 100], [0, 10, 10], [0] * 3))
    assert all(t.steps == ("2",) for t in steady(idle).values())
