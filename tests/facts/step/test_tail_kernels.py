"""What the older timeline tells beside a step trace: whose kernels these are, and what the tail is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.api import advise
from advisor.model import RUN
from advisor.pipeline import measure
from advisor.sources.layouts.legacy import find_ranks

TICKS = 100_000  # of 10 ns in a millisecond
BEGIN_MS = 400_000.0
STEP_MS = 100.0
STEPS, LISTED = 20, 8
"""The writer lists the operators of the first steps, and the collectives of all."""


def _write(root: Path, last: str, clock: str = "counter", shift_ms: float = 0.0) -> Path:
    """20 steps of 100 ms: forward and backward for 40 ms, a collective of 30 ms that starts before backward's end at
    60 ms and one of 20 ms behind it, then the operator `last` for 19 ms."""
    root.mkdir(parents=True)
    head = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval", "fp_and_bp",
            "tail"]  # fmt: skip
    for name in ("stream_20_parallel_0", "stream_30_parallel_0"):
        head += [name, f"{name}_start_point", f"{name}_end_point"]
    rows, events, operators = [",".join(head)], [], ["op_name, stream_id, start_time(ms), duration(ms)"]
    for step in range(STEPS):
        begin = BEGIN_MS + step * STEP_MS
        points = [begin, begin + STEP_MS, STEP_MS, begin + 1, begin + 60, 1.0, 59.0, 40.0]
        talks = [(20, 25.0, 30.0), (30, 60.5, 20.0)]
        for _, at, us in talks:
            points += [us, begin + at, begin + at + us]
        rows.append(",".join(str(round(p * TICKS)) if i else str(step + 1) for i, p in enumerate([0, *points])))
        work = [("Default/net/MatMul-op1", 0.0, 25.0), ("Default/net/Relu-op2", 45.0, 15.0), (last, 80.6, 19.0)]
        for name, at, ms in work if step < LISTED else ():
            short = name.rpartition("/")[2]
            args = {"type": short.partition("-")[0], "fullname": name}
            times = {"ts": (begin + at - BEGIN_MS) * 1000, "dur": ms * 1000}
            events.append({"name": short, "ph": "X", "tid": 10, "pid": 0, "args": args, **times})
            operators.append(f"{name},10,{begin + at + shift_ms:.5f},{ms}")
        for stream, at, ms in talks:
            events.append({"name": f"stream_{stream}_parallel_0", "ph": "X", "tid": stream, "pid": 10000,
                           "ts": (begin + at - BEGIN_MS) * 1000, "dur": ms * 1000})  # fmt: skip
    (root / "step_trace_raw_0_detail_time.csv").write_text("\n".join(rows) + "\n")
    (root / "ascend_timeline_display_0.json").write_text(json.dumps(events))
    if clock == "counter":
        (root / "min_cycle_counter_0.txt").write_text(str((BEGIN_MS + shift_ms) * TICKS))
    if clock == "operators":
        (root / "output_timeline_data_0.txt").write_text("\n".join(operators) + "\n")
    return root


BACKWARD = "Gradients/Default/net/gradGatherV2/UnsortedSegmentSum-op9"
NAMES = [f"step.{name}" for name in ("computing_us", "exposed_communication_us", "tail_exposed_us", "unplaced_us",
                                     "tail_handed_us", "tail_computing_us", "tail_operator")]  # fmt: skip
UPDATE = "Default/optimizer/ApplyMomentum-op9"


@pytest.mark.parametrize("clock", ["counter", "operators"])
def test_the_timeline_tells_what_runs_in_the_steps_it_covers(tmp_path: Path, clock: str) -> None:
    """Whichever file keeps its clock: 59 ms compute, of the collectives 40 are exposed, 20 of them in the tail."""
    root = _write(tmp_path / "run", BACKWARD, clock)
    report, facts = advise(root), measure([root], NAMES).facts
    told = {
        name: facts.number(f"step.{name}_us", RUN) for name in ("computing", "exposed_communication", "tail_exposed")
    }
    assert told == pytest.approx(
        {"computing": 59_000, "exposed_communication": 40_000, "tail_exposed": 20_000}, rel=0.01
    )
    assert facts.number("step.unplaced_us", RUN) is None
    told_of = [problem.problem for problem in report.problems if "timeline" in problem.file]
    assert told_of == [
        f"lists the operators of {LISTED - 2} of the {STEPS} steps: what runs in a step is told of these"
    ]


@pytest.mark.parametrize(("last", "handed"), [(BACKWARD, 20_000.0), (UPDATE, 0.0)])
def test_what_backward_waits_for_is_told_with_low_confidence(tmp_path: Path, last: str, handed: float) -> None:
    """A reduction that only the update follows can be brought forward; one that an operator of backward needs may not
    be one of gradients."""
    root = _write(tmp_path / "run", last)
    facts = measure([root], NAMES).facts
    assert facts.number("step.tail_handed_us", RUN) == pytest.approx(handed)
    assert facts.number("step.tail_computing_us", RUN) == pytest.approx(19_000, rel=0.01)
    assert facts.value("step.tail_operator", RUN) == last
    told = {finding.rule: finding.confidence.value for finding in advise(root).findings}
    assert told["COMM021"] == ("low" if handed else "medium")


@pytest.mark.parametrize(("clock", "shift_ms"), [("none", 0.0), ("counter", 3600_000.0), ("operators", -3600_000.0)])
def test_a_timeline_of_another_clock_tells_nothing_of_these_steps(tmp_path: Path, clock: str, shift_ms: float) -> None:
    """It belongs to another run, or nobody knows: that it was not read is told."""
    (rank,) = find_ranks(_write(tmp_path / "run", BACKWARD, clock, shift_ms), tmp_path)
    assert "kernels" not in rank.tables
    assert [p.file for p in rank.problems if "is not read" in p.problem] == ["run/ascend_timeline_display_0.json"]
