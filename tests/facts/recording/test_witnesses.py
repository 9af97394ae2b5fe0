"""Numbers that cannot be true are told, and nothing that rests on them is more than a guess."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

from advisor.config import load_config
from advisor.exchange import report_from_json, report_to_json
from advisor.facts.base import FactKind, Run
from advisor.facts.recording.bounds import bounds_of, impossible
from advisor.facts.recording.witnesses import _contradict, _lengths, _steps_and_starts, _usual_starts
from advisor.facts.registry import catalogue
from advisor.facts.step.times import StepTimes
from advisor.model import RUN, Confidence, Fact, Report
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Profile, Rank
from advisor.sources.reference import TableRef
from benchmarks.mutants.cells import load, store
from benchmarks.mutants.profiles import write_originals
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

STEPS, KERNELS = "step_trace_time.csv", "kernel_details.csv"
EXPOSED = "Communication(Not Overlapped)"


def _report(folder: Path) -> Report:
    return advise([folder], load_rules(config=load_config(None)))


@pytest.fixture(scope="module")
def slow_rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slow")
    write_profile(simulate(Scenario(data=4, steps=3, layers=2, faults=(Fault("slow_compute", 2, 0.5),))), folder)
    return folder


def _scale(folder: Path, file: str, heading: str, factor: float, ranks: int = 99) -> None:
    for path in sorted(folder.rglob(file))[:ranks]:
        rows = load(path)
        column = rows[0].index(heading)
        for row in rows[1:]:
            row[column] = str(float(row[column]) * factor)
        store(path, rows)


def _exchange(folder: Path, file: str) -> None:
    paths = sorted(folder.rglob(file))
    one, other = paths[0].read_bytes(), paths[2].read_bytes()
    paths[0].write_bytes(other)
    paths[2].write_bytes(one)


def _of_other_steps(folder: Path) -> None:
    path = min(folder.rglob("communication.json"))
    steps = json.loads(path.read_text())
    path.write_text(json.dumps({f"{name}000": held for name, held in steps.items()}))


CORRUPTIONS: dict[str, Callable[[Path], None]] = {
    "exposed communication in another unit": lambda folder: _scale(folder, STEPS, EXPOSED, 1000),
    "one rank's computation in another unit": lambda folder: _scale(folder, STEPS, "Computing", 1000, 1),
    "idle time in another unit": lambda folder: _scale(folder, STEPS, "Free", 1000),
    "kernels in another unit": lambda folder: _scale(folder, KERNELS, "Duration(us)", 1000),
    "host interfaces in another unit": lambda folder: _scale(folder, "api_statistic.csv", "Time(us)", 1000),
    "step tables of two ranks exchanged": lambda folder: _exchange(folder, STEPS),
    "communication of other steps": _of_other_steps,
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_what_cannot_be_true_leads_to_nothing_certain(corruption: str, slow_rank: Path, tmp_path: Path) -> None:
    """Nothing is healthy, the file is told, and new findings have low confidence and say why."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    CORRUPTIONS[corruption](tmp_path / "profile")
    before = {(f.verdict, f.subject.id) for f in _report(slow_rank).findings}
    report = _report(tmp_path / "profile")
    assert any("contradicts" in p.problem or "cannot be" in p.problem for p in report.problems)
    assert report.summary.direction != "healthy"
    new = [f for f in report.findings if (f.verdict, f.subject.id) not in before and f.severity.rank > 0]
    assert all(f.confidence == Confidence.LOW for f in new if f.direction.value != "evidence"), new
    assert all("intact copy" in " ".join(d.en for d in f.doubts) for f in report.findings if f.saving)


def test_computation_that_the_step_table_calls_none_is_told(tmp_path: Path) -> None:
    """A table whose computation stands under another heading is contradicted by any kernel, however short."""
    write_profile(simulate(Scenario(data=1, steps=4, layers=1, kernel_us=2.0, launch_us=500.0)), tmp_path)
    _scale(tmp_path, STEPS, "Computing", 0)
    assert any("of computation a step, its kernels take" in p.problem for p in _report(tmp_path).problems)


