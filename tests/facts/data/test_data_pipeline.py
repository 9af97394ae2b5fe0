"""Data loading as facts and findings, from files on disk to the number in the advice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from advisor.facts.base import FactSet, Run
from advisor.facts.data.batches import BatchTimes, as_fetched
from advisor.facts.data.loading import DATA_PIPELINE, DataPipeline
from advisor.facts.data.pipeline import measure, reduce
from advisor.facts.data.pipeline_tree import untold_operations
from advisor.model import RUN, Confidence, Role, Subject
from advisor.pipeline import advise
from advisor.pipeline import measure as measured
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Profile, Rank
from advisor.sources.minddata.minddata import find_minddata


def write_iterator(folder: Path, waits_ms: list[int], step_ms: list[int], sizes: list[int]) -> None:
    """dataset_iterator_profiling with these waits, intervals and queue sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    lines, now = [], 1000
    for batch, (wait, step, size) in enumerate(zip(waits_ms, step_ms, sizes, strict=True), 1):
        now += step
        lines += [
            f"0 1 {batch} 0 {now}",
            f"0 2 {batch} {wait} {now}",
            f"0 0 {batch} {wait} {now}",
            f"1 16 {batch} {size} {now}",
        ]
    (folder / "dataset_iterator_profiling_0.txt").write_text("\n".join(lines) + "\n")


def facts_of(folder: Path) -> tuple[DataPipeline, FactSet, Rank]:
    rank = Rank(0, folder, find_minddata(folder, 0), base=folder)
    data = reduce(rank)
    assert data is not None
    run = Run(Profile(str(folder), [rank]))
    run.keep(0, {DATA_PIPELINE: data})
    facts = FactSet()
    for fact in measure(run, facts):
        facts.add(fact)
    return data, facts, rank


