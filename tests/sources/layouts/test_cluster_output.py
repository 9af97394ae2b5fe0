"""A cluster analyser's result is read rank by rank."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

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


def test_operations_without_times_are_told(cluster):
    """What moved is listed and when is lost: nothing of the communication is judged, which a user has to hear."""
    moved = {"Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": 1, "Transit Time(ms)": 1}}}
    (cluster / "cluster_communication.json").write_text(
        json.dumps({"(0, 1)": {"step7": {"hcom_allReduce__1_0@g": {"0": moved, "1": moved}}}})
    )
    rank = load_profile([cluster]).ranks[0]
    assert rank.read("collectives") is None
    assert [problem.problem for problem in rank.problems] == ["holds no collectives"]


@pytest.mark.parametrize("odd", [10**500, None, "nan", [1]])
def test_an_operation_that_holds_no_links_is_told(cluster, odd):
    """A step of which the links are gone looks like one in which nothing was sent."""
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}
    steps = {"step7": {"hcom_allReduce__1_0@g": {"0-1": link}}, "step8": {"hcom_allReduce__1_0@g": odd}}
    (cluster / "cluster_communication_matrix.json").write_text(json.dumps({"(0, 1)": steps}))
    profile = load_profile([cluster])
    assert len(profile.ranks[0].read("links")) == 1
    told = [problem.problem for rank in profile.ranks[:1] for problem in rank.problems]
    assert any(text.startswith("has 1 entries that are not as in a communication file") for text in told)


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


@pytest.mark.parametrize("ending", [".", ".0", ".000"])
def test_a_spreadsheet_that_saved_the_table_costs_no_rank(cluster, ending):
    """It writes 0.0 for rank 0, as a data frame does whose column lacks a number; a rank and a half is none."""
    file = cluster / "cluster_step_trace_time.csv"
    whole = file.read_text()
    file.write_text(whole.replace("rank,0,", f"rank,0{ending},").replace("rank,3,", f"rank,3{ending},"))
    ranks = load_profile([cluster]).ranks
    assert [rank.read("steps")["computing_us"].tolist() for rank in ranks] == [[10], [11], [12], [13]]
    assert not [entry for rank in ranks for entry in rank.problems]
    file.write_text(whole.replace("rank,3,", "rank,1.5,"))
    assert [rank.rank for rank in load_profile([cluster]).ranks] == [0, 1, 2]


def test_rows_of_no_rank_are_told(cluster):
    """A rank whose number was damaged is gone from every comparison: that is no smaller job."""
    path = cluster / "cluster_step_trace_time.csv"
    path.write_text(path.read_text().replace("7,rank,2,", "7,rank,-2,"))
    profile = load_profile([cluster])
    for rank in profile.ranks:
        rank.read("steps")
        assert any("1 rows are of a rank that is none" in p.problem for p in rank.problems)


@pytest.mark.parametrize("simplified", [False, True])
def test_the_analysers_database_tells_what_its_files_tell(cluster, tmp_path, simplified):
    """Newer analyses leave one database in place of the files, with or without the ranks of each group in each row."""
    times = {"Start Timestamp(us)": 5.0, "Elapse Time(ms)": 2.0, "Transit Time(ms)": 1.0, "Wait Time(ms)": 0.5,
             "Synchronization Time(ms)": 0.25, "Idle Time(ms)": 0.5}  # fmt: skip
    moved = {"HCCS": {"Transit Size(MB)": 8.0, "Transit Time(ms)": 1.0, "Large Packet Ratio": 0.0,
                      "Size Distribution": {"4.0": [2, 1.0]}}}  # fmt: skip
    entry = {"Communication Time Info": times, "Communication Bandwidth Info": moved}
    operations = {"hcom_allReduce__1_0@77": {"0": entry, "1": entry}}
    (cluster / "cluster_communication.json").write_text(json.dumps({"(0, 1)": {"step7": operations}}))
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 8.0, "Transit Time(ms)": 1.0}
    links = {"hcom_allReduce__1_0@77": {"0-1": link, "1-0": link}}
    (cluster / "cluster_communication_matrix.json").write_text(json.dumps({"(0, 1)": {"step7": links}}))
    group = {"rank_set": [0, 1], "group_name": "77", "group_id": "77", "pg_name": "default_group"}
    (cluster / "communication_group.json").write_text(
        json.dumps({"collective": [[0, 1]], "p2p": [], "comm_group_parallel_info": [group]})
    )
    folder = tmp_path / "again" / "cluster_analysis_output"
    folder.mkdir(parents=True)
    kinds = ("Communication{}", "Group", "GroupMapping") if simplified else ("CommAnalyzer{}", "Group", "Group")
    extra, ranks = ("", "") if simplified else ("rank_set TEXT,", "'(0, 1)',")
    with closing(sqlite3.connect(folder / "cluster_analysis.db")) as database:
        database.execute('CREATE TABLE ClusterStepTraceTime (step, type, "index", computing, '
                         "communication_not_overlapped, free)")  # fmt: skip
        rows = [("7", "rank", str(rank), 10 + rank, 5, 3) for rank in range(4)]
        rows += [("7", "stage", "(0, 1)", 11, 5, 3), ("7", "stage", "(2, 3)", 13, 5, 3)]
        database.executemany("INSERT INTO ClusterStepTraceTime VALUES (?,?,?,?,?,?)", rows)
        names = {each: f"Cluster{kinds[0].format(each)}" for each in ("Time", "Bandwidth", "Matrix")}
        database.executescript(
            f"CREATE TABLE {names['Time']} ({extra} step, rank_id, hccl_op_name, group_name, start_timestamp,"
            " elapsed_time, transit_time, wait_time, synchronization_time, idle_time);"
            f"CREATE TABLE {names['Bandwidth']} ({extra} step, rank_id, hccl_op_name, group_name, band_type,"
            " transit_size, transit_time, large_packet_ratio, package_size, count, total_duration);"
            f"CREATE TABLE {names['Matrix']} ({extra} step, hccl_op_name, group_name, src_rank, dst_rank,"
            " transport_type, transit_size, transit_time);"
            f"CREATE TABLE Communication{kinds[2]} (type, rank_set, group_name, group_id, pg_name);"
            f"INSERT INTO Communication{kinds[2]} VALUES ('collective', '(0, 1)', '77', '77', 'default_group');"
        )
        for rank in (0, 1):
            operation = f"{ranks}'step7', {rank}, 'hcom_allReduce__1_0', '77'"
            database.execute(f"INSERT INTO {names['Time']} VALUES ({operation}, 5.0, 2.0, 1.0, 0.5, 0.25, 0.5)")
            database.execute(f"INSERT INTO {names['Bandwidth']} VALUES ({operation}, 'HCCS', 8, 1, 0, 4.0, 2, 1.0)")
            pair = f"{ranks}'step7', 'hcom_allReduce__1_0', '77', '{rank}', '{1 - rank}', 'HCCS', 8, 1"
            database.execute(f"INSERT INTO {names['Matrix']} VALUES ({pair})")
        database.commit()
    files, coded = load_profile([cluster]), load_profile([folder])
    assert coded.groups == files.groups and coded.parallelism == files.parallelism
    for one, two in zip(files.ranks, coded.ranks, strict=True):
        assert set(one.tables) - {"links"} <= set(two.tables) and two.problems == []
        for table in ("steps", "collectives", "transports", "packets", "links"):
            expected, found = one.read(table), two.read(table)
            assert (expected is None) == (found is None), table
            assert expected is None or expected.equals(found), table


SUMMARY = (
    "rank,step,stepTime,computation,communicationNotOverlapComputation,communicationOverlapComputation,communication,"
    "free,communicationWaitStageTime,memory,memoryNotOverlapComputationCommunication"
)


def _summary(free: float, copies: float) -> list[tuple[float, ...]]:
    return [(rank, 7, 40 + rank, 10 + rank, 5, 2, 7, free, 4, 9, copies) for rank in range(2)]


@pytest.mark.parametrize("form", ["file", "folder", "database"])
def test_the_newer_account_of_the_steps_tells_the_same_as_the_older_one(tmp_path, form):
    """Analysers write ClusterTimeSummary alone where it was asked for: those ranks must not be lost."""
    folder = tmp_path / "cluster_analysis_output"
    folder.mkdir()
    rows = _summary(free=18.0, copies=5.0)
    if form == "database":
        with closing(sqlite3.connect(folder / "cluster_analysis.db")) as database:
            database.execute(f"CREATE TABLE ClusterTimeSummary ({SUMMARY})")
            database.executemany(f"INSERT INTO ClusterTimeSummary VALUES ({','.join('?' * 11)})", rows)
            database.commit()
    else:
        within = folder / "ClusterTimeSummary" if form == "folder" else folder
        within.mkdir(exist_ok=True)
        text = "\n".join([SUMMARY, *(",".join(map(str, row)) for row in rows)])
        (within / "cluster_time_summary_20260115.csv").write_text(text + "\n")
    profile = load_profile([folder.parent])
    assert [rank.rank for rank in profile.ranks] == [0, 1] and profile.layout == "cluster"
    frame = profile.ranks[1].read("steps")
    told = frame[["step", "computing_us", "exposed_us", "overlapped_us", "communication_us", "stage_us"]].iloc[0]
    assert list(told) == ["7", 11.0, 5.0, 2.0, 7.0, 41.0]
    assert frame["free_us"].iloc[0] == 23.0  # a copy beside nothing else leaves the device idle
    assert profile.ranks[1].problems == []


def test_the_older_account_is_used_where_a_database_holds_both(tmp_path):
    """Both are of the same steps: taken together, each step would stand there twice."""
    folder = tmp_path / "cluster_analysis_output"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "cluster_analysis.db")) as database:
        database.execute(f"CREATE TABLE ClusterTimeSummary ({SUMMARY})")
        database.executemany(f"INSERT INTO ClusterTimeSummary VALUES ({','.join('?' * 11)})", _summary(1.0, 0.0))
        database.execute('CREATE TABLE ClusterStepTraceTime (step, type, "index", computing, '
                         "communication_not_overlapped, free)")  # fmt: skip
        database.execute("INSERT INTO ClusterStepTraceTime VALUES ('7', 'rank', '0', 30, 5, 3)")
        database.commit()
    (rank,) = load_profile([folder.parent]).ranks
    assert list(rank.read("steps")["computing_us"]) == [30.0]


def test_a_cluster_table_named_by_itself_has_its_own_ranks_only(cluster):
    """Read a second time by its headings, it had a rank more, with the rows of all others as steps of one name."""
    profile = load_profile([cluster / "cluster_step_trace_time.csv"])
    assert [rank.rank for rank in profile.ranks] == [0, 1, 2, 3]
    assert [list(rank.read("steps")["computing_us"]) for rank in profile.ranks] == [[10.0], [11.0], [12.0], [13.0]]
    assert not any(rank.problems for rank in profile.ranks)


def test_a_row_of_which_cells_were_moved_is_told(cluster):
    """A cell was lost and those behind it moved up: the row's last one is empty while other ranks have it."""
    table = cluster / "cluster_step_trace_time.csv"
    rows = [f"7,rank,{rank},{10 + rank},5,3,18,0" for rank in range(4)]
    table.write_text("\n".join([f"{HEADING},Stage,Bubble", *rows, ""]))
    assert not [problem for rank in _read(cluster) for problem in rank.problems]
    rows[2] = "7,rank,2,12,5,3,0,"
    table.write_text("\n".join([f"{HEADING},Stage,Bubble", *rows, ""]))
    doubted = [[p.doubted for p in rank.problems if "1 of 4 rows lack Bubble" in p.problem] for rank in _read(cluster)]
    assert doubted == [[()], [()], [("steps",)], [()]]


def _read(cluster):
    ranks = load_profile([cluster]).ranks
    for rank in ranks:
        rank.read("steps")
    return ranks
