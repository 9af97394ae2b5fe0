"""No cause accounts for more lost time than it loses: what is left of a symptom stands by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.engine.concluding.joint import tell_jointly
from advisor.engine.concluding.roots import assign_roles
from advisor.engine.concluding.summary import summarise
from advisor.facts.base import FactSet
from advisor.knowledge.savings import leading, materiality, unexplained_part, unowned_part
from advisor.model import RUN, Confidence, Direction, Fact, Finding, Role, Saving, Severity, Subject, Text

STEP_US = 100_000.0
T = Text("t", "t")
EXPLAINS = {"HOST": (("exposed-communication", "any"),), "RANK": (("exposed-communication", "any"),)}
KINDS = {"HOST": "cause", "RANK": "cause", "COMM": "symptom"}


def told(share: float) -> Saving:
    return Saving(share * STEP_US, share, T)


def cause(rule: str, share: float, direction: Direction = Direction.SCHEDULING) -> Finding:
    return Finding(
        "", rule, rule.lower(), direction, Role.CONTRIBUTING, Severity.HIGH, Confidence.HIGH, RUN, T, T,
        saving=told(share),
    )  # fmt: skip


def symptom(share: float, severity: Severity = Severity.LOW, subject: Subject = RUN) -> Finding:
    return Finding(
        "", "COMM", "exposed-communication", Direction.COMMUNICATION, Role.CONTRIBUTING, severity, Confidence.HIGH,
        subject, T, T, at_stake=told(share),
    )  # fmt: skip


def judged(*findings: Finding) -> dict[str, Finding]:
    return {f.rule: f for f in assign_roles(findings, EXPLAINS, KINDS)}


def facts(exposed: float, idle: float) -> FactSet:
    found = FactSet()
    for name, value in (
        ("step.time_us", STEP_US), ("step.exposed_communication_share", exposed), ("step.idle_share", idle),
        ("step.computing_share", 1.0 - exposed - idle),
    ):  # fmt: skip
        found.add(Fact(name, RUN, value, (), 5))
    return found


@given(st.floats(0.05, 0.9), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_what_a_remedy_cannot_repair_is_not_unknown(lost: float, gives: float, loses: float) -> None:
    """A cause accounts for all it loses, whatever part of that its first remedy gives back: nothing of it is said to
    have no known cause, and no more than it loses is taken from the symptom."""
    whole = cause("HOST", lost * gives)
    known = told(lost * gives)
    limited = replace(whole, saving=replace(known, lost_us=loses * lost * STEP_US))
    same = judged(symptom(lost), cause("HOST", lost * max(gives, loses)))["COMM"]
    assume(abs(1 - max(gives, loses) - unexplained_part()) > 1e-6 and gives > 1e-3)
    done = judged(symptom(lost), limited)["COMM"]
    assert (done.role, done.because) == (same.role, same.because)
    assert (done.at_stake.us if done.at_stake else 0.0) == pytest.approx(same.at_stake.us if same.at_stake else 0.0)


@given(st.floats(0.01, 0.9), st.lists(st.floats(0.01, 0.9), min_size=1, max_size=2), st.sampled_from(Severity))
def test_a_symptom_keeps_what_its_causes_do_not_lose(lost: float, causes: list[float], severity: Severity) -> None:
    """Folded under its causes only if they lose as much; else it stays with the rest, and nothing is counted twice."""
    done = judged(
        symptom(lost, severity),
        *(cause(rule, c, Direction.COMPUTATION) for rule, c in zip(("HOST", "RANK"), causes, strict=False)),
    )
    found, explained = done["COMM"], sum(causes)
    left = lost - explained
    assume(abs(left - unexplained_part() * lost) > 1e-6 and abs(left - materiality()[Severity.MEDIUM]) > 1e-6)
    if left > unexplained_part() * lost and left > materiality()[Severity.MEDIUM]:
        assert found.role is not Role.SYMPTOM and found.at_stake is not None
        assert abs((found.at_stake.share or 0.0) - left) < 1e-9
        assert explained + (found.at_stake.share or 0.0) <= lost + 1e-9
    else:
        assert found.role is Role.SYMPTOM and len(found.because) == len(causes)


@pytest.mark.parametrize(("late", "left"), [((3,), 0.24 - 0.16 * 3 / 4), ((2, 3), 0.24 - 0.16 * 2 / 4)])
def test_late_ranks_account_for_what_the_others_wait(late: tuple[int, ...], left: float) -> None:
    """Exposed communication is a mean over four ranks, of which the late ones do not wait for themselves: what stays
    is more than the mean without the whole lateness."""
    found = replace(cause("RANK", 0.16), subject=Subject("rank", "3", late), saving=replace(told(0.16), removes="late"))
    done = {f.rule: f for f in assign_roles([symptom(0.24), found], EXPLAINS, KINDS, ranks=4)}["COMM"]
    assert done.at_stake is not None and done.at_stake.share == pytest.approx(left)


def test_less_than_half_is_no_explanation() -> None:
    """Two thirds of the step in communication are not the doing of a host that loses a quarter of it."""
    done = judged(symptom(0.67, Severity.CRITICAL), cause("HOST", 0.24))
    assert done["COMM"].role is Role.ROOT_CAUSE and done["COMM"].because == () and done["HOST"].explains == ()
    assert done["COMM"].at_stake is not None and done["HOST"].id == "F1"  # which is certain


def test_more_than_half_is_an_explanation_in_part() -> None:
    """The symptom names its cause, stands beside it, and is no second root cause."""
    done = judged(symptom(0.30, Severity.HIGH), cause("HOST", 0.20))
    assert done["COMM"].role is Role.CONTRIBUTING and done["COMM"].because == (done["HOST"].id,)
    assert done["COMM"].at_stake is not None and done["COMM"].at_stake.us_per_step is not None
    assert abs(done["COMM"].at_stake.us_per_step - 0.10 * STEP_US) < 1e-6


@given(st.floats(0.02, 0.4), st.floats(1.01, 5.0), st.booleans())
def test_what_nobody_owns_stands_behind_a_known_cause_unless_it_is_clearly_more(
    known: float, times: float, bounded: bool
) -> None:
    """The first line is the cause that can be repaired. Lost time comes first only where it is clearly more, beside a
    certain cause only where it is far more, and beside one that certainly gives what it promises never."""
    host = replace(cause("HOST", known), id="F1", severity=Severity.HIGH, role=Role.ROOT_CAUSE)
    lost = replace(symptom(times * known), id="F2", severity=Severity.HIGH, role=Role.ROOT_CAUSE)
    assert host.saving is not None
    if bounded:
        host = replace(host, saving=replace(host.saving, kind="upper_bound"))
    part = unowned_part([host])
    assert (part == 0) == (not bounded and known >= materiality()[Severity.MEDIUM])
    assume(abs(times * part - 1.0) > 1e-3 and times * known < 0.8)
    found = assign_roles([lost, host], {}, KINDS)
    assert [finding.rule for finding in found] == ["HOST", "COMM"]  # what it gives, then what is lost
    first = "COMM" if times * part > 1.0 else "HOST"
    leader = leading(found)
    assert leader is not None and leader.rule == first
    said = summarise([lost, host], [], facts(times * known, known)).direction
    assert said == {"COMM": "communication", "HOST": "scheduling"}[first]


@given(st.floats(0.2, 0.6), st.floats(0.01, 0.39), st.floats(0.01, 0.39))
def test_a_cause_of_idle_time_takes_nothing_from_communication(exposed: float, idle: float, late: float) -> None:
    """The device either idles or communicates: what the host's idle time gives back is no part of what communication
    loses, however large it is; what a late rank costs is."""
    apart = {("HOST", "exposed-communication")}
    found = [symptom(exposed, Severity.CRITICAL), cause("HOST", idle)]
    alone = {f.rule: f for f in assign_roles(found, EXPLAINS, KINDS, apart=apart)}["COMM"]
    assert alone.at_stake == told(exposed)
    both = {f.rule: f for f in assign_roles([*found, cause("RANK", late)], EXPLAINS, KINDS, apart=apart)}["COMM"]
    other = {f.rule: f for f in assign_roles([found[0], cause("RANK", late)], EXPLAINS, KINDS)}["COMM"]
    assert both.role is Role.SYMPTOM or both.at_stake == other.at_stake


def test_a_stage_s_wait_is_not_measured_against_the_typical_step() -> None:
    """What the ranks of one stage wait is longer than what the run gains: still it is the cause's doing."""
    stage = Subject("stage", "0", (0, 1))
    assert judged(symptom(0.4, subject=stage), cause("HOST", 0.1))["COMM"].role is Role.SYMPTOM