def test_a_timeline_alone_names_the_operation_that_steps_wait_for(tmp_path: Path) -> None:
    """The marks of the host tell the steps, the stages on it who works: dataset.csv holds only their sums."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "MindSpore"}}]
    for step in range(20):
        for name, tid, at, lasts in (
            (f"Python::PythonObserved::ProfilerStep#{step}", 1, 0, 29_000),
            ("Dataset::Pipeline::GetNext", 1, 0, 20_000),
            ("Dataset::BatchOp(ID:0)::WorkerProcess", 2, 28_000, 80),
            ("Dataset::MapOp(ID:1)::WorkerProcess", 3, 27_000, 900),
            ("Dataset::GeneratorOp(ID:2)::__next__", 4, 1_000, 27_000),
        ):
            start = f"{1_000_000 + 30_000 * step + at}.000"
            events.append({"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": start, "dur": lasts})
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    report = advise([tmp_path], load_rules())
    first = report.findings[0]
    assert (first.verdict, first.subject.id) == ("data-processing-bottleneck", "Generator(2)")
    assert report.summary.step_time_us == pytest.approx(30_000, rel=0.01)


def test_statistics_of_stages_alone_name_the_source_that_paces_the_loop(tmp_path: Path) -> None:
    """One thread enters a generator, so a loop that waits for most of a batch's work there is as fast as that thread;
    a loop that hardly waits is paced by something else."""
    for wait, said in ((15_000.0, ["data-processing-bottleneck"]), (800.0, [])):
        (tmp_path / "dataset.csv").write_text(
            "Operation,Stage,Occurrences,Avg. time (us),Custom Info\n"
            "GeneratorOp(ID:1),__next__,1000,5400.0,{}\n"
            "BatchOp(ID:0),WorkerProcess,250,90.0,{}\n"
            f"Pipeline,GetNext,250,{wait},{{}}\n"
        )
        report = advise([tmp_path], load_rules())
        assert [f.verdict for f in report.findings if f.severity.rank > 1] == said
        assert report.summary.step_time_us is None
        assert all(f.confidence is Confidence.MEDIUM for f in report.findings if f.severity.rank > 1)


def test_the_wait_is_that_of_the_steady_batches(tmp_path: Path) -> None:
    """A long first batch and the batches that only empty the queue say nothing of the steady state."""
    n = 100
    waits = [500] + [20] * (n - 11) + [0] * 10
    steps = [500] + [30] * (n - 11) + [10] * 10
    write_iterator(tmp_path / "FRAMEWORK", waits, steps, [0] * (n - 11) + list(range(11, 0, -1)))
    data, facts, _ = facts_of(tmp_path)
    assert facts.value("data.step_us", RUN) == pytest.approx(30_000)
    assert facts.value("data.wait_us", RUN) == pytest.approx(20_000, rel=0.01)
    assert facts.value("data.undisturbed_us", RUN) == 10_000
    assert facts.value("data.first_wait_us", RUN) == 500_000
    assert data.step_us == pytest.approx(30_000)


def test_a_wrong_clock_is_noticed_and_corrected(tmp_path: Path) -> None:
    """A host-only profile on x86 writes dataset.csv 26 times too long; unnoticed, every share would exceed 1."""
    write_iterator(tmp_path / "FRAMEWORK", [20] * 100, [25] * 100, [0] * 100)
    output = tmp_path / "ASCEND_PROFILER_OUTPUT"
    output.mkdir()
    (output / "dataset.csv").write_text(
        "Operation,Stage,Occurrences,Avg. time (us),Custom Info\r\n"
        "GeneratorOp(ID:1),__next__,400,156000,\r\nPipeline,GetNext,100,520000,{}\r\n"
    )
    (tmp_path / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps({"sampling_interval": 10, "op_info": [
        {"op_id": 0, "op_type": "BatchOp", "num_workers": 1, "children": [1],
         "metrics": {"output_queue": {"length": 16, "size": [0] * 50}}},
        {"op_id": 1, "op_type": "GeneratorOp", "num_workers": 1,
         "metrics": {"output_queue": {"length": 16, "size": [0] * 50}}}]}))  # fmt: skip
    _, facts, rank = facts_of(tmp_path)
    busy = facts.value("pipeline_op.busy_share", Subject("pipeline_op", "Generator(1)", (0,)))
    assert busy == pytest.approx(0.96, abs=0.05)
    assert any("clock" in problem.problem for problem in rank.problems)


def write_waits_and_stages(folder: Path, rows: str) -> None:
    """A hundred steps of 25 ms that wait 20 ms for their batch, and these rows of dataset.csv."""
    write_iterator(folder / "FRAMEWORK", [20] * 100, [25] * 100, [0] * 100)
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir()
    (folder / "ASCEND_PROFILER_OUTPUT" / "dataset.csv").write_text(
        f"Operation,Stage,Occurrences,Avg. time (us),Custom Info\r\n{rows}"
    )


@pytest.mark.parametrize("factor", [0.001, 0.1, 90.0, 1000.0])
def test_no_clock_is_off_by_any_factor(tmp_path: Path, factor: float) -> None:
    """Another unit than the heading's is no clock: it is told, nothing is rescaled by it, and what the loop was seen to
    wait for batches remains."""
    write_waits_and_stages(
        tmp_path,
        f"GeneratorOp(ID:1),__next__,400,{6000 * factor},\r\nPipeline,GetNext,100,{20_500 * factor},{{}}\r\n",
    )
    _, facts, rank = facts_of(tmp_path)
    assert [p.problem for p in rank.problems if "which no clock makes of them" in p.problem and p.doubted]
    assert facts.value("data.wait_us", RUN) in (20_000, 21_000)


def test_a_clock_is_off_for_all_rows_or_for_none(tmp_path: Path) -> None:
    """Waits in another unit than the other rows are no clock: rescaled by them, one thread would work for three times
    as long as the loop ran, and be blamed with certainty."""
    write_waits_and_stages(
        tmp_path,
        "GeneratorOp(ID:1),__next__,400,5000,\r\nPipeline,GetNext,100,5000,{}\r\n",
    )
    (tmp_path / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps({"sampling_interval": 10, "op_info": [
        {"op_id": 1, "op_type": "GeneratorOp", "num_workers": 1,
         "metrics": {"output_queue": {"length": 16, "size": [0] * 50}}}]}))  # fmt: skip
    _, _, rank = facts_of(tmp_path)
    assert any("waits disagree with the iterator's" in problem.problem for problem in rank.problems)


@pytest.mark.parametrize(("lock_us", "told"), [(40_000, True), (400, False)])
def test_no_stage_lasts_longer_than_its_own_threads(tmp_path: Path, lock_us: float, told: bool) -> None:
    """Waits for the interpreter lock that keep their unit while all rows below them are in another one: rescaled with
    these, one worker would wait for many times as long as the loop ran, and the loop's own code be blamed."""
    write_waits_and_stages(
        tmp_path,
        f"GeneratorOp(ID:1),AcquireGIL,400,{lock_us},\r\n"
        "GeneratorOp(ID:1),__next__,400,156,\r\nPipeline,GetNext,100,5000,{}\r\n",
    )
    (tmp_path / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps({"sampling_interval": 10, "op_info": [
        {"op_id": 1, "op_type": "GeneratorOp", "num_workers": 8,
         "metrics": {"output_queue": {"length": 16, "size": [0] * 50}}}]}))  # fmt: skip
    _, _, rank = facts_of(tmp_path)
    assert any("waits disagree with the iterator's" in problem.problem for problem in rank.problems) is told


