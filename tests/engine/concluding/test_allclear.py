"""When nothing was found: an all-clear needs evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor import advise
from advisor.engine.concluding.allclear import losses, objection, terms
from advisor.engine.concluding.summary import summarise
from advisor.facts.base import Fact, FactSet
from advisor.model import (
    COLLECTION,
    RUN,
    Check,
    Confidence,
    Direction,
    Finding,
    MissingEvidence,
    Outcome,
    Role,
    Saving,
    Severity,
    Subject,
    Text,
)

WELL = {
    "run.world_size": 8, "run.rank_count": 8, "run.missing_ranks": 0, "run.world_is_told": True, "step.count": 5,
    "step.time_us": 1e5, "step.idle_share": 0.02, "step.exposed_communication_share": 0.08,
    "collective.exposed_us": 1e3, "operators.compute_us": 8e4, "timeline.idle_share": 0.02,
}  # fmt: skip
MATMUL = Subject("operator_type", "MatMulV2")
OF_TYPE = {"operator_type.float32_share": 0.0, "operator_type.shapes": "4096,4096"}


def facts(**changed: float | str | None) -> FactSet:
    given = {name.replace("__", "."): value for name, value in changed.items()}
    values = {**WELL, **{name: value for name, value in given.items() if name not in OF_TYPE}}
    of_type = {name: given.get(name, value) for name, value in OF_TYPE.items()}
    return FactSet(
        [
            *(Fact(name, RUN, value, 5) for name, value in values.items() if value is not None),
            *(Fact(name, MATMUL, value, 5) for name, value in of_type.items() if value is not None),
        ]
    )


def direction(known: FactSet) -> str:
    return summarise([], [Check("X001", Outcome.PASS)], known).direction


@pytest.mark.parametrize(("repeats", "kind", "said"), [
    (None, "unmarked", "undetermined"), (True, "unmarked", "healthy"),
])  # fmt: skip
def test_what_ran_once_is_not_called_healthy(repeats, kind, said):
    """Three kernels behind a compilation say nothing of how the program usually runs; twelve rounds of them do."""
    known = facts(recording__has_steps=False, recording__kind=kind, recording__kernels=3, recording__repeats=repeats)
    assert direction(known) == said


def test_a_measured_run_without_findings_is_healthy():
    """Idle time and exposed communication were seen, and are small."""
    assert direction(facts()) == "healthy"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (("kernels",), "undetermined"),
        (("host_api", "kernels"), "undetermined"),
        (("kernels", "steps"), "healthy"),
    ],
)
def test_a_kernel_table_alone_may_be_a_part(tables, said):
    """Nothing else counts its kernels or times them: rows that were cut off would not be missed."""
    known = facts()
    known.add(Fact("collection.tables", COLLECTION, tables))
    assert direction(known) == said


@pytest.mark.parametrize(
    ("unseen", "tells"),
    [
        ("step.idle_share", "step_trace_time.csv"),
        ("step.exposed_communication_share", "step_trace_time.csv"),
        ("collective.exposed_us", "communication.json"),
        ("operators.compute_us", "kernel_details.csv"),
        ("operator_type.float32_share", "Input Data Types"),
        ("operator_type.shapes", "Input Shapes"),
    ],
)
def test_what_was_not_measured_is_not_cleared(unseen, tells):
    """One file of many shows neither waiting nor idling nor operators: silence is no all-clear."""
    found = summarise([], [Check("X001", Outcome.PASS)], facts(**{unseen: None}))
    assert found.direction == "undetermined"
    assert tells in found.headline.en and tells in found.headline.zh


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"run__missing_ranks": 6, "run__rank_count": 2}, "2 of 8 ranks"),
        ({"run__world_is_told": False}, "number of ranks"),
        ({"step__count": 2, "step__shortest_us": 5e4, "step__longest_us": 1.5e5}, "from 50\u00a0ms to 150\u00a0ms"),
        ({"step__count": 1}, "few steady steps"),
    ],
)
def test_absent_ranks_and_steps_are_not_cleared(changed, told):
    """Whoever left no files may be the one all wait for; one step alone may be the good one."""
    found = summarise([], [Check("X001", Outcome.PASS)], facts(**changed))
    assert found.direction == "undetermined" and told in found.headline.en


@pytest.mark.parametrize(("tables", "asks"), [(("steps",), True), (("steps", "links"), False)])
def test_nobody_is_asked_for_a_matrix_that_is_there(tables, asks):
    """Its groups do not tell how many ranks took part: only their list does."""
    known = facts(run__world_is_told=False)
    known.add(Fact("collection.tables", COLLECTION, tables))
    headline = summarise([], [Check("X001", Outcome.PASS)], known).headline.en
    assert "profiler_metadata.json" in headline and ("communication_matrix.json" in headline) is asks


def test_a_device_that_told_its_own_times_is_cleared_by_its_kernels():
    """Old step traces time forward, backward and what lies between steps on the device: no lock of the host hides."""
    old = facts(
        step__idle_share=None, step__exposed_communication_share=None, timeline__idle_share=None, run__world_size=1,
        step__interval_share=0.03, step__fp_bp_share=0.9,
    )  # fmt: skip
    assert "kernel_details.csv" in objection(old, (), (0,)).tells.en
    host_alone = facts(
        step__idle_share=None, step__exposed_communication_share=None, timeline__idle_share=None, run__world_size=1,
        step__interval_share=0.03, run__framework="mindspore",
    )  # fmt: skip
    assert "dataset.csv" in objection(host_alone, (), ()).tells.en


def test_a_loop_that_never_waits_clears_no_device():
    """A fine data pipeline is one direction of three: what the device does between two batches is unknown, whatever
    else of the host was measured; with the device's own step times the kernels are asked for instead."""
    loop = {
        "step.time_us": 1e5, "step.count": 5, "data.own_us": 9.9e4, "data.wait_share": 0.01, "data.gil_wait_us": 0.0,
        "data.loop_cpu_share": 0.2, "data.busiest_share": 0.3,
    }  # fmt: skip
    host = Fact("host.cores", Subject("host", "a", (0,)), 8, 1)
    known = FactSet([*(Fact(name, RUN, value, 5) for name, value in loop.items()), host])
    doubt = objection(known, (), ())
    assert doubt is not None and "only the host was recorded" in doubt.why.en and "主机侧" in doubt.why.zh
    assert doubt.tells is not None and "step_trace_time.csv" in doubt.tells.en
    measured = FactSet([*known, Fact("step.idle_share", RUN, 0.01, 5)])
    assert "only the host" not in objection(measured, (), ()).why.en


