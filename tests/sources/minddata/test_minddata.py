"""Readers of MindData's files: what a host's data loading left behind, in every form it is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.base import Rank
from advisor.sources.discover import load_profile
from advisor.sources.minddata.hostfiles import operation_type, to_known, to_number, to_numbers
from advisor.sources.minddata.minddata import UNTOLD, find_minddata

PIPELINE = {
    "sampling_interval": 10,
    "op_info": [
        {"op_id": 0, "op_type": "BatchOp", "num_workers": 2, "children": [1],
         "metrics": {"output_queue": {"length": 16, "size": [0, 4, 16]}}},
        {"op_id": 1, "op_type": "RepeatOp", "num_workers": 1, "children": [2], "metrics": None},
        {"op_id": 2, "op_type": "GeneratorOp", "num_workers": 4,
         "metrics": {"output_queue": {"length": 16, "size": [1]}}},
    ],
}  # fmt: skip


def rank_of(folder: Path, rank: int | None = None) -> Rank:
    return Rank(rank or 0, folder, find_minddata(folder, rank), base=folder)


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_file_named_by_another_rank_is_found_in_a_rank_folder(tmp_path: Path) -> None:
    """RANK_ID was not set, so the raw file carries 0 although the rank is 3: it is still the rank's own."""
    write(tmp_path, "FRAMEWORK/pipeline_profiling_0.json", PIPELINE)
    assert "pipeline_ops" in find_minddata(tmp_path, 3)


def test_in_a_flat_folder_of_several_ranks_only_the_exact_suffix_counts(tmp_path: Path) -> None:
    """Rank 10's step trace must not be judged with rank 1's pipeline."""
    write(tmp_path, "pipeline_profiling_1.json", PIPELINE)
    write(tmp_path, "pipeline_profiling_0.json", PIPELINE)
    assert find_minddata(tmp_path, 10) == {}
    assert find_minddata(tmp_path, 1)["pipeline_ops"].paths[0].name == "pipeline_profiling_1.json"


@pytest.mark.parametrize("workers", [10**18, -3, "many"])
def test_impossible_numbers_of_workers_are_told_and_not_used(tmp_path: Path, workers: object) -> None:
    """A proposal computed from 10^18 workers would be nonsense; the operation itself stays."""
    first, *rest = PIPELINE["op_info"]
    write(tmp_path, "pipeline_profiling_0.json", {**PIPELINE, "op_info": [{**first, "num_workers": workers}, *rest]})
    rank = rank_of(tmp_path, 0)
    frame = rank.read("pipeline_ops")
    assert frame is not None and frame["workers"].isna().tolist() == [True, False, False]
    assert any("no usable number of workers" in problem.problem for problem in rank.problems)


def test_raw_files_are_preferred_and_the_processed_one_stands_in(tmp_path: Path) -> None:
    """A raw file that is cut off is noted, and the table made of it is read instead."""
    write(tmp_path, "FRAMEWORK/pipeline_profiling_0.json", '{"op_info": [')
    write(
        tmp_path, "ASCEND_PROFILER_OUTPUT/minddata_pipeline_raw_0.csv",
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\r\n"
        '0,Batch,4,,,,,10,,"[1]"\r\n1,MapOp,2,"[0, 8]",4.0,16,0.25,10,0,\r\n',
    )  # fmt: skip
    rank = rank_of(tmp_path)
    frame = rank.read("pipeline_ops")
    assert frame is not None and list(frame["type"]) == ["Batch", "Map"]
    assert frame["queue_sizes"][1] == (0.0, 8.0) and frame["parent"][1] == 0
    assert any("not valid JSON" in problem.problem for problem in rank.problems)


def test_operations_without_a_queue_are_kept_and_linked(tmp_path: Path) -> None:
    """Repeat has no queue but is a link of the chain; parents follow from children."""
    write(tmp_path, "FRAMEWORK/pipeline_profiling_0.json", PIPELINE)
    frame = rank_of(tmp_path).read("pipeline_ops")
    assert frame is not None and list(frame["type"]) == ["Batch", "Repeat", "Generator"]
    assert list(frame["queue_sizes"][1]) == [] and frame["parent"][2] == 1