def test_a_statistic_without_types_contradicts_no_kernels(slow_rank: Path, tmp_path: Path) -> None:
    """The column that is lacking is told of the file that lacks it; intact kernels are blamed for nothing, and the
    verdicts are those of the whole profile."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    for path in sorted((tmp_path / "profile").rglob("op_statistic.csv")):
        rows = load(path)
        column = rows[0].index("OP Type")
        store(path, [row[:column] + row[column + 1 :] for row in rows])
    whole, report = _report(slow_rank), _report(tmp_path / "profile")
    assert any("op_statistic.csv" in p.file and "lacks the column OP Type" in p.problem for p in report.problems)
    assert not any("contradicts" in p.problem for p in report.problems)
    assert report.summary.direction == whole.summary.direction
    assert [(f.verdict, f.confidence) for f in report.findings] == [(f.verdict, f.confidence) for f in whole.findings]


@pytest.mark.parametrize("cell", ["٣", "abc", "inf", "-1", "1e300"])
def test_a_damaged_cell_leaves_nothing_of_its_table_certain(cell: str, slow_rank: Path, tmp_path: Path) -> None:
    """What wrote one cell that no profiler writes may have written the others: the steps that are left are a guess."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    for path in sorted((tmp_path / "profile").rglob(STEPS)):
        rows = load(path)
        rows[1][rows[0].index("Free")] = cell
        store(path, rows)
    report = _report(tmp_path / "profile")
    assert any(p.problem.startswith("1 of 3 values of Free are") for p in report.problems)
    told = [f for f in report.findings if f.saving]
    assert told and all(f.confidence == Confidence.LOW for f in told)
    assert all("intact copy" in " ".join(d.en for d in f.doubts) for f in told)


def test_what_cannot_be_is_told_of_the_file_it_was_read_from(slow_rank: Path, tmp_path: Path) -> None:
    """Negative overlaps are the step table's, whatever else the same fact may rest on."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    _scale(tmp_path / "profile", STEPS, "Overlapped", -1)
    told = {p.file.rpartition("/")[2] for p in _report(tmp_path / "profile").problems if "cannot be below" in p.problem}
    assert told <= {STEPS} and told


def test_collectives_of_another_rank_are_told(slow_rank: Path, tmp_path: Path) -> None:
    """A communication.json that lies with another rank's kernels names other starts for the same collectives."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    _exchange(tmp_path / "profile", "communication.json")
    assert any("the same collectives start" in p.problem for p in _report(tmp_path / "profile").problems)


def test_a_rank_with_twice_the_steps_is_told(slow_rank: Path, tmp_path: Path) -> None:
    """Steps that one rank has and the others lack are named."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    path = sorted((tmp_path / "profile").rglob(STEPS))[1]
    rows = load(path)
    again = [[str(int(row[0]) + 100), *row[1:]] for row in rows[1:]]
    store(path, [*rows, *again])
    assert any("most other ranks do not have" in p.problem for p in _report(tmp_path / "profile").problems)


def test_ranks_that_stand_in_no_mean_are_no_all_clear(slow_rank: Path, tmp_path: Path) -> None:
    """A rank whose step table cannot be true leaves the means; nobody calls the run healthy without it."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    _scale(tmp_path / "profile", STEPS, "Computing", 1000, 1)
    report = _report(tmp_path / "profile")
    facts = {(fact.name, fact.subject.id): fact.value for fact in report.facts}
    assert facts["run.left_out_ranks", "run"] == (0,)
    sound = {(fact.name, fact.subject.id): fact.value for fact in _report(slow_rank).facts}
    assert facts["step.time_us", "run"] == pytest.approx(sound["step.time_us", "run"], rel=0.05)
    assert report.summary.direction != "healthy"


@pytest.mark.parametrize("column", ["Computing", "Free"])
def test_steps_are_no_longer_than_from_collective_to_collective(column: str, tmp_path: Path) -> None:
    """Where only a step table and collectives are at hand, the collectives' starts tell how long a step may be."""
    write_originals(tmp_path / "originals", corpus=False)
    folder = tmp_path / "originals" / "cluster"
    assert not [p for p in _report(folder).problems if "contradicts" in p.problem]
    _scale(folder, "cluster_step_trace_time.csv", column, 1000)
    report = _report(folder)
    assert any("start" in p.problem and "contradicts" in p.problem for p in report.problems)
    assert all(f.confidence == Confidence.LOW for f in report.findings if f.direction.value != "evidence")


