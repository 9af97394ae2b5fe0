"""Who owns an idle stretch: the host event behind it, not the loop around it."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.basics.intervals import Intervals
from advisor.facts.host.owners import Owners
from advisor.sources.streams.trace import Spans, Trace

NONE = np.zeros(0, np.int64)


def owners(
    *events: tuple[str, int, int],
    running: Intervals = (NONE, NONE),
    copies: Intervals = (NONE, NONE),
    launched: tuple[int, ...] = (),
) -> Owners:
    """Of host events (name, start, end) in a recording of 10 ms; times in microseconds."""
    start, end = (np.array([event[at] for event in events], np.int64) * 1000 for at in (1, 2))
    names = list(dict.fromkeys(event[0] for event in events))
    spans = Spans(start, end, np.array([names.index(event[0]) for event in events], np.int64), names)
    launches = np.array(launched, np.int64) * 1000
    trace = Trace([], launches, launches, {}, spans, (NONE, NONE), (NONE, NONE), (NONE, np.zeros(0)), copies=copies)
    return Owners(trace, running, 0, 10_000_000)


def running(*busy: tuple[int, int]) -> Intervals:
    """When the device ran, from and to in microseconds."""
    start, end = (np.array([one[at] for one in busy], np.int64) * 1000 for at in (0, 1))
    return start, end


def test_the_owner_is_the_most_specific_event() -> None:
    """A frame that lasts the whole run explains nothing; the event under it does."""
    found = owners(("main.py(1): <module>", 0, 10_000), ("aten::item", 100, 700), ("aten::mul", 900, 1000))
    assert found.of(150_000, 650_000)[0] == "aten::item"
    assert found.of(2_000_000, 3_000_000)[0] == ""


def test_who_waits_is_told_by_what_it_waits_for() -> None:
    """Taking a batch from a queue is no work that could be taken away: the function that asks for it says why."""
    asks = ("vllm/v1/engine/core.py(641): _process_input_queue", 0, 1000)
    waits = (("queue.py(154): get", 10, 990), ("<built-in method acquire of _thread.lock object at 0x7f>", 20, 980))
    assert owners(asks, *waits).of(0, 1_000_000)[0] == asks[0]


def test_a_thread_that_waits_for_callbacks_owns_nothing() -> None:
    """It waits from the start of the process to its end, whatever the loop does meanwhile."""
    calls = [("AscendCL@aclrtProcessReport", 0, 700), ("Runtime@ProcessReport", 1, 699)]
    assert owners(*calls, ("schedule", 50, 600)).of(0, 700_000)[0] == "schedule"
    assert owners(*calls).of(0, 700_000)[0] == ""


def test_an_owner_answers_for_what_it_covers_of_a_stretch() -> None:
    """A function that fills two thirds of a stretch leaves the rest of it to whatever follows."""
    assert owners(("schedule", 0, 600), ("prepare", 600, 900)).of(0, 900_000) == ("schedule", 600.0)


def test_calls_that_wait_for_the_device_own_a_stretch_in_which_it_idles() -> None:
    """Two dozen copies, each awaited, before the step; at its end the host waits until the device is done. A worker
    that is as busy while the device runs works beside the loop."""
    busy = running((0, 2000), (5000, 9000))
    for name, owner in (("AscendCL@aclrtSynchronizeStreamWithTimeout", True), ("loader.py(7): work", False)):
        calls = [(name, at, at + 90) for at in range(2000, 5000, 125)]
        found = owners(*calls, (name, 0, 1990), (name, 5100, 8900), running=busy).of(2_000_000, 5_000_000)
        assert found == ((name, 24 * 90.0) if owner else ("", 0.0))


def test_functions_of_which_none_owns_a_stretch_are_told_together() -> None:
    """Twenty callbacks behind one another, and what calls them: the inner ones say what is done. A few that leave most
    of the stretch to nobody tell nothing."""
    calls = [(f"callback_{i}", 100 * i, 100 * i + 80) for i in range(20)]
    around = [("hooks.py(3): before", 0, 900), ("hooks.py(9): behind", 1000, 1990)]
    assert owners(*calls).of(0, 2_000_000) == ("", 0.0)
    assert owners(*calls, *around).several(0, 2_000_000) == {name: 80.0 for name, _, _ in calls}
    assert owners(*calls[:10]).several(0, 2_000_000) == {}


def test_the_loop_around_the_work_owns_no_stretch_of_it() -> None:
    """The training loop lasts through idle and busy times alike; the device waits for the checkpoint that it writes."""
    busy = running((0, 2000), (5000, 9000))
    loop, save = ("main.py(375): train", 0, 10_000), ("torch/serialization.py(651): save", 2100, 4900)
    assert owners(loop, save, running=busy).of(2_000_000, 5_000_000)[0] == save[0]
    assert owners(loop, running=busy).of(2_000_000, 5_000_000)[0] == ""


def test_a_call_during_which_the_device_hardly_runs_owns_its_stretches() -> None:
    """Copies of a batch break the wait for the loader into pieces, each shorter than half of the call."""
    busy = running((0, 2000), (3000, 3050), (4000, 4050), (5000, 9000))
    loop, load = ("main.py(375): train", 0, 10_000), ("enumerate(DataLoader)#__next__", 1900, 5000)
    assert owners(loop, load, running=busy).of(3_050_000, 4_000_000)[0] == load[0]


def test_what_the_program_observes_of_itself_is_judged_alike() -> None:
    """MindSpore's observed functions own a stretch that makes most of them, and none of which they do much besides."""
    whole, one = "Python::PythonObserved::construct", "Python::PythonObserved::compute_loss_scale"
    found = owners((whole, 0, 10_000), (one, 100, 700), running=running((0, 100), (700, 5000), (5600, 10_000)))
    assert found.of(150_000, 650_000)[0] == one
    assert found.of(5_000_000, 5_600_000)[0] == ""


