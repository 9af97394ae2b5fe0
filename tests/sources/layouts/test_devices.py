"""One export of several devices: each is a rank, none takes another one's kernels for its own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.discover import load_profile
from advisor.sources.layouts.devices import devices_of
from advisor.sources.streams.kernels import load_kernels
from advisor.sources.streams.rank_trace import device_lanes, load_trace

HEADING = (
    "Device_id,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)"
)


def _export(folder: Path, devices: tuple[int, ...], kernels: int = 40) -> Path:
    """An op_summary and an op_statistic in which the devices run side by side, 100 us a kernel and 2 us between."""
    output = folder / "PROF_000001_20260511093028_ABCDEF" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows = [
        f"{device},{i},2,MatMul_{i % 4},MatMulV{i % 4},AI_CORE,{1778463028000000 + 102 * i + device}.000\t,100,2"
        for device in devices
        for i in range(kernels)
    ]
    (output / "op_summary_20260511093035.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    types = [f"{device},MatMulV{kind},AI_CORE,{kernels // 4},{kernels * 25}" for device in devices for kind in range(4)]
    table = "\n".join(["Device_id,OP Type,Core Type,Count,Total Time(us)", *types]) + "\n"
    (output / "op_statistic_20260511093035.csv").write_text(table, encoding="utf-8")
    return folder


def test_every_device_of_one_export_is_a_rank_with_its_own_kernels(tmp_path: Path) -> None:
    """Devices are told apart by their column, in the kernels and in the statistic."""
    ranks = load_profile([_export(tmp_path, (0, 1, 10))]).ranks
    assert [rank.device for rank in ranks] == ["0", "1", "10"]
    for rank in ranks:
        kernels, types = load_kernels(rank), rank.read("operator_types", ("type", "total_us"))
        assert kernels is not None and len(kernels) == 40
        assert types is not None and list(types.columns) == ["type", "total_us"] and types["total_us"].sum() == 4000


def _steps(folder: Path, devices: tuple[str, ...], rest: str = "") -> Path:
    """A step table alone: three steps of each device, of 70 ms and 10 ms more for each device."""
    heading = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"
    rows = [
        f"{device},{step},{70_000 + 10_000 * i},10000,0,10000,2000"
        for i, device in enumerate(devices)
        for step in (5, 6, 7)
    ]
    (folder / "step_trace_time.csv").write_text("\n".join([heading, *rows]) + "\n" + rest, encoding="utf-8")
    return folder


def test_every_device_of_one_step_table_is_a_rank(tmp_path: Path) -> None:
    """Four devices with the same steps are no damaged rows of one: each keeps its own times."""
    profile = load_profile([_steps(tmp_path, ("0", "1", "2", "3"))])
    told = [rank.read("steps") for rank in profile.ranks]
    assert [list(frame["computing_us"]) for frame in told] == [[us] * 3 for us in (70e3, 80e3, 90e3, 100e3)]
    assert not any(rank.problems for rank in profile.ranks)


def test_a_step_table_of_no_device_is_one_rank(tmp_path: Path) -> None:
    """Newer writers have the column and leave it empty."""
    (rank,) = load_profile([_steps(tmp_path, ("",))]).ranks
    assert len(rank.read("steps")) == 3 and "device" not in rank.tables["steps"].options


def test_sums_below_the_steps_are_no_step(tmp_path: Path) -> None:
    """A spreadsheet's average and total stand below its rows, under whatever column."""
    folder = _steps(tmp_path, ("0",), "Average,,70000,10000,0,10000,2000\nTotal,,210000,30000,0,30000,6000\n")
    (rank,) = load_profile([folder]).ranks
    assert list(rank.read("steps")["step"]) == ["5", "6", "7"]
    assert any("2 rows name no step" in problem.problem for problem in rank.problems)


def test_one_device_stays_one_rank(tmp_path: Path) -> None:
    """Without a second device nothing is split and nothing is filtered."""
    (rank,) = load_profile([_export(tmp_path, (3,))]).ranks
    assert "device" not in rank.tables["kernels"].options


def test_one_damaged_number_makes_no_second_device(tmp_path: Path) -> None:
    """A number that no machine has cards for is damage in one cell; the kernels stay one rank's."""
    table = next(_export(tmp_path, (0,)).rglob("op_summary_*.csv"))
    table.write_text(table.read_text().replace("\n0,7,", "\n99999999999999999999999,7,"), encoding="utf-8")
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and len(kernels) == 40


def test_devices_side_by_side_hide_no_idle_time_and_contradict_nothing(tmp_path: Path) -> None:
    """Kernels of four devices are not one device's: no share above 100 %, and each one's gaps are seen."""
    report = advise([_export(tmp_path, (0, 1, 2, 3))], load_rules(config=load_config(None)))
    assert not [problem for problem in report.problems if "100 %" in problem.problem]
    idle = [fact.value for fact in report.facts if fact.name == "step.idle_share"]
    assert idle and all(0.015 < float(share) < 0.025 for share in idle)


