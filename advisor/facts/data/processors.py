"""The host: how busy its processors are and who keeps them so (S77, S78, S79), and its time by stage (S83)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.knowledge.measuring import limit
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

SAMPLE_COST_US, MOST_SAMPLE_COST_US = limit("observer", "sample_us"), limit("observer", "most_sample_us")
"""Processor time of one MindData sample: it walks /proc/<pid>/smaps. Measured as (profiled − unprofiled process use) ×
spacing over ten runs on a 2-core host: 19 to 38 ms, median 25."""
CORE_US = 1e6


class HostUse(Struct, frozen=True):
    """One rank's view of its host, means over the samples. Shares are of the whole machine, uses in cores."""

    cores: int | None
    samples: int
    interval_us: float | None
    user: float | None
    system: float | None
    io: float | None
    idle: float | None
    switches: float | None
    runnable: float | None
    process_cores: float | None
    pipeline_cores: float | None

    @property
    def profiler_cores(self) -> float | None:
        """Cores that the sampling itself takes, at most one (it is one thread); None where nothing tells how often."""
        return min(1.0, SAMPLE_COST_US / self.interval_us) if self.interval_us else None

    @property
    def profiler_share(self) -> float | None:
        """The same as a part of the host."""
        return self.profiler_cores / self.cores if self.profiler_cores is not None and self.cores else None

    @property
    def busy(self) -> float | None:
        """Share of the machine that is not idle and not waiting for I/O."""
        if self.idle is not None:
            return max(0.0, 1.0 - self.idle - (self.io or 0.0))
        return None if self.user is None or self.system is None else min(1.0, self.user + self.system)

    @property
    def other_cores(self) -> float | None:
        """Cores that other processes use."""
        if self.busy is None or self.cores is None or self.process_cores is None:
            return None
        return max(0.0, self.busy * self.cores - self.process_cores)

    @property
    def loop_cores(self) -> float | None:
        """Cores the process uses outside the data pipeline's own threads and outside the sampler: the training loop,
        and Python threads that a source started itself."""
        return None if self.profiler_cores is None else self._outside_pipeline(self.profiler_cores)

    @property
    def sure_loop_cores(self) -> float | None:
        """The same, as far as it surely is not the sampler's: only that may limit what a remedy is promised."""
        return self._outside_pipeline(min(1.0, MOST_SAMPLE_COST_US / self.interval_us)) if self.interval_us else None

    def _outside_pipeline(self, sampler_cores: float) -> float | None:
        if self.process_cores is None:
            return None
        return max(0.0, self.process_cores - (self.pipeline_cores or 0.0) - sampler_cores)


HOST_USE = Reduction("host_cpu", HostUse)


def _mean(values: object) -> float | None:
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array)]
    return float(array.mean()) if array.size else None


def reduce(rank: Rank) -> HostUse | None:
    """Means over the samples of the rank's host; None where nothing was sampled."""
    frame = rank.read("host_cpu")
    if frame is None or frame.empty:
        return None
    at = {name: frame[name].to_numpy(float, na_value=np.nan) for name in frame.columns}
    known = at["cores"][np.isfinite(at["cores"])]
    # the first process sample has nothing to compare with and covers no time
    user, system = at["process_user_percent"][1:], at["process_system_percent"][1:]
    process = None if len(user) == 0 or _mean(user) is None else (_mean(user) or 0.0) + (_mean(system) or 0.0)
    from advisor.facts.data.pipeline_tree import read_cpu

    operations = read_cpu(rank)
    times = at["time_ns"][np.isfinite(at["time_ns"])]
    return HostUse(
        cores=int(known[0]) if len(known) and known[0] > 0 else None,
        samples=int(np.isfinite(at["idle_share"]).sum() or np.isfinite(at["user_share"]).sum()),
        interval_us=float(np.diff(times).mean() / 1e3) if len(times) > 1 and times[-1] > times[0] else None,
        user=_mean(at["user_share"]), system=_mean(at["system_share"]), io=_mean(at["io_share"]),
        idle=_mean(at["idle_share"]), switches=_mean(at["context_switches"]), runnable=_mean(at["runnable"]),
        process_cores=None if process is None else process / 100.0,
        pipeline_cores=sum(operations.values()) if operations else None,
    )  # fmt: skip


