"""Ranks are late from one collective to the next: what takes turns within a step does not show in its sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meeting import meeting

from advisor.facts.cluster import segments, whatif
from advisor.facts.cluster.lateness import Lateness
from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import Change
from advisor.facts.collectives.joints import Joint
from advisor.facts.device.chain import Chain
from advisor.model import RUN, Subject

RANKS = 5


def chain(work: list[float]) -> Chain:
    """So much computing, a synchronous exchange of 1 us, and again."""
    name, start, busy, now = [], [], [], 0.0
    for us in work:
        for label, lasts in (("", us), (f"hcom_alltoall__1_{len(name)}_1", 1.0)):
            name.append(label)
            start.append(now)
            busy.append(lasts)
            now += lasts
    zeros, after = np.zeros(len(name)), np.arange(len(name)) - 1
    after[[bool(label) for label in name]] = -1
    return Chain("1", tuple(name), np.array(start), np.array(busy), zeros, zeros.copy(), after)


def step(work: list[list[float]]) -> Model:
    """Ranks that compute so long before each exchange; rows are ranks."""
    chains = {rank: chain(row) for rank, row in enumerate(work)}
    return meeting(chains)


def uneven(
    work: list[list[float]], patch: pytest.MonkeyPatch, speeds: dict[int, float] | None = None
) -> segments.Uneven:
    class Layout:
        def peers(self) -> dict[int, list[int]]:
            return {0: list(range(RANKS))}

    patch.setattr(segments, "model", lambda run: step(work))
    patch.setattr(segments, "partition", lambda run: Layout())
    patch.setattr(segments, "kernel_speeds", lambda run: speeds or {})
    found = segments.uneven_segments.__wrapped__(None)
    assert found is not None
    return found


@settings(max_examples=60)
@given(st.lists(st.integers(0, RANKS - 1), min_size=1, max_size=8), st.floats(1.3, 4.0))
def test_every_hot_stretch_counts_whoever_is_hot_in_it(hot, factor):
    """One rank has more than its peers before each exchange, another one each time: with the same work spread evenly
    each stretch is shorter by what its hot rank has above the mean, however equal the ranks' sums are."""
    work = [[100.0 * factor if rank == who else 100.0 for who in hot] for rank in range(RANKS)]
    with pytest.MonkeyPatch.context() as patch:
        found = uneven(work, patch)
    more = 100.0 * (factor - 1) * (1 - 1 / RANKS)
    assert found.gain_us == pytest.approx(len(hot) * more)
    assert found.over_us == pytest.approx(len(hot) * more)
    assert found.last == set(hot)
    assert found.count == len(hot)


@settings(max_examples=60)
@given(st.lists(st.permutations([0.5, 0.8, 1.0, 1.3, 1.6]), min_size=1, max_size=6))
def test_experts_of_which_each_has_another_part_of_the_tokens_are_uneven_as_well(layers):
    """Between even stretches all ranks differ, so that none stands out of its own stretch: each layer waits for its
    longest all the same."""
    work = [[us for part in layers for us in (300.0, 100.0 * part[rank])] for rank in range(RANKS)]
    with pytest.MonkeyPatch.context() as patch:
        found = uneven(work, patch)
    assert found.count == len(layers) and found.gain_us == pytest.approx(len(layers) * 100.0 * (1.6 - 1.04))


@settings(max_examples=60)
@given(st.permutations(range(RANKS)), st.floats(1.3, 4.0), st.integers(1, 4))
def test_those_who_take_turns_are_uneven_in_no_sum(hot, factor, rounds):
    """Where each rank has its turn, their sums are equal; where one rank is last each time, its sum holds it all."""
    for order, whole in ((list(hot) * rounds, 0.0), ([hot[0]] * RANKS * rounds, 1.0)):
        work = [[100.0 * factor if rank == who else 100.0 for who in order] for rank in range(RANKS)]
        with pytest.MonkeyPatch.context() as patch:
            found = uneven(work, patch)
        assert found.whole_us / found.over_us == pytest.approx(whole, abs=1e-9)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(97.0, 103.0), min_size=6, max_size=6), min_size=RANKS, max_size=RANKS))
def test_what_kernels_vary_by_is_no_uneven_work(work):
    """A few percent before each exchange are noise, however many exchanges there are."""
    with pytest.MonkeyPatch.context() as patch:
        assert uneven(work, patch) == segments.NONE


