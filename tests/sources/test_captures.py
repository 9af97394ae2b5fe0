"""Folders that name no rank: ranks run side by side, recordings of one device one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.engine.concluding.evidence import waiting_for
from advisor.facts.registry import catalogue
from advisor.knowledge.writers import written_by
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.discover import load_profile
from advisor.sources.streams.kernels import load_kernels

HEADING = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)"


def _export(folder: Path, start_us: int, device: int = 0, counters: str = "", kernels: int = 12) -> Path:
    """An export of msprof: kernels of 100 us, one every 102 us, and beside them the shares of a counter."""
    output = folder / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    heading = HEADING + (f",{counters}" if counters else "")
    rows = [
        f"{device},MatMul_{i},MatMulV2,AI_CORE,{start_us + 102 * i}.000\t,100,2" + (",0.9" if counters else "")
        for i in range(kernels)
    ]
    (output / "op_summary_20260511093035.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    return folder


def _names(folder: Path) -> list[str]:
    return [rank.root.name for rank in load_profile([folder]).ranks]


def test_a_folder_that_gathers_recordings_is_none_itself(tmp_path: Path) -> None:
    """PROF_GROUP with a PROF_* for each group of counters holds recordings; its own name makes it no unparsed one."""
    _export(tmp_path / "PROF_GROUP_1/PROF_Memory/PROF_000001_A", 1000)
    (rank,) = load_profile([tmp_path]).ranks
    assert rank.root.name == "PROF_000001_A" and rank.has("kernels") and not rank.unparsed


def test_recordings_of_one_device_are_no_ranks(tmp_path: Path) -> None:
    """Three runs of msprof on one card are one device three times: the newest is judged, the others are named."""
    for number, start in enumerate((5_000_000, 1_000_000, 9_000_000)):
        _export(tmp_path / f"PROF_00000{number}_A", start)
    profile = load_profile([tmp_path])
    assert [rank.root.name for rank in profile.ranks] == ["PROF_000002_A"]
    (told,) = [problem.problem for rank in profile.ranks for problem in rank.problems]
    assert "one of 3 recordings" in told and "PROF_000000_A" in told and "PROF_000001_A" in told


def test_the_recording_with_counters_of_the_pipes_is_judged(tmp_path: Path) -> None:
    """msprof records one group of counters a run: the run that tells what limits a kernel outweighs a newer one."""
    _export(tmp_path / "PROF_000001_A", 1_000_000, counters="aic_mac_ratio")
    _export(tmp_path / "PROF_000002_A", 9_000_000)
    assert _names(tmp_path) == ["PROF_000001_A"]


def test_what_one_process_recorded_is_one_rank(tmp_path: Path) -> None:
    """A schedule that repeats leaves a folder each time; the process in their names is the same, and so is the rank."""
    for stamp, free in (("20260101000000000", 100), ("20260101000100000", 110)):
        output = tmp_path / f"host_77_{stamp}_ascend_pt/ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "step_trace_time.csv").write_text(
            f"Step,Computing,Communication(Not Overlapped),Free\n1,900,0,{free}\n2,900,0,100\n", encoding="utf-8"
        )
    assert _names(tmp_path) == ["host_77_20260101000100000_ascend_pt"]


def test_side_by_side_on_devices_of_one_number_are_two_ranks(tmp_path: Path) -> None:
    """Device 0 of two hosts at the same time: kernels that overlap in time are of two devices."""
    _export(tmp_path / "PROF_000001_A", 1_000_000)
    _export(tmp_path / "PROF_000002_B", 1_000_300)
    assert len(_names(tmp_path)) == 2


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=5, unique=True), st.data())
def test_one_after_the_other_never_adds_a_rank(tmp_path_factory, seconds: list[int], data: st.DataObject) -> None:
    """However many recordings a device has and in whatever order they lie, it is one rank and no cluster is judged."""
    folder = tmp_path_factory.mktemp("runs")
    for number, second in enumerate(data.draw(st.permutations(seconds))):
        _export(folder / f"PROF_00000{number}_A", 1_000_000 * (second + 1), device=3)
    (rank,) = load_profile([folder]).ranks
    table = (rank.root / "mindstudio_profiler_output" / "op_summary_20260511093035.csv").read_text(encoding="utf-8")
    assert rank.rank == 0 and f"{1_000_000 * (max(seconds) + 1)}.000" in table


def test_launching_each_kernel_once_is_told_as_set_up(tmp_path: Path) -> None:
    """Milliseconds before every first launch are compilation and loading: no idle device is accused of them."""
    output = tmp_path / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows = [f"0,Op{i},Op{i},AI_CORE,{1_000_000 + 9000 * i}.000\t,{20 + i},0" for i in range(4)]
    (output / "op_summary_20260511093035.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(config=load_config(None)))
    facts = {fact.name: fact.value for fact in report.facts}
    assert facts["recording.is_set_up"] is True and report.summary.direction == "undetermined"
    assert not [finding for finding in report.findings if finding.direction.value == "scheduling"]
    assert "after a warm-up" in report.summary.headline.en


def test_no_file_of_another_framework_is_asked_for() -> None:
    """A recording of torch_npu, or of nobody knows what, is not told to use mindspore.dataset."""
    waits = [("DATA010", ["data.wait_share"])]

    def asked(framework: str) -> str:
        return " ".join(entry.setting for entry in waiting_for(waits, catalogue(), (), written_by("files", framework)))

    assert "mindspore.dataset" in asked("mindspore") and "mindspore.dataset" not in asked("unknown")
    assert "mindspore" not in asked("pytorch")


def _table(path: Path, start_us: int, kernels: int = 6) -> None:
    rows = [f"MatMul_{i},MatMulV2,AI_CORE,{start_us + 102 * i}.000\t,100" for i in range(kernels)]
    path.write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us)\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )


def test_files_with_different_prefixes_are_different_recordings(tmp_path: Path) -> None:
    """before_kernel_details.csv beside after_kernel_details.csv: their kernels never add up to one recording."""
    for number, name in enumerate(("before", "after")):
        _table(tmp_path / f"{name}_kernel_details.csv", 1_000_000 * (number + 1))
    (rank,) = load_profile([tmp_path]).ranks
    assert [path.name for path in rank.tables["kernels"].paths] == ["after_kernel_details.csv"]
    assert "before_kernel_details.csv" in rank.problems[0].problem


def test_files_with_ranks_for_prefixes_are_ranks(tmp_path: Path) -> None:
    """rank0_kernel_details.csv and rank_1_kernel_details.csv ran side by side, each as the rank that it names."""
    _table(tmp_path / "rank0_kernel_details.csv", 1_000_000)
    _table(tmp_path / "rank_1_kernel_details.csv", 1_000_010)
    assert [(rank.rank, rank.rank_known) for rank in load_profile([tmp_path]).ranks] == [(0, True), (1, True)]


@pytest.mark.parametrize("name", ["{kind}_{number}{end}", "{kind}-rank{number}{end}", "{number}_{kind}{end}"])
def test_files_of_all_kinds_that_a_number_tells_apart_are_ranks(tmp_path: Path, name: str) -> None:
    """Two hosts' files in one folder: ranks 3 and 11 both ran on device 3. Each keeps its own kernels and its own step
    table; nothing is added up and nothing left out."""
    for number in (3, 11):
        kernels = tmp_path / name.format(kind="kernel_details", number=number, end=".csv")
        rows = [f"1,3,mm,MatMulV2,AI_CORE,{1_000_000 + number + 102 * i}.000\t,{number}" for i in range(6)]
        heading = "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
        kernels.write_text("\n".join((heading, *rows, "")), encoding="utf-8")
        steps = tmp_path / name.format(kind="step_trace_time", number=number, end=".csv")
        steps.write_text(f"Step,Computing,Communication(Not Overlapped),Free\n1,{number},0,100\n", encoding="utf-8")
    profile = load_profile([tmp_path])
    assert [(rank.rank, rank.rank_known) for rank in profile.ranks] == [(3, True), (11, True)]
    for rank in profile.ranks:
        kernels_of, steps_of = load_kernels(rank), rank.read("steps")
        assert kernels_of is not None and kernels_of.duration.tolist() == [rank.rank] * 6
        assert steps_of is not None and steps_of["computing_us"].tolist() == [rank.rank]
        assert rank.problems == []


def test_files_that_a_browser_numbered_keep_their_order_and_belong_together(tmp_path: Path) -> None:
    """kernel_details.csv and kernel_details (1).csv … (10).csv ran side by side; the bare name was the first."""
    for number in range(11):
        _table(
            tmp_path / f"kernel_details{f' ({number})' if number else ''}.csv", 1_000_000 + number, kernels=number + 2
        )
    kernels = [load_kernels(rank) for rank in load_profile([tmp_path]).ranks]
    assert [len(found) for found in kernels if found is not None] == list(range(2, 13))


def test_parts_of_one_table_are_one_recording(tmp_path: Path) -> None:
    """A long table in two files: the second goes on in time and in steps where the first ends."""
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    for number, steps in enumerate(((1, 2), (2, 3))):
        rows = [f"{step},mm,MatMulV2,AI_CORE,{1_000_000 + 1000 * number + 100 * step}.000\t,50" for step in steps]
        path = tmp_path / f"kernel_details_{number}.csv"
        path.write_text("\n".join((heading, *rows, "")), encoding="utf-8")
    (rank,) = load_profile([tmp_path]).ranks
    found = load_kernels(rank)
    assert found is not None and len(found) == 4


def test_what_is_nobodys_among_several_ranks_is_told(tmp_path: Path) -> None:
    """One operator statistic beside the kernels of two ranks: whose it is nobody knows, and the user learns of it."""
    _table(tmp_path / "kernel_details_0.csv", 1_000_000)
    _table(tmp_path / "kernel_details_1.csv", 1_000_010)
    (tmp_path / "op_statistic.csv").write_text("OP Type,Core Type,Count,Total Time(us)\nMatMul,AI_CORE,1,100\n")
    profile = load_profile([tmp_path])
    told = [problem.file for rank in profile.ranks for problem in rank.problems if "none of the 2" in problem.problem]
    assert told == ["op_statistic.csv"]


def test_one_prefix_or_none_is_one_recording(tmp_path: Path) -> None:
    """A prefix that users gave to one of the files takes no file away from the recording."""
    _table(tmp_path / "run_kernel_details.csv", 1_000_000)
    (tmp_path / "step_trace_time.csv").write_text("Step,Computing,Communication(Not Overlapped),Free\n1,900,0,100\n")
    (rank,) = load_profile([tmp_path]).ranks
    assert {"kernels", "steps"} <= set(rank.tables)


def test_step_tables_of_one_device_in_several_folders_are_no_ranks(tmp_path: Path) -> None:
    """batch_1, batch_8, … each with a step table that names the same device: runs of an experiment; one is judged."""
    heading = "Device_id,Step,Computing,Communication(Not Overlapped),Free\n"
    for number, busy in enumerate((900, 4000, 9000)):
        folder = tmp_path / f"batch_{number}"
        folder.mkdir()
        (folder / "step_trace_time.csv").write_text(f"{heading}7,,{busy},0,100\n", encoding="utf-8")
    (rank,) = load_profile([tmp_path]).ranks
    assert "one of 3 recordings" in rank.problems[0].problem


def _collected(folder: Path, second: int, rank: int | None = None, host: str = "h") -> Path:
    """A rank's folder whose host ended the collection at this second."""
    root = _export(folder.with_name(f"{host}_{folder.name}_20260101000000000_ascend_pt"), second * 1_000_000)
    (root / "mindstudio_profiler_output").rename(root / "ASCEND_PROFILER_OUTPUT")
    (root / "ASCEND_PROFILER_OUTPUT/op_summary_20260511093035.csv").rename(
        root / "ASCEND_PROFILER_OUTPUT/kernel_details.csv"
    )
    name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    ended = {"end_info": {"collectionTimeEnd": second * 1_000_000_000}}
    (root / name).write_text(json.dumps(ended), encoding="utf-8")
    return root