def test_what_is_left_of_the_kernels_is_held_against_the_statistic(slow_rank: Path, tmp_path: Path) -> None:
    """Half of the kernels still tell what one takes: a statistic in another unit is told beside the missing rows."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    for path in (tmp_path / "profile").rglob(KERNELS):
        rows = load(path)
        store(path, [rows[0], *rows[1::2]])
    cut = [p.problem for p in _report(tmp_path / "profile").problems]
    assert any("rows are missing" in text for text in cut) and not any("contradicts" in text for text in cut)
    for heading in ("Total Time(us)", "Avg Time(us)", "Min Time(us)", "Max Time(us)"):
        _scale(tmp_path / "profile", "op_statistic.csv", heading, 1000)
    assert any("contradicts op_statistic.csv" in p.problem for p in _report(tmp_path / "profile").problems)


@pytest.mark.parametrize(("longer", "told"), [(1, False), (1000, True)])
def test_a_few_kernels_that_run_beside_their_successors_are_told(longer: int, told: bool, tmp_path: Path) -> None:
    """A fragment of a dozen rows: from the fourth on their durations are in another unit, and a stream begins a kernel
    when the one before has ended."""
    rows = [f"k{n},MatMul,AI_CORE,16,{1000 + 20 * n},{12 * (longer if n > 3 else 1)}" for n in range(12)]
    (tmp_path / "op_summary_1.csv").write_text(
        "\n".join(["Op Name,OP Type,Task Type,Stream ID,Task Start Time(us),Task Duration(us)", *rows, ""])
    )
    assert any("behind the start of the next one" in p.problem for p in _report(tmp_path).problems) == told


@pytest.mark.parametrize(("us", "told"), [("12.000", False), ("0.400", False), ("0.012", True)])
def test_kernels_shorter_than_their_start_are_told(us: str, told: bool, tmp_path: Path) -> None:
    """A table of kernels alone in another unit: a device that mostly idles is one, twelve nanoseconds are no kernel."""
    rows = [f"k{n},MatMul,AI_CORE,{1000 + 20 * n},{us}" for n in range(40)]
    (tmp_path / "kernel_details.csv").write_text(
        "\n".join(["Name,Type,Accelerator Core,Start Time(us),Duration(us)", *rows, ""])
    )
    assert any("starting one takes longer" in p.problem for p in _report(tmp_path).problems) == told


@pytest.mark.parametrize(
    ("us", "core", "told"),
    [(12, 8, False), (500, 0.9, False), (12_000, 8, True), (12, 8000, True), (12_000, 0, False), (12, 9e6, False)],
)
def test_a_kernel_lasts_about_as_long_as_its_cores_work(us: float, core: float, told: bool, tmp_path: Path) -> None:
    """Two kernels of forty in another unit, or their cores' time: they would be the hotspot of the whole. Of a kernel
    whose cores' time is not told, or whose counter ran away, nothing contradicts its length."""
    rows = [
        f"k{n},MatMul,AI_CORE,{1000 + 20_000 * n},{us if n > 37 else 12},{core if n > 37 else 8}" for n in range(40)
    ]
    (tmp_path / "kernel_details.csv").write_text(
        "\n".join(["Name,Type,Accelerator Core,Start Time(us),Duration(us),aicore_time(us)", *rows, ""])
    )
    assert any("cores' time are of different size" in p.problem for p in _report(tmp_path).problems) == told


def test_a_sound_profile_has_nothing_doubted(slow_rank: Path) -> None:
    """Witnesses that agree cast no doubt: the slow rank is told with its usual confidence."""
    report = _report(slow_rank)
    assert not [fact for fact in report.facts if fact.doubted]
    assert any(f.verdict == "slow-compute-rank" and f.confidence != Confidence.LOW for f in report.findings)