_CPU = "host_cpu"
_HOST_KINDS = (
    kind("host.cores", "count", "host run", "processors of the host", needs=_CPU),
    kind("host.samples", "count", "host run", "processor samples with ticks in them", needs=_CPU),
    kind("host.sampling_interval_us", "us", "host run", "real spacing of the samples, longer than configured",
         needs=_CPU),
    kind("host.busy_share", "ratio", "host run", "busy part of the host's processors", needs=_CPU,
         formula="1 − idle − I/O wait"),
    kind("host.user_share", "ratio", "host run", "part spent in programs", needs=_CPU),
    kind("host.system_share", "ratio", "host run", "part spent in the kernel", needs=_CPU),
    kind("host.io_share", "ratio", "host run", "part spent waiting for I/O", needs=_CPU),
    kind("host.idle_share", "ratio", "host run", "part idle", needs=_CPU),
    kind("host.switches_per_core_s", "per_s", "host run", "context switches per core and second",
         formula="mean switches of a sample ÷ (spacing × cores)", needs=_CPU),
    kind("host.runnable_per_core", "number", "host run", "processes and threads ready to run, per core", needs=_CPU),
    kind("host.process_cores", "number", "host run", "cores the training process uses", needs=_CPU),
    kind("host.process_share", "ratio", "host run", "the training process's part of the host's busy time", needs=_CPU),
    kind("host.other_share", "ratio", "host run", "part of the host that other processes use (S78)",
         formula="busy share − process cores ÷ cores", needs=_CPU),
    kind("host.pipeline_share", "ratio", "host run", "part of the host that the data pipeline's threads use",
         formula="Σ operations' use ÷ cores; Python threads of a source are not in it", needs="pipeline_cpu"),
    kind("host.profiler_share", "ratio", "host run", "part of the host that the sampling itself uses, estimated",
         formula="25 ms of processor time a sample ÷ (spacing × cores)", needs=_CPU),
    kind("host.available_cores", "number", "host run", "cores that other processes leave to the training", needs=_CPU,
         formula="cores × (1 − other share)"),
)  # fmt: skip


def host_subject(run: Run, rank: int) -> Subject:
    """The host of a rank: its name, or the first of its ranks where hosts are not named."""
    names = {r.rank: r.host for r in run.ranks}
    host = names.get(rank)
    members = tuple(sorted(r for r, name in names.items() if name == host)) if host else (rank,)
    return Subject("host", host or f"host-of-{rank}", members)


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Every host's facts; those of the run are of the host with the least idle time."""
    del facts
    uses = run.each(HOST_USE)
    by_host: dict[Subject, HostUse] = {}
    for rank, use in uses.items():
        by_host.setdefault(host_subject(run, rank), use)
    for subject, use in by_host.items():
        yield from _facts_of(subject, use)
    if by_host:
        yield from _facts_of(RUN, min(by_host.values(), key=lambda use: 1.0 if use.idle is None else use.idle))