def test_ranks_recorded_far_apart_are_of_two_runs(tmp_path: Path) -> None:
    """A run of last year beside today's is no second rank of it: today's is judged, the other is named."""
    today = _collected(tmp_path / "1", 1_780_000_000, None)
    old = _collected(tmp_path / "2", 1_730_000_000, 0)
    profile = load_profile([tmp_path])
    assert [rank.root for rank in profile.ranks] == [today]
    (told,) = [problem for problem in profile.problems if "another run" in problem.problem]
    assert told.file == old.name


def test_of_two_runs_the_one_with_more_ranks_is_judged(tmp_path: Path) -> None:
    """Two ranks of one job tell more than a newer rank of another, and no job is made of both."""
    for rank in (0, 1):
        _collected(tmp_path / f"1{rank}", 1_780_000_000 + rank, rank)
    _collected(tmp_path / "20", 1_780_003_600, 0)
    profile = load_profile([tmp_path])
    assert [rank.root.name.split("_")[1] for rank in profile.ranks] == ["10", "11"]


def test_captures_of_the_same_ranks_again_are_one_job(tmp_path: Path) -> None:
    """A loop that is profiled every hour leaves captures of all its ranks: of each the newest counts."""
    for hour in (0, 1):
        for rank in (0, 1):
            _collected(tmp_path / f"{hour}{rank}", 1_780_000_000 + 3600 * hour, rank)
    profile = load_profile([tmp_path])
    assert len(profile.ranks) == 2
    assert not any("another run" in problem.problem for problem in profile.problems)


