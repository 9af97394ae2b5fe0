"""The data pipeline as a network of queues: who limits the step, and what would limit it next.

Utilisation law: an operation's busy share = throughput × service time ÷ workers. In the steady state the step takes as
long as the slowest of: the loop's own part, every operation's work ÷ workers, the Python work that one interpreter lock
admits, and all processor work ÷ the processors that others leave. Removing one limit uncovers the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

MOST_WORKERS = 10_000
"""More than any host has: a loop that takes no time at all is not known well enough to ask for workers."""
BISECTIONS = 40
"""Halvings after which nothing changes any more."""
LOOP, PROCESSORS, GIL = "loop", "processors", "gil"
"""Names of limits that are no operation: the training step itself, the host's processors, the interpreter lock."""


class Station(Struct, frozen=True):
    """One operation as a server. Times are per batch, microseconds."""

    name: str
    work_us: float
    servers: int
    workers: int
    cpu_us: float = 0.0
    python: bool = False
    asleep: bool = False
    """Measured to be on no processor most of the time: it may have more workers than the host has processors."""

    @property
    def cycle_us(self) -> float:
        """Time between two batches that this operation could deliver on its own."""
        return self.work_us / self.servers


def python_us(stations: Mapping[int, Station]) -> float:
    """Processor time of all Python work per batch, microseconds."""
    return sum(station.cpu_us for station in stations.values() if station.python)


def python_threads(stations: Mapping[int, Station]) -> int:
    """Threads that run it."""
    return sum(station.servers for station in stations.values() if station.python)


class Network(Struct, frozen=True):
    """One rank's pipeline and loop."""

    step_us: float
    own_us: float
    """The loop's own part of the step: what remains if data were always ready."""
    stations: Mapping[int, Station]
    loop_cpu_us: float = 0.0
    """Processor time per step outside the pipeline; Python, so it takes the interpreter lock."""
    cores: int | None = None
    """Processors of the host: no operation may have more workers."""
    available: float | None = None
    """Processors that other processes leave to this one."""
    own_known: bool = True
    """Whether `own_us` is the step's own time; else only a lower bound of it, and savings are upper bounds."""
    loop_locks: bool = True
    """Whether the loop's processor time keeps the interpreter lock from others: not where nobody waits for it."""
    held_us: float = math.inf
    """The most of the step for which the interpreter lock can have been held, by whomever."""

    def limits(self) -> dict[str, float]:
        """Every lower bound of the step by name, microseconds."""
        found = {LOOP: self.own_us}
        for station in self.stations.values():
            found[station.name] = station.cycle_us
        total = self.loop_cpu_us + sum(station.cpu_us for station in self.stations.values())
        if self.available and total:
            found[PROCESSORS] = total / self.available
        python = python_us(self.stations)
        if python:
            found[GIL] = min(python + (self._loop_in_lock(python) if self.loop_locks else 0.0), self.held_us)
        return found

    def _loop_in_lock(self, python_us: float) -> float:
        """How long the loop may hold the lock. Threads of the framework compute outside the pipeline as well, and a
        step has no more room than the pipeline's own Python leaves."""
        return max(0.0, min(self.loop_cpu_us, self.own_us, self.step_us - python_us))

    def step_after(self) -> tuple[float, str]:
        """The step this network would have, and what limits it. Never longer than the step that was measured."""
        name, limit = max(self.limits().items(), key=lambda item: item[1])
        return min(limit, self.step_us), name

    def changed(self, op_id: int, station: Station | None) -> Network:
        """The same network with one operation replaced, or taken away."""
        stations = {i: s for i, s in self.stations.items() if i != op_id}
        if station is not None:
            stations[op_id] = station
        return replace(self, stations=stations)


class Prospect(Struct, frozen=True):
    """What a change of one operation would bring."""

    workers: int
    step_us: float
    saving_us: float
    limit: str


def workers_needed(network: Network, op_id: int) -> int:
    """Workers with which the operation no longer limits the step: its work ÷ the next limit."""
    station = network.stations[op_id]
    idle = replace(station, work_us=0.0)
    target = max(network.changed(op_id, idle).limits().values())
    scale = station.workers / station.servers
    ratio = scale * station.work_us / target if target > 0 else math.inf
    return max(1, math.ceil(round(ratio, 6))) if ratio < MOST_WORKERS else station.workers


def with_workers(network: Network, op_id: int, workers: int, before: Network | None = None) -> Prospect:
    """The step with this many workers on threads, against the step of `before` (this network itself)."""
    station = network.stations[op_id]
    work = station.cycle_us * station.workers
    changed = network.changed(op_id, replace(station, work_us=work, servers=workers, workers=workers))
    return _prospect(before or network, changed, workers)


class Companion(Struct, frozen=True):
    """Another operation that needs more workers as well."""

    name: str
    workers: int
    needed: int


def with_companions(network: Network, op_id: int, alike: float, enough: float) -> tuple[Network, list[Companion]]:
    """The network in which the operations that limit the step beside this one have the workers they need, and those.

    Beside it limits what is busy about as much (`alike`: the least part of its cycle): repairing one of two gains
    nothing. So does what would limit next and leave less than `enough` of the gain that more workers can bring.
    """
    cycle = network.stations[op_id].cycle_us
    others = {i: s for i, s in network.stations.items() if i != op_id}
    if any(s.cycle_us > cycle / alike for s in others.values()):
        return network, []
    floor = _least(network, [op_id, *others])
    chosen = [i for i, s in others.items() if s.cycle_us >= alike * cycle]
    target = _least(network, [op_id, *chosen])
    while cycle - target < enough * (cycle - floor):
        chosen = [i for i, s in others.items() if s.cycle_us >= alike * target]
        before, target = target, _least(network, [op_id, *chosen])
        if target >= before:
            break
    if not chosen or target <= 0 or target >= alike * cycle:
        return network, []
    joint, companions = network, []
    for i in chosen:
        station = others[i]
        workers = max(math.ceil(round(station.cycle_us * station.workers / target, 6)), station.workers)
        if network.cores and not station.asleep:
            workers = max(min(workers, network.cores), station.workers)
        faster = replace(station, work_us=station.cycle_us * station.workers, servers=workers, workers=workers)
        joint = joint.changed(i, faster)
        companions.append(Companion(station.name, station.workers, workers))
    return joint, companions


