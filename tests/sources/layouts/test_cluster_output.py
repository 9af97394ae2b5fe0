"""A cluster analyser's result is read rank by rank."""

from __future__ import annotations

import json

import pytest

from advisor.sources.discover import load_profile

HEADING = "Step,Type,Index,Computing,Communication(Not Overlapped),Free"


@pytest.fixture
def cluster(tmp_path):
    folder = tmp_path / "cluster_analysis_output"
    folder.mkdir()
    rows = "".join(f"7,rank,{rank},{10 + rank},5,3\n" for rank in range(4))
    (folder / "cluster_step_trace_time.csv").write_text(
        f'{HEADING}\n{rows}7,stage,"(0, 1)",11,5,3\n7,stage,"(2, 3)",13,5,3\n'
    )
    return folder


def test_each_rank_reads_its_own_row_and_stage_rows_are_no_ranks(cluster):
    """Stage rows are maxima of columns; taking them for times would invent a slow rank."""
    profile = load_profile([cluster.parent])
    assert profile.layout == "cluster"
    assert [rank.read("steps")["computing_us"].tolist() for rank in profile.ranks] == [[10], [11], [12], [13]]
    assert profile.groups["stage 1"] == (2, 3)
    assert profile.parallelism.pipeline == 2


def test_communication_is_split_by_rank_and_links_belong_to_their_source(cluster):
    """One file for all ranks, without counting a link twice."""
    times = {"Communication Time Info": {"Elapse Time(ms)": 2}}
    (cluster / "cluster_communication.json").write_text(
        json.dumps(
            {"(0, 1)": {"step7": {"hcom_allReduce__1_0@g": {"0": times, "1": times}, "Total Op Info": {"0": times}}}}
        )
    )
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}
    (cluster / "cluster_communication_matrix.json").write_text(
        json.dumps({"(0, 1)": {"step7": {"hcom_allReduce__1_0@g": {"0-1": link, "1-0": link}}}})
    )
    profile = load_profile([cluster])
    assert [len(rank.read("collectives")) if rank.has("collectives") else 0 for rank in profile.ranks] == [1, 1, 0, 0]
    links = [rank.read("links")[["source", "destination"]].to_numpy().tolist() for rank in profile.ranks[:2]]
    assert links == [[[0, 1]], [[1, 0]]]


def test_a_cluster_analysis_beside_rank_folders_fills_only_what_they_lack(cluster, make_rank):
    """The ranks' own files are the better evidence."""
    make_rank("a_ascend_pt", 0)
    profile = load_profile([cluster.parent])
    assert [rank.rank for rank in profile.ranks] == [0, 1, 2, 3]
    assert profile.ranks[0].read("steps")["step"].tolist() == ["1"]
    assert profile.ranks[3].read("steps")["step"].tolist() == ["7"]


@pytest.mark.parametrize("text", ["{}", "[]", '{"collective": 3, "p2p": [["x"]]}', '{"comm_group_parallel_info": [1]}'])
def test_odd_group_files_are_harmless(cluster, text):
    """Groups are a help, not a condition."""
    (cluster / "communication_group.json").write_text(text)
    assert len(load_profile([cluster]).ranks) == 4


def test_each_file_is_decoded_once_for_all_ranks(cluster, monkeypatch):
    """A file of a thousand ranks that is read through for each of them takes a thousand times as long."""
    from advisor.sources.layouts import cluster_output
    from advisor.sources.text import csvfiles

    times = {"Communication Time Info": {"Elapse Time(ms)": 2}}
    operations = {f"hcom_allReduce__1_{i}@g": {str(rank): times for rank in range(4)} for i in range(5)}
    (cluster / "cluster_communication.json").write_text(json.dumps({"(0, 1, 2, 3)": {"step7": operations}}))
    profile = load_profile([cluster])
    looked_at: list[str] = []
    for module, name in ((cluster_output, "_operations"), (csvfiles, "read_file")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, real=real, name=name, **k: (looked_at.append(name), real(*a, **k))[1]
        )
    for rank in profile.ranks:
        assert len(rank.read("collectives")) == 5
        assert rank.read("steps")["computing_us"].tolist() == [10 + rank.rank]
    assert sorted(looked_at) == ["_operations", "read_file"]


def test_a_damaged_cell_of_one_rank_leaves_the_others_certain(cluster):
    """All ranks stand in one table; what one of them lost says nothing about the rows of the others."""
    path = cluster / "cluster_step_trace_time.csv"
    path.write_text(path.read_text().replace("7,rank,2,12,5,3", "7,rank,2,12,٣,3"))
    profile = load_profile([cluster])
    for rank in profile.ranks:
        rank.read("steps")
    assert all("1 of 6 values of Communication(Not Overlapped)" in r.problems[-1].problem for r in profile.ranks)
    assert [rank.problems[-1].doubted for rank in profile.ranks] == [(), (), ("steps",), ()]
