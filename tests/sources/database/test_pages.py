"""Columns read from the pages of a database are those that SQLite gives; what is not plain is left to it."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from advisor.sources.database import kernel_database, sums, trace_database
from advisor.sources.database.columns import read_columns, read_with_texts
from advisor.sources.database.dbfile import open_database
from advisor.sources.database.pages import NOTHING, Cells, Unfit
from advisor.sources.readers import read_table
from advisor.sources.reference import TableRef
from tests.sources.database.test_databases import SCHEMA, STEP_TIME, make_database

_WHOLE = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(1 << 63) + 1, (1 << 63) - 1))
_REAL = st.one_of(st.none(), st.integers(-3, 300), st.floats(allow_nan=False, allow_infinity=False))
_DIGITS = st.one_of(_WHOLE, st.integers(0, (1 << 62) - 1).map(str))
_TEXT = st.one_of(st.none(), st.sampled_from(("", "HCCS", "RDMA")), st.text(max_size=9))
_ROWS = st.lists(st.tuples(_WHOLE, _REAL, _TEXT, _DIGITS), max_size=60)
_KINDS = {"a": Cells.WHOLE, "b": Cells.REAL, "c": Cells.TEXT, "d": Cells.DIGITS}


def _written(path: Path, rows: Sequence[tuple[object, ...]], page: int = 512) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {page}")
    connection.execute("CREATE TABLE T (k INTEGER PRIMARY KEY, a INTEGER, b NUMERIC, c TEXT, d)")
    connection.executemany("INSERT INTO T (a, b, c, d) VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    return connection


def _as_sqlite_says(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    query = "SELECT k, a, b, c, CASE typeof(d) WHEN 'text' THEN CAST(d AS INTEGER) ELSE d END FROM T"
    return connection.execute(query).fetchall()


@given(_ROWS, st.sampled_from((512, 1024, 65536)), st.integers(0, 5), st.sampled_from((1, 5, 256)))
def test_columns_are_those_that_sqlite_gives(rows, page, gaps, enough):
    """Numbers of every size, empty cells, several levels of pages and deleted rows are read as SQLite reads them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(_written(Path(folder, "x.db"), rows * 9, page)) as c,
    ):
        if gaps:
            c.execute("DELETE FROM T WHERE k % ? = 0", (gaps + 1,))
            c.commit()
        with mock.patch("advisor.sources.database.pages._ENOUGH", enough):
            found = read_with_texts(c, Path(folder, "x.db"), "T", {"k": Cells.WHOLE, **_KINDS})
        for column, cells in zip("kabcd", zip(*_as_sqlite_says(c), strict=True), strict=False):
            if column == "c":
                assert list(found[column]) == list(cells)
                continue
            nothing = np.nan if column == "b" else NOTHING
            told = np.array([nothing if cell is None else cell for cell in cells], found[column].dtype)
            np.testing.assert_array_equal(found[column], told)


@given(st.data(), _ROWS.filter(len))
def test_damage_never_raises_anything_else(data, rows):
    """Whatever bytes stand in the file, the answer is columns or that SQLite has to look."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.db")
        connection = _written(path, rows * 9)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 9))):
            content[data.draw(st.integers(16, len(content) - 1))] = data.draw(st.integers(0, 255))
        damaged = Path(folder, "damaged.db")
        damaged.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        with contextlib.suppress(Unfit):
            read_with_texts(connection, damaged, "T", _KINDS)
        connection.close()


def test_more_cells_than_a_page_holds_are_left_to_sqlite(tmp_path):
    """A count beyond the page, in an inner page as in one of rows, is damage, wherever the page lies in the file."""
    path = tmp_path / "x.db"
    with contextlib.closing(_written(path, [(i, i / 2, "text", i) for i in range(300)])) as c:
        whole = path.read_bytes()
        for page in range(512, len(whole), 512):
            path.write_bytes(whole[: page + 3] + b"\xff\xff" + whole[page + 5 :])
            with pytest.raises(Unfit):
                read_with_texts(c, path, "T", _KINDS)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE T (a TEXT); INSERT INTO T VALUES ('7 apples')",
        "CREATE TABLE T (a); INSERT INTO T VALUES (0.5)",
        "CREATE TABLE T (a REAL); INSERT INTO T VALUES (5)",
        "CREATE TABLE T (a INTEGER PRIMARY KEY) WITHOUT ROWID; INSERT INTO T VALUES (5)",
        "CREATE TABLE S (a); INSERT INTO S VALUES (5); CREATE VIEW T AS SELECT a FROM S",
        "CREATE TABLE T (b); INSERT INTO T VALUES (5); ALTER TABLE T ADD COLUMN a DEFAULT 7",
        "CREATE TABLE T (b, a AS (b + 1)); INSERT INTO T VALUES (5)",
        "CREATE TABLE T (a, b); INSERT INTO T VALUES (5, hex(zeroblob(9000)))",
        "CREATE TABLE T (a); INSERT INTO T(rowid, a) VALUES (-5, 5)",
        "CREATE TABLE S (a)",
    ],
)
def test_what_is_not_plain_is_left_to_sqlite(tmp_path, script):
    """Texts, fractions, rounded columns, other kinds of tables and rows over several pages are not decoded here."""
    path = make_database(tmp_path, "x.db", script)
    with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(Unfit):
        read_columns(connection, path, "T", {"a": Cells.WHOLE})


_REST = (
    STEP_TIME
    + """
