"""What another cause gives while a data loader that is behind sets the pace, and once it keeps up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine.concluding.joint import tell_jointly
from advisor.engine.concluding.paced import (
    among_late_ranks,
    at_the_hosts_pace,
    at_the_loaders_pace,
    at_the_pipelines_pace,
)
from advisor.facts.base import FactSet
from advisor.model import RUN, Confidence, Direction, Fact, Finding, Role, Saving, Severity, Subject, Text

SAME = Text("x", "x")
STEP = 1000.0


def _finding(number: int, verdict: str, direction: Direction, us: float, lone: str = "") -> Finding:
    return Finding(
        f"F{number}", f"R{number}", verdict, direction, Role.ROOT_CAUSE, Severity.HIGH, Confidence.HIGH, RUN, SAME,
        SAME, saving=Saving(us, us / STEP, SAME, lone_step=lone, of_steps=6 if lone else 1),
    )  # fmt: skip


LOADER = _finding(1, "data-starved-rank", Direction.SCHEDULING, 90.0, "12")
CARD = _finding(2, "slow-compute-rank", Direction.COMPUTATION, 150.0)
FACTS = FactSet([Fact("step.time_us", RUN, STEP), Fact("loaders.held_share", RUN, 0.6)])


def test_a_loader_takes_back_what_a_slow_card_gives():
    """Alone the card gives what the loader leaves; once that keeps up, all of it, and the loader is no mere event."""
    joint = tell_jointly(at_the_loaders_pace([LOADER, CARD], FACTS), FACTS, None, STEP)
    loader, card = joint.findings
    assert card.saving.us == pytest.approx(60.0)
    assert card.saving.after_others_us == pytest.approx(150.0)
    assert not loader.saving.lone_step
    times = joint.whatif.step_time_us
    assert (times["F2"], times["F1"], times["F1,F2"]) == pytest.approx((940.0, 910.0, 760.0))


@pytest.mark.parametrize(
    ("verdict", "us"),
    [("dynamic-shape-recompilation", 60.0), ("host-dispatch-bound", 60.0), ("device-idle-gaps", 60.0),
     ("cpu-contention", 150.0), ("data-sending-bottleneck", 150.0)],
)  # fmt: skip
def test_a_loader_takes_back_what_the_loop_itself_gives(verdict, us):
    """What compiles or launches late runs beside the workers; processors that others use may be theirs."""
    _, host = at_the_loaders_pace([LOADER, _finding(2, verdict, Direction.SCHEDULING, 150.0)], FACTS)
    assert host.saving.us == pytest.approx(us)


def test_a_doubtful_loader_takes_back_what_is_as_doubtful():
    """One damaged file makes both uncertain: then too, the one holds the other."""
    loader, card = (replace(f, confidence=Confidence.LOW) for f in (LOADER, CARD))
    assert at_the_loaders_pace([loader, card], FACTS)[1].saving.us == pytest.approx(60.0)


def test_without_a_loader_that_is_certainly_behind_nothing_is_taken_back():
    """Nor are events of one step, which no later batch can eat."""
    doubtful = replace(LOADER, confidence=Confidence.LOW)
    assert at_the_loaders_pace([doubtful, CARD], FACTS) == [doubtful, CARD]
    once = replace(CARD, saving=replace(CARD.saving, lone_step="14"))
    assert at_the_loaders_pace([LOADER, once], FACTS) == [LOADER, once]


OPERATION = replace(
    _finding(3, "data-processing-bottleneck", Direction.SCHEDULING, 300.0),
    subject=Subject("pipeline_op", "Map(2)", (3,)),
)
LATE = Subject("rank", "3", (3,))


def _ranks(count: int, cause: str) -> FactSet:
    """So many ranks, of which rank 3 is late from this cause: without it the step gains 140 us."""
    return FactSet(
        [Fact("run.rank_count", RUN, count), Fact("rank.late_cause", LATE, cause), Fact("rank.saving_us", LATE, 140.0)]
    )


def test_a_data_operation_of_one_rank_gives_no_more_than_others_leave():
    """Rank 3 waits 300 us for its map, but another rank is late by half of that: the step gains what the replay says,
    and is replayed together with what makes that one late."""
    (told,) = among_late_ranks([OPERATION], _ranks(4, "data"))
    assert told.saving.us_per_step == 140.0 and told.saving.share_of_step == pytest.approx(0.14)
    assert told.saving.removes == "data" and told.saving.loses_us == 300.0
    assert "Other ranks are late as well" in told.message.en or told.message != OPERATION.message


@pytest.mark.parametrize("facts", [_ranks(1, "data"), _ranks(4, "compute"), FactSet([])])
def test_where_no_others_are_known_to_be_late_it_gives_all_of_it(facts):
    """One rank alone, a rank that is late from something else, and ranks that nobody compared."""
    assert among_late_ranks([OPERATION], facts) == [OPERATION]


HOST = _finding(3, "host-dispatch-bound", Direction.SCHEDULING, 300.0)
BOUND = FactSet([Fact("step.time_us", RUN, STEP), Fact("dispatch.bound_us", RUN, 970.0)])


def test_a_host_that_launches_all_the_time_takes_back_what_devices_do_sooner():
    """Until it launches sooner the step gains what it does not launch for; then the card gives all of it."""
    joint = tell_jointly(at_the_hosts_pace([HOST, CARD], BOUND), BOUND, None, STEP)
    host, card = joint.findings
    assert (host.saving.us, card.saving.us) == pytest.approx((300.0, 30.0))
    assert card.saving.after_others_us == pytest.approx(150.0)
    times = joint.whatif.step_time_us
    assert (times["F3"], times["F2"], times["F3,F2"]) == pytest.approx((700.0, 970.0, 550.0))


def test_without_a_host_that_is_certainly_late_nothing_is_taken_back():
    """Nor where launches may wait for the device, of the loop's own causes, or of less than what it leaves."""
    for found, facts in (
        ([replace(HOST, confidence=Confidence.LOW), CARD], BOUND),
        ([CARD], BOUND),
        ([HOST, CARD], FactSet([Fact("step.time_us", RUN, STEP)])),
        ([HOST, _finding(2, "device-idle-gaps", Direction.SCHEDULING, 90.0)], BOUND),
        ([HOST, _finding(2, "operator-hotspot", Direction.COMPUTATION, 20.0)], BOUND),
    ):
        assert at_the_hosts_pace(found, facts) == found


