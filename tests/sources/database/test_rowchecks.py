"""Rows that were deleted and links that lead nowhere are told before a database is read."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from advisor.pipeline import measure
from benchmarks.mutants.profiles import write_originals


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_originals(tmp_path_factory.mktemp("originals"), corpus=False)["db"]


def _told(intact: Path, folder: Path, *statements: str) -> list[str]:
    """Problems of the profile after these statements on rank 0's database."""
    shutil.copytree(intact, folder / "run")
    with sqlite3.connect(sorted((folder / "run").rglob("*.db"))[0]) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return [problem.problem for problem in measure([folder / "run"], None).problems]


def test_intact_tables_are_not_complained_of(intact: Path, tmp_path: Path) -> None:
    """Neither of their numbers nor of gaps."""
    assert not [text for text in _told(intact, tmp_path) if "its table" in text]


@pytest.mark.parametrize("table", ["CANN_API", "PYTORCH_API"])
def test_rows_that_were_deleted_are_told(table: str, intact: Path, tmp_path: Path) -> None:
    """What is left looks like a shorter recording, but for the numbers of its rows."""
    create = "CREATE TABLE IF NOT EXISTS PYTORCH_API AS SELECT startNs, endNs, name FROM CANN_API"
    found = _told(intact, tmp_path, create, f"DELETE FROM {table} WHERE rowid % 7 = 0")
    assert any(f"rows of its table {table} were deleted" in text for text in found)


def test_a_table_numbered_by_its_own_column_has_no_gaps(intact: Path, tmp_path: Path) -> None:
    """globalTaskId is the row's number there, and profilers leave numbers out."""
    found = _told(intact, tmp_path, "DELETE FROM COMPUTE_TASK_INFO WHERE globalTaskId % 7 = 0")
    assert not any("were deleted" in text for text in found)


def test_links_that_are_no_numbers_are_told(intact: Path, tmp_path: Path) -> None:
    """Without them no kernel knows its launch, and the facts of launches are gone."""
    found = _told(intact, tmp_path, "UPDATE CANN_API SET connectionId = 'inf' WHERE rowid % 2 = 0")
    assert any("CANN_API hold no whole number in connectionId" in text for text in found)


def test_components_of_memory_that_are_no_names_are_told(intact: Path, tmp_path: Path) -> None:
    """What belongs to no component is left out, and the peak of the others is another one; a text is a name."""
    create = "CREATE TABLE MEMORY_RECORD (component, timestamp INTEGER, totalAllocated INTEGER)"
    rows = "INSERT INTO MEMORY_RECORD VALUES (x'00ff', 100, 2000), ('APP', 200, 1000), (1, 300, 500)"
    found = _told(intact, tmp_path, create, rows)
    assert any("1 rows of its table MEMORY_RECORD hold neither a name" in text for text in found)


def test_threads_that_are_no_numbers_are_told(intact: Path, tmp_path: Path) -> None:
    """Without its thread a call of the framework belongs to nobody."""
    rows = "INSERT INTO PYTORCH_API VALUES ('100', '200', 'inf')"
    found = _told(intact, tmp_path, "CREATE TABLE PYTORCH_API (startNs, endNs, globalTid)", rows)
    assert any("PYTORCH_API hold no whole number in globalTid" in text for text in found)


def test_words_for_nothing_in_columns_of_numbers_are_told(intact: Path, tmp_path: Path) -> None:
    """A database has NULL for what was not measured: a program wrote None over what the profiler had measured."""
    create = "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name, transport_type, transit_size, transit_time)"
    rows = "INSERT INTO CommAnalyzerBandwidth VALUES ('a', 'HCCS', 1.0, 'None'), ('b', 'HCCS', 1.0, NULL)"
    memory = "CREATE TABLE MEMORY_RECORD (component, timestamp, totalAllocated)"
    untimed = "INSERT INTO MEMORY_RECORD VALUES ('APP', '', 1000), ('APP', '', 2000)"
    found = _told(intact, tmp_path, create, rows, memory, untimed)
    assert any("1 rows of its table CommAnalyzerBandwidth hold a word for nothing in transit_time" in t for t in found)
    assert any("2 rows of its table MEMORY_RECORD hold a word for nothing in timestamp" in t for t in found)


def test_links_that_lead_nowhere_are_told(intact: Path, tmp_path: Path) -> None:
    """Calls and tasks have links, and no call leads to a task: what nobody could have recorded."""
    found = _told(intact, tmp_path, "UPDATE CANN_API SET connectionId = 1 << 62")
    assert any("leads to a task" in text for text in found)


def test_a_table_without_row_numbers_is_read(intact: Path, tmp_path: Path) -> None:
    """SQLite keeps tables without them; nothing is said of their gaps and nothing breaks."""
    create = "CREATE TABLE NPU_INFO(id INTEGER, name TEXT, PRIMARY KEY (id, name)) WITHOUT ROWID"
    assert not [text for text in _told(intact, tmp_path, create) if "NPU_INFO" in text]
