"""A training that evaluates now and then: its step is the training's, not a mean of both."""

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, measure

HEAD = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"


def profile(folder, evaluating):
    """Six steps of 10 ms forward and 20 ms backward; those that evaluate wait 40 ms first and have no backward, but 10
    ms of forward more."""
    rows, now = [], 1000.0
    for step in range(10, 16):
        now += 40_000 if step in evaluating else 100
        kinds = ["MatMulV2", "ArgMaxV2"] if step in evaluating else ["MatMulV2", "ReluGrad", "ReluGrad"]
        for kind in kinds:
            rows.append(f"{step},{kind}_1,{kind},AI_CORE,{now:.3f},10000")
            now += 10_000
    (folder / "kernel_details.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    return measure([folder], None, Options(jobs=1))


def test_steps_that_evaluate_are_left_out(tmp_path):
    """The step's length is that of the training steps, and the others are named with the reason."""
    found = profile(tmp_path, evaluating=(13, 14, 15))
    assert found.facts.value("step.time_us", RUN) == pytest.approx(30_100, rel=0.01)
    assert {name for name, reason in found.info.excluded_steps if "gradient" in reason} >= {"13", "14", "15"}
    assert any("compute no gradients" in problem.problem for problem in found.problems)


def test_evaluation_alone_keeps_its_steps(tmp_path):
    """Where no step trains, all of them count."""
    found = profile(tmp_path, evaluating=range(10, 16))
    assert not any("gradient" in reason for _, reason in found.info.excluded_steps)
    assert found.facts.value("step.time_us", RUN) == pytest.approx(60_000, rel=0.01)


def test_a_last_step_cut_before_its_gradients_is_no_evaluation(tmp_path):
    """The collection ended in its forward pass: it is left out as incomplete, and nothing is said of evaluating."""
    rows, now = [], 1000.0
    for step in range(10, 15):
        for kind in ["MatMulV2"] if step == 14 else ["MatMulV2", "ReluGrad", "ReluGrad"]:
            rows.append(f"{step},{kind}_1,{kind},AI_CORE,{now:.3f},10000")
            now += 10_000
        now += 100
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    found = measure([tmp_path], None, Options(jobs=1))
    assert [name for name, reason in found.info.excluded_steps if "ended in it" in reason] == ["14"]
    assert not any("compute no gradients" in problem.problem for problem in found.problems)
    assert found.facts.value("step.time_us", RUN) == pytest.approx(30_100, rel=0.01)