def test_whoever_takes_launches_away_is_not_held_back_by_the_host():
    """Kernels that are fused need no launches either."""
    assert at_the_hosts_pace([HOST, CARD], BOUND, {CARD.rule}) == [HOST, CARD]


MAPS = _finding(3, "data-processing-bottleneck", Direction.SCHEDULING, 300.0)
BEHIND = FactSet([Fact("data.step_us", RUN, STEP), Fact("data.pipeline_limit_us", RUN, 980.0)])


def test_data_operations_that_are_behind_take_back_what_devices_do_sooner():
    """No batch comes before the pipeline has made it: alone the card gives what the step is longer than that."""
    joint = tell_jointly(at_the_pipelines_pace([MAPS, CARD], BEHIND), BEHIND, None, STEP)
    maps, card = joint.findings
    assert (maps.saving.us, card.saving.us) == pytest.approx((300.0, 20.0))
    assert card.saving.after_others_us == pytest.approx(150.0) and card.saving.held_by == "loading"
    assert joint.whatif.step_time_us["F2"] == pytest.approx(980.0)


@pytest.mark.parametrize("limit_us", [980.0, 5000.0])
def test_a_pipeline_that_is_asked_less_often_than_it_could_leaves_gains_alone(limit_us):
    """Nobody waits for it, or only perhaps: however long it takes for a batch, queues hold enough of them."""
    facts = FactSet([Fact("data.step_us", RUN, STEP), Fact("data.pipeline_limit_us", RUN, limit_us)])
    for found in ([CARD], [replace(MAPS, confidence=Confidence.LOW), CARD]):
        assert at_the_pipelines_pace(found, facts) == found


def test_what_the_pipeline_holds_loaders_do_not_hold_again():
    """Of what the card gives once batches come in time nothing is lost by telling it twice."""
    facts = FactSet([Fact("loaders.held_share", RUN, 0.6), *BEHIND])
    *_, card = at_the_loaders_pace(at_the_pipelines_pace([MAPS, LOADER, CARD], facts), facts)
    assert (card.saving.us, card.saving.keeping_up_us) == pytest.approx((20.0, 150.0))


def test_what_a_loader_holds_the_host_does_not_hold_again():
    """One of them paces: mending the other leaves it."""
    facts = FactSet([Fact("loaders.held_share", RUN, 0.6), *BOUND])
    found = at_the_hosts_pace(at_the_loaders_pace([LOADER, HOST, CARD], facts), facts)
    assert [f.saving.held_by for f in found] == ["", "loading", "loading"]


def test_of_work_that_nothing_waits_for_devices_save_nothing():
    """A type whose kernels all run before a late launch gives nothing by itself, and all of it once the host is in
    time; another type gives what of it is waited for, and no finding more than all that is."""
    types = [
        replace(_finding(n, "operator-hotspot", Direction.COMPUTATION, 100.0), subject=Subject("operator_type", kind))
        for n, kind in ((4, "Cast"), (5, "TransData"), (6, "MatMulV3"))
    ]
    waited = [
        Fact("operator_type.awaited_us", Subject("operator_type", kind), us)
        for kind, us in (("Cast", 0.0), ("TransData", 25.0), ("MatMulV3", 400.0))
    ]
    facts = FactSet([Fact("step.time_us", RUN, STEP), Fact("dispatch.awaited_us", RUN, 60.0), *waited])
    joint = tell_jointly(at_the_hosts_pace([HOST, *types], facts), facts, None, STEP)
    assert [f.saving.us for f in joint.findings] == pytest.approx([300.0, 0.0, 25.0, 60.0])
    assert [f.saving.after_others_us for f in joint.findings] == pytest.approx([300.0, 100.0, 100.0, 100.0])
    assert all(f.saving.held_by == "launching" for f in joint.findings[1:])


CALLBACK = _finding(4, "device-idle-gaps", Direction.SCHEDULING, 200.0)


def test_a_pipeline_makes_no_batch_sooner_for_being_asked_earlier():
    """What the loop does of its own gives what the step is longer than the pipeline's interval, whoever is found to be
    behind; once the pipeline is faster, all of it."""
    for loading in ([], [MAPS], [replace(MAPS, confidence=Confidence.LOW)]):
        joint = tell_jointly(at_the_pipelines_pace([*loading, CALLBACK], BEHIND), BEHIND, None, STEP)
        callback = joint.findings[-1]
        assert (callback.saving.us, callback.saving.loses_us) == pytest.approx((20.0, 200.0))
        assert "until it is faster" in callback.message.en
        assert joint.whatif.step_time_us["F4"] == pytest.approx(980.0)
        if loading:
            assert callback.saving.after_others_us == pytest.approx(200.0)
            assert joint.whatif.step_time_us["F3,F4"] == pytest.approx(500.0)


def test_beside_a_pipeline_with_time_to_spare_the_loop_gives_all_it_costs():
    facts = FactSet([Fact("data.step_us", RUN, STEP), Fact("data.pipeline_limit_us", RUN, 700.0)])
    assert at_the_pipelines_pace([CALLBACK], facts) == [CALLBACK]