def test_behind_lost_rows_lies_no_pause(tmp_path: Path) -> None:
    """Batches are numbered: where the rows of thirty are gone, the next one did not take thirty steps."""
    write_iterator(tmp_path / "FRAMEWORK", [1] * 100, [25] * 100, [3] * 100)
    (path,) = tmp_path.rglob("dataset_iterator_profiling_0.txt")
    lost = {str(number) for number in range(50, 80)}
    lines = [line for line in path.read_text().splitlines() if line.split()[2] not in lost]
    path.write_text("\n".join(lines) + "\n")
    _, _, rank = facts_of(tmp_path)
    data = reduce(rank)
    assert data is not None and data.times is not None
    assert data.step_us == pytest.approx(25_000) and data.times.pauses is None


@pytest.mark.parametrize(("outer", "told"), [(20_100, False), (30_000, False), (20_000_000, True), (20, True)])
def test_two_times_of_the_same_calls_agree(tmp_path: Path, outer: int, told: bool) -> None:
    """The iterator's call holds the pipeline's: one that is a thousand times the other is told, and scales nothing."""
    write_waits_and_stages(
        tmp_path,
        f"Pipeline,GetNext,100,20000,{{}}\r\nIteratorConsumer,GetNextAsVector,100,{outer},\r\n",
    )
    _, _, rank = facts_of(tmp_path)
    assert bool([p for p in rank.problems if "the same calls wait" in p.problem and p.doubted]) is told


@pytest.mark.parametrize("name", ["-1", "abc"])
def test_rows_of_no_operation_are_told(tmp_path: Path, name: str) -> None:
    """A column of names that holds numbers, or another word, loses the busiest operation without any trace."""
    write_waits_and_stages(
        tmp_path,
        f"Pipeline,GetNext,100,20000,{{}}\r\n{name},__next__,100,20000,\r\n",
    )
    _, _, rank = facts_of(tmp_path)
    assert any("1 rows name no operation" in p.problem and p.doubted for p in rank.problems)


def test_a_time_of_no_calls_is_told(tmp_path: Path) -> None:
    """An operation that never ran takes no time: its count was lost, and what it took is unknown."""
    write_waits_and_stages(
        tmp_path,
        "GeneratorOp(ID:1),__next__,0,15600,\r\nPipeline,GetNext,100,20000,{}\r\n",
    )
    _, _, rank = facts_of(tmp_path)
    assert [p.problem for p in rank.problems if "Occurrences" in p.problem and "1 of 2 rows" in p.problem]


def test_like_ranks_share_one_operation_and_an_odd_one_stands_alone(tmp_path: Path) -> None:
    """Eight ranks with the same slow map are one finding, not eight."""
    queue = {"output_queue": {"length": 16, "size": [0] * 9}}
    ops = {"op_info": [{"op_id": 0, "op_type": "MapOp", "num_workers": 1, "metrics": queue}], "sampling_interval": 10}
    ranks = []
    for number in range(3):
        folder = tmp_path / str(number)
        (folder / "FRAMEWORK").mkdir(parents=True)
        ops["op_info"][0]["num_workers"] = 8 if number == 2 else 1
        (folder / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps(ops))
        ranks.append(Rank(number, folder, find_minddata(folder, number), base=folder))
    run = Run(Profile("x", ranks))
    for rank in ranks:
        run.keep(rank.rank, {DATA_PIPELINE: reduce(rank)})
    subjects = {fact.subject for fact in measure(run, FactSet()) if fact.subject.kind == "pipeline_op"}
    assert subjects == {Subject("pipeline_op", "Map(0)", (0, 1)), Subject("pipeline_op", "Map(0)", (2,))}