def test_batches_of_both_kinds_and_of_older_files_are_read(tmp_path: Path) -> None:
    """The sink's file wins, its columns are microseconds, and a line that was cut does not lose the others."""
    write(tmp_path, "FRAMEWORK/dataset_iterator_profiling_0.txt", "0 0 1 7 100\n1 16 1 2 100\n")
    write(tmp_path, "FRAMEWORK/device_queue_profiling_0.txt", "0 1 1 4 10\n0 2 1 6 10\n0 0 1 2 10\n1 64 1 0 10\n0 0 2")
    rank = rank_of(tmp_path)
    frame = rank.read("batches")
    assert frame is not None and frame["mode"][0] == "sink"
    assert (frame["pipeline_us"][0], frame["push_us"][0], frame["total_us"][0]) == (2000.0, 4000.0, 6000.0)
    assert (frame["queue_size"][0], frame["queue_capacity"][0], frame["time_ns"][0]) == (0.0, 64.0, 10_000_000)
    assert rank.problems
    write(tmp_path, "old/dataset_iterator_profiling_1.txt", "1 64 1 3\n")
    old = rank_of(tmp_path / "old", 1).read("batches")
    assert old is not None and old["queue_size"][0] == 3.0 and old["time_ns"].isna().all()


def test_empty_repetitions_of_machine_samples_are_no_measurements(tmp_path: Path) -> None:
    """MindSpore 2.10 writes every second machine sample as zeros: an idle share of 20 % must not become 10 %."""
    write(tmp_path, "FRAMEWORK/minddata_cpu_utilization_0.json", {
        "cpu_processor_num": 2, "time_stamp": [100, 150, 200, 250],
        "device_info": {
            "idle_utilization": [0, 0, 20, 0, 20, 0, 20, 0], "io_utilization": [0] * 8,
            "user_utilization": [0, 0, 50, 0], "sys_utilization": [0, 0, 30, 0],
            "context_switch_count": [0, 0, 5, 0, 5, 0, 5, 0], "runnable_process": [3] * 8,
        },
        "process_info": {"user_utilization": [10, 20, 30, 40], "sys_utilization": [0, 0, 0, 0]},
        "op_info": [{"op_id": 0, "metrics": {"user_utilization": [10, 30], "sys_utilization": [0, 0]}},
                    {"op_id": -1, "metrics": {"user_utilization": [1], "sys_utilization": [0]}}],
    })  # fmt: skip
    rank = rank_of(tmp_path)
    frame = rank.read("host_cpu")
    assert frame is not None and frame["idle_share"].dropna().tolist() == [0.2, 0.2, 0.2]
    assert frame["process_user_percent"].tolist() == [10.0, 20.0, 30.0, 40.0]
    cpu = rank.read("pipeline_cpu")
    assert cpu is not None and cpu["op_id"].tolist() == [0] and cpu["user_percent"][0] == 20.0


def test_samples_that_are_none_come_from_the_other_file(tmp_path: Path) -> None:
    """A number in place of a queue's samples is not one sample: a queue that is always empty would blame its source."""
    queue = {"length": 16, "size": 0}
    operations = [
        {"op_id": 0, "op_type": "Batch", "num_workers": 2, "children": [1], "metrics": {"output_queue": queue}},
        {"op_id": 1, "op_type": "Map", "num_workers": 4, "metrics": {"output_queue": queue}},
    ]
    write(tmp_path, "pipeline_profiling_0.json", {"sampling_interval": 10, "op_info": operations})
    rank = rank_of(tmp_path)
    frame = rank.read("pipeline_ops")
    assert frame is not None and [list(each) for each in frame["queue_sizes"]] == [[], []]
    assert any("cannot be used" in p.problem for p in rank.problems)
    heading = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    heading += "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
    rows = '0,Batch,2,"[1, 0]",0.5,16,0.03,10,,[1]\n1,Map,4,"[15, 16]",15.5,16,0.97,10,0,\n'
    write(tmp_path, "minddata_pipeline_raw_0.csv", heading + rows)
    frame = rank_of(tmp_path).read("pipeline_ops")
    assert frame is not None and [list(each) for each in frame["queue_sizes"]] == [[1.0, 0.0], [15.0, 16.0]]


