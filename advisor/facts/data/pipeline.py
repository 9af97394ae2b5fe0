"""Data loading: does the step wait for data, for which operation, and what would help (S02-S07, S64, S69-S76).

One rank is reduced to its batches, queues and operations (`data_loading.py`); the network of queues (`data_network.py`,
`queueing.py`) then says which operation limits the step, how many workers it needs, what that saves and what limits
the step next. `DataPipeline.step_us` serves other families as the step where the device recorded none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from advisor.facts.base import FactSet, Family, Run, fact
from advisor.facts.data.batches import BatchTimes
from advisor.facts.data.catalogue import KINDS
from advisor.facts.data.loading import DATA_PIPELINE, DataPipeline, reduce
from advisor.facts.data.network import Feeding, feeding_of, host_prospects, prospects
from advisor.facts.data.pauses import Pauses
from advisor.facts.data.pipeline_tree import Operation, Queue, never_rests, starvation_rise
from advisor.facts.data.processors import HOST_USE
from advisor.facts.data.remaining import remaining
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject

EDGES = limit("queueing", "edges")
"""Part of the interval between batches by which the edges of a recording lengthen what is done for one."""
WITHOUT_WORKERS = ("Shuffle",)
"""Operations of MindSpore that run on one thread of their own: nothing sets a number of workers for them."""
_OF_WORKERS = frozenset((
    "workers_trial", "workers_needed", "workers_proposed", "workers_capped", "beyond_processors", "beside",
    "step_more_workers_us", "saving_more_workers_us", "limit_more_workers",
    "processes_proposed", "saving_processes_us", "limit_processes",
))  # fmt: skip
"""What more of them would give, which is not told of an operation that cannot have more."""
UNLIKE = limit("queueing", "unlike")
"""Part of the step by which waits for the pipeline lie apart in ranks that are not fed alike."""


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of each rank, of the run, of the queues, and of the operations of each group of like ranks."""
    hosts = run.each(HOST_USE)
    feedings = [feeding_of(rank, data, hosts.get(rank), facts) for rank, data in run.each(DATA_PIPELINE).items()]
    for one in feedings:
        yield from rank_facts(Subject("rank", str(one.rank), (one.rank,)), one)
    if not feedings:
        return
    yield from rank_facts(RUN, middle_of(feedings))
    groups: dict[Any, list[Feeding]] = {}
    for one in feedings:
        shape = tuple((op.name, op.workers) for op in one.data.operations.values())
        groups.setdefault((shape, one.busiest, one.steepest), []).append(one)
    yield from run_queue_facts([middle_of(members) for members in groups.values()])
    for members in (part for of_one_shape in groups.values() for part in _fed_alike(of_one_shape)):
        middle = middle_of(members)
        ranks = tuple(sorted(one.rank for one in members))
        yield from queue_facts(ranks, middle)
        for op in middle.data.operations.values():
            yield from operation_facts(Subject("pipeline_op", op.name, ranks), op, middle)


def _fed_alike(members: list[Feeding]) -> list[list[Feeding]]:
    """Ranks with the same operations, parted where their waits for the pipeline lie far apart: the middle of ranks that
    are fed tells nothing of one that starves."""
    ordered = sorted(members, key=lambda one: one.starved_share or 0.0)
    parts = [ordered[:1]]
    for before, one in itertools.pairwise(ordered):
        if (one.starved_share or 0.0) - (before.starved_share or 0.0) > UNLIKE:
            parts.append([])
        parts[-1].append(one)
    return parts


