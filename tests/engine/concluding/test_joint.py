"""What findings give together: never more than there is to lose, and in every order the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.concluding.accounting import account
from advisor.engine.concluding.joint import between, repaired, tell_jointly, tell_of_whole
from advisor.engine.concluding.summary import summarise
from advisor.facts.base import FactSet
from advisor.model import (
    RUN,
    Confidence,
    Direction,
    Fact,
    Finding,
    ProfileInfo,
    Report,
    Role,
    Saving,
    Severity,
    Subject,
    Summary,
    Text,
)
from advisor.render.wording import brief_gain

SAME = Text("x", "x")
STEP = 1000.0
DIRECTIONS = (Direction.COMPUTATION, Direction.COMMUNICATION, Direction.SCHEDULING)


def facts(computing: float, exposed: float, idle: float) -> FactSet:
    shares = {"computing": computing, "exposed_communication": exposed, "idle": idle}
    found = [Fact("step.time_us", RUN, STEP)]
    for name, share in shares.items():
        found += [Fact(f"step.{name}_share", RUN, share), Fact(f"step.{name}_us", RUN, share * STEP)]
    return FactSet(found)


def finding(number: int, us: float, direction: Direction, removes: str = "", role: Role = Role.ROOT_CAUSE) -> Finding:
    return Finding(
        f"F{number}", f"R{number}", "verdict", direction, role, Severity.HIGH, Confidence.HIGH, RUN, SAME, SAME,
        saving=Saving(us, us / STEP, SAME, removes=removes),
    )  # fmt: skip


promises = st.lists(
    st.tuples(st.floats(0.0, STEP), st.sampled_from(DIRECTIONS), st.sampled_from(("", "compute", "links"))), max_size=9
)
splits = st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(
    lambda parts: tuple(part / sum(parts) for part in parts)
)


@given(st.floats(1.0, STEP), st.floats(1.0, 3.0), st.floats(0.0, 1.0))
def test_no_range_goes_beyond_what_bounds_the_saving(us: float, times: float, jitter: float) -> None:
    """However far such estimates are usually off: a pass hides no more than it lasts."""
    told = facts(0.5, 0.3, 0.2)
    told.add(Fact("step.jitter", RUN, jitter))
    low, high = between(Saving(us, us / STEP, SAME, most_us=times * us), told, None, STEP)
    assert 0.0 <= low <= us <= high <= times * us + 1e-9


@given(promises, splits)
def test_no_sum_of_savings_is_above_what_the_step_can_lose(told, split):
    """Whatever rules promise, what the findings give one after another never exceeds the step, and none takes back."""
    found = [finding(i, us, direction, removes) for i, (us, direction, removes) in enumerate(told, 1)]
    joint = tell_jointly(found, facts(*split), None, STEP)
    after = [f.saving.after_others_us for f in joint.findings if f.saving and f.saving.after_others_us is not None]
    assert all(us >= 0 for us in after)
    assert sum(after) <= STEP * (1 + 1e-9)
    if joint.whatif is not None:
        assert min(joint.whatif.step_time_us.values()) >= -1e-6
        assert len(joint.whatif.step_time_us) == 2 ** len(joint.whatif.causes)


@given(promises, splits)
def test_the_four_parts_of_the_account_sum_to_the_step(told, split):
    """Useful, avoidable, unavoidable and unexplained are the whole step, none of them below nothing; and what is
    avoidable there is what the finding promises."""
    measured = facts(*split)
    found = [finding(i, us, direction, removes) for i, (us, direction, removes) in enumerate(told, 1)]
    promised = tell_jointly(found, measured, None, STEP).findings
    whole = account(promised, measured, STEP)
    assert whole is not None
    given_back = {f.id: f.saving.after_others_us for f in promised if f.saving and f.saving.after_others_us}
    assert whole.avoidable_us == pytest.approx(given_back)
    parts = [whole.useful_us, *whole.avoidable_us.values(), *whole.unavoidable_us.values(), whole.unexplained_us]
    assert all(us >= -1e-6 for us in parts)
    assert abs(sum(parts) - STEP) <= 1e-6 * STEP


@given(st.floats(0, STEP), st.floats(0, STEP), splits)
def test_what_a_step_computes_is_not_saved_by_ending_waits(one, other, split):
    """However much a late host and late launches cost each alone, together they end no more than the step waits; a
    single one may, as it knows of more than the typical rank's step: a replay, or steps in which kernels are slow."""
    found = [finding(1, one, Direction.SCHEDULING, "host"), finding(2, other, Direction.SCHEDULING)]
    joint = tell_jointly(found, facts(*split), None, STEP)
    assert (
        joint.whatif is None
        or min(joint.whatif.step_time_us.values()) >= min(split[0] * STEP, STEP - max(one, other)) - 1e-6
    )