@settings(max_examples=30)
@given(st.lists(st.integers(0, RANKS - 1), min_size=1, max_size=8), st.floats(1.5, 4.0), st.floats(1.05, 2.0))
def test_a_slow_card_neither_hides_uneven_work_nor_is_it(hot, factor, slow):
    """With one card slower in all it does, the same stretches are uneven by the same work; without them none is."""
    even = [[100.0] * len(hot) for _ in range(RANKS)]
    work = [[100.0 * factor if rank == who else 100.0 for who in hot] for rank in range(RANKS)]
    slowed = [[us * (slow if rank == 2 else 1.0) for us in row] for rank, row in enumerate(work)]
    with pytest.MonkeyPatch.context() as patch:
        assert uneven(slowed, patch, {2: slow}).over_us == pytest.approx(uneven(work, patch).over_us)
        even[2] = [100.0 * slow] * len(hot)
        assert uneven(even, patch, {2: slow}) == segments.NONE


@settings(max_examples=30)
@given(st.lists(st.integers(0, RANKS - 1), min_size=2, max_size=8), st.floats(1.5, 4.0), st.floats(1.05, 2.0))
def test_uneven_work_and_a_slow_card_are_put_right_together(hot, factor, slow):
    """Each hides a part of the other; with both repaired every stretch takes the mean of the work at full speed."""
    work = [[100.0 * factor if rank == who else 100.0 for who in hot] for rank in range(RANKS)]
    slowed = [[us * (slow if rank == 2 else 1.0) for us in row] for rank, row in enumerate(work)]
    cures = [whatif.Cure("segments", RUN), whatif.Cure("compute", Subject("rank", "2", (2,)))]
    with pytest.MonkeyPatch.context() as patch:
        found = uneven(slowed, patch, {2: slow})
        patch.setattr(whatif, "model", lambda run: step(slowed))
        patch.setattr(whatif, "uneven_segments", lambda run: found)
        patch.setattr(whatif, "kernel_speeds", lambda run: {2: slow})
        patch.setattr(whatif, "latenesses", lambda run: {2: Lateness(2, {"compute": 1.0}, 1.0, None, 1.0, None)})
        patch.setattr(whatif, "paced_together", lambda run: None)
        patch.setattr(whatif, "_behind", lambda run: {})
        patch.setattr(whatif, "corrections", lambda run, late, parts: {2: Change(0.99)})
        gained = whatif.joint_saving(None, cures)
    fair = step([[100.0 * (RANKS - 1 + factor) / RANKS] * len(hot)] * RANKS)
    assert gained == pytest.approx(step(slowed).baseline_us - fair.baseline_us)


def recorded(last: list[list[int]]) -> Joint:
    """Exchanges of several steps: who comes last in each, while the others wait 10 us; rows are steps."""
    order = [(str(number), rank) for number, row in enumerate(last) for rank in row]
    elapsed = np.array([[1.0 if rank == who else 11.0 for rank in range(RANKS)] for _, who in order])
    none = np.full(elapsed.shape, np.nan)
    return Joint(
        "g", "alltoall", (*range(RANKS),), (*range(RANKS),), True, [name for name, _ in order],
        [f"hcom_alltoall__1_{at}_1" for at in range(len(order))], np.arange(len(order)), elapsed, none, none,
        np.zeros(elapsed.shape, np.int64), none, none,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("last", "share"),
    [
        ([[2, 2, 2], [0, 1, 2], [4, 3, 1]], 4 / 9),  # by chance the same one in the replayed step
        ([[2, 2, 2], [1, 1, 1], [4, 4, 4]], 1.0),  # taking turns from step to step is no turn within one
    ],
)
def test_whether_ranks_take_turns_the_waits_of_all_steps_tell(last, share, monkeypatch):
    """One step of few layers has the same rank last in most of them by chance; a user with uneven experts would be told
    nothing, for no rank is late in all steps either."""
    monkeypatch.setattr(segments, "joints", lambda run: [recorded(last)])
    work = [[400.0 if rank == 2 else 100.0 for _ in range(3)] for rank in range(RANKS)]
    found = uneven(work, monkeypatch)
    assert found.whole_us == pytest.approx(found.over_us)
    assert segments.whole_share(None, found) == pytest.approx(share)


def test_a_slow_card_adds_up_in_the_waits_alone(monkeypatch):
    """The waits hold what it takes longer as well, which is no uneven work: what takes turns is told beside it."""
    monkeypatch.setattr(segments, "joints", lambda run: [recorded([[2, 2, 2]] * 3)])
    work = [[400.0 if rank == who else 100.0 for who in (0, 1, 4)] for rank in range(RANKS)]
    found = uneven(work, monkeypatch)
    assert found.whole_us < found.over_us / 2
    assert segments.whole_share(None, found) == pytest.approx(found.whole_us / found.over_us)