@given(st.lists(st.integers(0, 16), min_size=1, max_size=4), st.lists(st.integers(0, 16), min_size=1, max_size=4))
def test_two_tables_of_the_same_samples_must_agree(
    tmp_path_factory: pytest.TempPathFactory, here: list[int], there: list[int]
) -> None:
    """The processed table is made of the raw one: other samples are another run's, or one of the two is spoilt."""
    folder = tmp_path_factory.mktemp("samples")
    queue = {"metrics": {"output_queue": {"length": 16, "size": here}}}
    operations = [{"op_id": 0, "op_type": "Map", "num_workers": 2, **queue}]
    write(folder, "pipeline_profiling_0.json", {"sampling_interval": 10, "op_info": operations})
    heading = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,children_id"
    write(folder, "minddata_pipeline_raw_0.csv", f'{heading}\n0,Map,2,"{there}",1.0,16,\n')
    rank = rank_of(folder)
    rank.read("pipeline_ops")
    assert any("contradicts" in p.problem for p in rank.problems) == (here != there)


@pytest.mark.parametrize("count", ["None", "x", 0, -4])
def test_a_number_of_processors_that_is_none_is_told(tmp_path: Path, count: object) -> None:
    """Whatever is measured against the machine's processors is left out, and the report says why."""
    write(tmp_path, "minddata_cpu_utilization_0.json", {
        "cpu_processor_num": count, "time_stamp": [100, 200], "process_info": {}, "op_info": [],
        "device_info": {"user_utilization": [10, 20]},
    })  # fmt: skip
    rank = rank_of(tmp_path)
    frame = rank.read("host_cpu")
    assert frame is not None and frame["cores"].isna().all()
    assert any("cpu_processor_num" in p.problem for p in rank.problems)


def test_operations_of_which_none_has_children_are_told(tmp_path: Path) -> None:
    """Without the tree nobody knows whose queue an operation draws from, and none is to be blamed for sure."""
    operations = [{"op_id": 0, "op_type": "Batch", "num_workers": 2, "children": None}, {"op_id": 1, "op_type": "Map"}]
    write(tmp_path, "pipeline_profiling_0.json", {"sampling_interval": 10, "op_info": operations})
    rank = rank_of(tmp_path)
    rank.read("pipeline_ops")
    assert [p.doubted for p in rank.problems if "no tree" in p.problem] == [("pipeline_ops",)]


def test_one_operation_that_lost_its_children_starves_nobody(tmp_path: Path) -> None:
    """Two operations that no other draws from are no pipeline: whoever seems to be a source may draw from the other."""
    operations = [
        {"op_id": 0, "op_type": "Batch", "children": [1]}, {"op_id": 1, "op_type": "Map", "kids": [2]},
        {"op_id": 2, "op_type": "TFReader", "children": None},
    ]  # fmt: skip
    write(tmp_path, "pipeline_profiling_0.json", {"sampling_interval": 10, "op_info": operations})
    rank = rank_of(tmp_path)
    frame = rank.read("pipeline_ops")
    assert frame is not None and [list(each) for each in frame["children"]] == [[1], [UNTOLD], [UNTOLD]]
    assert any("no tree" in p.problem and p.doubted == ("pipeline_ops",) for p in rank.problems)