@given(promises, splits)
def test_one_repair_has_one_figure(told, split):
    """`advisor whatif` without one finding takes off the step what the finding itself promises."""
    found = [finding(i, us, direction, removes) for i, (us, direction, removes) in enumerate(told, 1)]
    measured = facts(*split)
    report = Report(ProfileInfo("p"), Summary("scheduling", SAME, STEP), tuple(found))
    for each in found:
        answer = repaired(report, [each.id], measured, None)
        assert answer is not None and each.saving is not None
        assert answer.before_us - answer.after_us == pytest.approx(each.saving.us)


def test_remedies_of_one_wait_are_saved_once():
    """Two ways to end the same idle time end it once."""
    found = [finding(1, 150.0, Direction.SCHEDULING), finding(2, 120.0, Direction.SCHEDULING)]
    joint = tell_jointly(found, facts(0.7, 0.1, 0.2), None, STEP)
    assert [f.saving.after_others_us for f in joint.findings if f.saving] == [150.0, 50.0]
    assert joint.whatif is not None and joint.whatif.step_time_us["F1,F2"] == 800.0


def test_idle_time_that_less_computing_takes_along_is_saved_once():
    """A fused update has no pauses between its kernels: a faster host ends the same pauses, and no computing."""
    fused = replace(finding(1, 130, Direction.COMPUTATION), saving=Saving(130, 0.13, SAME, idle_us=110))
    told = [fused, finding(2, 120, Direction.SCHEDULING)]
    split = facts(0.87, 0.0, 0.13)
    joint = tell_jointly(told, split, None, STEP)
    assert joint.whatif is not None and joint.whatif.step_time_us["F1,F2"] == pytest.approx(STEP - 150)
    spent = account(joint.findings, split, STEP)
    assert spent is not None and spent.useful_us == pytest.approx(850)


def test_what_a_slow_rank_computes_longer_is_not_in_the_way_of_another_remedy():
    """Of four ranks one computes 240 longer: once it does not, the step can lose all that the others do not compute,
    not only what lies above the mean of all four."""
    computed = [
        Fact("step.computing_us", Subject("rank", str(rank), (rank,)), 940.0 - 240 * (rank < 3)) for rank in range(4)
    ]
    told = [finding(1, 230, Direction.COMPUTATION, "compute"), finding(2, 60, Direction.COMMUNICATION)]
    joint = tell_jointly(told, FactSet([*facts(0.76, 0.24, 0.0), *computed]), None, STEP)
    assert joint.whatif is not None and joint.whatif.step_time_us["F1,F2"] == pytest.approx(STEP - 290)


def test_transfers_hide_behind_no_more_computation_than_there_is():
    """Two remedies that overlap 620 us of transfer with 380 us of computation leave the step its transfer."""
    moving = Fact("communication.exposed_transfer_share", RUN, 0.62)
    measured = FactSet([*facts(0.38, 0.62, 0.0), moving])
    gathers, reductions = (finding(i, us, Direction.COMMUNICATION) for i, us in ((1, 380.0), (2, 190.0)))
    whatif = tell_jointly([gathers, reductions], measured, None, STEP).whatif
    assert whatif is not None
    assert whatif.step_time_us["F1,F2"] == pytest.approx(620)
    assert whatif.step_time_us["F2"] == pytest.approx(810)


def test_a_promise_has_a_range_and_an_upper_bound_reaches_down_to_nothing():
    """Nobody can bank on a number without its error."""
    told = finding(1, 100.0, Direction.COMPUTATION)
    bound = replace(told, id="F2", saving=replace(told.saving, kind="upper_bound"))
    first, second = tell_jointly([told, bound], facts(0.7, 0.2, 0.1), None, STEP).findings
    assert first.saving and first.saving.range_us and first.saving.range_us[0] < 100.0 < first.saving.range_us[1]
    assert second.saving and second.saving.range_us == (0.0, 100.0)


@given(st.floats(0.1, STEP), st.floats(0.0, 0.9), st.integers(1, 100), st.sampled_from(("", "compute", "links")))
def test_the_range_holds_the_promise_and_nothing_impossible(us, jitter, count, removes):
    """However much the steps vary: not below nothing, not above the step, and the promise lies within."""
    measured = FactSet([*facts(0.5, 0.3, 0.2), Fact("step.jitter", RUN, jitter), Fact("step.count", RUN, count)])
    low, high = between(Saving(us, us / STEP, SAME, removes=removes), measured, None, STEP)
    assert 0 <= low <= us <= high <= STEP


