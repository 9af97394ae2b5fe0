"""The statistic of host calls: which of them are of what was recorded, and what the host is mostly in."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

ORIGIN_US = 1_700_000_000_000_000
HEAD = ("Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)")
CALLS = ("Level", "API Name", "Time(us)", "Count", "Avg(us)")


def _recorded(folder: Path, calls: dict[str, float], gap: float = 400.0) -> Path:
    """Thirty rounds of three kernels, each 100 us long, and what msprof counted of the host: interface -> us."""
    kinds = ["MatMulV2", "Softmax", "Add"] * 30
    rows = [
        (kind, kind, "AI_CORE", f"{ORIGIN_US + n * (100 + gap):.3f}", 100.0, gap if n else 0)
        for n, kind in enumerate(kinds)
    ]
    tables: dict[str, list[tuple[object, ...]]] = {
        "op_summary_20260101000000.csv": [HEAD, *rows],
        "api_statistic_20260101000000.csv": [
            CALLS, *(("acl", name, us, 10, us / 10) for name, us in calls.items()), ("node", "launch", 900.0, 90, 10.0),
        ],
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(table)
    return folder


def test_without_a_timeline_the_statistic_tells_what_the_host_is_mostly_in(tmp_path: Path) -> None:
    """Set-up and what took longer than all that was recorded are none of it."""
    calls = {"aclrtSetDevice": 30000.0, "aclInit": 31000.0, "aclrtMemcpy": 9e9, "aclrtSynchronizeStream": 28000.0}
    report = advise([_recorded(tmp_path, calls)], load_rules())
    (idle,) = [each for each in report.findings if each.verdict == "device-idle-gaps"]
    assert "most time in aclrtSynchronizeStream: 28\xa0ms" in idle.message.en


def test_calls_longer_than_the_recording_are_no_share_of_it(tmp_path: Path) -> None:
    """A process is counted from its start: nobody is told that the host launched for 46 times the recording."""
    folder = _recorded(tmp_path, {"aclrtLaunchKernel": 46 * 45000.0, "aclrtSynchronizeStream": 20000.0})
    facts = measure([folder], ["host_api.launch_share", "host_api.synchronize_share"], Options(jobs=1)).facts
    assert facts.value("host_api.launch_share", RUN) is None
    assert facts.number("host_api.synchronize_share", RUN) is not None
    assert not advise([folder], load_rules()).problems


def test_the_step_table_alone_tells_how_much_was_recorded(tmp_path: Path) -> None:
    """Ten steps of 1.7 ms: a graph that was loaded before them was launched 12 000 times, not in them."""
    steps = [f"{n},1200,0,0,0,500,1700" for n in range(10)]
    heading = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"
    (tmp_path / "step_trace_time.csv").write_text("\n".join([heading, *steps]) + "\n")
    calls = [
        "model,ModelLoad,2273567,16,142097",
        "node,launch,147043,12088,12",
        "acl,aclrtSynchronizeEvent,6000,20,300",
    ]
    (tmp_path / "api_statistic.csv").write_text("\n".join([",".join(CALLS), *calls]) + "\n")
    facts = measure([tmp_path], ["host_api.launch_share", "host_api.longest_us"], Options(jobs=1)).facts
    assert facts.value("host_api.launch_share", RUN) is None
    assert facts.value("host_api.longest_name", RUN) == "aclrtSynchronizeEvent"
    assert facts.number("host_api.longest_us", RUN) == 600.0


def test_launches_that_loading_a_graph_makes_are_none_of_the_recording(tmp_path: Path) -> None:
    """A graph's kernels are launched once, as it is loaded; launches one by one are told by their own interface."""
    calls = {"ModelLoad": 52000.0, "aclrtLaunchKernelWithHostArgs": 139.0, "aclrtSynchronizeStream": 400.0}
    folder = _recorded(tmp_path / "graph", calls)
    facts = measure([folder], ["host_api.launch_us", "host_api.longest_name"], Options(jobs=1)).facts
    assert facts.value("host_api.longest_name", RUN) == "aclrtSynchronizeStream"
    assert facts.value("host_api.launch_name", RUN) == "aclrtLaunchKernelWithHostArgs"
    calls.pop("ModelLoad")
    facts = measure([_recorded(tmp_path / "eager", calls)], ["host_api.longest_name"], Options(jobs=1)).facts
    assert facts.value("host_api.longest_name", RUN) == "launch"


def test_the_analysers_export_has_no_levels(tmp_path):
    """It names each interface once and writes `Time` into its headings: its calls count, and nobody is told off."""
    rows = ["API Name,Count,Total Time(us),Avg Time(us),Min Time(us),Max Time(us)"]
    rows += ["launch,180,1900.1,10.5,5,60", "aclrtSynchronizeStream,6,21000.5,3500,10,9000"]
    (tmp_path / "api_statistic.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "op_statistic.csv").write_text(
        "OP Type,Core Type,Count,Total Time(us)\nMatMulV2,AI_CORE,180,9000\n", encoding="utf-8"
    )
    report = advise([tmp_path], load_rules(), Options())
    values = {f.name: f.value for f in report.facts if f.subject.kind == "run"}
    assert values["host_api.synchronize_us"] == 21000.5 and values["host_api.launch_count"] == 180
    assert not [p for p in report.problems if "Level" in p.problem]


