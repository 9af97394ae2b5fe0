"""Shares of the interval between batches at the edges of a recording, and beyond what edges explain."""

from __future__ import annotations

import pytest

from advisor.facts.base import FactSet
from advisor.facts.data.batches import BatchTimes
from advisor.facts.data.loading import DataPipeline
from advisor.facts.data.network import feeding_of
from advisor.facts.data.pipeline import rank_facts
from advisor.facts.recording.bounds import beyond
from advisor.model import RUN

SHARES = ("push_share", "pipeline_wait_share", "device_wait_share")


def shares_of(part_us: float, interval_us: float, batches: int) -> dict[str, float]:
    """What a recording whose sending thread pushes, waits and rests for so long per batch tells of its interval."""
    times = BatchTimes("sink", batches, step_mean_us=interval_us, push_us=part_us, wait_us=part_us, steady=batches)
    data = DataPipeline("sink", batches, interval_us, times, {}, device_wait_us=part_us, produced=batches)
    found = {item.name: item.value for item in rank_facts(RUN, feeding_of(0, data, None, FactSet()))}
    return {name: float(found[f"data.{name}"]) for name in SHARES}


@pytest.mark.parametrize(("batches", "ahead"), [(12, 1), (60, 4), (61, 10), (500, 16)])
def test_batches_sent_ahead_of_the_first_step_leave_all_of_the_interval_and_no_more(batches: int, ahead: int) -> None:
    """A thread that sends all the time sends `ahead` batches before the steps' span begins."""
    push = 17_000.0
    shares = shares_of(push, push * (batches - ahead) / batches, batches)
    assert shares == dict.fromkeys(SHARES, 1.0)


@pytest.mark.parametrize("times", [1.6, 40.0, 1000.0])
def test_what_no_edge_explains_is_damage(times: float) -> None:
    """Another unit, or the batches of another file, are not made into a saturated sender."""
    for name, value in shares_of(times * 5_000.0, 5_000.0, 60).items():
        assert value == pytest.approx(times)
        assert beyond(f"data.{name}", "ratio", value)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.97])
def test_shares_below_all_of_it_are_left_alone(part: float) -> None:
    """Only what exceeds the interval is cut to it."""
    assert shares_of(part * 8_000.0, 8_000.0, 60) == dict.fromkeys(SHARES, pytest.approx(part))