def test_doing_without_findings_tells_the_step_and_the_next_limit():
    """`advisor whatif` answers with the step then, and what gives most after that."""
    measured = facts(0.6, 0.2, 0.2)
    found = [finding(1, 150.0, Direction.SCHEDULING), finding(2, 100.0, Direction.COMPUTATION)]
    joint = tell_jointly(found, measured, None, STEP)
    report = Report(ProfileInfo("p"), Summary("scheduling", SAME, STEP), tuple(joint.findings), whatif=joint.whatif)
    answer = repaired(report, ["f1"], measured, None)
    assert answer is not None
    assert (answer.after_us, answer.next and answer.next.id, answer.next_us) == (850.0, "F2", 100.0)


def test_the_account_names_who_is_waited_for_where_no_finding_gives_it_back():
    """Time at stake is no saving: it stands under its own name, not under "unexplained" alone."""
    measured = facts(0.1, 0.7, 0.2)
    for name, value in (("exposed_transfer_share", 0.05), ("absent_wait_us", 600.0), ("exposed_wait_share", 0.6)):
        measured.add(Fact(f"communication.{name}", RUN, value))
    whole = account([finding(1, 150.0, Direction.SCHEDULING)], measured, STEP)
    assert whole is not None
    assert whole.unexplained_parts_us == pytest.approx({"absent_wait": 600.0, "communication": 50.0, "idle": 200.0})
    told = tell_jointly([finding(1, 150.0, Direction.SCHEDULING)], measured, None, STEP)
    after = account(told.findings, measured, STEP)
    assert after is not None and after.avoidable_us == pytest.approx({"F1": 150.0})
    assert after.unexplained_parts_us["idle"] == pytest.approx(50.0)
    assert sum(after.unexplained_parts_us.values()) == pytest.approx(after.unexplained_us)


@pytest.mark.parametrize(("after", "told"), [(95.0, True), (6.5, False), (0.0, False)])
def test_the_headline_tells_what_two_causes_that_hide_each_other_give_together(after, told):
    """A late rank that hides another one as late gives little alone; repairing both gives what the reader wants."""
    first, second = (finding(n, us, Direction.SCHEDULING, "data") for n, us in ((1, 25.0), (2, 6.0)))
    assert first.saving is not None and second.saving is not None
    first = replace(first, saving=replace(first.saving, range_us=(23.0, 27.0), after_others_us=25.0))
    second = replace(second, saving=replace(second.saving, range_us=(5.5, 6.5), after_others_us=after))
    said = summarise([first, second], [], facts(0.7, 0.2, 0.1)).headline.en
    assert ("Together with F2" in said and "120\xa0µs" in said) is told


@pytest.mark.parametrize(("sure", "told"), [(Confidence.HIGH, True), (Confidence.LOW, False)])
def test_a_cause_of_little_weight_by_itself_is_told_with_the_one_that_hides_it(sure, told):
    """What it gives alone makes it a contribution; what both give is what the reader wants, if its evidence is good."""
    first, second = (finding(n, us, Direction.SCHEDULING, "data") for n, us in ((1, 1.0), (2, 27.0)))
    assert first.saving is not None and second.saving is not None
    first = replace(first, saving=replace(first.saving, range_us=(0.5, 1.5), after_others_us=1.0))
    second = replace(
        second, role=Role.CONTRIBUTING, severity=Severity.LOW, confidence=sure,
        saving=replace(second.saving, range_us=(20.0, 34.0), after_others_us=83.0),
    )  # fmt: skip
    said = summarise([first, second], [], facts(0.7, 0.2, 0.1)).headline.en
    assert ("Together with F2" in said and "84\xa0µs" in said) is told


def test_what_nothing_is_gained_by_is_not_severe():
    """A rank that waits because the others are slow is late by half the step, and on time it saves nothing."""
    late = finding(1, 500.0, Direction.SCHEDULING)
    assert late.saving is not None
    late = replace(late, severity=Severity.CRITICAL, saving=replace(late.saving, removes="late"))
    told = tell_jointly([late], facts(0.3, 0.1, 0.6), None, STEP).findings[0]
    assert told.severity is Severity.CRITICAL
    idle = replace(late, saving=replace(late.saving, us_per_step=0.0))  # type: ignore[arg-type]
    assert tell_jointly([idle], facts(0.3, 0.1, 0.6), None, STEP).findings[0].severity is Severity.LOW


def test_a_suspicion_larger_than_the_cause_is_named_beside_it():
    """A rank that costs half the step, if only in one, is not left out of the headline for a cause of a tenth."""
    first, second = finding(1, 110.0, Direction.SCHEDULING), finding(2, 500.0, Direction.SCHEDULING)
    second = replace(second, severity=Severity.LOW, role=Role.CONTRIBUTING, subject=Subject("rank", "7", (7,)))
    said = summarise([first, second], [], facts(0.3, 0.2, 0.5)).headline.en
    assert "Perhaps more" in said and "rank 7" in said