def test_a_list_of_the_largest_types_does_not_refute_the_launches(tmp_path: Path) -> None:
    """It counts its own calls alone, which are far fewer than were launched; its shares tell how many there may be."""
    steps = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
    steps += [f"0,{n},4000,0,0,0,16000" for n in range(10)]
    (tmp_path / "step_trace_time.csv").write_text("\n".join(steps) + "\n")
    (tmp_path / "api_statistic.csv").write_text(",".join(CALLS) + "\nnode,launch,50000,3500,14\n")
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Ratio(%)\n"
    (tmp_path / "op_statistic.csv").write_text(heading + "0,MatMulV2,AI_CORE,1000,16000,40\n")
    facts = measure([tmp_path], ["host_api.launch_count"], Options(jobs=1)).facts
    assert facts.number("host_api.launch_count", RUN) == 350
    (tmp_path / "op_statistic.csv").write_text(heading + "0,MatMulV2,AI_CORE,1000,16000,100\n")
    assert (
        measure([tmp_path], ["host_api.launch_count"], Options(jobs=1)).facts.number("host_api.launch_count", RUN)
        is None
    )


def test_calls_that_a_damaged_table_does_not_count_end_nothing(tmp_path: Path) -> None:
    """A column of counts that holds nothing but 0: the kernels are judged all the same, and no problem is ours."""
    folder = _recorded(tmp_path, {"aclrtSynchronizeStream": 400.0})
    table = folder / "api_statistic_20260101000000.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    table.write_text(
        "\n".join(",".join([*row[:3], "0", *row[4:]]) if n else ",".join(row) for n, row in enumerate(rows))
    )
    found = measure([folder], None, Options(jobs=1))
    assert not [each for each in found.problems if "could not be measured" in each.problem]


@pytest.mark.parametrize(("waits", "told"), [(4, True), (64, False)])
def test_graphs_executed_between_two_waits_are_pieces_of_one(tmp_path: Path, waits: int, told: bool) -> None:
    """Whoever serves waits once for each token: 72 executions in 64 waits are whole steps, in 4 waits their pieces."""
    table = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"
    (tmp_path / "step_trace_time.csv").write_text(f"{table}\n0,,40000,0,0,0,60000,100000\n")
    calls = [
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
        "host,acl,aclmdlRIExecuteAsync,3600,72,50,40,90,1",
        f"host,acl,aclrtSynchronizeStream,8000,{waits},{8000 / waits},90,3000,1",
        "host,node,launch,6000,400,15,7,90,1",
    ]
    (tmp_path / "api_statistic.csv").write_text("\n".join(calls) + "\n")
    found = [each for each in advise([tmp_path], load_rules()).findings if each.rule == "SCHED091"]
    assert bool(found) == told
    if told:
        assert "executes 18 graphs (aclmdlRIExecuteAsync)" in found[0].message.en
        assert found[0].saving is not None and found[0].saving.us == 60000.0


def _compiling(folder: Path, rounds: int) -> Path:
    """Twenty kernels, each behind the call that compiles it, then all of them again and again."""
    names = [f"Custom{n}" for n in range(20)]
    at, rows = float(ORIGIN_US), []
    for name in names:
        at += 90000.0
        rows.append(f"{name},{name},AI_VECTOR_CORE,{at:.3f},300,0")
        at += 300.0
    for name in names * (rounds - 1):
        rows.append(f"{name},{name},AI_VECTOR_CORE,{at:.3f},300,0")
        at += 310.0
    length = at - ORIGIN_US
    busy = 300.0 * len(rows)
    tables = {
        "kernel_details.csv": ["Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)", *rows],
        "step_trace_time.csv": [
            "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage",
            f",{busy},0,0,0,{length - busy},{length}",
        ],
        "api_statistic.csv": [
            ",".join(CALLS),
            f"acl,aclopCompileAndExecute,{20 * 89000},20,89000",
            f"node,launch,{10 * len(rows)},{len(rows)},10",
        ],
    }  # fmt: skip
    folder.mkdir(parents=True)
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_what_compiles_before_a_first_launch_is_set_up(tmp_path: Path) -> None:
    """Nothing repeats, and most of the time lies before first launches: no cause, no gain, no direction. Where the same
    kernels go on, their rounds are judged and the time before them is not."""
    report = advise([_compiling(tmp_path / "once", 1)], load_rules())
    told = {fact.name: fact.value for fact in report.facts if fact.subject == RUN}
    assert told["recording.is_set_up"] is True and "host_api.single_op_us" not in told
    assert not [f for f in report.findings if f.direction.value == "scheduling"]
    assert report.summary.direction == "undetermined" and "set-up" in report.summary.headline.en
    again = advise([_compiling(tmp_path / "again", 10)], load_rules())
    assert not [fact for fact in again.facts if fact.name == "recording.is_set_up"]
    assert not [f for f in again.findings if f.verdict == "dynamic-shape-recompilation"]
