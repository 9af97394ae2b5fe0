"""Executions of graphs that msprof counts: they are steps, and those of several graphs are never mixed."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

ORIGIN = 1_700_000_000_000_000
PAUSE = 200.0
KERNELS = {"1": (("MatMulV2", 400.0), ("SoftmaxV2", 100.0), ("MatMulV2", 500.0)), "2": (("Add", 30.0), ("Mul", 20.0))}
"""Graph -> its kernels with their lengths: 1,000 and 50 us an execution."""

Mark = tuple[str, int, float, float]


def _run(order: Sequence[str]) -> tuple[list[tuple[str, float, float]], list[Mark]]:
    """(type, start, length) of the kernels, and (graph, number, start, end) of the executions in this order."""
    at, kernels, marks, count = 0.0, [], [], dict.fromkeys(KERNELS, 0)
    for graph in order:
        begin = at
        for kind, length in KERNELS[graph]:
            kernels.append((kind, at, length))
            at += length
        count[graph] += 1
        marks.append((graph, count[graph], begin, at))
        at += PAUSE
    return kernels, marks


def _write(folder: Path, order: Sequence[str]) -> Path:
    output = folder / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    kernels, marks = _run(order)
    with (output / "op_summary_20260101000000.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(us)"])
        writer.writerows([kind.lower(), kind, "AI_CORE", f"{ORIGIN + at:.3f}\t", us] for kind, at, us in kernels)
    with (output / "step_trace_20260101000000.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Device_id", "Iteration ID", "FP Start(us)", "Iteration End(us)", "Iteration Time(us)",
                         "Data Aug Bound(us)", "Model ID"])  # fmt: skip
        writer.writerows([0, i, "N/A", f"{ORIGIN + end:.3f}\t", end - begin, "N/A", m] for m, i, begin, end in marks)
    return folder


def _measure(folder: Path) -> tuple[float | None, float | None, float | None]:
    facts = measure([folder], ["step.time_us", "step.idle_share", "operators.kernel_count"], Options(jobs=1)).facts
    time, idle = facts.number("step.time_us", RUN), facts.number("step.idle_share", RUN)
    return time, idle, facts.number("operators.kernel_count", RUN)


def test_iterations_of_one_graph_are_steps(tmp_path: Path) -> None:
    """Each lasts to the first kernel of the next, the pause after it included."""
    time, idle, kernels = _measure(_write(tmp_path, ["1"] * 6))
    assert time == pytest.approx(1000 + PAUSE, rel=0.05)
    assert idle == pytest.approx(PAUSE / (1000 + PAUSE), abs=0.03)
    assert kernels == 3


def test_graphs_in_a_fixed_order_are_one_step_together(tmp_path: Path) -> None:
    """One execution of the first and two of the second, again and again: 1,100 us of kernels and three pauses."""
    time, _, kernels = _measure(_write(tmp_path, ["1", "2", "2"] * 5))
    assert time == pytest.approx(1100 + 3 * PAUSE, rel=0.05)
    assert kernels == 7


def test_of_graphs_one_after_the_other_the_longest_is_judged(tmp_path: Path) -> None:
    """Ten steps of 1 ms are not averaged with a hundred of 50 us, and the report says what it left out."""
    folder = _write(tmp_path, ["2"] * 100 + ["1"] * 10)
    time, idle, kernels = _measure(folder)
    assert time == pytest.approx(1000 + PAUSE, rel=0.05) and kernels == 3
    assert idle == pytest.approx(PAUSE / (1000 + PAUSE), abs=0.03)
    report = advise([folder], load_rules())
    assert report.profile.has_steps and len(report.profile.steps) == 10
    assert "graph 2 (100 executions of 50" in report.profile.recording_reason.en
    assert "图2（100次" in report.profile.recording_reason.zh


def test_marks_that_hold_little_of_the_work_are_no_steps(tmp_path: Path) -> None:
    """A small graph among many kernels that no graph launched says nothing about the rest."""
    folder = _write(tmp_path, ["1"] * 20 + ["2"] * 10)
    path = next(folder.rglob("step_trace_*.csv"))
    with path.open() as file:
        rows = list(csv.reader(file))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([row for row in rows if row[-1] != "1"])
    facts = measure([folder], ["recording.has_steps"], Options(jobs=1)).facts
    assert facts.value("recording.has_steps", RUN) is False


def test_a_timeline_alone_marks_iterations(tmp_path: Path) -> None:
    """msprof draws them above the tasks of the device: they are marks, and no time in which anything computes."""
    kernels, marks = _run(["2"] * 100 + ["1"] * 10)
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "args": {"name": "Ascend Hardware"}}
    ]
    for kind, at, us in kernels:
        events.append({"ph": "X", "name": kind, "pid": 5, "tid": 3, "ts": f"{ORIGIN + at:.3f}", "dur": us, "args": {}})
    for graph, number, begin, end in marks:
        about = {"Iteration ID": number, "FP Start": "", "BP End": "", "Iteration Time(us)": end - begin}
        events.append({"ph": "X", "name": f"Iteration {number}", "pid": 5, "tid": 70000 + int(graph),
                       "ts": f"{ORIGIN + begin:.3f}", "dur": end - begin, "args": about})  # fmt: skip
    (tmp_path / "msprof_20260101000000.json").write_text(json.dumps(events), encoding="utf-8")
    names = ["step.time_us", "step.idle_share", "recording.has_steps"]
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    assert facts.value("recording.has_steps", RUN) is True
    assert facts.number("step.time_us", RUN) == pytest.approx(1000 + 0.9 * PAUSE)
    assert facts.number("step.idle_share", RUN) == pytest.approx(PAUSE / (1000 + PAUSE), abs=0.02)


@pytest.mark.parametrize("cut", [False, True])
def test_the_table_of_iterations_tells_the_steps_that_kernels_do_not(tmp_path: Path, cut: bool) -> None:
    """Its ends are a step apart, and what an iteration does not run itself is the gap between two: without any kernel,
    and beside a table of kernels that lost half of its rows. What was recorded stays what it was."""
    folder = _write(tmp_path, "1" * 20)
    table = next(folder.rglob("op_summary_*.csv"))
    if cut:
        lines = table.read_text(encoding="utf-8").splitlines()
        table.write_text("\n".join(lines[: len(lines) // 2]) + "\n", encoding="utf-8")
        statistic = "OP Type,Core Type,Count,Total Time(us)\nMatMulV2,AI_CORE,40,18000\nSoftmaxV2,AI_CORE,20,2000\n"
        (table.parent / "op_statistic_20260101000000.csv").write_text(statistic, encoding="utf-8")
    else:
        table.unlink()
    report = advise([folder], load_rules())
    facts = {fact.name: fact.value for fact in report.facts if fact.subject == RUN}
    assert facts["step.time_us"] == pytest.approx(1200) and facts["step.interval_us"] == pytest.approx(200)
    assert facts["recording.has_steps"] is True
    assert facts["recording.kind"] == ("inference" if cut else "training_steps")


def test_an_iteration_counted_from_the_end_of_the_one_before_waits_for_its_data_first(tmp_path: Path) -> None:
    """CANN 5 counts an iteration from the last one's end: what lies before its first operator, when its data come, is
    the gap, although no time is left between two iterations."""
    folder = tmp_path / "PROF_000001_A" / "device_0" / "summary"
    folder.mkdir(parents=True)
    lines = ["Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),Data Aug Bound(us),Model ID"]
    for number in range(10):
        end = 1_000_000 + 76_000 * (number + 1)
        lines.append(f"{number + 1},{end - 67_000},{end - 6_000},{end},76000,9000,1")
    (folder / "step_trace_0_1.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = ["step.time_us", "step.interval_us", "step.data_bound_us"]
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    assert [facts.number(name, RUN) for name in names] == pytest.approx([76_000, 9_000, 9_000])
