"""The wait before the first kernel: part of the step in every format, unless the device was still busy."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from clusters import SMALL, facts_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from advisor.facts.device.course import reduce_course
from advisor.facts.step.from_kernels import reduce
from advisor.facts.step.start_gap import _usual, settle, without_unknown_wait
from advisor.facts.step.times import StepTimes
from advisor.model import RUN
from advisor.pipeline import Options, measure
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from benchmarks.simulator import Fault, simulate


@dataclass
class Course:
    """What is needed of a rank's kernels."""

    steps: tuple[str, ...]
    lead_us: np.ndarray
    computing_us: np.ndarray
    span_us: np.ndarray


def rank(preparing, exposed=10.0, free=0.0, computing=90.0, steps=4, first=1):
    def row(value):
        return np.full(steps, float(value)) if np.isscalar(value) else np.array(value, float)

    phases = {"computing": row(computing), "exposed": row(exposed), "idle": row(free), "preparing": row(preparing)}
    time = phases["computing"] + phases["exposed"] + phases["idle"]
    return StepTimes(tuple(str(first + i) for i in range(steps)), time, phases, "steps")


def test_torch_rows_hold_the_wait_of_the_step_after_them():
    """A row runs to the next step's first kernel: `Preparing` is inside already, and only the last row lacks it. What
    each row idles and the last one does not tells so, of one rank as well."""
    (found,) = settle({0: rank([900, 40, 40, 40], free=[45, 45, 45, 5])}, {}, {0: "pytorch"}).values()
    assert found.time == pytest.approx([145] * 4)
    assert found.phases["idle"] == pytest.approx([45] * 4)
    assert found.phases["start_gap"] == pytest.approx([40] * 4)


def test_ranks_that_wait_differently_do_not_make_steps_of_twice_the_wait():
    """Loaders differ between ranks and each waits for the last one: rows are as long as one another, and longer with
    their own waits in place of the next step's, not beside them."""
    waits = np.array([[20, 19, 21, 21.5], [20.5, 20.7, 20.6, 21.7]])
    free = np.column_stack((waits[:, 1:], [0.1, 0.1]))
    tables = {r: rank(waits[r], free=free[r], exposed=24 - waits[r], computing=12) for r in (0, 1)}
    for found in settle(tables, {}, dict.fromkeys(tables, "pytorch")).values():
        assert found.time == pytest.approx([36] * 4, abs=0.2)


def test_a_pause_between_two_steps_is_counted_once():
    """What lies between two steps stands in one row, and goes to the step that it delays."""
    table = rank([40, 40, 440, 40], free=[45, 445, 45, 5])
    course = Course(tuple("1234"), np.array([np.nan, 40, 440, 40.0]), np.full(4, 90.0), np.full(4, 105.0))
    for kernels in ({}, {0: course}):
        (found,) = settle({0: table}, kernels, {0: "pytorch"}).values()
        assert found.time == pytest.approx([145, 145, 545, 145])


@given(st.lists(st.floats(0, 500), min_size=4, max_size=9))
def test_steps_of_any_waits_add_up_to_what_was_recorded(waits):
    """No wait is counted twice: from the first step's start to the last kernel, if the first waits no longer than
    others do."""
    waits = np.array(waits)
    waits[0] = min(waits[0], waits[1:].min())
    n, names = len(waits), tuple(str(1 + i) for i in range(len(waits)))
    course = Course(names, np.array([np.nan, *waits[1:]]), np.full(n, 90.0), np.full(n, 105.0))
    table = rank(waits, free=[*(5 + waits[1:]), 5], steps=n)
    (found,) = settle({0: table}, {0: course}, {0: "pytorch"}).values()
    assert found.time.sum() == pytest.approx(waits.sum() + n * 105.0)


@given(st.integers(4, 12), st.integers(2, 3), st.floats(20, 500))
def test_a_pause_behind_every_few_steps_is_counted_as_often_as_it_was_recorded(steps, every, pause):
    """A checkpoint behind every second or third step: nobody recorded one before the first, or behind the last."""
    waits = np.array([5.0 + pause * (i % every == 1) for i in range(steps)])
    waits[0] = 5.0
    names = tuple(str(1 + i) for i in range(steps))
    course = Course(names, np.array([np.nan, *waits[1:]]), np.full(steps, 90.0), np.full(steps, 105.0))
    on_host = np.full(steps, 5.0)  # the pause lies within the step before, and is no part of what prepares a step
    table = rank(on_host, free=[*(5 + waits[1:]), 5], steps=steps)
    (found,) = settle({0: table}, {0: course}, {0: "pytorch"}).values()
    recorded = int((waits > 5).sum())
    assert found.time.sum() == pytest.approx(steps * 110.0 + recorded * pause)


