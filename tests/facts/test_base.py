"""Reductions by typed keys, and what is derived once a run."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from advisor.facts.base import Reduction, Run, computed
from advisor.sources.base import Profile, Rank


@dataclass(frozen=True)
class Count:
    """What a rank is reduced to here."""

    number: int


COUNT = Reduction("count", Count)


def test_a_key_gives_the_reductions_of_its_family_in_rank_order() -> None:
    """Ranks arrive as workers finish; ranks without the table are not there at all."""
    run = Run(Profile("p"))
    run.keep(2, {COUNT: Count(20)})
    run.keep(0, {Reduction("other", int): 1})
    run.keep(1, {COUNT: Count(10)})
    assert run.each(COUNT) == {1: Count(10), 2: Count(20)} and list(run.each(COUNT)) == [1, 2]


def test_a_reduction_is_found_again_after_the_way_from_a_worker() -> None:
    """Reducers run in other processes: keys are equal by name and type, not by identity."""
    run = Run(Profile("p"))
    run.keep(0, pickle.loads(pickle.dumps({COUNT: Count(1)})))
    assert run.each(COUNT) == {0: Count(1)}


def test_a_reducer_that_returns_another_type_fails_where_it_does(tmp_path) -> None:
    """Else the family that reads it fails, in another file, for no visible reason."""
    rank = Rank(0, tmp_path)
    assert COUNT.by(lambda rank: None)(rank) is None
    assert COUNT.by(lambda rank: Count(rank.rank))(rank) == Count(0)
    with pytest.raises(TypeError, match="count is reduced to a str, not a Count"):
        COUNT.by(lambda rank: "7")(rank)  # type: ignore[arg-type, return-value]


def test_what_is_computed_is_worked_out_once_a_run() -> None:
    """Twenty families ask for the steps; nothing is also a result."""
    calls: list[Run] = []

    @computed
    def worked_out(run: Run) -> int | None:
        calls.append(run)
        return None

    first, second = Run(Profile("p")), Run(Profile("p"))
    assert [worked_out(run) for run in (first, first, second)] == [None] * 3
    assert calls == [first, second] and calls[0] is first and calls[1] is second


def test_what_a_rank_keeps_is_made_once_until_it_forgets(tmp_path) -> None:
    """A damaged file of a gigabyte is read once, and its problem is told once."""
    rank, made = Rank(0, tmp_path), []

    def fail() -> int:
        made.append(1)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        rank.once("table", fail)
    assert rank.once("table", fail) is None and made == [1]
    rank.forget()
    assert rank.once("table", lambda: 7) == 7
