"""What rests on a part of the recording is a suspicion, and says so; what rests on the whole is not touched."""

from __future__ import annotations

import pytest

from advisor.engine.concluding.partial import is_partial
from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Finding, Subject, Value
from advisor.ruleset.files.loader import load_rules

ZEROS = Subject("operator_type", "ZerosLike")
HOTSPOT: dict[tuple[Subject, str], Value] = {
    (ZEROS, "operator_type.category"): "vector",
    (ZEROS, "operator_type.core"): "AI_VECTOR_CORE",
    (ZEROS, "operator_type.average_us"): 497.0,
    (ZEROS, "operator_type.compute_share"): 0.6,
    (ZEROS, "operator_type.step_share"): 0.5,
    (ZEROS, "operator_type.time_us"): 5000.0,
    (ZEROS, "operator_type.count"): 10.0,
    (RUN, "step.time_us"): 10000.0,
    (RUN, "step.count"): 5,
}
NORMS: dict[tuple[Subject, str], Value] = {
    (RUN, "operators.norm_us"): 51000.0,
    (RUN, "operators.norm_share"): 0.08,
    (RUN, "operators.norm_count"): 385,
    (RUN, "operators.norm_types"): "Pow → ReduceMean → Rsqrt → Mul",
    (RUN, "operators.compute_us"): 641000.0,
}
TAIL: dict[tuple[Subject, str], Value] = {
    (RUN, "run.world_size"): 4,
    (RUN, "run.rank_count"): 4,
    (RUN, "parallelism.strategy"): "data",
    (RUN, "step.tail_share"): 0.3,
    (RUN, "step.tail_us"): 30000.0,
    (RUN, "step.time_us"): 100000.0,
    (RUN, "step.count"): 20,
    **{(Subject("rank", str(rank), (rank,)), "step.tail_us"): 30000.0 for rank in range(3)},
}
EXPOSED: dict[tuple[Subject, str], Value] = {
    (RUN, "run.world_size"): 4,
    (RUN, "parallelism.is_told"): True,
    (RUN, "step.exposed_communication_share"): 0.26,
    (RUN, "communication.exposed_wait_share"): 0.02,
    (RUN, "step.time_us"): 100000.0,
    (RUN, "step.count"): 5,
}
GAPS: dict[tuple[Subject, str], Value] = {
    (RUN, "step.time_us"): 100000.0,
    (RUN, "step.count"): 5,
    (RUN, "step.idle_share"): 0.3,
    (RUN, "step.idle_us"): 30000.0,
    (RUN, "timeline.idle_share"): 0.3,
}
IDLE: dict[tuple[Subject, str], Value] = {
    (RUN, "run.rank_count"): 8,
    (RUN, "run.missing_ranks"): 0,
    (RUN, "step.time_us"): 100000.0,
    (RUN, "step.count"): 5,
    (Subject("rank", "3", (3,)), "rank.idle_excess_share"): 0.2,
    (Subject("rank", "3", (3,)), "rank.saving_us"): 20000.0,
    (Subject("rank", "3", (3,)), "rank.peer_group"): "stage 0",
}


def reached(rule: str, base: dict[tuple[Subject, str], Value], **more: Value) -> Finding:
    """The finding of this rule; `more` are facts of the run."""
    told = base | {(RUN, name.replace("__", ".")): value for name, value in more.items()}
    facts = FactSet([Fact(name, subject, value) for (subject, name), value in told.items()])
    return next(f for f in decide(load_rules(strict=False), facts).findings if f.rule == rule)


