"""The late rank is found with the reason it is late, whichever files there are."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import PIPELINE, SMALL, facts_of
from msgspec import structs

from advisor.facts.cluster.accounts import beyond_work
from advisor.facts.cluster.lateness import extra_work, type_speeds
from advisor.facts.device.course import Course
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile


def rank(number: int) -> Subject:
    return Subject("rank", str(number), (number,))


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
@pytest.mark.parametrize(("kind", "cause"), [("slow_compute", "compute"), ("slow_data", "data"), ("slow_host", "host")])
def test_late_rank_and_its_cause(tmp_path, kind, cause, framework):
    """The rank with the fault is the latest, from what it has more of, in both frameworks' formats."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault(kind, 2, 0.4),), framework=framework), tmp_path)
    late = facts.of("rank.lateness_us")
    assert max(late.values(), key=lambda f: f.value).subject == rank(2)
    assert facts.value("rank.late_cause", rank(2)) == cause
    assert facts.value("rank.lateness_share", rank(2)) > 0.1
    assert all(facts.value("rank.lateness_share", rank(r)) < 0.03 for r in (0, 1, 3))


@pytest.mark.parametrize("kind", ["slow_data", "slow_host"])
def test_idling_is_not_put_down_to_late_launches_where_no_table_tells_it_from_waiting_for_data(tmp_path, kind):
    """Without kernels and Preparing, the rank that idles is named with what is known: that it idles."""
    scenario = replace(SMALL, steps=6, faults=(Fault(kind, 2, 0.6),), kernels=False, framework="pytorch")
    write_profile(simulate(scenario), tmp_path)
    for path in tmp_path.rglob("step_trace_time.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        gone = rows[0].index("Preparing")
        path.write_text("\n".join(",".join(row[:gone] + row[gone + 1 :]) for row in rows) + "\n")
    report = advise([tmp_path], load_rules(strict=False), Options(jobs=1))
    roots = [(f.verdict, f.subject.ranks) for f in report.findings if f.role.value == "root_cause"]
    assert roots == [("idle-imbalance", (2,))]
    assert next(f.value for f in report.facts if f.name == "rank.late_cause" and f.subject == rank(2)) == "idle"


@pytest.mark.parametrize(("kind", "cause"), [("slow_compute", "compute"), ("slow_data", "data"), ("slow_host", "host")])
def test_timelines_alone_name_the_late_rank_and_its_cause(tmp_path, kind, cause):
    """Each step begins with the first kernel that was launched in its mark: what lies before it is the rank's wait."""
    scenario = replace(SMALL, steps=6, faults=(Fault(kind, 2, 0.6),), framework="pytorch")
    write_profile(simulate(scenario), tmp_path, trace=True)
    for path in list(tmp_path.rglob("*")):
        if path.is_file() and path.name != "trace_view.json":
            path.unlink()
    report = advise([tmp_path], load_rules(strict=False), Options(jobs=1))
    told = {f.name: f.value for f in report.facts if f.subject == rank(2)}
    assert told["rank.late_cause"] == cause and told["rank.lateness_share"] > 0.1
    first = report.findings[0]
    assert first.subject.ranks == (2,) and first.severity.rank >= 2
    assert report.summary.direction == ("computation" if cause == "compute" else "scheduling")


def test_healthy_run_has_nobody_late(tmp_path):
    """Noise alone makes nobody late by more than what cards differ by."""
    facts, _ = facts_of(SMALL, tmp_path)
    assert all(f.value < 0.03 for f in facts.of("rank.lateness_share").values())


def test_a_handful_of_kernels_makes_nobody_slow(tmp_path):
    """Seven rows are left of each rank's kernels, other calls here than there: no card is slow for that."""
    facts_of(SMALL, tmp_path)
    for number, file in enumerate(sorted(tmp_path.rglob("kernel_details.csv"))):
        head, *rows = file.read_text().splitlines()
        file.write_text("\n".join([head, *rows[5 * number : 5 * number + 7]]) + "\n")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert not facts.of("rank.kernel_speed_ratio")
    assert all(f.value < 0.03 for f in facts.of("rank.lateness_share").values())


def test_step_times_alone_suffice(tmp_path):
    """Without kernels and collectives the step table still tells the late rank from the waiting ones."""
    scenario = replace(SMALL, faults=(Fault("slow_compute", 1, 0.4),), kernels=False, level=0, metadata=False)
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("rank.late_cause", rank(1)) == "compute"
    assert facts.value("rank.lateness_share", rank(1)) > 0.1
    assert facts.value("rank.exposed_excess_us", rank(0)) > facts.value("rank.exposed_excess_us", rank(1))


def test_ranks_are_compared_within_their_stage(tmp_path):
    """A stage with more work makes none of its ranks slow."""
    facts, _ = facts_of(replace(PIPELINE, faults=(Fault("stage_imbalance", 1, 1.0),)), tmp_path)
    assert facts.value("rank.stage", rank(3)) == 1
    assert all(f.value < 0.03 for f in facts.of("rank.computing_excess_share").values())


def test_slow_rank_alone_in_its_stage(tmp_path):
    """With one rank a stage, slower kernels tell a slow card from a larger share of the work."""
    facts, _ = facts_of(replace(PIPELINE, data=1, faults=(Fault("slow_compute", 1, 0.4),)), tmp_path)
    assert facts.value("rank.late_cause", rank(1)) == "compute"
    assert facts.value("rank.kernel_speed_ratio", rank(1)) == pytest.approx(1.4, rel=0.05)
    assert facts.value("stage.work_ratio", Subject("stage", "1", (1,))) < 1.08


@pytest.mark.parametrize("base", [SMALL, PIPELINE])
@pytest.mark.parametrize("kind", ["slow_compute", "slow_data", "slow_host"])
def test_saving_is_what_removing_the_fault_gives(tmp_path, base, kind):
    """The replayed saving is within a fifth of the step that the simulator saves without the fault."""
    scenario = replace(base, faults=(Fault(kind, 1, 0.5),))
    facts, _ = facts_of(scenario, tmp_path)
    gained = simulate(scenario).step_us - simulate(replace(scenario, faults=())).step_us
    assert facts.value("rank.saving_basis", rank(1)) == "replay"
    assert facts.value("rank.saving_us", rank(1)) == pytest.approx(gained, rel=0.2)


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("kind", ["slow_compute", "slow_data"])
def test_saving_reaches_through_the_pipeline(tmp_path, kind, pairwise):
    """With tensor and pipeline parallelism the others wait in receives, whose senders are found by their ends."""
    base = replace(PIPELINE, tensor=2, pipeline=3, ranks_per_host=4, pairwise=pairwise)
    scenario = replace(base, faults=(Fault(kind, 5, 0.4),))
    facts, _ = facts_of(scenario, tmp_path)
    gained = simulate(scenario).step_us - simulate(base).step_us
    assert facts.value("rank.saving_basis", rank(5)) == "replay"
    assert facts.value("rank.saving_us", rank(5)) == pytest.approx(gained, rel=0.2)


def test_replay_reproduces_the_step(tmp_path):
    """Played without a change, the model takes as long as the measured step."""
    facts, _ = facts_of(PIPELINE, tmp_path)
    assert facts.value("replay.error_share", RUN) < 0.02


def test_ranks_of_different_jobs_are_not_compared(tmp_path):
    """Steps of different lengths are not of one synchronous job: nobody is accused."""
    from advisor.pipeline import Options, measure
    from benchmarks.simulator import write_profile

    write_profile(simulate(replace(SMALL, data=1)), tmp_path / "a")
    longer = simulate(replace(SMALL, data=2, kernel_us=1200.0))
    for folder in write_profile(replace_missing(longer), tmp_path / "b"):
        assert folder.exists()
    measured = measure([tmp_path], None, Options(jobs=1))
    assert not measured.facts.of("rank.lateness_us")


def replace_missing(run):
    """The same run with rank 0's files lost."""
    run.scenario = replace(run.scenario, missing_ranks=(0,))
    return run


def test_saving_of_a_slow_card_where_kernels_alone_tell_the_stages(tmp_path):
    """Level 0 and no metadata: who hands on to whom follows from one rank a stage."""
    scenario = replace(
        PIPELINE, data=1, level=0, metadata=False, framework="pytorch", faults=(Fault("slow_compute", 1, 0.3),)
    )
    facts, _ = facts_of(scenario, tmp_path)
    gained = simulate(scenario).step_us - simulate(replace(scenario, faults=())).step_us
    assert facts.value("rank.saving_us", rank(1)) == pytest.approx(gained, rel=0.2)


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize(("kind", "cause"), [("slow_compute", "compute"), ("slow_data", "data"), ("slow_host", "host")])
def test_a_host_whose_ranks_are_all_late_is_one_fault(tmp_path, kind, cause, kernels):
    """Its ranks gain only together: what the host costs is told once, as much as the simulator gains without it."""
    scenario = replace(SMALL, data=8, ranks_per_host=4, kernels=kernels)
    slow = replace(scenario, faults=(Fault(kind.replace("slow_", "slow_node_"), 1, 0.4),))
    facts, _ = facts_of(slow, tmp_path)
    host = next(s for s in facts.subjects("host") if 4 in s.ranks)
    assert facts.value("host.late_cause", host) == cause
    assert facts.value("host.late_rank_share", host) == 1
    assert facts.value("host.saving_us", host) == pytest.approx(
        simulate(slow).step_us - simulate(scenario).step_us, rel=0.2
    )


def test_one_slow_rank_of_two_is_no_slow_host(tmp_path):
    """The other rank of its host is late by noise only."""
    scenario = replace(SMALL, ranks_per_host=2, faults=(Fault("slow_compute", 1, 0.3),))
    facts, _ = facts_of(scenario, tmp_path)
    hosts = facts.of("host.late_rank_share")
    assert hosts
    assert all(fact.value <= 0.5 for fact in hosts.values())


@pytest.mark.parametrize("seed", range(3))
def test_what_the_advisor_measures_itself_is_never_impossible(tmp_path, seed):
    """Consistent files of hosts without a fault give no number that makes them look damaged."""
    scenario = replace(SMALL, data=6, ranks_per_host=3, seed=seed)
    write_profile(simulate(scenario), tmp_path)
    measured = measure([tmp_path], None, Options(jobs=1))
    assert [problem.problem for problem in measured.problems] == []
    assert not measured.facts.doubted


def test_a_first_stage_that_waits_for_data_as_a_whole_is_the_data_pipeline(tmp_path):
    """No rank of it is later than the others, yet all later stages wait behind it."""
    scenario = replace(PIPELINE, data=4, ranks_per_host=2)
    slow = replace(scenario, faults=(Fault("slow_node_data", 0, 0.4), Fault("slow_node_data", 1, 0.4)))
    facts, _ = facts_of(slow, tmp_path)
    assert facts.value("pipeline.first_host_count", RUN) == 2
    assert facts.value("pipeline.first_saving_us", RUN) == pytest.approx(
        simulate(slow).step_us - simulate(scenario).step_us, rel=0.2
    )


def test_a_stage_whose_ranks_fetch_in_time_starves_nobody(tmp_path):
    """Without a fault there is no such wait."""
    facts, _ = facts_of(replace(PIPELINE, data=4, ranks_per_host=2), tmp_path)
    assert (facts.value("pipeline.first_wait_share", RUN) or 0.0) < 0.03


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_stage_whose_hosts_all_launch_late_is_found_although_no_rank_of_it_stands_out(tmp_path, stage):
    """Gaps between kernels do not depend on what a stage computes: its ranks are compared with those of the others."""
    scenario = replace(PIPELINE, pipeline=3)
    first = scenario.data * stage
    slow = replace(scenario, faults=(Fault("slow_host", first, 2.0), Fault("slow_host", first + 1, 2.0)))
    facts, _ = facts_of(slow, tmp_path)
    late = {s.ranks[0] for s, f in facts.of("rank.lateness_share").items() if f.value > 0.1}
    assert late == {first, first + 1}
    assert {facts.value("rank.late_cause", rank(r)) for r in late} == {"host"}
    gained = simulate(slow).step_us - simulate(scenario).step_us
    assert facts.value("rank.saving_us", rank(first)) == pytest.approx(gained, rel=0.25)


def test_a_rank_with_more_work_is_not_a_slow_card(tmp_path):
    """Equal calls are as fast there: what it has more of is told, and no card is accused."""
    slow, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 1, 0.4),)), tmp_path / "slow")
    assert slow.value("rank.extra_work_us", rank(1)) < 0.1 * slow.value("rank.computing_excess_us", rank(1))
    loaded, _ = facts_of(replace(PIPELINE, faults=(Fault("stage_imbalance", 1, 0.5),)), tmp_path / "loaded")
    assert all(f.value < 0.1 * loaded.value("step.time_us", RUN) for f in loaded.of("rank.extra_work_us").values())


