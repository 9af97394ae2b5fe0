"""One rank's data loading joined with its host and its device step: who limits the step, and what a change brings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.facts.base import FactSet
from advisor.facts.data.loading import DataPipeline
from advisor.facts.data.pipeline_tree import Operation, find_steepest, never_rests
from advisor.facts.data.processors import HostUse
from advisor.facts.data.queueing import (
    GIL,
    LOOP,
    PROCESSORS,
    Network,
    Station,
    held_share,
    on_free_processors,
    processes_needed,
    python_threads,
    python_us,
    waiting_for_lock,
    with_companions,
    with_parallel_source,
    with_processes,
    with_workers,
    without,
    workers_needed,
)
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Subject

CONTENDED = limit("interpreter_lock", "contended")
"""Threads of the pipeline that wait for the interpreter lock, on average: from here on it is fought for. Eight real
pipelines whose Python work is light showed 0.00 to 0.08; where it held the lock, or the loop's did, 0.43 and 0.93."""
MOST_OF_STEP = limit("interpreter_lock", "most_of_step")
"""Part of the step that the lock's known holders take at least, where they are all that hold it."""
HOLDER = limit("interpreter_lock", "holder")
"""Processor time of an operation, as part of the step, from which it may be who holds the lock."""
HELD = limit("interpreter_lock", "held")
"""Python work, as part of the step, up to which one lock may have been held for all of it; more was done beside it."""
COMPUTING = limit("interpreter_lock", "computing")
"""Part of an operation's work in which it is on a processor, from which it computes; below, it sleeps."""
PACED = limit("queueing", "paced")
"""Part of what one thread of the pipeline needs per batch, from which a loop that waits so long is as fast as that
thread."""
STARVED_BEHIND, AWAITED = limit("queueing", "starved_behind"), limit("queueing", "awaited")
"""Part of what one thread needs per batch for which the operation behind it waits, and then the loop, at least."""
COVERED = limit("queueing", "covered")
"""Part of the batches of which steps were marked, from which these steps are those batches' own."""
ALIKE, ENOUGH = limit("queueing", "alike"), limit("queueing", "enough")
"""Operations whose busy time is at least this part of the busiest one's limit the step with it."""


def build_network(
    data: DataPipeline,
    host: HostUse | None,
    step_us: float | None,
    wait_us: float | None,
    own_known: bool = True,
    device_us: float = 0.0,
) -> Network | None:
    """The queueing network of a rank whose step and wait for the pipeline are known; None where they are not.

    `own_known` is false where only the sending thread was timed, or nothing but the operations: what remains of its
    interval, or of the slowest one's time for a batch, is no step. `device_us` is what the device computes in the step,
    and idles while the loop is in its own functions: whatever feeds it, the step is no shorter.

    Without measured service times the steepest operation is taken as saturated (utilisation law: work = step ×
    workers), which is what makes it the bottleneck. So it is where these times explain no wait that there is.
    """
    if step_us is None or wait_us is None or step_us <= 0:
        return None
    own = max(0.0, step_us - wait_us)
    if data.times and data.times.undisturbed_us:
        own = min(own, data.times.undisturbed_us)
    stations: dict[int, Station] = {}
    span = host.samples * host.interval_us if host and host.interval_us else None
    wall = data.wall_us or (step_us * data.batches if data.batches else None)
    timed = any(op.work_us is not None for op in data.operations.values())
    steepest = find_steepest(data.operations)
    for op_id, op in data.operations.items():
        if op.work_us is not None and data.produced:
            work = op.work_us / data.produced
        elif not timed and op_id == steepest:
            work = step_us * op.servers
        else:
            continue
        cpu = 0.0
        if op.cpu_cores and data.produced and (wall or span):
            cpu = op.cpu_cores * float(wall or span or 0.0) / data.produced
        asleep = op.cpu_cores is not None and cpu < COMPUTING * work
        stations[op_id] = Station(op.name, work, op.servers, max(1, op.workers or 1), cpu, bool(op.python), asleep)
    loop = 0.0
    if host is not None and host.sure_loop_cores is not None:
        loop = host.sure_loop_cores * step_us
    contended = bool(wall and data.gil_wait_total_us and data.gil_wait_total_us >= CONTENDED * wall)
    if contended:
        loop -= _charge_holder(stations, data, loop, step_us)
    _charge_source(stations, data, loop - own)
    if contended and not (data.times and data.times.undisturbed_us):
        # the loop, too, waits for the lock while the pipeline holds it, inside what looks like its own time; of the
        # process's other threads, which are the framework's as well, the step has room for no more than the rest
        held = python_us(stations)
        own = max(min(loop, max(step_us - held, 0.0)), own - held)
    loop = min(loop, own)
    own = max(own, min(device_us, step_us))
    available = None
    if host is not None and host.cores:
        available = max(1.0, host.cores - (host.other_cores or 0.0))
    unfought = data.gil_wait_total_us is not None and not contended
    if unfought:
        _free_of_lock(stations, step_us)
    held = math.inf if unfought else _held_us(stations, data, wall, step_us)
    found = Network(
        step_us, own, stations, loop, host.cores if host else None, available, own_known, not unfought, held
    )
    return _never_resting(found, data.operations, steepest)