def _facts_of(subject: Subject, use: HostUse) -> Iterator[Fact]:
    cores = use.cores

    def share(value: float | None) -> float | None:
        return None if value is None or not cores else value / cores

    per_core = None
    if use.switches is not None and use.interval_us and cores:
        per_core = use.switches / (use.interval_us / CORE_US) / cores
    other = share(use.other_cores)
    process = None
    if use.busy and cores and use.process_cores is not None:
        process = min(1.0, use.process_cores / (use.busy * cores))
    for name, value in (
        ("cores", cores), ("samples", use.samples), ("sampling_interval_us", use.interval_us),
        ("busy_share", use.busy), ("user_share", use.user), ("system_share", use.system), ("io_share", use.io),
        ("idle_share", use.idle), ("switches_per_core_s", per_core),
        ("runnable_per_core", share(use.runnable)), ("process_cores", use.process_cores), ("process_share", process),
        ("other_share", other), ("pipeline_share", share(use.pipeline_cores)),
        ("profiler_share", use.profiler_share),
        ("available_cores", None if other is None or not cores else cores * (1.0 - other)),
    ):  # fmt: skip
        yield from fact(f"host.{name}", subject, value, samples=use.samples)


class StageTimes(Struct, frozen=True):
    """Host time by module, event and stage of one rank: the largest first, (name, calls, total µs, longest µs)."""

    stages: tuple[tuple[str, int, float, float], ...]
    span_us: float
    sources: tuple[Source, ...]


STAGE_TIMES = Reduction("host_stages", StageTimes)


def reduce_stages(rank: Rank) -> StageTimes | None:
    """Sums the rank's host events by stage; the span is from the first start to the last end."""
    frame = rank.read("host_stages")
    if frame is None or frame.empty:
        return None
    duration = frame["duration_us"].to_numpy(float, na_value=np.nan)
    frame = frame[np.isfinite(duration) & (duration >= 0)].copy()
    if frame.empty:
        return None
    frame["duration_us"] = frame["duration_us"].astype(float)
    names = frame[["module", "event", "stage"]].astype("string").fillna("").agg("/".join, axis=1).str.strip("/")
    table = (
        frame.groupby(names.to_numpy())["duration_us"].agg(["count", "sum", "max"]).sort_values("sum", ascending=False)
    )
    start = frame["start_us"].to_numpy(float, na_value=np.nan)
    end = frame["end_us"].to_numpy(float, na_value=np.nan)
    span = float(np.nanmax(end) - np.nanmin(start)) if np.isfinite(start).any() and np.isfinite(end).any() else 0.0
    rows = tuple((str(n), int(r["count"]), float(r["sum"]), float(r["max"])) for n, r in table.head(20).iterrows())
    return StageTimes(rows, span, (rank.source("host_stages", "module", "event", "stage"),))


_STAGE_KINDS = (
    kind("host.stage_name", "text", "host run", "the host stage with the most time: module/event/stage",
         needs="host_stages"),
    kind("host.stage_us", "us", "host run", "its time, all calls", needs="host_stages"),
    kind("host.stage_longest_us", "us", "host run", "its longest call", needs="host_stages"),
    kind("host.stage_calls", "count", "host run", "its calls", needs="host_stages"),
    kind("host.stage_share", "ratio", "host run", "its time as a share of the recorded span",
         formula="Σ durations ÷ (last end − first start), at most 1 for one thread", needs="host_stages"),
)  # fmt: skip


def measure_stages(run: Run, facts: FactSet) -> Iterator[Fact]:
    """The largest host stage of every host, and of the run's slowest host."""
    del facts
    found = {host_subject(run, rank): times for rank, times in run.each(STAGE_TIMES).items() if times.stages}
    if found:
        found[RUN] = max(found.values(), key=lambda times: times.stages[0][2])
    for subject, times in found.items():
        name, calls, total, longest = times.stages[0]
        for key, value in (
            ("name", name), ("us", total), ("longest_us", longest), ("calls", calls),
            ("share", total / times.span_us if times.span_us > 0 else None),
        ):  # fmt: skip
            yield from fact(f"host.stage_{key}", subject, value, *times.sources, samples=calls)


FAMILIES = (
    Family("host_cpu", _HOST_KINDS, measure, HOST_USE.by(reduce), ("host_cpu",)),
    Family("host_stages", _STAGE_KINDS, measure_stages, STAGE_TIMES.by(reduce_stages), ("host_stages",)),
)