def test_extra_work_is_told_by_type_and_shape():
    """A rank whose matmuls are a quarter longer, and one call that only it makes."""
    peer = Course((), *([np.zeros(0)] * 5), np.zeros(0, int), {("MatMul", "4,4"): (10.0, 100.0)})
    speed = {("MatMul", "5,4"): (10.0, 125.0), ("TopK", "9"): (1.0, 30.0)}
    more, where = extra_work(_run({0: peer, 1: structs.replace(peer, speed=speed), 2: peer}), 1, [0, 1, 2])
    assert more == pytest.approx(10 * 125 + 30 - 10 * 100)
    assert where == ("MatMul (5,4)", "TopK (9)")


@pytest.mark.parametrize("kept", [8, 3])
def test_where_all_have_shapes_of_their_own_only_what_one_has_more_is_extra(kept):
    """Each rank's experts draw other numbers of tokens in each layer: what all of them do is no extra work of any, and
    calls beyond the most expensive ones count as well."""
    courses = {}
    for rank in range(4):
        tokens = [1000 + 10 * rank + layer + 600 * (rank == 3) for layer in range(8)]
        calls = {("GroupedMatmul", f"{n},4096"): (1.0, n / 10) for n in sorted(tokens, reverse=True)}
        speed = {("MatMul", "4,4"): (10.0, 500.0), **dict(list(calls.items())[:kept])}
        rest = {"GroupedMatmul": sum(us for _, us in list(calls.values())[kept:])}
        courses[rank] = Course((), *([np.zeros(0)] * 5), np.zeros(0, int), speed, rest_us=rest)
    more, where = extra_work(_run(courses), 3, list(courses))
    assert more == pytest.approx(8 * 62, abs=8) and where == ("GroupedMatmul (1637,4096)",)
    assert extra_work(_run(courses), 1, list(courses))[0] < 8


