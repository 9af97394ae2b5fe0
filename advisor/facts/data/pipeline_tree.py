"""The data pipeline as a tree of operations with queues between them, of one rank.

Operation 0 is the consumer's end; leaves are sources. Inline operations (Repeat, Zip, Project, …)
have no queue of their own: what they take is what the nearest operations with a queue below them hand on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.facts.data.attendance import PROCESS, attendance
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank
from advisor.sources.minddata.minddata import LOST_STAGE
from advisor.sources.streams.rank_trace import load_trace
from advisor.sources.streams.trace import DATA_PIPELINE

SERVICE_STAGES = (PROCESS, "__next__")
"""Stages of dataset.csv that are an operation's own work; the others are waiting for a neighbour or a lock."""
UNBLOCKED = limit("queueing", "unblocked")
"""How much fuller the queue before an operation is than the one behind it, from which it never rests."""
ROOTS = ("DataQueue", "EpochCtrl")
_NAME = re.compile(r"^(?P<type>\w+?)(?:Op)?\s*\(ID:\s*(?P<id>\d+)\)$")


class Queue(Struct, frozen=True):
    """What the samples of one queue say. Shares are of the samples, `used` is mean fill ÷ capacity."""

    used: float
    empty: float
    full: float
    samples: int | None
    """None where a summary tells the shares and not what they rest on."""
    capacity: int | None
    table: str = "pipeline_ops"
    """Where its samples stand."""

    @property
    def is_measured(self) -> bool:
        """Whether `used` is a share of the queue. Of a queue of unknown length it is one of the most that was seen in
        it, so that there may be more room, never less."""
        return self.capacity is not None or self.samples is None or not self.used


class Operation(Struct, frozen=True):
    """One operation. Work is the time its workers spent on rows, summed over workers, microseconds."""

    op_id: int
    type: str
    workers: int | None
    output: Queue | None = None
    inputs: tuple[int, ...] = ()
    """Operations with a queue (or a measured service) that feed this one, inline ones skipped."""
    parent: int | None = None
    work_us: float | None = None
    rows: float | None = None
    cpu_cores: float | None = None
    python: bool | None = None
    alternating: bool = False
    """Below a Concat: it works only while its branch is read."""
    input_used: float | None = None
    input_empty: float | None = None
    queued: bool = False
    """It hands on through a queue, whether that was sampled or not."""
    awaited_us: float | None = None
    """How long the operation behind it waits for it, where nothing but the stages of dataset.csv tells the pipeline."""
    input_wait_us: float | None = None
    """How long it waits for rows itself, as far as the same stages tell."""

    @property
    def name(self) -> str:
        return f"{self.type}({self.op_id})"

    @property
    def is_source(self) -> bool:
        return not self.inputs

    @property
    def servers(self) -> int:
        """Workers that serve rows in parallel. `__next__` of a generator is entered by one thread, however many
        workers prepare rows behind it."""
        return 1 if self.type == "Generator" else max(1, self.workers or 1)


def measure_queue(
    sizes: Iterable[float],
    capacity: int | None,
    skip: int = 0,
    average: float | None = None,
    table: str = "pipeline_ops",
) -> Queue | None:
    """A queue's use from its samples, the first `skip` (the pipeline filling) left out where enough remain."""
    values = list(sizes)
    if skip and len(values) >= 3 * skip:
        values, average = values[skip:], None
    if not values:
        return None
    if capacity is None or capacity <= 0:
        capacity = None
    mean = sum(values) / len(values) if average is None else average
    top = float(capacity) if capacity else max(values)
    return Queue(
        used=min(1.0, mean / top) if top > 0 else 0.0,
        empty=sum(value == 0 for value in values) / len(values),
        full=sum(value >= top for value in values) / len(values) if top > 0 else 0.0,
        samples=len(values),
        capacity=capacity,
        table=table,
    )


