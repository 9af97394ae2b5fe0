"""The pipeline's tree: where starvation begins in lines, joins and shared branches."""

from __future__ import annotations

from typing import Any

import pandas as pd

from advisor.facts.data.pipeline_tree import (
    Operation,
    Queue,
    find_last,
    find_steepest,
    measure_queue,
    read_tree,
    starvation_rise,
    untold_operations,
    walk_from_sources,
)


class FakeRank:
    """A rank whose tables are given."""

    def __init__(
        self, ops: list[tuple[Any, ...]], stages: list[tuple[str, str, float, float]] = (), unmeasured: int = -1
    ) -> None:
        self.unmeasured = unmeasured
        columns = ["op_id", "type", "workers", "queue_sizes", "queue_capacity", "queue_average", "parent", "children"]
        rows = [(i, kind, w, sizes, self.length(i, sizes), None, None, below) for i, kind, w, sizes, below in ops]
        self.tables = {"pipeline_ops": pd.DataFrame(rows, columns=columns)}
        if stages:
            self.tables["dataset_stages"] = pd.DataFrame(stages, columns=["operation", "stage", "count", "avg_us"])

    def length(self, op_id: int, sizes: tuple[int, ...]) -> int | None:
        return 16 if sizes and op_id != self.unmeasured else None

    def has(self, table: str) -> bool:
        return table in self.tables

    def read(self, table: str, columns: object = None) -> pd.DataFrame | None:
        return self.tables.get(table)


FULL, EMPTY, HALF = (16,) * 20, (0,) * 20, (8,) * 20


def tree(ops: list[tuple[Any, ...]], **more: Any) -> dict[int, Operation]:
    return read_tree(FakeRank(ops, **more))  # type: ignore[arg-type]


def test_the_operation_between_a_full_and_an_empty_queue_is_found() -> None:
    """Full before, empty after: the map, not the batch nearest the consumer, which merely starves."""
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, EMPTY, (2,)), (2, "Generator", 1, FULL, ())]
    assert find_steepest(tree(line)) == 1


def test_a_source_that_leaves_everything_empty_is_found() -> None:
    """The leaf is the bottleneck when all queues after it are little used."""
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, EMPTY, (2,)), (2, "ImageFolder", 8, EMPTY, ())]
    assert find_steepest(tree(line)) == 2


def test_nobody_is_blamed_beside_a_source_whose_queue_was_lost() -> None:
    """The lost queue may be the empty one: its neighbour, which merely waits with it, is not named instead."""
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, EMPTY, (2,)), (2, "TFReader", 8, (), ())]
    assert find_steepest(tree(line)) is None


def test_nobody_is_blamed_beside_an_operation_that_the_file_lost() -> None:
    """The map names a source that nothing tells of: as much may be lost there as behind any other."""
    line = [(0, "Batch", 2, (4,) * 20, (1,)), (1, "Map", 2, HALF, (2,))]
    assert starvation_rise(tree(line)[0]) == 0.25
    assert find_steepest(tree(line)) is None


def test_of_two_sources_neither_is_blamed_where_one_s_queue_was_lost() -> None:
    """Both may fill the join as little: the one whose samples are left is not the culprit for that."""
    join = [(0, "Shuffle", 1, EMPTY, (1, 2)), (1, "TFReader", 4, EMPTY, ()), (2, "TFReader", 4, (), ())]
    assert find_steepest(tree(join)) is None


def test_a_lost_queue_hides_no_more_than_lies_between_its_neighbours() -> None:
    """Behind the lost queue an eighth is missing at most; half of it goes at the batch."""
    most = (14,) * 20
    line = [(0, "Batch", 2, (6,) * 20, (1,)), (1, "Map", 2, most, (2,)), (2, "TFReader", 8, (), ())]
    assert find_steepest(tree(line)) == 0


def test_a_queue_of_unknown_length_tells_only_that_it_is_empty() -> None:
    """Ten rows may be all of the queue or a tenth of it, so that as much may be lost there, or behind it, as anywhere;
    where there never is one, the length does not matter."""
    rows = (5, 10, 5, 10)
    join = [(0, "Shuffle", 1, HALF, (1, 2)), (1, "TFReader", 4, rows, ()), (2, "TFReader", 4, rows, ())]
    assert find_steepest(tree(join)) == 2
    assert find_steepest(tree(join, unmeasured=2)) is None and find_steepest(tree(join, unmeasured=1)) is None
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, (9, 10, 9, 10), (2,)), (2, "TFReader", 8, FULL, ())]
    assert find_steepest(tree(line)) == 0 and find_steepest(tree(line, unmeasured=1)) is None
    starved = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, EMPTY, (2,)), (2, "TFReader", 8, FULL, ())]
    assert find_steepest(tree(starved, unmeasured=1)) == 1