def test_a_spoilt_series_of_the_machine_is_told(tmp_path: Path) -> None:
    """Any series of the samples, whatever it is called in this version."""
    write(tmp_path, "minddata_cpu_utilization_0.json", {
        "cpu_processor_num": 2, "time_stamp": [100, 200], "op_info": [],
        "device_info": {"user_utilization": [6, 7], "sys_utilization": [3, 3], "io_utilization": [5, 1],
                        "idle_utilization": [86, 89], "runnable_process": ""},
    })  # fmt: skip
    rank = rank_of(tmp_path)
    rank.read("host_cpu")
    assert any(p.problem == "lacks device_info.runnable_process" for p in rank.problems)


@pytest.mark.parametrize("idle", [{}, {"idle_utilization": "?"}])
def test_a_host_whose_idle_time_is_lost_is_not_called_healthy(tmp_path: Path, idle: dict[str, str]) -> None:
    """Every version writes the series: without it nobody knows whether the processors are exhausted."""
    write(tmp_path, "minddata_cpu_utilization_0.json", {
        "cpu_processor_num": 2, "time_stamp": [100, 200], "op_info": [],
        "process_info": {"user_utilization": [60, 70], "sys_utilization": [30, 30]},
        "device_info": {"user_utilization": [60, 70], "sys_utilization": [30, 30], "io_utilization": [5, 1]} | idle,
    })  # fmt: skip
    rank = rank_of(tmp_path)
    rank.read("host_cpu")
    told = [p.doubted for p in rank.problems if "idle_utilization" in p.problem]
    assert told == [("host_cpu", "pipeline_cpu")]


def test_an_operation_that_lost_half_of_its_samples_is_doubted(tmp_path: Path) -> None:
    """User and system time of one operation are sampled together; of two operations one may have begun later."""
    for name, system, doubted in (("cut", [], ("pipeline_cpu",)), ("whole", [0, 0], ())):
        write(tmp_path / name, "minddata_cpu_utilization_0.json", {
            "cpu_processor_num": 2, "time_stamp": [100, 200], "device_info": {}, "process_info": {},
            "op_info": [{"op_id": 0, "metrics": {"user_utilization": [10, 30], "sys_utilization": system}},
                        {"op_id": 1, "metrics": {"user_utilization": [5], "sys_utilization": [0]}}],
        })  # fmt: skip
        rank = rank_of(tmp_path / name)
        rank.read("host_cpu")
        assert [p.doubted for p in rank.problems if "different lengths" in p.problem] == [doubted]


def test_single_samples_of_older_files_are_all_kept(tmp_path: Path) -> None:
    """Older files have one machine entry a sample, and spell the runnable processes differently."""
    write(tmp_path, "minddata_cpu_utilization_1.json", {
        "cpu_processor_num": 100, "time_stamp": [10, 20, 30], "sampling_interval": 100,
        "device_info": {"user_utilization": [10, 20, 30], "sys_utilization": [10, 20, 30],
                        "io_utilization": [10] * 3, "idle_utilization": [10] * 3, "runable_processes": [1, 2, 3]},
    })  # fmt: skip
    frame = rank_of(tmp_path, 1).read("host_cpu")
    assert frame is not None and frame["user_share"].tolist() == [0.1, 0.2, 0.3]
    assert frame["runnable"].tolist() == [1.0, 2.0, 3.0]


def test_the_summary_is_read_from_both_its_forms(tmp_path: Path) -> None:
    """The csv has one key per row and no header; -1 stands for what is not known."""
    text = "op_ids,0,1\nop_names,Batch,Map\npipeline_ops,Batch(id=0),Map(id=1)\nnum_workers,2,4\n"
    text += "queue_utilization_pct,-1,50.0\nqueue_empty_freq_pct,-1,10.0\navg_cpu_pct,0.7,4.5\n"
    text += "bottleneck_warning,Map(id=1)\n"
    write(tmp_path, "ASCEND_PROFILER_OUTPUT/minddata_pipeline_summary_0.csv", text)
    frame = rank_of(tmp_path).read("pipeline_summary")
    assert frame is not None and frame["type"].tolist() == ["Batch", "Map"]
    assert frame["queue_used"].isna()[0] and frame["queue_used"][1] == 0.5 and frame["warning"][1] == "Map(id=1)"