def middle_of(feedings: list[Feeding]) -> Feeding:
    """The rank whose wait for data is the median."""
    return sorted(feedings, key=lambda one: one.wait_share or 0.0)[len(feedings) // 2]


def rank_facts(subject: Subject, one: Feeding) -> Iterator[Fact]:
    """The `data.` facts of a rank, or of the run from its middle rank."""
    data, times = one.data, one.data.times
    wall = data.wall_us
    host = one.host
    loop = None
    if host is not None and host.loop_cores is not None and one.step_us:
        loop = host.loop_cores * one.step_us
    values: dict[str, Any] = {
        "mode": data.mode, "batches": data.batches or None, "sampling_interval_us": data.sampling_interval_us,
        "step_us": one.step_us if times and times.step_mean_us else None,
        "wait_us": one.wait_us, "wait_share": one.wait_share,
        "starved_us": one.starved_us, "starved_share": one.starved_share,
        "device_us": one.device_us or None, "device_wait_us": data.device_wait_us,
        "device_wait_share": _share_of_interval(data.device_wait_us, times),
        "step_median_us": times.step_us if times else None,
        "own_us": one.network.own_us if one.network and one.network.own_known else None,
        "first_wait_us": times.first_wait_us if times and times.mode == "iterator" else None,
        "first_wait_share": times.first_wait_us / wall
        if times and times.mode == "iterator" and times.first_wait_us and wall else None,
        "wait_spread": times.wait_spread if times else None,
        "wait_longest_us": times.wait_longest_us if times and times.mode == "iterator" else None,
        "pipeline_wait_us": times.wait_us if times and times.mode == "sink" else None,
        "pipeline_wait_share": _share_of_interval(times.wait_us, times)
        if times and times.mode == "sink" else None,
        "push_us": times.push_us if times and times.mode == "sink" else None,
        "push_share": _share_of_interval(times.push_us, times) if times and times.mode == "sink" else None,
        "late_share": times.late_share if times else None, "jitter": times.jitter if times else None,
        **_pause_values(times.pauses if times else None),
        "undisturbed_us": times.undisturbed_us if times else None,
        "disturbance_share": one.disturbance,
        "gil_wait_us": data.gil_wait_us, "gil_wait_own_us": one.own_lock_wait_us,
        "gil_wait_share": data.gil_wait_total_us / wall if data.gil_wait_total_us is not None and wall else None,
        "loop_cpu_us": loop,
        "loop_cpu_share": loop / one.step_us if loop is not None and one.step_us else None,
        "pipeline_limit_us": pipeline_limit(one), **host_prospects(one),
        "workers": sum(op.workers or 0 for op in data.operations.values()) or None,
        "busiest_share": None if one.busiest is None else one.busy_share(data.operations[one.busiest]),
        "busiest_cpu_share": None if one.busiest is None else one.cpu_share(data.operations[one.busiest]),
        "operations": len(data.operations) or None,
        "steepest_rise": None if one.steepest is None else starvation_rise(data.operations[one.steepest]),
        "prefetch_needed": _prefetch_needed(one), "prefetch_current": _capacity(data),
    }  # fmt: skip
    for name, value in values.items():
        yield from fact(f"data.{name}", subject, value, samples=times.steady if times else data.batches)


def _share_of_interval(part_us: float | None, times: BatchTimes | None) -> float | None:
    """A part of the sending thread's time per batch, as a share of the interval between batches.

    What was sent ahead of the first step is no part of the steps' span, and stamps span one interval less than there
    are batches: all of the interval is the most there is. What exceeds it by more than such edges is another unit, or
    other batches, and stays as it is."""
    if times is None or not times.step_mean_us or part_us is None:
        return None
    share = part_us / times.step_mean_us
    return 1.0 if 1.0 < share <= 1.0 + EDGES else share


def pipeline_limit(one: Feeding) -> float | None:
    """The least interval at which the pipeline delivers batches, however early they are asked for, microseconds. That
    is known of an operation whose work was measured and whose workers are told, and of one that never rests."""
    if one.network is None:
        return None
    operations = one.data.operations
    return max(
        (each.cycle_us for op_id, each in one.network.stations.items() if _pace_is_known(operations[op_id])),
        default=None,
    )


def _pace_is_known(op: Operation) -> bool:
    measured = op.work_us is not None and (op.workers is not None or op.type == "Generator")
    return measured or never_rests(op)


def _pause_values(found: Pauses | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {
        "pause_count": found.count, "pause_us": found.extra_us, "pause_cost_us": found.cost_us,
        "pause_cost_share": found.share, "pause_period": found.period,
    }  # fmt: skip


def _capacity(data: DataPipeline) -> int | None:
    if data.times and data.times.queue and data.times.queue.capacity:
        return data.times.queue.capacity
    return data.host_queue.capacity if data.host_queue else None


def _prefetch_needed(one: Feeding) -> int | None:
    """Batches that must lie ready to bridge the longest pause: what lies ready now, and the longest wait ÷ the loop's
    own step."""
    capacity, times = _capacity(one.data), one.data.times
    if capacity is None or times is None or not times.wait_longest_us or one.network is None:
        return None
    if not one.network.own_us or not one.network.own_known:
        return None
    return capacity + int(-(-times.wait_longest_us // one.network.own_us))


def run_queue_facts(middles: list[Feeding]) -> Iterator[Fact]:
    """The queues before the loop or the sender (`host`) and on the device (`data`) of the run: those of the first group
    of like ranks that has them, of its middle rank."""
    for name in ("host", "data"):
        data = next((one.data for one in middles if name in one.data.shared_queues), None)
        if data is not None:
            yield from _queue_values(f"queue.{name}_", RUN, data.shared_queues[name])


def queue_facts(ranks: tuple[int, ...], one: Feeding) -> Iterator[Fact]:
    """The `queue.` facts of like ranks: of the host's queue, the device's, and each operation's output."""
    data = one.data
    for name, queue in data.shared_queues.items():
        yield from _queue_values("queue.", Subject("queue", name, ranks), queue)
    for op in data.operations.values():
        if op.output is not None:
            yield from _queue_values("queue.", Subject("queue", op.name, ranks), op.output)


def _queue_values(prefix: str, subject: Subject, queue: Queue) -> Iterator[Fact]:
    values = {
        "empty_share": queue.empty, "used_share": queue.used, "full_share": queue.full,
        "samples": queue.samples, "capacity": queue.capacity,
    }  # fmt: skip
    for name, value in values.items():
        yield from fact(f"{prefix}{name}", subject, value, Source("", table=queue.table), samples=queue.samples or 1)


def operation_facts(subject: Subject, op: Operation, one: Feeding) -> Iterator[Fact]:
    """The `pipeline_op.` facts of one operation."""
    data, host, network = one.data, one.host, one.network
    cores = host.cores if host else None
    trial = 2 * op.workers if op.workers else None
    work = op.work_us / data.produced if op.work_us is not None and data.produced else None
    out = op.output
    values: dict[str, Any] = {
        "type": op.type, "workers": op.workers, "takes_workers": op.type not in WITHOUT_WORKERS,
        "is_source": op.is_source, "python": op.python,
        "service_us": op.work_us / op.rows if op.work_us is not None and op.rows else None,
        "rows_per_batch": op.rows / data.produced if op.rows and data.produced else None,
        "work_us": work, "busy_share": one.busy_share(op),
        "is_busiest": None if one.busiest is None else op.op_id == one.busiest,
        "is_steepest": None if one.steepest is None else op.op_id == one.steepest,
        "is_hungriest": None if one.hungriest is None else op.op_id == one.hungriest,
        "starvation_rise": starvation_rise(op),
        "never_rests": None if one.steepest is None else op.op_id == one.steepest and never_rests(op),
        "output_used_share": out.used if out else None, "output_empty_share": out.empty if out else None,
        "input_used_share": op.input_used, "input_empty_share": op.input_empty,
        "queue_samples": out.samples if out else None, "queue_capacity": out.capacity if out else None,
        "cpu_cores": op.cpu_cores,
        "workers_trial": max(op.workers or 0, min(trial, cores)) if trial and cores else trial,
        "cpu_share": one.cpu_share(op),
        "cpu_per_worker": 100.0 * op.cpu_cores / op.workers if op.cpu_cores is not None and op.workers else None,
        "host_share": op.cpu_cores / cores if op.cpu_cores is not None and cores else None,
        "wait_share": one.starved_share, "wait_us": one.starved_us, "step_us": one.step_us,
        "disturbance_share": one.disturbance, "batches": data.batches or None,
        "gil_wait_us": data.gil_wait_us if op.python else None, "lock_wait_share": one.lock_wait_share,
        "first_wait_us": data.times.first_wait_us if data.times and data.times.mode == "iterator" else None,
        "mode": data.mode, **remaining(one, op),
    }  # fmt: skip
    if network is not None and op.op_id in network.stations:
        values |= prospects(network, op.op_id)
        if network.stations[op.op_id].python:
            values |= {"python": True, "gil_wait_us": data.gil_wait_us}
    if not values["takes_workers"]:
        values = {name: value for name, value in values.items() if name not in _OF_WORKERS}
    for name, value in values.items():
        yield from fact(f"pipeline_op.{name}", subject, value, samples=data.batches or 1)
    for name, queue in data.shared_queues.items():  # of its own ranks: others may have batches to spare
        yield from _queue_values(f"queue.{name}_", subject, queue)


FAMILIES = (
    Family(
        "data_pipeline", KINDS, measure, DATA_PIPELINE.by(reduce),
        ("trace", "pipeline_ops", "pipeline_summary", "batches", "data_queue", "dataset_stages"),
        uses=(HOST_USE,), after=("steps", "getnext", "operators", "timeline"),
    ),
)  # fmt: skip
