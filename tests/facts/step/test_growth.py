"""Steps that grow longer with nearly every one of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.device.course import Course
from advisor.facts.step.growth import _of_one, common_speeds, growing, rises, same_kernels_slow_down, two_speeds
from advisor.facts.step.times import StepTimes
from advisor.model import Severity
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules


@given(st.integers(8, 40), st.floats(0.005, 0.1), st.floats(1.0, 1e6))
def test_a_drift_above_the_noise_is_seen_at_any_scale(steps: int, growth: float, scale: float) -> None:
    """A card that heats up, whatever the unit of time."""
    noise = np.cos(np.arange(steps) * 2.4) * growth / 2
    lengths = scale * (1 + growth * np.arange(steps) + noise)
    assert rises(lengths)
    assert not rises(lengths[::-1])


def test_steps_that_vary_or_change_once_do_not_grow() -> None:
    """Noise has no order, and a change from one step on is told as such."""
    noisy = 100 + np.random.default_rng(3).normal(0, 2, 20)
    assert not rises(noisy)
    assert not rises(np.where(np.arange(20) < 10, noisy, noisy + 40))
    assert not rises(np.full(20, 100.0))
    assert not rises(np.arange(7.0) + 100)  # too few to tell


@pytest.mark.parametrize(
    ("pace", "told"),
    [
        ([1.0, 1.12, 1.25, 1.4, 1.53], True), ([1.0, 1.12, 1.12, 1.4, 1.53], False), ([1.0, 1.0, 1.0, 1.0, 1.0], False),
        ([1.0, 1.02, 1.04, 1.06, 1.08], False), ([1.0, 1.2, 1.4, 1.53], False),
    ],
)  # fmt: skip
def test_five_steps_grow_where_the_same_kernels_take_longer_in_each(pace: list[float], told: bool) -> None:
    """A card that heats up is seen in a short recording by its kernels; steps that grow by what they compute are not,
    nor four of them."""
    lengths = 1e5 * np.array([1.0, 1.12, 1.25, 1.4, 1.53])[: len(pace)]
    steps, flat = tuple(map(str, range(len(pace)))), np.zeros(len(pace))
    course = Course(
        steps, lengths, flat, flat, flat, flat, np.full(len(pace), 500), {},
        expected_us=flat + 1e5, measured_us=1e5 * np.array(pace),
    )  # fmt: skip
    assert same_kernels_slow_down([course], steps, lengths) == told
    assert not same_kernels_slow_down([], steps, lengths)


@pytest.mark.parametrize(
    ("pace", "slow"),
    [
        ([0.67, 0.671, 1.0, 1.002, 0.998], 3),
        ([1.0, 1.35, 1.002, 1.351], 2),
        ([1.0, 1.0, 1.0, 1.0, 1.5], None),  # one step is an event
        ([1.0, 1.03, 1.06, 1.09, 1.12, 1.15], None),  # they grow
        ([1.0, 1.0, 1.0, 1.0], None),
        ([1.0, 1.5, 1.5], None),
    ],
)
def test_steps_that_run_the_same_kernels_at_one_of_two_speeds(pace: list[float], slow: int | None) -> None:
    """Half of the steps at another speed move the median, and no step stands out of it."""
    found = two_speeds(np.array(pace))
    assert (None if found is None else int(found[0].sum())) == slow


@given(st.lists(st.floats(0.97, 1.03), min_size=4, max_size=30), st.floats(1e-3, 1e3))
def test_the_ratio_of_two_speeds_does_not_depend_on_their_unit(pace: list[float], scale: float) -> None:
    values = np.array([*pace, *(1.5 * np.array(pace))])
    one, other = two_speeds(values), two_speeds(scale * values)
    assert one is not None and other is not None
    assert one[1] == pytest.approx(1.5) and other[1] == pytest.approx(1.5)


@pytest.mark.parametrize(("showing", "ranks", "told"), [(1, 1, True), (1, 2, False), (2, 3, True), (2, 4, False)])
def test_two_speeds_of_the_step_are_two_speeds_of_most_ranks(showing: int, ranks: int, told: bool) -> None:
    """The median of two ranks of which one throttles is their mean, and no witness of the other one."""
    throttled, even = np.array([1.0, 1.4, 1.0, 1.4, 1.0]), np.ones(5)
    found = common_speeds([throttled] * showing + [even] * (ranks - showing), ranks)
    assert (found is not None) == told
    assert found is None or (found[0].sum(), found[2]) == (2, showing)


@given(st.integers(4, 16), st.floats(0.05, 1.0), st.floats(1e-3, 1e3))
def test_growth_is_of_the_rank_that_all_wait_for(ranks: int, growth: float, scale: float) -> None:
    """One card heats up and its peers compute as ever: the steps grow by what it computes. Where all heat up, or none
    computes longer, no rank is named."""
    steady, hot = np.full(8, 48.0) * scale, scale * 48.0 * (1 + growth * np.arange(8) / 7)
    longer = float(np.median(hot[-2:]) - np.median(hot[:2]))
    one = {rank: hot if rank == 1 else steady for rank in range(ranks)}
    part, named = growing(one, longer)
    assert named == [1] and part == pytest.approx(1.0)
    part, named = growing(dict.fromkeys(range(ranks), hot), longer)
    assert named == [] and part == pytest.approx(1.0)
    assert growing(dict.fromkeys(range(ranks), steady), longer) == (0.0, [])


@pytest.mark.parametrize(("kernels", "named"), [(1.55, True), (None, True), (1.2, False)])
def test_one_card_that_slows_down_is_told_from_one_that_gets_more_to_compute(kernels, named) -> None:
    """Its same kernels slow down as its computation grows; where nothing tells, it is the likelier of the two."""
    hot = 48e3 * (1 + 0.55 * np.arange(8) / 7)
    pace = None if kernels is None else np.linspace(1, kernels, 8)
    one = StepTimes(tuple(map(str, range(8))), hot, {"computing": hot}, "steps")
    told = {fact.name: fact for fact in _of_one(1, hot, pace, 12e3, one)}
    assert ("rank.growth_us" in told) == named == ("step.growth_rank_count" in told)
    if named:
        assert told["rank.growth_us"].value == pytest.approx(48e3 * 0.55 * 3 / 7)
        assert told["rank.growth_us"].subject.ranks == (1,)
        assert told["rank.growth_share"].value == pytest.approx(0.55 * 6 / (7 + 0.55 * 0.5))


@pytest.mark.parametrize(
    ("grows", "rule", "severity"),
    [("kernels", "SCHED071", Severity.HIGH), ("shapes", "COMP095", Severity.LOW), ("", "SCHED071", Severity.LOW)],
)
def test_inputs_that_grow_are_no_card_that_slows_down(
    tmp_path: Path, grows: str, rule: str, severity: Severity
) -> None:
    """Sequences get longer from step to step in the one, the same kernels in the other; without shapes nobody knows."""
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    rows, at = [heading + (",Input Shapes" if grows else "")], 1_000_000.0
    steps = ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
    for step in range(10):
        us, shape = 1000 * (1 + 0.06 * step), f"{2048 + 128 * step * (grows == 'shapes')},4096"
        for _ in range(40):
            kind, shapes = ("MatMulV2", f',"{shape}"') if grows else ("N/A", "")
            rows.append(f"{step},aclnnMatmul_MatMul_MatMulV2,{kind},AI_CORE,{at:.3f},{us:.3f},0{shapes}")
            at += us
        steps.append(f"{step},{40 * us},0,0,0,0")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "step_trace_time.csv").write_text("\n".join(steps) + "\n", encoding="utf-8")
    found = [f for f in advise([tmp_path], load_rules()).findings if f.rule in ("SCHED071", "COMP095")]
    assert [(f.rule, f.severity) for f in found] == [(rule, severity)]


def test_a_cache_that_grows_is_no_card_that_slows_down(tmp_path: Path) -> None:
    """A server that decodes: attention reads one token more in each step, which its shapes do not tell."""
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes"]
    steps, at = ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"], 1_000_000.0
    for step in range(10):
        begun = at
        for _ in range(20):
            for kind, us in (("MatMulV2", 200.0), ("PagedAttention", 500 * (1 + 0.1 * step))):
                rows.append(f'{step},{kind.lower()},{kind},AI_CORE,{at:.3f},{us:.3f},0,"64,2048"')
                at += us
        steps.append(f"{step},{at - begun},0,0,0,0")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "step_trace_time.csv").write_text("\n".join(steps) + "\n", encoding="utf-8")
    assert not [f for f in advise([tmp_path], load_rules()).findings if f.severity.rank > Severity.LOW.rank]
