"""How much of the card a step uses: only against a peak that is known, and never as an accusation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusters import SMALL, facts_of
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.account.utilisation import USE, at_mean_work
from advisor.knowledge.cards import bandwidth, peaks, peaks_of_cores
from advisor.model import RUN, Subject
from advisor.pipeline import Options, measure
from benchmarks.simulator import simulate, write_profile


def test_a_card_without_its_variant_has_no_peak():
    """ "Ascend910B" is four cards of different speed; nobody is told a share of a guessed one."""
    assert peaks("Ascend910B") == {}
    assert peaks("ascend910b3")["half"] == pytest.approx(295e12, rel=0.01)


def test_a_card_without_its_variant_is_as_slow_as_any():
    """Nobody is told to read memory faster than the card he may have."""
    assert bandwidth("Ascend910B") == bandwidth("") == bandwidth("Ascend910A") < bandwidth("Ascend910B3")
    assert set(peaks("Ascend910B3")) == {"half"}


def test_cores_and_clock_agree_with_the_data_sheets():
    """32 cores at 1 GHz are the card whose data sheet says 256 TFLOPS; without a clock nothing is known."""
    assert peaks_of_cores(32, 1000)["half"] == pytest.approx(peaks("Ascend910A")["half"], rel=0.05)
    assert peaks_of_cores(20, 1800)["half"] == pytest.approx(peaks("Ascend910B3")["half"], rel=0.01)
    assert peaks_of_cores(24, 0) == {}


def test_utilisation_is_work_by_peak_and_step(tmp_path):
    """The profile tells cores and clock: the share is operations ÷ (peak × step), and no card is guessed without."""
    write_profile(simulate(replace(SMALL, kernel_us=900.0)), tmp_path)
    plain = measure([tmp_path], None, Options(jobs=1)).facts
    assert plain.number("utilisation.flop_per_s", RUN) is not None
    assert plain.number("utilisation.model_flops_share", RUN) is None
    device = {"DeviceInfo": [{"ai_core_num": 24, "aiv_num": 48, "aic_frequency": "1800"}]}
    for root in tmp_path.iterdir():
        folder = root / "PROF_000001_x" / "device_0"
        folder.mkdir(parents=True)
        (folder / "info.json.0").write_text(json.dumps(device))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    flop, step_us = facts.number("utilisation.flop", RUN), facts.number("step.time_us", RUN)
    share = facts.number("utilisation.model_flops_share", RUN)
    assert flop and step_us and share
    assert share == pytest.approx(flop / (24 * 1.8e9 * 8192) / step_us * 1e6, rel=0.01)
    of_peak = {one: facts.number("operator.peak_ratio", one) for one in facts.subjects("operator")}
    assert any(of_peak.values())
    for operator, part in of_peak.items():
        if part is not None:
            of_type = Subject("operator_type", str(facts.value("operator.type", operator)))
            rate = facts.number("operator_type.flop_per_s", of_type)
            assert rate and part == pytest.approx(rate / (24 * 1.8e9 * 8192), rel=0.01)


def test_the_yardstick_is_the_type_s_own_best_speed(tmp_path):
    """At the best speed seen here the step is shorter, by no more than its kernels take, and never longer."""
    facts, run = facts_of(SMALL, tmp_path)
    step_us, best = facts.number("step.time_us", RUN), facts.number("utilisation.best_step_us", RUN)
    usual = facts.number("utilisation.usual_step_us", RUN)
    assert step_us and best and usual
    assert step_us - facts.number("step.computing_us", RUN) <= best <= usual <= step_us + 1e-6
    product = Subject("operator_type", "MatMulV2")
    reached, top = (facts.number(f"operator_type.{name}flop_per_s", product) for name in ("", "best_"))
    assert reached and top and reached <= top
    assert all(work.best_us <= work.us for use in run.each(USE).values() for work in use.over(use.steps).types.values())


def test_no_rate_where_shapes_tell_little(tmp_path: Path) -> None:
    """A figure for all products from a thousandth of them would be wrong by a thousand: none is told."""
    rows = [
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,Output Shapes"
    ]
    for step in range(3):
        at = 1_000_000 + 20_000 * step
        rows.append(f'{step},mm,MatMulV2,AI_CORE,{at}.000,100,"64,64;64,64",FLOAT16;FLOAT16,"64,64"')
        rows.append(f"{step},conv,Conv2DBackpropFilter,AI_CORE,{at + 100}.000,9000,N/A,N/A,N/A")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names = ["utilisation.counted_share", "utilisation.flop_per_s", "utilisation.best_step_us"]
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    assert facts.number("utilisation.counted_share", RUN) == pytest.approx(100 / 9100)
    assert facts.value("utilisation.flop_per_s", RUN) is None and facts.value("utilisation.best_step_us", RUN) is None


@pytest.mark.parametrize("rows", [512, 4096])
def test_a_first_step_of_other_work_changes_nothing(tmp_path: Path, rows: int) -> None:
    """A prompt before the tokens multiplies large matrices fast; the steps judged are those of the tokens."""
    heading = (
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,Output Shapes"
    )
    tokens = [
        f'{step},mm,MatMulV2,AI_CORE,{1_000_000 + 4_000 * step}.000,{3800 + step},"16,4096;4096,4096",'
        f'FLOAT16;FLOAT16,"16,4096"\n{step},add,Add,AI_VECTOR_CORE,{1_003_900 + 4_000 * step}.000,50,"16,4096",FLOAT16,'
        '"16,4096"'
        for step in range(1, 7)
    ]
    prompt = [
        f'0,mm,MatMulV2,AI_CORE,{at}.000,1000,"{rows},4096;4096,4096",FLOAT16;FLOAT16,"{rows},4096"'
        for at in range(980_000, 1_004_000, 1_000)
    ]
    found = []
    for name, lines in (("tokens", tokens), ("prompt", prompt + tokens)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel_details.csv").write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
        facts = measure([tmp_path / name], None, Options(jobs=1)).facts
        product = Subject("operator_type", "MatMulV2")
        names = ("flop", "flop_per_s", "best_step_us", "usual_step_us", "counted_share")
        told = [facts.number(f"utilisation.{one}", RUN) for one in names]
        found.append([*told, *(facts.number(f"operator_type.{one}flop_per_s", product) for one in ("", "best_"))])
    assert found[0][0] == pytest.approx(2 * 16 * 4096**2)
    assert found[1] == pytest.approx(found[0], rel=0.01)


@given(
    st.lists(st.floats(1e9, 1e12), min_size=2, max_size=12), st.floats(100, 1e5), st.floats(0, 1e-7), st.floats(1, 3),
)  # fmt: skip
def test_steps_that_differ_by_their_work_alone_are_alike_at_the_same_work(work, fixed, per_flop, odd):
    """A fixed part and one in proportion explain every length; a step that takes longer for the same work stays odd."""
    work = np.array(work)
    assert at_mean_work(fixed + per_flop * work, work) == pytest.approx(
        np.full(len(work), fixed + per_flop * work.mean())
    )
    same, lengths = np.full(len(work), work[0]), np.full(len(work), fixed)
    lengths[0] *= odd
    assert at_mean_work(lengths, same) == pytest.approx(lengths)
    nearly = same * np.linspace(1.0, 1.0001, len(same))  # chance correlation with a hair of work explains a hair
    evened = at_mean_work(lengths, nearly)
    assert np.abs(evened - lengths).max() <= 2e-4 * lengths.mean()
