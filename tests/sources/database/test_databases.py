"""Databases give what text gives, are never written to, and may be hostile."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from advisor.sources.database.databases import read_host_api
from advisor.sources.database.databasesteps import steps_from_tasks
from advisor.sources.database.dbfile import links_in, open_database, text_behind
from advisor.sources.database.kernel_database import _steps, database_blocks
from advisor.sources.discover import load_profile
from advisor.sources.reference import TableRef
from advisor.sources.streams.kernel_cells import UNKNOWN
from advisor.sources.streams.kernels import load_kernels
from advisor.sources.streams.rank_trace import load_trace

SCHEMA = """
CREATE TABLE STRING_IDS(id INTEGER, value TEXT);
INSERT INTO STRING_IDS VALUES (1,'MatMul'),(2,'AI_CORE'),(3,'hcom_allReduce__586_0_1'),(4,'17'),(5,'launch');
CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, globalTaskId INTEGER);
INSERT INTO TASK VALUES (1000,3000,1),(2000,4000,2),(20000,23000,3),(500,700,9);
CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER, taskType INTEGER, opType INTEGER);
INSERT INTO COMPUTE_TASK_INFO VALUES (1,1,2,1),(1,2,2,1),(1,3,2,1);
CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, groupName INTEGER, rankSize INTEGER);
INSERT INTO COMMUNICATION_OP VALUES (3,3500,9000,4,8);
CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER, name INTEGER);
INSERT INTO CANN_API VALUES (0,1000,10000,5),(0,3000,10000,5);
CREATE TABLE ENUM_API_TYPE(id INTEGER, name TEXT);
INSERT INTO ENUM_API_TYPE VALUES (10000,'node');
CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
INSERT INTO RANK_DEVICE_MAP VALUES (6, 2);
CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);
INSERT INTO HOST_INFO VALUES ('1', 'node3');
"""
STEP_TIME = "CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);"


def make_database(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def rank_of(tmp_path):
    def build(script: str, name: str = "ascend_mindspore_profiler_6.db"):
        make_database(tmp_path / "x_ascend_ms/ASCEND_PROFILER_OUTPUT", name, script)
        return load_profile([tmp_path]).ranks[0]

    return build


def test_tasks_without_their_collective_tell_that_it_is_missing(rank_of):
    """Every collective consists of tasks: where its own row is gone, what it took is unknown and no idle time."""
    tasks = "CREATE TABLE COMMUNICATION_TASK_INFO(name INTEGER, opId INTEGER); INSERT INTO {} VALUES (3,0),(3,0),(3,1);"
    rank = rank_of(
        SCHEMA + "ALTER TABLE COMMUNICATION_OP ADD COLUMN opId INTEGER; UPDATE COMMUNICATION_OP SET opId = 0;"
        + tasks.format("COMMUNICATION_TASK_INFO")
    )  # fmt: skip
    kernels = load_kernels(rank)
    assert kernels is not None and kernels.left_out == 1


TASKS_OF_COLLECTIVE = """
INSERT INTO STRING_IDS VALUES (11,'Notify_Wait'),(12,'Memcpy'),(13,'Reduce_Inline'),(14,'RDMASend');
ALTER TABLE COMMUNICATION_OP ADD COLUMN opId INTEGER; UPDATE COMMUNICATION_OP SET opId = 7;
CREATE TABLE COMMUNICATION_TASK_INFO(globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, opId INTEGER,
 srcRank INTEGER, dstRank INTEGER);