def test_the_mark_goes_along_in_json(slow_rank: Path, tmp_path: Path) -> None:
    """Saved reports know which facts were doubted; sound facts say nothing of it."""
    shutil.copytree(slow_rank, tmp_path / "profile")
    _scale(tmp_path / "profile", STEPS, EXPOSED, 1000)
    text = json.dumps(report_to_json(_report(tmp_path / "profile"), facts="all"))
    facts = report_from_json(text).facts
    assert any(fact.doubted for fact in facts) and '"doubted": []' not in text


def test_facts_beyond_their_bounds_are_impossible() -> None:
    """Shares above one, negative times and links faster than memory cannot be; differences may be negative."""

    def fault(name: str, value: float, unit: str) -> str:
        return impossible(Fact(name, RUN, value), FactKind(name, unit, ("run",), "x"))

    assert "above 100\xa0%" in fault("step.idle_share", 5.76, "ratio")
    assert "below" in fault("step.time_us", -1.0, "us")
    assert fault("link.bandwidth_bytes_per_s", 1e14, "bytes_per_s")
    assert not fault("step.idle_share", 1.001, "ratio")
    assert not fault("rank.computing_excess_us", -500.0, "us")


def test_every_share_has_bounds() -> None:
    """A fact that is added as a share is bounded without further ado."""
    shares = [kind for kind in catalogue().values() if kind.name.endswith("_share")]
    assert all(bounds_of(kind.name, kind.unit).least is not None for kind in shares)


def test_a_slow_warm_up_is_no_contradiction(tmp_path: Path) -> None:
    """Ranks that warm up for different times end that step, and meet again in the next: every table of it is true."""
    scenario = Scenario(data=4, steps=4, layers=2, warm_up=True, faults=(Fault("slow_host", 1, 0.5),))
    write_profile(simulate(scenario), tmp_path)
    report = _report(tmp_path)
    assert not [problem.problem for problem in report.problems]
    assert [f.verdict for f in report.findings if f.role.value == "root_cause"][:1] == ["host-dispatch-bound"]


@pytest.mark.parametrize(("lasts", "told"), [((66.0, 31.0, 69.0, 31.0), False), ((66.0, 62.0, 69.0, 62.0), True)])
def test_a_pause_before_the_first_collective_is_no_contradiction(lasts: tuple[float, ...], told: bool) -> None:
    """Steps with a pause are longer than from their first collective to the next one's, and the steps before them are
    shorter: only together they cannot be longer."""
    table = TableRef("steps", (Path("step_trace_time.csv"),), "csv.table")
    rank = Rank(0, Path(), {"steps": table, "collectives": replace(table, table="collectives")})
    time = 1000 * np.array(lasts)
    starts = np.cumsum([40.0, 31.0, 69.0, 31.0]) * 1e6
    exchange = SimpleNamespace(steps=("1", "2", "3", "4"), step=np.arange(4), start_ns=starts)
    _steps_and_starts(rank, StepTimes(("1", "2", "3", "4"), time, {}, "steps"), exchange)  # type: ignore[arg-type]
    assert bool(rank.problems) is told


def test_a_first_step_in_which_one_rank_was_last_is_no_contradiction() -> None:
    """Who compiles longest before its first kernel waits for nobody in its first row, its peers do in theirs."""
    exposed = {0: [42.0, *[0.4] * 5], 1: [96.0, *[0.4] * 5], 2: [0.4] * 6}
    phases = {rank: {"exposed": np.array(us)} for rank, us in exposed.items()}
    times = {rank: StepTimes(tuple("123456"), one["exposed"] + 11.6, one, "steps") for rank, one in phases.items()}
    table = TableRef("steps", (Path("step_trace_time.csv"),), "csv.table")
    run = Run(Profile("", [Rank(r, Path(), {"steps": table}) for r in times]))
    _lengths(run, times)
    assert not any(rank.problems for rank in run.ranks)
    _lengths(run, {**times, 2: structs.replace(times[2], time=times[2].time * 4)})
    assert any(rank.problems for rank in run.ranks)


