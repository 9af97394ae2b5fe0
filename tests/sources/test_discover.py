"""What a user names is recognised, numbered and described; what is not is said."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.sources.base import Rank
from advisor.sources.discover import explain_folders, load_profile
from advisor.sources.folders import Judgement, Listing
from advisor.sources.gaps import _is_hollow
from advisor.sources.layouts import LAYOUTS, Layout
from advisor.sources.metadata import hash_group, normalise_settings

_STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"

STEPS = "Step,Computing,Communication(Not Overlapped),Free\n1,10,5,3\n"


def ids(profile) -> list[int]:
    return [rank.rank for rank in profile.ranks]


def problems(profile) -> str:
    return "\n".join(p.problem for p in [*profile.problems, *(p for rank in profile.ranks for p in rank.problems)])


def test_a_path_that_does_not_exist_is_wrong_usage(tmp_path):
    """A typing error is told as one, with exit status 2."""
    with pytest.raises(UsageError, match="no such file or folder"):
        load_profile([tmp_path / "nowhere"])


def test_a_folder_without_a_profile_says_what_was_looked_for(tmp_path):
    """An empty folder ends in a profile without ranks and a hint, not in health."""
    profile = load_profile([tmp_path])
    assert profile.ranks == []
    assert "ASCEND_PROFILER_OUTPUT" in problems(profile)


@pytest.mark.parametrize("inside", ["", "ASCEND_PROFILER_OUTPUT", "ASCEND_PROFILER_OUTPUT/step_trace_time.csv"])
def test_the_folder_its_output_and_one_file_of_it_are_the_same_rank(make_rank, inside):
    """Whichever level a user points at, rank, framework and steps are found."""
    folder = make_rank("h_1_20250101000000000_ascend_pt", 3)
    profile = load_profile([folder / inside])
    assert ids(profile) == [3]
    assert profile.framework == "pytorch"
    assert profile.ranks[0].read("steps")["free_us"].tolist() == [3.0]


def test_ranks_lie_at_any_depth_and_in_several_paths(make_rank, tmp_path):
    """Folders of nodes with folders of ranks, or one path per node."""
    for rank in range(4):
        make_rank(f"job/node{rank // 2}/x_{rank}_20250101000000000_ascend_ms", rank)
    whole = load_profile([tmp_path / "job"])
    parts = load_profile([tmp_path / "job/node0", tmp_path / "job/node1"])
    assert ids(whole) == ids(parts) == [0, 1, 2, 3]
    assert whole.world_size == 4
    assert whole.layout == "ascend_ms"
    assert whole.ranks[0].source("steps", "free_us").file.startswith("node0/")


@pytest.mark.parametrize(("hollow", "told"), [((1,), [1]), ((0, 1, 2), [])])
def test_a_file_without_an_entry_beside_full_ones_is_told(make_rank, tmp_path, hollow, told):
    """`{}` is what is written where nothing was communicated; beside ranks that did, it is what is left of a file."""
    for rank in range(3):
        link = '{"1": {"p2p": {"send@7": {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1}}}}}'
        text = "{}" if rank in hollow else link
        make_rank(f"job/x_{rank}_20250101000000000_ascend_pt", rank, **{"communication_matrix.json": text})
    profile = load_profile([tmp_path / "job"])
    found = [p for rank in profile.ranks for p in rank.problems if "holds nothing at rank" in p.problem]
    assert [int(p.problem.split()[4].strip(",")) for p in found] == told
    assert all(p.file.endswith("communication_matrix.json") for p in found)


def test_a_device_in_place_of_a_file_beside_full_ones_is_not_read(make_rank, tmp_path):
    """It has no size and no end: whoever looks whether it holds anything must not read on."""
    for rank in range(2):
        make_rank(
            f"job/x_{rank}_20250101000000000_ascend_pt", rank, **{"communication_matrix.json": '{"1": {"p2p": {}}}'}
        )
    (table,) = tmp_path.glob("job/x_1_*/*/communication_matrix.json")
    table.unlink()
    table.symlink_to("/dev/zero")
    assert not _is_hollow(table)
    assert ids(load_profile([tmp_path / "job"])) == [0, 1]


def _of_world(folder: Path, size: int) -> Path:
    (folder / "profiler_metadata.json").write_text(json.dumps({"distributed_args": {"world_size": size}}))
    return folder


@pytest.mark.parametrize(
    ("of", "rank", "size", "told"),
    [("pt", 1, 8, "world size 4.*world size 8"), ("ms", 1, None, "pytorch.*mindspore")],
)
def test_folders_of_two_jobs_are_not_joined(make_rank, of, rank, size, told):
    """One report of two jobs would state the step of one beside the shares of the other."""
    first = _of_world(make_rank("h_1_20250101000000000_ascend_pt", 0), 4)
    second = make_rank(f"h_2_20250101000000000_ascend_{of}", rank)
    second = _of_world(second, size) if size else second
    for paths in ([first, second], [second, first]):
        with pytest.raises(UsageError, match="cannot be joined") as told_error:
            load_profile(paths)
        words = told.split(".*")
        assert all(word in str(told_error.value) for word in words)


def test_two_recordings_of_the_same_ranks_are_not_joined_and_ranks_one_by_one_are(make_rank, tmp_path):
    """Before and after a change hold the same ranks: the newer must not stand for both. The ranks of one job may be
    named one by one, twice, or beside their own folder, and two captures of a single rank are told as such."""
    for run in ("before", "after"):
        for rank in (0, 1):
            make_rank(f"{run}/h_{rank}_20250101000000000_ascend_pt", rank)
    before, after = tmp_path / "before", tmp_path / "after"
    with pytest.raises(UsageError, match="rank 0, 1"):
        load_profile([before, after])
    ranks = sorted(before.iterdir())
    assert ids(load_profile(ranks)) == ids(load_profile([before, before, ranks[0]])) == [0, 1]
    assert "2 times" in problems(load_profile([ranks[0], min(after.iterdir())]))


def test_of_several_captures_of_a_rank_the_newest_counts_and_the_others_are_named(make_rank, tmp_path):
    """Yesterday's capture beside today's must not be averaged into it."""
    make_rank("a_1_20250101000000000_ascend_pt", 0)
    make_rank("a_1_20250301000000000_ascend_pt", 0)
    profile = load_profile([tmp_path])
    assert [rank.root.name for rank in profile.ranks] == ["a_1_20250301000000000_ascend_pt"]
    assert "a_1_20250101000000000_ascend_pt" in problems(profile)


@pytest.mark.parametrize("rank", [0, None])
def test_of_a_folder_and_its_copy_the_copy_is_left_out(make_rank, tmp_path, rank):
    """A backup adds to the name, and the folder's name tells the host."""
    own = make_rank("node7_12_20250101000000000_ascend_pt", rank)
    shutil.copytree(own, tmp_path / f"backup_{own.name}")
    profile = load_profile([tmp_path])
    assert [found.root.name for found in profile.ranks] == [own.name]
    assert f"backup_{own.name}" in problems(profile) or any("backup_" in p.file for p in profile.problems)


