"""Compilation inside of steps, and before them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch_loop import TorchLoop

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

STEP_US = 100_000


@pytest.mark.parametrize(("compiling_us", "per_step"), [(300_000, 0.0), (30_000, 10_000.0)])
def test_what_takes_longer_than_its_step_lay_before_it(tmp_path: Path, compiling_us: int, per_step: float) -> None:
    """Steps are counted from their first kernel: 300 ms of compiling before that of the first one are set-up, and no
    part of each step of 100 ms; 30 ms may lie within."""
    output = tmp_path / "a_1_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    heading = "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    events, rows, start = [], [heading], 1_000_000
    events.append({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "MindSpore"}})
    compiled = {"ph": "X", "name": "Compiler::Compile::graph", "pid": 1, "tid": 1, "dur": compiling_us}
    events.append({**compiled, "ts": f"{start - compiling_us + 10}.000"})
    for step in range(3):
        begin = start + step * STEP_US
        mark = begin - (compiling_us if step == 0 else 0)
        name = f"Python::PythonObserved::ProfilerStep#{step}"
        events.append(
            {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": f"{mark}.000", "dur": begin + STEP_US - mark - 5}
        )
        rows += [f"{step},MatMul-op{n},MatMul,AI_CORE,{begin + n * 1000}.000,990" for n in range(98)]
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    (output / "trace_view.json").write_text(json.dumps(events))
    measured = measure([tmp_path], ["compile.steady_us", "compile.steady_share"], Options(jobs=1))
    assert measured.facts.number("compile.steady_us", RUN) == pytest.approx(per_step)
    assert not any("cannot be above" in problem.problem for problem in measured.problems)


@pytest.mark.parametrize(
    ("event", "rule"),
    [("train.py(40): save_checkpoint", "DATA100"), ("Compiler::Compile::graph", "SCHED050"), ("aten::mm", "SCHED050")],
)
def test_what_the_host_does_in_a_long_first_step_is_what_it_is_long_from(tmp_path: Path, event: str, rule: str) -> None:
    """A first step that holds a function of the loop's own was not compiled, one that compiles or calls an operator for
    the first time was."""
    loop, begin = TorchLoop(), 1_000_000
    for step in range(6):
        pause = 180_000 if step == 0 else 0
        for n in range(98):
            loop.launch(step, "MatMul", n, begin + n * 1000 + pause * (n > 48), 990)
        if pause:
            loop.call(event, begin + 49_100, pause - 300)
        loop.call(f"ProfilerStep#{step}", begin, STEP_US + pause - 9)
        loop.row(step, 97_020, STEP_US + pause, 20)
        begin += STEP_US + pause
    loop.write(tmp_path)
    told = {finding.rule: finding for finding in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    assert {"DATA100", "SCHED050"} & set(told) == {rule}
    assert (event in told[rule].message.en) is (rule == "DATA100")