@pytest.mark.parametrize(
    ("waits", "first"), [([15, 57, 100, 131, 91], 91), ([9, 0.4, 10, 0.3, 9], 0.3), ([7, 4, 8], 7), ([9, 2], 2)]
)
def test_the_first_step_waits_as_the_others_usually_do(waits, first):
    """Waits of any length have a middle; pauses behind some steps and next to none behind others have not."""
    assert _usual(np.array([np.nan, *waits])) == first


@pytest.mark.parametrize(
    ("waits", "kept"),
    [([1, 68, 1, 62], 4), ([68, 1, 62], 3), ([60, 1, 61, 62], 4), ([1, 1, 1, 62], 5), ([50, 49, 52, 51], 5)],
)
def test_a_first_step_that_may_have_waited_long_or_not_is_no_sample(waits, kept):
    """Loader workers that deliver together serve every other step at once: what nobody recorded before the first one is
    neither of the two, and the mean is that of the waits that were recorded. A pause now and then is not usual."""
    count = len(waits) + 1
    names = tuple(str(1 + i) for i in range(count))
    course = Course(names, np.array([np.nan, *waits], float), np.full(count, 90.0), np.full(count, 100.0))
    table = rank(np.full(count, 900.0), free=[*waits, 0], steps=count)
    settled = settle({0: table}, {0: course}, {0: "pytorch"})
    (found,) = without_unknown_wait(settled, settled, {0: "pytorch"}).values()
    assert len(found.steps) == kept
    later = {0: settled[0].without(["1"], "warm-up")}
    assert without_unknown_wait(later, settled, {0: "pytorch"}) == later
    if kept == len(waits):
        assert found.time.mean() == pytest.approx(100 + np.mean(waits)) and found.excluded[0][0] == "1"


def test_kernels_tell_the_wait_where_the_table_has_no_column_for_it():
    """Tables of 2023 have no `Preparing`; the last row lacks its wait all the same."""
    table = rank(40, free=[45, 45, 45, 5])
    del table.phases["preparing"]
    course = Course(tuple("1234"), np.array([np.nan, 40, 40, 40.0]), np.full(4, 90.0), np.full(4, 105.0))
    (found,) = settle({0: table}, {0: course}, {0: "pytorch"}).values()
    assert found.time == pytest.approx([145] * 4)
    assert settle({0: table}, {}, {0: "pytorch"}) == {0: table}


def test_kernels_tell_rows_that_end_with_the_steps_own_kernels():
    """Where the row is the span of the step's own kernels, the step is longer by the wait before them."""
    course = Course(tuple("1234"), np.array([np.nan, 40, 40, 40.0]), np.full(4, 90.0), np.full(4, 100.0))
    (found,) = settle({0: rank(40)}, {0: course}, {0: "pytorch"}).values()
    assert found.time == pytest.approx([140] * 4)
    assert found.phases["start_gap"] == pytest.approx([40] * 4)


def test_mindspore_rows_contain_it_but_the_first():
    """Free is clipped to the step's window; before the first kernel of all there is none."""
    (found,) = settle({0: rank(40, free=[5, 45, 45, 45])}, {}, {0: "mindspore"}).values()
    assert found.phases["start_gap"] == pytest.approx([40] * 4)
    assert found.time == pytest.approx([145] * 4)


def test_a_pause_at_the_end_of_a_step_delays_the_one_after_it():
    """The step's window ends after the loop's own code, so MindSpore's row of the step before holds that wait; the row
    of the step that waits holds `Preparing` alone."""
    table = rank([5, 5, 5, 5], free=[10, 310, 10, 10])
    course = Course(tuple("1234"), np.array([np.nan, 5, 305, 5.0]), np.full(4, 90.0), np.full(4, 105.0))
    (found,) = settle({0: table}, {0: course}, {0: "mindspore"}).values()
    assert found.phases["start_gap"] == pytest.approx([5, 5, 305, 5])
    assert found.time == pytest.approx([110, 110, 410, 110])
    assert found.phases["idle"] == pytest.approx([10, 10, 310, 10])


def test_host_a_step_ahead_is_not_late():
    """Preparing as long as a step is the step before still running on the device."""
    times = {r: rank([0, 98, 99, 99]) for r in range(4)}
    found = settle(times, {}, dict.fromkeys(times, "pytorch"))
    assert all("start_gap" not in t.phases for t in found.values())
    assert all(t.time == pytest.approx([100] * 4) for t in found.values())


def test_ranks_that_wait_differently_tell_what_is_part_of_the_step():
    """Steps of one job are of one length: with the wait, or without it."""
    waits = [10, 50, 30, 20]
    inside = {r: rank(w, exposed=100 - w) for r, w in enumerate(waits)}
    beside = {r: rank(w, exposed=10) for r, w in enumerate(waits)}
    assert all(t.time == pytest.approx([190] * 4) for t in settle(inside, {}, {}).values())
    assert all(t.time == pytest.approx([100] * 4) for t in settle(beside, {}, {}).values())


