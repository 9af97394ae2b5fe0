"""A rank that is late in some of the steps only is named with these steps, and with what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import SMALL, facts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.cluster.accounts import Accounts
from advisor.facts.cluster.steps.at_times import find
from advisor.facts.cluster.steps.turns import behind_idle_us, last_ones
from advisor.facts.cluster.steps.waits import waited_for
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile

RANKS = 4
PEERS = {0: list(range(RANKS))}


def job(work, tails, tail_cause="host"):
    """A synchronous job, rank by step: `work` is computed before the step's collective, and a rank pauses for `tails`
    behind it. Rows run from a rank's own first kernel to its next, as those of torch_npu do."""
    work, tails = np.asarray(work, float), np.asarray(tails, float)
    ranks, steps = work.shape
    starts, ends = np.zeros((ranks, steps + 1)), np.zeros((ranks, steps))
    for step in range(steps):
        arrives = starts[:, step] + work[:, step]
        ends[:, step] = arrives.max() + 10
        starts[:, step + 1] = ends[:, step] + tails[:, step]
    arrives = starts[:, :-1] + work
    none = np.zeros(work.shape)
    parts = {"compute": work, "data": none, "host": none, tail_cause: tails}
    return Accounts(
        list(range(ranks)), [str(s) for s in range(steps)], np.diff(starts, axis=1), parts["compute"], parts["data"],
        parts["host"], ends - arrives, tails, True,
    )  # fmt: skip


def mean_step(balance):
    """What a step of all takes, by the rank that ends last."""
    return float(balance.time.sum(axis=1).max()) / len(balance.steps)


HITS = st.lists(st.booleans(), min_size=4, max_size=9).filter(lambda hits: any(hits[1:]) and sum(hits) < len(hits) / 2)


@settings(max_examples=80)
@given(HITS, st.integers(0, RANKS - 1), st.floats(15, 60))
def test_who_computes_longer_in_a_few_steps_is_told_with_these_steps(hits, rank, us):
    """The cost is what the mean step is longer, whichever steps these are."""
    work = np.full((RANKS, len(hits)), 100.0)
    work[rank, hits] += us
    balance = job(work, np.zeros(work.shape))
    found = find(balance, PEERS, {})
    assert list(found) == [rank]
    assert found[rank].steps == tuple(str(step) for step, hit in enumerate(hits) if hit)
    assert found[rank].part == "compute"
    assert found[rank].cost_us == pytest.approx(mean_step(balance) - 110, abs=0.01)


@settings(max_examples=80)
@given(HITS, st.integers(0, RANKS - 1), st.floats(15, 60))
def test_who_pauses_behind_its_collective_is_waited_for_in_the_next_row(hits, rank, us):
    """Its own row is longer, the rows of the others are so one step later, and behind the last nothing is recorded."""
    tails = np.zeros((RANKS, len(hits)))
    tails[rank, hits] = us
    balance = job(np.full(tails.shape, 100.0), tails)
    assert balance.synchronous(list(range(RANKS)))
    assert waited_for(balance, list(range(RANKS)))[rank, hits] == pytest.approx(us)
    found = find(balance, PEERS, {})
    assert list(found) == [rank] and found[rank].part == "host"
    assert found[rank].cost_us <= us * sum(hits) / len(hits) + 0.01
    share = (RANKS - 1) / RANKS
    assert behind_idle_us(balance, PEERS) == pytest.approx(share * us * sum(hits) / len(hits))