INSERT INTO STEP_TIME VALUES (4,900,10000),(5,10000,24000);
CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC);
INSERT INTO STRING_IDS VALUES (6,'aic_mac_ratio'),(7,'aiv_vec_ratio'),(8,'aic_total_cycles'),(9,'rtMalloc');
INSERT INTO TASK_PMU_INFO VALUES (1,6,0.5),(1,7,0),(1,8,99),(2,6,NULL),(2,7,0.25),(3,6,0.25),(3,6,1),(77,6,0.1);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, name INTEGER);
INSERT INTO PYTORCH_API VALUES ('1000','200000',5),('1500','1600',9),('2000',NULL,5),(NULL,'7',5),('9','8',5);
"""
)
_CONNECTED = {
    "endNs INTEGER, type INTEGER, name INTEGER)": "endNs INTEGER, type INTEGER, name INTEGER, connectionId INTEGER)",
    "(0,1000,10000,5),(0,3000,10000,5)": "(0,1000,10000,5,1),(0,3000,10000,5,2)",
    "endNs INTEGER, globalTaskId INTEGER)":
        "endNs INTEGER, globalTaskId INTEGER, connectionId INTEGER, streamId INTEGER)",
    "(1000,3000,1),(2000,4000,2),(20000,23000,3),(500,700,9)":
        "(1000,3000,1,1,7),(2000,4000,2,2,NULL),(20000,23000,3,2,8),(500,700,9,NULL,7)",
}  # fmt: skip
"""What makes the tables of `SCHEMA` tell which call launched which task, and on which stream it ran."""


def test_both_ways_of_reading_give_the_same_kernels_timeline_and_sums(tmp_path, notes, monkeypatch):
    """Kernels with counters, host calls, links and sums are the same through SQLite, row by row."""
    script = SCHEMA
    for plain_text, connected in _CONNECTED.items():
        assert plain_text in script
        script = script.replace(plain_text, connected)
    path = make_database(tmp_path, "x.db", script + _REST)
    reads: list[str] = []

    def refuse(*given: object) -> None:
        reads.append(str(given[2]))
        raise Unfit("for the test")

    def everything():
        blocks = list(kernel_database.database_blocks(path, notes))
        frames = pd.concat([pd.DataFrame({name: list(cells) for name, cells in block.items()}) for block in blocks])
        trace = trace_database.read_trace([path], notes)
        with open_database(path) as database:
            summed = sums.operator_sums(database), sums.host_sums(database)
        spans = [(int(s), int(e), trace.host.names[n]) for s, e, n in
                 zip(trace.host.start, trace.host.end, trace.host.name, strict=True)]  # fmt: skip
        return frames, trace.activities, spans, trace.launched.tolist(), trace.started.tolist(), summed

    plain = everything()
    for module, name in ((kernel_database, "read_columns"), (trace_database, "read_columns")):
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr("advisor.sources.database.dbfile.read_columns", refuse)
    slow = everything()
    assert {"TASK", "CANN_API", "PYTORCH_API"} <= set(reads)
    assert_frame_equal(plain[0].fillna({"stream": "", "type": ""}), slow[0], check_like=True)
    assert plain[1:] == slow[1:]
    assert (
        plain[0]["mac_ratio"].fillna(-1).to_list()[:3] == [0.5, -1, 1.0]
        and len(plain[2]) == 2
        and plain[3] == [0, 0, 0]
    )


def test_a_damaged_index_costs_nothing(tmp_path):
    """The rows of a table are whole where only its index is damaged, which stops SQLite in the middle of a query."""
    path = tmp_path / "x.db"
    with contextlib.closing(_written(path, [(i, i / 2, "text", i) for i in range(500)])) as c:
        c.execute("CREATE INDEX I ON T (a)")
        c.commit()
        page = c.execute("SELECT rootpage FROM sqlite_master WHERE name = 'I'").fetchone()[0]
        whole = read_with_texts(c, path, "T", _KINDS)
    data = bytearray(path.read_bytes())
    data[(page - 1) * 512] = 0
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as c:
        with pytest.raises(sqlite3.DatabaseError):
            c.execute("SELECT a FROM T ORDER BY a").fetchall()
        found = read_with_texts(c, path, "T", _KINDS)
    for column, cells in whole.items():
        told = (cells, found[column]) if column != "c" else ([*cells], [*found[column]])
        np.testing.assert_array_equal(*told)


def test_damage_in_a_table_is_told(tmp_path, notes):
    """Whichever page of a table is broken, its rows are not taken for all there are: the problem is told."""
    path = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(path)) as c:
        c.execute("PRAGMA page_size = 512")
        c.execute("CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, transport_type TEXT, transit_size NUMERIC,"
                  " transit_time NUMERIC)")  # fmt: skip
        rows = [(f"hcom_allReduce__1_{i}_1", "HCCS", i + 0.5, i + 0.25) for i in range(300)]
        c.executemany("INSERT INTO CommAnalyzerBandwidth VALUES (?, ?, ?, ?)", rows)
        c.commit()
    whole = path.read_bytes()
    reference = TableRef("transports", (path,), "db.transports")
    frame = read_table(reference, None, notes)
    assert frame is not None and len(frame) == len(rows) and not notes
    for page in range(1, len(whole) // 512):
        path.write_bytes(whole[: page * 512] + b"\xff" + whole[page * 512 + 1 :])
        told = len(notes)
        assert read_table(reference, None, notes) is None
        assert len(notes) > told


@pytest.mark.parametrize("repeated", [0, 3])
def test_rows_that_stand_twice_count_once(tmp_path, notes, monkeypatch, repeated):
    """A parser that ran twice wrote what it found twice; read at once or row by row, each row counts once."""
    path = tmp_path / "x.db"
    rows = [
        (f"hcom_allReduce__1_{i % 7}_1", "g", f"step{i % 3}", "HCCS", i + 0.5, 2, 0.5, i, 3, 1.5) for i in range(50)
    ]
    with contextlib.closing(sqlite3.connect(path)) as c:
        c.execute("CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, group_name TEXT, step TEXT,"
                  " transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC,"
                  " large_packet_ratio NUMERIC, package_size NUMERIC,"
                  " count NUMERIC, total_duration NUMERIC)")  # fmt: skip
        c.executemany("INSERT INTO CommAnalyzerBandwidth VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows + rows[:repeated])
        c.commit()
    reference = TableRef("transports", (path,), "db.transports")
    quick = read_table(reference, None, notes)
    monkeypatch.setattr("advisor.sources.database.databases.at_once", lambda *_: None)
    slow = read_table(reference, None, notes)
    assert quick is not None and slow is not None
    assert_frame_equal(quick, slow)
    assert len(quick) == len(rows) and quick["size_bytes"].sum() == sum(row[4] for row in rows) * 1e6


def test_a_page_that_stands_twice_is_no_table(tmp_path):
    """A tree whose branches meet again would be read without end: SQLite, which has a time limit, decides."""
    path = tmp_path / "x.db"
    with contextlib.closing(_written(path, [(1, 2, "x" * 90, 3)] * 99)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master").fetchone()[0]
        content = bytearray(path.read_bytes())
        at = (root - 1) * 512
        assert content[at] == 5
        content[at + 8 : at + 12] = root.to_bytes(4, "big")
        path.write_bytes(content)
        with pytest.raises(Unfit):
            read_columns(connection, path, "T", {"a": Cells.WHOLE})
