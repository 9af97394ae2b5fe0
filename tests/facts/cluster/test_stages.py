"""Stages are compared by the work they were given; the schedule's own bubble is no fault."""

import shutil
from dataclasses import replace

import pytest
from clusters import PIPELINE, facts_of, forget_groups, judged

from advisor.facts.cluster.pipeline.evening import _fitting
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, physics, simulate, write_profile


def test_micro_batches_and_the_unavoidable_bubble(tmp_path):
    """(p−1)/(m+p−1) of the step where only the schedule stretches it, in both spellings of point-to-point."""
    for batched in (False, True):
        facts, _ = facts_of(replace(PIPELINE, batch_send_receive=batched), tmp_path / str(batched))
        assert facts.value("pipeline.micro_batches", RUN) == 4
        assert facts.value("pipeline.bubble_minimum_share", RUN) == pytest.approx(0.2, rel=0.05)


def test_heavier_stage_and_what_to_move(tmp_path):
    """The stage with twice the layers is named, with the part of its work to hand on and to whom."""
    facts, _ = facts_of(replace(PIPELINE, faults=(Fault("stage_imbalance", 1, 1.0),)), tmp_path)
    heavy = Subject("stage", "1", (2, 3))
    assert facts.value("stage.work_ratio", heavy) == pytest.approx(4 / 3, rel=0.05)
    assert facts.value("stage.move_share", heavy) == pytest.approx(0.25, abs=0.04)
    assert facts.value("stage.move_to", heavy) == 0


def test_uneven_stages_that_no_file_names_are_witnessed_by_their_kernels(tmp_path):
    """At Level 0 nothing names the stages; one all ranks of which run more kernels was given more to do, and a slow
    one was not."""
    told = {}
    for fault in (Fault("stage_imbalance", 1, 1.0), Fault("slow_node_compute", 1, 1.0)):
        scenario = replace(
            PIPELINE, level=0, metadata=False, framework="pytorch", ranks_per_host=2, faults=(fault,)
        )  # fmt: skip
        write_profile(simulate(scenario), tmp_path / fault.kind)
        forget_groups(tmp_path / fault.kind)
        facts = measure([tmp_path / fault.kind], None, Options(jobs=1)).facts
        assert facts.value("parallelism.is_told", RUN) is False
        told[fault.kind] = facts.value("stage.calls_ratio", Subject("stage", "1", (2, 3)))
    assert told["stage_imbalance"] == pytest.approx(4 / 3, rel=0.1)
    assert told["slow_node_compute"] == 1


def test_slow_host_that_holds_a_stage_is_no_uneven_work(tmp_path):
    """A stage whose every kernel is slow was not given more to do."""
    facts, _ = facts_of(replace(PIPELINE, ranks_per_host=2, faults=(Fault("slow_node_compute", 1, 0.5),)), tmp_path)
    assert facts.value("stage.work_ratio", Subject("stage", "1", (2, 3))) < 1.08
    assert facts.value("rank.late_cause", Subject("rank", "3", (3,))) == "compute"


def test_half_of_a_stage_being_slow_is_no_uneven_work_without_kernels(tmp_path):
    """Nothing tells how fast the cards are: what the stage was given to do is what its fastest rank needs for it."""
    faults = (Fault("slow_compute", 4, 0.5), Fault("slow_compute", 5, 0.5))
    scenario = replace(PIPELINE, data=4, faults=faults, kernels=False)
    facts, _ = facts_of(scenario, tmp_path)
    stage = facts.value("rank.stage", Subject("rank", "4", (4,)))
    assert stage == facts.value("rank.stage", Subject("rank", "5", (5,)))
    assert all(fact.value < 1.08 for fact in facts.of("stage.work_ratio").values())