@settings(max_examples=80)
@given(st.permutations(range(RANKS)), st.floats(15, 60), st.integers(4, 8))
def test_pauses_that_move_from_rank_to_rank_are_nobodys(order, us, steps):
    """Each step names its own, and no rank is late among peers that are."""
    tails = np.zeros((RANKS, steps))
    for step in range(1, steps, 2):
        tails[order[step // 2 % RANKS], step] = us
    balance = job(np.full(tails.shape, 100.0), tails)
    assert find(balance, PEERS, {}) == {}
    told = [last.rank for last in last_ones(balance, PEERS) if last.us > us / 2]
    assert told == [order[step // 2 % RANKS] for step in range(1, steps, 2)]


@pytest.mark.parametrize("others", [0, 1, 2, 3])
def test_work_that_others_had_in_another_step_is_no_ranks_own(others):
    """Most ranks have long batches in one step, one in another: none above the median of the many, and yet as much."""
    work = np.full((RANKS, 6), 100.0)
    work[2, 4] += 60
    work[4 - others :, 1] += 60
    found = find(job(work, np.zeros(work.shape)), PEERS, {})
    assert set(found) == (set() if others else {2})


def test_a_step_that_is_long_for_all_hides_no_late_rank():
    """A checkpoint makes every rank's step longer: no rank has more than a peer."""
    work = np.full((RANKS, 6), 100.0)
    work[:, 1] += 200
    work[2, 4] += 60
    assert set(find(job(work, np.zeros(work.shape)), PEERS, {})) == {2}


def test_chance_makes_no_rank_late_at_times():
    """Of runs whose ranks and steps vary by 5 %, one in a hundred at most has one, whatever their number."""
    draw = np.random.default_rng(11)
    named = 0
    for _ in range(600):
        ranks, steps = int(draw.integers(2, 9)), int(draw.integers(3, 12))
        work = 100 * (1 + 0.05 * draw.standard_normal((ranks, steps)))
        balance = job(work, np.zeros(work.shape))
        named += any(
            found.cost_us > 0.03 * mean_step(balance) for found in find(balance, {0: list(range(ranks))}, {}).values()
        )
    assert named <= 6


def test_the_first_recorded_step_alone_is_no_evidence():
    """What it is late from may be what starts a run."""
    work = np.full((RANKS, 6), 100.0)
    work[2, 0] += 50
    assert find(job(work, np.zeros(work.shape)), PEERS, {}) == {}


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
@pytest.mark.parametrize("steps", [4, 7])
def test_a_card_slow_in_one_step_of_four_is_named(tmp_path, framework, steps):
    """Medians over the steps are those of a healthy run; what the slow steps cost is what the mean step is longer."""
    scenario = replace(SMALL, steps=steps, framework=framework, faults=(Fault("slow_at_times", 3, 0.6),))
    facts, _ = facts_of(scenario, tmp_path)
    rank = Subject("rank", "3", (3,))
    assert facts.number("rank.lateness_share", rank) < 0.03
    assert facts.value("rank.at_times_part", rank) == "compute"
    assert facts.value("rank.at_times_kernel_ratio", rank) == pytest.approx(1.6, rel=0.05)
    gained = simulate(scenario).mean_us - simulate(replace(scenario, faults=())).mean_us
    assert facts.value("rank.at_times_us", rank) == pytest.approx(gained, rel=0.2)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    roots = [f for f in report.findings if f.role == "root_cause"]
    assert [(f.verdict, f.subject.id) for f in roots] == [("slow-compute-rank", "3")]
    assert report.summary.direction == "computation"


def test_healthy_ranks_are_never_late_at_times(tmp_path):
    for seed in range(4):
        folder = tmp_path / str(seed)
        write_profile(simulate(replace(SMALL, steps=6, seed=seed)), folder)
        facts, _ = facts_of(replace(SMALL, steps=6, seed=seed), folder)
        shares = [fact.value for fact in facts.of("rank.at_times_share").values()]
        assert all(share < 0.03 for share in shares)
        assert facts.value("lateness.wait_share", RUN) < 0.03


COLUMNS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"


def test_a_wait_before_the_first_recorded_kernel_is_counted_with_the_others(tmp_path):
    """A record begins with a rank's own first kernel: its row lacks what it waited before, and its peers' rows hold it
    as communication."""
    waits = [40_000.0, 0.0, 30_000.0, 0.0, 20_000.0, 0.0]
    for rank in range(RANKS):
        folder = tmp_path / f"host_{rank}_20260101000000000_ascend_pt"
        out = folder / "ASCEND_PROFILER_OUTPUT"
        out.mkdir(parents=True)
        (folder / f"profiler_info_{rank}.json").write_text("{}")
        rows = [COLUMNS]
        for step, wait in enumerate(waits):
            late = rank == 2
            exposed = 1000.0 if late else 1000.0 + wait
            behind = waits[step + 1] if late and step + 1 < len(waits) else 0.0
            rows.append(
                f"{rank},{step},20000,{exposed},0,{exposed},{behind + 50},{21050 + behind + (0 if late else wait)},0,"
                f"{wait + 40 if late else 40}"
            )
        (out / "step_trace_time.csv").write_text("\n".join(rows) + "\n")
    measured = measure([tmp_path], None, Options(jobs=1))
    subject = Subject("rank", "2", (2,))
    assert measured.facts.value("rank.at_times_count", subject) == 3
    assert measured.facts.number("rank.at_times_us", subject) == pytest.approx(sum(waits) / len(waits), rel=0.02)
