"""The queueing network: who limits the step, and what a change of one operation brings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.facts.data.network import prospects
from advisor.facts.data.queueing import (
    GIL,
    LOOP,
    PROCESSORS,
    Network,
    Station,
    held_share,
    on_free_processors,
    processes_needed,
    waiting_for_lock,
    with_parallel_source,
    with_processes,
    with_workers,
    without,
    workers_needed,
)
from advisor.model import RUN, Fact, Subject, Value
from advisor.ruleset.files.loader import load_rules

times = st.floats(0.0, 1e6)
workers = st.integers(1, 16)


def stations(name: str) -> st.SearchStrategy[Station]:
    drawn = st.builds(Station, st.just(name), times, workers, workers, st.floats(0.0, 1e5), st.booleans())
    return drawn.map(lambda s: Station(s.name, s.work_us, s.workers, s.workers, min(s.cpu_us, s.work_us), s.python))


networks = st.builds(
    lambda step, own, a, b, cores: Network(step, min(own, step), {1: a, 2: b}, 0.0, cores, float(cores)),
    st.floats(1.0, 1e6), times, stations("Map(1)"), stations("Batch(0)"), st.integers(1, 64),
)  # fmt: skip


def test_a_blocking_map_needs_its_work_over_the_next_limit() -> None:
    """26 ms of blocking work for a loop of 7 ms: four workers, and then the loop is the limit; the millisecond in which
    batches were handed over at the map goes with its waiting."""
    network = Network(27_000, 7_000, {1: Station("Map(1)", 26_000, 1, 1)}, cores=64, available=64.0)
    assert workers_needed(network, 1) == 4
    after = with_workers(network, 1, 4)
    assert (after.step_us, after.saving_us, after.limit) == (7_000, 20_000, LOOP)


def test_the_next_operation_ends_the_gain() -> None:
    """Past the second slowest operation more workers of the slowest bring nothing, and the advice says so."""
    network = Network(30_000, 2_000, {1: Station("Map(1)", 30_000, 1, 1), 2: Station("Batch(0)", 12_000, 1, 1)})
    assert workers_needed(network, 1) == 3
    assert with_workers(network, 1, 8).limit == "Batch(0)"
    assert with_workers(network, 1, 8).saving_us == 18_000


def test_threads_of_computing_python_gain_nothing_and_processes_do() -> None:
    """Under one interpreter lock 20 ms of Python stay 20 ms; four processes make it five."""
    network = Network(22_000, 1_000, {1: Station("Map(1)", 40_000, 2, 2, 20_000, True)}, 500, 8, 8.0)
    assert with_workers(network, 1, 8).saving_us == 0
    assert network.step_after() == (20_500, GIL)
    assert with_processes(network, 1, 4).step_us == pytest.approx(5_000 * 22_000 / 20_500)


def test_processors_bound_what_processes_bring() -> None:
    """40 ms of processor time on two processors take 20 ms, however many workers there are."""
    network = Network(41_000, 1_000, {1: Station("Map(1)", 40_000, 1, 1, 40_000)}, 0.0, 2, 2.0)
    after = with_workers(network, 1, 64)
    assert (after.step_us, after.limit) == (20_000, PROCESSORS)


def test_an_iterable_source_gains_the_workers_it_has() -> None:
    """Four workers that were ignored, once they read side by side, serve four rows at a time."""
    network = Network(22_000, 4_000, {1: Station("Generator(1)", 21_000, 1, 4)}, cores=8, available=8.0)
    assert with_parallel_source(network, 1).step_us == pytest.approx(5_250 * 22_000 / 21_000)


@given(networks, workers, workers)
def test_more_workers_never_promise_less(network: Network, one: int, other: int) -> None:
    """A larger number cannot be promised a smaller saving."""
    few, many = sorted((one, other))
    assert with_workers(network, 1, many).saving_us >= with_workers(network, 1, few).saving_us - 1e-6


@given(networks, workers)
def test_no_promise_exceeds_taking_the_operation_away(network: Network, count: int) -> None:
    """Workers can at best make an operation vanish; and nothing saves more than the whole wait."""
    best = without(network, 1).saving_us
    assert 0 <= with_workers(network, 1, count).saving_us <= best + 1e-6
    assert best <= network.step_us - network.own_us + 1e-6


@given(networks)
def test_needed_workers_suffice(network: Network) -> None:
    """With the workers asked for, the operation itself no longer limits the step."""
    count = workers_needed(network, 1)
    rest = max(value for name, value in network.limits().items() if name != "Map(1)")
    if rest > 1000.0:
        assert network.stations[1].work_us / count <= rest * (1 + 1e-6)


def test_processes_are_counted_for_the_wanted_rate_not_for_the_lock() -> None:
    """One Python thread of 96 ms for a loop of 20 ms needs five processes: the lock it gives up does not bound it."""
    network = Network(96_000, 20_000, {1: Station("Generator(1)", 96_000, 1, 1, 95_000, True)}, cores=64)
    assert processes_needed(network, 1) == 5
    assert with_processes(network, 1, 5).limit == LOOP


def test_two_operations_that_limit_alike_are_repaired_together() -> None:
    """One more worker for one of two maps gains nothing; for both, the step halves."""
    maps = {1: Station("Map(1)", 28_000, 1, 1, 100, asleep=True), 2: Station("Map(2)", 28_200, 1, 1, 100, asleep=True)}
    network = Network(30_000, 13_000, maps, cores=2, available=2.0)
    assert with_workers(network, 2, 3).saving_us < 300
    found = prospects(network, 2)
    assert (found["beside"], found["workers_proposed"], found["limit_more_workers"]) == ("Map(1) (1 → 3)", 3, "loop")
    assert found["saving_more_workers_us"] == pytest.approx(30_000 - 13_000)


def test_an_operation_that_limits_alone_has_no_company() -> None:
    """The next one is half as busy: raising it too would help nobody."""
    maps = {1: Station("Map(1)", 12_000, 1, 1), 2: Station("Map(2)", 28_000, 1, 1)}
    assert prospects(Network(30_000, 10_000, maps, cores=8, available=8.0), 2)["beside"] is None


def test_what_would_limit_next_is_raised_too_where_it_leaves_most_of_the_gain() -> None:
    """Two maps, 10 and 9 ms in a loop of 4: more workers for the first alone gain one of six milliseconds."""
    maps = {1: Station("Map(1)", 8_500, 1, 1, asleep=True), 2: Station("Map(2)", 20_000, 2, 2, asleep=True)}
    found = prospects(Network(10_500, 4_000, maps, cores=8, available=8.0), 2)
    assert (found["beside"], found["workers_proposed"]) == ("Map(1) (1 → 3)", 5)
    assert found["saving_more_workers_us"] == pytest.approx(10_500 - 4_000 * 10_500 / 10_000)


@pytest.mark.parametrize(("asleep", "workers", "beyond"), [(True, 4, True), (False, 2, False)])
def test_only_work_that_computes_is_held_to_the_processors(asleep: bool, workers: int, beyond: bool) -> None:
    """A map that waits for storage may have more workers than the host has processors."""
    one = {1: Station("Map(1)", 26_000, 1, 1, 500 if asleep else 25_000, asleep=asleep)}
    found = prospects(Network(27_000, 7_000, one, cores=2, available=2.0), 1)
    assert (found["workers_proposed"], found["beyond_processors"]) == (workers, beyond)


@given(networks)
def test_together_never_promises_more_than_without_all_of_them(network: Network) -> None:
    """What more workers for all that limit alike bring is bounded by the limits that no worker moves."""
    found = prospects(network, 1)
    bound = min(network.step_us, max(value for name, value in network.limits().items() if name in (LOOP, GIL)))
    assert found["saving_more_workers_us"] <= network.step_us - bound + 1e-6


@given(networks)
def test_what_changes_nothing_is_promised_nothing(network: Network) -> None:
    """The workers of now gain nothing, whatever of the step the model cannot explain."""
    assert with_workers(network, 1, network.stations[1].workers).saving_us == pytest.approx(0.0, abs=1e-6)
    loop = replace(network, own_us=network.step_us)
    assert without(loop, 1).saving_us == pytest.approx(0.0, abs=1e-6)


@given(networks, st.floats(0.05, 1.0), st.integers(1, 64))
def test_free_processors_never_slow_a_pipeline(network: Network, useful: float, processors: int) -> None:
    """Who no longer waits for a processor works as fast as before at least; the less of that time goes into switching,
    the faster; and what is left is no less than the processor time divided by the processors."""
    free = replace(network, available=float(processors))
    some = on_free_processors(free, processors, useful)
    assert 0 <= on_free_processors(free, processors).saving_us <= some.saving_us + 1e-6
    cpu = [useful * min(s.cpu_us, s.work_us) for s in network.stations.values() if s.cpu_us and not s.asleep]
    assert some.step_us >= min(network.step_us, sum(cpu) / processors) - 1e-3


def test_contention_is_repaired_by_processors_not_by_workers() -> None:
    """Eight workers that wait for a processor three quarters of their time get no more of it as eleven; alone on their
    host they deliver four times as fast."""
    one = {1: Station("Map(1)", 288_000, 8, 8, 63_000)}
    network = Network(36_000, 15_000, one, cores=16, available=2.0)
    found = prospects(network, 1)
    assert found["processors_short"] and found["limit_more_workers"] == PROCESSORS
    assert on_free_processors(network, 16.0).saving_us == pytest.approx(36_000 - 15_000)


@given(networks)
def test_a_loop_that_nobody_waits_for_does_not_keep_the_lock(network: Network) -> None:
    """Where threads were measured not to wait for the lock, the loop's processor time is no limit of it; what the
    pipeline itself computes in Python is."""
    python = sum(s.cpu_us for s in network.stations.values() if s.python)
    free = replace(network, loop_cpu_us=network.own_us, loop_locks=False)
    assert free.limits().get(GIL, 0.0) == pytest.approx(python)


@given(st.integers(1, 64), st.floats(0.01, 0.99))
def test_who_waits_for_a_lock_tells_for_how_long_it_is_held(threads, share):
    """The two are one law read both ways; never do more wait than there are beside the one that holds it."""
    waiting = waiting_for_lock(threads, share)
    assert 0 <= waiting <= threads - 1 + 1e-9
    if waiting > 1e-6:
        assert held_share(threads, waiting) == pytest.approx(share, abs=1e-3)


def test_two_threads_that_are_at_a_lock_for_half_their_time_hold_it_for_eight_tenths():
    """r = 1: P(idle) = 1 ÷ (1 + 2 + 2), so held for 0.8, and 2 − 0.8 · 2 = 0.4 wait."""
    assert held_share(2, 0.4) == pytest.approx(0.8)
    assert waiting_for_lock(2, 0.8) == pytest.approx(0.4)


@pytest.mark.parametrize("beside", ["Map(2) (4 → 9)", None])
def test_the_basis_of_a_gain_names_all_operations_that_it_needs(beside: str | None) -> None:
    """Raising one of two maps gives a fifth of what both give: the estimate says for which it holds."""
    of_map: dict[str, Value] = {
        "type": "Map", "workers": 2, "busy_share": 0.99, "is_busiest": True, "wait_share": 0.56, "wait_us": 14_000.0,
        "step_us": 25_000.0, "work_us": 51_000.0, "workers_needed": 5, "workers_proposed": 5, "workers_capped": False,
        "saving_more_workers_us": 14_000.0, "limit_more_workers": "loop", "batches": 300,
    }  # fmt: skip
    subject = Subject("pipeline_op", "Map(1)", (0,))
    told = [Fact(f"pipeline_op.{name}", subject, value) for name, value in of_map.items()]
    told += [Fact("step.time_us", RUN, 25_000.0), *([Fact("pipeline_op.beside", subject, beside)] if beside else [])]
    found = next(f for f in decide(load_rules(strict=False), FactSet(told)).findings if f.rule == "DATA010")
    assert found.saving is not None and ("Map(2)" in found.saving.basis.en) == (beside is not None)
    assert ("Map(2)" in found.saving.basis.zh) == (beside is not None) and "unknown" not in found.saving.basis.en