def test_a_long_wait_before_the_profiler_stops_damages_nothing(tmp_path: Path) -> None:
    """A script that sleeps for a hundred times its recording before it stops leaves one call of that length, and the
    frames around it, all of which end with the recording."""
    write_profile(simulate(Scenario(data=2, steps=3, layers=2, framework="pytorch")), tmp_path, trace=True)
    path = sorted(tmp_path.rglob("trace_view.json"))[1]
    events = json.loads(path.read_text())
    told = [event for event in events if event.get("ph") == "X"]
    last = max(float(event["ts"]) + event["dur"] for event in told)
    host = next(event for event in told if "dequeue" not in event["name"].lower())
    for level in range(3):
        events.append({**host, "name": f"wait_{level}", "ts": f"{last - 100 + level:.3f}", "dur": 3e7 - 2 * level})
    path.write_text(json.dumps(events))
    assert not any("trace_view" in p.file for p in _report(tmp_path).problems)


def test_host_events_in_another_unit_lead_to_nothing_certain(tmp_path: Path) -> None:
    """Durations a thousand times too long cover every gap of the device, so that anything could be its cause."""
    scenario = Scenario(data=2, steps=3, layers=2, framework="pytorch", faults=(Fault("slow_host", 1, 0.5),))
    write_profile(simulate(scenario), tmp_path, trace=True)
    assert not any("trace_view" in p.file for p in _report(tmp_path).problems)
    path = sorted(tmp_path.rglob("trace_view.json"))[1]
    events = json.loads(path.read_text())
    for event in events:
        if "dur" in event:
            event["dur"] *= 1000
    path.write_text(json.dumps(events))
    report = _report(tmp_path)
    assert any(p.file.endswith("trace_view.json") and "behind the last start" in p.problem for p in report.problems)
    blamed = [f for f in report.findings if f.verdict == "data-processing-bottleneck"]
    assert all(f.confidence == Confidence.LOW for f in blamed)


def test_steps_of_a_timeline_end_before_the_next_begins(tmp_path: Path) -> None:
    """A timeline alone whose durations are in another unit would show a device that idles most of its steps."""
    write_profile(simulate(Scenario(steps=4, layers=2, framework="pytorch")), tmp_path / "whole", trace=True)
    path = tmp_path / "run" / "trace_view.json"
    path.parent.mkdir()
    events = json.loads(next((tmp_path / "whole").rglob("trace_view.json")).read_text())
    path.write_text(json.dumps(events))
    assert not any("begin" in p.problem for p in _report(tmp_path / "run").problems)
    for event in events:
        if "dur" in event:
            event["dur"] *= 1000
    path.write_text(json.dumps(events))
    report = _report(tmp_path / "run")
    assert any("its steps last" in p.problem and "after each other" in p.problem for p in report.problems)
    assert report.summary.direction != "healthy"
    assert all(f.confidence == Confidence.LOW for f in report.findings if f.direction.value != "evidence")


@pytest.mark.parametrize(("heading", "factor"), [("Duration(us)", 1000), ("Start Time(us)", 0.001)])
def test_kernels_alone_cannot_run_hundreds_at_once(
    heading: str, factor: float, slow_rank: Path, tmp_path: Path
) -> None:
    """One table with nothing beside it: starts and durations in different units contradict each other."""
    table = sorted(slow_rank.rglob(KERNELS))[0]
    (tmp_path / "run").mkdir()
    shutil.copy(table, tmp_path / "run" / KERNELS)
    assert not any("at once" in p.problem for p in _report(tmp_path / "run").problems)
    _scale(tmp_path / "run", KERNELS, heading, factor)
    report = _report(tmp_path / "run")
    assert any("kernels ran at once" in p.problem for p in report.problems)
    assert report.summary.direction != "healthy"


def test_kernels_of_one_stream_run_one_after_another(slow_rank: Path, tmp_path: Path) -> None:
    """The durations of a part of the rows in another unit: on the whole no more seem to run at once than may."""
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / KERNELS
    table = pd.read_csv(sorted(slow_rank.rglob(KERNELS))[0], dtype=str)
    table.to_csv(path, index=False)
    assert not any("on their stream" in p.problem for p in _report(tmp_path / "run").problems)
    last = table.index >= len(table) / 2
    table.loc[last, "Duration(us)"] = (table["Duration(us)"].astype(float) * 5)[last].astype(str)
    table.to_csv(path, index=False)
    report = _report(tmp_path / "run")
    assert any("the next one on their stream" in p.problem for p in report.problems)
    assert report.summary.direction != "healthy"
    assert all(f.confidence == Confidence.LOW for f in report.findings if f.direction.value != "evidence")