@pytest.mark.parametrize(("share", "told"), [(0.42, True), (0.1, True), (0.09, False)])
def test_a_long_tail_of_unknown_contents_is_told(share, told):
    """Without the columns of reductions an older step trace times the tail, not what runs in it."""
    old = facts(
        step__idle_share=None, step__exposed_communication_share=None, run__world_size=1, step__interval_share=0.001,
        step__fp_bp_share=1 - share, step__tail_share=share,
    )  # fmt: skip
    doubt = objection(old, (), (0,))
    assert (doubt is not None and "behind backward" in doubt.why.en) == told
    assert not told or ("反向之后" in doubt.why.zh and "kernel_details.csv" in doubt.tells.en)


def test_every_rank_must_have_been_measured():
    """The run's share rests on the ranks whose tables are there; of the others nothing is known."""
    known = facts()
    for rank in (0, 1):
        for name in (
            "step.idle_share",
            "step.exposed_communication_share",
            "operators.compute_us",
            "timeline.idle_share",
        ):
            known.add(Fact(name, Subject("rank", str(rank), (rank,)), 0.01, 5))
    assert objection(known, (), (0, 1)) is None
    assert "step_trace_time.csv" in objection(known, (), (0, 1, 2)).tells.en


def test_one_rank_alone_has_no_communication_to_clear():
    """A single card is healthy without any figure on communication."""
    assert direction(facts(run__world_size=1, step__exposed_communication_share=None)) == "healthy"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"step__exposed_communication_share": 0.15, "collective__exposed_us": None}, "communication"),
        ({"step__exposed_communication_share": 0.15, "step__idle_share": 0.3}, "scheduling"),
        (
            {
                "step__exposed_communication_share": 0.3,
                "communication__exposed_without_bubble_share": 0.02,
                "pipeline__bubble_minimum_share": 0.27,
            },
            "healthy",
        ),
        (
            {"step__exposed_communication_share": 0.3, "communication__exposed_without_bubble_share": 0.02},
            "undetermined",
        ),
        ({"step__exposed_communication_share": 0.3, "parallelism__pipeline": 4}, "undetermined"),
        (
            {"step__exposed_communication_share": None, "operators__compute_us": None, "step__idle_share": 0.1},
            "scheduling",
        ),
    ],
)
def test_the_direction_follows_the_lost_time(changed, named):
    """Where the time goes is measured and certain even where the cause is not, save what may be a pipeline's bubble."""
    assert direction(facts(**changed)) == named
    if named == "communication":
        found = summarise([], [Check("X001", Outcome.PASS)], facts(**changed))
        assert (
            "15\u00a0% of the step" in found.headline.en and "Missing evidence: communication.json" in found.headline.en
        )