def write_worked_case(folder: Path) -> None:
    """The guide's ResNet50: a gap of 72.8 ms in a step of 90 ms, one worker on the map. Older MindSpore's files."""
    head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    rows, start = [], 0
    for step in range(1, 31):
        gap = 7_280_000 if step > 1 else 0
        total = gap + 1_720_000
        rows.append(f"{step},{start},{start + total},{total},{start + gap},{start + total - 5000},{gap},1715000,5000")
        start += total
    rows.append("-,0,9000000,9000000,7280000,8995000,7280000,1715000,5000")
    (folder / "step_trace_raw_0_detail_time.csv").write_text(head + "\n".join(rows) + "\n")
    (folder / "device_queue_profiling_0.txt").write_text(
        "".join(
            f"0 1 {b} 1 {b * 90}\n0 2 {b} 90 {b * 90}\n0 0 {b} 89 {b * 90}\n1 16 {b} 0 {b * 90}\n" for b in range(1, 31)
        )
    )
    (folder / "minddata_aicpu_0.txt").write_text(
        "".join(f"GetNext_dequeue_wait {b * 90000} {b * 90000 + 72000} 0\n" for b in range(1, 31))
    )
    queues = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    queues += "output_queue_usage_rate,sample_interval,parent_id,children_id\n0,DeviceQueueOp,1,,,,,10,,[1]\n"
    empty, full = str([0] * 60), str([64] * 60)
    queues += f'1,BatchOp,1,"{empty}",0,64,0,10,0,[2]\n2,MapOp,1,"{empty}",0,64,0,10,1,[3]\n'
    queues += f'3,ImageFolderOp,8,"{full}",64,64,1,10,2,\n'
    (folder / "minddata_pipeline_raw_0.csv").write_text(queues)


def test_the_guides_worked_case_is_told_with_its_number(tmp_path: Path) -> None:
    """Gap 72.8 ms, step 90 ms, map with one worker: more workers, saving near what was gained (18.07 ms after)."""
    write_worked_case(tmp_path)
    report = advise([tmp_path], load_rules())
    first = report.findings[0]
    assert (first.verdict, first.subject.id, first.role) == ("data-processing-bottleneck", "Map(2)", Role.ROOT_CAUSE)
    assert first.confidence is Confidence.MEDIUM
    assert first.saving is not None and first.saving.us_per_step == pytest.approx(90_000 - 18_070, rel=0.05)
    remedy = first.remedies[0]
    assert (remedy.id, remedy.current) == ("raise-parallel-workers", 1)
    assert remedy.proposed is not None and 5 <= remedy.proposed <= 12
    assert f"num_parallel_workers={int(remedy.proposed)}" in remedy.snippet
    assert report.summary.direction == "scheduling"


def test_one_batch_in_a_queue_tells_no_more_than_none(tmp_path: Path) -> None:
    """Nobody need have taken it while it was sent: what is said rests on the other files, and the file is told."""
    write_worked_case(tmp_path)
    queue = tmp_path / "device_queue_profiling_0.txt"
    queue.write_text("0 0 1 0 10\n1 64 1 0 10\n")
    report = advise([tmp_path], load_rules())
    queue.unlink()
    without = advise([tmp_path], load_rules())
    assert [(f.rule, f.confidence) for f in report.findings] == [(f.rule, f.confidence) for f in without.findings]
    assert any("lists no more batches (1)" in problem.problem for problem in report.problems)


def test_full_queues_and_a_short_gap_are_healthy(tmp_path: Path) -> None:
    """Nobody waits, so nothing in the pipeline is accused, whatever its shape."""
    write_worked_case(tmp_path)
    trace = tmp_path / "step_trace_raw_0_detail_time.csv"
    trace.write_text(trace.read_text().replace(",7280000,", ",25000,"))
    (tmp_path / "device_queue_profiling_0.txt").write_text("".join(f"1 16 {b} 16 {b * 90}\n" for b in range(1, 31)))
    report = advise([tmp_path], load_rules())
    assert not [f for f in report.findings if f.verdict == "data-processing-bottleneck"]


