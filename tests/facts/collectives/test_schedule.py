"""The pipeline's schedule, run from the stages' work, keeps its known bounds."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.facts.collectives.schedule import _order, evened, guess_micro_batches, in_flight, pipeline_us
from advisor.facts.device.chain import Chain

WORK = st.lists(st.floats(10, 1000), min_size=1, max_size=6)


@pytest.mark.parametrize(("stages", "micro", "chunks"), [(3, 6, 2), (4, 8, 2), (4, 16, 4)])
def test_chunks_divide_the_bubble_of_equal_stages(stages, micro, chunks):
    """(p − 1) ÷ v micro-batches are bubble (Megatron's interleaved schedule)."""
    whole = pipeline_us([900.0] * stages, micro, chunks=chunks)
    assert whole == pytest.approx(900.0 * (1 + (stages - 1) / (micro * chunks)))


@given(st.floats(10, 1000), st.integers(1, 6), st.integers(1, 24))
def test_equal_stages_have_the_bubble_of_the_books(work, stages, micro):
    """(p − 1) ÷ (m + p − 1) of the step is bubble."""
    whole = pipeline_us([work] * stages, micro)
    assert 1 - work / whole == pytest.approx((stages - 1) / (micro + stages - 1), abs=1e-9)


@given(WORK, st.integers(1, 24))
def test_no_faster_than_its_busiest_stage_no_slower_than_one_by_one(work, micro):
    """The busiest stage and the way of one micro-batch bound the step from below, everything in turn from above."""
    whole = pipeline_us(work, micro)
    assert whole >= max(max(work), sum(work) / micro) - 1e-6
    assert whole <= sum(work) + 1e-6


@given(WORK, st.integers(1, 24), st.integers(0, 5), st.floats(0, 500))
def test_a_slower_stage_costs_no_more_than_what_it_has_more(work, micro, stage, more):
    """The step grows by at most what the stage does, and never shrinks."""
    slower = list(work)
    slower[stage % len(work)] += more
    grown = pipeline_us(slower, micro) - pipeline_us(work, micro)
    assert -1e-6 <= grown <= more + 1e-6


@given(st.integers(2, 5), st.integers(4, 24))
def test_micro_batches_from_the_busiest_stage_s_bubble(stages, micro):
    """Where one stage has most to do, what it waits tells how many micro-batches there are."""
    work = [100.0] * (stages - 1) + [150.0]
    assert guess_micro_batches(work, [50.0] * (stages - 1) + [100.0 * (stages - 1) / micro]) == micro


@given(st.integers(2, 6), st.integers(1, 16))
def test_one_forward_one_backward_has_as_many_on_the_way_as_stages(stages, micro):
    """The first stage's sends and receives tell how many micro-batches are on the way, whatever they take."""
    names = ["hcom_send__1_0_1" if forward else "hcom_receive__2_0_1" for forward, *_ in _order(0, stages, micro)]
    starts = np.arange(len(names), dtype=float)
    zeros = np.zeros(len(names))
    chain = Chain("0", tuple(names), starts, zeros + 0.5, zeros, zeros, np.full(len(names), -1))
    assert in_flight(chain) == min(stages, micro)
    assert in_flight(replace(chain, name=(*names[:-1], ""))) is None


@pytest.mark.parametrize("micro", [1, 4, 8])
def test_a_slow_way_between_stages_lies_on_every_micro_batchs_way(micro):
    """The step gets longer by at least the way there and back of one micro-batch, at most by that of all of them."""
    usual, slow = pipeline_us([200.0] * 4, micro, [1.0] * 3), pipeline_us([200.0] * 4, micro, [1.0, 15.0, 1.0])
    assert 2 * 14 <= round(slow - usual, 6) <= 2 * 14 * micro
    assert pipeline_us([200.0] * 4, micro, [0.0] * 3) == pipeline_us([200.0] * 4, micro)


def test_a_slow_way_costs_more_than_its_transfers_where_stages_wait_for_each_round():
    """Eight micro-batches of 8 + 17 ms over a link of 14 ms each way: the steady rounds wait for it, too."""
    longer = pipeline_us([200.0] * 4, 8, [0.25, 14.0, 0.25]) - pipeline_us([200.0] * 4, 8, [0.25] * 3)
    assert longer == pytest.approx(109.5, rel=0.05)


SPLITS = st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0.0, 15.0, 60.0])), min_size=2, max_size=4)


@given(SPLITS, st.floats(10, 100), st.integers(1, 24))
def test_layers_move_whole_and_no_other_split_is_clearly_shorter(stages, layer, micro):
    """Nothing is lost on the way, the schedule never gets longer, and the best of all splits gains a hundredth at
    most: stages hold layers and something beside them, one of them nothing."""
    held, beside = [count for count, _ in stages], [more for _, more in stages]
    beside[0] = 0.0
    work = [count * layer + more for count, more in zip(held, beside, strict=True)]
    after = evened(work, held, micro)
    assert sum(each.work for each in after) == pytest.approx(sum(work))
    assert sum(each.layers for each in after) == sum(held) and min(each.layers for each in after) >= 1
    took = pipeline_us([each.work for each in after], micro)
    assert took <= pipeline_us(work, micro) * (1 + 1e-9)
    cuts = combinations(range(1, sum(held)), len(held) - 1)
    splits = ([b - a for a, b in pairwise((0, *cut, sum(held)))] for cut in cuts)
    best = min(pipeline_us([n * layer + b for n, b in zip(split, beside, strict=True)], micro) for split in splits)
    assert took <= best * 1.01


@given(WORK, st.sampled_from([None, 3]))
def test_stages_whose_layers_are_unknown_are_evened_to_their_mean(work, known):
    layers = [known, *[None] * (len(work) - 1)]
    found = evened(work, layers, 8) if len(work) > 1 else []
    assert [each.work for each in found] == pytest.approx([np.mean(work)] * len(found))


def test_two_layers_and_a_head_are_as_even_as_they_come():
    """A last stage that holds the head as well is the longest whatever moves: half of it would make another longer."""
    assert [each.work for each in evened([60, 60, 60, 80], [2, 2, 2, 2], 16)] == [60, 60, 60, 80]
    assert [each.work for each in evened([60, 60, 60, 150], [4, 4, 4, 4], 16)] == [75, 75, 75, 105]


def test_a_layer_goes_where_the_schedule_is_over_first():
    """One layer more is as long wherever it runs; a first stage that is the longest makes nobody wait but for the way
    back, a stage before the head holds up the head as well. What is split so already stays."""
    work = [119.5, 119.2, 119.2, 181.6]
    assert [each.layers for each in evened(work, [2, 2, 2, 2], 16)] == [3, 2, 2, 1]
    after = [each.work for each in evened(work, [2, 2, 2, 2], 16)]
    assert [each.layers for each in evened(after, [3, 2, 2, 1], 16)] == [3, 2, 2, 1]
