"""Kernels that a timeline alone tells: judged as those of a table, as far as both tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.api import advise
from advisor.facts.base import FactSet
from advisor.model import RUN, Severity, Subject
from advisor.pipeline import Options, measure
from benchmarks.simulator import Scenario, simulate, write_profile
from benchmarks.simulator.scenario import Fault

STEPS, STEP_US, ORIGIN_US = 4, 10_000, 1_700_000_000_000_000
WORK = (
    ("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", 46, 0, 4000),
    ("aclnnCast_CastAiCore_Cast", "Cast", "AI_VECTOR_CORE", 46, 4000, 1500),
    ("aclnnUnique2_UniqueAiCpu_Unique", "Unique", "AI_CPU", 46, 5600, 2000),
    ("aclnnAdd_AddAiCore_Add", "Add", "AI_VECTOR_CORE", 47, 7000, 400),
    ("hcom_allReduce__123_0_1", "hcom_allReduce_", "HCCL", 5, 7600, 2000),
)
"""(name, type, core, stream, start in the step, duration), microseconds: the addition runs beside the AI CPU."""
ALIKE = ("time_us", "exposed_us", "step_share", "compute_share", "count", "core", "category", "longest_us")
UNTOLD = ("shapes", "dtypes", "float32_share", "pipe")


def _events(overlap_us: float = 0.0) -> list[dict[str, Any]]:
    """The timeline; `overlap_us` is the profiler's own sum of what computes in each step."""
    named = {1: "Python", 2: "CANN", 3: "Ascend Hardware", 5: "Communication", 6: "Overlap Analysis"}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in named.items()
    ]

    def add(pid: int, tid: int, name: str, at: float, us: float, **told: Any) -> None:
        event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{ORIGIN_US + at:.3f}", "dur": us}
        events.append(event | {"args": told})

    for step in range(STEPS):
        begin = step * STEP_US
        add(1, 1, f"ProfilerStep#{step}", begin, STEP_US)
        for name, kind, core, stream, start, us in WORK:
            told = {} if kind.startswith("hcom") else {"Task Type": core, "Physic Stream Id": stream}
            add(3 if told else 5, stream, name, begin + start, us, **told)
        add(3, 46, "EVENT_WAIT", begin + 9600, 300, **{"Task Type": "EVENT_WAIT_SQE"})
        if overlap_us:
            add(6, 1, "Computing", begin, overlap_us)
            add(6, 2, "Communication", begin + 7600, 2000)
    return events


def _table(folder: Path) -> None:
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Stream ID"]
    rows += [
        f"{step},{name},{kind},{core},{ORIGIN_US + step * STEP_US + start}.000,{us},0,{stream}"
        for step in range(STEPS) for name, kind, core, stream, start, us in WORK
    ]  # fmt: skip
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n")


def _measured(folder: Path, events: list[dict[str, Any]], table: bool = False) -> FactSet:
    folder.mkdir()
    (folder / "trace_view.json").write_text(json.dumps(events))
    if table:
        _table(folder)
    wanted = [f"operator_type.{name}" for name in (*ALIKE, *UNTOLD)]
    return measure([folder], [*wanted, "operators.aicpu_us", "operators.conversion_share"], Options(jobs=1)).facts


@pytest.mark.parametrize("overlap_us", [0.0, 7500.0])
def test_a_timeline_alone_tells_operators_as_their_table_does(tmp_path: Path, overlap_us: float) -> None:
    """The same types take the same time on the same cores, and what ran on the AI CPU and what only converts is known;
    shapes and types of data, which no timeline tells, are not."""
    alone = _measured(tmp_path / "alone", _events(overlap_us))
    whole = _measured(tmp_path / "whole", _events(overlap_us), table=True)
    for kind in ("MatMulV3", "Cast", "Unique", "Add"):
        subject = Subject("operator_type", kind)
        for name in ALIKE:
            told, expected = (facts.value(f"operator_type.{name}", subject) for facts in (alone, whole))
            close = {"rel": 0.02} if name == "step_share" else {}  # marks alone do not tell where the last step ends
            assert told == (pytest.approx(expected, **close) if isinstance(expected, float) else expected) is not None
        assert not any(alone.value(f"operator_type.{name}", subject) for name in UNTOLD)
    assert alone.number("operators.aicpu_us", RUN) == pytest.approx(1600)
    assert alone.number("operators.conversion_share", RUN) == pytest.approx(0.15, rel=0.02)


def test_a_timeline_from_which_tasks_were_taken_tells_of_no_operator(tmp_path: Path) -> None:
    """Where the profiler's own sum knows of more than is drawn, what is left may be anything of the whole."""
    events = [each for each in _events(7500.0) if "MatMul" not in each["name"]]
    assert not _measured(tmp_path / "alone", events).of("operator_type.time_us")


def test_tasks_that_are_told_twice_count_once(tmp_path: Path) -> None:
    """A timeline that was joined with itself holds each task twice, which ran once."""
    events = _events()
    facts = _measured(tmp_path / "alone", [*events, *(each for each in events if each["ph"] == "X")])
    assert facts.number("operator_type.count", Subject("operator_type", "Unique")) == 1