def write_sender(folder: Path, pipeline_ms: int, push_ms: int, batches: int = 120) -> None:
    """device_queue_profiling of a sink whose thread waits and sends this long per batch, and its sampled queues."""
    folder.mkdir(parents=True, exist_ok=True)
    both, lines = pipeline_ms + push_ms, []
    for b in range(1, batches + 1):
        now = 1000 + b * both
        lines += [
            f"0 1 {b} {push_ms} {now}",
            f"0 2 {b} {both} {now}",
            f"0 0 {b} {pipeline_ms} {now}",
            f"1 16 {b} 0 {now}",
        ]
    (folder / "device_queue_profiling_0.txt").write_text("\n".join(lines) + "\n")
    full = [16] * 60
    head = "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    (folder / "minddata_pipeline_raw_0.csv").write_text(
        head + "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        "0,DataQueueOp,1,,,,,60,,[1]\n"
        f'1,BatchOp,2,"{[0] * 60}",0,16,0,60,0,[2]\n2,MapOp,2,"{full}",16,16,1,60,1,[]\n'
    )


def test_a_late_pipeline_does_not_tell_the_device_step(tmp_path: Path) -> None:
    """What remains of the sender's interval is sending, not the step: no count of workers may be taken from it."""
    write_sender(tmp_path, 95, 1)
    _, facts, _ = facts_of(tmp_path)
    batch = Subject("pipeline_op", "Batch(1)", (0,))
    assert facts.value("data.wait_us", RUN) == pytest.approx(95_000)
    assert facts.value("data.own_us", RUN) is None
    assert facts.value("pipeline_op.workers_needed", batch) is None
    assert facts.value("pipeline_op.workers_proposed", batch) == 4
    assert facts.value("pipeline_op.saving_more_workers_us", batch) == pytest.approx(48_000)


def test_the_device_waits_no_more_than_its_kernels_leave_of_the_step(tmp_path: Path) -> None:
    """No table tells the device's gaps, but its operators take 70 of 96 ms: no more than 26 ms can be waiting."""
    write_sender(tmp_path, 95, 1)
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(
        "op_type,execution_time,execution_frequency,percent\nMatMul,70.0,7,100\n"
    )
    facts = FactSet(advise([tmp_path], load_rules()).facts)
    assert facts.value("operators.compute_us", RUN) == pytest.approx(70_000)
    assert facts.value("data.wait_us", RUN) == pytest.approx(26_000)


def test_a_sender_that_never_waits_exonerates_the_pipeline(tmp_path: Path) -> None:
    """Sending takes all of the interval: no operation is blamed, whatever the queues hold after each."""
    write_sender(tmp_path, 0, 60)
    _, facts, _ = facts_of(tmp_path)
    assert facts.value("data.starved_share", RUN) == 0.0
    assert facts.value("data.push_share", RUN) == pytest.approx(1.0)
    report = advise([tmp_path], load_rules())
    verdicts = {finding.verdict for finding in report.findings if finding.role is not Role.SYMPTOM}
    assert "data-sending-bottleneck" in verdicts
    assert "data-processing-bottleneck" not in verdicts


def test_unlike_ranks_give_the_run_one_queue(tmp_path: Path) -> None:
    """The run's queue was measured once for each group of like ranks; now it is the first group's, and no other. Each
    operation has that of its own ranks."""
    ranks = []
    for number, held in enumerate((4, 12)):
        queue = {"output_queue": {"length": 16, "size": [held] * 9}}
        op = {"op_id": 0, "op_type": "MapOp", "num_workers": 1 + number, "metrics": queue}
        folder = tmp_path / str(number)
        (folder / "FRAMEWORK").mkdir(parents=True)
        (folder / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps({"op_info": [op]}))
        ranks.append(Rank(number, folder, find_minddata(folder, number), base=folder))
    run = Run(Profile("x", ranks))
    for rank in ranks:
        run.keep(rank.rank, {DATA_PIPELINE: reduce(rank)})
    shares = [fact for fact in measure(run, FactSet()) if fact.name == "queue.host_used_share"]
    assert [fact.value for fact in shares if fact.subject == RUN] == [0.25]
    assert [(fact.subject.ranks, fact.value) for fact in shares if fact.subject != RUN] == [((0,), 0.25), ((1,), 0.75)]


