"""Laws of the time axis: unions, steps and the time alone add up, whatever the kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.intervals import measure
from advisor.facts.device.kernel_time import Timeline, Windows, alone_us, busy, only_us, sweep, timeline_of
from advisor.facts.step.from_kernels import reduce
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from advisor.sources.streams.kernels import Kernels, Signature

SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), st.booleans()), min_size=1, max_size=40)


def timeline(spans: list[tuple[int, int, bool]]) -> tuple[Timeline, np.ndarray]:
    spans = sorted(spans)
    start = np.array([s for s, _, _ in spans], np.int64)
    us = np.array([d for _, d, _ in spans], float)
    zero = np.zeros(len(spans), np.int64)
    kernels = Kernels(
        start, start + (us * 1000).astype(np.int64), us, zero, zero, zero, zero, us, us,
        [Signature("Mul", "AI_VECTOR_CORE", *[""] * 6)], ["Mul"], ["0"], ["2"], {}, {},
    )  # fmt: skip
    windows = Windows(("0",), start[:1], kernels.end.max(keepdims=True), zero)
    mine = np.array([flag for _, _, flag in spans])
    return Timeline(kernels, np.zeros(len(spans), bool), windows), mine


@given(SPANS)
def test_all_kernels_together_are_the_union(spans: list[tuple[int, int, bool]]) -> None:
    """Summed kernel time is not wall time: what all of them cover is the union of their intervals."""
    time, _ = timeline(spans)
    everything = only_us(time, sweep(time.kernels), np.ones(len(spans), bool))
    assert everything.sum() == pytest.approx(measure(busy(time)) / 1000)


@given(SPANS)
def test_parts_never_exceed_the_whole(spans: list[tuple[int, int, bool]]) -> None:
    """A set alone, the others alone and both at once make the union; no kernel is alone longer than it runs."""
    time, mine = timeline(spans)
    segments = sweep(time.kernels)
    ours, theirs = only_us(time, segments, mine).sum(), only_us(time, segments, ~mine).sum()
    both = measure(busy(time, mine)) / 1000 - ours
    assert ours + theirs + both == pytest.approx(measure(busy(time)) / 1000)
    alone = alone_us(time.kernels, segments)
    assert (alone <= time.kernels.duration + 1e-9).all()
    assert alone[mine].sum() <= ours + 1e-9


HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"


def rank_with(tmp_path: Path, *rows: str) -> Rank:
    path = tmp_path / "kernel_details.csv"
    path.write_text(HEADING + "\n".join(rows) + "\n")
    return Rank(0, tmp_path, {"kernels": TableRef("kernels", (path,), "kernels.csv")}, base=tmp_path)


def test_steps_are_recomputed_by_unions(tmp_path: Path) -> None:
    """Without step_trace_time.csv: computing, exposed communication and idle add up to the step."""
    rank = rank_with(
        tmp_path,
        "1,MatMul,MatMul,AI_CORE,100.000,50,0",
        "1,Mul,Mul,AI_VECTOR_CORE,120.000,60,0",
        "1,hcom_allReduce_1,hcom_allReduce_,HCCL,170.000,40,0",
        "2,MatMul,MatMul,AI_CORE,300.000,50,90",
    )
    found = reduce(rank)
    assert found is not None
    first, second = found.steps
    assert (first.step, first.computing_us, first.exposed_us, first.idle_us) == ("1", 80.0, 30.0, 90.0)
    assert first.communication_us == 40.0 and (second.step, second.idle_us) == ("2", 0.0)


def test_hand_picked_rows_have_no_idle_time(tmp_path: Path) -> None:
    """Rows taken out of a profile keep their waiting times; a gap that contradicts them is no idle time."""
    rank = rank_with(
        tmp_path,
        "1,MatMul,MatMul,AI_CORE,1000.000,50,1",
        "1,MatMul,MatMul,AI_CORE,900000.000,50,2",
        "1,MatMul,MatMul,AI_CORE,2900000.000,50,1",
    )
    assert reduce(rank) is None
    time = timeline_of(rank)
    assert time is not None and not time.whole
    assert any("missing between the rows" in p.problem for p in rank.problems)


@pytest.mark.parametrize(("gap", "whole"), [(600, False), (20, True)])
def test_few_lost_rows_may_be_the_long_ones(tmp_path: Path, gap: int, whole: bool) -> None:
    """Four of 400 kernels without a duration, and four gaps: of 0.6 ms they are a twentieth of the 42 ms, and nobody
    knows whether nothing ran in them."""
    at, rows = 0, []
    for n in range(396):
        rows.append(f"1,Mul,Mul,AI_VECTOR_CORE,{at}.000,100,{0 if n % 100 else gap}")
        at += 100 if (n + 1) % 100 else 100 + gap
    rows += [f"1,Mul,Mul,AI_VECTOR_CORE,{5000 * n + 2050}.000,N/A,0" for n in range(4)]
    time = timeline_of(rank_with(tmp_path, *rows))
    assert time is not None and time.whole is whole


def test_collectives_note_no_waiting(tmp_path: Path) -> None:
    """Rows of collectives carry a waiting time of 0 however long nothing ran before them: no kernel is missing."""
    rows = []
    for number in range(6):
        at = 10_000 * number
        rows += [f"1,MatMul,MatMul,AI_CORE,{at + 1000}.000,50,{8900 if number else 0}",
                 f"1,hcom_allReduce_{number},hcom_allReduce_,COMMUNICATION,{at + 2000}.000,50,0"]  # fmt: skip
    time = timeline_of(rank_with(tmp_path, *rows))
    assert time is not None and time.whole


def test_a_profile_with_real_gaps_is_whole(tmp_path: Path) -> None:
    """The same gaps, noted by the profiler as waiting, are idle time."""
    rank = rank_with(tmp_path, "1,MatMul,MatMul,AI_CORE,1000.000,50,0", "1,MatMul,MatMul,AI_CORE,900000.000,50,898950")
    found = reduce(rank)
    assert found is not None and found.steps[0].idle_us == pytest.approx(898950)