def _never_resting(network: Network, operations: Mapping[int, Operation], steepest: int | None) -> Network:
    """The network in which an operation that always has rows before it and never any behind it delivers what it can:
    its capacity is the pace that was measured, however much of the time its workers are busy. Rows that take unequally
    long leave some of them waiting for others. Only where no limit explains that the loop waits."""
    if steepest is None or steepest not in network.stations or not never_rests(operations[steepest]):
        return network
    if network.step_after()[1] != LOOP:
        return network
    station = network.stations[steepest]
    return network.changed(steepest, replace(station, work_us=network.step_us * station.servers))


def _charge_holder(stations: dict[int, Station], data: DataPipeline, loop_us: float, step_us: float) -> float:
    """Finds who holds a lock that is fought for, where its known holders take too little of the step: an operation
    whose functions no file names as Python (per_batch_map, one of several maps) and that computes much, though no more
    than one thread can: what computes longer than the step lasts does so beside the lock; and a source that is inside
    its code most of the time, whose threads count as the loop's. Returns the loop's time given to it."""
    known = loop_us + python_us(stations)
    for i, station in stations.items():
        told = data.operations[i].python
        unnamed = data.operations[i].type == "Batch" or (data.operations[i].type == "Map" and told is None)
        fits = HOLDER * step_us <= station.cpu_us <= step_us - known
        if unnamed and known < MOST_OF_STEP * step_us and fits:
            stations[i] = replace(station, python=True)
    sources = [i for i, station in stations.items() if data.operations[i].type == "Generator"]
    busiest = max(sources, key=lambda i: stations[i].cycle_us, default=None)
    if busiest is None or stations[busiest].cycle_us < MOST_OF_STEP * step_us:
        return 0.0
    source = stations[busiest]
    hidden = min(source.work_us - source.cpu_us, loop_us * min(source.cycle_us / step_us, 1.0))
    stations[busiest] = replace(source, cpu_us=source.cpu_us + max(hidden, 0.0), asleep=False)
    return max(hidden, 0.0)


def _held_us(stations: Mapping[int, Station], data: DataPipeline, wall_us: float | None, step_us: float) -> float:
    """For how long of the step the lock was held at most. Python work that lasts longer than the step let go of it for
    part of the time; how many threads wait for it tells for how much it was held, where that was recorded."""
    if python_us(stations) <= HELD * step_us:
        return math.inf
    if not wall_us or data.gil_wait_total_us is None:
        return step_us
    return held_share(python_threads(stations), data.gil_wait_total_us / wall_us) * step_us


def _free_of_lock(stations: dict[int, Station], step_us: float) -> None:
    """Where nobody waits for the lock, Python work that lasts longer than the step was done by several at once: in
    processes, or in libraries that let the lock go. Then the lock holds nobody up, and more of them can work."""
    if python_us(stations) <= HELD * step_us:
        return
    for i, station in stations.items():
        stations[i] = replace(station, python=False)


