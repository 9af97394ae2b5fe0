"""What MindSpore Insight's helpers compute, as they compute it: facts of the pack `mindinsight-compat` only.

The helpers trust the profiler's own average row, judge the share of samples in which a queue was empty, and compare
the average fill of each operation's output queue with that of its children. Their link check sums bandwidths of
single operations; it is left out. Ranks are compared only where all ranks of the job are there, as the helpers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean
from typing import Any

from msgspec import Struct

from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.model import RUN, Fact, Source, Subject
from advisor.sources.base import Rank

KINDS = (
    kind("mindinsight.interval_us", "us", "rank", "iteration gap in the profiler's average row",
         needs="step_phases_average"),
    kind("mindinsight.host_batches", "count", "rank", "batches with a recorded size of the host queue",
         needs="batches"),
    kind("mindinsight.host_empty_count", "count", "rank", "batches that found the host queue empty", needs="batches"),
    kind("mindinsight.host_empty_percent", "number", "rank", "the same in percent of the batches, rounded up",
         needs="batches"),
    kind("mindinsight.data_empty_count", "count", "rank", "GetNext calls that found the queue on the device empty",
         needs="data_queue"),
    kind("mindinsight.cpu_busy_percent", "number", "rank", "100 − rounded mean of the idle percentage of the host",
         needs="host_cpu"),
    kind("mindinsight.lowest_usage", "ratio", "rank", "lowest queue use of all operations but the root",
         needs="pipeline_ops"),
    kind("mindinsight.usage", "ratio", "pipeline_op", "average fill ÷ capacity of the output queue; 0 where unknown",
         needs="pipeline_ops"),
    kind("mindinsight.usage_gap", "ratio", "pipeline_op", "highest use of a child − own use", needs="pipeline_ops"),
    kind("mindinsight.is_leaf", "bool", "pipeline_op", "no operation feeds it", needs="pipeline_ops"),
    kind("mindinsight.operation", "text", "pipeline_op", "type of the operation", needs="pipeline_ops"),
    kind("mindinsight.parallel_mode", "text", "run", "data-, model- or pipeline-parallel, from file names",
         needs="cluster_phases"),
    kind("mindinsight.interval_excess", "ratio", "run rank", "iteration gap ÷ mean of all ranks − 1; run: largest",
         needs="step_phases_average"),
    kind("mindinsight.flops_deficit", "ratio", "run rank", "1 − FLOPS ÷ mean of all ranks; of the run: largest",
         needs="flops"),
    kind("mindinsight.communication_rate", "ratio", "run", "Σ exposed communication ÷ Σ (computation + exposed "
         "communication) over ranks, average rows", needs="cluster_phases_average"),
    kind("mindinsight.receive_rate", "ratio", "run", "Σ exposed Receive ÷ the same", needs="cluster_phases_average"),
    kind("mindinsight.collective_rate", "ratio", "run stage", "Σ exposed collectives ÷ the same, over the ranks of a "
         "stage; of the run: largest", needs="cluster_phases_average"),
    kind("mindinsight.stage_flop_excess", "ratio", "run stage", "mean work of its ranks ÷ mean of the stages − 1; "
         "of the run: largest", needs="flops"),
)  # fmt: skip


class Operation(Struct, frozen=True):
    """One operation of the data pipeline, its use read as MindInsight reads it."""

    name: str
    type: str
    usage: float
    children: tuple[int, ...]
    is_root: bool


class Helper(Struct, frozen=True):
    """One rank's input of the helpers, microseconds; absent where the rank has no such file."""

    values: Mapping[str, Any]
    operations: Mapping[int, Operation]
    average: Mapping[str, float]
    interval_us: float | None
    flop: float | None
    flop_per_s: float | None
    sources: Mapping[str, Source]


HELPER = Reduction("mindinsight", Helper)


def reduce(rank: Rank) -> Helper:
    """A few numbers of each file."""
    tables = ("step_phases_average", "batches", "data_queue", "host_cpu", "pipeline_ops", "cluster_phases_average")
    interval = _first(rank, "step_phases_average", "interval_us")
    phases = ("computation_us", "exposed_us", "receive_us", "exposed_collective_us")
    average = {name: value for name in phases if (value := _first(rank, "cluster_phases_average", name)) is not None}
    return Helper(
        {"interval_us": interval, **_queues(rank), **_processors(rank)},
        _operations(rank),
        average,
        interval,
        _first(rank, "flops", "flop"),
        _first(rank, "flops", "flop_per_s"),
        {table: rank.source(table) for table in (*tables, "flops") if rank.has(table)},
    )


def _first(rank: Rank, table: str, column: str) -> float | None:
    frame = rank.read(table, (column,))
    values = [] if frame is None or column not in frame else frame[column].dropna().tolist()
    return float(values[0]) if values else None


