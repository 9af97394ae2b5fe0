"""Recognising folders of older MindSpore: which devices, which tables, which parallel layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.sources.layouts.legacy import find_host_operators, find_ranks, is_known

STEPS = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        stem, _, ending = name.rpartition("__")
        (folder / f"{stem}.{ending}").write_text(text)
    return folder


def test_devices_of_one_folder_become_ranks_in_order(tmp_path: Path) -> None:
    """Files of devices 10 and 2 in one folder are two ranks; that 0 and 1 are missing is said."""
    write(tmp_path, step_trace_raw_10_detail_time__csv=STEPS, step_trace_raw_2_detail_time__csv=STEPS)
    ranks = find_ranks(tmp_path, tmp_path)
    assert [rank.rank for rank in ranks] == [2, 10]
    assert all(rank.layout == "mindspore_legacy" and rank.framework == "mindspore" for rank in ranks)
    assert "2, 10" in ranks[0].problems[0].problem


@pytest.mark.parametrize("name", ["FRAMEWORK", "ASCEND_PROFILER_OUTPUT", "host_1_ascend_ms"])
def test_folders_of_newer_results_are_left_to_their_layout(tmp_path: Path, name: str) -> None:
    """Raw data pipeline files exist in today's results too and must not become a second profile."""
    folder = tmp_path / name
    folder.mkdir()
    write(folder, pipeline_profiling_0__json="{}", step_trace_raw_0_detail_time__csv=STEPS)
    assert find_ranks(folder, tmp_path) == []


def test_shared_files_alone_do_not_make_a_legacy_folder(tmp_path: Path) -> None:
    """profiler_info and host operator files belong to other layouts as well."""
    write(tmp_path, profiler_info_0__json="{}", cpu_op_detail_info_0__csv="op_type\n")
    assert find_ranks(tmp_path, tmp_path) == []


def test_name_of_the_cluster_file_tells_mode_stages_and_members(tmp_path: Path) -> None:
    """Stage members follow from counts: MindSpore hands ranks to stages in equal shares, in order."""
    write(tmp_path, **{"ascend_cluster_analyse_pipeline-parallel_2_8_5__csv": "computation_time\n1\n2\n"})
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert rank.info["legacy_mode"] == "pipeline-parallel"
    assert (rank.info["stage_num"], rank.info["rank_size"], rank.info["world_size"]) == (2, 8, 8)
    assert rank.info["stages"] == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert rank.info["stage"] == 1


def test_strategy_file_tells_the_true_stage_members(tmp_path: Path) -> None:
    """A strategy file's stage devices win over counting; its graph, however large or cut, is not needed."""
    config = {
        "rankId": 2,
        "stageId": 1,
        "parallelType": "auto_parallel",
        "stageDevices": [{"dim": [{"size": "0"}, {"size": "2"}]}, {"dim": [{"size": "1"}, {"size": "3"}]}],
    }
    text = '{"config" : ' + json.dumps(config) + ', "graph": {"node": [{"name'
    write(tmp_path, parallel_strategy_2__json=text, profiler_info_2__json='{"stage_num": 2, "rank_size": 4}')
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert rank.info["stages"] == ((0, 2), (1, 3))
    assert rank.info["stage"] == 0
    assert rank.info["parallel_mode"] == "auto_parallel"