def _charge_source(stations: dict[int, Station], data: DataPipeline, excess_us: float) -> None:
    """Processor time outside the pipeline's threads beyond what fits into the loop's own part was spent by Python
    threads of a source, which no per-operation figure shows: it goes to the generator that works most."""
    sources = [i for i in stations if data.operations[i].type == "Generator"]
    if excess_us <= 0 or not sources:
        return
    i = max(sources, key=lambda i: stations[i].work_us)
    stations[i] = replace(
        stations[i], cpu_us=max(stations[i].cpu_us, min(stations[i].work_us, stations[i].cpu_us + excess_us))
    )


class Feeding(Struct, frozen=True):
    """How one rank is fed: its data pipeline with host and network, ready to be written as facts."""

    rank: int
    data: DataPipeline
    host: HostUse | None
    step_us: float | None
    wait_us: float | None
    network: Network | None
    busiest: int | None
    steepest: int | None
    hungriest: int | None
    starved_us: float | None = None
    """The part of the wait in which the pipeline itself was waited for; the rest is sending."""
    device_us: float = 0.0
    """What the device computes in a step; 0 where nothing tells."""

    @property
    def starved_share(self) -> float | None:
        return self.starved_us / self.step_us if self.step_us and self.starved_us is not None else None

    @property
    def wait_share(self) -> float | None:
        return self.wait_us / self.step_us if self.step_us and self.wait_us is not None else None

    @property
    def wall_us(self) -> float | None:
        """How long the recorded batches took, as their times tell it, or else the step; None where neither is known."""
        if self.data.wall_us is None and self.step_us and self.data.batches:
            return self.step_us * self.data.batches
        return self.data.wall_us

    @property
    def lock_wait_share(self) -> float | None:
        """Threads that wait for the interpreter lock, on average, where it is fought for; else nobody's loss."""
        total, wall = self.data.gil_wait_total_us, self.data.wall_us
        if total is None or not wall:
            return None
        return total / wall if total >= CONTENDED * wall else 0.0

    @property
    def own_lock_wait_us(self) -> float | None:
        """How long threads of the pipeline wait for one another per acquisition of the interpreter lock, by the
        processor time of their own Python; None where neither is known."""
        data, wall = self.data, self.wall_us
        if self.network is None or not wall or not data.gil_wait_us or not data.gil_wait_total_us:
            return None
        stations = self.network.stations
        held = python_us(stations) / self.network.step_us
        waiting = waiting_for_lock(python_threads(stations), held) if held else 0.0
        return waiting * wall / data.gil_wait_total_us * data.gil_wait_us

    @property
    def disturbance(self) -> float | None:
        """Part of the step that goes when the pipeline rests."""
        times = self.data.times
        if times is None or not times.undisturbed_us or not times.step_mean_us:
            return None
        return max(0.0, 1.0 - times.undisturbed_us / times.step_mean_us)

    def cpu_share(self, op: Operation) -> float | None:
        """Part of an operation's work in which its workers were on a processor."""
        if not op.work_us or not op.cpu_cores or not self.data.wall_us:
            return None
        return min(1.0, op.cpu_cores * self.data.wall_us / op.work_us)

    def busy_share(self, op: Operation) -> float | None:
        """Work ÷ (servers × wall). Below a Concat only the time counts in which the branch is read: the part of the
        batches that carry the waiting."""
        return self.most_busy(op) if op.workers or op.type == "Generator" else None

    def most_busy(self, op: Operation) -> float | None:
        """The same, as much as it may be: of one worker where nobody tells how many there are."""
        if op.work_us is None or not self.wall_us:
            return None
        busy = op.work_us / (op.servers * self.wall_us)
        times = self.data.times
        if op.alternating and times and times.wait_spread:
            busy /= times.wait_spread
        return min(1.0, busy)