INSERT INTO TASK VALUES (3500,7500,21),(7500,8300,22),(8300,8900,23),(8000,9000,24);
INSERT INTO COMMUNICATION_TASK_INFO VALUES (21,11,0,7,0,3),(22,12,0,7,0,3),(23,13,0,7,0,3),(24,12,1,7,0,4294967295);
"""


def test_tasks_of_a_collective_tell_waiting_from_transfer(rank_of):
    """A database that nobody analysed: of 5.5 us one plane moves data for 1.4 and waits for the rest."""
    rank = rank_of(SCHEMA + TASKS_OF_COLLECTIVE)
    frame = rank.read("collectives")
    assert frame is not None
    assert frame["elapsed_us"].tolist() == [5.5] and frame["transit_us"].tolist() == [1.4]


def test_what_the_network_takes_is_not_read_from_the_task_that_hands_it_over(rank_of):
    """A task of RDMA ends when the data are handed over: how long they travel is unknown, and so is the waiting."""
    rank = rank_of(SCHEMA + TASKS_OF_COLLECTIVE + "UPDATE COMMUNICATION_TASK_INFO SET taskType = 14 WHERE planeId = 1;")
    frame = rank.read("collectives")
    assert frame is not None
    assert "transit_us" not in frame or frame["transit_us"].isna().all()


def test_partners_of_tasks_tell_how_many_ranks_there_are_at_least(rank_of):
    """Partner 3 of a group makes four ranks, whatever else the database lacks; 4294967295 is no partner."""
    script = SCHEMA.replace(", rankSize INTEGER", "").replace("3500,9000,4,8", "3500,9000,4")
    assert rank_of(script + TASKS_OF_COLLECTIVE).info["world_size"] == 4


def test_copies_are_read_from_the_tasks(rank_of):
    """A database draws no lanes: its tasks of the kind MEMCPY_ASYNC are the copies between memories."""
    trace = load_trace(rank_of(
        SCHEMA + "INSERT INTO STRING_IDS VALUES (31,'MEMCPY_ASYNC'); ALTER TABLE TASK ADD COLUMN taskType INTEGER;"
        "INSERT INTO TASK VALUES (1000000,4000000,41,31),(5000000,5002000,42,31),(7000000,9000000,43,2);"
    ))  # fmt: skip
    assert trace is not None and [times.tolist() for times in trace.copies] == [
        [1000000, 5000000], [4000000, 5002000]
    ]  # fmt: skip


def test_collectives_without_a_time_are_told(rank_of):
    """CommAnalyzerTime holds nothing else than times: a cell without one was lost."""
    rank = rank_of(
        SCHEMA + "CREATE TABLE CommAnalyzerTime(hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC,"
        " elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC,"
        " idle_time NUMERIC, step TEXT, type TEXT);"
        "INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__586_0_1','1',1,2,1,1,0,0,'1','collective'),"
        " ('hcom_allReduce__586_1_1','1',1,'None',1,1,0,0,'1','collective');"
    )  # fmt: skip
    rank.read("collectives")
    assert any("1 of 2 operations in CommAnalyzerTime" in p.problem and p.doubted for p in rank.problems)


def test_a_database_says_who_it_is(rank_of):
    """Rank, device and host are in the database where no other file has them."""
    rank = rank_of(SCHEMA)
    assert (rank.rank, rank.device, rank.host, rank.framework) == (6, "2", "node3", "mindspore")
    assert rank.info["world_size"] == 8


def test_steps_are_computed_where_no_table_has_them(rank_of):
    """Overlapping kernels count once, covered communication is not exposed, and the user learns of the computing."""
    rank = rank_of(SCHEMA)
    row = rank.read("steps").iloc[0]
    assert (row["computing_us"], row["exposed_us"], row["overlapped_us"], row["free_us"]) == (6.0, 5.0, 0.5, 11.0)
    assert row["computing_us"] + row["exposed_us"] + row["free_us"] == 22.0
    assert "computed from tasks" in rank.problems[0].problem


def test_steps_of_the_host_cut_the_device_time(tmp_path, notes):
    """With step ranges every task counts in the step it runs in, and nothing is counted twice."""
    script = SCHEMA + STEP_TIME + "INSERT INTO STEP_TIME VALUES (4,900,10000),(5,10000,24000);"
    path = make_database(tmp_path, "a.db", script)
    with open_database(path) as database:
        columns = steps_from_tasks(database, notes)
    assert columns["step"] == ["4", "5"]
    assert columns["computing_us"] == [3.0, 3.0]
    assert columns["preparing_us"] == [0.1, 10.0]


def test_descriptions_that_end_early_leave_the_time_behind_them_unknown(tmp_path, notes):
    """Tasks behind the last described kernel, on its stream and of its kind, are kernels: what looks free is not. An
    event that is waited for is none."""
    script = SCHEMA + (
        "ALTER TABLE TASK ADD COLUMN streamId INTEGER; ALTER TABLE TASK ADD COLUMN taskType INTEGER;"
        "UPDATE TASK SET streamId = 2, taskType = 2;"
    )
    for name, task, free in (("kernel", "(30000,31000,10,2,2)", None), ("event", "(30000,31000,10,2,7)", 11.0)):
        path = make_database(tmp_path, f"{name}.db", f"{script} INSERT INTO TASK VALUES {task};")
        with open_database(path) as database:
            columns = steps_from_tasks(database, notes)
        assert columns["free_us"] == [free]
        lost = sum((block["start_ns"] == UNKNOWN).sum() for block in database_blocks(path, notes))
        assert lost == (free is None)


def test_operator_types_and_host_interfaces_are_summed(rank_of):
    """Counts, totals and extremes as in op_statistic.csv and api_statistic.csv."""
    rank = rank_of(SCHEMA)
    types, api = rank.read("operator_types").iloc[0], rank.read("host_api").iloc[0]
    assert (types["type"], types["core"], types["count"], types["total_us"]) == ("MatMul", "AI_CORE", 3, 7.0)
    assert (types["min_us"], types["max_us"], types["share"]) == (2.0, 3.0, 1.0)
    assert (api["level"], api["name"], api["total_us"], api["max_us"]) == ("node", "launch", 4.0, 3.0)


def test_operations_without_analysis_still_have_start_and_length(rank_of):
    """Level 0 has no CommAnalyzer tables; waiting is then unknown, not zero."""
    row = rank_of(SCHEMA).read("collectives").iloc[0]
    assert (row["step"], row["group"], row["start_ns"], row["elapsed_us"]) == ("0", "17", 3500, 5.5)
    assert row[["wait_us", "transit_us", "idle_us"]].isna().all()


@pytest.mark.parametrize(("name", "known_as"), [
    ("10.1.0.1%enp189s0f0_60000_0_1790000273534304", "2406415556920631379"), ("17", "17"), ("dp-0", "dp-0"),
])  # fmt: skip
def test_a_communicator_is_called_as_its_analysis_calls_it(rank_of, name, known_as):
    """analysis.db knows groups by a hash of their name; that of some ranks may be at hand and that of others not."""
    frame = rank_of(SCHEMA + f"UPDATE STRING_IDS SET value = '{name}' WHERE id = 4;").read("collectives")
    assert frame is not None and frame["group"].tolist() == [known_as]


def test_the_step_table_wins_over_computing(rank_of):
    """StepTraceTime is in µs and is taken as it is."""
    script = SCHEMA + (
        "CREATE TABLE StepTraceTime(deviceId, step, computing, communication_not_overlapped, free);"
        "INSERT INTO StepTraceTime VALUES (0, '50', 8.5, 98.0, 25.0);"
    )
    rank = rank_of(script)
    assert rank.read("steps")[["step", "computing_us", "free_us"]].to_numpy().tolist() == [["50", 8.5, 25.0]]
    assert rank.problems == []


def test_packets_of_a_transport_are_one_row(rank_of):
    """The database has a row per packet size; the operation moved its bytes once."""
    head = "'hcom_allReduce__586_0_1','17','HCCS',28.0,1.5,18.6,0"
    script = SCHEMA + (
        "CREATE TABLE CommAnalyzerBandwidth(hccl_op_name, group_name, transport_type, transit_size, transit_time,"
        " bandwidth, large_packet_ratio, package_size, count, total_duration, step, type);"
        f"INSERT INTO CommAnalyzerBandwidth VALUES ({head},2.0,12,1.2,'step50','collective'),"
        f"({head},2.0,2,0.3,'step50','collective');"
    )
    frame = rank_of(script).read("transports")
    assert frame[["step", "size_bytes", "packets"]].to_numpy().tolist() == [["50", 28e6, 14.0]]


@pytest.mark.parametrize(
    "odd",
    [
        "DROP TABLE TASK; CREATE VIEW TASK AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n)"
        " SELECT x startNs, x endNs, x globalTaskId FROM n;",
        "DROP TABLE TASK; CREATE TABLE TASK(a);",
        "DROP TABLE COMPUTE_TASK_INFO; CREATE TABLE COMPUTE_TASK_INFO(opType, globalTaskId);",
        "UPDATE TASK SET startNs = 'x', endNs = NULL;",
        "UPDATE COMMUNICATION_OP SET startNs = 9223372036854775807, opName = x'ff';",
        "CREATE TABLE StepTraceTime(step, computing, free);",
        "CREATE TABLE CommAnalyzerTime(x); CREATE TABLE CommAnalyzerMatrix(x); CREATE TABLE CommAnalyzerBandwidth(x);",
        "CREATE TABLE MEMORY_RECORD(timestamp); INSERT INTO MEMORY_RECORD VALUES ('soon');",
        "CREATE TABLE OP_MEMORY(a); CREATE TABLE NPU_MODULE_MEM(moduleId);",
        "DROP TABLE STRING_IDS; CREATE TABLE STRING_IDS(key, word);",
        "CREATE TRIGGER t AFTER INSERT ON TASK BEGIN DELETE FROM TASK; END;",
    ],
)
def test_odd_schemas_end_in_notes_not_in_errors(rank_of, odd):
    """Views that never end, missing columns, wrong types: what is sound is read."""
    rank = rank_of(SCHEMA + odd)
    for table in sorted(set(rank.tables) - {"kernels"}):
        rank.read(table)
    assert rank.rank == 6
    assert len(rank.read("host_api")) == 1


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 200])
def test_a_file_that_is_no_database_is_told(tmp_path, content):
    """A text export with the wrong ending, or a copy that was cut."""
    output = tmp_path / "x_ascend_pt/ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "ascend_pytorch_profiler_0.db").write_bytes(content)
    rank = load_profile([tmp_path]).ranks[0]
    assert rank.tables == {}
    assert rank.problems


def test_reading_leaves_the_folder_untouched(rank_of):
    """No journal, no lock, not one byte changed: profiles may lie on a read-only disk."""
    rank = rank_of(SCHEMA)
    folder = rank.root / "ASCEND_PROFILER_OUTPUT"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    rank.read("steps")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_text_wins_where_both_were_exported(tmp_path):
    """With Text and Db exported, each table is read once, from the text."""
    output = tmp_path / "x_ascend_ms/ASCEND_PROFILER_OUTPUT"
    make_database(output, "ascend_mindspore_profiler_6.db", SCHEMA)
    (output / "step_trace_time.csv").write_text("Step,Computing,Communication(Not Overlapped),Free\n1,1,2,3\n")
    rank = load_profile([tmp_path]).ranks[0]
    assert rank.tables["steps"].reader == "csv.steps"
    assert rank.tables["operator_types"].reader == "db.operator_types"


def test_what_is_written_over_other_texts_is_no_name(rank_of):
    """Each text has an id of its own, or one for each writer: ten with the same text are ten lost names. Texts of
    megabytes are read as far as a name goes, and bytes are no texts."""
    ids = ", ".join(f"({100 + i}, 'spoilt')" for i in range(10))
    rank = rank_of(
        SCHEMA + f"INSERT INTO STRING_IDS VALUES {ids}, (200, printf('%.*c', 1000000, 'x')), (202, x'00ff');"
        "INSERT INTO COMPUTE_TASK_INFO VALUES (200,9,2,103);"
        "INSERT INTO TASK VALUES (30000,31000,10),(32000,33000,11);"
        "INSERT INTO COMPUTE_TASK_INFO VALUES (202,10,2,202),(101,11,2,1);"
    )
    found = load_kernels(rank)
    assert found is not None
    assert {"MatMul", ""} == {s.type for s in found.signatures} - {"AllReduce", "hcom_allReduce__586_0_1"}
    assert {len(name) for name in found.names if name.startswith("x")} == {4096}
    assert {name[:6] for name in found.names} == {"MatMul", "hcom_a", "xxxxxx", ""}
    assert any("have no text in STRING_IDS" in p.problem for p in rank.problems)


@pytest.mark.parametrize(("lost", "doubtful"), [(1, False), (12, True)])
def test_lost_texts_leave_a_doubt_where_they_are_not_few(rank_of, lost: int, doubtful: bool) -> None:
    """One name of 100 is a slip; where more are gone, nobody knows what the kernels and collectives were."""
    tasks = ",".join(f"({10_000 + 10 * n}, {10_005 + 10 * n}, {100 + n})" for n in range(100))
    infos = ",".join(f"({1 if n >= lost else 900 + n}, {100 + n}, 2, 1)" for n in range(100))
    rank = rank_of(SCHEMA + f"INSERT INTO TASK VALUES {tasks}; INSERT INTO COMPUTE_TASK_INFO VALUES {infos};")
    assert load_kernels(rank) is not None
    (problem,) = (p for p in rank.problems if "have no text in STRING_IDS" in p.problem)
    assert problem.doubted == (("kernels", "collectives") if doubtful else ())


@pytest.mark.parametrize("ahead", [True, False])
def test_a_host_that_runs_ahead_moves_no_kernel_into_another_step(tmp_path: Path, ahead: bool) -> None:
    """Nothing makes the host wait: its windows of three steps end before the device has worked off the first one. A
    kernel belongs to the step in which the host enqueued it; of a host that waits, the windows are the steps."""
    length, host = 100_000, 1_000 if ahead else 100_000
    path = tmp_path / "profiler.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE STEP_TIME (id, startNs, endNs); CREATE TABLE CONNECTION_IDS (id, connectionId);"
        "CREATE TABLE TASK (startNs, endNs, connectionId); CREATE TABLE PYTORCH_API (startNs, connectionId);"
    )
    for step in range(3):
        connection.execute("INSERT INTO STEP_TIME VALUES (?, ?, ?)", (step, 10 + step * host, 10 + (step + 1) * host))
        for kernel in range(4):
            number, begin = 10 * step + kernel, 20 + step * length + kernel * length // 4
            enqueued = str(11 + step * host + kernel * host // 8)  # a text, as the profiler writes it
            connection.execute("INSERT INTO CONNECTION_IDS VALUES (?, ?)", (number, 100 + number))
            connection.execute("INSERT INTO PYTORCH_API VALUES (?, ?)", (enqueued, number))
            connection.execute("INSERT INTO TASK VALUES (?, ?, ?)", (begin, begin + length // 5, 100 + number))
    connection.commit()
    found = _steps(connection, path, lambda *_: None)
    assert [name for name, _, _ in found] == ["0", "1", "2"]
    first = 20 if ahead else 10
    assert [begin for _, begin, _ in found] == [first + step * length for step in range(3)]


@pytest.mark.parametrize(("ends", "told"), [([-1], "1 of 1"), ([], ""), ([1800000000000000000, -(1 << 62)], "1 of 2")])
def test_calls_of_the_host_without_times_are_told(tmp_path: Path, ends: list[int], told: str) -> None:
    """Calls that end before they begin are damage, and those that are left count too few; a host that was not recorded
    has none."""
    path = tmp_path / "profiler.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, name INTEGER)")
    connection.execute("CREATE TABLE STRING_IDS (id INTEGER, value TEXT)")
    for end in ends:
        connection.execute("INSERT INTO CANN_API VALUES (1700000000000000000, ?, 20000, 1)", (end,))
    connection.commit()
    connection.close()
    notes: list[str] = []
    read_host_api(TableRef("host_api", (path,), "db.host_api"), None, lambda _, text, *__: notes.append(text))
    assert notes == ([f"{told} calls in CANN_API have no usable times"] if told else [])


def test_an_id_that_stands_as_digits_leads_to_its_text():
    """A database that was written anew by another tool may hold numbers as texts: "8" is no operator type."""
    known = {8: "MatMul", 9: "Add"}
    assert [text_behind(known, cell) for cell in (8, "8", "Mul", "10", None)] == ["MatMul", "MatMul", "Mul", "10", None]


def test_a_database_that_is_gone_or_none_names_no_links(tmp_path):
    """One that vanishes between the search and the first look ended the whole command."""
    (tmp_path / "none.db").write_bytes(b"no database")
    assert links_in(tmp_path / "none.db") == links_in(tmp_path / "gone.db") == {}
