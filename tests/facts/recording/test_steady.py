"""What of a recording without marks is set-up, and what repeats in the rest."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.recording.steady import find_repetition, find_steady

FORWARD, BACKWARD = [1, 2, 3, 3, 4] * 32, [5, 6, 7, 7, 8] * 32
STEP = [*FORWARD, 9, *BACKWARD, *[10] * 40]


def course(kinds, gaps=(), gap_us=5.0, kernel_us=10.0):
    """(kinds, start, end) of kernels one after another; `gaps` are (place, microseconds before it)."""
    before = [dict(gaps).get(i, gap_us) for i in range(len(kinds))]
    start = [int(1000 * each) for each in accumulate(wait + kernel_us for wait in before)]
    return np.array(kinds), np.array(start), np.array(start) + int(1000 * kernel_us)


def test_the_long_gap_before_a_first_launch_is_set_up():
    """A kernel that is compiled for 168 ms and then launched five times is judged by its launches."""
    found = find_steady(*course([0, 1, 0, 1, 2, 2, 2, 2, 2], [(4, 168_000)]))
    assert (found.first, found.last) == (4, 9)
    assert found.repetition is not None
    assert (found.repetition.length, found.repetition.executions) == (1, 5)


def test_a_stretch_full_of_kernels_is_no_set_up():
    """A server reads a prompt for as long as it then answers: the pause between is a few milliseconds, and what lies
    before it is work as well."""
    prompt, answer = [1, 2, 3] * 40, [4, 5] * 100
    found = find_steady(*course(prompt + answer, [(len(prompt), 6_000)], kernel_us=100.0))
    assert (found.first, found.last) == (0, len(prompt + answer))


def test_parameters_made_one_by_one_are_set_up():
    """Sixty kernels with the host's work before each, none for the first time, and then a loop of many steps."""
    layers = [*[1, 2, 3, 1, 4] * 6, *[5, 2, 6, 5, 4] * 6, *[7] * 6]
    found = find_steady(*course([0] * 60 + layers * 12, [(i, 8_000) for i in range(1, 60)], kernel_us=100.0))
    assert (found.first, found.last) == (60, 60 + 12 * len(layers))
    assert found.repetition is not None
    assert (found.repetition.length, found.repetition.executions) == (len(layers), 12)


def test_first_executions_that_warm_up_are_set_up():
    """The host launches slowly in the first two of twelve executions, and never again."""
    layers = [*[1, 2, 3, 1, 4] * 6, *[5, 2, 6, 5, 4] * 6, *[7] * 6]
    slow = [(i, 90.0) for i in range(2 * len(layers))]
    found = find_steady(*course(layers * 12, slow, kernel_us=100.0))
    assert found.first == 2 * len(layers)
    assert found.repetition is not None and found.repetition.executions == 10
    again = find_steady(*course(layers * 12, [*slow, *((i + 8 * len(layers), 90.0) for i, _ in slow)], kernel_us=100.0))
    assert again.first == 0


def test_what_keeps_the_device_busy_before_a_loop_is_judged_with_it():
    """As many kernels before it, one behind the other: a prompt that is read, say."""
    layers = [*[1, 2, 3, 1, 4] * 6, *[5, 2, 6, 5, 4] * 6, *[7] * 6]
    found = find_steady(*course([0] * 60 + layers * 12, kernel_us=100.0))
    assert found.first == 0
    assert found.repetition is not None


@settings(max_examples=60)
@given(st.integers(2, 40), st.integers(2, 40), st.integers(3, 9), st.integers(0, 30))
def test_a_sequence_is_found_though_each_of_its_kernels_comes_many_times(forward, backward, times, before):
    """Layers forward and backward, and updates of as many parameters: no kernel of the step is the only one of its
    kind, so that no distance between two of a kind need be the step's length."""
    step = [*[1, 2, 1, 3] * forward, *[4, 3, 1, 4, 2] * backward, *[5] * (forward + backward)]
    kinds = np.array([9] * before + step * times)
    assert find_repetition(kinds, np.full(len(kinds), 1000)) is not None


def test_a_long_gap_before_a_kernel_that_ran_before_is_a_pause():
    """It belongs to what is judged: nothing was launched for the first time behind it."""
    found = find_steady(*course(STEP * 4, [(2 * len(STEP), 168_000)]))
    assert found.first == 0
    assert found.idle_told


def test_launches_that_try_a_kernel_before_it_is_measured_are_set_up():
    """Five warm-up launches, a pause in which the script prepares, and then those that are measured."""
    found = find_steady(*course([1] * 65, [(5, 400_000)]))
    assert (found.first, found.last) == (5, 65)
    assert found.idle_told