def test_getnext_lines_are_read_and_others_left_out(tmp_path: Path) -> None:
    """Only GetNext nodes tell of the device's queue; GPU files are in nanoseconds."""
    write(
        tmp_path, "minddata_aicpu_1.txt", "GetNext_dequeue_wait 1000 1001 3\nInitData 5 6 7\nGetNext_dequeue_wait 10\n"
    )
    rank = rank_of(tmp_path, 1)
    frame = rank.read("data_queue")
    assert frame is not None and frame["queue_size"].tolist() == [3.0] and frame["end_us"][0] == 1001.0
    assert rank.problems
    write(tmp_path, "gpu/minddata_getnext_profiling_0.txt", "GetNext 1000 3000 1\n")
    gpu = rank_of(tmp_path / "gpu", 0).read("data_queue")
    assert gpu is not None and gpu["end_us"][0] == 3.0


@pytest.mark.parametrize("glued", ["x" * 5000, "[", '"', "\\\\"])
def test_a_fetch_that_something_is_glued_to_is_told(glued: str, tmp_path: Path) -> None:
    """A sample behind a line without end is lost; it is no other operator's."""
    write(tmp_path, "minddata_aicpu_1.txt", f"{glued}GetNext_dequeue_wait 1 2 3\nGetNext_dequeue_wait 3 4 2\n")
    rank = rank_of(tmp_path, 1)
    frame = rank.read("data_queue")
    assert frame is not None and frame["queue_size"].tolist() == [2.0]
    assert any(p.problem.startswith("1 lines were cut or unreadable") for p in rank.problems)


@pytest.mark.parametrize("written, read", [("MapOp", "Map"), ("1e999", ""), ("nan", ""), ("a b", ""), (3, "")])
def test_types_of_operations_are_names_of_classes(written: object, read: str) -> None:
    """A number or a word for nothing in place of a type is none, and is told as such."""
    assert operation_type(written) == read


def test_host_events_are_paired_and_memory_is_in_bytes(tmp_path: Path) -> None:
    """A start without an end is left out and said so; nested calls of one stage pair from the inside."""
    head = "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)\n"
    rows = ["1,1,1,Compiler,Pass,opt,0,0,,100,1000", "1,1,1,Compiler,Pass,opt,0,0,,200,1500",
            "1,1,1,Compiler,Pass,opt,0,1,,300,1600", "1,1,1,Compiler,Pass,opt,0,1,,0,3000",
            "1,1,1,A,B,C,0,0,,0,9"]  # fmt: skip
    write(tmp_path, "host_info/host_info_0.csv", head + "\n".join(rows) + "\n")
    rank = rank_of(tmp_path, 0)
    frame = rank.read("host_stages")
    assert frame is not None and sorted(frame["duration_us"]) == [100.0, 2000.0]
    assert any("start or an end only" in problem.problem for problem in rank.problems)
    memory = rank.read("host_memory")
    assert memory is not None and memory["used_bytes"].tolist() == [102400.0, 204800.0, 307200.0]


@given(st.one_of(st.none(), st.text(max_size=20), st.floats(), st.integers(), st.booleans()))
def test_no_cell_ends_in_a_traceback_or_a_number_that_is_none(value: object) -> None:
    """Whatever a cell holds, it becomes a finite number or is absent."""
    number = to_number(value)
    assert number is None or (number - number == 0.0)
    known = to_known(value)
    assert known is None or known >= 0.0
    assert all(n - n == 0.0 for n in to_numbers(value))
    assert not operation_type(value).endswith("DeviceQueue")


@pytest.mark.parametrize("nothing", [None, float("nan"), "NaN", " null ", 7, ""])
def test_a_word_for_nothing_is_no_type(nothing: object) -> None:
    """An operation whose type is lost keeps its number and is called by that alone."""
    assert operation_type(nothing) == ""