def test_waits_that_do_not_fit_into_the_recording_are_told(slow_rank: Path, tmp_path: Path) -> None:
    """They tell whether kernels are missing between the rows: in another unit they hide that any are."""
    table = sorted(slow_rank.rglob(KERNELS))[0]
    (tmp_path / "run").mkdir()
    shutil.copy(table, tmp_path / "run" / KERNELS)
    rows = load(tmp_path / "run" / KERNELS)
    assert rows is not None
    at, start, lasts = (rows[0].index(heading) for heading in ("Wait Time(us)", "Start Time(us)", "Duration(us)"))
    ends = [float(row[start]) + float(row[lasts]) for row in rows[1:]]
    for row, end in zip(rows[2:], ends, strict=False):
        row[at] = f"{max(float(row[start]) - end, 0.0):.3f}"
    store(tmp_path / "run" / KERNELS, rows)
    assert not any("waits before" in p.problem for p in _report(tmp_path / "run").problems)
    _scale(tmp_path / "run", KERNELS, "Wait Time(us)", 1000)
    report = _report(tmp_path / "run")
    assert any("waits before its kernels" in p.problem for p in report.problems)
    assert all(f.confidence == Confidence.LOW for f in report.findings if f.direction.value != "evidence")


def test_steps_longer_than_their_kernels_are_apart_are_told(slow_rank: Path, tmp_path: Path) -> None:
    """A step table of a run three times as slow: its steps would overlap those of the kernels beside it."""
    shutil.copytree(slow_rank, tmp_path / "run")
    for path in (tmp_path / "run").rglob("communication*.json"):
        path.unlink()
    for heading in ("Computing", EXPOSED, "Free", "Overlapped", "Communication", "Stage"):
        _scale(tmp_path / "run", STEPS, heading, 3)
    assert any("whose first kernels start" in p.problem for p in _report(tmp_path / "run").problems)


@pytest.mark.parametrize(
    ("hosts", "moved", "agree"),
    [
        ("aabb", {(rank, table): 3.6e9 for rank in (2, 3) for table in ("kernels", "collectives")}, True),
        ("aabb", {(2, "kernels"): 3.6e9, (2, "collectives"): 3.6e9}, False),  # one rank of a host: another run
        ("aabb", {(2, "kernels"): 3.6e9, (3, "kernels"): 3.6e9}, False),  # half of a host's tables
        ("aabb", {(rank, table): 2e11 for rank in (2, 3) for table in ("kernels", "collectives")}, False),
        ("aaaa", {(rank, table): 3.6e9 for rank in (2, 3) for table in ("kernels", "collectives")}, False),
    ],
)
def test_the_clock_of_another_host_is_no_contradiction(hosts: str, moved: dict, agree: bool) -> None:
    """All that was recorded on a host agrees, and its clock is hours from the others': another time zone."""
    run = SimpleNamespace(ranks=[SimpleNamespace(rank=rank, host=host) for rank, host in enumerate(hosts)])
    starts = {(rank, table): moved.get((rank, table), 0.0) for rank in range(4) for table in ("kernels", "collectives")}
    usual = _usual_starts(run, starts, apart=6e7, hosts_apart=8.64e10)
    assert all(abs(start - usual[rank]) <= 6e7 for (rank, _), start in starts.items()) == agree


def test_collectives_of_a_rank_of_other_groups_are_told(tmp_path: Path) -> None:
    """Two stages of a pipeline share no collective: a file exchanged between them names none of the rank's kernels."""
    write_profile(simulate(Scenario(data=2, pipeline=2, micro_batches=4, steps=3, layers=2)), tmp_path)
    assert not any("no collective of the one" in p.problem for p in _report(tmp_path).problems)
    _exchange(tmp_path, "communication.json")
    assert sum("no collective of the one" in p.problem for p in _report(tmp_path).problems) == 2


