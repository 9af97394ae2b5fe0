"""A rank's pipeline, host and step joined: what may be charged to whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.facts.base import FactSet
from advisor.facts.data.batches import BatchTimes
from advisor.facts.data.loading import DataPipeline
from advisor.facts.data.network import build_network, feeding_of, prospects
from advisor.facts.data.pipeline_tree import Operation, Queue
from advisor.facts.data.processors import HostUse
from advisor.facts.data.queueing import GIL, with_workers
from advisor.model import Fact, Subject
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules


def contended(cores: float) -> DataPipeline:
    """100 batches in 1 s whose threads fight for the lock, and one of two maps, nobody says whose functions are Python,
    that computes on so many processors."""
    maps = {
        1: Operation(1, "Map", 8, work_us=1e6, rows=100),
        2: Operation(2, "Map", 16, work_us=4e6, rows=100, cpu_cores=cores),
    }
    return DataPipeline(
        "iterator", 100, 10_000.0, None, maps, wall_us=1e6, produced=100, gil_wait_us=4000, gil_wait_total_us=1.3e6
    )


@pytest.mark.parametrize(("cores", "holds"), [(0.8, True), (1.3, False)])
def test_nobody_holds_the_interpreter_lock_longer_than_the_step_lasts(cores: float, holds: bool) -> None:
    """What computes on more than one processor computes beside the lock, whoever waits for it."""
    network = build_network(contended(cores), None, 10_000.0, 500.0)
    assert network is not None
    assert network.stations[2].python is holds
    assert (GIL in network.limits()) is holds


def timeline(folder: Path, marked: range, fetches: bool) -> Path:
    """100 batches that take 30 ms each, of which the host's marks cover some: those last 7 ms, on full queues."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "MindSpore"}}]
    at = 0.0
    for batch in range(100):
        lasts = 7_000 if batch in marked else 30_000
        calls = [("Dataset::Pipeline::GetNext", 1, lasts / 8), ("Dataset::GeneratorOp(ID:1)::__next__", 2, 25_000)]
        if fetches:
            calls.append(("Dataset::IteratorConsumer::GetNextAsVector", 1, lasts / 8))
        if batch in marked:
            calls.append((f"Python::PythonObserved::ProfilerStep#{batch}", 3, lasts))
        events += [{"ph": "X", "name": n, "pid": 1, "tid": t, "ts": f"{at:.3f}", "dur": f"{d}"} for n, t, d in calls]
        at += lasts
    (folder / "trace_view.json").write_text(json.dumps(events))
    return folder


def test_a_few_marked_steps_on_full_queues_are_not_the_run(tmp_path: Path) -> None:
    """The loop's calls for batches tell the step of all of them where marks cover only the last ones."""
    report = advise([timeline(tmp_path, range(90, 100), fetches=True)], load_rules())
    assert report.summary.step_time_us == pytest.approx(30_000, rel=0.1)


def test_waits_of_all_batches_are_no_share_of_a_few_steps(tmp_path: Path) -> None:
    """Where the calls for batches are only summed, nobody knows what the steps lasted in which they waited."""
    folder = timeline(tmp_path, range(90, 100), fetches=False)
    report = advise([folder], load_rules())
    assert [f.verdict for f in report.findings if f.direction != "evidence"] == []
    assert report.summary.direction == "undetermined"