@pytest.mark.parametrize(
    ("rule", "base", "part"),
    [
        ("COMP085", HOTSPOT, {"recording__kernels": 3}),
        ("COMP085", HOTSPOT, {"recording__kernels_left": 19}),
        ("SCHED020", GAPS, {"recording__device_tasks": 19}),
        ("SCHED020", GAPS, {"communication__unseen_ranks": 2}),
        ("COMP085", HOTSPOT, {"recording__kind": "fragment"}),
        ("COMP063", NORMS, {"operators__are_placed": False}),
        ("COMM021", TAIL, {"run__unmeasured_ranks": 1}),
        ("COMM010", EXPOSED, {"communication__untold_ranks": 2}),
        ("COMM010", EXPOSED, {"run__left_out_ranks": (2,)}),
        ("CLUS050", IDLE, {"run__left_out_ranks": (1, 2)}),
    ],
)
def test_what_rests_on_a_part_is_low_and_holds_only_if_the_rest_looks_alike(
    rule: str, base: dict[tuple[Subject, str], Value], part: dict[str, Value]
) -> None:
    """A handful of kernels, files without steps or times, kernels of a step that nobody timed, ranks
    at hand whose steps or collectives nobody can tell."""
    finding = reached(rule, base, **part)
    assert finding.severity.value == "low"
    assert any("only if" in doubt.en and "仅当" in doubt.zh for doubt in finding.doubts)


@pytest.mark.parametrize(
    ("rule", "base", "part", "doubted"),
    [
        ("COMM021", TAIL, {"run__unmeasured_ranks": 1}, True),
        ("SCHED020", GAPS, {"recording__device_tasks": 19}, False),
    ],
)
def test_of_a_part_a_cause_is_doubted_and_what_is_measured_is_not(
    rule: str, base: dict[tuple[Subject, str], Value], part: dict[str, Value], doubted: bool
) -> None:
    """The headline calls such a cause one of low confidence, and so does the finding; its saving stays what it is."""
    whole, finding = reached(rule, base), reached(rule, base, **part)
    assert (finding.confidence.value == "low") == doubted
    assert doubted or finding.confidence == whole.confidence
    assert (finding.saving is None) == (whole.saving is None)
    assert finding.saving is None or whole.saving is None or finding.saving.us == whole.saving.us


def test_a_small_cause_of_a_part_is_no_surer_than_a_large_one() -> None:
    """A table of sums alone tells of conversions that take a sixth of its time: of low severity anyway, and of how
    much of the recording nobody knows. More evidence may only show it to be little."""
    cast = Subject("operator_type", "Cast")
    told: dict[str, Value] = {
        "compute_share": 0.16, "exposed_us": 102_600.0, "time_us": 102_600.0, "count": 4394, "category": "conversion",
        "conversion": True, "stake_share": 0.01,
    }  # fmt: skip
    base = {(cast, f"operator_type.{name}"): value for name, value in told.items()}
    found = reached("COMP020", base, recording__kind="fragment")
    assert found.severity.value == "low" and found.confidence.value == "low"


@pytest.mark.parametrize(
    ("rule", "base", "whole"),
    [
        ("COMP085", HOTSPOT, {"recording__kernels": 20, "recording__kind": "training_steps"}),
        ("COMP085", HOTSPOT, {"recording__kernels_left": 20}),
        ("COMP063", NORMS, {"operators__are_placed": True}),
        ("COMP063", NORMS, {"operators__are_placed": False, "recording__kind": "kernel_benchmark"}),
        ("COMP085", HOTSPOT, {"recording__kernels": 4000, "run__unmeasured_ranks": 1}),
        ("SCHED020", GAPS, {"recording__device_tasks": 20}),
        ("COMM021", TAIL, {"run__unmeasured_ranks": 0, "recording__kernels": 3}),
        ("COMM010", EXPOSED, {"communication__untold_ranks": 0, "run__left_out_ranks": ()}),
        ("CLUS050", IDLE, {"run__left_out_ranks": ()}),
    ],
)
def test_what_rests_on_the_whole_keeps_its_severity(
    rule: str, base: dict[tuple[Subject, str], Value], whole: dict[str, Value]
) -> None:
    """The limit itself is no part, and a part on which the finding does not rest is none of its business."""
    finding = reached(rule, base, **whole)
    assert finding.severity.value in ("medium", "high")
    assert not finding.doubts


@pytest.mark.parametrize(
    "part", [{"step__count": 1}, {"run__missing_ranks": 1}, {"run__doubted_ranks": 2}, {"run__number_holes": 1}]
)
def test_one_of_several_ranks_stands_out_only_among_all_of_them_and_more_than_once(part: dict[str, Value]) -> None:
    """A single step, absent peers, or tables that cannot be of one job leave a suspicion."""
    rule = load_rules(strict=False).by_id["CLUS010"]
    facts = FactSet([Fact(name.replace("__", "."), RUN, value) for name, value in part.items()])
    assert is_partial(rule, Subject("rank", "1", (1,)), facts) and not is_partial(rule, RUN, facts)