def test_one_odd_event_takes_no_task_away(tmp_path: Path) -> None:
    """Arguments that are no object, and a type of task that is no text, leave all tasks, if not their cores."""
    events = _events()
    odd = [{"ph": "X", "name": "odd", "pid": 1, "tid": 1, "ts": "1.000", "dur": 1, "args": 5},
           {"ph": "X", "name": "aclnnMul_Mul_Mul", "pid": 3, "tid": 46, "ts": f"{ORIGIN_US + 9000}.000", "dur": 5,
            "args": {"Task Type": [1]}}]  # fmt: skip
    facts = _measured(tmp_path / "alone", [*events, *odd])
    assert facts.number("operator_type.time_us", Subject("operator_type", "Unique")) == pytest.approx(2000)


def test_what_was_set_up_is_no_operator_of_the_recording(tmp_path: Path) -> None:
    """Without marks of steps the launches behind a long compilation are judged, as those of a table are."""
    tasks = [("Normal_Cast", 0.0), ("Normal_Cast", 2_000.0), *(("add_kernel", 170_000.0 + 200 * i) for i in range(5))]
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}},
        *({"ph": "X", "name": name, "pid": 3, "tid": 2, "ts": f"{ORIGIN_US + start:.3f}", "dur": 6.0,
           "args": {"Task Type": "AI_VECTOR_CORE"}} for name, start in tasks),
    ]  # fmt: skip
    facts = _measured(tmp_path / "alone", events)
    assert [subject.id for subject in facts.of("operator_type.time_us")] == ["add_kernel"]


def test_a_timeline_alone_tells_between_which_operators_its_device_idles(tmp_path: Path) -> None:
    """Where the device waits, and that Python collects garbage meanwhile, is told as beside a table of kernels."""
    events = _events()
    events += [
        {"ph": "X", "name": "gc", "pid": 1, "tid": 1, "ts": f"{ORIGIN_US + step * STEP_US + 7600}.000", "dur": 1900}
        for step in range(STEPS)
    ]
    events = [each for each in events if each["pid"] != 5]
    names = ["timeline.longest_gap_before", "timeline.longest_gap_after", "timeline.gap_owner", "timeline.gc_us"]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    assert [facts.value(name, RUN) for name in names] == [WORK[2][0], WORK[0][0], "gc", 1900]


def _alone(folder: Path) -> Path:
    """The same recording without all that lies beside its timelines."""
    for path in list(folder.rglob("*")):
        if path.is_file() and path.name != "trace_view.json":
            path.unlink()
    return folder


def _found(folder: Path) -> dict[tuple[str, str, Severity], float | None]:
    """(rule, subject, severity) -> microseconds per step that its repair gives."""
    return {
        (each.rule, each.subject.id, each.severity): each.saving.us_per_step if each.saving else None
        for each in advise(folder).findings
    }


@pytest.mark.parametrize(
    "sick",
    [
        Scenario(data=1, pipeline=2, micro_batches=4, faults=(Fault("stage_imbalance", 1, 1.0),)),
        Scenario(data=4, faults=(Fault("slow_compute", 2),)),
    ],
    ids=["stage", "rank"],
)
def test_timelines_alone_accuse_whom_the_tables_beside_them_accuse(tmp_path: Path, sick: Scenario) -> None:
    """How fast kernels are, and which collective waits for which, stands in the timelines: the same findings, as grave
    and as large."""
    write_profile(simulate(sick), tmp_path, trace=True)
    whole, alone = _found(tmp_path), _found(_alone(tmp_path))
    assert alone.keys() == whole.keys()
    saved = {finding: us for finding, us in whole.items() if us}
    assert saved and all(alone[finding] == pytest.approx(us, rel=0.02) for finding, us in saved.items())


def test_the_wait_before_a_step_counts_once(tmp_path: Path) -> None:
    """Links from launches to kernels tell it in the steps of a timeline already; that its kernels tell it, too, makes
    no step longer."""
    write_profile(
        simulate(Scenario(data=2, framework="pytorch", faults=(Fault("slow_storage"),))), tmp_path, trace=True
    )
    whole = measure([tmp_path], ["step.time_us"], Options(jobs=1)).facts.number("step.time_us", RUN)
    alone = measure([_alone(tmp_path)], ["step.time_us"], Options(jobs=1)).facts.number("step.time_us", RUN)
    assert alone == pytest.approx(whole, rel=0.01)


def test_a_slow_card_with_a_timeline_alone_beside_tables_has_no_other_work(tmp_path: Path) -> None:
    """Kernels without shapes are like none whose shapes are told: that is no reason to say that it computes more."""
    sick = Scenario(data=4, layers=2, steps=4, faults=(Fault("slow_compute", 1),))
    output = write_profile(simulate(sick), tmp_path, trace=True)[1] / "ASCEND_PROFILER_OUTPUT"
    for path in output.glob("*.csv"):
        if path.name.startswith(("kernel_details", "op_statistic")):
            path.unlink()
    assert next(each.subject.id for each in advise(tmp_path).findings if each.rule == "CLUS010") == "1"