@pytest.mark.parametrize(("stages", "stage", "virtual"), [(3, 1, 2), (4, 2, 2), (4, 0, 2), (4, 2, 4)])
def test_even_interleaved_stages_gain_what_perfectly_even_ones_are_shorter(tmp_path, stages, stage, virtual):
    """One figure, and no more than that: a step with the same layers dealt out evenly is the shortest there is."""
    even = replace(PIPELINE, data=1, pipeline=stages, layers=4, micro_batches=2 * stages, virtual=virtual)
    slow = replace(even, faults=(Fault("stage_imbalance", stage, 0.5),))
    facts, _ = facts_of(slow, tmp_path)
    evened_us = simulate(even).step_us * (1 + 2 / (4 * stages))  # two layers more than all that the even ones have
    perfect = simulate(slow).step_us - evened_us
    subject = Subject("stage", str(stage), (stage,))
    assert facts.value("pipeline.micro_batches", RUN) == 2 * stages and facts.value("pipeline.chunks", RUN) == virtual
    assert facts.value("stage.saving_us", subject) == facts.value("stage.most_us", subject)
    assert facts.value("stage.most_us", subject) == pytest.approx(perfect, rel=0.15)


@pytest.mark.parametrize(("faults", "accused"), [
    ((Fault("stage_imbalance", 1, 1.0),), False), ((Fault("slow_compute", 2, 0.5),), True),
])  # fmt: skip
def test_neighbours_that_compute_longer_together_may_be_a_stage(tmp_path, faults, accused):
    """Step tables alone tell nothing of stages: one slow rank is named, and two neighbours are not."""
    write_profile(simulate(replace(PIPELINE, pipeline=2 - accused, data=2 + 2 * accused, faults=faults)), tmp_path)
    for path in list(tmp_path.rglob("*")):
        if path.is_file() and path.name != "step_trace_time.csv":
            path.unlink()
        elif path.is_file():
            rows = [line.split(",") for line in path.read_text().splitlines()]
            kept = [i for i, name in enumerate(rows[0]) if name not in ("Bubble", "Stage")]
            path.write_text("\n".join(",".join(row[i] for i in kept) for row in rows) + "\n")
    report = advise([tmp_path], load_rules(strict=False), Options(jobs=1))
    serious = [f for f in report.findings if f.verdict == "slow-compute-rank" and f.severity.value != "low"]
    assert bool(serious) == accused and all(f.subject.ranks == (2,) for f in serious)