def test_a_rank_that_starves_is_not_the_middle_of_those_that_are_fed(tmp_path: Path) -> None:
    """All have the same operations, and one waits two thirds of its step for them. Waits that differ by little are
    those of one group."""

    def groups(name: str, waits_ms: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        ranks = []
        for number, wait in enumerate(waits_ms):
            folder = tmp_path / name / str(number)
            write_iterator(folder / "FRAMEWORK", [wait] * 40, [30] * 40, [4] * 40)
            queue = {"output_queue": {"length": 16, "size": [4] * 9}}
            op = {"op_id": 0, "op_type": "MapOp", "num_workers": 2, "metrics": queue}
            (folder / "FRAMEWORK" / "pipeline_profiling_0.json").write_text(json.dumps({"op_info": [op]}))
            ranks.append(Rank(number, folder, find_minddata(folder, 0), base=folder))
        run = Run(Profile("x", ranks))
        for rank in ranks:
            run.keep(rank.rank, {DATA_PIPELINE: reduce(rank)})
        told = [fact for fact in measure(run, FactSet()) if fact.name == "pipeline_op.wait_share"]
        return {fact.subject.ranks: float(str(fact.value)) for fact in told}

    assert groups("one", (0, 20, 0, 1)) == {(0, 2, 3): pytest.approx(0.0), (1,): pytest.approx(2 / 3)}
    assert set(groups("all", (10, 11, 12, 11))) == {(0, 1, 2, 3)}


RECORDED = Path(__file__).parents[2] / "data" / "recordings" / "map_py_gil_threads"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_operation_without_its_number_leaves_nothing_certain(tmp_path: Path, place: int) -> None:
    """Where the slowest operation is lost, those left are not fast enough, and none of them is the busiest."""
    shutil.copytree(RECORDED, tmp_path / "run")
    file = next((tmp_path / "run").rglob("pipeline_profiling_0.json"))
    document = json.loads(file.read_text())
    document["op_info"][place]["OP_ID_"] = document["op_info"][place].pop("op_id")
    file.write_text(json.dumps(document))
    report = advise([str(tmp_path / "run")], load_rules())
    assert report.summary.direction != "healthy"
    assert not [f for f in report.findings if f.direction.value == "scheduling" and f.confidence is not Confidence.LOW]
    assert [fact for fact in report.facts if fact.name == "data.busiest_cpu_share"] == []
    assert any("no number" in problem.problem for problem in report.problems)


def _fetched(every_us: float, lasts_us: float, pushed_every_us: float) -> BatchTimes:
    starts = 5e8 + every_us * np.arange(24)
    pushed = 1e5 + pushed_every_us * np.arange(24)
    pushed += max(0.0, float((starts + lasts_us - 5e8 + 1e5 - pushed)[0]))
    times = BatchTimes("sink", 24, step_mean_us=pushed_every_us, wall_us=23 * pushed_every_us)
    return as_fetched(times, pushed, starts, starts + lasts_us)


def test_a_step_is_a_fetch_of_the_device_not_a_push_of_the_host() -> None:
    """A pipeline that fills the data queue four times as fast as the device empties it paces nothing and is waited for
    by nobody, however long GetNext itself takes; it worked a quarter of the time."""
    found = _fetched(every_us=40_000, lasts_us=6_000, pushed_every_us=10_000)
    assert found.step_mean_us == pytest.approx(40_000) and found.step_us == pytest.approx(40_000)
    assert found.late_share == 0.0
    assert found.wall_us == pytest.approx(23 * 40_000 + 6_000)


def test_a_fetch_that_ends_with_its_push_waited_for_it() -> None:
    """Every GetNext ends when its batch comes: all of its time is waiting for data, on whatever clock."""
    found = _fetched(every_us=38_000, lasts_us=20_000, pushed_every_us=38_000)
    assert found.step_mean_us == pytest.approx(38_000) and found.late_share == 1.0


def test_fetches_of_another_stretch_tell_nothing_of_the_pushes() -> None:
    """Five fetches beside a thousand batches: which batch each took is not known, so nothing is paced by them."""
    times = BatchTimes("sink", 1000, step_mean_us=10_000)
    starts = np.arange(5) * 40_000.0
    assert as_fetched(times, np.arange(1000) * 10_000.0, starts, starts + 100) == times


@pytest.mark.parametrize("lost", ["BatchOp(ID:0),252,27382.34,,", '"1,2",BatchOp(ID:0),WorkerProcess,252,27382.34'])
def test_an_operation_that_lost_a_row_may_be_the_busiest(tmp_path: Path, lost: str) -> None:
    """Its one call that is left tells nothing of how it works, and its neighbour limits nobody because of that."""
    write_waits_and_stages(
        tmp_path,
        "Pipeline,GetNext,100,20000,{}\r\n"
        f"MapOp(ID:1),WorkerProcess,100,590.81,{{}}\r\n{lost}\r\nBatchOp(ID:0),WorkerProcess,1,2.6,{{}}\r\n",
    )
    _, _, rank = facts_of(tmp_path)
    assert untold_operations(rank) == {0}


@pytest.mark.parametrize(("cold", "again", "step_us"), [(1, (), 37_000), (7, (), 37_000), (7, (15,), 71_340)])
def test_a_cold_start_is_no_steady_state(cold: int, again: tuple[int, ...], step_us: float) -> None:
    """The first fetches wait for files that no cache holds yet, the others for nothing: steps are the others, and
    nothing waits in them. Where one waits again, the pipeline may be behind every now and then: all of them count."""
    lasts = np.full(24, 24.0)
    lasts[:cold], lasts[list(again)] = 110_000.0, 20_000.0
    starts = 5e8 + np.concatenate([[0.0], np.cumsum(37_000.0 + lasts[:-1] - 24.0)])
    pushed = starts + lasts - 5e8 - 20_000.0 * (lasts < 1000.0)
    found = as_fetched(BatchTimes("sink", 24, wait_us=60_000.0), pushed, starts, starts + lasts)
    assert found.step_mean_us == pytest.approx(step_us, rel=0.02)
    assert found.fetch_us is not None
    assert (found.fetch_us < 100.0) is not bool(again)


def test_a_shuffle_has_no_workers_to_raise(tmp_path: Path) -> None:
    """Nothing sets a number of workers for MindSpore's shuffle, so none is proposed and no gain of more is told."""
    operations = [
        {"op_id": 0, "op_type": "Batch", "num_workers": 4, "metrics": _queue([0, 0, 1, 0]), "children": [1]},
        {"op_id": 1, "op_type": "Shuffle", "num_workers": 1, "metrics": _queue([1, 0, 1, 0]), "children": [2]},
        {"op_id": 2, "op_type": "TFReader", "num_workers": 4, "metrics": _queue([64, 63, 64, 64])},
    ]
    text = json.dumps({"sampling_interval": 10, "op_info": operations})
    (tmp_path / "pipeline_profiling_0.json").write_text(text, encoding="utf-8")
    facts = measured([tmp_path], load_rules().uses_facts()).facts
    told = {(one.subject.id, one.name): one.value for one in facts if one.subject.kind == "pipeline_op"}
    assert told["Shuffle(1)", "pipeline_op.takes_workers"] is False
    assert ("Shuffle(1)", "pipeline_op.workers_trial") not in told
    assert told["TFReader(2)", "pipeline_op.workers_trial"] == 8
    assert facts.number("data.sampling_interval_us", RUN) == 10_000


def test_two_pipelines_under_one_rank_are_told(tmp_path: Path) -> None:
    """The profiler's own table is made of this file: other operations there are another run's."""
    operations = [
        {"op_id": 0, "op_type": "Batch", "num_workers": 4, "metrics": _queue([0, 0, 1, 0]), "children": [1]},
        {"op_id": 1, "op_type": "ImageFolder", "num_workers": 4, "metrics": _queue([0, 0, 0, 0])},
    ]
    (tmp_path / "pipeline_profiling_0.json").write_text(json.dumps({"op_info": operations}), encoding="utf-8")
    rows = (
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id",
        "0,Batch,4,,,,0,10,,[1]",
        '1,TFReader,4,"[10, 20, 30]",20.0,64,0.3125,10,0,',
    )
    (tmp_path / "minddata_pipeline_raw_0.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    problems = measured([tmp_path], load_rules().uses_facts()).problems
    assert any("of another pipeline" in each.problem for each in problems), problems


def _queue(sizes: list[int]) -> dict[str, object]:
    return {"output_queue": {"size": sizes, "length": 64}}
