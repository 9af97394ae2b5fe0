"""Waiting that no single rank causes is told by its cause, and by nobody's name."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import SMALL, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.cluster.accounts import Accounts
from advisor.facts.cluster.lateness import _in_turn
from advisor.facts.cluster.peers import others_median
from advisor.facts.cluster.steps.turns import _as_told, _gain, last_ones, late_steps
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.cells import load, store
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

CAUSES = {"data_stalls": "data", "uneven_work": "compute", "host_stalls": "host"}
VERDICTS = {
    "data_stalls": "data-processing-bottleneck", "uneven_work": "step-jitter", "host_stalls": "host-dispatch-bound",
}  # fmt: skip


def accounts(stall, cause):
    """Ranks that compute 100 and wait for whoever stalls; rows are ranks, columns steps."""
    base, none = np.full(stall.shape, 100.0), np.zeros(stall.shape)
    parts = {"compute": base, "data": none, "host": none}
    parts[cause] = parts[cause] + stall
    own = sum(parts.values())
    length = own.max(axis=0) + 10
    time = np.broadcast_to(length, stall.shape).copy()
    steps = [str(s) for s in range(stall.shape[1])]
    return Accounts(
        list(range(len(stall))), steps, time, parts["compute"], parts["data"], parts["host"], time - own, none, True
    )


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(20, 40)), min_size=1, max_size=8),
    st.sampled_from(["data", "compute", "host"]),
)
def test_each_step_names_its_last_rank(stalls, cause):
    """One rank stalls in each step: it is found, with its cause, and being on time would end all of that waiting."""
    hit = np.zeros((5, len(stalls)))
    for step, (rank, us) in enumerate(stalls):
        hit[rank, step] = us
    balance = accounts(hit, cause)
    found = last_ones(balance, {0: [0, 1, 2, 3, 4]})
    assert [(last.rank, last.cause) for last in found] == [(rank, cause) for rank, _ in stalls]
    assert [last.us for last in found] == pytest.approx([us for _, us in stalls])
    assert [last.alone_us for last in found] == pytest.approx([us for _, us in stalls])


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.0, 0.0, 30.0]), min_size=6, max_size=6), min_size=5, max_size=5))
def test_the_gain_is_the_stalls_that_lengthen_steps(rows):
    """Where less than half of all entries stall, what steps gain is a stall for every step that has one."""
    hit = np.array(rows)
    balance = accounts(hit, "data")
    if np.median(hit) == 0:
        assert _gain(balance, {0: [0, 1, 2, 3, 4]}, "data") == pytest.approx(30 * (hit.max(axis=0) > 0).mean())


@given(st.lists(st.floats(20, 40), min_size=1, max_size=8), st.integers(0, 20))
def test_steps_in_which_nobody_is_late_are_not_counted(waits, usual):
    """What ranks always wait a little for each other adds no step to those in which somebody is late."""
    told = late_steps([*waits, *[0.01] * usual])
    assert 0.9 * sum(waits) <= sum(sorted(waits)[-told:]) + 0.01 * usual and told <= len(waits)


def _chance(*late):
    """Of the first of these ranks, each late by 30 in the steps that are marked."""
    hit = np.array([[30.0 * (mark == "x") for mark in row] for row in late])
    return _in_turn(hit - others_median(hit), 0, 30.0)


def test_turns_are_told_from_one_late_rank_by_as_many_steps_as_that_takes():
    """Where others are late in some steps, a few steps in which it is this one are chance; where nobody else is late,
    or only those that are so in every step, or in many steps, they are not."""
    assert _chance("xxxx", "....", "....", "....") == 0
    assert _chance("xxxx", "xxxx", "....", "....") == 0
    assert _chance("xxx.", "...x", "....", "....") > 0.01
    assert _chance("xxxx", "x..x", ".xx.", "....") > 0.01
    assert _chance("x" * 12, "x..x" * 3, ".xx." * 3, "." * 12) < 0.01


@given(st.lists(st.floats(0.8, 1.2), min_size=2, max_size=8), st.floats(0.3, 0.95))
def test_ranks_late_by_different_amounts_take_no_turns(noise, part):
    """A card slow by half and one by a quarter are both late in every step: the lesser one, about half the other's
    lateness in some steps and less in others, does not make the greater one chance."""
    late = np.array(
        [[30.0] * len(noise), [30.0 * part * each for each in noise], [0.0] * len(noise), [0.0] * len(noise)]
    )
    assert _in_turn(late - others_median(late), 0, 30.0) == 0


@given(st.lists(st.lists(st.floats(-40, 40), min_size=4, max_size=4), min_size=2, max_size=6))
def test_the_chance_of_turns_is_a_chance(above):
    told = _in_turn(np.array(above), 0, float(np.mean(above[0])))
    assert told is None or 0 <= told <= 1


def test_the_chance_of_turns_is_that_of_drawing_them():
    """As often as all ranks are late, drawn again for each step, hits one of them so often."""
    draws = np.random.default_rng(3).random((20000, 6)) < 8 / 24
    hits = float((draws.sum(axis=1) >= 4).mean())
    assert _chance("xxxx..", "x.....", "...x..", "...xx.") == pytest.approx(4 * hits, rel=0.2)


def test_two_that_stall_together_are_not_ended_by_one(tmp_path):
    """A rank on time ends nothing where another is as late."""
    hit = np.array([[30.0, 30.0], [30.0, 30.0], [0, 0], [0, 0], [0, 0]])
    assert [last.alone_us for last in last_ones(accounts(hit, "data"), {0: list(range(5))})] == [0, 0]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("kind", CAUSES)
def test_stalls_in_turn(tmp_path, kind, kernels):
    """No rank is accused, the cause is told, and the saving is what the mean step gains without the stalls, or with the
    work of each step dealt evenly."""
    scenario = replace(SMALL, data=8, steps=10, kernels=kernels, faults=(Fault(kind, 0, 0.5),))
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("lateness.cause", RUN) == CAUSES[kind]
    assert facts.value("lateness.one_rank_share", RUN) < 0.5
    gained = _mean_step(scenario) - _mean_step(replace(scenario, faults=()))
    told = facts.number("lateness.saving_us", RUN) or 0.0
    if kind == "uneven_work":  # dealt evenly it is still there
        assert 0.6 * gained < told < gained
    else:
        assert told == pytest.approx(gained, rel=0.2)
    roots = [f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.role == "root_cause"]
    assert [(f.verdict, f.subject.kind) for f in roots] == [(VERDICTS[kind], "run")]


def _mean_step(scenario):
    spans = simulate(scenario).spans
    ends = [max(span.end for span in step) for step in spans]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def test_one_slow_rank_is_no_turn(tmp_path):
    """Where one rank is always last, it accounts for nearly all of the waiting."""
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_compute", 2, 0.4),))), tmp_path)
    roots = [f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.role == "root_cause"]
    assert [(f.verdict, f.subject.id) for f in roots] == [("slow-compute-rank", "2")]


def test_ranks_that_are_late_in_every_step_take_no_turns(tmp_path):
    """Two ranks of a host are always late, and now one, now the other comes last: nobody else ever is."""
    faults = tuple(Fault("slow_host", rank, 0.5) for rank in (2, 3))
    facts, _ = facts_of(replace(SMALL, steps=6, faults=faults), tmp_path / "host")
    assert facts.number("lateness.same_ranks_share", RUN) > 0.75
    turns, _ = facts_of(replace(SMALL, steps=6, faults=(Fault("host_stalls", 0, 0.5),)), tmp_path / "t")
    assert turns.number("lateness.same_ranks_share", RUN) < 0.75


def test_healthy_ranks_wait_for_noise_only(tmp_path):
    """Without a fault, waiting for the last is a few percent of the step at most."""
    facts, _ = facts_of(SMALL, tmp_path)
    assert facts.value("lateness.wait_share", RUN) < 0.03
    assert facts.value("rank.late_alone_share", Subject("rank", "1", (1,))) <= 1


def test_uneven_work_of_stages_of_one_rank_each_is_no_slow_card(tmp_path):
    """Whether a stage's kernels take longer than the same ones elsewhere is asked of each step: they take turns."""
    scenario = replace(SMALL, data=1, pipeline=4, micro_batches=4, steps=12, faults=(Fault("uneven_work", 0, 0.5),))
    facts, _ = facts_of(scenario, tmp_path)
    slow = [rank for rank in range(4) if _is_slow(facts, Subject("rank", str(rank), (rank,)))]
    assert slow == []
    one, _ = facts_of(replace(scenario, faults=(Fault("slow_compute", 2, 0.5),)), tmp_path / "one")
    assert [rank for rank in range(4) if _is_slow(one, Subject("rank", str(rank), (rank,)))] == [2]