@pytest.mark.parametrize("launch", ["Node@launch", "AscendCL@aclrtLaunchKernelWithConfig", "Kernel::KernelLaunch::A/B"])
def test_launching_is_what_the_host_is_there_for(launch: str) -> None:
    """A host that is stopped within a launch runs no function that could be taken out of the step; the work that it
    launches is named where it is known."""
    assert owners((launch, 0, 1000)).of(100_000, 900_000)[0] == ""
    assert owners((launch, 0, 1000), ("aten::mm", 0, 1100)).of(100_000, 900_000)[0] == "aten::mm"


def test_many_calls_of_one_name_own_what_they_fill_together() -> None:
    """Twelve copies in a row keep the device waiting as one long copy would."""
    copies = [("aten::copy_", at, at + 95) for at in range(0, 1200, 100)]
    inner = [("acl_memcpy_host_to_device", at + 20, at + 75) for at in range(0, 1200, 100)]
    assert owners(*copies, *inner).of(0, 1_200_000) == ("aten::copy_", 1140.0)


def test_calls_within_calls_of_one_name_count_once() -> None:
    """A function that calls itself is not busy for twice as long."""
    nested = [("visit", at, at + 40 - inset) for at in (0, 100, 200) for inset in (0, 2)]
    assert owners(*nested).of(0, 300_000) == ("", 0.0)


def test_half_of_a_stretch_is_enough_and_less_is_not() -> None:
    """Where no name has half, naming one would accuse what leaves most of the stretch when it is gone."""
    half = [("encode", at, at + 250) for at in (0, 500)]
    assert owners(*half).of(0, 1_000_000) == ("encode", 500.0)
    assert owners(*half, ("decode", 750, 990)).of(0, 1_001_000) == ("", 0.0)


def test_of_two_names_the_one_with_less_to_do_elsewhere_owns_the_stretch() -> None:
    """A function that goes on after the stretch holds more than what the device waited for."""
    tokens = [("tokenize", at, at + 300) for at in (0, 330, 660)]
    prepare = [("prepare", at, at + 320) for at in (0, 330)] + [("prepare", 660, 1100)]
    assert owners(*prepare, *tokens, running=running((1000, 9000))).of(0, 1_000_000)[0] == "tokenize"


def test_a_thread_that_works_on_either_way_owns_no_stretch() -> None:
    """A loader's worker decodes image after image, whether the device runs or not."""
    images = [("decode_image", at, at + 180) for at in range(0, 10_000, 200)]
    assert owners(*images, running=running((0, 4000), (6000, 10_000))).of(4_000_000, 6_000_000) == ("", 0.0)


def test_without_host_events_nothing_is_known() -> None:
    """That is not the same as a stretch that none of them owns."""
    assert owners().of(0, 1_000_000)[0] is None


@pytest.mark.parametrize(("work_us", "owner"), [(95, "cpu_adam"), (45, "")])
def test_what_the_host_does_between_copies_owns_what_these_leave(work_us: int, owner: str) -> None:
    """States go to the host, an optimizer runs there, and they come back: the copies have a finding of their own."""
    work = (("aten::copy_", 0, 58), ("cpu_adam", 58, 58 + work_us), ("aten::copy_", 153, 207))
    assert owners(*work, copies=running((0, 58), (153, 207))).of(0, 207_000)[0] == owner


def test_what_a_caller_does_all_the_while_owns_the_stretch_that_its_calls_fill() -> None:
    """Six calls that compile fill the stretch: the operators that make them own none of it. An operator that does
    something else for a third of its time does."""
    busy = running((0, 1000), (9000, 10_000))
    for lasts, owner in ((1190, "AscendCL@aclopCompileAndExecuteV2"), (800, "aten::scatter_add")):
        starts = range(1000, 7600, 1300)
        calls = [("aten::scatter_add", at, at + 1200) for at in starts]
        calls += [("AscendCL@aclopCompileAndExecuteV2", at + 5, at + 5 + lasts) for at in starts]
        assert owners(*calls, running=busy).of(1_000_000, 9_000_000)[0] == owner


def test_a_function_that_outlasts_what_was_queued_owns_the_stretch_behind_it() -> None:
    """The device works through its queue while the host writes a log, then idles until the next launch. A loop that
    launches, a thread beside it, a wait for the device, and one of whose launches nothing is known own nothing."""
    busy, launched = running((0, 4000), (5000, 9900)), (100, 900, 4950, 8000)
    event = ("write", 1000, 4900)
    assert owners(event, running=busy, launched=launched).of(4_000_000, 5_000_000) == ("write", 900.0)
    synchronises = ("AscendCL@aclrtSynchronizeStream", 1000, 4900)
    beside = (event, ("write", 0, 990), ("write", 5100, 9900))
    for events, known in (
        ((event,), ()),
        ((event,), (100, 2000, 8000)),
        ((synchronises,), launched),
        (beside, launched),
        ((("write", 1000, 5100),), launched),
    ):
        assert owners(*events, running=busy, launched=known).of(4_000_000, 5_000_000) == ("", 0.0)