def _problems_of_pipeline(tmp_path: Path, rows: str) -> list[str]:
    head = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,children_id\n"
    write(tmp_path, "minddata_pipeline_raw_0.csv", head + rows)
    rank = rank_of(tmp_path)
    rank.read("pipeline_ops")
    return [problem.problem for problem in rank.problems]


def test_what_a_queue_cannot_hold_on_average_is_told(tmp_path: Path) -> None:
    """The average stands in a column of its own; above the length it is in another unit."""
    problems = _problems_of_pipeline(tmp_path, '0,Batch,2,"[1, 2]",150,16,[1]\n1,Map,4,"[1, 2]",1.5,16,\n')
    assert any("1 of 2 operations have more in their queue than it holds" in problem for problem in problems)


def test_operations_that_are_named_and_not_told_of_are_missing(tmp_path: Path) -> None:
    """Rows were lost: the children of those left say so."""
    problems = _problems_of_pipeline(tmp_path, '0,Batch,2,"[1, 2]",1.5,16,"[1, 2]"\n')
    assert any("operations that it does not tell of (1, 2)" in problem for problem in problems)


@pytest.mark.parametrize("children", ["[1, 1]", "[0]"])
def test_operations_that_make_no_tree_are_told(tmp_path: Path, children: str) -> None:
    """An operation feeds one other, and never itself."""
    rows = f'0,Batch,2,"[1, 2]",1.5,16,"{children}"\n1,Map,4,"[1, 2]",1.5,16,\n'
    assert any("to several others, or to themselves" in problem for problem in _problems_of_pipeline(tmp_path, rows))


def test_a_series_that_is_none_is_told(tmp_path: Path) -> None:
    """A text in place of the samples of one column is no column; the shares that are left mean something else."""
    machine = {"user_utilization": [10], "sys_utilization": [5], "io_utilization": "abc", "idle_utilization": [85]}
    document = {"time_stamp": [1], "device_info": machine, "process_info": {}, "op_info": []}
    write(tmp_path, "minddata_cpu_utilization_0.json", document)
    rank = rank_of(tmp_path)
    rank.read("host_cpu")
    assert any("device_info.io_utilization" in problem.problem for problem in rank.problems)


def test_processors_used_beyond_all_of_them_are_told(tmp_path: Path) -> None:
    """Shares of one machine add up to all of it."""
    usage = {
        "cpu_processor_num": 8, "time_stamp": [1, 2, 3], "op_info": [], "sampling_interval": 10,
        "device_info": {"user_utilization": [300, 20, 30], "sys_utilization": [5] * 3, "idle_utilization": [75] * 3},
    }  # fmt: skip
    write(tmp_path, "minddata_cpu_utilization_0.json", usage)
    rank = rank_of(tmp_path)
    rank.read("host_cpu")
    assert any("2 of 3 samples tell of more than all" in p.problem for p in rank.problems)


@pytest.mark.parametrize("stamps", [[1e300] * 4, [10, 10, 10, 10], [40, 30, 20, 10], ["x"] * 4])
def test_times_that_no_clock_tells_are_told_and_not_used(tmp_path: Path, stamps: list[Any]) -> None:
    """Without them nobody knows how often it was sampled, nor what the sampling itself cost."""
    usage = {"user_utilization": [30] * 4, "sys_utilization": [4] * 4}
    document = {
        "cpu_processor_num": 8,
        "time_stamp": stamps,
        "device_info": usage,
        "process_info": usage,
        "op_info": [],
    }
    write(tmp_path, "minddata_cpu_utilization_0.json", document)
    rank = rank_of(tmp_path, 0)
    frame = rank.read("host_cpu")
    assert frame is not None and frame["time_ns"].isna().all()
    assert any("have no time" in problem.problem for problem in rank.problems)