def _run(courses):
    run = SimpleNamespace(each=lambda name: courses)
    run.once = lambda function, make: make(run)
    return run


@pytest.mark.parametrize("spoil", ["lost", "column"])
def test_ranks_measured_in_another_way_are_not_compared(tmp_path, spoil):
    """A rank whose steps are lost, or nothing tells the waits before them, differs by what is counted: none is late."""
    facts_of(replace(SMALL, framework="pytorch"), tmp_path)
    table = sorted(tmp_path.rglob("step_trace_time.csv"))[1]
    if spoil == "lost":
        table.unlink()
    else:
        table.write_text(table.read_text().replace("Preparing", "Prepared"))
        (table.parent / "kernel_details.csv").unlink()  # which would tell the wait before each step
    measured = measure([tmp_path], None, Options(jobs=1))
    compared = {subject.ranks[0] for subject in measured.facts.of("rank.idle_excess_share")}
    assert compared == {0, 2, 3}
    assert all(fact.value < 0.03 for fact in measured.facts.of("rank.lateness_share").values())
    assert any("measured in another way" in problem.problem for problem in measured.problems)


def test_a_step_that_one_record_begins_with_is_not_compared(tmp_path):
    """What a device waited before the first step of its record is told in another way than before later ones: a rank
    whose table lacks a first row that the others have is no late rank."""
    heading = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"
    kernels = "Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    for number in range(3):
        output = tmp_path / f"x_{number}_20250101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / f"profiler_info_{number}.json").write_text(f'{{"rank_id": {number}}}')
        rows = [f"{step},300,100,50,150,{600 - 50 * step},0,0,200" for step in range(number == 2, 2)]
        (output / "step_trace_time.csv").write_text("\n".join((heading, *rows, "")))
        rows = [f"{step},MatMul-op1,MatMulV2,AI_CORE,{1700000000000200 + 1000 * step}.0,300.0" for step in range(2)]
        rows.append("0,hcom_allReduce__101_0_1,hcom_allReduce_,COMMUNICATION,1700000000000450.0,150.0")
        (output / "kernel_details.csv").write_text("\n".join((kernels, *rows, "")))
    report = advise([tmp_path], load_rules(strict=False), Options(jobs=1))
    assert report.profile.ranks == (0, 1, 2)
    assert not [f for f in report.findings if f.subject.kind == "rank"]