@pytest.mark.parametrize("below", ["", "timeline", "summary"])
def test_a_closed_device_folder_of_an_older_export_is_told(tmp_path, monkeypatch, below):
    """What cannot be opened is no raw data that somebody has to parse."""
    device = tmp_path / "PROF_000001_20250101000000000_AB" / "device_0" / below
    device.mkdir(parents=True)
    scan = os.scandir

    def closed(path):
        if Path(path) == device:
            raise PermissionError
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    profile = load_profile([tmp_path])
    told = [p for rank in profile.ranks for p in rank.problems if "permission denied" in p.problem]
    assert told and told[0].file.endswith(device.name) and not any(rank.unparsed for rank in profile.ranks)


def test_a_folder_called_like_a_file_is_no_capture(tmp_path):
    """A copy that lies in a folder under the file's name counts for nothing, and the folder is told."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "step_trace_raw_0_detail_time.csv").write_text("step_num,total\n1,2\n")
    odd = old / "framework_raw_0.csv"
    odd.mkdir()
    (odd / "step_trace_raw_0_detail_time.csv").write_text("step_num,total\n1,2\n")
    assert load_profile([old]).ranks[0].root == old
    assert any("is a folder where" in p.problem for p in load_profile([old]).problems)


def test_dynamic_profiling_folders_carry_the_rank_in_their_name(make_rank, tmp_path):
    """rank2_start10_stop20 is rank 2, and of two ranges the later counts."""
    make_rank("rank2_start10_stop20")
    make_rank("rank2_start100_stop110")
    profile = load_profile([tmp_path])
    assert ids(profile) == [2]
    assert profile.ranks[0].root.name == "rank2_start100_stop110"


def test_folders_without_a_rank_number_are_numbered_and_said_so(make_rank, tmp_path):
    """A guess is told as a guess."""
    make_rank("a_ascend_pt")
    make_rank("b_ascend_pt", 0)
    profile = load_profile([tmp_path])
    assert ids(profile) == [0, 1]
    assert [rank.rank_known for rank in profile.ranks] == [True, False]
    assert "says nowhere which rank it is" in problems(profile)


def test_a_rank_number_of_minus_one_is_none(make_rank):
    """torch_npu writes -1 without a process group."""
    folder = make_rank("a_ascend_pt", 0, {"rank_id": -1})
    (folder / "profiler_info_0.json").rename(folder / "profiler_info.json")
    profile = load_profile([folder])
    assert ids(profile) == [0]
    assert not profile.ranks[0].rank_known


def test_the_device_is_not_the_rank(make_rank):
    """Rank 5 may run on device 1; both are kept apart."""
    info = {"ms_profiler_info": {"rank_id": "5", "device_id": "1"}, "ms_version": "2.10.0", "cann_version": "not known"}
    profile = load_profile([make_rank("a_ascend_ms", 5, info)])
    assert (profile.ranks[0].rank, profile.ranks[0].device) == (5, "1")
    assert profile.versions == {"mindspore": "2.10.0"}


def test_raw_data_that_nothing_parsed_is_told_as_such(tmp_path):
    """A rank folder with PROF_* only is not an empty profile but an unparsed one."""
    (tmp_path / "a_1_20250101000000000_ascend_pt/PROF_000001_2025_ABC/device_0").mkdir(parents=True)
    (tmp_path / "a_1_20250101000000000_ascend_pt/FRAMEWORK").mkdir()
    rank = load_profile([tmp_path]).ranks[0]
    assert [path.name for path in rank.unparsed] == ["PROF_000001_2025_ABC"]
    assert rank.tables == {}
    assert rank.device == "0"


@pytest.mark.parametrize("parsed", [False, True])
def test_what_msprof_exported_stands_for_what_the_framework_did_not_parse(tmp_path, parsed):
    """Tables and timeline of the export are the recording where there is no other; beside the framework's own, its
    timeline is a poorer one of the same."""
    root = tmp_path / "a_1_20250101000000000_ascend_pt"
    output = root / "PROF_000001_2025_ABC/mindstudio_profiler_output"
    output.mkdir(parents=True)
    (output / "op_summary_20250101000000.csv").write_text("Op Name,Task Duration(us)\na,1\n")
    (output / "msprof_20250101000000.json").write_text("[]")
    if parsed:
        (root / "ASCEND_PROFILER_OUTPUT").mkdir()
        (root / "ASCEND_PROFILER_OUTPUT/step_trace_time.csv").write_text("Step,Computing,Free\n1,2,3\n")
    rank = load_profile([tmp_path]).ranks[0]
    assert not rank.unparsed and "kernels" in rank.tables
    assert ("trace" in rank.tables) is not parsed


def test_an_export_of_msprof_is_a_rank_and_only_its_newest_files_count(tmp_path):
    """A second export leaves files of both times in one folder; the first ones are stale."""
    output = tmp_path / "PROF_1_2_A/mindstudio_profiler_output"
    output.mkdir(parents=True)
    for name in ("op_summary_20250101000000.csv", "op_summary_20250301000000_slice_10.csv",
                 "op_summary_20250301000000_slice_2.csv"):  # fmt: skip
        (output / name).write_text("Op Name,Task Duration(us)\na,1\n")
    profile = load_profile([tmp_path])
    assert profile.layout == "msprof"
    names = [path.name for path in profile.ranks[0].tables["kernels"].paths]
    assert names == ["op_summary_20250301000000_slice_2.csv", "op_summary_20250301000000_slice_10.csv"]


def test_loose_files_of_one_folder_are_one_rank_and_unknown_ones_are_named(tmp_path):
    """Files mailed around one by one, even with a prefix, are read."""
    for name, content in (("rank4_step_trace_time.csv", STEPS), ("my_op_statistic (1).csv", "OP Type,Count\nAdd,1\n")):
        (tmp_path / name).write_text(content)
    (tmp_path / "holiday.csv").write_text("Name,Type,Duration(us),Count\nsea,beach,3,4\n")
    profile = load_profile(sorted(tmp_path.iterdir()))
    assert ids(profile) == [4]
    assert sorted(profile.ranks[0].tables) == ["operator_types", "steps"]
    assert "not recognised by its name" in problems(profile)


@pytest.mark.parametrize(
    ("name", "content", "table"),
    [
        ("kernel_details.csv.txt", "Step Id,Name,Type,Start Time(us),Duration(us)\n1,mm,MatMul,1.000,2\n", "kernels"),
        ("steps of tuesday.txt", STEPS, "steps"),
        ("trace.json", '[{"ph": "M", "name": "process_name", "args": {"name": "Ascend Hardware"}}]', "trace"),
        ("mine.json", '{"step1": {"collective": {"a": {"Communication Time Info": {}}}}}', "collectives"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_file_is_known_by_what_it_holds(tmp_path, name, content, table, named):
    """Forums take .txt only, frameworks let users choose the name of a timeline; content decides what a file is."""
    (tmp_path / name).write_text(content)
    profile = load_profile([tmp_path / name if named else tmp_path])
    assert [table in rank.tables for rank in profile.ranks] == [True]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cuda.json", '{"traceEvents": [{"ph": "X", "name": "aten::add", "cat": "kernel"}]}'),
        ("prices.csv", "Name,Count,Ratio(%)\na,1,2\n"),
        ("notes.txt", "Name, Type, Duration and start of what we did\n"),
        ("mine.db", "SQLite format 3\x00"),
    ],
)
def test_what_other_programs_wrote_is_no_profile(tmp_path, name, content):
    """A table of prices or a timeline of another vendor's card is not judged."""
    (tmp_path / name).write_text(content)
    assert load_profile([tmp_path]).ranks == []


