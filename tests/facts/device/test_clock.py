"""A lower clock of the AI Core is a loss where kernels felt it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.knowledge.cards import rated_mhz
from advisor.model import Confidence
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario, simulate, write_profile

STEPS = 4


@pytest.mark.parametrize(("slower", "felt"), [(1.0, 0.0), (1.5, 0.2), (2.0, 1 / 3)])
def test_what_a_lower_clock_costs_is_told_by_the_same_kernels_at_both(tmp_path: Path, slower: float, felt: float):
    """Half of the steps run at half the clock. Kernels of one shape that are long and short by their place in the step
    are compared with those at the same place; what takes as long as before has lost nothing."""
    rows, clock, at = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes"], [], 0.0
    for step in range(STEPS):
        low = step >= STEPS // 2
        clock.append((at, 900 if low else 1800))
        for place in range(6):
            us = (100 + 40 * place) * (slower if low else 1.0)
            rows.append(f'{step},net/MatMulV2-op{place},MatMulV2,AI_CORE,{at + 1:.1f},{us},"64,64;64,64"')
            at += us + 2
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    events = [
        {"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0, "ts": f"{us:.3f}", "args": {"MHz": mhz}}
        for us, mhz in clock
    ]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert [fact.value for fact in facts.of("timeline.core_mhz_felt_drop").values()] == pytest.approx([felt])
    assert all(fact.value > 0.2 for fact in facts.of("timeline.core_mhz_drop").values())


@pytest.mark.parametrize(("rated", "told"), [(1800, True), (1400, False), (None, False)])
def test_a_clock_below_the_rated_one_is_told_and_an_idle_one_is_no_measure(
    tmp_path: Path, rated: int | None, told: bool
):
    """Before the first kernel the clock stands at 1800 MHz, under load at 1400 on both ranks, from the first kernel to
    the last. Whether that is low the card's own files tell, or nobody; both cards are told in one finding."""
    for rank in write_profile(simulate(Scenario(data=2, layers=2, steps=4)), tmp_path, trace=True):
        path = rank / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
        events = json.loads(path.read_text())
        first = min(float(e["ts"]) for e in events if "ts" in e)
        for at, mhz in ((first - 1e6, 1800), (first - 1e3, 1400), (first + 1e4, 1400)):
            name = {"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0}
            events.append({**name, "ts": f"{at:.3f}", "args": {"MHz": mhz}})
        path.write_text(json.dumps(events))
        if rated is not None:
            device = rank / "PROF_000001" / "device_0"
            device.mkdir(parents=True)
            (device / "info.json.0").write_text(json.dumps({"DeviceInfo": [{"id": 0, "aic_frequency": str(rated)}]}))
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    found = [f for f in report.findings if f.rule == "COMP093"]
    assert [f.subject.ranks for f in found] == ([(0, 1)] if told else [])
    assert all(f.confidence is Confidence.LOW for f in found)
    assert not [f for f in report.findings if f.rule == "COMP090"]


@pytest.mark.parametrize(("counts", "mhz", "told"), [(True, 1080, True), (False, 1080, False), (True, 1500, False)])
def test_a_clock_below_that_of_any_card_with_such_counters_is_told(tmp_path: Path, counts: bool, mhz: int, told: bool):
    """Nothing names the card. Those that count what their vector cores compute by themselves are rated at 1500 MHz and
    more; others may be rated at 1080."""
    rows, at = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Num,Input Shapes"], 1e6
    rows[0] += ",aiv_vec_ratio,aiv_mte2_ratio" if counts else ""
    for step in range(STEPS):
        for place in range(6):
            row = f'{step},net/Add-op{place},Add,AI_VECTOR_CORE,{at + 1:.1f},400.0,40,"4096,4096;4096,4096"'
            rows.append(row + (",0.15,0.6" if counts else ""))
            at += 402
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    clock = {"ph": "C", "name": "AI Core Freq", "pid": 1, "tid": 0, "ts": "999000.000", "args": {"MHz": mhz}}
    (tmp_path / "trace_view.json").write_text(json.dumps([clock]))
    found = [f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.rule == "COMP099"]
    assert bool(found) is told
    assert all(f.confidence is Confidence.LOW and "1500" in f.message.en and "1850" in f.message.en for f in found)


def test_a_card_that_is_named_has_the_clock_of_its_name():
    """A variant that is not told is none of them."""
    assert rated_mhz("Ascend910B4") == 1500
    assert rated_mhz("Ascend910B") is None