def test_a_queue_that_held_more_than_it_can_is_doubted_and_not_used(tmp_path: Path) -> None:
    """Its samples would make its neighbour the bottleneck."""
    metrics = {"output_queue": {"length": 16, "size": [1e300] * 9}}
    operations = [
        {"op_id": number, "op_type": "Batch", "num_workers": 2, "children": [child], "metrics": metrics}
        for number, child in enumerate((1, 1e300))
    ]
    write(tmp_path, "pipeline_profiling_0.json", {"sampling_interval": 10, "op_info": operations})
    rank = rank_of(tmp_path, 0)
    frame = rank.read("pipeline_ops")
    assert frame is not None and not any(map(len, frame["queue_sizes"]))
    assert {problem.doubted for problem in rank.problems} == {("pipeline_ops",)}


@pytest.mark.parametrize("copy", ["pipeline_profiling_0 (1).json", "pipeline_profiling_0(2).json",
                                  "pipeline_profiling_0 - Copy.json", "pipeline_profiling_0 - 副本.json"])  # fmt: skip
def test_a_copy_is_the_file_it_is_a_copy_of(tmp_path: Path, copy: str) -> None:
    """What browsers and file managers add to the name of a second download changes nothing; beside the file itself the
    copy is not read."""
    text = json.dumps(
        {
            "sampling_interval": 10,
            "op_info": [
                {
                    "op_id": 0,
                    "op_type": "MapOp",
                    "num_workers": 1,
                    "metrics": {"output_queue": {"length": 16, "size": [0]}},
                }
            ],
        }
    )
    (tmp_path / copy).write_text(text)
    (rank,) = load_profile([tmp_path]).ranks
    assert (rank.rank, rank.tables["pipeline_ops"].paths) == (0, (tmp_path / copy,))
    (tmp_path / "pipeline_profiling_0.json").write_text(text)
    (rank,) = load_profile([tmp_path]).ranks
    assert rank.tables["pipeline_ops"].paths == (tmp_path / "pipeline_profiling_0.json",)


def test_an_operation_that_is_told_of_twice_has_no_samples(tmp_path: Path) -> None:
    """Another rank's rows stand behind one's own: whose queue starves is not known, and the wrong operation would be
    sent an engineer's way."""
    rows = '0,Batch,2,"[9, 9]",9,16,[1]\n1,Map,4,"[15, 16]",15.5,16,\n'
    assert not any("more than once" in problem for problem in _problems_of_pipeline(tmp_path, rows))
    assert any(
        "tells of operations more than once (1)" in problem
        for problem in _problems_of_pipeline(tmp_path, f'{rows}1,Map,4,"[0, 0]",0,16,\n')
    )
    frame = rank_of(tmp_path).read("pipeline_ops")
    assert frame is not None and frame["op_id"].tolist() == [0, 1]
    assert [list(each) for each in frame["queue_sizes"]] == [[9.0, 9.0], []]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("800,1182.3,{}", False),
        ("800,1182.3,", False),
        ("7,800,1182.3,", True),
        ("7,800,1182.3", True),
        ("1182.3,1,{}", True),
    ],
)
def test_a_stage_whose_cells_were_moved_is_worked_for_an_unknown_time(tmp_path: Path, row: str, told: bool) -> None:
    """Behind the time stands an object or nothing, and nothing happens a broken number of times: else occurrences and
    times are others' cells, and the busiest operation would pass for an idle one."""
    path = write(
        tmp_path,
        "dataset.csv",
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nPipeline,GetNext,200,783.95,{}\n"
        f"PyFuncOp,AcquireGIL,8,5.1,\nGeneratorOp(ID:2),__next__,{row}\n",
    )
    rank = rank_of(path.parent)
    frame = rank.read("dataset_stages")
    assert frame is not None
    worked = dict(zip(frame["operation"], zip(frame["stage"], frame["count"], strict=True), strict=True))
    assert worked["GeneratorOp(ID:2)"] == (("", 0.0) if told else ("__next__", 800.0))
    assert any("cells were moved" in p.problem for p in rank.problems) == told