def test_loops_of_links_and_locked_folders_do_not_stop_the_search(make_rank, tmp_path):
    """A link to the parent and a folder without permission are harmless."""
    folder = make_rank("a_ascend_pt", 0)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0)
    try:
        profile = load_profile([tmp_path])
    finally:
        locked.chmod(0o700)
    assert [rank.root for rank in profile.ranks] == [folder]
    if os.geteuid():
        assert "permission denied" in problems(profile)


@pytest.mark.parametrize("second", ["1,20,5,1,6,3", "2,20,5,1,6,3"])
def test_each_step_stands_once(make_rank, tmp_path, second):
    """The rows of another rank, or of another run, appended: the mean of both is nobody's step."""
    make_rank(
        "a_ascend_pt",
        0,
        **{"step_trace_time.csv": f"{_STEPS}\n1,10,5,1,6,3\n{second}\n"},
    )
    rank = load_profile([tmp_path]).ranks[0]
    again = second.startswith("1,")
    assert rank.read("steps")["computing_us"].tolist() == ([10] if again else [10, 20])
    assert [p.doubted for p in rank.problems if "bear the step" in p.problem] == [("steps",)] * again


def test_a_closed_file_takes_none_of_its_table_with_it(make_rank, tmp_path, monkeypatch):
    """Of a table in several files the others are read, and the closed one is named."""
    folder = make_rank("a_ascend_pt", 0) / "ASCEND_PROFILER_OUTPUT"
    other = folder / "step_trace_time_2.csv"
    other.write_text("{_STEPS}\n2,20,5,1,6,3\n")
    rank = load_profile([tmp_path]).ranks[0]
    rank.tables["steps"] = replace(rank.tables["steps"], paths=(folder / "step_trace_time.csv", other))
    opened = Path.open

    def refuse(path, *given, **named):
        if path == other:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", refuse)
    assert rank.read("steps")["step"].tolist() == ["1"]
    assert [Path(p.file).name for p in rank.problems if "permission denied" in p.problem] == [other.name]