def test_a_slow_rank_without_its_kernels_is_compared_by_the_table_that_all_have(tmp_path):
    """Its own kernel table was lost: the step tables of all ranks tell all the same that it is the one who is late."""
    scenario = replace(SMALL, framework="pytorch", faults=(Fault("slow_compute", 2, 0.4),))
    whole, _ = facts_of(scenario, tmp_path)
    (sorted(tmp_path.rglob("kernel_details.csv"))[2]).unlink()
    rest = measure([tmp_path], None, Options(jobs=1)).facts
    assert rest.value("rank.lateness_share", rank(2)) == pytest.approx(
        whole.value("rank.lateness_share", rank(2)), rel=0.1
    )


def test_a_slow_card_slows_all_operator_types_alike(tmp_path):
    """What tells a slow card from more work is measured, not left to the reader: every type takes as much longer."""
    facts, _ = facts_of(replace(SMALL, faults=(Fault("slow_compute", 1, 0.4),)), tmp_path)
    low, high = (facts.value(f"rank.type_speed_{end}", rank(1)) for end in ("low", "high"))
    assert 1.3 < low <= high < 1.5


def test_one_slow_operator_type_does_not_make_the_card_slow():
    """A type that alone is slower stands far above the others, unless it takes next to no time."""
    usual = {("MatMul", "a"): (10.0, 100.0), ("Add", "b"): (10.0, 50.0), ("Cast", "c"): (1.0, 5.0)}
    slow = {**usual, ("Add", "b"): (10.0, 75.0), ("Cast", "c"): (1.0, 50.0)}
    courses = {0: SimpleNamespace(speed=usual), 1: SimpleNamespace(speed=slow), 2: SimpleNamespace(speed=usual)}
    run = SimpleNamespace(each=lambda _: courses)
    assert type_speeds(run, 1, [0, 2]) == (1.0, 1.5)
    assert type_speeds(run, 0, []) is None


