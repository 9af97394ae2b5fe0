"""The wait before a lone step's first kernel stands in no row: ranks that wait for each other show whose it is."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.facts.step.start_gap import settle
from advisor.facts.step.times import StepTimes


def _ranks(rows: list[float], waits: list[float]) -> dict[int, StepTimes]:
    return {
        rank: StepTimes(
            ("7",), np.array([us]),
            {"computing": np.array([us]), "exposed": np.zeros(1), "idle": np.zeros(1), "preparing": np.array([wait])},
            "steps",
        )
        for rank, (us, wait) in enumerate(zip(rows, waits, strict=True))
    }  # fmt: skip


def _settled(times: dict[int, StepTimes]) -> list[float]:
    found = settle(times, {}, dict.fromkeys(times, "pytorch"))
    return [round(float(found[rank].time[0]), 6) for rank in times]


@pytest.mark.parametrize("late", [5_000.0, 20_000.0, 60_000.0])
@pytest.mark.parametrize("ranks", [2, 5])
def test_rows_that_lack_a_wait_are_given_it(late: float, ranks: int) -> None:
    """The one that began late has the shortest row: with its wait all steps are as long."""
    waits = [late] + [300.0] * (ranks - 1)
    assert _settled(_ranks([100_000.0 - wait for wait in waits], waits)) == [100_000.0] * ranks


@pytest.mark.parametrize(
    ("rows", "waits"),
    [
        ([100_000.0, 100_000.0], [60_000.0, 300.0]),  # equal without it: a host far ahead
        ([50_000.0, 100_000.0], [20_000.0, 300.0]),  # unequal with it, too: another reason
        ([99_900.0, 100_000.0], [300.0, 200.0]),  # no difference to speak of
        ([100_000.0], [60_000.0]),  # nobody to compare with
    ],
)
def test_rows_that_are_not_made_alike_stay(rows: list[float], waits: list[float]) -> None:
    """A wait is added to no row where nothing shows that it is missing there."""
    assert _settled(_ranks(rows, waits)) == rows