def test_doctor_learns_why_a_folder_is_or_is_not_recognised(make_rank, tmp_path):
    """Every layout states its reason."""
    make_rank("a_ascend_pt", 0)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/todo.txt").write_text("x")
    by_name = {entry.folder.name: entry for entry in explain_folders([tmp_path])}
    assert by_name["a_ascend_pt"].recognised
    assert not by_name["notes"].recognised
    assert all(judgement.reason for entry in by_name.values() for judgement in entry.judgements)


def test_groups_parallelism_and_world_come_from_metadata(make_rank):
    """Sizes stated by the framework beat those of the folders at hand; groups answer to their hash too."""
    folder = make_rank("a_ascend_pt", 0)
    group = "10.0.0.1%enp189s0f1_55000_0_1738895506630464"
    (folder / "profiler_metadata.json").write_text(json.dumps({
        "distributed_args": {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 4, "world_size": 16},
        "parallel_group_info": {group: {"group_name": "tp", "group_rank": 0, "global_ranks": [0, 1]}},
    }))  # fmt: skip
    profile = load_profile([folder])
    assert profile.world_size == 16
    assert (profile.parallelism.tensor, profile.parallelism.pipeline, profile.parallelism.data) == (2, 4, None)
    assert profile.groups[group] == profile.groups[hash_group(group)] == (0, 1)