def _queues(rank: Rank) -> dict[str, Any]:
    found: dict[str, Any] = {}
    frame = rank.read("batches", ("queue_size",))
    sizes = [] if frame is None else frame["queue_size"].dropna().tolist()
    if sizes:
        empty = sum(size == 0 for size in sizes)
        found = {"host_batches": len(sizes), "host_empty_count": empty,
                 "host_empty_percent": -(-100 * empty // len(sizes))}  # fmt: skip
    frame = rank.read("data_queue", ("queue_size",))
    if frame is not None:
        found["data_empty_count"] = int((frame["queue_size"] == 0).sum())
    return found


def _processors(rank: Rank) -> dict[str, Any]:
    frame = rank.read("host_cpu", ("idle_share",))
    idle = [] if frame is None else frame["idle_share"].dropna().tolist()
    return {"cpu_busy_percent": 100 - round(100 * mean(idle))} if idle else {}


def _operations(rank: Rank) -> dict[int, Operation]:
    frame = rank.read("pipeline_ops", ("op_id", "type", "queue_average", "queue_capacity", "parent", "children"))
    if frame is None:
        return {}
    found = {}
    for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
        usage = row.queue_average / row.queue_capacity if row.queue_average is not None and row.queue_capacity else 0.0
        found[int(row.op_id)] = Operation(
            f"{row.type}({row.op_id})", str(row.type), float(usage), tuple(row.children or ()), row.parent is None
        )
    return found


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Facts of each rank and its operations, then of the cluster."""
    del facts
    helpers = run.each(HELPER)
    for rank, helper in helpers.items():
        sources = tuple(helper.sources.values())
        subject = Subject("rank", str(rank), (rank,))
        inner = [op.usage for op in helper.operations.values() if not op.is_root]
        for name, value in {**helper.values, "lowest_usage": min(inner, default=None)}.items():
            yield from fact(f"mindinsight.{name}", subject, value, *sources)
        yield from _operation_facts(rank, helper)
    if helpers and len(helpers) == (run.profile.world_size or 1) > 1:
        yield from _cluster_facts(run, helpers)


def _operation_facts(rank: int, helper: Helper) -> Iterator[Fact]:
    source = tuple(helper.sources[t] for t in ("pipeline_ops",) if t in helper.sources)
    for op in helper.operations.values():
        if op.is_root:
            continue
        subject = Subject("pipeline_op", op.name, (rank,))
        fed = [helper.operations[child].usage for child in op.children if child in helper.operations]
        gap = max(fed) - op.usage if fed else None
        values = {"usage": op.usage, "usage_gap": gap, "is_leaf": not op.children, "operation": op.type}
        for name, value in values.items():
            yield from fact(f"mindinsight.{name}", subject, value, *source)


def _cluster_facts(run: Run, helpers: Mapping[int, Helper]) -> Iterator[Fact]:
    modes = {str(rank.info.get("legacy_mode") or "") for rank in run.ranks} - {""}
    if len(modes) == 1:
        yield from fact("mindinsight.parallel_mode", RUN, modes.pop())
    intervals = {rank: helper.interval_us for rank, helper in helpers.items() if helper.interval_us is not None}
    yield from _compared("interval_excess", helpers, intervals, lambda value, middle: value / middle - 1)
    speeds = {rank: helper.flop_per_s for rank, helper in helpers.items() if helper.flop_per_s is not None}
    yield from _compared("flops_deficit", helpers, speeds, lambda value, middle: 1 - value / middle)
    sources = [s for helper in helpers.values() for t, s in helper.sources.items() if t == "cluster_phases_average"]
    averages = {rank: helper.average for rank, helper in helpers.items() if helper.average}
    if len(averages) == len(helpers):
        everyone = list(averages.values())
        yield from fact("mindinsight.communication_rate", RUN, _rate(everyone, "exposed_us"), *sources)
        yield from fact("mindinsight.receive_rate", RUN, _rate(everyone, "receive_us"), *sources)
    rates, works = {}, {}
    for index, members in enumerate(_stages(run)):
        subject = Subject("stage", str(index), members)
        if all(rank in averages for rank in members):
            rates[subject] = _rate([averages[rank] for rank in members], "exposed_collective_us")
        work = [flop for rank in members if rank in helpers and (flop := helpers[rank].flop) is not None]
        if len(work) == len(members):
            works[subject] = mean(work)
    middle = mean(works.values()) if works else 0.0
    excess = {subject: work / middle - 1 for subject, work in works.items() if middle > 0}
    for name, values in (("collective_rate", rates), ("stage_flop_excess", excess)):
        for subject, value in {**values, RUN: max(values.values(), default=None)}.items():
            yield from fact(f"mindinsight.{name}", subject, value, *sources)


def _compared(name: str, helpers: Mapping[int, Helper], values: Mapping[int, float], against: Any) -> Iterator[Fact]:
    """Each rank against the mean of all; nothing where a rank lacks the value."""
    if len(values) < len(helpers) or not mean(values.values()) > 0:
        return
    middle = mean(values.values())
    found = {rank: against(value, middle) for rank, value in values.items()}
    for rank, value in found.items():
        yield from fact(f"mindinsight.{name}", Subject("rank", str(rank), (rank,)), value)
    yield from fact(f"mindinsight.{name}", RUN, max(found.values()))


def _rate(averages: list[Mapping[str, float]], part: str) -> float:
    """Σ part ÷ Σ (computation + exposed communication); 0 unless all three are positive, as the helper has it."""
    above, computation, exposed = (
        sum(each.get(name, 0.0) for each in averages) for name in (part, "computation_us", "exposed_us")
    )
    return above / (computation + exposed) if min(above, computation, exposed) > 0 else 0.0


def _stages(run: Run) -> list[tuple[int, ...]]:
    """Equal runs of consecutive ranks, as the helper supposes."""
    count = next((int(rank.info["stage_num"]) for rank in run.ranks if rank.info.get("stage_num")), 1)
    ranks = sorted(rank.rank for rank in run.ranks)
    size = len(ranks) // count if count else 0
    return [tuple(ranks[i * size : (i + 1) * size]) for i in range(count)] if size else []


FAMILIES = (
    Family(
        "mindinsight", KINDS, measure, HELPER.by(reduce),
        ("step_phases_average", "batches", "data_queue", "host_cpu", "pipeline_ops", "cluster_phases_average", "flops"),
    ),
)  # fmt: skip
