"""Recordings without a schedule: one row, whose steps are its batches; and the loop's own code between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from advisor.facts.data.getnext import GetNext
from advisor.facts.host.graph_calls import own_code_us
from advisor.facts.step.from_kernels import KernelSteps
from advisor.facts.step.times import StepTimes
from advisor.facts.step.whole_recording import by_batch
from advisor.sources.streams.trace import Spans, Trace


@dataclass(frozen=True)
class Pipeline:
    mode: str
    batches: int


def row(**phases: float) -> StepTimes:
    return StepTimes(("0",), np.array([600.0]), {k: np.array([v]) for k, v in phases.items()}, "steps")


def test_the_only_row_is_divided_by_its_batches() -> None:
    """Sixty batches in one row: every figure of a step is a sixtieth."""
    found = by_batch({0: row(computing=420.0, idle=180.0)}, {0: Pipeline("iterator", 60)}, {}, {})[0]
    assert found.time.tolist() == [10.0] and found.phases["idle"].tolist() == [3.0]
    assert (found.covers, found.recorded) == (60, 60)


def test_where_batches_are_sunk_the_device_counts_its_steps() -> None:
    """The sender is a hundred batches ahead; without GetNext among the kernels nobody knows the number of steps."""
    times, data = {0: row(computing=600.0)}, {0: Pipeline("sink", 160)}
    assert by_batch(times, data, {0: GetNext(60, 1.0, 0.0, (), 5.0)}, {})[0].covers == 60
    assert by_batch(times, data, {0: GetNext(60, None, None, ())}, {})[0].covers == 1


@pytest.mark.parametrize(("waited", "step_us", "idle_us"), [(4, 20.0, 0.0), (11, 30.0, 10.0), (0, 30.0, 10.0)])
def test_what_the_device_waits_for_a_pipeline_that_starts_is_no_part_of_a_step(
    waited: int, step_us: float, idle_us: float
) -> None:
    """Of twenty fetches the first four wait for 50 us, a third of the recording: no later step loses that. Where most
    fetches wait, all of them count, and so does idle time that no fetch explains."""
    lasts = np.array([50.0] * waited + [0.0] * (20 - waited))
    starts = np.cumsum(20.0 + lasts) - lasts
    fetch = GetNext(20, 0.0, 0.0, (), 200.0, starts, starts + lasts)
    times = {0: row(computing=400.0, idle=200.0)}
    found = by_batch(times, {0: Pipeline("sink", 20)}, {0: fetch}, {})[0]
    assert found.time.tolist() == pytest.approx([step_us]) and found.phases["idle"].tolist() == pytest.approx([idle_us])


@pytest.mark.parametrize(("passes", "covers"), [(0, 1), (80, 1), (157, 157), (160, 160), (161, 1), (320, 1)])
def test_passes_of_the_kernels_count_the_steps_where_they_are_the_batches(passes: int, covers: int) -> None:
    """A pass of two steps comes half as often as batches are sent, that of a layer more often."""
    times, data = {0: row(computing=600.0)}, {0: Pipeline("sink", 160)}
    assert by_batch(times, data, {}, {0: KernelSteps((), (), passes=passes)})[0].covers == covers


def test_a_recording_with_collectives_stays_one_row() -> None:
    """What is known of collectives is per recording, and shares of a step would not fit."""
    times = {0: row(computing=500.0, exposed=100.0)}
    assert by_batch(times, {0: Pipeline("iterator", 60)}, {}, {})[0].covers == 1


def trace(*events: tuple[str, int, int]) -> Trace:
    names = list(dict.fromkeys(name for name, _, _ in events))
    start, end = (np.array([e[i] for e in events], np.int64) for i in (1, 2))
    empty = np.empty(0, np.int64)
    spans = Spans(start, end, np.array([names.index(n) for n, _, _ in events], np.int64), names)
    return Trace([], empty, empty, {}, spans, (empty, empty), (empty, empty), (empty, np.empty(0)))


def test_idle_time_in_no_call_is_the_loops_own_code() -> None:
    """The device idles from 6 to 16 us; the loop is in GetNext for three of them, a worker beside it does not count."""
    events = (
        ("RunGraph", 0, 5_000), ("Dataset::Pipeline::GetNext", 7_000, 10_000),
        ("Dataset::MapOp(ID:1)::WorkerProcess", 0, 30_000), ("RunGraph", 15_000, 20_000),
    )  # fmt: skip
    gap = np.array([6_000]), np.array([16_000]), np.array([0])
    found = own_code_us(trace(*events), *gap, 1)
    assert found is not None and found[0] == pytest.approx(6.0)
    assert own_code_us(trace(("aten::mul", 0, 5_000)), *gap, 1) is None
    last = own_code_us(trace(*events), *gap, 2)
    assert last is not None and np.isnan(last[1]), "no kernel shows for how long the loop goes on behind the last step"