def _step_and_wait(data: DataPipeline, facts: FactSet, subject: Subject) -> tuple[float | None, float | None, bool]:
    """The step and its wait for data, microseconds, and whether the step was measured.

    The loop's wait in GetNext, or the device's iteration gap where batches are sunk, or else the sending thread's wait
    for the pipeline. What the host waits while the device works costs nothing: the wait is no more than the time in
    which the device idles, than what it does not compute, and than its fetches last.
    """
    times = data.times
    device: Any = facts.value("step.time_us", subject)
    count: Any = facts.value("step.count", subject)
    left_out: Any = facts.value("step.excluded_count", subject)
    gap: Any = facts.value("step.interval_us", subject)
    idle: Any = facts.value("step.idle_share", subject)
    if device is not None and gap is None and count in (None, 1) and data.batches > 1:
        device = device / data.batches  # a recording without a schedule that is left as one row, be it called a step
    step = times.step_mean_us if times else None
    wait = data.wait_us
    if wait is not None and times is None and count and 1 < count + (left_out or 0) < COVERED * data.batches:
        device = None  # the wait is a mean of all batches: a few of them, on full queues, are no step of theirs
    if wait is None and gap is not None:
        step, wait = device, gap
    elif wait is None and times is not None and times.mode == "sink" and step is not None:
        wait = times.wait_us
    if step is None:
        step = device
    measured = step is not None
    if step is None and wait is not None:
        step = _paced_by(data, wait)
    if wait is not None and step:
        wait = min(wait, step - _computed_us(facts, subject, step), (1.0 if idle is None else idle) * step)
    if wait is not None and times is not None and times.fetch_us is not None:
        wait = min(wait, times.fetch_us)
    if wait is not None and times is not None and times.late_share is not None:
        wait *= times.late_share
    return step, wait, measured


def _computed_us(facts: FactSet, subject: Subject, step_us: float) -> float:
    """What the device computes in this step, microseconds; 0 where nothing tells. Its own row may be of a whole
    recording, or of a few steps on full queues: neither its time nor its share is more than what holds here."""
    computing = facts.number("step.computing_us", subject)
    computing = facts.number("operators.compute_us", subject) if computing is None else computing
    if computing is None or facts.value("step.computing_includes_idle", RUN):
        return 0.0
    row = facts.number("step.time_us", subject)
    found = min(computing, computing / row * step_us) if row else computing
    return found if found < step_us else 0.0


def _idled_by_functions(facts: FactSet) -> float:
    """For how long of a step the device idles while the loop is seen inside functions that load nothing, microseconds:
    that stays whatever feeds it, and is no wait for the interpreter lock."""
    owner, loader = (facts.value(f"timeline.{name}", RUN) for name in ("gap_owner", "gap_loader"))
    owned = facts.number("timeline.gap_owner_us", RUN) if owner != loader else None
    return (owned or 0.0) + (facts.number("timeline.function_stall_us", RUN) or 0.0)


def _paced_by(data: DataPipeline, wait_us: float) -> float | None:
    """The step of a loop of which only the pipeline is known: what the slowest operation needs for a batch, as far as
    its workers are told, where the loop waits for most of that; or for much of it, and the operation behind that one
    for about all. Shorter it cannot be."""
    served = [op for op in data.operations.values() if op.work_us and (op.workers or op.type == "Generator")]
    made = data.produced or 1.0
    slowest, awaited = max(
        (((op.work_us or 0.0) / op.servers / made, (op.awaited_us or 0.0) / made) for op in served), default=(0.0, 0.0)
    )
    paced = PACED if awaited < STARVED_BEHIND * slowest else AWAITED
    return max(slowest, wait_us) if wait_us > paced * slowest > 0 else None


def _starved(data: DataPipeline, wait_us: float | None) -> float | None:
    """How much of the wait the pipeline can answer for: no more than the sending thread has left beside sending. One
    that sends all the time exonerates the pipeline, whatever the device waits (S06). Its own figure of its wait
    is not used: where files disagree, the queues contradict that figure. Nor does a device wait for the pipeline that
    finds a batch in its queue each time it asks (S05, S69)."""
    times, queue = data.times, data.data_queue
    if data.mode == "sink" and queue is not None and not queue.empty and (queue.samples or 0) >= COVERED * data.batches:
        return None if wait_us is None else 0.0
    if wait_us is None or times is None or times.mode != "sink" or times.push_us is None or times.step_mean_us is None:
        return wait_us
    return min(wait_us, max(0.0, times.step_mean_us - times.push_us))