def test_a_device_twice_as_slow_as_the_others_is_found_and_the_file_is_intact(tmp_path: Path) -> None:
    """Four devices run the same kernels, one of them takes twice as long: that is the finding, and no share of it lies
    above 100 % because the middle device is done earlier."""
    output = tmp_path / "PROF_000001_20260511093028_ABCDEF" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows = [
        f'{device},{i},2,MatMul_0,MatMulV2,AI_CORE,{1778463028000000 + (us + 2) * i}.000\t,{us},2,"64,64;64,64"'
        for device, us in enumerate((200, 200, 200, 400))
        for i in range(60)
    ]
    table = "\n".join([f"{HEADING},Input Shapes", *rows]) + "\n"
    (output / "op_summary_20260511093035.csv").write_text(table, encoding="utf-8")
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert not [problem for problem in report.problems if "100 %" in problem.problem]
    slow = [finding.subject.ranks for finding in report.findings if finding.verdict == "slow-compute-rank"]
    assert slow == [(3,)]


def test_devices_deep_in_a_long_file_are_found(tmp_path: Path) -> None:
    """Exports are ordered by device: the others stand far behind the first."""
    folder = _export(tmp_path, (0, 1, 2, 3, 4, 5, 6, 7), kernels=4000)
    assert len(devices_of(folder.rglob("op_summary*.csv"))) == 8


@pytest.mark.parametrize("plain", [True, False])
def test_a_database_of_several_devices_is_several_ranks(tmp_path: Path, plain: bool) -> None:
    """Tasks and collectives are told apart by device; sums over all devices and a timeline of them are nobody's."""
    export = tmp_path / "PROF_000001_20260511093028_ABCDEF"
    export.mkdir()
    with closing(sqlite3.connect(export / "msprof_20260511093035.db")) as database:
        database.executescript(
            "CREATE TABLE STRING_IDS(id INTEGER, value TEXT);"
            "INSERT INTO STRING_IDS VALUES (1,'MatMul'),(2,'AI_CORE'),(3,'hcom_allReduce__586_0_1');"
            "CREATE TABLE NPU_INFO(id INTEGER, name TEXT); INSERT INTO NPU_INFO VALUES (0,'A'),(1,'A');"
            f"CREATE TABLE TASK(startNs {'INTEGER' if plain else ''}, endNs INTEGER, deviceId INTEGER,"
            " globalTaskId INTEGER);"
            "CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER, taskType INTEGER, opType INTEGER);"
            "CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, deviceId INTEGER);"
            "INSERT INTO COMMUNICATION_OP VALUES (3,9000000,9500000,1);"
        )
        for device in (0, 1):
            for i in range(40):
                start, task = 1_000_000 + 200_000 * i, 100 * device + i
                length = 50_000 * (1 + device)
                database.execute("INSERT INTO TASK VALUES (?,?,?,?)", (start, start + length, device, task))
                database.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (1,?,2,1)", (task,))
        if not plain:
            database.execute("INSERT INTO TASK VALUES ('x', 1, 0, 999)")
        database.commit()
    profile = load_profile([tmp_path])
    kernels = {rank.device: load_kernels(rank) for rank in profile.ranks}
    assert {device: len(own) for device, own in kernels.items() if own is not None} == {"0": 40, "1": 41}
    assert [rank.device for rank in profile.ranks if set(rank.tables) != {"kernels"}] == []
    assert [load_trace(rank) for rank in profile.ranks] == [None, None]
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert any("2 devices" in problem.problem for problem in report.problems)


def _timeline(folder: Path, busy: dict[int, float]) -> Path:
    """One timeline of an export: each device computes for its share of 100 ms, side by side with the others."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 1055, "args": {"name": "CANN"}}]
    for device, share in busy.items():
        pid = 1056 + 32 * 4 + device
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "Ascend Hardware"}})
        events += [
            {"ph": "X", "name": f"MatMulV{i % 4}", "pid": pid, "tid": 1, "ts": f"{1_000_000 + 1000 * i}.000",
             "dur": 1000 * share, "args": {"Task Type": "AI_CORE"}}
            for i in range(100)
        ]  # fmt: skip
    (folder / "msprof_20260511093035.json").write_text(json.dumps(events), encoding="utf-8")
    return folder


def test_every_device_of_one_timeline_is_a_rank_with_its_own_lanes(tmp_path: Path) -> None:
    """Lanes of four devices in one file: none hides the idle time of another, and the split is told."""
    busy = {0: 0.2, 1: 0.4, 2: 0.6, 3: 0.8}
    profile = load_profile([_timeline(tmp_path, busy)])
    assert [rank.device for rank in profile.ranks] == ["0", "1", "2", "3"]
    for rank in profile.ranks:
        lanes = device_lanes(rank)
        assert lanes is not None
        assert (lanes[0][1] - lanes[0][0]).sum() / 1e6 == pytest.approx(100 * busy[int(rank.device or 0)])
    assert any("4 devices side by side" in problem.problem for problem in profile.ranks[0].problems)


def test_one_device_in_a_timeline_stays_one_rank(tmp_path: Path) -> None:
    """Processes of the host carry all five bits, and are no device."""
    profile = load_profile([_timeline(tmp_path, {3: 0.5})])
    assert len(profile.ranks) == 1 and "devices" not in str(profile.ranks[0].problems)