@pytest.mark.parametrize("kernel_us", [15.0, 60.0])
def test_a_slow_card_holds_up_every_collective_however_short_the_work_between_them(tmp_path, kernel_us):
    """A collective that nothing runs beside was waiting for the computing before it, not for the last collective, from
    which tens of microseconds part it: the replay promised a quarter of what a slow card cost in decoding."""
    base = replace(
        SMALL, data=1, tensor=4, layers=8, kernel_us=kernel_us, activation_mb=0.2, gradient_mb_per_layer=0.1,
        launch_us=1.0, steps=3,
    )  # fmt: skip
    scenario = replace(base, faults=(Fault("slow_compute", 1, 0.45),))
    facts, _ = facts_of(scenario, tmp_path)
    gained = simulate(scenario).step_us - simulate(base).step_us
    assert facts.value("replay.error_share", RUN) < 0.05
    assert facts.value("rank.saving_us", rank(1)) == pytest.approx(gained, rel=0.2)


def test_what_a_slow_card_takes_inside_fused_exchanges_is_its_own_work():
    """The same card takes 1.3 times as long in kernels that communicate as well; its partners wait in them for it."""
    fused = np.array([[20.0, 20.0], [21.0, 20.0], [26.0, 26.0], [36.0, 35.0]])
    waiting = beyond_work(fused, [0, 1, 2, 3], {0: 1.0, 1: 0.99, 2: 1.3, 3: 1.0})
    assert waiting.tolist() == [[0, 0], [1, 0], [0, 0], [16, 15]]


def test_fused_exchanges_of_ranks_without_any_are_all_waiting():
    """Where one rank has none of them, or is not told, nobody knows what of the others' is work."""
    assert beyond_work(np.array([[20.0], [0.0]]), [0, 1], {}).tolist() == [[20], [0]]
    assert beyond_work(np.array([[20.0], [np.nan]]), [0, 1], {})[0] == 20
