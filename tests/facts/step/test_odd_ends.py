"""The ends of a recording: what of them is no whole, usual step."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from step_times import times

from advisor.facts.device.course import Course
from advisor.facts.step.odd_ends import (
    behind_warm_up,
    following_nothing,
    moved_ranks,
    without_cut_end,
    without_cut_start,
    without_drain,
    without_open_end,
    without_short_start,
    without_unwaited_ends,
    without_warm_up,
)
from advisor.facts.step.times import StepTimes


def test_the_pause_behind_a_first_execution_that_serves_is_warm_up():
    """A model is run once, then measured: the pause between is no part of how long an execution takes. In training a
    slow second step is a slow step."""
    paused = StepTimes(
        tuple("012345"),
        np.array([20.0, 1800, 20, 21, 20, 20]),
        {"start_gap": np.array([0, 1780.0, 0, 0, 0, 0])},
        "kernels",
    )
    assert without_warm_up(paused, serves=True).steps == tuple("2345")
    assert without_warm_up(paused).steps == tuple("012345")


def test_a_first_step_that_nobody_waited_in_follows_nothing() -> None:
    """One rank logs after each step and the others wait for it in the next one: the first recorded step has none
    before it, and is shorter on all that wait. Steps of different length on all ranks alike tell nothing."""

    def of(*ms: float) -> StepTimes:
        return StepTimes(("11", "12", "13", "14"), np.array(ms) * 1000, {}, "steps")

    logging, waiting = of(91.5, 91, 91, 91), of(76, 91.6, 90.9, 90.7)
    found = following_nothing({0: logging, 1: waiting, 2: waiting})
    assert {one.steps for one in found.values()} == {("12", "13", "14")}
    # stages of a pipeline whose last row reaches to its own last kernel
    fed = {rank: StepTimes(("1", "2", "3"), np.array(ms) * 1000, {}, "steps") for rank, ms in
           enumerate(([90, 90, 90], [86, 90, 90], [67, 90, 104.0]))}  # fmt: skip
    assert {one.steps for one in following_nothing(fed).values()} == {("2", "3")}
    for one in fed.values():
        one.time[0] = max(one.time[0], 80_000)  # of three steps none is left out for a tenth
    assert following_nothing(fed) == fed
    for others in (
        {1: waiting, 2: waiting},
        {0: of(91, 91, 76, 91), 1: waiting},
        {0: of(91.5, 91, 91, 91), 1: logging},
    ):
        assert following_nothing(others) == others


def test_windows_of_a_host_that_ran_ahead_are_left_out():
    """MindSpore's first rows hold what the device had done of a step when the host's window ended: no step is so
    short. Where one rank alone computes longer from the middle on, its card failed and all steps are kept."""
    short = times([12, 45, 117, 116, 117], [0, 54, 121, 121, 121], [0, 0, 1, 1, 1])
    named = {0: "mindspore", 1: "mindspore", 2: "mindspore"}
    kept = without_short_start({0: short, 1: short}, named)
    assert [one.steps for one in kept.values()] == [("2", "3", "4")] * 2
    failing = times([50, 50, 117, 116, 117], [0] * 5, [0] * 5)
    waiting = times([50] * 5, [0, 0, 67, 66, 67], [0] * 5)
    assert [one.steps for one in without_short_start({0: failing, 1: waiting, 2: waiting}, named).values()] == [
        failing.steps
    ] * 3
    device = {0: "pytorch", 1: "pytorch"}
    assert without_short_start({0: short, 1: short}, device)[0].steps == short.steps


def test_the_last_step_of_a_rank_that_others_go_on_from_is_no_whole_step() -> None:
    """Marks that end early leave all later work in the last step, rows that end early a part of one: either way its
    length says nothing. Ranks that end alike keep theirs."""
    whole = times([50, 50, 50, 50, 50], [50] * 5, [0] * 5)
    early = StepTimes(whole.steps[:4], np.array([50.0, 50, 50, 350]) * 1000, {}, "steps")
    kept = without_open_end({0: early, 1: whole})
    assert {rank: one.steps for rank, one in kept.items()} == {0: early.steps[:3], 1: whole.steps}
    assert without_open_end({0: whole, 1: whole})[0].steps == whole.steps


def test_a_last_step_like_the_others_is_whole_wherever_other_ranks_end() -> None:
    """Ranks that recorded from step 0 to 4 and from 2 to 6 all have whole steps; what is computed has to tell so."""
    first = times([50, 51, 50, 50, 51], [49, 50, 49, 49, 50], [0] * 5)
    second = StepTimes(("2", "3", "4", "5", "6"), first.time, first.phases, "steps")
    kept = without_open_end({0: first, 1: second})
    assert [one.steps for one in kept.values()] == [first.steps, second.steps]
    for lengths, computed in (([50, 50, 50, 50, 40], [49] * 5), ([50, 51, 50, 50, 50], [49, 49, 49, 49, 30])):
        cut = times(lengths, computed, [0] * 5)
        assert without_open_end({0: cut, 1: second})[0].steps == cut.steps[:4]


def test_a_first_step_whose_pause_comes_again_is_no_warm_up() -> None:
    """What a later step stands still for as well is a pause of the run, and counts. A first step that computes longer,
    or whose standing still is not found again, was warm-up; batches of several lengths compute longer again."""
    pausing = times([30, 30, 30, 30], [1, 1, 1, 1], [23, 1, 14, 1])
    assert without_warm_up(pausing).steps == pausing.steps
    waiting = times([30, 30, 30, 30], [24, 1, 15, 1], [1, 1, 1, 1])
    assert without_warm_up(waiting).steps == waiting.steps
    lengths = times([55, 30, 55, 30, 55], [1] * 5, [1] * 5)
    assert without_warm_up(lengths).steps == lengths.steps
    for warming in (
        times([55, 30, 55, 30, 30], [1] * 5, [1] * 5),
        times([30, 30, 30, 30], [1, 1, 1, 1], [60, 1, 14, 1]),
        times([60, 30, 30, 30], [1, 1, 1, 1], [20, 1, 14, 1]),
        times([30, 30, 30, 30], [1, 1, 1, 1], [23, 1, 1, 1]),
    ):
        assert without_warm_up(warming).steps == warming.steps[1:]


def test_what_warms_up_behind_a_compiling_step_belongs_to_it() -> None:
    """All ranks but one only wait in the first step; the second, in which every one of them stands still, is no pause
    of the run either. Without a first that was warm-up, or where a later step is longer as well, it counts."""

    def run(second: float, later: float, first: float = 300.0) -> dict[int, StepTimes]:
        lengths = [first, second, 30, 30.5, later, 30, 30.2]
        ranks = {rank: _rows(lengths, [*([first] if rank == 0 else [29.0]), *lengths[1:]]) for rank in range(4)}
        return {rank: without_warm_up(one) for rank, one in ranks.items()}

    assert {one.steps[0] for one in behind_warm_up(run(90, 30)).values()} == {"2"}
    for counting in (run(90, 55), run(31, 30), run(90, 30, first=30)):
        assert behind_warm_up(counting) == counting


def test_a_window_without_the_wait_that_all_others_have_is_no_whole_step() -> None:
    """The profiler tells idle time between kernels: none before the first of all, none behind the last. Where others
    wait differently, or it computes less, or the rows are no windows on the host, it stays."""

    def waits(*idle: float, computing: float = 20.0) -> StepTimes:
        work = np.array([computing, *[20.0] * (len(idle) - 1)])
        phases = {"computing": work, "idle": np.array(idle)}
        return StepTimes(tuple("01234567"[: len(idle)]), work + idle, phases, "steps")

    assert without_unwaited_ends(waits(0.5, 9.0, 9.2, 8.9), "mindspore").steps == tuple("123")
    assert without_unwaited_ends(waits(9.1, 9.0, 9.2, 0.2), "mindspore").steps == tuple("012")
    assert without_unwaited_ends(waits(9.1, 9.0, 0.2), "mindspore").steps == tuple("01")
    for whole in (
        waits(0.5, 9.0, 4.0, 8.9),
        waits(0.5, 9.0, 9.2, 8.9, computing=9.0),
        waits(0.5, 9.0),
        waits(1, 2, 2.1),
    ):
        assert without_unwaited_ends(whole, "mindspore") == whole
    assert without_unwaited_ends(waits(0.5, 9.0, 9.2, 8.9), "pytorch").steps == tuple("0123")


def _rows(lengths: list[float], computing: list[float]) -> StepTimes:
    names = tuple(str(number) for number in range(len(lengths)))
    exposed = np.array(lengths) - computing
    return StepTimes(names, np.array(lengths), {"computing": np.array(computing), "exposed": exposed}, "steps")


def _course(spans: list[float]) -> Course:
    """Steps that compute half of their span and communicate for the rest of it."""
    half, nothing = np.array(spans) / 2, np.zeros(len(spans))
    names = tuple(str(number) for number in range(len(spans)))
    return Course(names, half, nothing, nothing, nothing, half, nothing.astype(int), {})


@given(st.floats(0.05, 0.5), st.floats(1e2, 1e6), st.integers(2, 8))
def test_a_last_row_that_holds_its_own_drain_is_no_step(drain: float, step: float, count: int) -> None:
    """A host that runs ahead lets each step's last collectives run beside the next step; the last one runs them alone,
    and its row is longer by them. Where no step reaches into the next one, all rows are alike and all stay."""
    spans = [step * (1 + drain)] * count
    rows = _rows([step] * (count - 1) + [spans[-1]], [step / 2] * count)
    assert without_drain(rows, _course(spans), "pytorch").steps == rows.steps[:-1]
    assert without_drain(rows, _course(spans), "mindspore").steps == rows.steps  # windows on the host
    even = _rows([step] * count, [step / 2] * count)
    assert without_drain(even, _course([step] * count), "pytorch").steps == even.steps


def test_a_last_step_that_is_slow_without_its_drain_is_kept() -> None:
    """It is what the engineer looks for."""
    rows = _rows([100.0] * 4 + [210.0], [50.0] * 5)
    assert without_drain(rows, _course([110.0] * 4 + [210.0]), "pytorch").steps == rows.steps


@given(st.floats(0.05, 0.3), st.integers(4, 8), st.integers(1, 5))
def test_rows_moved_against_the_steps_are_whole_together(part: float, count: int, peers: int) -> None:
    """What the first row lacks the last one has: their mean is that of whole steps. Where the last row alone is longer,
    or the first alone shorter, they are not."""
    even = [100.0 + i for i in range(count)]
    moved = [even[0] - 100 * part, *even[1:-1], even[-1] + 100 * part]
    half = [50.0] * count
    ranks = {rank: _rows(even, half) for rank in range(peers)} | {peers: _rows(moved, half)}
    assert moved_ranks(ranks) == {peers}
    assert following_nothing(ranks)[peers].steps == ranks[peers].steps
    for other in ([*even[:-1], moved[-1]], [moved[0], *even[1:]]):
        assert not moved_ranks(ranks | {peers: _rows(other, half)})
    late = following_nothing({0: _rows([97.0, *even[1:]], half), 1: _rows([moved[0] - 3, *even[1:]], half)})
    assert [t.steps for t in late.values()] == [ranks[0].steps[1:]] * 2


def test_a_drain_is_seen_without_kernels() -> None:
    """What the first step computed beside the second stands in the second's row: the first computes less, and the last
    as much more. A last step that alone computes more has more work."""
    drained = _rows([23.4, 23.5, 23.5, 31.8], [10.2, 15.3, 15.3, 20.4])
    assert without_drain(drained, None, "pytorch").steps == ("0", "1", "2")
    harder = _rows([23.4, 23.5, 23.5, 31.8], [15.3, 15.3, 15.3, 20.4])
    assert without_drain(harder, None, "pytorch").steps == harder.steps


def test_a_usual_step_behind_slow_ones_is_whole() -> None:
    """It is short against the slow ones and computes as much as they do; one that the end of the collection cut
    computes less."""
    burst = _rows([117.0, 115, 475, 470, 115], [60.0] * 5)
    assert without_cut_end(burst).steps == burst.steps
    cut = _rows([117.0, 115, 116, 117, 40], [60.0] * 4 + [20.0])
    assert without_cut_end(cut).steps == cut.steps[:-1]
    waits_first = _rows([95.0, 95, 95, 50], [63.0] * 3 + [20.0])
    assert without_cut_end(waits_first).steps == waits_first.steps[:-1], "cut in its middle, behind its wait for data"
    waits_longer = _rows([95.0, 95, 95, 90], [63.0] * 3 + [20.0])
    assert without_cut_end(waits_longer).steps == waits_longer.steps, "as long as any"


@given(st.integers(60, 2000), st.floats(0.02, 0.45), st.integers(2, 6))
def test_a_first_step_that_the_collection_began_in_is_no_step(kernels: int, part: float, count: int) -> None:
    """It has few of the kernels that all others have, and is shorter. Where the last row has what the first lacks,
    where steps differ anyway, or where the first is as long as any, it stays."""

    def course(counts: list[int]) -> Course:
        return structs.replace(_course([100.0] * len(counts)), kernels=np.array(counts))

    few, others = int(part * kernels), [kernels] * count
    rows = _rows([60.0] + [100.0] * count, [30.0] + [60.0] * count)
    assert without_cut_start(rows, course([few, *others])).steps == rows.steps[1:]
    most, unlike = int(0.7 * kernels), [kernels] * (count - 1) + [int(1.1 * kernels)]
    assert without_cut_start(rows, course([most, *others])).steps == rows.steps[1:], "all others run the same kernels"
    assert without_cut_start(rows, course([most, *unlike])).steps == rows.steps
    uneven = [kernels] * (count - 1) + [3 * kernels]
    for counts in ([*others, kernels], [few, *others[1:], 2 * kernels - few], [few, *uneven], [few, few, *others[1:]]):
        assert without_cut_start(rows, course(counts)).steps == rows.steps
    long = _rows([100.0] * (count + 1), [30.0] + [60.0] * count)
    assert without_cut_start(long, course([few, *others])).steps == long.steps
    missing = structs.replace(course([few, *others]), complete=False)
    assert without_cut_start(rows, missing).steps == without_cut_start(rows, None).steps == rows.steps
