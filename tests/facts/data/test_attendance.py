"""A profile of the data pipeline that is one dataset.csv: what workers do, and whom others await, tells who limits."""

from pathlib import Path

import pytest

from advisor.model import RUN, Confidence, Role
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

BATCHES, ROWS = 250, 4
"""Rows of a batch."""


def write_stages(folder: Path, work_us: list[float], workers: list[int], loop_us: float, ended: bool = True) -> None:
    """dataset.csv of a line of maps behind a generator, from the source to the consumer, and a batch of one worker.
    `work_us` is the time of each map for a row; the generator takes 0.3 ms. The slowest of all, or the loop, paces it:
    who lies before that is blocked by a full queue and seldom waits for input, who lies behind it waits for rows."""
    rows = BATCHES * ROWS
    cycle = max(300, *(one / n for one, n in zip(work_us, workers, strict=True)), loop_us / ROWS)
    wall = rows * cycle
    paced = next((i for i, (one, n) in enumerate(zip(work_us, workers, strict=True)) if one / n == cycle), None)
    number = len(work_us) + 1
    lines = ["Operation,Stage,Occurrences,Avg. time (us),Custom Info"]

    def add(operation: str, stage: str, count: int, total: float) -> None:
        lines.append(f"{operation},{stage},{count},{total / count:.3f},")

    add("Pipeline", "Launch", 1, 12_000)
    add(f"GeneratorOp(ID:{number})", "__next__", rows, 300.0 * rows)
    for i, (one, n) in enumerate(zip(work_us, workers, strict=True)):
        starved = paced is not None and i > paced
        name, taken = f"MapOp(ID:{number - 1 - i})", rows + 2 + (n if ended else 0)
        add(name, "GetFromPreviousOp", rows + 2, wall if starved else 0.03 * wall)
        add(name, "WorkerGet", taken, n * wall - one * rows if starved else 0.02 * wall)
        add(name, "WorkerProcess", taken, one * rows)
    waits = max(wall - loop_us * BATCHES, 0.03 * wall)
    starved = paced is not None
    add("BatchOp(ID:0)", "GetFromPreviousOp", rows + 2, wall if starved else 0.03 * wall)
    add("BatchOp(ID:0)", "WorkerGet", BATCHES + 3, 0.97 * wall if starved else 0.02 * wall)
    add("BatchOp(ID:0)", "WorkerProcess", BATCHES + 3, 80.0 * BATCHES)
    add("Pipeline", "GetNext", BATCHES, waits)
    add("IteratorConsumer", "GetNextAsVector", BATCHES, waits + 20 * BATCHES)
    (folder / "dataset.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _accused(folder: Path) -> list[tuple[str, int | None]]:
    report = advise([folder], load_rules())
    found = [f for f in report.findings if f.role is Role.ROOT_CAUSE]
    return [(f.subject.id, f.remedies[0].current) for f in found]


@pytest.mark.parametrize(
    ("work_us", "workers", "limiter"),
    [
        ([7_000, 600], [1, 1], ("Map(2)", 1)),  # those behind it wait
        ([600, 7_000], [1, 1], ("Map(1)", 1)),
        ([24_000, 600], [4, 1], ("Map(2)", 4)),
        ([9_000, 7_000], [4, 1], ("Map(1)", 1)),  # more work, in workers that are blocked by the full queue behind them
    ],
)
def test_the_operation_that_works_all_the_time_is_named(tmp_path, work_us, workers, limiter):
    """The loop waits for a good half of each step and computes in the other."""
    slowest = max(one / n for one, n in zip(work_us, workers, strict=True))
    write_stages(tmp_path, work_us, workers, loop_us=0.4 * ROWS * slowest)
    assert _accused(tmp_path) == [limiter]


def test_nobody_is_named_where_the_loop_is_the_slowest(tmp_path):
    """Full queues: workers never wait for rows, and nobody waits for them."""
    write_stages(tmp_path, [7_000, 600], [4, 1], loop_us=40_000)
    assert _accused(tmp_path) == []


def test_a_recording_that_was_stopped_tells_no_number_of_several_workers(tmp_path):
    """Each worker takes a last row when the pipeline ends; before that they are as many as anything: no step and no
    share follows from their times."""
    write_stages(tmp_path, [24_000, 600], [4, 1], loop_us=10_000, ended=False)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert (
        facts.value("pipeline_op.workers", next(s for s in facts.subjects("pipeline_op") if s.id == "Map(2)")) is None
    )
    assert facts.value("data.batches", RUN) == BATCHES
    assert _accused(tmp_path) == []


def _write_steps(folder: Path, step_us: float, computing_us: float) -> None:
    """The steps of these batches: the device is idle in the rest of each."""
    lines = ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"]
    lines += [f"{i},{computing_us},0,0,0,{step_us - computing_us}" for i in range(1, BATCHES + 1)]
    (folder / "step_trace_time.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_map_whose_workers_nobody_tells_is_named_where_all_others_rest(tmp_path):
    """Its rows lie ready, those behind it wait, and no other operation is half busy: by elimination, and not surely."""
    write_stages(tmp_path, [24_000, 600], [4, 1], loop_us=10_000, ended=False)
    _write_steps(tmp_path, step_us=24_000, computing_us=10_000)
    first = advise([tmp_path], load_rules()).findings[0]
    assert (first.rule, first.subject.id, first.confidence) == ("SCHED097", "Map(2)", Confidence.MEDIUM)
    assert first.saving is not None and first.saving.us_per_step == pytest.approx(14_000, rel=0.02)
    assert first.remedies[0].proposed == 10  # 24 ms of work for each of 4 rows, in a loop of 10 ms


def test_a_map_that_rests_is_not_named_however_much_work_its_workers_do(tmp_path):
    """The device is idle, but nobody behind the map waits for its rows: the loop itself is what is slow."""
    write_stages(tmp_path, [14_000, 600], [8, 1], loop_us=24_000, ended=False)
    _write_steps(tmp_path, step_us=24_000, computing_us=10_000)
    assert not [f for f in advise([tmp_path], load_rules()).findings if f.subject.kind == "pipeline_op"]


@pytest.mark.parametrize(("ended", "limit_us"), [(True, 24_000 * ROWS / 4), (False, 600 * ROWS)])
def test_how_fast_workers_of_unknown_number_deliver_nobody_knows(tmp_path, ended, limit_us):
    """Four workers take 24 ms a row. Where the recording was stopped nothing tells that they are four: by one of them a
    batch would take 96 ms, and no gain may be bounded by that. What the second map takes, of one worker, is known."""
    write_stages(tmp_path, [24_000, 600], [4, 1], loop_us=10_000, ended=ended)
    found = measure([tmp_path], ["data.pipeline_limit_us"], Options(jobs=1)).facts.number("data.pipeline_limit_us", RUN)
    assert found == pytest.approx(limit_us, rel=0.03)
