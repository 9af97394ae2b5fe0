"""One rank's data loading: batches, queues, operations and the interpreter lock, from whatever files there are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.units import show
from advisor.facts.base import Reduction
from advisor.facts.data.batches import BatchTimes, fetched_batches, read_batches
from advisor.facts.data.pipeline_tree import (
    Operation,
    Queue,
    find_last,
    longest_stages,
    measure_queue,
    read_stages,
    read_tree,
    stages_table,
    untold_operations,
)
from advisor.facts.recording.limits import section
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank

CLOCK_TOLERANCE = limit("clocks", "tolerance")
"""dataset.csv and the iterator file time the same waits. A host-only profile of MindSpore 2.10 assumes a 100 MHz
counter and is wrong by the ratio of clocks (26 on a 2.6 GHz host); twofold disagreement is no rounding."""
CLOCK_FASTEST, CLOCK_SLOWEST = limit("clocks", "fastest"), limit("clocks", "slowest")
"""How many times as fast as assumed a processor's counter runs: no other factor is a clock's."""
CLOCK_MINIMUM_US = limit("clocks", "minimum_us")
"""The iterator file has millisecond steps: below this sum it cannot judge another clock."""
MOST_THREADS = limit("clocks", "most_threads")
"""No operation has more of them at work at once."""


class DataPipeline(Struct, frozen=True):
    """One rank's data loading. `step_us` is the mean interval between batches in the steady part (None where no batch
    was timed); other families use it as the step where the device recorded none."""

    mode: str | None
    batches: int
    step_us: float | None
    times: BatchTimes | None
    operations: Mapping[int, Operation]
    wait_us: float | None = None
    """Mean wait of the loop for a batch in the steady part; None in sink mode."""
    wall_us: float | None = None
    produced: float | None = None
    """Batches that the pipeline worked on, those still queued included."""
    device_wait_us: float | None = None
    """Mean time per batch that the sending thread rests because the device has batches enough; sink mode only."""
    gil_wait_us: float | None = None
    gil_wait_total_us: float | None = None
    data_queue: Queue | None = None
    sampling_interval_us: float | None = None
    untold: frozenset[int] = frozenset()
    """Operations whose place or work is not known: any of them may be the busiest."""

    @property
    def shared_queues(self) -> dict[str, Queue]:
        """Those that no operation owns, where they were sampled: `host` before the loop or the sender, `data` on the
        device."""
        queues = {"host": self.host_queue, "data": self.data_queue}
        return {name: queue for name, queue in queues.items() if queue is not None}

    @property
    def host_queue(self) -> Queue | None:
        """The queue before the loop or the sending thread: as each batch found it, else as it was sampled."""
        if self.times is not None and self.times.queue is not None:
            return self.times.queue
        last = find_last(self.operations)
        return last.output if last is not None else None


DATA_PIPELINE = Reduction("data_pipeline", DataPipeline)


def reduce(rank: Rank) -> DataPipeline | None:
    """The rank's data loading from whatever it has; None where it has nothing."""
    tables = ("pipeline_ops", "pipeline_summary", "batches", "data_queue")
    told = stages_table(rank)
    if not told and not any(rank.has(table) for table in tables):
        return None
    listed = read_batches(rank)
    times = listed or fetched_batches(rank, _room_before_loop(rank))
    stages = _stage_totals(rank)
    waits, wait_total = _waits_of(rank, stages)
    scale = _clock_scale(rank, listed, wait_total)
    _tell_missing(rank, listed, stages, waits)
    interval = _sampling_interval(rank)
    skip = 0
    if times is not None and times.first_wait_us and interval:
        skip = int(times.first_wait_us // interval) + 1
    operations = read_tree(rank, skip, scale)
    locks = [stages[name] for name in stages if name.endswith("/AcquireGIL")]
    acquisitions, lock_time = sum(c for c, _ in locks), sum(t for _, t in locks) * scale
    mode = times.mode if times is not None else _mode_of(rank, bool(waits))
    delivered = times.batches if times is not None else int(waits)
    rests = [total for name, (_, total) in stages.items() if name.endswith("/WaitForAscend")]
    last = find_last(operations)
    made = last.rows if last is not None else None
    data = DataPipeline(
        mode, delivered, times.step_mean_us if times else None, times, operations,
        wait_us=_wait(times, waits, wait_total * scale),
        wall_us=times.wall_us if times else None,
        produced=max(float(delivered), made or 0.0) or None,
        device_wait_us=sum(rests) * scale / delivered if rests and delivered else None,
        gil_wait_us=lock_time / acquisitions if acquisitions else None,
        gil_wait_total_us=lock_time if acquisitions else None,
        data_queue=_data_queue(rank), sampling_interval_us=interval,
        untold=untold_operations(rank),
    )  # fmt: skip
    if not (operations or times or waits or data.data_queue):
        return None
    return _while_filling(rank, data) if times is not None and times.is_ahead else data


def _while_filling(rank: Rank, data: DataPipeline) -> DataPipeline:
    """The same without what its queues were seen to hold while these batches filled them for the first time, which says
    how fast the pipeline starts and not whether anybody waits for it. Queues that were sampled more often saw more."""
    text = f"lists no more batches ({data.batches}) than a queue holds: nobody need have taken one while they were sent"
    file = rank.relative(rank.tables["batches"].paths[0])
    rank.note(file, f"{text}; neither steps nor the use of the queue are judged from them")
    operations = {
        number: op
        if op.output is None or (op.output.samples or 0) > data.batches
        else replace(op, output=None, input_used=None, input_empty=None)
        for number, op in data.operations.items()
    }
    times = None if data.times is None else replace(data.times, queue=None)
    return replace(data, operations=operations, times=times)


def _stage_totals(rank: Rank) -> dict[str, tuple[float, float]]:
    """`operation/stage` without ids -> (occurrences, total µs); operations keep their id, the pipeline has none."""
    totals: dict[str, tuple[float, float]] = {}
    rows = read_stages(rank)
    if rank.has("dataset_stages") and (untold := sum(not row["count"] and row["avg_us"] > 0 for row in rows)):
        headings = rank.headings("dataset_stages", "count", "avg_us")
        text = f"contradicts itself: {headings[0]} is 0 beside a time in {untold} of {len(rows)} rows"
        rank.note(rank.relative(rank.tables["dataset_stages"].paths[0]), text, ("dataset_stages",))
    for row in rows:
        stage, count = f"{row['operation']}/{row['stage']}", float(row["count"])
        before = totals.get(stage, (0.0, 0.0))
        totals[stage] = (before[0] + count, before[1] + count * float(row["avg_us"]))
    return totals


def _waits_of(rank: Rank, stages: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """(batches that the loop asked for, its waits for them in µs). The iterator's call holds the pipeline's, so that
    both last about as long in any clock: where they do not, one of them is no measurement, and the shorter one is used,
    which blames the pipeline for less."""
    calls = [stages[name] for name in ("IteratorConsumer/GetNextAsVector", "Pipeline/GetNext") if name in stages]
    (count, total), inner = [*calls, (0.0, 0.0)][0], calls[-1][1] if calls else 0.0
    if max(total, inner) - min(total, inner) <= max(CLOCK_MINIMUM_US, (CLOCK_TOLERANCE - 1) * min(total, inner)):
        return count, total
    file = rank.tables[stages_table(rank)].paths[0]
    text = f"contradicts itself: the same calls wait for {show(total, 'us')} and for {show(inner, 'us')}"
    rank.note(rank.relative(file), text, (stages_table(rank),))
    return count, min(total, inner)


def _clock_scale(rank: Rank, times: BatchTimes | None, wait_total: float) -> float:
    """By how much the clock of dataset.csv is off: by the rate of a counter that a processor has, and for all of its
    rows. Where the work of an operation, or any stage, would then last longer than the threads that it takes place in
    have time for, only some of them are."""
    if times is None or times.mode != "iterator" or not wait_total or times.total_wait_us < CLOCK_MINIMUM_US:
        return 1.0
    ratio = (times.total_wait_us + 500.0 * times.batches) / wait_total
    if 1.0 / CLOCK_TOLERANCE <= ratio <= CLOCK_TOLERANCE:
        return 1.0
    file, table = rank.relative(rank.tables[stages_table(rank)].paths[0]), stages_table(rank)
    if not CLOCK_SLOWEST <= 1.0 / ratio <= CLOCK_FASTEST:
        text = f"contradicts itself: its waits are {1 / ratio:.3g} times the iterator's, which no clock makes of them"
        rank.note(file, text, (table,))
        return 1.0
    tree = read_tree(rank, scale=ratio)
    lasts = [(op.work_us or 0.0, _threads(op)) for op in tree.values()]
    for number, us in longest_stages(rank).items():
        operation = None if number is None else tree.get(number)
        lasts.append((ratio * us, MOST_THREADS if operation is None else _threads(operation)))
    if times.wall_us and any(us > threads * times.wall_us for us, threads in lasts):
        rank.note(file, "contradicts itself: its waits disagree with the iterator's, its other times do not", (table,))
        return 1.0
    rank.note(file, f"its clock disagrees with the iterator's by a factor of {1 / ratio:.3g}; times were rescaled")
    return ratio


def _threads(operation: Operation) -> float:
    """How many may be at work in it at once: those that the list of operations tells, which may have grown since."""
    return CLOCK_TOLERANCE * operation.workers if operation.workers else MOST_THREADS


def _tell_missing(
    rank: Rank, times: BatchTimes | None, stages: Mapping[str, tuple[float, float]], count: float
) -> None:
    """Tells a list of batches that is shorter than what the pipeline's own statistic counts, and a statistic that does
    not count the batches which the loop fetched: either was cut."""
    if times is None or times.mode != "iterator" or not stages or not rank.has("dataset_stages"):
        return
    other = rank.tables["dataset_stages"].paths[0]
    if not count:
        rank.note(
            rank.relative(other), "does not tell how the loop fetched batches: rows are missing", ("dataset_stages",)
        )
    elif times.batches + 1 < (1 - section("witness")["cut_share"]) * count:
        text = f"lists {times.batches} of the {count:.0f} batches that {other.name} counts: rows are missing"
        rank.note(rank.relative(rank.tables["batches"].paths[0]), text, ("batches",))


def _wait(times: BatchTimes | None, count: float, total: float) -> float | None:
    """Mean wait per batch in the steady part. The iterator file cuts to whole milliseconds, dataset.csv does not but
    holds all batches: so the latter, less what the former says of the batches outside the steady part."""
    if times is None:
        return total / count if count else None
    if times.mode != "iterator":
        return None
    if not count or times.wait_us is None or count != times.batches or not times.steady:
        return times.wait_us
    outside = times.total_wait_us - times.wait_us * times.steady
    return max(times.wait_us, min(times.wait_us + 1000.0, (total - outside) / times.steady))


def _room_before_loop(rank: Rank) -> int | None:
    """Batches that the last queue holds, where one was sampled."""
    last = find_last(read_tree(rank))
    return last.output.capacity if last is not None and last.output is not None else None


def _mode_of(rank: Rank, waits: bool) -> str | None:
    if waits:
        return "iterator"
    frame = rank.read("pipeline_ops")
    if frame is not None and (frame["type"] == "DataQueue").any():
        return "sink"
    return "sink" if rank.has("data_queue") else None


def _sampling_interval(rank: Rank) -> float | None:
    """Real spacing of queue samples: that of the processor samples (the same thread takes both), else as configured."""
    frame = rank.read("host_cpu")
    if frame is not None:
        times = frame["time_ns"].dropna()
        if len(times) > 1 and times.iloc[-1] > times.iloc[0]:
            return float(times.iloc[-1] - times.iloc[0]) / 1e3 / (len(times) - 1)
    frame = rank.read("pipeline_ops")
    known = [] if frame is None else frame["sampling_interval_us"].dropna().tolist()
    return float(known[0]) if known else None


def _data_queue(rank: Rank) -> Queue | None:
    frame = rank.read("data_queue")
    if frame is None:
        return None
    # the first batch is asked for before any was made
    return measure_queue([float(s) for s in frame["queue_size"].dropna()], None, skip=1, table="data_queue")