def test_layers_of_one_step_are_no_loop():
    """Forward repeats its layers and backward repeats others: neither is most of the work."""
    assert find_repetition(np.array(STEP), np.full(len(STEP), 10)) is None


def test_what_is_compiled_all_along_tells_nothing_of_idle_time():
    """Half of the recording lies before first launches, and no part behind one of them holds most of the work."""
    kinds = [kind for kind in range(20) for _ in range(5)]
    found = find_steady(*course(kinds, [(5 * k, 20_000) for k in range(11, 20)]))
    assert not found.idle_told


def test_two_kernels_in_turn_are_told_with_the_length_of_the_whole():
    """Seven kernels, product and activation in turn and a product at the end, five times: pieces of five fit nearly."""
    kinds = np.array([1, 2, 1, 2, 1, 2, 1] * 5)
    found = find_repetition(kinds, np.full(len(kinds), 10))
    assert found is not None and (found.length, found.executions) == (7, 5)


def test_a_run_of_like_kernels_inside_a_graph_is_not_the_graph():
    """A convolutional network is 49 convolutions of 56 kernels: what is executed 20 times is the network."""
    network = [1, 2, 3, *[2] * 40, 4, 5, *[2] * 8, 6, 7, 1]
    found = find_repetition(np.array(network * 20), np.full(len(network) * 20, 100))
    assert found is not None and (found.length, found.executions) == (len(network), 20)


@settings(max_examples=40, deadline=None)
@given(
    phases=st.lists(st.tuples(st.integers(1, 6), st.integers(3, 20)), min_size=1, max_size=4),
    once=st.integers(0, 8),
)
def test_a_program_in_phases_repeats_in_its_parts(phases, once):
    """Each phase, such as generating and then updating, repeats its own kernels: no sequence is most of the work, and
    what ran once between the phases changes nothing as long as it is the smaller part."""
    kinds = [
        kind for i, (length, times) in enumerate(phases) for kind in [*(10 * i + k for k in range(length))] * times
    ]
    single = list(range(1000, 1000 + once))
    assert find_steady(*course([*single, *kinds])).repeats == (len(kinds) >= once)


def test_what_ran_once_repeats_nothing():
    """Kernels that all differ, or a pair of each, show no state of the program, however many they are."""
    assert not find_steady(*course([kind for kind in range(60) for _ in range(2)])).repeats


@settings(max_examples=60, deadline=None)
@given(
    sequence=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    times=st.integers(3, 12),
    before=st.lists(st.integers(10, 19), max_size=10),
)
def test_a_sequence_is_found_however_it_is_made(sequence, times, before):
    """What is executed again and again covers the recording but for what ran before it, whatever the sequence."""
    kinds = np.array([*before, *sequence * times])
    found = find_repetition(kinds, np.array([1] * len(before) + [100] * (len(sequence) * times)))
    assert found is not None
    assert len(sequence) % found.length == 0
    assert found.last - found.first >= len(sequence) * (times - 1)


@settings(max_examples=40, deadline=None)
@given(setup=st.lists(st.integers(10, 19), min_size=1, max_size=8), gap_ms=st.integers(20, 500))
def test_set_up_does_not_change_what_is_judged(setup, gap_ms):
    """Kernels before the long gap and its length move the judged part and change nothing in it."""
    alone = find_steady(*course([1, 2, 3] * 20))
    found = find_steady(*course([*setup, *[1, 2, 3] * 20], [(len(setup), gap_ms * 1000)]))
    assert found.last - found.first == alone.last - alone.first
    assert found.repetition is not None
    assert alone.repetition is not None
    assert found.repetition.executions == alone.repetition.executions
    assert pytest.approx(found.idle_told) == alone.idle_told


@pytest.mark.parametrize("script_us", [100.0, 250_000.0])
def test_kernels_measured_one_after_the_other_are_all_judged(script_us):
    """Fifty launches of each of five kernels: what the script does between two of them, however long, takes none of
    them away and is no compilation that hides the work."""
    kinds = [kind for kind in range(5) for _ in range(50)]
    found = find_steady(*course(kinds, [(50 * k, script_us) for k in range(5)]))
    assert found.in_a_row and found.idle_told and (found.first, found.last) == (0, 250)


def test_a_program_does_not_launch_its_kernels_in_a_row():
    """Layers and steps repeat sequences, among them runs of like kernels: that is no measuring of kernels."""
    assert not find_steady(*course(STEP * 4)).in_a_row
    network = [1, 2, 3, *[2] * 40, 4, 5, *[2] * 12, 6, 7, 1]
    for times in (1, 2, 20):
        assert not find_steady(*course(network * times)).in_a_row