def read_tree(rank: Rank, skip: int = 0, scale: float = 1.0) -> dict[int, Operation]:
    """The rank's operations by id from whatever it has: sampled queues, MindSpore's summary, times by stage.

    `skip` first samples of each queue belong to the pipeline filling; `scale` corrects the clock of dataset.csv.
    """
    work, has_python = read_work(rank, scale)
    cpu = read_cpu(rank)
    raw = {op.op_id: (op, children) for op, children in _raw_operations(rank, skip)}
    if not raw:
        raw = {op.op_id: (op, children) for op, children in _line_of(rank, work, scale)}
    tree = {op_id: op for op_id, (op, _) in raw.items()}
    children = {op_id: known for op_id, (_, known) in raw.items()}
    feeding = {child for known in children.values() for child in known}
    carries = {i for i, op in tree.items() if _carries(op, i in work, i in feeding)}
    maps = [i for i in carries if tree[i].type == "Map"]
    below_concat = _below_concat(tree, children)
    for op_id, op in tree.items():
        inputs = tuple(_feeders(op_id, children, carries))
        rows, total = work.get(op_id, (None, None))
        python = (has_python if len(maps) == 1 else None) if op.type == "Map" else op.type == "Generator" or None
        used = [queue for i in inputs if i in tree and (queue := tree[i].output) is not None]
        used = used if len(used) == len(inputs) and all(queue.is_measured for queue in used) else []
        pick = max if op_id in below_concat or _joins(op_id, children, tree, "Concat") else min
        tree[op_id] = replace(
            op, inputs=inputs, rows=rows, work_us=total, cpu_cores=cpu.get(op_id), python=python,
            alternating=op_id in below_concat,
            input_used=pick(queue.used for queue in used) if used else None,
            input_empty=(min if pick is max else max)(queue.empty for queue in used) if used else None,
        )  # fmt: skip
    return {i: op for i, op in tree.items() if i in carries}


def stages_table(rank: Rank) -> str:
    """The table that tells the stages of operations: dataset.csv, else the timeline that it is made of, which the
    profiler writes for every MindSpore program with a data pipeline; empty where neither does."""
    if rank.has("dataset_stages"):
        return "dataset_stages"
    trace = load_trace(rank) if rank.has("trace") else None
    return "trace" if trace and any(name.startswith(DATA_PIPELINE) for _, name in trace.activities) else ""


def read_stages(rank: Rank) -> list[Mapping[str, Any]]:
    """Each stage of each operation with its `count` and `avg_us`, from `stages_table`."""
    if stages_table(rank) != "trace":
        return list(_records(rank.read("dataset_stages")))
    trace = load_trace(rank)
    seen = () if trace is None else trace.activities.items()
    parts = ((name.split("::"), one) for (_, name), one in seen if name.startswith(DATA_PIPELINE))
    return [
        {"operation": names[1], "stage": names[2], "count": float(one.count), "avg_us": one.total_us / one.count}
        for names, one in parts
        if len(names) > 2 and one.count
    ]


def read_work(rank: Rank, scale: float = 1.0) -> tuple[dict[int, tuple[float, float]], bool]:
    """Operation id -> (rows, summed own time in µs) from their stages, and whether any Python function was mapped."""
    found: dict[int, tuple[float, float]] = {}
    lost: set[int] = set()
    python = False
    for row in read_stages(rank):
        if str(row["operation"]).startswith("PyFunc"):
            python = True
        match = _NAME.match(str(row["operation"]).strip())
        if match is not None and row["stage"] == LOST_STAGE:
            lost.add(int(match["id"]))
        if match is None or row["stage"] not in SERVICE_STAGES or not row["count"] or row["avg_us"] is None:
            continue
        rows, total = found.get(int(match["id"]), (0.0, 0.0))
        found[int(match["id"])] = (rows + row["count"], total + row["count"] * row["avg_us"] * scale)
    return {number: work for number, work in found.items() if number not in lost}, python


def longest_stages(rank: Rank) -> dict[int | None, float]:
    """Operation id -> what its longest stage lasts in all, microseconds; None for those of stages without a number."""
    totals: dict[tuple[int | None, str, str], float] = {}
    for row in read_stages(rank):
        name, stage = str(row["operation"]).strip(), str(row["stage"])
        match = _NAME.match(name)
        key = (int(match["id"]) if match else None), name, stage
        if row["count"] and row["avg_us"]:
            totals[key] = totals.get(key, 0.0) + row["count"] * row["avg_us"]
    longest: dict[int | None, float] = {}
    for (number, *_), us in totals.items():
        longest[number] = max(longest.get(number, 0.0), us)
    return longest