def test_a_small_cause_does_not_hide_a_large_loss_elsewhere():
    """Much exposed communication that nobody explains outweighs a quarter of idle time whose cause is known."""
    idle = replace(finding(0.25), verdict="host-dispatch-bound", direction=Direction.SCHEDULING, severity=Severity.HIGH)
    exposed = replace(finding(0.6), id="F2", role=Role.CONTRIBUTING)
    known = facts(step__exposed_communication_share=0.6, step__idle_share=0.3)
    assert summarise([idle, exposed], [], known).direction == "communication"
    explained = replace(exposed, role=Role.SYMPTOM, saving=None)
    assert summarise([idle, explained], [], known).direction == "scheduling"


@pytest.mark.parametrize("sure", [Confidence.HIGH, Confidence.MEDIUM])
@pytest.mark.parametrize("gain", [0.19, 0.05])
def test_a_likely_cause_of_weight_leads_before_a_loss_that_weighs_little(gain, sure):
    """It is not said that no cause is certain above one that is likely and gives a fifth of the step, because
    communication of which little is known may be lost as well; nor above a certain one of any weight."""
    late = replace(finding(gain), verdict="slow-compute-rank", direction=Direction.COMPUTATION, severity=Severity.HIGH,
                   confidence=sure)  # fmt: skip
    exposed = replace(finding(0.3), id="F2", role=Role.CONTRIBUTING)
    named = "communication" if gain < 0.1 and sure is not Confidence.HIGH else "computation"
    assert summarise([late, exposed], [], facts(step__exposed_communication_share=0.3)).direction == named


def test_undetermined_names_the_evidence_that_would_tell():
    """Nothing but an operator table: the report says which file would tell more."""
    missing = [MissingEvidence("step_trace_time.csv", "profiler_level=Level1", ("X1", "X2"))]
    found = summarise([], [Check("X001", Outcome.PASS)], FactSet(), missing=missing)
    assert found.direction == "undetermined"
    assert "kernel_details.csv" in found.headline.en


def finding(share):
    stake = Saving(share * WELL["step.time_us"], share, Text("", ""))
    return Finding(
        id="F1", rule="X1", verdict="exposed-communication", direction=Direction.COMMUNICATION, role=Role.ROOT_CAUSE,
        severity=Severity.LOW, confidence=Confidence.LOW, subject=RUN, title=Text("t", "t"), message=Text("m", "m"),
        saving=stake,
    )  # fmt: skip


@pytest.mark.parametrize(("share", "verdict"), [(0.14, "healthy"), (0.16, "undetermined")])
def test_a_finding_held_low_for_want_of_evidence_is_no_all_clear(share, verdict):
    """Communication that may be a pipeline's bubble, or may not."""
    found = summarise([finding(share)], [Check("X1", Outcome.FAIL)], facts())
    assert found.direction == verdict