def _least(network: Network, idle: list[int]) -> float:
    """The largest limit that stays where these operations take no time, microseconds."""
    for i in idle:
        network = network.changed(i, replace(network.stations[i], work_us=0.0))
    return max(network.limits().values())


def held_share(threads: int, waiting: float) -> float:
    """Part of the time for which a lock is held that so many threads take in turn, of which `waiting` wait for it on
    average."""
    return _crowd(threads, lambda _, queued: queued < waiting)[0] if waiting < threads - 1 else 1.0


def waiting_for_lock(threads: int, share: float) -> float:
    """Threads that wait for one another, on average, at a lock that all together hold for this part of the time."""
    return _crowd(threads, lambda held, _: held < share)[1] if share < 1.0 else threads - 1.0


def _crowd(threads: int, less: Callable[[float, float], bool]) -> tuple[float, float]:
    """(part of the time for which the lock is held, threads that wait for it) of the load at which `less` of the two
    turns false: the finite-source queue with one server (M/M/1//N). With r = time in the lock ÷ time outside of it,
    P(idle) = 1 ÷ Σ N!/(N−k)! · r^k, held = 1 − P(idle), waiting = N − held · (1 + 1/r)."""
    low, high = 0.0, 1.0  # of r ÷ (1 + r), the part of its time for which a thread would hold a lock of its own
    held = waiting = 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        r, term, total = middle / (1 - middle), 1.0, 1.0
        for k in range(threads):
            term *= (threads - k) * r
            total += term
        held = 1 - 1 / total
        waiting = max(threads - held * (1 + 1 / r), 0.0)
        low, high = (middle, high) if less(held, waiting) else (low, middle)
    return held, waiting


def unlocked_work(network: Network, op_id: int) -> float:
    """An operation's work per batch without waiting for the interpreter lock, microseconds.

    While one thread of `w` runs Python, the others wait: up to (w − 1) × processor time of their own, and w × that of
    the loop. What remains is at least the processor time itself.
    """
    station = network.stations[op_id]
    if not station.python or not station.cpu_us:
        return station.cycle_us * station.workers
    loop = min(network.loop_cpu_us, network.own_us)
    waiting = (station.servers - 1) * station.cpu_us + station.servers * loop
    return max(station.cpu_us, station.work_us - waiting)


def with_processes(network: Network, op_id: int, workers: int) -> Prospect:
    """The step with this many worker processes: they share no interpreter lock, only the processors."""
    station = network.stations[op_id]
    work = unlocked_work(network, op_id)
    changed = network.changed(op_id, replace(station, work_us=work, servers=workers, workers=workers, python=False))
    return _prospect(network, changed, workers)


def processes_needed(network: Network, op_id: int) -> int:
    """Worker processes with which the operation no longer limits the step: its work without the lock ÷ the next limit
    of a network in which it does not take the lock either."""
    station = network.stations[op_id]
    freed = network.changed(op_id, replace(station, work_us=0.0, python=False))
    target = max(freed.limits().values())
    ratio = unlocked_work(network, op_id) / target if target > 0 else math.inf
    return max(1, math.ceil(round(ratio, 6))) if ratio < MOST_WORKERS else station.workers


def with_parallel_source(network: Network, op_id: int) -> Prospect:
    """The step if the workers that are configured took effect: a source that was iterated by one thread so far."""
    station = network.stations[op_id]
    workers = min(station.workers, network.cores) if network.cores and not station.asleep else station.workers
    changed = network.changed(op_id, replace(station, work_us=station.cycle_us, servers=workers, workers=workers))
    return _prospect(network, changed, workers)


def without(network: Network, op_id: int) -> Prospect:
    """The step if this operation took no time: the most that changing its code can give."""
    return _prospect(network, network.changed(op_id, None), 0)


def on_free_processors(network: Network, processors: float, useful: float = 1.0) -> Prospect:
    """The step if no operation waited for a processor: its work is the `useful` part of its processor time, and no more
    of its workers than `processors` work side by side. What mostly sleeps waits for something else and stays."""
    changed = network
    for i, one in network.stations.items():
        if one.cpu_us and not one.asleep:
            servers = max(1, min(one.servers, int(processors)))
            cpu = min(useful * one.cpu_us, one.cycle_us * servers)
            changed = changed.changed(i, replace(one, work_us=cpu, cpu_us=cpu, servers=servers))
    return _prospect(network, replace(changed, available=processors), 0)


def _prospect(before: Network, after: Network, workers: int) -> Prospect:
    """The step that was measured, less the limit that stays.

    What a step takes beyond its limit is spent handing batches over at that limit: it goes when another takes its
    place. An operation that limits next hands over as well; the loop's own part, and what the processors or the lock
    take, were measured with all that belongs to them.
    """
    start, now = before.step_after()
    if not start:
        return Prospect(workers, before.step_us, 0.0, now)
    slower = before.step_us / start
    handing = {now, *(station.name for station in after.stations.values())}
    step, limit = max((us * (slower if name in handing else 1.0), name) for name, us in after.limits().items())
    return Prospect(workers, min(step, before.step_us), max(0.0, before.step_us - step), limit)
