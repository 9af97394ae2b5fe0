"""Columns in one piece and cell by cell: the same numbers, the same words about what is wrong."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.sources import frames
from advisor.sources.frames import Unusable, build_frame, to_float, to_ns
from advisor.tables import TABLES, Column, Table

TABLE = Table(
    "made",
    "a column of each kind",
    (Column("name", "str"), Column("lasts_us", "float", scale=1000.0), Column("signed", "float"), Column("id", "int"),
     Column("start_ns", "ns", scale=1000.0)),
)  # fmt: skip

cells = st.one_of(
    st.none(), st.integers(-10, 10**9), st.floats(), st.booleans(), st.integers(2**52, 2**70),
    st.sampled_from(["", " ", "N/A", "-", "nan", "1_0", "1e3", " 5.0\t", "1736408883732241.564", '"7"', "-3", "1e400",
                     "x", "٣"]),
    st.text(max_size=4),
)  # fmt: skip
columns = st.integers(1, 5).flatmap(
    lambda length: st.tuples(*(st.lists(kind, min_size=length, max_size=length) for kind in
                               (cells, st.floats(), st.integers(0, 99), st.just("12.5"), cells | st.none())))
)  # fmt: skip


def told(data: dict, monkeypatch: pytest.MonkeyPatch, whole: bool) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    notes: list[tuple[str, str]] = []
    with monkeypatch.context() as patch:
        if not whole:
            patch.setattr(frames, "_whole", lambda *_: None)
        frame = build_frame(TABLE, data, None, lambda file, text, *_: notes.append((file, text)), "f")
    return frame, notes


@settings(max_examples=400, deadline=None)
@given(given_columns=columns, order=st.permutations(range(5)))
def test_a_column_in_one_piece_is_what_its_cells_are(given_columns: tuple, order: list[int]) -> None:
    """Whatever cells hold, the quick way gives the numbers, gaps and notes of the slow one."""
    data = {column.name: given_columns[place] for column, place in zip(TABLE.columns, order, strict=True)}
    with pytest.MonkeyPatch.context() as patch:
        quick, slow = told(data, patch, True), told(data, patch, False)
    pd.testing.assert_frame_equal(quick[0], slow[0])
    assert quick[1] == slow[1]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.floats(-1, 2**53), st.floats(2**48, 2**52), st.integers(0, 2**54).map(float)), min_size=1))
def test_instants_of_a_database_are_those_of_its_texts(instants: list[float]) -> None:
    """SQLite and JSON keep 1700000000001842.2 as the nearest float, of 1700000000001842.25: a text of it has one
    decimal."""
    data = {"name": ["x"] * len(instants), "start_ns": instants}
    with pytest.MonkeyPatch.context() as patch:
        slow = told(data, patch, False)
        for given_instants in (instants, np.array(instants)):
            quick = told({**data, "start_ns": given_instants}, patch, True)
            pd.testing.assert_frame_equal(quick[0], slow[0])
            assert quick[1] == slow[1]


def test_instants_since_1970_are_no_damage() -> None:
    """msprof counts its instants in microseconds since 1970, sixteen digits: more than any duration has."""
    told: list[str] = []
    data = {"name": ["GetNext"], "start_us": ["1718098235000000"], "total_us": ["1718098235000000"]}
    frame = build_frame(
        TABLES["aicpu"], data, None, lambda file, problem, doubted=(): told.append(problem), "aicpu.csv"
    )
    assert frame["start_us"].tolist() == [1718098235000000.0] and frame["total_us"].isna().all()
    assert len(told) == 1


@given(st.lists(st.floats(0.001, 1e7), min_size=2, max_size=8), st.randoms())
def test_what_a_subtraction_leaves_below_nothing_is_nothing(parts: list[float], random: random.Random) -> None:
    """A step that idles for no time at all keeps its row, in whichever order the profiler summed its parts."""
    shuffled = random.sample(parts, len(parts))
    left = min(sum(parts) - sum(shuffled), sum(shuffled) - sum(parts)) if sum(parts) < 1e8 else -1e-9
    notes: list[str] = []
    data = {"step": ["5", "6"], "free_us": [str(left), "-0.5"]}
    frame = build_frame(TABLES["steps"], data, None, lambda file, problem, *_: notes.append(problem), "steps.csv")
    assert frame["free_us"][0] == 0.0 and np.isnan(frame["free_us"][1])
    assert len(notes) == 1 and notes[0].startswith("1 of 2")


@pytest.mark.parametrize("cell", ["-1e-300", "-1e-30"])
def test_less_than_any_last_digit_is_left_of_no_sum(cell: str) -> None:
    """What doubles leave of each other has their own last digit: a mean that is less than that was damaged, and its
    operation would work for nothing without a word."""
    notes: list[str] = []
    data = {"operation": ["MapOp(ID:1)"], "stage": ["WorkerProcess"], "count": ["1004"], "avg_us": [cell]}
    frame = build_frame(TABLES["dataset_stages"], data, None, lambda file, problem, *_: notes.append(problem), "d.csv")
    assert frame["avg_us"].isna().all() and "negative" in notes[0]


def test_a_count_below_nothing_is_no_count() -> None:
    """A sum may leave a trace below nothing where it should leave nothing; a number of calls is no such sum."""
    notes: list[str] = []
    data = {"level": ["acl"], "name": ["aclnnMm"], "count": ["-1e-300"], "total_us": ["85.58"]}
    frame = build_frame(TABLES["host_api"], data, None, lambda file, problem, *_: notes.append(problem), "api.csv")
    assert frame["count"].isna().all() and len(notes) == 1


@given(st.decimals(min_value=1000, max_value=10**12, places=3), st.sampled_from(",' \u00a0\u2009\u202f"))
def test_digits_in_groups_of_three_are_the_number(value: Decimal, mark: str) -> None:
    """As spreadsheets show them."""
    shown = f"{value:,}".replace(",", mark)
    assert to_float(shown) == float(value) and to_ns(shown, 1000) == to_ns(str(value), 1000)


@pytest.mark.parametrize("cell", ["12,345", "1,23.5", "1,234,56.7", "1 23", "12\u202f34.5"])
def test_other_commas_and_blanks_make_no_number(cell: str) -> None:
    """The comma of 12,345 may stand for a decimal point."""
    with pytest.raises(Unusable):
        to_float(cell)


@pytest.mark.parametrize("cell", ['"', ' " ', '12"', '"' * 3])
def test_a_quote_without_its_other_is_no_empty_cell(cell: str) -> None:
    """A pair of quotes may stay inside a cell; a lone one is damage."""
    with pytest.raises(Unusable):
        to_float(cell)
    assert to_float('"12"') == 12 and to_float('""') is None


@pytest.mark.parametrize("cell", ["9" * 1_000_000, "9" * 5000 + ".1", "1e999999", 10**400])
def test_an_instant_with_thousands_of_digits_is_told(cell: str | int) -> None:
    """Python refuses to turn that many digits into an integer."""
    with pytest.raises(Unusable):
        to_ns(cell, 1000)


@pytest.mark.parametrize(
    ("cell", "told"),
    [("1e999", 1), ("NaN", 1), ("1,2,3", 1), ("[", 1), ("AI_CORE", 0), ("MIX_AIC", 0), ("向量", 0), ("-", 0), ("", 0)],
)
def test_what_is_no_word_where_a_name_should_be_is_told(cell: str, told: int) -> None:
    """A kind of core without a letter stands in the wrong column, or the file is damaged."""
    heard: list[str] = []

    def note(file: str, problem: str, doubted: tuple[str, ...] = ()) -> None:
        heard.append(problem)

    data = {"type": ["MatMulV2", "Add"], "core": ["AI_CORE", cell], "count": [1, 1], "total_us": [1.0, 2.0]}
    build_frame(TABLES["operator_types"], data, None, note, "op_statistic.csv")
    assert len(heard) == told and all("word" in each for each in heard)


def test_memory_of_a_number_is_of_no_component() -> None:
    """A lost cell moves the others up: instants stand for components then, and what is reserved for what is used."""
    heard: list[str] = []

    def note(file: str, problem: str, doubted: tuple[str, ...] = ()) -> None:
        heard.extend(doubted)

    data = {"component": ["1736408883573957.920", "APP"], "allocated_bytes": [1600.0, 1300.0]}
    build_frame(TABLES["memory"], data, None, note, "memory_record.csv")
    assert heard == ["memory"]
