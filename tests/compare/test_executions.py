"""Recordings that hold another number of executions, and operators whose work goes on under another name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.compare import compare
from advisor.compare.changes import Role as ChangeRole
from advisor.model import (
    RUN,
    Check,
    Confidence,
    Direction,
    Fact,
    Finding,
    Outcome,
    ProfileInfo,
    Remedy,
    Report,
    Role,
    Saving,
    Severity,
    Subject,
    Summary,
    Text,
    Verify,
)
from advisor.render import render

SAME = Text("x", "x")
PROFILE = ProfileInfo("p", "pytorch", "files", (0,), 1, has_steps=False)
TYPES = {"MatMul": 70.0, "RmsNorm": 5.0, "Cast": 2.0, "Attention": 90.0, "Add": 3.0, "Gather": 4.0}


def recorded(executions: int, slower: float = 1.0, odd: float = 1.0, idle_us: float | None = None) -> Report:
    """Sums over so many executions of twenty calls of each type, microseconds; `odd` is what one type's calls are
    multiplied by. With idle time the length of the recording is known: kernels and what is idle between them."""
    facts = []
    for name, us in TYPES.items():
        calls = executions * 20 * (odd if name == "Attention" else 1.0)
        subject = Subject("operator_type", name)
        facts.append(Fact("operator_type.count", subject, calls))
        facts.append(Fact("operator_type.time_us", subject, calls * us * slower))
    facts.append(Fact("operators.compute_us", RUN, sum(f.value for f in facts if f.name.endswith("time_us"))))
    if idle_us is not None:
        busy = facts[-1].value
        parts = {"step.time_us": busy + idle_us, "step.computing_us": busy, "step.idle_us": idle_us}
        facts += [Fact(name, RUN, us) for name, us in parts.items()]
    return Report(PROFILE, Summary("undetermined", SAME), facts=tuple(facts))


def test_the_shorter_recording_is_not_the_faster_one():
    """Each call takes twice as long, and a fifth of them was recorded."""
    told = compare(recorded(625), recorded(125, slower=2.0))
    (metric,) = [each for each in told.metrics if each.fact == "operators.compute_us"]
    assert metric.after == pytest.approx(2 * metric.before)
    assert [(each.what, each.after) for each in told.obstacles] == [("executions", "× 0.2")]
    assert "as many calls as before" in told.headline.en
    lines = [line for line in told.accounts if line.subject.id == "Attention"]
    assert [line.after / line.before for line in lines] == [pytest.approx(2.0)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (recorded(100), recorded(100, slower=1.5)),
        (recorded(100), recorded(50, odd=2.0)),  # half of the time is called as often as before
    ],
)
def test_sums_stay_what_they_are_where_nothing_tells_of_more_executions(before: Report, after: Report):
    told = compare(before, after)
    assert not [each for each in told.obstacles if each.what == "executions"]
    values = {fact.name: fact.value for fact in after.facts if fact.subject == RUN}
    assert [each.after for each in told.metrics if each.fact == "operators.compute_us"] in (
        [values["operators.compute_us"]], [],
    )  # fmt: skip


def served(**calls: int) -> Report:
    """Sums of a service over so many calls of each type, of 100 microseconds each."""
    facts = [Fact("operator_type.count", Subject("operator_type", name), count) for name, count in calls.items()]
    facts += [Fact("operator_type.time_us", fact.subject, 100.0 * fact.value) for fact in facts]
    facts.append(Fact("operators.compute_us", RUN, sum(100.0 * count for count in calls.values())))
    return Report(PROFILE, Summary("undetermined", SAME), facts=tuple(facts))


def test_two_types_that_are_called_less_often_are_no_shorter_recording():
    """Small calls were joined to large ones: the third type has more calls, so that nothing tells of fewer executions;
    where the other types are called as often as before, the recordings hold as much work, and their sums tell."""
    before, after = {"Shrink": 7860, "Expand": 3940, "Grouped": 500}, {"Shrink": 5460, "Expand": 2740, "Grouped": 980}
    told = compare(served(**before), served(**after))
    assert not told.obstacles and told.outcome == "unknown"
    assert told.metric("operators.compute_us").after == 918000.0
    others = {"Norm": 100, "Rope": 100, "Attention": 100, "Gate": 100}
    told = compare(served(**before, **others), served(**after, **others))
    assert told.headline.en.startswith("Less kernel time")


def test_types_that_are_called_exactly_as_often_tell_that_as_much_was_executed():
    """Three of eight types are called as often as before, the others less often, each by a part of its own; what
    several of these changed by alike, or what is called twice, as set-up is, tells nothing."""
    same = {"Norm": 229, "Rope": 211, "Gather": 292}
    before = {"Add": 617, "Cast": 968, "Select": 218, "Sub": 171, "Fill": 379}
    apart = {"Add": 570, "Cast": 850, "Select": 130, "Sub": 107, "Fill": 300}
    told = compare(served(**before, **same), served(**apart, **same))
    assert told.headline.en.startswith("Less kernel time")
    alike = {"Add": 309, "Cast": 484, "Select": 109, "Sub": 107, "Fill": 300}
    for after, others in ((alike, same), (apart, dict.fromkeys(same, 2))):
        told = compare(served(**before, **others), served(**after, **others))
        assert told.headline.en.startswith("No length")


def test_work_that_was_added_is_nobody_elses():
    """Names that were not there before and take many times what others lost are new, and are told one by one."""
    before, after = recorded(100), recorded(100)
    kept = [fact for fact in after.facts if fact.subject.id not in ("Add", "run")]  # which loses 6 ms
    added = [Fact("operator_type.time_us", Subject("operator_type", name), us) for name, us in (("A", 2e5), ("B", 9e4))]
    told = compare(before, replace(after, facts=(*kept, *added, Fact("operators.compute_us", RUN, 9e5))))
    assert not [other for other in told.obstacles if other.what == "operators"]
    assert {"A", "B"} <= {line.subject.id for line in told.accounts}


def test_a_step_table_of_one_side_alone_takes_no_verdict_away():
    """Kernel times are on both sides, whatever else one of them recorded."""
    long = recorded(100, idle_us=2e4)
    told = compare(long, recorded(100, slower=0.5))
    assert told.headline.en.startswith("Less kernel time")


def unmarked(**parts: float) -> Report:
    """A recording without steps of which a step table tells the parts, microseconds."""
    facts = [Fact(f"step.{name}_us", RUN, us) for name, us in {**parts, "time": sum(parts.values())}.items()]
    return Report(PROFILE, Summary("undetermined", SAME), facts=tuple(facts))


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_recording_of_twice_as_many_iterations_is_not_slower(slower: float):
    """Its length is told for as many calls as before, with all that adds up to it."""
    told = compare(recorded(100, idle_us=2e4), recorded(200, slower=slower, idle_us=4e4))
    assert told.outcome == ("same" if slower == 1.0 else "slower")
    length, computing = (told.metric(f"step.{name}_us") for name in ("time", "computing"))
    assert length is not None and length.after == pytest.approx(computing.after + 2e4)
    assert computing.after == pytest.approx(slower * computing.before)
    assert "as many calls as before" in told.headline.en


def test_of_idle_time_nobody_knows_whether_it_grows_with_the_calls():
    """A script that sets up for most of its time is not three times as fast per call for having made more of them."""
    told = compare(recorded(100, idle_us=1e6), recorded(300, idle_us=1e6))
    assert told.outcome == "unknown" and "idle time" in told.headline.en
    assert not told.accounts and not told.causes


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (unmarked(computing=88e3, exposed_communication=3.2e6), unmarked(computing=635e3, idle=2.6e6), "unknown"),
        (unmarked(computing=2e6, idle=1e5), unmarked(computing=4e6, idle=1e5), "unknown"),  # idle as long is no work
        (unmarked(computing=4e6, exposed_communication=8e5), unmarked(computing=2e6, exposed_communication=8e5),
         "faster"),
    ],
)  # fmt: skip
def test_windows_of_a_chosen_length_are_compared_where_a_part_tells_of_as_much_work(
    before: Report, after: Report, outcome: str
):
    """Two windows without steps or counts are as long as somebody chose, whatever was done in them."""
    told = compare(before, after)
    assert told.outcome == outcome
    assert ("cannot be told" in told.headline.en) == ("请标记step" in told.headline.zh) == (outcome == "unknown")
    assert bool(told.accounts) == (outcome == "faster")


def listed(whole: float, **us: float) -> Report:
    """The longest types of so many microseconds of computing, each called ten times."""
    facts = [Fact("operator_type.time_us", Subject("operator_type", name), each) for name, each in us.items()]
    facts += [Fact("operator_type.count", fact.subject, 10.0) for fact in facts]
    facts.append(Fact("operators.compute_us", RUN, whole))
    return Report(PROFILE, Summary("undetermined", SAME), facts=tuple(facts))


@pytest.mark.parametrize(("whole", "taken"), [(950.0, False), (800.0, True)])
def test_what_a_list_of_the_longest_types_leaves_out_is_not_gone(whole: float, taken: bool):
    """Of the longest types alone a shorter one falls out as soon as others grow: nothing tells that it was renamed. A
    table of all types tells that it is gone."""
    before = listed(600.0, MatMul=300.0, Attention=200.0, Slice=100.0)
    after = listed(whole, MatMul=450.0, Attention=200.0, SwiGlu=150.0)
    assert [o.what for o in compare(before, after).obstacles] == (["operators"] if taken else [])


@pytest.mark.parametrize(("slower", "what"), [(2.0, ["executions"]), (6.0, [])])
def test_calls_of_another_size_are_another_model_and_no_longer_recording(slower: float, what: list[str]):
    """Every type is called a third more often, as in a model with more layers, whose calls take six times as long."""
    told = compare(recorded(300), recorded(400, slower=slower))
    assert [o.what for o in told.obstacles] == what


def test_kernel_time_of_as_many_calls_is_a_verdict():
    """A statistic alone tells no length; as many calls that take less time in sum are told, and remedies judged."""
    subject = Subject("operator_type", "Attention")
    remedy = Remedy("analyse-operator", SAME, SAME, verify=Verify("operator_type.time_us", "falls"))
    found = Finding(
        "F1", "R1", "operator-hotspot", Direction.COMPUTATION, Role.CONTRIBUTING, Severity.LOW, Confidence.HIGH,
        subject, SAME, SAME, remedies=(remedy,),
    )  # fmt: skip
    told = compare(replace(recorded(100), findings=(found,)), recorded(100, slower=0.5))
    assert "Less kernel time" in told.headline.en
    assert [effect.outcome for effect in told.effects] == ["moved"]
    other = compare(replace(recorded(100), findings=(found,)), recorded(50, slower=0.5, odd=2.0))
    assert "kernel time" not in other.headline.en
    assert [effect.outcome for effect in other.effects] == ["unmeasured"]


def test_the_only_kernel_of_both_sides_is_the_same_by_another_name():
    """However much it gained: else the better a repair, the surer its finding is "resolved" and "new"."""
    sides = []
    for name, us in (("histogram_2", 260.0), ("histogram_3", 40.0)):
        subject = Subject("operator_type", name)
        facts = (Fact("operator_type.time_us", subject, us), Fact("operator_type.count", subject, 1.0),
                 Fact("operators.compute_us", RUN, us))  # fmt: skip
        found = Finding(
            "F1", "R1", "kernel-benchmark", Direction.COMPUTATION, Role.CONTRIBUTING, Severity.LOW, Confidence.HIGH,
            subject, SAME, SAME,
        )  # fmt: skip
        checks = (Check("R1", Outcome.FAIL),)
        sides.append(Report(PROFILE, Summary("undetermined", SAME), (found,), checks, facts=facts))
    told = compare(*sides)
    assert [match.state for match in told.findings] == ["remaining"]
    assert [(each.what, each.before, each.after) for each in told.obstacles] == [
        ("measured kernel", "histogram_2", "histogram_3")
    ]


def test_another_number_of_blocks_is_named():
    """A kernel that one core did and all do now is faster for that."""
    kernel, sides = Subject("operator_type", "add_custom"), []
    for blocks, us in ((1.0, 6910.0), (48.0, 307.0)):
        facts = [Fact("operator_type.blocks", kernel, int(blocks)), Fact("operator_type.time_us", kernel, us)]
        facts += [Fact("step.time_us", RUN, us), Fact("operator_type.count", kernel, 1)]
        sides.append(Report(PROFILE, Summary("undetermined", SAME), facts=tuple(facts)))
    told = compare(*sides)
    assert [(o.what, o.before, o.after) for o in told.obstacles] == [("blocks", "add_custom 1", "add_custom 48")]
    assert not compare(sides[0], sides[0]).obstacles


def test_operators_that_one_side_alone_recorded_are_no_other_names():
    """Less evidence is no change."""
    bare = replace(recorded(100, idle_us=0.0), facts=recorded(100, idle_us=0.0).facts[-3:])
    for sides in ((bare, recorded(100, idle_us=0.0)), (recorded(100, idle_us=0.0), bare)):
        assert "operators" not in [each.what for each in compare(*sides).obstacles]


def test_kernels_that_overlap_leave_no_negative_rest():
    """Two streams compute at once: kernels together take longer than the time in which any ran."""
    sides = []
    for slower in (1.0, 2.0):
        report = recorded(100, slower=slower, idle_us=0.0)
        busy = 0.8 * next(fact.value for fact in report.facts if fact.name == "step.computing_us")
        facts = [fact for fact in report.facts if not fact.name.startswith("step.")]
        facts += [Fact(name, RUN, busy) for name in ("step.time_us", "step.computing_us")]
        sides.append(replace(report, facts=tuple(facts)))
    told = compare(*sides)
    members = [line for line in told.accounts if line.role == ChangeRole.MEMBER]
    assert members and not [line for line in members if line.rest]
    assert "no rest can be told" in render(told, "text")


def test_more_calls_are_told_from_slower_ones():
    """A type that is called 25 times as often, each call faster, needs another remedy than one of slower calls."""
    page = render(compare(recorded(100), recorded(100, odd=25.0)), "text")
    assert "2000 → 50000 calls of 90\xa0µs → 90\xa0µs on average" in page


@pytest.mark.parametrize(("fused", "state"), [(2570.0, "unjudged"), (90.0, "resolved")])
def test_what_a_fused_operator_took_over_is_not_resolved(fused: float, state: str):
    """Two kernels become one that takes seven eighths of their time: the product in it is none the faster. Where it
    takes hardly anything, what was found is gone."""
    subject = Subject("operator_type", "MatMul")
    found = Finding(
        "F1", "R1", "operator-hotspot", Direction.COMPUTATION, Role.CONTRIBUTING, Severity.LOW, Confidence.HIGH,
        subject, SAME, SAME, saving=Saving(None, None, SAME, us_of_recording=100.0),
    )  # fmt: skip
    sides = []
    for types, findings in (({"MatMul": 2600.0, "Gelu": 350.0}, (found,)), ({"MatMulGelu": fused}, ())):
        facts = [Fact("operator_type.time_us", Subject("operator_type", name), us) for name, us in types.items()]
        facts.append(Fact("step.time_us", RUN, sum(types.values())))
        checks = (Check("R1", Outcome.FAIL if findings else Outcome.PASS),)
        sides.append(Report(PROFILE, Summary("undetermined", SAME), findings, checks, facts=tuple(facts)))
    assert [match.state for match in compare(*sides).findings] == [state]


@pytest.mark.parametrize(("gap", "outcome"), [(500.0, "unknown"), (200.0, "same")])
def test_a_recording_that_is_mostly_a_pause_has_no_length_of_work(gap: float, outcome: str):
    """A script sleeps before the call that it measures: whatever became of the call, the sleep lasts as long. What is
    no more than a part of the recording is a part of its length."""
    sides = []
    for length in (574.0, 576.0):
        facts = (Fact("step.time_us", RUN, 1e3 * length), Fact("timeline.longest_gap_us", RUN, 1e3 * gap),
                 Fact("operators.kernel_count", RUN, 9.0))  # fmt: skip
        sides.append(Report(PROFILE, Summary("undetermined", SAME), facts=facts))
    told = compare(*sides)
    assert told.outcome == outcome
    assert ("one pause" in told.headline.en) == (outcome == "unknown") == ("No difference" not in told.headline.en)


def test_a_pause_that_went_is_a_change():
    """What was waited for, and is not any more, made the recording shorter."""
    before, after = (
        Report(PROFILE, Summary("undetermined", SAME), facts=(
            Fact("step.time_us", RUN, length), Fact("timeline.longest_gap_us", RUN, gap),
            Fact("operators.kernel_count", RUN, 9.0),
        ))
        for length, gap in ((574e3, 500e3), (74e3, 1e3))
    )  # fmt: skip
    assert compare(before, after).outcome == "faster"