@pytest.mark.parametrize(("apart_s", "ranks"), [(3600, 2), (100_000, 1)])
def test_the_clock_of_another_host_may_be_hours_off(tmp_path: Path, apart_s: int, ranks: int) -> None:
    """One host in another time zone is of the same job; days apart no clock is set."""
    _collected(tmp_path / "1", 1_780_000_000, 0, "one")
    _collected(tmp_path / "2", 1_780_000_000 + apart_s, 1, "two")
    assert len(load_profile([tmp_path]).ranks) == ranks


def test_a_long_recording_ends_when_it_ends(tmp_path: Path) -> None:
    """Kernels of two ranks that overlap in time are of one run, however far the first and the last lie apart."""
    for rank, start in ((0, 0), (1, 1200)):
        root = _collected(tmp_path / str(rank), 1_780_000_000, rank)
        (root / f"profiler_info_{rank}.json").write_text("{}", encoding="utf-8")
        rows = [f"0,M_{i},MatMulV2,AI_CORE,{(start + 300 * i) * 1e6:.3f},100,2" for i in range(8)]
        output = root / "ASCEND_PROFILER_OUTPUT/kernel_details.csv"
        output.write_text("\n".join([HEADING.replace("Task Start", "Start"), *rows]) + "\n", encoding="utf-8")
    assert len(load_profile([tmp_path]).ranks) == 2