@pytest.mark.parametrize("part", [{"run.missing_ranks": 4}, {"run.left_out_ranks": (2,)}])
@pytest.mark.parametrize(("unknown", "rests"), [(0, False), (1, True)])
def test_a_rank_all_of_whose_peers_are_known_rests_on_no_absent_one(
    part: dict[str, Value], unknown: int, rests: bool
) -> None:
    """Ranks of other stages may be absent or left out; of its own stage none may."""
    rank = Subject("rank", "1", (1,))
    facts = FactSet([*(Fact(name, RUN, value) for name, value in part.items()),
                     Fact("rank.uncompared_peers", rank, unknown)])  # fmt: skip
    assert is_partial(load_rules(strict=False).by_id["CLUS010"], rank, facts) is rests


@pytest.mark.parametrize(
    ("shown", "rests"),
    [
        ({"rank.lateness_share": 0.3, "rank.computing_excess_share": 0.0}, False),
        ({"rank.lateness_share": 0.0, "rank.computing_excess_share": 0.0}, True),
        ({"rank.lateness_share": 0.3, "rank.computing_excess_share": -0.05}, True),
    ],
)
def test_a_rank_that_idles_while_others_wait_for_it_and_computes_as_they_do_rests_on_no_partition(
    shown: dict[str, Value], rests: bool
) -> None:
    """Step tables alone tell neither how many ranks there were nor how the training was split: whom the others wait for
    idles first, whoever is absent, unless it was given less to do."""
    rank = Subject("rank", "5", (5,))
    facts = FactSet([Fact("run.world_is_told", RUN, False), Fact("parallelism.is_told", RUN, False),
                     *(Fact(name, rank, value) for name, value in shown.items())])  # fmt: skip
    assert is_partial(load_rules(strict=False).by_id["CLUS050"], rank, facts) is rests


@pytest.mark.parametrize(("is_last", "rests"), [(True, False), (False, True)])
def test_a_rank_that_waits_for_nobody_is_the_last_of_the_absent_ones_as_well(is_last: bool, rests: bool) -> None:
    """Others wait for it in collectives in which it waits for nobody: no absent member came later."""
    rank = Subject("rank", "1", (1,))
    facts = FactSet([Fact("run.missing_ranks", RUN, 6), Fact("rank.is_last", rank, is_last)])
    assert is_partial(load_rules(strict=False).by_id["CLUS010"], rank, facts) is rests


@pytest.mark.parametrize(
    ("waits", "rests"),
    [
        ({}, True),
        ({"communication.exposed_wait_share": 0.01}, False), ({"communication.exposed_wait_share": 0.05}, True),
        ({"step.exposed_communication_share": 0.02}, False), ({"step.exposed_communication_share": 0.2}, True),
        ({"step.exposed_communication_share": 0.0}, True),
    ],
)  # fmt: skip
def test_what_a_rank_waits_for_its_loader_is_of_weight_where_it_waits_for_nobody_else(
    waits: dict[str, Value], rests: bool
) -> None:
    """The usual recording is one rank of many: if it hardly waits in collectives, none of the absent came later. Where
    no communication was recorded nobody knows."""
    facts = FactSet([Fact(name, RUN, value) for name, value in {"run.missing_ranks": 7, **waits}.items()])
    assert is_partial(load_rules(strict=False).by_id["DATA023"], RUN, facts) is rests


@pytest.mark.parametrize(
    ("facts", "rests"),
    [
        ({"recording.has_steps": False}, True), ({"recording.has_steps": False, "recording.repeats": True}, False),
        ({"recording.has_steps": True}, False),
    ],
)  # fmt: skip
def test_one_call_of_what_ran_once_is_no_part_of_a_step(facts: dict[str, Value], rests: bool) -> None:
    """A single long call in a stretch that never comes again may be of set-up, or the only one of its kind."""
    known = FactSet([Fact(name, RUN, value) for name, value in facts.items()])
    operator = Subject("operator", "MatMul-op19")
    assert is_partial(load_rules(strict=False).by_id["COMP084"], operator, known) is rests