@pytest.mark.parametrize("row", [10_000.0, 1_000_000.0])
def test_no_remedy_of_the_pipeline_saves_what_the_device_computes(row: float) -> None:
    """The threads fight for the interpreter lock, the loop among them; without the fight a step of 10 ms still lasts
    the 6 ms that the device computes in it, whether its row is a step or the whole recording of 100."""
    rank = Subject("rank", "0", (0,))
    told = {"step.time_us": row, "step.computing_us": 0.6 * row, "step.count": 1}
    facts = FactSet(Fact(name, rank, value, 1, ()) for name, value in told.items())
    times = BatchTimes("iterator", 100, step_mean_us=10_000.0)
    data = replace(contended(0.8), wait_us=500.0, times=times)
    alone, fed = (feeding_of(0, data, None, given).network for given in (FactSet(), facts))
    assert alone is not None and fed is not None
    for op_id in alone.stations:
        free, bound = prospects(alone, op_id), prospects(fed, op_id)
        for name in ("saving_processes_us", "saving_more_workers_us", "saving_removed_us"):
            assert bound[name] <= 4_000 * (1 + 1e-9)
            assert bound[name] <= free[name]
    assert prospects(alone, 2)["saving_processes_us"] > 4_000


def beside_the_lock(cores: float, waiting_us: float | None) -> DataPipeline:
    """100 batches in 1 s, of which the loop waits 9 ms each; a map of Python functions computes all the time, on so
    many processors."""
    workers = max(1, round(cores))
    busy = Operation(1, "Map", workers, work_us=workers * 1e6, rows=100, cpu_cores=cores, python=True)
    each = None if waiting_us is None else waiting_us / 400
    return DataPipeline(
        "iterator", 100, 9_000.0, None, {1: busy}, wall_us=1e6, produced=100, gil_wait_us=each,
        gil_wait_total_us=waiting_us,
    )  # fmt: skip


@pytest.mark.parametrize("cores", [1.9, 2.95, 7.6])
def test_a_lock_nobody_waits_for_does_not_limit_what_is_done_by_several_at_once(cores: float) -> None:
    """Python work of more than the step's length was not done under one lock: workers as many as the loop asks for
    bring what the loop waits, whether they are threads or processes."""
    network = build_network(beside_the_lock(cores, 2_000.0), None, 10_000.0, 9_000.0)
    assert network is not None
    hope = prospects(network, 1)
    assert (hope["gil_limit_us"], hope["holds_lock"]) == (None, False)
    assert hope["limited_by"] == "Map(1)"
    assert hope["workers_needed"] == 10 * round(cores)
    assert hope["saving_more_workers_us"] == pytest.approx(9_000, rel=0.05)


@pytest.mark.parametrize(("cores", "waiting_us"), [(0.95, 2_000.0), (1.9, 900_000.0), (1.9, None)])
def test_the_lock_limits_where_one_may_hold_it_all_the_time_or_somebody_waits(
    cores: float, waiting_us: float | None
) -> None:
    """One thread's work fits into the step, threads wait for each other, or nobody recorded whether they do: then more
    threads are promised nothing."""
    network = build_network(beside_the_lock(cores, waiting_us), None, 10_000.0, 9_000.0)
    assert network is not None
    hope = prospects(network, 1)
    assert hope["holds_lock"]
    assert hope["saving_more_workers_us"] < 1_000


@pytest.mark.parametrize("waiting_us", [6.5e6, None])
def test_work_that_lets_go_of_the_lock_for_part_of_the_time_may_be_held_up_by_it_all_the_same(
    waiting_us: float | None,
) -> None:
    """Eight threads compute twice as long as the step lasts, and six of them wait for the lock, or nobody recorded
    whether any does: it is held all the time, and no longer than the step. Processes share none."""
    busy = Operation(1, "Map", 8, work_us=8e6, rows=1600, cpu_cores=2.0, python=True)
    data = DataPipeline(
        "iterator", 100, 10_000.0, None, {1: busy}, wall_us=1e6, produced=100,
        gil_wait_us=waiting_us and waiting_us / 1600, gil_wait_total_us=waiting_us,
    )  # fmt: skip
    network = build_network(data, None, 10_000.0, 6_000.0, device_us=4_000.0)
    assert network is not None
    hope = prospects(network, 1)
    assert hope["gil_limit_us"] == pytest.approx(10_000, rel=0.01)
    assert hope["saving_more_workers_us"] < 100
    assert hope["saving_processes_us"] == pytest.approx(6_000, rel=0.05)