def test_settings_of_one_rank_hold_for_the_others(tmp_path: Path) -> None:
    """Often only rank 0's profiler_info is copied."""
    info = '{"rank_size": 2, "stage_num": 1, "context_mode": "pynative", "ms_version": "2.1.0"}'
    write(tmp_path, profiler_info_0__json=info, flops_0__txt="", flops_1__txt="")
    ranks = find_ranks(tmp_path, tmp_path)
    assert [rank.info["context_mode"] for rank in ranks] == ["pynative", "pynative"]
    assert ranks[1].info["versions"] == {"mindspore": "2.1.0"}


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"stage_num": "many", "rank_size": NaN}', '{"rank_size": '])
def test_damaged_settings_lose_only_themselves(tmp_path: Path, text: str) -> None:
    """A broken profiler_info must not cost the step trace beside it."""
    write(tmp_path, profiler_info_0__json=text, step_trace_raw_0_detail_time__csv=STEPS + "1,0,9,9,0,5,0,5,4\n")
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert "rank_size" not in rank.info
    assert rank.read("step_phases") is not None


def test_oldest_cluster_file_holds_phases_not_cluster_times(tmp_path: Path) -> None:
    """The first data-parallel files carry the step trace's own columns in ticks."""
    text = "iteration_interval, fp_and_bp, tail\n100, 200, 50\n300, 200, 50\n200, 200, 50\n"
    write(tmp_path, **{"ascend_cluster_analyse_data-parallel_1_2_0__csv": text})
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert not rank.has("cluster_phases")
    frame = rank.read("step_phases")
    assert frame is not None
    assert list(frame["interval_us"]) == [1.0, 3.0]
    assert list(frame["total_us"]) == [3.5, 5.5]
    assert rank.info["parallelism"].data == 2


def test_memory_summary_is_in_bytes(tmp_path: Path) -> None:
    """Sizes in the file are GiB."""
    write(tmp_path, memory_usage_summary_0__json='{"capacity": 32, "peak_mem": 8.5, "static_mem": "?"}')
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert rank.info["memory_usage"] == {"capacity_bytes": 32 * 2**30, "peak_bytes": 8.5 * 2**30}


def test_known_files_without_use_are_not_called_unknown() -> None:
    """A user should not be warned of files that belong here; a stray file is no such file."""
    assert is_known("ascend_timeline_summary_0.json")
    assert is_known("minddata_aicpu_3.txt")
    assert not is_known("notes.csv")


def test_host_operators_are_found_in_newer_folders_too(tmp_path: Path) -> None:
    """A CPU run's FRAMEWORK/ has its operators only in cpu_op_detail_info."""
    text = (
        "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),total_proportion,"
        "subgraph,pid\nHost,SGD,SGD-op3,Default/SGD-op3,25,0.5,0.02,0.9,Default,7\n"
    )
    write(tmp_path, cpu_op_detail_info_0__csv=text)
    from advisor.sources.readers import read_table

    problems: list[str] = []
    frame = read_table(find_host_operators(tmp_path, 0)["operators"], None, lambda f, p, *_: problems.append(p))
    assert frame is not None and not problems
    assert frame.loc[0, ["name", "type", "core", "count", "total_us"]].tolist() == [
        "Default/SGD-op3", "SGD", "HostCpu", 25.0, 500.0,
    ]  # fmt: skip
    assert find_host_operators(tmp_path, 1) == {}


@pytest.mark.parametrize("stages", [10**40, True, "0", {"dim": []}, [3], [{"dim": 7}], [{"dim": [{"size": []}]}]])
def test_stages_of_another_type_cost_the_stages_alone(tmp_path: Path, stages: object) -> None:
    """The ranks are there all the same."""
    config = json.dumps({"config": {"parallelType": "pipeline", "stageDevices": stages}})
    write(tmp_path, step_trace_raw_0_detail_time__csv=STEPS, parallel_strategy_0__json=config)
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert "stage_devices" not in rank.info and rank.info["parallel_mode"] == "pipeline"


@pytest.mark.parametrize("size", [1e18, 10**40])
def test_a_world_beyond_any_is_none(tmp_path: Path, size: float) -> None:
    """Its ranks would be counted up, one by one."""
    told = json.dumps({"rank_size": size, "stage_num": 1})
    write(tmp_path, step_trace_raw_0_detail_time__csv=STEPS, profiler_info_0__json=told)
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert "world_size" not in rank.info and any("no usable rank_size" in p.problem for p in rank.problems)


def test_the_timeline_of_a_gpu_gives_no_kernels_and_is_told(tmp_path: Path) -> None:
    """Shares, cores and settings of an NPU say nothing of another device's kernels."""
    events = [{"name": "Add-op1", "ph": "X", "tid": "17", "ts": 1.0, "dur": 5.0, "pid": 0}]
    folder = write(tmp_path, gpu_timeline_display_0__json=json.dumps(events))
    rank = find_ranks(folder, folder)[0]
    assert "kernels" not in rank.tables
    assert any("timeline of a GPU" in problem.problem for problem in rank.problems)