@pytest.mark.parametrize(("kernels", "rests"), [({}, True), ({"recording.kernels": 400}, False)])
def test_a_table_without_steps_tells_of_one_stretch(kernels: dict[str, Value], rests: bool) -> None:
    """Which stage waits in it may be chance, as in a single step; kernels are seen again and again."""
    facts = FactSet([Fact(name, RUN, value) for name, value in ({"recording.has_steps": False} | kernels).items()])
    assert is_partial(load_rules(strict=False).by_id["CLUS070"], Subject("stage", "1", (2, 3)), facts) is rests


@pytest.mark.parametrize(("steps", "rests"), [(2, True), (3, False)])
def test_a_rank_that_waits_longer_for_data_in_two_steps_may_have_had_two_bad_ones(steps: int, rests: bool) -> None:
    """Whether it is the same rank in every step shows in three at least."""
    facts = FactSet([Fact("step.count", RUN, steps)])
    assert is_partial(load_rules(strict=False).by_id["DATA040"], Subject("rank", "7", (7,)), facts) is rests


@pytest.mark.parametrize(
    ("told", "missing", "times", "rests"),
    [(True, 0, 6, False), (False, 0, 6, True), (True, 2, 6, True), (False, 0, 1, False)],
)
def test_what_recurs_in_a_group_is_surely_told_by_all_of_its_members_only(
    told: bool, missing: int, times: int, rests: bool
) -> None:
    """A reduction in every micro-batch may be one of activations, of a tensor group whose other member is absent; one a
    step is not."""
    values = {"run.world_is_told": told, "run.missing_ranks": missing, "allreduce.repeats": times}
    facts = FactSet([Fact(name, RUN, value) for name, value in values.items()])
    assert is_partial(load_rules(strict=False).by_id["COMM022"], RUN, facts) is rests


@pytest.mark.parametrize(("samples", "device", "rests"), [(2, None, True), (2, 10, False), (10, None, False)])
def test_a_handful_of_samples_of_one_queue_accuses_nobody(samples: int, device: int | None, rests: bool) -> None:
    """That the host's queue was never seen empty says little after two looks, unless the device's queue agrees."""
    values = {"queue.host_samples": samples, "queue.data_samples": device}
    facts = FactSet([Fact(name, RUN, value) for name, value in values.items() if value is not None])
    assert is_partial(load_rules(strict=False).by_id["DATA020"], RUN, facts) is rests


@pytest.mark.parametrize(("told", "rests"), [(False, True), (True, False)])
def test_how_long_a_pipeline_waits_at_least_rests_on_how_many_stages_it_has(told: bool, rests: bool) -> None:
    """Stages guessed from bubbles may be twice as many as there are."""
    facts = FactSet([Fact("parallelism.is_told", RUN, told)])
    assert is_partial(load_rules(strict=False).by_id["CLUS071"], Subject("stage", "3", (6, 7)), facts) is rests


@pytest.mark.parametrize(("witnesses", "rests"), [(2, False), (1, True), (0, True), (None, True)])
def test_a_stage_that_several_ranks_show_to_have_more_work_needs_no_second_step(
    witnesses: int | None, rests: bool
) -> None:
    """Two ranks of each stage compute their own batches: what all of them show in one step is no chance."""
    stage = Subject("stage", "1", (2, 3))
    facts: dict[tuple[Subject, str], Value] = {(RUN, "step.count"): 1, (RUN, "parallelism.pipeline"): 2}
    if witnesses is not None:
        facts[stage, "stage.apart_ranks"] = witnesses
    told = FactSet([Fact(name, subject, value) for (subject, name), value in facts.items()])
    assert is_partial(load_rules(strict=False).by_id["CLUS060"], stage, told) is rests
    assert is_partial(load_rules(strict=False).by_id["CLUS070"], stage, told)  # how long it waits, they do not show