def read_cpu(rank: Rank) -> dict[int, float]:
    """Operation id -> processor use in cores, from the samples or else from MindSpore's summary."""
    found = {
        int(row["op_id"]): ((row["user_percent"] or 0.0) + (row["system_percent"] or 0.0)) / 100.0
        for row in _records(rank.read("pipeline_cpu"))
    }
    if not found:
        found = {
            int(row["op_id"]): row["cpu_percent_of_core"] / 100.0
            for row in _records(rank.read("pipeline_summary"))
            if row["op_id"] is not None and row["cpu_percent_of_core"] is not None
        }
    return found


def untold_operations(rank: Rank) -> frozenset[int]:
    """Operations of which not all is known that says who is busiest: their time or processor use was measured and the
    tree that there is lacks them, or dataset.csv tells what they waited for and not what they worked."""
    frame = next((f for t in ("pipeline_ops", "pipeline_summary") if (f := rank.read(t)) is not None), None)
    known = set() if frame is None else set(frame["op_id"].dropna().astype(int))
    worked = {*read_work(rank)[0]}
    lacked = {*worked, *read_cpu(rank)} - known if known else set()
    named = {
        int(match["id"])
        for row in read_stages(rank)
        if (match := _NAME.match(str(row["operation"]).strip())) and match["type"] not in ROOTS
    }
    return frozenset(lacked | (named - worked if worked else set()))