@pytest.mark.parametrize("slow", [6, 2])
def test_uneven_stages_are_found_behind_a_slow_rank(tmp_path, slow):
    """While all wait for one slow rank, even stages gain little; with the rank repaired they gain much, jointly."""
    scenario = replace(PIPELINE, pipeline=4, micro_batches=8, layers=4)
    faults = (Fault("stage_imbalance", 1, 0.5), Fault("slow_compute", slow, 0.6))
    write_profile(simulate(replace(scenario, faults=faults)), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    roots = {f.rule: f for f in report.findings if f.role.value == "root_cause"}
    assert (roots["CLUS010"].subject.ranks, roots["CLUS060"].subject.id) == ((slow,), "1")
    even = replace(scenario, faults=faults[1:])
    most = simulate(replace(scenario, faults=faults)).step_us - simulate(replace(even, faults=())).step_us
    assert report.whatif is not None and report.summary.step_time_us is not None
    together = report.summary.step_time_us - report.whatif.step_time_us["F1,F2"]
    assert 0.6 * most < together < most  # the work that one stage had too much stays


def test_a_slow_rank_hides_no_uneven_stages_where_there_are_none(tmp_path):
    """Even stages of which one holds a slow rank: the rank alone is told."""
    scenario = replace(PIPELINE, pipeline=4, micro_batches=8, faults=(Fault("slow_compute", 2, 0.6),))
    write_profile(simulate(scenario), tmp_path)
    found = advise([tmp_path], load_rules(), Options(jobs=1)).findings
    assert not [f for f in found if f.rule == "CLUS060" and f.severity.value != "low"]


def test_kernels_alone_do_not_tell_how_many_stages_there_are(tmp_path):
    """Ranks that hand over are each a stage of its own as far as anybody knows: a schedule of that many stages would
    need a bubble that the run's own schedule does not."""
    write_profile(simulate(Scenario(data=2, pipeline=4, micro_batches=4, layers=2, steps=3)), tmp_path)
    names = ["pipeline.bubble_minimum_share", "pipeline.bubble_share", "parallelism.is_told"]
    whole = measure([tmp_path], names, Options(jobs=1)).facts
    assert whole.number(names[0], RUN) == pytest.approx(3 / 7, rel=0.05)
    for path in list(tmp_path.rglob("*")):
        if path.is_file() and path.name != "kernel_details.csv":
            path.unlink()
    named = measure([tmp_path], names, Options(jobs=1)).facts  # the numbers in their names tell who meets whom
    assert named.number(names[0], RUN) == pytest.approx(3 / 7, rel=0.05)
    forget_groups(tmp_path)
    part = measure([tmp_path], names, Options(jobs=1)).facts
    assert part.value("parallelism.is_told", RUN) is False
    assert part.value(names[0], RUN) is None and part.value(names[1], RUN) is not None


@pytest.mark.parametrize(("stage", "in_flight", "told"), [(0, None, 4), (1, None, 4), (2, None, 4), (0, 8, None)])
def test_one_rank_tells_how_many_stages_follow_it(tmp_path, stage, in_flight, told):
    """Four stages, of which one rank was recorded: the pairs that it is in name two or three, its order of forward and
    backward those behind it, the size of the job those before it. With every forward first any number could follow."""
    scenario = replace(
        PIPELINE, data=1, pipeline=4, micro_batches=8, pairwise=True, framework="pytorch",
        in_flight=in_flight, missing_ranks=tuple({0, 1, 2, 3} - {stage}), activation_mb=1.0,
    )  # fmt: skip
    facts, _ = facts_of(scenario, tmp_path)
    assert facts.value("pipeline.stages_in_order", RUN) == told


@pytest.mark.parametrize(("stages", "micro", "virtual", "in_flight"), [
    (4, 8, 1, 1), (4, 8, 1, 2), (3, 6, 1, 1), (2, 4, 1, 1),
    (4, 8, 1, None), (4, 8, 1, 8), (2, 4, 1, None), (4, 2, 1, None), (2, 4, 2, None), (4, 8, 2, None),
])  # fmt: skip
def test_an_order_that_keeps_micro_batches_back_is_one_finding(tmp_path, stages, micro, virtual, in_flight):
    """Where the first stage holds micro-batches back, the pipeline has one root cause, which gains what the same work
    as one forward, one backward gains; any schedule that fills the stages stays unnamed."""
    scenario = replace(
        PIPELINE, data=1, pipeline=stages, micro_batches=micro, virtual=virtual, in_flight=in_flight, activation_mb=1.0
    )
    write_profile(simulate(scenario), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    found = [f for f in report.findings if f.verdict == "pipeline-bubble" and f.role.value == "root_cause"]
    held = in_flight is not None and in_flight < min(stages, micro)
    assert [f.rule for f in found if f.rule != "CLUS071"] == ["CLUS072"] * held
    if held:
        gain = simulate(scenario).step_us - simulate(replace(scenario, in_flight=None)).step_us
        assert found[0].saving is not None
        assert found[0].saving.us_per_step == pytest.approx(gain, rel=0.15)
        assert not [r for r in found[0].remedies if r.id == "raise-micro-batches"]


def test_idling_until_its_turn_comes_is_not_late(tmp_path, monkeypatch):
    """The last stage's only rank begins later than the others, and its first micro-batch has not arrived by then:
    nobody waits for it, so nobody is told that its data come late."""
    scenario = replace(PIPELINE, data=1, pipeline=4, micro_batches=4, framework="pytorch", steps=6)
    usual = simulate(scenario).step_us
    later = {3: 0.12 * usual}
    monkeypatch.setattr(
        physics._Course, "partial", lambda self: [[(1.0, 0.0, later.get(r, 0.0)) for r in range(4)]] * 6
    )
    run = simulate(scenario)
    assert run.step_us == pytest.approx(usual, rel=0.02)
    write_profile(run, tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert not [f for f in report.findings if f.subject.ranks == (3,) and f.direction == "scheduling"]
    cause = next(f.value for f in report.facts if f.name == "rank.late_cause" and f.subject.ranks == (3,))
    assert cause == "none"


def test_even_stages_fill_and_drain_as_their_schedule_does(tmp_path):
    """What a heavy first stage is spared the others get, and with it longer ways of the first and the last micro-batch:
    no step gets shorter than (m+p−1) ÷ m of the mean work."""
    scenario = replace(PIPELINE, pipeline=4, layers=4, micro_batches=8, faults=(Fault("stage_imbalance", 0, 0.5),))
    facts, _ = facts_of(scenario, tmp_path)
    step, works = facts.number("step.time_us", RUN), [float(fact.value) for fact in facts.of("stage.work_us").values()]
    saved = [float(fact.value) for fact in facts.of("stage.saving_us").values()]
    assert len(works) == 4 and saved and max(saved) <= step - 11 / 8 * sum(works) / 4 + 1


@pytest.mark.parametrize(("tensor", "held", "even"), [(2, (5, 3), (4, 4)), (2, (2, 3), (3, 2)), (4, (3, 5), (4, 4))])
def test_layers_take_the_transfers_that_they_wait_for_with_them(tmp_path, monkeypatch, tensor, held, even):
    """Layers that move save one stage their tensor-parallel transfers and cost another the same: the step gains what
    the same model gains that is split so."""
    begin = physics._Course.__init__

    def split(layers):
        def begun(self, scenario):
            begin(self, scenario)
            self.layers = list(layers)

        monkeypatch.setattr(physics._Course, "__init__", begun)
        return simulate(scenario)

    scenario = replace(PIPELINE, tensor=tensor, data=1, micro_batches=6)
    gain = -split(even).step_us
    run = split(held)
    write_profile(run, tmp_path)
    facts = measure([tmp_path], ["stage.saving_us", "stage.move_layers"], Options(jobs=1)).facts
    heavy = next(subject for subject, told in facts.of("stage.saving_us").items() if told.value)
    assert facts.value("stage.move_layers", heavy) == 1
    assert facts.number("stage.saving_us", heavy) == pytest.approx(run.step_us + gain, rel=0.1)


def test_step_tables_tell_how_many_micro_batches_fit(tmp_path):
    """Where nothing counts the micro-batches, what the stages compute and wait bounds them: even stages gain about what
    the files that count them tell, and far less than the difference of the largest stage and the mean."""
    scenario = replace(PIPELINE, pipeline=4, layers=4, micro_batches=8, faults=(Fault("stage_imbalance", 0, 0.5),))
    whole, _ = facts_of(scenario, tmp_path)
    for name in ("kernel_details.csv", "trace_view.json", "communication.json", "communication_matrix.json"):
        for file in tmp_path.rglob(name):
            file.unlink()
    part = measure([tmp_path], None, Options(jobs=1)).facts
    stage = next(subject for subject, fact in part.of("stage.saving_us").items() if fact.value)
    works = [float(fact.value) for fact in part.of("stage.work_us").values()]
    assert part.number("pipeline.micro_batches", RUN) is None
    told = [facts.number("stage.saving_us", stage) for facts in (whole, part)]
    assert 0 < told[1] < 0.7 * (max(works) - sum(works) / 4) and told[1] == pytest.approx(told[0], rel=0.35)


def test_micro_batches_that_do_not_fit_into_the_step_are_half_of_them():
    """One operation that sends and receives counts once: four are told of eight."""
    work = [198.0, 198.0, 198.0, 317.0]
    assert _fitting(4, work, 393.0) == 8 and _fitting(8, work, 393.0) == 8


@pytest.mark.parametrize("gone", [0, 2])
def test_an_absent_rank_of_another_stage_hides_no_uneven_work(tmp_path, gone):
    """Whoever waits for the absent rank waits on in a replay; the schedule tells what even stages gain all the same."""
    heavy, stage = Fault("stage_imbalance", 2, 1.0), Subject("stage", "2", (4, 5))
    whole, _ = facts_of(replace(PIPELINE, pipeline=4, layers=8, faults=(heavy,)), tmp_path)
    shutil.rmtree(sorted(tmp_path.iterdir())[gone])
    part = measure([tmp_path], None, Options(jobs=1)).facts
    told = [facts.value("stage.saving_share", stage) for facts in (whole, part)]
    assert told[0] > 0.1 and told[1] == pytest.approx(told[0], rel=0.2)


def test_even_stages_hide_no_gradients(tmp_path):
    """Gradients that are reduced in one piece cost what they cost, whichever stage has more to do: the last reduction
    begins when the first stage has finished."""
    uneven, whole = Fault("stage_imbalance", 1, 0.5), Fault("unsplit_allreduce")
    scenario = replace(PIPELINE, gradient_mb_per_layer=60.0, layers=4, faults=(uneven, whole))
    run = simulate(scenario)
    write_profile(run, tmp_path)
    found = {f.rule: f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    gradients = found["COMM020"]
    assert gradients.role.value != "symptom" and found["CLUS060"].role.value == "root_cause"
    gained = run.step_us - simulate(replace(scenario, faults=(uneven,))).step_us
    assert gradients.saving is not None and gradients.saving.us == pytest.approx(gained, rel=0.2)


def test_ranks_of_each_stage_that_show_which_one_has_more_work(tmp_path):
    """All ranks of the heavier stage compute longer than any other; where one of them does not, none is a witness."""
    heavy, light = Subject("stage", "1", (2, 3)), Subject("stage", "0", (0, 1))
    uneven = Fault("stage_imbalance", 1, 1.0)
    facts, _ = facts_of(replace(PIPELINE, faults=(uneven,)), tmp_path / "uneven")
    assert facts.value("stage.apart_ranks", heavy) == 2 and facts.value("stage.apart_ranks", light) == 0
    facts, _ = facts_of(replace(PIPELINE, faults=(Fault("slow_compute", 3, 0.5),)), tmp_path / "slow")
    assert facts.value("stage.apart_ranks", heavy) == 0  # rank 2 computes no longer than the first stage
    three = replace(PIPELINE, pipeline=3, layers=6, faults=(uneven,))
    facts, _ = facts_of(three, tmp_path / "three")
    assert facts.value("stage.apart_ranks", heavy) == 2
    for folder in sorted((tmp_path / "three").iterdir())[:2]:  # the first stage may have as much to do
        shutil.rmtree(folder)
    assert not measure([tmp_path / "three"], None, Options(jobs=1)).facts.value("stage.apart_ranks", heavy)


def test_layers_that_move_take_their_gradients_along(tmp_path):
    """Reduced layer by layer, the gradients of five layers take longer than those of four: behind the first stage's
    last backward pass nothing hides that."""
    uneven = Scenario(
        data=2, pipeline=2, layers=3, steps=4, micro_batches=4, kernel_us=300.0, gradient_mb_per_layer=60.0, buckets=9,
        reduced_behind=True, seed=5, faults=(Fault("stage_imbalance", 0, 0.5),),
    )  # fmt: skip
    run, found = judged(uneven, tmp_path)
    gained = run.step_us - simulate(replace(uneven, layers=4, faults=())).step_us
    assert found["CLUS060"].saving.us == pytest.approx(gained, rel=0.08)


def test_a_stage_that_gives_layers_reduces_fewer_gradients(tmp_path):
    """Also where all of them are reduced in one collective behind the backward pass: what even stages gain at most is
    no less than they do."""
    uneven = Scenario(
        data=2, pipeline=2, layers=3, steps=4, micro_batches=4, kernel_us=300.0, gradient_mb_per_layer=120.0, buckets=1,
        reduced_behind=True, seed=5, faults=(Fault("stage_imbalance", 0, 0.5),),
    )  # fmt: skip
    run, found = judged(uneven, tmp_path)
    gained = run.step_us - simulate(replace(uneven, layers=4, faults=())).step_us
    assert found["CLUS060"].saving.us == pytest.approx(gained, rel=0.2)


def test_a_lone_stage_needs_the_bubble_of_all_stages_that_its_job_has(tmp_path):
    """One forward, one backward at a time hides how many stages follow, but groups and the size of the job tell."""
    scenario = replace(
        PIPELINE, data=1, pipeline=4, micro_batches=8, pairwise=True, framework="pytorch",
        in_flight=1, missing_ranks=(0, 1, 3), activation_mb=1.0,
    )  # fmt: skip
    facts, _ = facts_of(scenario, tmp_path)
    name = "pipeline.bubble_minimum_share"
    own = facts.number("step.computing_us", RUN) / facts.number("step.time_us", RUN)
    assert facts.value("pipeline.stages_in_order", RUN) < facts.value("parallelism.pipeline", RUN) == 4
    assert facts.number(name, RUN) == pytest.approx(3 / 8 * own, rel=0.1)