@pytest.mark.parametrize(("witnesses", "rests"), [(2, False), (1, True)])
def test_absent_ranks_do_not_refute_what_several_of_each_stage_show(witnesses: int, rests: bool) -> None:
    """A slow card among the absent ranks makes the two at hand of every stage no more alike."""
    stage = Subject("stage", "3", (24, 28))
    told = FactSet([
        Fact("step.count", RUN, 2), Fact("parallelism.pipeline", RUN, 4), Fact("run.missing_ranks", RUN, 24),
        Fact("run.number_holes", RUN, 21), Fact("stage.apart_ranks", stage, witnesses),
    ])  # fmt: skip
    assert is_partial(load_rules(strict=False).by_id["CLUS060"], stage, told) is rests


def test_a_finding_does_not_rest_on_what_its_doubts_ask_for() -> None:
    """Two steps tell little of waits for data, and a doubt asks for them; of launches that are late in both they do."""
    rule, rank = load_rules(strict=False).by_id["CLUS030"], Subject("rank", "1", (1,))
    assert "data.wait_us" in rule.uses_facts() and "data.wait_us" not in rule.rests_on
    assert {"rank.lateness_share", "rank.saving_us", "rank.late_owner"} <= rule.rests_on
    assert not is_partial(rule, rank, FactSet([Fact("step.count", RUN, 2)]))
    assert is_partial(load_rules(strict=False).by_id["CLUS050"], rank, FactSet([Fact("step.count", RUN, 2)]))


@pytest.mark.parametrize(("ratio", "rests"), [(1.3, False), (1.05, True), (None, True)])
def test_one_step_has_many_launches_of_a_slow_card(ratio: float | None, rests: bool) -> None:
    """The same kernels take longer there, launch after launch. When a host launches late, one step tells once."""
    rank, rules = Subject("rank", "1", (1,)), load_rules(strict=False).by_id
    told = [] if ratio is None else [Fact("rank.kernel_speed_ratio", rank, ratio)]
    facts = FactSet([Fact("step.count", RUN, 1), *told])
    assert is_partial(rules["CLUS010"], rank, facts) is rests
    assert is_partial(rules["CLUS030"], rank, facts)


@pytest.mark.parametrize("part", ["run.missing_ranks", "run.number_holes"])
@pytest.mark.parametrize(("wait", "rests"), [(0.001, False), (0.2, True), (None, True)])
def test_a_link_whose_ranks_wait_for_nobody_sets_the_pace_whoever_is_absent(
    part: str, wait: float | None, rests: bool
) -> None:
    """Ranks 0, 1 and 3 of eight tell of a slow link as surely as rank 0 alone does, whose number leaves no hole."""
    facts = FactSet([
        Fact(name, RUN, value)
        for name, value in {part: 5, "communication.exposed_wait_share": wait}.items() if value is not None
    ])  # fmt: skip
    assert is_partial(load_rules(strict=False).by_id["COMM040"], Subject("link", "0-3", (0, 3)), facts) is rests


@pytest.mark.parametrize(("waits", "rests"), [(0.01, False), (0.05, True), (0.3, True)])
def test_a_stage_that_waits_as_its_schedule_needs_sets_the_pace(waits: float, rests: bool) -> None:
    """A pipeline goes at its slowest stage's pace: that one waits for no other, at hand or not, beyond the bubble."""
    rank = Subject("rank", "2", (2,))
    facts = FactSet([Fact("run.missing_ranks", RUN, 2), Fact("rank.unneeded_wait_share", rank, waits)])
    assert is_partial(load_rules(strict=False).by_id["CLUS010"], rank, facts) is rests


@pytest.mark.parametrize(("unknown", "rests"), [(0, False), (1, True)])
def test_a_host_for_which_ranks_with_cut_tables_wait_is_judged_in_full(unknown: int, rests: bool) -> None:
    """A cut table takes a rank out of the comparison, not out of the collectives in which it is seen to wait."""
    host = Subject("host", "node1", (4, 6, 7))
    facts = FactSet([Fact("run.left_out_ranks", RUN, (2, 5)), Fact("host.uncompared_peers", host, unknown)])
    assert is_partial(load_rules(strict=False).by_id["CLUS031"], host, facts) is rests