def test_a_zip_starves_with_its_slower_branch() -> None:
    """The consumer of a zip is not to blame for a branch that is empty while the other is full."""
    branches = [
        (0, "Batch", 1, EMPTY, (1,)), (1, "Zip", 1, (), (2, 3)), (2, "Map", 1, FULL, (5,)), (3, "Map", 1, EMPTY, (4,)),
        (4, "Generator", 1, FULL, ()), (5, "Generator", 1, FULL, ()),
    ]  # fmt: skip
    found = tree(branches)
    assert find_steepest(found) == 3
    assert found[0].inputs == (2, 3) and found[0].input_used == 0.0


def test_a_concat_is_read_branch_by_branch() -> None:
    """A branch that waits its turn is full and one that is done is empty: neither starves the consumer."""
    branches = [
        (0, "Batch", 1, HALF, (1,)),
        (1, "Concat", 1, (), (2, 3)),
        (2, "Map", 1, EMPTY, ()),
        (3, "Map", 1, FULL, ()),
    ]
    found = tree(branches)
    assert found[0].input_used == 1.0
    assert found[2].alternating and not found[0].alternating


def test_inline_operations_are_skipped_and_the_last_queue_is_the_consumers() -> None:
    """Ids say nothing of the order: the operation that feeds no other is the last."""
    ops = [
        (0, "Batch", 4, (), (4,)),
        (4, "Shuffle", 1, EMPTY, (1,)),
        (1, "Repeat", 1, (), (2,)),
        (2, "TFReader", 4, FULL, ()),
    ]
    found = tree(ops)
    last = find_last(found)
    assert last is not None and last.op_id == 4
    assert found[4].inputs == (2,)
    assert [op.op_id for op in walk_from_sources(found)] == [2, 4]


def test_work_is_summed_from_the_stages_that_are_work() -> None:
    """Waiting for a neighbour is not work; a generator's __next__ is entered by one thread whatever its workers."""
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Generator", 4, EMPTY, ())]
    stages = [("BatchOp(ID:0)", "WorkerProcess", 10.0, 100.0), ("BatchOp(ID:0)", "WorkerProcess", 2.0, 1.0),
              ("BatchOp(ID:0)", "GetFromPreviousOp", 40.0, 9e9),
              ("GeneratorOp(ID:1)", "__next__", 40.0, 500.0)]  # fmt: skip
    found = tree(line, stages=stages)
    assert (found[0].work_us, found[0].servers) == (1002.0, 2)
    assert (found[1].work_us, found[1].servers) == (20000.0, 1)


def test_the_filling_of_a_queue_is_left_out_only_where_enough_remains() -> None:
    """The first samples find every queue empty; with few samples nothing can be left out."""
    filled = measure_queue([0, 0, *FULL], 16, skip=2)
    assert filled is not None and filled.empty == 0.0 and filled.samples == 20
    short = measure_queue([0, 16], 16, skip=2)
    assert short is not None and short.empty == 0.5
    assert measure_queue([], 16) is None


def test_a_queue_without_capacity_is_measured_against_its_fullest() -> None:
    """The device's queue has no stated capacity; empty is empty all the same."""
    queue = measure_queue([0, 2, 4], None)
    assert queue == Queue(used=0.5, empty=1 / 3, full=1 / 3, samples=3, capacity=None)
    assert starvation_rise(Operation(1, "Map", 1)) is None


def test_an_operation_whose_samples_are_lost_still_stands_between_its_neighbours() -> None:
    """The queue before the one that reads from it is unknown then: it is not that of the operation two before."""
    rank = FakeRank([(0, "Batch", 1, [0] * 9, [1]), (1, "Map", 1, [], [2]), (2, "Generator", 1, [16] * 9, [])])
    rank.tables["pipeline_ops"]["queue_capacity"] = 16
    tree = read_tree(rank)
    assert tree[0].inputs == (1,)
    assert starvation_rise(tree[0]) is None


def test_an_operation_without_its_own_work_may_be_the_busiest() -> None:
    """A row lost from dataset.csv leaves an operation with its waits alone: nobody knows then who works most."""
    line = [(0, "Batch", 2, EMPTY, (1,)), (1, "Map", 2, EMPTY, (2,)), (2, "Generator", 1, FULL, ())]
    work = [("GeneratorOp(ID:2)", "__next__", 9, 5.0), ("MapOp(ID:1)", "WorkerProcess", 9, 5.0)]
    waits = [("BatchOp(ID:0)", "GetFromPreviousOp", 9, 5.0), ("DataQueueOp(ID:3)", "WaitForAscend", 9, 5.0)]
    own = [("BatchOp(ID:0)", "WorkerProcess", 9, 50.0)]
    assert untold_operations(FakeRank(line, [*work, *waits])) == {0}  # type: ignore[arg-type]
    assert untold_operations(FakeRank(line, [*work, *waits, *own])) == frozenset()  # type: ignore[arg-type]


def test_operations_that_feed_themselves_end_in_no_circle() -> None:
    """A damaged file may say so of any of them, also of those that hold no rows."""
    line = [
        (i, kind, 1, sizes, (1, 2))
        for i, (kind, sizes) in enumerate([("DataQueue", ()), ("EpochCtrl", ()), ("Batch", FULL)])
    ]
    assert set(tree(line)[2].inputs) == {2}