def test_kernel_tables_of_two_ranks_exchanged_begin_when_no_launch_did(tmp_path: Path) -> None:
    """Their clocks agree and their times are alike: only the links between launches and kernels tell."""
    write_profile(simulate(Scenario(data=2, steps=3, layers=2)), tmp_path, trace=True)
    assert not _report(tmp_path).problems
    one, other = sorted(tmp_path.rglob(KERNELS))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second), other.write_bytes(first)
    report = _report(tmp_path)
    assert sum("another rank's" in problem.problem for problem in report.problems) == 2
    assert report.summary.direction == "undetermined"
    assert {finding.confidence for finding in report.findings} <= {Confidence.LOW}


def test_steps_whose_cells_moved_are_those_of_the_kernels(tmp_path: Path) -> None:
    """Both of a table's own sums are wrong in every row: its numbers stand under other headings."""
    write_profile(simulate(Scenario(data=2, steps=4, layers=2, framework="pytorch")), tmp_path)
    intact = _report(tmp_path)
    path = sorted(tmp_path.rglob(STEPS))[0]
    rows = load(path)
    lost = rows[0].index("Overlapped")
    store(path, [rows[0], *([*row[:lost], *row[lost + 1 :], ""] for row in rows[1:])])
    moved = _report(tmp_path)
    assert intact.summary.step_time_us is not None and moved.summary.step_time_us is not None
    assert moved.summary.step_time_us == pytest.approx(intact.summary.step_time_us, rel=0.02)
    assert any("contradicts itself" in problem.problem for problem in moved.problems)


def test_collectives_of_other_steps_are_told_although_one_step_is_called_0(slow_rank: Path, tmp_path: Path) -> None:
    """Steps 0 and 1 in the one table, 986 and 987 in the other: a 0 among numbers is a number."""
    target = tmp_path / "profile"
    shutil.copytree(slow_rank, target)
    table = next(target.glob("*/ASCEND_PROFILER_OUTPUT/step_trace_time.csv"))
    heading, *rows = table.read_text().splitlines()
    place = heading.split(",").index("Step")
    for number, row in enumerate(rows):
        cells = row.split(",")
        cells[place] = str(number)
        rows[number] = ",".join(cells)
    table.write_text("\n".join([heading, *rows]) + "\n")
    path = table.with_name("communication.json")
    told = json.loads(path.read_text())
    path.write_text(json.dumps({f"step{number}": told[name] for number, name in enumerate(told, 986)}))
    report = advise([target], load_rules(config=load_config(None)))
    assert any("no step of the one is in the other" in problem.problem for problem in report.problems)


def test_kernels_of_other_steps_are_told(slow_rank: Path, tmp_path: Path) -> None:
    """A minus before every number of a step: none of them is a step of the table, whatever the times say."""
    target = tmp_path / "profile"
    shutil.copytree(slow_rank, target)
    table = next(target.glob("*/ASCEND_PROFILER_OUTPUT/kernel_details.csv"))
    heading, *rows = table.read_text().splitlines()
    place = next(i for i, name in enumerate(heading.split(",")) if name in ("Step Id", "Step ID"))
    for number, row in enumerate(rows):
        cells = row.split(",")
        cells[place] = f"-{cells[place]}"
        rows[number] = ",".join(cells)
    table.write_text("\n".join([heading, *rows]) + "\n")
    report = advise([target], load_rules(config=load_config(None)))
    told = [problem.problem for problem in report.problems]
    assert "contradicts step_trace_time.csv: no step of the one is in the other" in told


def test_kernels_that_a_timeline_draws_are_told_by_its_file(tmp_path: Path) -> None:
    """A contradiction names both files: what stands in no table of its own was drawn in the timeline."""
    files = {"steps": "step_trace_time.csv", "trace": "trace_view.json"}
    tables = {name: TableRef(name, (tmp_path / file,), name) for name, file in files.items()}
    rank = Rank(0, tmp_path, tables=tables, base=tmp_path)
    _contradict(rank, "no step of the one is in the other", "kernels", "steps")
    (told,) = rank.problems
    assert told.file == "trace_view.json" and told.problem.startswith("contradicts step_trace_time.csv: ")
    assert told.doubted == ("trace", "steps")