def test_ranks_that_list_the_same_world_keep_it_once(make_rank, tmp_path):
    """Each rank's file names all members: ten thousand ranks would otherwise keep a hundred million numbers."""
    for rank in (0, 1):
        folder = make_rank(f"r{rank}_ascend_pt", rank)
        group = {"group_name": "default_group", "group_rank": rank, "global_ranks": list(range(600))}
        (folder / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": {"g0": group}}))
    first, second = load_profile([tmp_path]).ranks
    assert first.groups["g0"] is second.groups["g0"] and len(first.groups["g0"]) == 600
    assert "global_ranks" not in repr(first.info)


def test_the_hash_of_a_group_differs_as_in_files_of_cann():
    """Two ids and their hashes from one job: the unknown common beginning cancels out in the difference."""
    a = int(hash_group("_0_1738895506630464")), 6960437680420871035
    b = int(hash_group("_0_1738895486152654")), 212011646445595226
    for shift in (32, 0):
        own, theirs = ((x >> shift) - (y >> shift) & 0xFFFFFFFF for x, y in zip(a, b, strict=True))
        assert own == theirs


def test_members_of_groups_follow_from_the_ranks_own_links(make_rank, tmp_path):
    """Without metadata the four ranks' link files tell who is in which group."""
    for rank, number in ((0, 0), (2, 1), (1, 0), (3, 1)):
        group = "even" if rank % 2 == 0 else "odd"
        links = {f"{number}-{other}": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}
                 for other in (0, 1)}  # fmt: skip
        data = {"step1": {"p2p": {}, "collective": {f"hcom_allReduce__1_0@{group}": links}}}
        make_rank(f"r{rank}_ascend_pt", rank, **{"communication_matrix.json": json.dumps(data)})
    profile = load_profile([tmp_path])
    assert (profile.groups["even"], profile.groups["odd"]) == ((0, 2), (1, 3))
    frame = profile.ranks[1].read("links")
    assert frame[["source", "destination"]].to_numpy().tolist() == [[1, 1], [1, 3]]


