"""What the host was in, by the framework's own table of its operators, where no timeline tells when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

STEPS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
OPERATORS = (
    "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
    "Device Total Duration(us),Device Self Duration With AICore(us),Device Total Duration With AICore(us)"
)


def _judged(folder: Path, calls: dict[tuple[str, str], tuple[int, float]], steps: int = 4) -> Report:
    """Steps of 10 ms that idle for 4 ms; (operator, shapes) -> (calls, host time of each without what it calls)."""
    output = folder / "rank0_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [f"0,{n},6000.0,0,0,0,4000.0,10000.0,0" for n in range(3, 3 + steps)]
    (output / "step_trace_time.csv").write_text("\n".join([STEPS, *rows]) + "\n")
    stack = '"train.py(7): step;\r\nmodel.py(9): forward"'
    rows = [
        f'{name},"{shapes}",{stack},{us},{us},0,0,0,0' for (name, shapes), (n, us) in calls.items() for _ in range(n)
    ]
    (output / "operator_details.csv").write_text("\n".join([OPERATORS, *rows]) + "\n")
    return advise([folder], load_rules(), Options())


COPIES = {("aten::copy_", "2,4097;2,4097;"): (4, 3500.0), ("aten::copy_", "8;8;"): (400, 2.0)}
OTHERS = {("aten::mm", "64,64;64,64"): (400, 9.0)}


def test_the_operator_that_the_host_waits_in_is_named_with_its_shapes(tmp_path: Path) -> None:
    """Copies from ordinary memory hold the host for as long as the device idles: which, and what to do about it."""
    (finding,) = (f for f in _judged(tmp_path, {**OTHERS, **COPIES}).findings if f.rule == "SCHED020")
    said = finding.message.en.replace("\xa0", " ")
    assert "aten::copy_: 3.7 ms per step (calls: 101), mostly with inputs of 2,4097;2,4097" in said
    assert finding.remedies[0].id == "copy-without-waiting" and "2,4097" in finding.remedies[0].action.en


def test_a_value_that_the_host_reads_back_is_named_as_a_wait(tmp_path: Path) -> None:
    """`.item()` has no shapes that help: the remedy is the one for waits in the loop."""
    report = _judged(tmp_path, {**OTHERS, ("aten::_local_scalar_dense", ""): (4, 3600.0)})
    (finding,) = (f for f in report.findings if f.rule == "SCHED020")
    assert finding.remedies[0].id == "avoid-synchronisation" and "mostly with inputs" not in finding.message.en


@pytest.mark.parametrize(("reads", "told"), [(8, True), (1, False)])
def test_values_read_back_many_times_in_a_step_are_a_cause(tmp_path: Path, reads: int, told: bool) -> None:
    """A step reads its loss once, and waits there for the device to have done the step: that costs nothing."""
    report = _judged(tmp_path, {**OTHERS, ("aten::_local_scalar_dense", ""): (4 * reads, 1600.0 / reads)})
    found = [f for f in report.findings if f.rule == "SCHED090"]
    assert bool(found) == told
    if told:
        assert "1.6 ms per step (reads per step: 8)" in found[0].message.en.replace("\xa0", " ")
        assert found[0].saving is not None and found[0].saving.us_per_step == pytest.approx(1600.0)


@pytest.mark.parametrize("calls", [OTHERS, {("aten::copy_", "8"): (4, 90_000.0), **OTHERS}])
def test_operators_that_take_little_or_more_than_was_recorded_own_nothing(tmp_path: Path, calls) -> None:
    """A tenth of the idle time is no reason for it, and what lasts longer than the recording lies beside it."""
    (finding,) = (f for f in _judged(tmp_path, calls).findings if f.rule == "SCHED020")
    assert "framework's operators" not in finding.message.en


def test_calls_whose_cells_were_moved_are_told_and_left_out(tmp_path: Path) -> None:
    """What a call takes by itself is part of what it takes with all that it calls."""
    report = _judged(tmp_path / "a", {**OTHERS, **COPIES})
    (table,) = (tmp_path / "a").glob("*/*/operator_details.csv")
    table.write_text(table.read_text() + "aten::odd,,,90000.0,0,0,0,0,\n")
    damaged = advise([tmp_path / "a"], load_rules(), Options())
    longest = [{f.value for f in each.facts if f.name == "framework.longest_name"} for each in (report, damaged)]
    assert longest == [{"aten::copy_"}] * 2
    assert any(
        "1 of 805 calls take longer by themselves than with all that they call" in p.problem for p in damaged.problems
    )


def test_a_timeline_tells_more_than_the_table(tmp_path: Path) -> None:
    """Where a timeline is there, the table is not read: it knows no time of day."""
    _judged(tmp_path / "a", COPIES)
    (output,) = (tmp_path / "a").glob("*/ASCEND_PROFILER_OUTPUT")
    events = [{"name": "aten::mm", "ph": "X", "ts": "1000.000", "dur": 5.0, "pid": 1, "tid": 2, "cat": "cpu_op"}]
    (output / "trace_view.json").write_text(json.dumps(events))
    report = advise([tmp_path / "a"], load_rules(), Options())
    assert not [fact for fact in report.facts if fact.name.startswith("framework.")]


@pytest.mark.parametrize(
    ("name", "framework"), [("aten::slice", "pytorch"), ("c10d::allreduce_", "pytorch"), ("Cast-op1", "unknown")]
)
def test_operators_of_torch_tell_the_framework(tmp_path: Path, name: str, framework: str) -> None:
    """Of tables without the folder that the profiler named, what the host called is PyTorch's own."""
    _judged(tmp_path / "a", {(name, ""): (4, 20.0)})
    (output,) = (tmp_path / "a").glob("*/ASCEND_PROFILER_OUTPUT")
    loose = output.rename(tmp_path / "profiling")
    table = loose / "step_trace_time.csv"  # of which MindSpore's has no Device_id, and older ones of PyTorch neither
    table.write_text("".join(line.partition(",")[2] for line in table.read_text().splitlines(keepends=True)))
    assert advise([loose], load_rules(), Options()).profile.framework == framework