def _records(frame: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as dictionaries with None where a cell is NA."""
    if frame is None:
        return
    for row in frame.to_dict("records"):
        yield {name: None if _is_missing(value) else value for name, value in row.items()}


def _is_missing(value: Any) -> bool:
    return value is None or (not isinstance(value, (tuple, list, str)) and value != value) or str(value) == "<NA>"


def _raw_operations(rank: Rank, skip: int) -> Iterator[tuple[Operation, tuple[int, ...]]]:
    rows = list(_records(rank.read("pipeline_ops")))
    for row in rows:
        queue = measure_queue(row["queue_sizes"] or (), row["queue_capacity"], skip, row["queue_average"])
        yield (
            Operation(
                row["op_id"],
                row["type"],
                row["workers"],
                queue,
                parent=row["parent"],
                queued=row["queue_capacity"] is not None,
            ),
            tuple(row["children"] or ()),
        )
    if rows:
        return
    summary = list(_records(rank.read("pipeline_summary")))
    for row in summary:
        queue = None
        if row["queue_used"] is not None:
            queue = Queue(row["queue_used"], row["queue_empty"] or 0.0, 0.0, None, None, "pipeline_summary")
        # the summary's reader keeps no tree: MindSpore numbers a linear pipeline from the consumer to the source
        below = (row["op_id"] + 1,) if row["op_id"] + 1 < len(summary) else ()
        yield Operation(row["op_id"], row["type"], row["workers"], queue), below


def _line_of(rank: Rank, work: Mapping[int, Any], scale: float) -> Iterator[tuple[Operation, tuple[int, ...]]]:
    """Only times are known: MindSpore numbers from the consumer to the source, so the numbering is taken as a line.
    Workers are known as far as their stages tell them, and a generator is entered by one thread."""
    types, names, rows = {}, {}, read_stages(rank)
    for row in rows:
        if match := _NAME.match(name := str(row["operation"]).strip()):
            types[int(match["id"])], names[name] = match["type"], int(match["id"])
    ids, told = sorted(work), attendance(rows, names)
    for place, here in enumerate(ids):
        awaited, waited = (
            None if us is None else scale * us for us in (told[here].awaited_us, told[here].input_wait_us)
        )
        operation = Operation(here, types[here], told[here].workers, awaited_us=awaited, input_wait_us=waited)
        yield operation, tuple(ids[place + 1 : place + 2])


def _carries(op: Operation, has_times: bool, feeds: bool) -> bool:
    """Whether rows wait behind an operation. Several workers hand on through a queue, even where the file lost it."""
    through = op.output is not None or op.queued
    return (through or has_times or (feeds and (op.workers or 1) > 1)) and op.type not in ROOTS


def _feeders(op_id: int, children: Mapping[int, tuple[int, ...]], carries: set[int]) -> Iterator[int]:
    """The operations whose rows arrive here; one that is named but not told of is among them, its queue unknown. A file
    may name operations that feed themselves: each is passed once."""
    pending, passed = [*reversed(children.get(op_id, ()))], {op_id}
    while pending:
        child = pending.pop()
        if child in carries or child not in children:
            yield child
        elif child not in passed:
            passed.add(child)
            pending.extend(reversed(children[child]))


def _joins(op_id: int, children: Mapping[int, tuple[int, ...]], tree: Mapping[int, Operation], kind: str) -> bool:
    """An inline operation of this kind lies between this operation and its feeders."""
    return any(child in tree and tree[child].type == kind for child in children.get(op_id, ()))


def _below_concat(tree: Mapping[int, Operation], children: Mapping[int, tuple[int, ...]]) -> set[int]:
    found: set[int] = set()
    pending = [child for i, op in tree.items() if op.type == "Concat" for child in children.get(i, ())]
    while pending:
        op_id = pending.pop()
        if op_id not in found:
            found.add(op_id)
            pending.extend(children.get(op_id, ()))
    return found


def find_last(tree: Mapping[int, Operation]) -> Operation | None:
    """The operation nearest the consumer: the one that feeds no other."""
    feeding = {i for op in tree.values() for i in op.inputs}
    return next((op for i, op in sorted(tree.items()) if i not in feeding), None)


def walk_from_sources(tree: Mapping[int, Operation]) -> list[Operation]:
    """Operations from the sources to the consumer: each after all that feed it."""
    order: list[Operation] = []
    done: set[int] = set()
    pending = sorted(tree, reverse=True)
    while pending:
        ready = [i for i in pending if all(j in done or j not in tree for j in tree[i].inputs)]
        for op_id in ready or pending:
            order.append(tree[op_id])
            done.add(op_id)
        pending = [i for i in pending if i not in done]
    return order


def starvation_rise(op: Operation) -> float | None:
    """How much emptier an operation's output is than its input: 1 where it starves all after it while its own input is
    full, 0 where it hands on what it gets. A source counts as having a full input (S71, S72)."""
    if op.output is None:
        return None
    before = 1.0 if op.is_source else op.input_used
    return None if before is None else before - op.output.used


def never_rests(op: Operation) -> bool:
    """Whether it always has rows before it and never any behind it, so that it delivers what it can."""
    return (starvation_rise(op) or 0.0) >= UNBLOCKED


def find_steepest(tree: Mapping[int, Operation]) -> int | None:
    """The operation at which starvation begins; where two are equal, the one whose output is empty more often, then
    the one nearer the source. None where as much may be lost at another, whose queue or the one before it was not
    sampled or is of unknown length, or behind an operation that is not told of."""
    best: tuple[float, float] = (-1.0, 0.0)
    found, at_most = None, dict[int, float]()
    for op in walk_from_sources(tree):
        if op.output is None:
            continue
        rise = starvation_rise(op)
        if rise is None or not op.output.is_measured:
            at_most[op.op_id] = _most_before(op, tree) - (op.output.used if op.output.is_measured else 0.0)
        if rise is not None and (key := (round(rise, 6), op.output.empty)) > best:
            best, found = key, op.op_id
    others = (most for op_id, most in at_most.items() if op_id != found)
    return None if round(max(others, default=-1.0), 6) >= best[0] else found


def _most_before(op: Operation, tree: Mapping[int, Operation]) -> float:
    """The most that may have lain before an operation whose input was not sampled, as a share of the queue."""
    pending, passed, most = [op], {op.op_id}, 0.0
    while pending:
        feeders = pending.pop().inputs
        if not feeders or not all(feeder in tree for feeder in feeders):
            return 1.0
        for feeder in (tree[each] for each in feeders if each not in passed):
            passed.add(feeder.op_id)
            if feeder.output is None:
                pending.append(feeder)
            else:
                most = max(most, feeder.output.used)
    return most