def test_a_cause_of_unknown_size_is_not_bounded() -> None:
    """Nobody can say that it explains too much."""
    silent = Finding(
        "", "HOST", "host", Direction.SCHEDULING, Role.CONTRIBUTING, Severity.HIGH, Confidence.HIGH, RUN, T, T
    )
    assert judged(symptom(0.6), silent)["COMM"].role is Role.SYMPTOM


def test_uneven_stages_make_others_wait_for_more_than_balancing_gains() -> None:
    """The work of the long stage does not vanish, so its saving says little about how long the short one waits."""
    stages = cause("HOST", 0.2, Direction.COMPUTATION)
    assert stages.saving is not None
    stages = replace(stages, saving=replace(stages.saving, removes="stages"))
    assert judged(symptom(0.45, Severity.HIGH), stages)["COMM"].role is Role.SYMPTOM


def test_the_direction_follows_the_lost_time() -> None:
    """A certain cause of scheduling leads; what only bounds its gain does, unless communication loses far more to
    nobody."""
    shares = ((0.67, 0.15, "communication"), (0.24, 0.67, "scheduling"), (0.3, 0.18, "scheduling"))
    for exposed, idle, bounded in shares:
        for severity in (Severity.LOW, Severity.CRITICAL):
            host = cause("HOST", idle)
            assert host.saving is not None
            at_most = replace(host, saving=replace(host.saving, kind="upper_bound"))
            for found, said in ((host, "scheduling"), (at_most, bounded)):
                done = assign_roles([symptom(exposed, severity), found], EXPLAINS, KINDS)
                assert summarise(done, (), facts(exposed, idle)).direction == said