@pytest.mark.parametrize(
    ("link", "en", "zh"),
    [("3-*", "all links of rank 3", "rank 3的所有链路"), ("*-3", "all links into rank 3", "rank 3接收方向的所有链路"),
     ("3-4", "link 3-4", "链路 3-4")],
)  # fmt: skip
def test_the_headline_names_the_links_of_a_card(link, en, zh):
    """Nobody needs to know what a star in a link's name means."""
    finding = Finding(
        "F1", "COMM040", "slow-link", Direction.COMMUNICATION, Role.ROOT_CAUSE, Severity.HIGH, Confidence.HIGH,
        Subject("link", link, (3, 4) if link == "3-4" else (3,)), Text("A link is slow", "慢链路"), Text("", ""),
    )  # fmt: skip
    headline = summarise([finding], [], facts()).headline
    assert en in headline.en and zh in headline.zh


KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types\n"
HEADING = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        (None, "healthy"),
        ("", "undetermined"),
        ("no table at all", "undetermined"),
        ("Operation,Stage\n", "undetermined"),
    ],
)
def test_a_file_that_is_there_and_gives_nothing_is_no_all_clear(tmp_path, content, verdict):
    """What the data pipeline's table would have told is unknown, unlike where nobody recorded one."""
    output = tmp_path / "w_0_20260101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = "".join(f"{step},{95_000 + step},0,0,0,{5_000 - step}\n" for step in range(5, 9))
    (output / "step_trace_time.csv").write_text(HEADING + rows)
    kernels = "".join(
        f"{step},MatMul-op{n},MatMulV2,AI_CORE,{step * 100_000 + n * 4_800}.0,4750.0,0,64;64,FLOAT16\n"
        for step in range(5, 9)
        for n in range(20)
    )
    (output / "kernel_details.csv").write_text(KERNELS + kernels)
    if content is not None:
        (output / "dataset.csv").write_text(content)
    report = advise(tmp_path)
    assert report.summary.direction == verdict
    assert content is None or "dataset.csv" in report.summary.headline.en


@given(st.integers(2, 30), st.floats(1.0, 4.0))
def test_a_mean_of_few_unlike_steps_clears_none_of_them(count: int, ratio: float) -> None:
    """Two steps of 50 and 150 ms are no healthy step of 100 ms; among many, the rules judge the slow ones."""
    limits = terms()["uneven"]
    assume(abs(ratio - limits["value"]) > 1e-6)
    known = facts(step__count=count, step__shortest_us=5e4, step__longest_us=5e4 * ratio)
    unlike = count < limits["few"]["value"] and ratio > limits["value"]
    assert direction(known) == ("undetermined" if unlike else "healthy")


@pytest.mark.parametrize(
    ("recorded", "asked", "told"), [(4, 8, "undetermined"), (8, 8, "healthy"), (40, 80, "healthy")]
)
def test_a_few_of_the_steps_that_were_asked_for_clear_nothing(recorded: int, asked: int, told: str) -> None:
    """The slow steps may be among those that are not at hand; of many steps the rest tells little more."""
    known = facts(step__count=recorded)
    known.add(Fact("collection.steps_recorded", COLLECTION, recorded, 5))
    known.add(Fact("collection.steps_expected", COLLECTION, asked, 5))
    assert direction(known) == told


@pytest.mark.parametrize(("share", "lacking", "told"), [
    (0.05, "communication_matrix.json", "undetermined"), (0.05, "communication.json", "undetermined"),
    (0.02, "communication_matrix.json", "healthy"), (0.02, "communication.json", "healthy"), (0.05, "", "healthy"),
])  # fmt: skip
def test_exposed_transfers_are_cleared_by_links_side_by_side_and_sizes(share: float, lacking: str, told: str) -> None:
    """A slow card slows every collective alike, and many small ones start up for most of their time: without the links
    nobody sees that it is one card, without their sizes nobody sees the other."""
    known = facts(communication__exposed_transfer_share=share)
    if lacking != "communication_matrix.json":
        known.add(Fact("link.bandwidth_bytes_per_s", Subject("link", "0-1", (0, 1)), 18e9, 5))
    if lacking != "communication.json":
        known.add(Fact("collective.size_bytes", Subject("collective", "hcom_allReduce_"), 4e6, 5))
    found = summarise([], [Check("X001", Outcome.PASS)], known)
    assert found.direction == told
    assert (told == "healthy") == (not lacking or lacking not in found.headline.en)