def test_kernels_decide_where_there_are_some():
    """The device's own idle time stands before what the host's clock says."""
    course = Course(("1", "2", "3", "4"), np.array([np.nan, 3.0, 4.0, 3.0]), np.full(4, 90.0), np.full(4, 100.0))
    (found,) = settle({0: rank(95)}, {0: course}, {0: "pytorch"}).values()
    assert found.phases["start_gap"] == pytest.approx([3, 3, 4, 3])


def test_time_nobody_recorded_is_no_wait(tmp_path):
    """Between steps 2 and 11 lie eight that the schedule skipped: the kernels do not tell what happened there."""
    at = {1: 0.0, 2: 103.0, 11: 9e5, 12: 9e5 + 103}
    rows = [
        f"{step},{kind},{kind},AI_CORE,{1000 + start + later:.3f},50"
        for step, start in at.items()
        for kind, later in (("MatMul", 0), ("Add", 50))
    ]
    path = tmp_path / "kernel_details.csv"
    path.write_text("Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n" + "\n".join(rows) + "\n")
    kernels = Rank(0, tmp_path, {"kernels": TableRef("kernels", (path,), "kernels.csv")}, base=tmp_path)
    course, alone = reduce_course(kernels), reduce(kernels)
    assert course is not None and alone is not None
    assert [step.idle_us for step in alone.steps] == pytest.approx([3, 0, 3, 0])
    one = structs.replace(rank(5, computing=100), steps=("1", "2", "11", "12"))
    (found,) = settle({0: one}, {0: course}, {0: "pytorch"}).values()
    assert found.phases["start_gap"] == pytest.approx([3, 3, 3, 3])


def test_lone_step_stays_as_its_table_tells_it():
    """Nothing recorded before it shows whether the device waited, unless its peers waited for it as much longer."""
    times = {r: rank(w, exposed=100, steps=1, first=50) for r, w in enumerate([10, 50])}
    found = settle(times, {}, dict.fromkeys(times, "pytorch"))
    assert [t.time[0] for t in found.values()] == pytest.approx([190, 190])
    assert all("start_gap" not in t.phases for t in found.values())


def test_one_row_for_a_whole_recording_has_no_step_to_start():
    """Its Preparing is everything before the first kernel of the run."""
    one = structs.replace(rank(5e6, steps=1), steps=("0",))
    (found,) = settle({0: one}, {}, {0: "pytorch"}).values()
    assert found.time == pytest.approx([100])


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
@pytest.mark.parametrize("kernels", [True, False])
def test_slow_storage_is_in_the_step_of_both_frameworks(tmp_path, framework, kernels):
    """All ranks wait alike before each step, and the step is as long as the run divided by its steps."""
    scenario = replace(SMALL, faults=(Fault("slow_storage", 0, 0.4),), framework=framework, kernels=kernels, steps=6)
    facts, _ = facts_of(scenario, tmp_path)
    run = simulate(scenario)
    assert facts.value("step.time_us", RUN) == pytest.approx(run.mean_us, rel=0.03)
    assert facts.value("step.start_gap_us", RUN) == pytest.approx(run.spans[2][0].data_wait, rel=0.1)


def test_the_order_of_the_rows_means_nothing(tmp_path):
    """The first recorded step is told by its number, wherever its row stands."""
    before, _ = facts_of(SMALL, tmp_path)
    for table in tmp_path.rglob("step_trace_time.csv"):
        heading, first, *rows = table.read_text().splitlines()
        table.write_text("\n".join([heading, *rows[::-1], first, ""]))
    after = measure([tmp_path], ["step.time_us", "step.start_gap_us"], Options(jobs=1)).facts
    for name in ("step.time_us", "step.start_gap_us"):
        assert after.value(name, RUN) == pytest.approx(before.value(name, RUN))


def test_a_last_row_that_idles_as_long_as_the_others_shows_no_wait_before_steps():
    """Decoding: the host prepares the next token while the device runs, and the device idles between a step's own
    kernels. The last row, which nothing follows, idles as long: the steps are as long as their rows, the first as
    well, and nobody says that they wait before their first kernels."""
    table = rank([1220, 1100, 1110, 1120, 1090], free=[450, 500, 470, 490, 495], computing=1225, exposed=0, steps=5)
    assert settle({0: table}, {}, {0: "pytorch"}) == {0: table}


def test_a_rank_that_idles_between_its_kernels_is_read_like_those_that_do_not():
    """It tells for all of them that their rows hold no wait before steps: ranks read in two ways are not compared."""
    ranks = {n: rank([0.5] * 4, free=0.2) for n in range(3)} | {3: rank([0.5] * 4, free=30.0, computing=60.2)}
    assert not any(one.gap_from for one in settle(ranks, {}, {}).values())