def feeding_of(rank: int, data: DataPipeline, host: HostUse | None, facts: FactSet) -> Feeding:
    """Joins a rank's data loading with its host and its device step."""
    subject = Subject("rank", str(rank), (rank,))
    step, wait, measured = _step_and_wait(data, facts, subject)
    starved = _starved(data, wait)
    device_seen = any(facts.value(name, subject) is not None for name in ("step.interval_us", "step.idle_share"))
    own_known = measured and (data.mode != "sink" or device_seen)
    device = _computed_us(facts, subject, step) if step else 0.0
    network = build_network(data, host, step, starved, own_known, device + _idled_by_functions(facts))
    feeding = Feeding(
        rank, data, host, step, wait, network, None, find_steepest(data.operations), None, starved, device
    )
    busy = {i: b for i, op in data.operations.items() if (b := feeding.busy_share(op)) is not None}
    most = max(busy.values(), default=0.0)
    unsure = [op for i, op in data.operations.items() if op.work_us and i not in busy]
    if data.untold or any((feeding.most_busy(op) or 1.0) >= most for op in unsure):
        busy = {}  # the one whose workers nobody tells may be the busiest
    cpu = {i: op.cpu_cores for i, op in data.operations.items() if op.cpu_cores}
    if data.untold or any(op.cpu_cores is None for op in data.operations.values()):
        cpu = {}  # the one that nobody measured may be the hungriest
    return replace(
        feeding,
        busiest=max(busy, key=lambda i: (busy[i], i)) if busy else None,
        hungriest=max(cpu, key=lambda i: (cpu[i] or 0.0, i)) if cpu else None,
    )


def host_prospects(one: Feeding) -> dict[str, float | None]:
    """What it would bring if other processes left the host, or if no time went into switching between threads."""
    host, network = one.host, one.network
    if host is None or network is None or not network.cores or not any(s.cpu_us for s in network.stations.values()):
        return {}
    freed = on_free_processors(network, float(network.cores)).saving_us
    fewer = None
    if network.available and host.user and host.system is not None:
        kernel = max(0.0, host.system - (host.profiler_share or 0.0))
        fewer = on_free_processors(network, network.available, host.user / (host.user + kernel)).saving_us
    return {"saving_free_host_us": freed, "saving_fewer_workers_us": fewer}


def prospects(network: Network, op_id: int) -> dict[str, Any]:
    """What more workers, worker processes, or a cheaper operation would bring."""
    station = network.stations[op_id]
    joint, companions = with_companions(network, op_id, ALIKE, ENOUGH)
    beside = ", ".join(f"{each.name} ({each.workers} → {each.needed})" for each in companions)
    needed, forked = workers_needed(joint, op_id), processes_needed(network, op_id)
    most = max(needed, forked, station.workers) if station.asleep else network.cores or max(needed, station.workers)
    proposed, forks = (
        max(min(needed, most), station.workers),
        min(forked, network.cores or max(needed, forked, station.workers)),
    )
    if not network.own_known:
        # the wanted rate is unknown: twice the workers of now, then another measurement
        proposed = max(station.workers, min(proposed, 2 * station.workers))
        forks = min(forks, 2 * station.servers)
    more = with_workers(joint, op_id, proposed, before=network)
    processes = with_processes(network, op_id, forks)
    cheaper = without(network, op_id)
    parallel = with_parallel_source(network, op_id)
    limits = network.limits()
    # more workers mostly wait for a processor: what helps is less work
    short = more.limit == PROCESSORS and more.saving_us < ENOUGH * cheaper.saving_us
    return {
        "workers_needed": needed if network.own_known else None, "workers_proposed": more.workers,
        "processors_short": short,
        "workers_capped": network.own_known and needed > most, "beside": beside or None,
        "beyond_processors": network.cores is not None and proposed > network.cores,
        "step_more_workers_us": more.step_us, "saving_more_workers_us": more.saving_us,
        "limit_more_workers": more.limit,
        "processes_proposed": processes.workers, "saving_processes_us": processes.saving_us,
        "limit_processes": processes.limit, "saving_removed_us": cheaper.saving_us, "limit_removed": cheaper.limit,
        "parallel_source_workers": parallel.workers, "saving_parallel_source_us": parallel.saving_us,
        "holds_lock": station.python and 2.0 * station.cpu_us > station.work_us,
        "gil_limit_us": limits.get(GIL), "processor_limit_us": limits.get(PROCESSORS), "loop_limit_us": limits[LOOP],
        "limited_by": network.step_after()[1],
    }  # fmt: skip