def test_a_lock_that_few_wait_for_leaves_room_for_more_threads() -> None:
    """Four threads of which half a one waits hold it for two thirds of the time: more of them gain a third."""
    network = build_network(beside_the_lock(4.0, 5e5), None, 10_000.0, 9_000.0)
    assert network is not None
    limit = network.limits()[GIL]
    assert 6_000 < limit < 8_000
    assert with_workers(network, 1, 40).saving_us == pytest.approx(10_000 - limit)


@pytest.mark.parametrize("process", [1.0, 1.6, 4.0])
def test_the_lock_has_no_more_room_for_the_loop_than_python_leaves(process: float) -> None:
    """Threads of the framework compute outside the pipeline: a lock that is fought for and held all the time by one
    operation's code limits the step, not more than the step, and processes free it."""
    host = HostUse(
        cores=64, samples=100, interval_us=100_000.0, user=0.1, system=0.0, io=0.0, idle=0.9, switches=None,
        runnable=None, process_cores=process, pipeline_cores=0.96,
    )  # fmt: skip
    busy = Operation(1, "Map", 8, work_us=8e6, rows=100, cpu_cores=0.96, python=True)
    data = DataPipeline(
        "sink", 100, 10_000.0, None, {1: busy}, wall_us=1e6, produced=100, gil_wait_us=5_000, gil_wait_total_us=7e6
    )
    network = build_network(data, host, 10_000.0, 4_000.0, device_us=6_000.0)
    assert network is not None
    assert 9_500 <= network.limits()[GIL] <= 10_000
    assert prospects(network, 1)["saving_processes_us"] == pytest.approx(4_000, rel=0.05)


@pytest.mark.parametrize(("before", "behind", "workers"), [(0.95, 0.0, 6), (0.95, 0.5, 5), (0.3, 0.0, 5)])
def test_an_operation_that_never_rests_delivers_what_it_can(before: float, behind: float, workers: int) -> None:
    """Five workers of a map are busy 77 % of the time because some of its images take long, and the device waits a
    tenth of the step: with its input full and its output empty the map limits the step, and one more worker helps. Else
    it is not known what the device waits for."""
    out = Queue(behind, 1 - behind, 0.0, 100, 16)
    images = Operation(1, "Map", 5, output=out, inputs=(2,), work_us=161_700.0, rows=64, input_used=before)
    data = DataPipeline("sink", 1, 42_000.0, None, {1: images}, produced=1.0, wall_us=42_000.0)
    network = build_network(data, HostUse(96, 9, 1e3, 0.1, 0.0, 0.0, 0.9, None, None, 5.0, 4.0), 42_000.0, 4_200.0)
    assert network is not None
    found = prospects(network, 1)
    assert found["workers_proposed"] == workers
    assert found["saving_more_workers_us"] == pytest.approx(4_200.0 if workers > 5 else 0.0)


@pytest.mark.parametrize(("empty", "samples", "waits"), [(0.0, 40, False), (0.1, 40, True), (0.0, 10, True)])
def test_a_device_that_always_finds_a_batch_in_its_queue_waits_for_no_operation(
    empty: float, samples: int, waits: bool
) -> None:
    """One evaluation of half a second between 40 steps is not 12 ms of data in each; unless some steps found nothing,
    or few were seen."""
    data = DataPipeline("sink", 40, 59_000.0, None, {}, data_queue=Queue(0.9, empty, 0.8, samples, None))
    rank = Subject("rank", "0", (0,))
    values = {"step.time_us": 59_000.0, "step.interval_us": 12_900.0, "step.count": 40}
    facts = FactSet([Fact(name, rank, value) for name, value in values.items()])
    one = feeding_of(0, data, None, facts)
    assert one.wait_us == pytest.approx(12_900.0)
    assert one.starved_us == pytest.approx(12_900.0 if waits else 0.0)