def test_a_range_is_as_wide_as_what_the_recording_leaves_open() -> None:
    """Of two slow steps among four nobody knows whether there are usually one or three; of what is known better than
    such estimates usually are, the usual error stays."""
    measured = facts(1.0, 0.0, 0.0)
    half, known = (Saving(400.0, 0.4, SAME, error_share=error) for error in (0.5, 0.0))
    assert between(half, measured, None, STEP) == pytest.approx((200.0, 600.0))
    assert between(known, measured, None, STEP) == pytest.approx((320.0, 480.0))


@given(st.floats(0.0, STEP), st.floats(1.0, STEP), st.floats(0.0, STEP))
def test_the_chain_promises_nothing_of_what_lies_before_the_wait_for_absent_ranks(
    behind: float, first: float, second: float
) -> None:
    """What ranks at hand save before they wait for a late rank without a profile only makes that wait longer: all of
    it together shortens the step by no more than runs behind that wait."""
    told = facts(0.2, 0.3, 0.5)
    told.add(Fact("communication.behind_absent_us", RUN, behind))
    several = [finding(1, first, Direction.SCHEDULING), finding(2, second, Direction.COMPUTATION)]
    bound = [replace(f, saving=replace(f.saving, kind="upper_bound")) for f in several if f.saving]
    joint = tell_jointly(bound, told, None, STEP)
    assert joint.whatif is not None and min(joint.whatif.step_time_us.values()) >= STEP - behind - 1e-6
    assert sum(f.saving.after_others_us or 0.0 for f in joint.findings if f.saving) <= behind + 1e-6
    assert all(f.saving.range_us == (0.0, f.saving.us) for f in joint.findings if f.saving)


def test_of_a_recording_without_steps_no_time_is_promised_twice() -> None:
    """Most of it is idle, and all of that is late launches: what some of these launches lose is told to be a part of
    it. No step gets shorter, so none is told without causes."""
    told = facts(0.02, 0.1, 0.88)
    late = finding(1, 0.88 * STEP, Direction.SCHEDULING)
    some = finding(2, 0.5 * STEP, Direction.COMPUTATION)
    assert some.saving is not None
    some = replace(some, saving=replace(some.saving, kind="upper_bound", idle_us=0.5 * STEP))
    joint = tell_of_whole([late, some], told)
    first, second = (f.saving for f in joint.findings)
    assert first is not None and second is not None and joint.whatif is None
    assert first.after_others_us == pytest.approx(0.88 * STEP) and second.after_others_us == 0.0
    said = brief_gain(replace(second, us_per_step=None, us_of_recording=second.us, share_of_recording=0.5)).en
    assert "0\u00a0µs after the findings above" in said and "after" not in brief_gain(second).en


@given(st.floats(0.0, STEP), st.floats(0.0, 1.0), st.floats(1.0, STEP))
def test_each_promises_no_more_for_certain_than_what_its_own_cause_takes_there(
    behind: float, part: float, us: float
) -> None:
    """A step that waits for an absent rank gets shorter by what the cause takes behind that wait, not by its length."""
    told = facts(0.2, 0.3, 0.5)
    told.add(Fact("communication.behind_absent_us", RUN, behind))
    one = finding(1, us, Direction.SCHEDULING)
    assert one.saving is not None
    bound = replace(one, saving=replace(one.saving, kind="upper_bound", without_absent_us=part * min(behind, us)))
    joint = tell_jointly([bound], told, None, STEP)
    assert joint.whatif is not None
    assert min(joint.whatif.step_time_us.values()) >= STEP - part * behind - 1e-6


@given(st.floats(1.0, 300.0), st.floats(1.0, 300.0), st.booleans())
def test_two_findings_on_one_type_of_operators_share_its_calls(one: float, other: float, same: bool) -> None:
    """Slow with one shape, and rows that are not aligned, are what the same calls lose; those of two types add up."""
    subjects = [Subject("operator_type", "MatMul"), Subject("operator_type", "MatMul" if same else "Add")]
    found = [
        replace(finding(place, us, Direction.COMPUTATION), subject=subject)
        for place, (us, subject) in enumerate(zip((one, other), subjects, strict=True), 1)
    ]
    told = tell_jointly(found, facts(0.9, 0.05, 0.05), None, STEP)
    assert told.whatif is not None
    gained = STEP - told.whatif.step_time_us[",".join(told.whatif.causes)]
    assert gained == pytest.approx(max(one, other) if same else one + other)