@given(st.integers(2, 16), st.integers(1, 32), st.floats(0.0, 0.99))
def test_what_no_bubble_can_be_is_lost_communication(stages: int, micro: int, exposed: float) -> None:
    """With m micro-batches p stages wait (p - 1)/(m + p - 1) of the step, with one where nothing tells more; what is
    exposed beyond that is no bubble, and up to that nobody is accused."""
    known = {"pipeline__micro_batches": micro} if micro > 1 else {}
    measured = facts(
        parallelism__pipeline=stages, step__exposed_communication_share=exposed, step__idle_share=0.0, **known
    )
    told = {loss.direction: loss.share for loss in losses(measured)}
    beyond = exposed - (stages - 1) / (micro + stages - 1)
    assert told.get("communication", 0.0) == pytest.approx(max(beyond, 0.0))


def test_a_lone_stage_loses_what_its_own_schedule_does_not_need() -> None:
    """The headline leaves out the same bubble as the picture of the step: 48 % and 72 % of one wait contradict."""
    measured = facts(
        parallelism__pipeline=4, pipeline__micro_batches=8, step__exposed_communication_share=0.75,
        pipeline__bubble_minimum_share=0.09, step__idle_share=0.0,
    )  # fmt: skip
    assert [loss.share for loss in losses(measured)] == [pytest.approx(0.66)]


@pytest.mark.parametrize(("is_told", "lost"), [(True, 0.17), (False, 0.01)])
def test_stages_lose_what_they_wait_for_each_other_beyond_the_schedule(is_told: bool, lost: float) -> None:
    """Where it goes is certain, however few of the ranks are at hand to show why; only where nobody tells the stages
    all of it may be the schedule's."""
    measured = facts(
        parallelism__pipeline=4, parallelism__is_told=is_told, step__exposed_communication_share=0.36,
        communication__exposed_without_bubble_share=0.01, pipeline__bubble_share=0.35,
        pipeline__bubble_minimum_share=0.19, step__idle_share=0.0,
    )  # fmt: skip
    assert [loss.share for loss in losses(measured)] == [pytest.approx(lost)]


def test_handovers_of_a_measured_pipeline_leave_it_healthy() -> None:
    """A few per cent beyond the schedule's own bubble are handed over between stages: no communication that nobody
    explains."""
    measured = facts(
        parallelism__pipeline=4, parallelism__is_told=True, step__exposed_communication_share=0.24,
        communication__exposed_without_bubble_share=0.01, pipeline__bubble_share=0.23,
        pipeline__bubble_minimum_share=0.2, collective__exposed_us=None,
    )  # fmt: skip
    assert direction(measured) == "healthy"


def test_ranks_of_a_pipeline_of_unknown_length_wait_for_nobody_certain():
    """Two of eight ranks, and no file that tells the stages: all eight may be stages, whose bubble is the larger part
    of what is exposed. With the partition told, two stages explain less of it."""
    few = {"run__rank_count": 2, "run__missing_ranks": 6, "parallelism__pipeline": 2, "pipeline__micro_batches": 12,
           "pipeline__bubble_share": 0.15, "step__exposed_communication_share": 0.28,
           "communication__exposed_without_bubble_share": 0.13}  # fmt: skip
    for told, directions in ((True, {"communication"}), (False, set())):
        known = facts(**few)
        known.add(Fact("parallelism.is_told", RUN, told))
        assert {loss.direction for loss in losses(known) if loss.share >= 0.1} == directions