def test_idle_time_is_explained_by_the_idle_part_of_what_holds_the_device_up() -> None:
    """Calls for device memory cost 16 %, 6 % of it idle and the rest in collectives that would have been hidden: of
    13 % idle time seven have another owner. Computation that takes idle time with it accounts for all of it."""
    gives = replace(told(0.16), idle_us=0.06 * STEP_US)
    idle = replace(symptom(0.13, Severity.MEDIUM), verdict="device-idle-gaps", direction=Direction.SCHEDULING)
    explains, kinds = {"MEM": (("device-idle-gaps", "any"),)}, {"MEM": "cause", "COMM": "symptom"}
    for verdict, role in (("memory-pressure", Role.ROOT_CAUSE), ("aicpu-operators", Role.SYMPTOM)):
        calls = replace(cause("MEM", 0.16, Direction.COMPUTATION), verdict=verdict, saving=gives)
        found = {f.rule: f for f in assign_roles([calls, idle], explains, kinds)}
        assert found["COMM"].role is role
        if role is Role.ROOT_CAUSE:
            left = found["COMM"].at_stake
            assert left is not None and left.share == pytest.approx(0.07)


@pytest.mark.parametrize(
    ("stays", "subject", "role"),
    [
        (
            0.06,
            Subject("rank", "2", (2,)),
            Role.ROOT_CAUSE,
        ),  # all ranks have it, and it stays
        (0.001, Subject("rank", "2", (2,)), Role.SYMPTOM),  # next to nothing stays
        (None, Subject("rank", "2", (2,)), Role.SYMPTOM),  # nothing tells what stays
        (0.06, RUN, Role.SYMPTOM),  # the other cause is on all ranks as well
    ],
)
def test_a_cause_of_all_ranks_is_no_symptom_of_one_ranks_cause(
    stays: float | None, subject: Subject, role: Role
) -> None:
    """A slow host on one rank makes the device idle as well: the function in which all hosts are keeps its saving, and
    what is promised of it after the slow host is what stays."""
    own = replace(cause("RANK", 0.3), subject=subject, saving=replace(told(0.3), removes="host"))
    common = replace(cause("HOST", 0.2), saving=replace(told(0.2), stays_us=None if stays is None else stays * STEP_US))
    done = {f.rule: f for f in assign_roles([own, common], {"RANK": (("host", "any"),)}, KINDS)}["HOST"]
    assert done.role == role
    assert (done.saving is not None) == (role == Role.ROOT_CAUSE)


def test_after_a_slow_rank_a_cause_of_all_ranks_gives_what_stays() -> None:
    """Idle time of the typical rank may hold the slow one's part: together the two do not give it twice."""
    slow = replace(
        cause("RANK", 0.3), subject=Subject("rank", "2", (2,)), saving=replace(told(0.3), removes="host"), id="F1",
        role=Role.ROOT_CAUSE,
    )  # fmt: skip
    common = replace(cause("HOST", 0.2), saving=replace(told(0.2), stays_us=6000.0), id="F2", role=Role.ROOT_CAUSE)
    joint = tell_jointly([slow, common], facts(0.3, 0.3), None, STEP_US)
    after = {f.rule: f.saving.after_others_us for f in joint.findings if f.saving}
    assert after == {"RANK": pytest.approx(30_000.0), "HOST": pytest.approx(6000.0)}
    assert joint.whatif is not None and joint.whatif.step_time_us["F2"] == pytest.approx(80_000.0)