def test_groups_that_metadata_call_otherwise_follow_from_the_links_of_all_ranks(make_rank, tmp_path):
    """Metadata with names that no link file knows say nothing of its groups: the pairs of neighbouring stages, which
    only later ranks' files complete, would have links without ranks, and a slow one among them would go untold."""
    for rank, number in ((0, 0), (1, 0), (2, 1), (3, 1)):
        link = {f"{number}-{1 - number}": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
        stage, pair = f"stage{rank // 2}", f"pair{rank % 2}"
        data = {"step1": {"p2p": {}, "collective": {f"hcom_send__1_0@{pair}": link}}}
        folder = make_rank(f"r{rank}_ascend_pt", rank, **{"communication_matrix.json": json.dumps(data)})
        info = {stage: {"global_ranks": [rank // 2 * 2, rank // 2 * 2 + 1]}}
        (folder / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": info}))
    profile = load_profile([tmp_path])
    assert (profile.groups["pair0"], profile.groups["pair1"]) == ((0, 2), (1, 3))
    assert profile.ranks[3].read("links")[["source", "destination"]].to_numpy().tolist() == [[3, 1]]


@pytest.mark.parametrize("shift", [0, 1])
def test_numbers_above_the_group_are_global_ranks(make_rank, tmp_path, shift):
    """A pair of ranks that calls itself 1-3 cannot mean places in a group of two; one that says 0-1 does. Both are the
    ranks whose files name it."""
    for rank in range(4):
        numbers = "1-3" if shift else "0-1"
        link = {numbers: {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
        kind = "send" if rank == 1 else "receive"
        data = {"step1": {"p2p": {f"hcom_{kind}__1_0@pair": link} if rank in (1, 3) else {}, "collective": {}}}
        make_rank(f"r{rank}_ascend_pt", rank, **{"communication_matrix.json": json.dumps(data)})
    profile = load_profile([tmp_path])
    assert profile.groups.get("pair") == (1, 3)
    frame = profile.ranks[3].read("links")
    assert frame[["source", "destination"]].to_numpy().tolist() == [[1, 3]]
    assert not profile.ranks[3].problems


def _outgoing(make_rank, rank, group, links):
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}
    data = {"step1": {"p2p": {}, "collective": {f"allreduce-total@{group}": dict.fromkeys(links, link)}}}
    make_rank(f"r{rank}_ascend_pt", rank, **{"communication_matrix.json": json.dumps(data)})


def test_members_follow_from_outgoing_links_alone(make_rank, tmp_path):
    """A ring's files list one link each and no local copy: its source is the rank's place in the group."""
    for place, rank in enumerate((1, 3, 5, 7)):
        _outgoing(make_rank, rank, "odd", [f"{place}-{(place + 1) % 4}"])
        _outgoing(make_rank, rank - 1, "even", [f"{place}-{(place + 1) % 4}"])
    profile = load_profile([tmp_path])
    assert (profile.groups["odd"], profile.groups["even"]) == ((1, 3, 5, 7), (0, 2, 4, 6))
    assert profile.ranks[3].read("links")[["source", "destination"]].to_numpy().tolist() == [[3, 5]]


def test_a_group_as_large_as_the_world_needs_not_all_its_files(make_rank, tmp_path):
    """One file of eight is lost: the others find their own rank as their number, so that numbers are ranks."""
    for rank in (0, 1, 2, 4, 5, 6, 7):
        _outgoing(make_rank, rank, "world", [f"{rank}-{(rank + 1) % 8}"])
    assert load_profile([tmp_path]).groups["world"] == tuple(range(8))


def test_members_that_contradict_each_other_name_nobody(make_rank, tmp_path):
    """Two files claim the same place in a group of three: who the third is nobody can tell."""
    for rank, source in ((0, 0), (1, 0), (3, 2)):
        _outgoing(make_rank, rank, "odd", [f"{source}-1", f"{source}-2"] if source == 0 else ["2-0", "2-1"])
    assert "odd" not in load_profile([tmp_path]).groups


def test_links_show_ranks_that_are_not_there(make_rank):
    """Two folders of an eight-rank job: the links speak of eight."""
    links = {f"0-{n}": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1} for n in range(8)}
    data = {"step1": {"collective": {"a@17": links}}}
    folder = make_rank("a_ascend_pt", 0, **{"communication_matrix.json": json.dumps(data)})
    assert load_profile([folder]).world_size == 8


@pytest.mark.parametrize(
    "info",
    [
        {"profiler_parameters": {"profiler_level": "Level1", "activities": ["CPU", "NPU"], "is_set_schedule": True,
         "schedule": {"wait": 1, "active": 2}, "export_type": ["text"], "aic_metrics": "PipeUtilization"}},
        {"config": {"common_config": {"activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
         "schedule": {"_wait": 1, "_active": 2}},
         "experimental_config": {"_profiler_level": "ProfilerLevel.Level1", "_export_type": "text",
                                 "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION"}}},
    ],
)  # fmt: skip
def test_settings_have_one_spelling(info):
    """Rules about the collection need not know which framework and year wrote the file."""
    assert normalise_settings(info) == {
        "level": "Level1",
        "activities": ["CPU", "NPU"],
        "schedule": {"wait": 1, "active": 2},
        "export_type": ["text"],
        "aic_metrics": "PipeUtilization",
    }


def test_a_setting_of_megabytes_is_none():
    """Damage in a setting leaves the others, and no message carries it."""
    long = "x" * 1_000_000
    info = {"profiler_parameters": {"activities": [long, "NPU"], "aic_metrics": long}, "jit_level": long}
    assert normalise_settings(info) == {"activities": ["NPU"]}


def test_a_schedule_nobody_set_is_none():
    """MindSpore writes the default schedule even where there was no schedule."""
    info = {"profiler_parameters": {"is_set_schedule": False, "schedule": {"wait": 0, "active": 1}}}
    assert "schedule" not in normalise_settings(info)


@pytest.mark.parametrize("text", ["", "[]", '{"config": 3}', '{"rank_id": {}}', "{", '{"parallel_group_info": [1]}'])
def test_odd_metadata_does_not_cost_the_rank(make_rank, text):
    """A broken profiler_info or metadata file leaves the tables readable."""
    folder = make_rank("a_ascend_pt")
    (folder / "profiler_info_7.json").write_text(text)
    (folder / "profiler_metadata.json").write_text(text)
    profile = load_profile([folder])
    assert ids(profile) == [7]
    assert profile.ranks[0].read("steps") is not None


def test_a_thousand_ranks_are_found_quickly(tmp_path):
    """Opening a large job must not take longer than reading it."""
    for rank in range(1000):
        output = tmp_path / f"x_{rank}_20250101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "step_trace_time.csv").write_text(STEPS)
        (output.parent / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "config": {}}))
    profile = load_profile([tmp_path])
    assert ids(profile) == list(range(1000))
    assert profile.world_size == 1000


def test_a_single_file_path_is_named_by_itself(make_rank):
    """Evidence of a loose file names the file."""
    folder = make_rank("a_ascend_pt", 0)
    path = Path(folder / "ASCEND_PROFILER_OUTPUT/step_trace_time.csv")
    assert load_profile([path]).ranks[0].source("steps", "free_us").file == "step_trace_time.csv"


@pytest.mark.parametrize("absent", [None, 11])
def test_ranks_that_are_all_their_groups_are_the_world(make_rank, tmp_path, absent):
    """Ranks 8 to 11 of groups that have no other members: none is missing, whatever the numbering; one without files
    is."""
    for rank in range(8, 12):
        if rank != absent:
            group = {"group_name": "dp", "group_rank": rank - 8, "global_ranks": [8, 9, 10, 11]}
            make_rank(f"r{rank}_ascend_pt", rank, **{
                "communication_matrix.json": "{}",
            })  # fmt: skip
            (tmp_path / f"r{rank}_ascend_pt" / "profiler_metadata.json").write_text(
                json.dumps({"parallel_group_info": {"g0": group}})
            )
    assert load_profile([tmp_path]).world_size == (4 if absent is None else 12)


@pytest.mark.parametrize("name", ["minddata_pipeline_summary_0.json", "minddata_pipeline_summary_0.csv"])
def test_one_of_two_files_that_hold_the_same_is_read_alone(make_rank, name):
    """What lies beside the file that was named does not keep it from being read."""
    document = {"op_ids": [0], "op_names": ["Batch"], "pipeline_ops": ["Batch(id=0)"], "num_workers": [1]}
    rows = "".join(f"{key},{values[0]}\n" for key, values in document.items())
    files = {"minddata_pipeline_summary_0.json": json.dumps(document), "minddata_pipeline_summary_0.csv": rows}
    path = make_rank("a_ascend_ms", 0, **files) / "ASCEND_PROFILER_OUTPUT" / name
    profile = load_profile([path])
    assert [reference.paths for reference in profile.ranks[0].tables.values()] == [(path,)]


def test_a_layout_is_added_by_one_line(tmp_path, monkeypatch):
    """What an in-house profiler writes is found beside the known layouts, and doctor tells what was looked for."""

    def judge(listing: Listing) -> Judgement:
        return Judgement("acme", listing.name.startswith("acme-"), "its name begins with acme-")

    def recognise(listing: Listing, base: Path) -> list[Rank]:
        return [Rank(int(listing.name.removeprefix("acme-")), listing.path, layout="acme", base=base)]

    (tmp_path / "acme-3" / "inner").mkdir(parents=True)
    monkeypatch.setattr("advisor.sources.discover.LAYOUTS", (*LAYOUTS, Layout(judge, recognise)))
    profile = load_profile([tmp_path])
    assert ids(profile) == [3] and profile.layout == "acme"
    assert [r.folder.name for r in explain_folders([tmp_path]) if r.recognised] == ["acme-3"]


def test_a_link_to_what_holds_the_profile_is_not_followed(tmp_path, make_rank):
    """/proc/self holds a link to the whole disk: reading it would take minutes, and find everybody's recordings."""
    make_rank("elsewhere_ascend_ms", 7)
    own = tmp_path / "own"
    own.mkdir()
    (own / "root").symlink_to(tmp_path)
    profile = load_profile([own])
    assert not profile.ranks
    assert any("not followed" in problem.problem for problem in profile.problems)


def test_thousands_of_folders_without_a_recording_end_the_search(tmp_path, monkeypatch):
    """Whoever names a whole disk is told to name one recording, and soon."""
    monkeypatch.setattr("advisor.sources.folders.MOST_BARREN", 5)
    for number in range(9):
        (tmp_path / f"photos{number}").mkdir()
    profile = load_profile([tmp_path])
    assert any("nothing was recognised in 5 folders" in problem.problem for problem in profile.problems)


def test_the_root_of_a_file_system_is_looked_at_only_near_the_top(tmp_path, monkeypatch):
    """`advisor advise /` does not walk through a disk that holds thousands of recordings; it says so, once."""
    monkeypatch.setattr("advisor.sources.folders._above", lambda root: iter(()))
    for number in range(3):
        (tmp_path / "home" / "me" / f"run{number}" / "deeper").mkdir(parents=True)
    profile = load_profile([tmp_path])
    told = [problem.problem for problem in profile.problems if "was not looked at" in problem.problem]
    told += [problem.problem for problem in profile.problems if "root of a file system" in problem.problem]
    assert len(told) == 1 and "only 2 levels" in told[0]