def _is_slow(facts, rank):
    """Whether its kernels make it late, in nearly all steps and not by chance."""
    late = facts.value("rank.late_cause", rank) == "compute" and facts.value("rank.computing_excess_share", rank) > 0.03
    return (
        late
        and facts.value("rank.lateness_steadiness", rank) >= 0.7
        and facts.value("rank.in_turn_chance", rank) < 0.01
    )


def test_a_stage_without_comparable_ranks_ends_no_comparison_of_the_others(tmp_path):
    """Both ranks of a stage lost what times their steps, and nothing tells waiting for data: the other stage's ranks
    are compared all the same."""
    scenario = Scenario(data=2, pipeline=2, steps=4, layers=2, kernels=False, faults=(Fault("slow_compute", 1, 0.5),))
    write_profile(simulate(scenario), tmp_path)
    tables = sorted(tmp_path.rglob("step_trace_time.csv"))
    for file in tables[2:]:
        file.unlink()
    for file in tables[:2]:
        rows = load(file)
        at = rows[0].index("Preparing")
        store(file, [row[:at] + row[at + 1 :] for row in rows])
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("rank.lateness_us", Subject("rank", "1", (1,))) > 0


@given(st.lists(st.lists(st.floats(10, 100), min_size=4, max_size=4), min_size=1, max_size=6))
def test_work_that_is_dealt_evenly_is_not_gone(steps):
    """No step gets shorter than what its ranks compute on average."""
    balance = accounts(np.array(steps).T, "compute")
    longest = np.array(steps).max(axis=1) - np.array(steps).mean(axis=1)
    assert _gain(balance, {0: [0, 1, 2, 3]}, "compute") <= longest.mean() + 1e-6


@pytest.mark.parametrize(
    ("loader", "cause"),
    [(0.06, "host"), (30.0, "data"), (None, "data")],
    ids=["short calls", "long calls", "no timeline"],
)
def test_pauses_before_the_first_kernel_are_no_waits_for_data_where_timelines_refute_it(loader, cause):
    """Garbage is collected wherever the host is. Where the loader's calls are known and short, what lies before the
    first kernel is the host's as well."""
    stall = np.zeros((4, 6))
    stall[[0, 1, 2, 3, 0, 1], range(6)] = 30.0
    told = None if loader is None else np.where(stall > 0, loader, 0.06)
    idle = {rank: SimpleNamespace(loader_us=None if told is None else told[rank]) for rank in range(4)}
    balance = _as_told(SimpleNamespace(each=lambda reduction: idle), accounts(stall, "data"))
    assert {last.cause for last in last_ones(balance, {0: [0, 1, 2, 3]})} == {cause}
    assert (balance.data + balance.host).tolist() == stall.tolist()
