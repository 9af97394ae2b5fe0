"""Folders that name no rank: ranks run side by side, recordings of one device one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.engine.concluding.evidence import waiting_for
from advisor.facts.registry import catalogue
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
        return " ".join(entry.setting for entry in waiting_for(waits, catalogue(), (), framework))

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
