"""What a change did: findings, promises and the reasons not to compare, of reports and profiles."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from advisor.compare import compare, read_report
from advisor.compare.changes import Role as ChangeRole
from advisor.compare.effects import judge_expectation
from advisor.compare.steps import noise_of_step
from advisor.model import (
    COLLECTION,
    RUN,
    Check,
    Confidence,
    Direction,
    Evidence,
    Fact,
    Finding,
    Outcome,
    Parallelism,
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
from advisor.render import formats_of, render
from advisor.render.comparison.text import comparison_to_json

SAME = Text("x", "x")
PROFILE = ProfileInfo(
    "p", "mindspore", "ascend_ms", (0, 1), 2, parallelism=Parallelism(data=2), versions={"cann": "8.0"}
)


def finding(
    verdict: str,
    subject: Subject = RUN,
    *,
    rule: str = "R1",
    saving: float | None = None,
    verify: Verify | None = None,
    remedy_id: str = "split-allreduce",
) -> Finding:
    remedy = Remedy(remedy_id, Text("Do it", "做"), SAME, verify=verify)
    return Finding(
        "F1", rule, verdict, Direction.COMMUNICATION, Role.ROOT_CAUSE, Severity.HIGH, Confidence.HIGH, subject,
        Text("Title", "标题"), SAME, saving=None if saving is None else Saving(saving, None, SAME), remedies=(remedy,),
    )  # fmt: skip


def report(
    facts: dict[str, float],
    findings: tuple[Finding, ...] = (),
    outcome: Outcome = Outcome.PASS,
    profile: ProfileInfo = PROFILE,
) -> Report:
    made = tuple(
        Fact(name, COLLECTION if name.startswith("collection.") else RUN, value) for name, value in facts.items()
    )
    checks = (Check("R1", Outcome.FAIL if findings else outcome, ("step.x",) if outcome == Outcome.NO_DATA else ()),)
    return Report(profile, Summary("healthy", SAME), findings, checks, facts=made)


def test_a_finding_is_resolved_only_where_its_rule_was_judged_again():
    """A verdict that disappears because its evidence is missing must not be called resolved."""
    before = report({"step.time_us": 100.0}, (finding("exposed-communication"),))
    judged = compare(before, report({"step.time_us": 100.0}))
    blind = compare(before, report({"step.time_us": 100.0}, outcome=Outcome.NO_DATA))
    assert [m.state for m in judged.findings] == ["resolved"]
    assert [(m.state, m.reason) for m in blind.findings] == [("unjudged", "step.x")]
    not_run = compare(before, replace(report({}), checked=()))
    assert [m.state for m in not_run.findings] == ["unjudged"]


def test_findings_are_matched_by_verdict_and_subject():
    """A slow rank that moves to another rank is one finding resolved and one new, not one remaining."""
    before = report({}, (finding("slow-compute-rank", Subject("rank", "2", (2,))),))
    after = report({}, (finding("slow-compute-rank", Subject("rank", "3", (3,))),))
    assert sorted(m.state for m in compare(before, after).findings) == ["new", "resolved"]
    moved_members = report({}, (finding("slow-compute-rank", Subject("rank", "2", ())),))
    assert [m.state for m in compare(before, moved_members).findings] == ["remaining"]


def test_what_a_finding_rests_on_tells_that_it_is_gone():
    """A device that no longer idles needs no timeline to prove it, where none was needed to find that it did; nor does
    the remedy, whose own fact neither side recorded."""
    idle = finding("idle-gaps", verify=Verify("timeline.idle_us", "falls"), remedy_id="look")
    idle = replace(idle, evidence=(Evidence("step.idle_us", 800.0, "us", "> 100"),))
    before = report({"step.time_us": 1000.0, "step.idle_us": 800.0}, (idle,))
    for facts, state, outcome in (
        ({"step.time_us": 210.0, "step.idle_us": 5.0}, "resolved", "moved"),
        ({"step.time_us": 210.0}, "unjudged", "unmeasured"),
        ({"step.time_us": 800.0, "step.idle_us": 600.0}, "unjudged", "moved"),  # much of it is still there
    ):
        comparison = compare(before, report(facts, outcome=Outcome.NO_DATA))
        assert [match.state for match in comparison.findings] == [state]
        assert [effect.outcome for effect in comparison.effects] == [outcome]


def test_what_the_table_calls_noise_did_not_go_the_wrong_way():
    """Idle time that moved by less than the step notices is no fault of the remedy; what moved by more is."""
    look = finding("idle-gaps", verify=Verify("step.idle_us", "falls"), remedy_id="look")
    for idle, moved, outcome in ((60.0, False, "unmoved"), (160.0, True, "opposite")):
        sides = (
            report({"step.time_us": 1000.0, "step.idle_us": 50.0}, (look,)),
            report({"step.time_us": 950.0 + idle, "step.idle_us": idle}, (look,)),
        )
        comparison = compare(*sides)
        assert comparison.metric("step.idle_us").moved is moved
        assert [effect.outcome for effect in comparison.effects] == [outcome]


def test_launches_that_became_shorter_are_shorter_in_sum():
    """A benchmark whose host launches slowly is idle for the most part; that hides nothing of what it measures."""
    parts = ("recording.measured_us", "step.time_us", "step.computing_us")
    sides = [
        report(dict(zip(parts, values, strict=True)), profile=replace(PROFILE, has_steps=False))
        for values in ((4.45, 1740.0, 267.0), (3.8, 1700.0, 228.0))
    ]
    assert all(compare(*sides).metric(name).moved for name in ("recording.measured_us", "step.computing_us"))


def test_collectives_that_take_longer_behind_computation_are_told():
    """A step that became shorter may hide that its largest exchange became longer."""
    sides = [
        report({"step.time_us": step, "operators.exchange_us": us}) for step, us in ((2870.0, 314.0), (2510.0, 422.0))
    ]
    metric = compare(*sides).metric("operators.exchange_us")
    assert metric is not None and metric.moved and metric.change > 0.3


def test_rules_that_measured_different_things_found_different_things():
    """Gates and attention that are not fused share a verdict; whoever repaired the one and lost the other is told so. A
    rule that judges by what the other judged by has found the same."""
    for facts, states in ((("a.us", "b.us"), ["new", "unjudged"]), (("a.us", "a.us"), ["remaining"])):
        sides = [
            report({}, (replace(finding("fusible", rule=rule), evidence=(Evidence(fact, 1.0, "us"),)),))
            for rule, fact in zip("AB", facts, strict=True)
        ]
        assert sorted(match.state for match in compare(*sides).findings) == states


@pytest.mark.parametrize(
    ("rules_before", "rules_after", "states"),
    [
        (["A"], ["B"], ["remaining"]),  # another rule reaches the same verdict
        (["A"], ["B", "C"], ["new", "remaining"]),
        (["A", "B"], ["B"], ["remaining", "unjudged"]),  # nothing tells what became of A: it was not run
        (["A", "B"], ["B", "A"], ["remaining", "remaining"]),
    ],
)
def test_two_rules_of_one_verdict_about_one_subject_are_two_findings(rules_before, rules_after, states):
    """A rank that is slow for two reasons is found twice, and each of the two is followed."""
    rank = Subject("rank", "2", (2,))
    sides = (
        report({}, tuple(finding("slow", rank, rule=rule) for rule in rules)) for rules in (rules_before, rules_after)
    )
    assert sorted(match.state for match in compare(*sides).findings) == states


@pytest.mark.parametrize(
    ("expect", "before", "after", "outcome"),
    [
        ("falls", 0.5, 0.1, "kept"),
        ("falls", 0.5, 0.499, "unmoved"),
        ("falls", 0.1, 0.5, "opposite"),
        ("rises", 2, 8, "kept"),
        ("= 0", 3, 0, "kept"),
        ("= 0", 3, 1, "unmoved"),
        ("< 10 %", 0.5, 0.05, "kept"),
        ("= Level1", "Level0", "Level1", "kept"),
        ("= false", True, False, "kept"),
        ("falls", 0.5, None, "unmeasured"),
        ("falls", "a", "b", "unmeasured"),
    ],
)
def test_a_promise_is_judged_by_the_fact_it_named(expect, before, after, outcome):
    """Each way in which a remedy may state its promise has its own meaning, and noise is no effect."""
    assert judge_expectation(expect, before, after, 0.03) == outcome


STALLED = {"step.time_us": 44.0, "step.count": 6, "step.usual_us": 27.0, "step.usual_jitter": 0.005, "step.jitter": 2.9,
           "step.slow_count": 1, "step.slow_cost_us": 17.0, "step.slow_cost_share": 0.39}  # fmt: skip
EVEN = {"step.time_us": 27.0, "step.count": 6, "step.median_us": 27.0, "step.usual_jitter": 0.005, "step.jitter": 0.005}


def test_a_stalled_step_is_no_noise_to_test_against():
    """Who mended the loader that stalled one of six steps is told so: the stall is compared as such, and how little one
    event tells is said."""
    verify = Verify("timeline.loader_stall_us", "falls")
    found = finding("data-starved", saving=17.0, verify=verify, remedy_id="inspect-slow-device")
    before = report({**STALLED, "timeline.loader_stall_us": 17.9}, (found,))
    comparison = compare(before, report({**EVEN, "timeline.loader_stall_us": 0.1}))
    assert (comparison.outcome, comparison.effects[0].outcome) == ("faster", "moved")
    assert [(cause.state, cause.us) for cause in comparison.causes] == [("resolved", -17.0)]
    assert "1 of 6 → 0 of 6" in comparison.headline.en and "record more steps" in comparison.headline.en


def test_how_many_slow_steps_a_recording_catches_is_chance():
    """Two runs of one program, with one pause of another length each, are neither faster nor slower."""
    other = {**STALLED, "step.time_us": 37.0, "step.slow_cost_us": 10.0}
    assert compare(report(STALLED), report(other)).outcome == "same"
    often = {"step.count": 24, "step.slow_count": 8}
    assert compare(report({**STALLED, **often}), report({**other, **often})).outcome == "faster"


def test_slow_steps_that_nobody_finds_any_more_are_gone():
    """Few even steps have no slow one among them: that was looked for, and is resolved. Without steps nothing is."""
    watched = finding("step-jitter", verify=Verify("step.slow_cost_share", "falls"), remedy_id="inspect-slow-device")
    blind = replace(report(EVEN), checked=(Check("R1", Outcome.NO_DATA, ("step.slow_count",)),))
    comparison = compare(report(STALLED, (watched,)), blind)
    assert [m.state for m in comparison.findings] == ["resolved"]
    assert (comparison.effects[0].after, comparison.effects[0].outcome) == (0.0, "moved")
    unknown = replace(report({"step.time_us": 27.0}), checked=blind.checked)
    assert [m.state for m in compare(report(STALLED, (watched,)), unknown).findings] == ["unjudged"]


def test_no_operator_on_the_ai_cpu_takes_no_time_there():
    """The last one that was moved off it leaves no fact of its kind: measured beside the same tables, that is 0."""
    sort, matmul = Subject("operator_type", "Sort"), Subject("operator_type", "MatMul")
    verify = Verify("operator_type.aicpu_us", "falls")
    moved = finding("aicpu-operators", sort, saving=3.4, verify=verify, remedy_id="replace-aicpu")
    sides = [report({"step.time_us": us, "operators.aicpu_us": aicpu, "operators.kernel_count": count}, found)
             for us, aicpu, count, found in ((31.3, 3.4, 126.0, (moved,)), (27.9, 0.0, 118.0, ()))]  # fmt: skip
    times = [Fact("operator_type.time_us", matmul, 20.0)]
    before = replace(sides[0], facts=(*sides[0].facts, *times, Fact("operator_type.aicpu_us", sort, 3.4)))
    after = replace(sides[1], facts=(*sides[1].facts, *times),
                    checked=(Check("R1", Outcome.NO_DATA, ("operator_type.aicpu_us",)),))  # fmt: skip
    comparison = compare(before, after)
    assert [m.state for m in comparison.findings] == ["resolved"]
    assert comparison.effects[0].outcome == "kept" and comparison.unattributed_us == pytest.approx(0.0)
    unmeasured = replace(after, facts=tuple(f for f in after.facts if f.name != "operators.aicpu_us"))
    assert [m.state for m in compare(before, unmeasured).findings] == ["unjudged"]


def test_what_uneven_steps_hide_is_not_called_unchanged():
    """A fact that fell by nearly all of itself may be chance where the steps differ as much; unchanged it is not."""
    told = finding("v", saving=17.0, verify=Verify("step.idle_us", "falls"))
    sides = [report({"step.time_us": 44.0, "step.count": 6, "step.jitter": 2.9, "step.idle_us": idle}, found)
             for idle, found in ((17.9, (told,)), (0.1, ()))]  # fmt: skip
    assert compare(*sides).effects[0].outcome == "unsure"


def test_noise_that_is_assumed_is_told_as_assumed():
    """Of two recordings of one step each nobody knows what runs differ by; steps that scatter tell it."""
    quiet, uneven = {"step.time_us": 100.0}, {"step.time_us": 100.0, "step.jitter": 0.5, "step.count": 6}
    assert "not measured" in compare(report(quiet), report({"step.time_us": 102.9})).headline.en
    assert "not measured" not in compare(report(uneven), report({**uneven, "step.time_us": 102.9})).headline.en


def test_next_to_nothing_has_no_multiple():
    """From less than a tenth of a microsecond to 3.4 ms is no factor of eleven millions."""
    sides = [report({"step.time_us": 30000.0, "step.overlapped_us": us}) for us in (0.0003, 3380.0)]
    assert "+3.4\xa0ms" in render(compare(*sides), "text")


def test_a_remedy_that_brings_little_of_its_promise_has_worked_in_part():
    """The gain of the step is set against the promised saving, not merely its direction."""
    verify = Verify("step.exposed_communication_us", "falls")
    before = report(
        {"step.time_us": 1000.0, "step.exposed_communication_us": 500.0, "allreduce.count": 1.0},
        (finding("exposed-communication", saving=400.0, verify=verify),),
    )
    applied = {"allreduce.count": 4.0}
    much = compare(before, report({"step.time_us": 650.0, "step.exposed_communication_us": 150.0, **applied})).effects[
        0
    ]
    little = compare(
        before, report({"step.time_us": 930.0, "step.exposed_communication_us": 430.0, **applied})
    ).effects[0]
    assert (much.outcome, much.gained_us, much.promised_us) == ("kept", 350.0, 400.0)
    assert little.outcome == "partly"


def test_a_remedy_is_credited_with_no_more_than_the_time_it_watches_fell():
    """The step gained 350 of which 60 went where the remedy works: the rest is somebody else's merit, and what no
    finding explains is larger than the cause that is known, which is no main one."""
    verify = Verify("step.exposed_communication_us", "falls")
    old = {"step.time_us": 1000.0, "step.exposed_communication_us": 160.0, "allreduce.count": 1.0}
    new = {"step.time_us": 650.0, "step.exposed_communication_us": 100.0, "allreduce.count": 4.0}
    comparison = compare(report(old, (finding("exposed-communication", saving=60.0, verify=verify),)), report(new))
    assert (comparison.effects[0].outcome, comparison.effects[0].gained_us) == ("kept", 60.0)
    assert "A part of it: Title" in comparison.headline.en and "Main cause" not in comparison.headline.en


def test_only_a_remedy_that_was_applied_is_credited():
    """A step that became shorter by itself is nobody's merit: without a sign of the change nothing has worked."""
    verify = Verify("step.exposed_communication_us", "falls")
    old = {"step.time_us": 1000.0, "step.exposed_communication_us": 500.0, "allreduce.count": 1.0}
    new = {"step.time_us": 650.0, "step.exposed_communication_us": 150.0, "allreduce.count": 1.0}
    before = report(old, (finding("exposed-communication", saving=400.0, verify=verify),))
    comparison = compare(before, report(new))
    assert (comparison.effects[0].outcome, comparison.effects[0].gained_us) == ("not_applied", None)
    assert [cause.us for cause in comparison.causes] == [-350.0]  # what went is known, why it went is not
    assert comparison.unattributed_us == 0.0
    swapped = finding("exposed-communication", saving=400.0, verify=verify, remedy_id="inspect-slow-device")
    assert compare(report(old, (swapped,)), report(new)).effects[0].outcome == "moved"


def test_what_stays_in_a_shorter_step_did_not_move():
    """100 of 1000 and 100 of 700 µs are the same time, though a larger share."""
    share = "step.exposed_communication_share"
    told = [{"step.time_us": us, "step.exposed_communication_us": 100.0, share: 100 / us} for us in (1000.0, 700.0)]
    before = report(told[0], (finding("exposed-communication", saving=50.0, verify=Verify(share, "falls")),))
    effect = compare(before, report(told[1])).effects[0]
    assert (effect.fact, effect.outcome) == ("step.exposed_communication_us", "unmoved")
    del told[0]["step.exposed_communication_us"]
    before = report(told[0], before.findings)
    assert compare(before, report(told[1])).effects[0].fact == share


def test_remedies_of_one_finding_share_one_gain():
    """Five remedies of one finding never get the gain of the step five times."""
    verify = Verify("step.exposed_communication_us", "falls")
    one = finding("exposed-communication", saving=400.0, verify=verify)
    one = replace(one, remedies=one.remedies * 5)
    before = report({"step.time_us": 1000.0, "step.exposed_communication_us": 500.0, "allreduce.count": 1.0}, (one,))
    after = report({"step.time_us": 650.0, "step.exposed_communication_us": 150.0, "allreduce.count": 4.0})
    comparison = compare(before, after)
    assert sum(effect.gained_us or 0.0 for effect in comparison.effects) == 350.0
    assert comparison.unattributed_us == 0.0


def test_what_is_gone_took_no_time_where_its_kind_was_measured():
    """A removed operator has no fact any more; that is the success of the remedy, not missing evidence."""
    cast, matmul = Subject("operator_type", "Cast"), Subject("operator_type", "MatMul")
    verify = Verify("operator_type.time_us", "falls")
    counts = {"operators.kernel_count": 100.0}
    reduced = finding("conversion-overhead", cast, verify=verify, remedy_id="remove-conversions")
    before = report({"step.time_us": 100.0, **counts}, (reduced,))
    times = [Fact("operator_type.time_us", kind, us) for kind, us in ((cast, 30.0), (matmul, 60.0))]
    before = replace(before, facts=(*before.facts, *times))
    after = report({"step.time_us": 70.0, "operators.kernel_count": 80.0})
    assert compare(before, after).effects[0].outcome == "unmeasured"
    after = replace(after, facts=(*after.facts, Fact("operator_type.time_us", matmul, 60.0)))
    assert compare(before, after).effects[0].outcome == "kept"


@pytest.mark.parametrize(("name", "came", "outcome"), [
    ("operator_type.average_us", 1.0, "unmeasured"), ("operator_type.time_us", 30.0, "unmeasured"),
    ("operator_type.time_us", 2.0, "moved"),
])  # fmt: skip
def test_a_kernel_that_goes_by_another_name_is_no_faster(name, came, outcome):
    """A kernel that is not called takes no time a call, and one in whose place another takes as long is not gone."""
    old, new = Subject("operator_type", "copy_kernel"), Subject("operator_type", "flat_copy_kernel")
    before = report({"step.time_us": 100.0}, (finding("hot", old, verify=Verify(name, "falls"), remedy_id="tune"),))
    before = replace(before, facts=(*before.facts, Fact(name, old, 30.0)))
    after = report({"step.time_us": 70.0})
    after = replace(after, facts=(*after.facts, Fact(name, new, came)))
    assert compare(before, after).effects[0].outcome == outcome


def test_benchmarks_are_compared_by_their_kernel_and_not_by_the_host():
    """How soon the host launches again is no property of the kernel that somebody measures."""
    sides = [report({"step.time_us": 699.0, "step.idle_us": 689.0, "recording.measured_us": 3.5}),
             report({"step.time_us": 400.0, "step.idle_us": 100.0, "recording.measured_us": 99.0})]  # fmt: skip
    sides = [replace(side, profile=replace(side.profile, has_steps=False)) for side in sides]
    comparison = compare(*sides)
    assert comparison.outcome == "slower"
    assert "a launch of the measured kernel 3.5\xa0µs → 99\xa0µs" in comparison.headline.en
    assert not comparison.causes and comparison.unattributed_us is None


def test_idle_time_that_a_short_step_notices_has_moved():
    """230 µs are nothing in 8.6 ms and two fifths of 0.6 ms: the shorter side tells whether they count."""
    sides = [report({"step.time_us": us, "step.idle_us": idle}) for us, idle in ((8580.0, 19.4), (586.0, 253.0))]
    assert compare(*sides).metric("step.idle_us").moved


@pytest.mark.parametrize(
    ("change", "what", "blocks"),
    [
        ({"framework": "pytorch"}, "framework", True),
        ({"world_size": 4}, "world size", True),
        ({"ranks": (2, 3)}, "ranks", True),
        ({"versions": {"cann": "8.1"}}, "versions", False),
        ({"parallelism": Parallelism(data=1, tensor=2)}, "parallelism", False),
    ],
)
def test_what_else_differs_is_named(change, what, blocks):
    """Times of runs that differ in more than the change under test are not sold as its effect."""
    comparison = compare(
        report({"step.time_us": 100.0}), report({"step.time_us": 50.0}, profile=replace(PROFILE, **change))
    )
    assert [(o.what, o.blocks) for o in comparison.obstacles] == [(what, blocks)]
    assert comparison.comparable is not blocks
    assert comparison.outcome == ("incomparable" if blocks else "faster")
    assert what in render(comparison, "text")


@pytest.mark.parametrize(("name", "what", "comparable"), [
    ("timeline.core_mhz_rated", "device", False), ("timeline.core_mhz_highest", "clock", True),
])  # fmt: skip
def test_a_lower_clock_is_a_change_and_another_rated_clock_another_card(name, what, comparable):
    """A power cap is what a comparison is asked for; the highest clock seen told it as another device."""
    sides = (report({"step.time_us": us, name: mhz}) for us, mhz in ((100.0, 1800.0), (124.0, 1440.0)))
    comparison = compare(*sides)
    assert [(o.what, o.before, o.after) for o in comparison.obstacles] == [(what, "1800\xa0MHz", "1440\xa0MHz")]
    assert comparison.outcome == ("slower" if comparable else "incomparable")


def test_another_profiler_level_is_not_comparable():
    """Level 0 and level 1 slow the step by different amounts."""
    before = report({"step.time_us": 100.0, "collection.level": "Level0"})  # type: ignore[dict-item]
    after = report({"step.time_us": 90.0, "collection.level": "Level1"})  # type: ignore[dict-item]
    assert [o.what for o in compare(before, after).obstacles] == ["profiler level"]


def _shapes(shapes: str) -> Report:
    plain = report({"step.time_us": 100.0})
    facts = [
        Fact(name, Subject("operator_type", kind), value)
        for kind in ("MatMul", "Add")
        for name, value in (("operator_type.shapes", shapes), ("operator_type.time_us", 40.0))
    ]
    return replace(plain, facts=(*plain.facts, *facts))


@pytest.mark.parametrize(
    ("before", "after", "blocks"),
    [
        ("1024,1024;1024,1024;1024", "2048,2048;2048,2048;2048", True),
        ("16384,64,128;699,128;4", "1024,64,128;485,128;5", True),
        ("16384,64,100;699,100", "16384,64,128;699,128", False),
        ("1024,2048;2048,5632", "2048,1024;1024,5632", False),
    ],
)
def test_a_kernel_on_inputs_of_another_size_is_no_faster(before, after, blocks):
    """A sixteenth of the work in a sixteenth of the time, and another problem is no other batch; padding is neither."""
    sides = [replace(each, facts=(*each.facts, Fact("recording.has_steps", Subject("run", "run"), False)))
             for each in map(_shapes, (before, after))]  # fmt: skip
    comparison = compare(*sides)
    assert [(o.what, o.blocks) for o in comparison.obstacles] == [("shapes", blocks)]
    assert comparison.comparable is not blocks


def test_other_data_types_of_the_longest_kernel_are_told():
    """A kernel on BF16 beside one on FLOAT is another measurement; how a profiler spells a type is none."""
    sides = [report({"step.time_us": 100.0}) for _ in range(3)]
    for index, told in enumerate(("DT_BF16;INT64", "FLOAT;INT64", "BF16;INT64")):
        kernel = Subject("operator_type", "IndexAdd")
        facts = (Fact("operator_type.time_us", kernel, 90.0), Fact("operator_type.dtypes", kernel, told))
        sides[index] = replace(sides[index], facts=(*sides[index].facts, *facts))
    (other,) = compare(sides[0], sides[1]).obstacles
    assert (other.what, other.before, other.after) == ("data types", "IndexAdd BF16;INT64", "IndexAdd FLOAT;INT64")
    assert not compare(sides[0], sides[2]).obstacles


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("64,512;512,512", "32,512;512,512", [("batch", "× 0.5")]),
        ("8,1024;1024,1024", "8,4096;1024,4096", [("shapes", "Add 8,4096;1024,4096")]),
        ("1024,2048;2048,5632", "2048,1024;1024,5632", [("shapes", "Add 2048,1024;1024,5632")]),
        ("64,512;512,512", "64,512;512,512", []),
    ],
)
def test_another_batch_is_recognised_by_the_operators_shapes(before, after, what):
    """Half the batch in half the time is no gain."""
    comparison = compare(_shapes(before), _shapes(after))
    assert [(o.what, o.after) for o in comparison.obstacles] == what
    assert comparison.comparable is not any(name == "batch" for name, _ in what)


def test_gradients_of_weights_tell_of_another_batch_as_well():
    """They sum over rows, which are no leading dimension there, and take the longest of all."""
    sides = []
    for rows in (64, 128):
        side = report({"step.time_us": 1.0 * rows})
        facts = [
            Fact(f"operator_type.{name}", Subject("operator_type", kind), value)
            for kind, shapes, us in (("MatMul", f"11008,{rows};2048,{rows}", 30.0), ("Add", f"{rows},2048", 5.0))
            for name, value in (("shapes", shapes), ("time_us", us))
        ]
        sides.append(replace(side, facts=(*side.facts, *facts)))
    assert [(o.what, o.after) for o in compare(*sides).obstacles] == [("batch", "× 2")]


@pytest.mark.parametrize(("sent", "speed", "told"), [(7e8, 22e9, ["links"]), (14e8, 22e9, []), (7e8, 57e9, [])])
def test_links_that_all_became_slower_are_named(sent, speed, told):
    """Within one profile nothing shows that all links are slow; the other side does, where it sent as many bytes."""
    sides = []
    for us, size, rate in ((100.0, 7e8, 60e9), (106.0, sent, speed)):
        side = report({
            "step.time_us": us, "communication.count": 5.0, "communication.main_transport_bytes_per_s": rate,
        })  # fmt: skip
        facts = [Fact("rank.transfer_bytes", Subject("rank", "0", (0,)), size)]
        facts += [Fact("communication.main_transport", RUN, "HCCS")]
        sides.append(replace(side, facts=(*side.facts, *facts)))
    comparison = compare(*sides)
    assert [o.what for o in comparison.obstacles] == told
    assert ("speed of the links" in comparison.headline.en) is bool(told)


def test_kernels_of_a_side_that_counts_no_collectives_are_not_more():
    """At a level that records no collectives they are among the kernels."""
    counted = report({"step.time_us": 100.0, "operators.kernel_count": 129.0, "communication.count": 5.0})
    alone = report({"step.time_us": 100.0, "operators.kernel_count": 140.0})
    assert not compare(counted, alone).obstacles
    assert compare(counted, replace(alone, facts=(*alone.facts, Fact("communication.count", RUN, 5.0)))).obstacles


@given(st.floats(1.0, 1e7), st.floats(0.0, 0.02))
def test_a_change_within_noise_is_no_change(step, share):
    """Two runs of one program are never called faster or slower."""
    comparison = compare(report({"step.time_us": step}), report({"step.time_us": step * (1 + share)}))
    assert comparison.outcome == "same"


@given(st.floats(1.0, 1e7), st.floats(1.0, 1e7))
def test_the_other_way_round_is_the_opposite(a, b):
    """Comparing AFTER with BEFORE turns faster into slower, and both formats stay valid."""
    forth, back = (
        compare(report({"step.time_us": a}), report({"step.time_us": b})),
        compare(report({"step.time_us": b}), report({"step.time_us": a})),
    )
    opposite = {"faster": "slower", "slower": "faster", "same": "same"}
    assert back.outcome == opposite[forth.outcome]


def test_every_format_in_both_languages_says_the_same_numbers():
    """Text, Markdown and JSON are views of one comparison."""
    verify = Verify("step.exposed_communication_us", "falls")
    before = report(
        {"step.time_us": 1000.0, "step.exposed_communication_us": 500.0, "allreduce.count": 1.0},
        (finding("exposed-communication", saving=400.0, verify=verify),),
    )
    after = report({"step.time_us": 600.0, "step.exposed_communication_us": 100.0, "allreduce.count": 4.0})
    comparison = compare(before, after)
    for lang in ("en", "zh"):
        for form in formats_of("comparison"):
            assert "−40" in render(comparison, form, lang, sides=(before, after)) or form in ("json", "html")
    document = json.loads(json.dumps(comparison_to_json(comparison), allow_nan=False))
    assert document["outcome"] == "faster"
    assert document["effects"][0]["gained_us_per_step"] == 400.0


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """The same small training with one slow rank, and healthy."""
    from benchmarks.simulator import Fault, Scenario, simulate, write_profile

    base = tmp_path_factory.mktemp("profiles")
    write_profile(simulate(Scenario(data=4, seed=1, faults=(Fault("slow_compute", 2, 0.4),))), base / "before")
    write_profile(simulate(Scenario(data=4, seed=1)), base / "after")
    return base


def test_profiles_are_compared_from_end_to_end(profiles):
    """A slow rank that was replaced: faster, resolved, promise kept, and the rank named as the reason."""
    from advisor.api import load_rules

    rules = load_rules()
    comparison = compare(read_report(str(profiles / "before"), rules), read_report(str(profiles / "after"), rules))
    assert comparison.outcome == "faster"
    assert ("slow-compute-rank", "2") in {(m.verdict, m.subject.id) for m in comparison.of("resolved")}
    assert not comparison.of("new")
    assert [cause.finding.subject.id for cause in comparison.causes] == ["2"]
    assert Subject("rank", "2", (2,)) in [line.subject for line in comparison.accounts]
    change = comparison.metric("step.time_us").after - comparison.metric("step.time_us").before
    assert comparison.causes[0].us == pytest.approx(change, rel=0.1)
    kept = [e for e in comparison.effects if e.finding.verdict == "slow-compute-rank"]
    assert kept and all(e.outcome == "moved" and e.gained_us is None for e in kept)  # a swapped card leaves no sign
    assert comparison.unattributed_us == pytest.approx(0, abs=0.1 * abs(change))


def _attributed(comparison):
    """The change of the step, and what of it is attributed to causes."""
    step = comparison.metric("step.time_us")
    return step.after - step.before, sum(cause.us for cause in comparison.causes)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports on one training, healthy twice, and with one fault or two."""
    from advisor.api import load_rules
    from benchmarks.simulator import Fault, Scenario, simulate, write_profile

    rules, base = load_rules(), tmp_path_factory.mktemp("reports")
    slow, link = Fault("slow_compute", 2, 0.4), Fault("slow_link", (0, 1), 9.0)
    told = {"healthy": (), "again": (), "slow": (slow,), "link": (link,), "data": (Fault("slow_storage", 0, 0.5),),
            "two": (slow, Fault("slow_host", 5, 0.6))}  # fmt: skip
    found = {}
    for seed, (name, faults) in enumerate(told.items()):
        write_profile(simulate(Scenario(data=8, layers=2, seed=seed, faults=faults)), base / name)
        found[name] = read_report(str(base / name), rules)
    return found


def test_two_runs_of_one_program_differ_by_no_cause(reports):
    """A run against itself or another one of its kind accuses nobody."""
    for other in ("healthy", "again"):
        comparison = compare(reports["healthy"], reports[other])
        assert (comparison.outcome, comparison.causes, comparison.accounts) == ("same", (), ())


@pytest.mark.parametrize("fault", ["slow", "link", "data", "two"])
def test_what_was_injected_accounts_for_the_difference(reports, fault):
    """One cause, or two that hide each other: the change is theirs within a tenth, and never more than it is."""
    comparison = compare(reports["healthy"], reports[fault])
    change, attributed = _attributed(comparison)
    assert change > 0 and attributed == pytest.approx(change, rel=0.1)
    assert attributed <= change * (1 + 1e-9)
    assert len(comparison.causes) == (2 if fault == "two" else 1)


@pytest.mark.parametrize("pair", list(combinations(("healthy", "slow", "link", "data", "two"), 2)))
def test_the_other_way_round_the_causes_are_the_same(reports, pair):
    """What came on the way there goes on the way back, and each line of the step's account changes its sign."""
    there, back = (compare(*(reports[name] for name in order)) for order in (pair, pair[::-1]))
    mirrored = {"new": "resolved", "resolved": "new", "remaining": "remaining"}
    told = [[(mirrored[c.state], c.finding.verdict, c.finding.subject, -c.us) for c in there.causes],
            [(c.state, c.finding.verdict, c.finding.subject, c.us) for c in back.causes]]  # fmt: skip
    assert told[0] == told[1]
    lines = [{(line.role, line.part, line.fact, line.subject): sign * line.difference for line in side.accounts}
             for side, sign in ((there, 1), (back, -1))]  # fmt: skip
    assert lines[0] == pytest.approx(lines[1])


@given(st.floats(0.0, 1.0), st.floats(1.0, 500.0))
def test_what_was_there_before_is_not_what_changed(there, costs):
    """A cause that crosses its limit by a little accounts for the little that it grew by, and never for more than the
    change."""
    measured = Evidence("rank.lateness_us", costs, "us")
    new = replace(finding("slow-compute-rank", saving=costs), evidence=(measured,))
    before = report({"step.time_us": 1000.0, "rank.lateness_us": there * costs})
    after = report({"step.time_us": 1200.0, "rank.lateness_us": costs}, (new,))
    attributed = sum(cause.us for cause in compare(before, after).causes)
    assert attributed <= min((1 - there) * costs, 200.0) + 1e-6
    if (1 - there) * costs >= 20.1:
        assert attributed == pytest.approx(min((1 - there) * costs, 200.0))


def test_a_cause_that_is_gone_accounts_for_what_it_cost():
    """Products that are no longer in float32 are as large a part of the kernels as before: how much of the cause is
    left is told by what the remedy watches, where what was measured is no measure of what it costs."""
    products = Subject("operator_type", "MatMul")
    told = finding("float32-heavy", products, saving=560.0, verify=Verify("operator_type.float32_share", "falls"))
    told = replace(told, evidence=(Evidence("operator_type.compute_share", 0.87, "ratio", subject=products),))
    sides = []
    for step, facts, found in ((1100.0, (1.0, 0.87), (told,)), (330.0, (0.0, 0.69), ())):
        side = report({"step.time_us": step}, found)
        names = ("operator_type.float32_share", "operator_type.compute_share")
        more = (Fact(name, products, value) for name, value in zip(names, facts, strict=True))
        sides.append(replace(side, facts=(*side.facts, *more)))
    assert [cause.us for cause in compare(*sides).causes] == [-560.0]


@pytest.mark.parametrize(("watched", "told"), [(0.2, []), (0.6, [200.0])])
def test_a_cause_that_stayed_as_it_was_moved_nothing(watched, told):
    """What is half of a longer time costs more without having changed: a cause counts by what its remedy watches."""
    fact = "allreduce.exposed_share"
    sides = [
        report({"step.time_us": step, fact: share}, (finding("v", saving=us, verify=Verify(fact, "falls")),))
        for step, us, share in ((1000.0, 200.0, 0.2), (1400.0, 400.0, watched))
    ]
    assert [cause.us for cause in compare(*sides).causes] == told


def test_what_moved_the_other_way_is_told_of_its_own_cause():
    """A step that lost 300 to one cause and won 200 by another became longer by 100: both are told, and they add up."""
    parts = ("step.time_us", "step.computing_us", "step.exposed_communication_us", "step.idle_us")
    before = report(dict(zip(parts, (1000.0, 600.0, 100.0, 300.0), strict=True)), (finding("waits", saving=200.0),))
    after = report(dict(zip(parts, (1100.0, 600.0, 400.0, 100.0), strict=True)), (finding("talks", saving=300.0),))
    comparison = compare(before, after)
    assert [(c.finding.verdict, c.us) for c in comparison.causes] == [("talks", 300.0), ("waits", -200.0)]
    assert comparison.unattributed_us == 0.0


@given(*[st.floats(100.0, 30000.0)] * 4)
def test_the_wait_for_data_and_the_own_work_are_the_change(wait, own, wait_after, own_after):
    """Where the device was not recorded a shorter wait may hide behind longer work: both are said, and they sum."""
    sides = [
        report({"step.time_us": a + b, "data.step_us": a + b, "data.wait_us": a, "data.own_us": b})
        for a, b in ((wait, own), (wait_after, own_after))
    ]
    lines = compare(*sides).accounts
    change = wait_after + own_after - wait - own
    if abs(change) > 0.04 * (wait + own + wait_after + own_after):
        assert {"data.wait_us", "data.own_us"} <= {line.fact for line in lines}
    if lines:
        assert sum(line.difference for line in lines) == pytest.approx(change, abs=1e-6)


def test_renamed_operators_are_one_line():
    """Another version calls the same work by another name: that is no change of thousands of percent."""
    names = (("MatMulV2", 4000.0), ("Add", 500.0)), (("MatMulV3", 4300.0), ("Add", 500.0))
    sides = []
    for step, told in zip((5000.0, 5300.0), names, strict=True):
        types = [Fact("operator_type.time_us", Subject("operator_type", name), us) for name, us in told]
        side = report({"step.time_us": step, "step.computing_us": step - 500})
        sides.append(replace(side, facts=(*side.facts, *types)))
    lines = compare(*sides).accounts
    assert [(line.subject.id, line.difference) for line in lines[:2]] == [
        ("run", 300.0),
        ("MatMulV2 → MatMulV3", 300.0),
    ]


def _typed(step: float, computing: float, **types: float) -> Report:
    side = report({"step.time_us": step, "step.computing_us": computing})
    told = [Fact("operator_type.time_us", Subject("operator_type", name), us) for name, us in types.items()]
    return replace(side, facts=(*side.facts, *told))


def test_kernels_that_were_added_took_no_others_place():
    """Where the others take as long as before, but for what they scatter by, the work goes on as it did."""
    before, after = _typed(1000.0, 900.0, MatMul=700.0, Add=199.0), _typed(1020.0, 920.0, MatMul=699.0, Add=199.0)
    grown = Fact("operator_type.time_us", Subject("operator_type", "Transpose"), 22.0)
    told = finding("conversion-overhead", Subject("operator_type", "Transpose"))
    checks = (Check("R1", Outcome.FAIL),)
    after = replace(after, facts=(*after.facts, grown), findings=(told,), checked=checks)
    comparison = compare(before, after)
    assert not comparison.obstacles
    assert [match.state for match in comparison.findings] == ["new"]


def test_an_operator_that_takes_as_long_as_before_handed_its_work_to_nobody():
    """An optimizer that is no longer fused leaves the products as they are: what was found of them can be judged."""
    hot = finding("operator-hotspot", Subject("operator_type", "MatMul"))
    before = replace(_typed(1000.0, 990.0, MatMul=700.0, ApplyAdam=200.0), findings=(hot,))
    after = _typed(1500.0, 1490.0, MatMul=705.0, Addcmul=400.0, Addcdiv=300.0)
    comparison = compare(before, replace(after, checked=(Check("R1", Outcome.PASS),)))
    assert [o.what for o in comparison.obstacles] == ["operators"]
    assert [match.state for match in comparison.findings] == ["resolved"]


def test_what_grew_while_its_part_shrank_is_named():
    """A fused kernel is taken apart: it is gone, and the products that do its work now take longer. Both are told, and
    with the rest they are the part's change."""
    before = _typed(5000.0, 4900.0, Ffn=2400.0, MatMulV2=1000.0, Add=1500.0)
    after = _typed(4000.0, 3900.0, MatMulV2=1800.0, Add=2100.0)
    part, *members = compare(before, after).accounts
    named = {line.subject.id: line.difference for line in members if line.subject != RUN}
    assert named["MatMulV2"] == 800.0 and named["Ffn"] == -2400.0
    assert sum(line.difference for line in members if line.role is not ChangeRole.PART) == part.difference


@pytest.mark.parametrize(("after", "told"), [(45.0, {"FlashGrad": 9.0}), (36.5, {}), (39.8, {})])
def test_a_kernel_that_became_slower_is_told_where_the_step_hides_it(after, told):
    """A step that scatters by three percent does not show a kernel that takes a quarter more time; the kernel does.
    What is less than a hundredth of the step, or a tenth of the kernel, is nothing."""
    sides = [_typed(395.0 + us - 36.0, 380.0, MatMul=216.0, FlashGrad=us) for us in (36.0, after)]
    comparison = compare(*sides)
    assert comparison.outcome == "same"
    assert {line.subject.id: line.difference for line in comparison.accounts} == told
    page = render(comparison, "text")
    assert ("FlashGrad, time per step: 36 µs → 45 µs" in page.replace("\u00a0", " ")) is bool(told)


def test_a_part_that_moved_against_the_change_is_opened():
    """The step became shorter although computing became longer: what in computing did is said."""
    before = _typed(5000.0, 2000.0, MatMulV2=1000.0, Index=1000.0)
    after = _typed(4000.0, 2400.0, MatMulV2=1000.0, Index=1400.0)
    lines = compare(before, after).accounts
    assert {line.subject.id: line.difference for line in lines if line.subject != RUN} == {"Index": 400.0}


def test_sums_of_kernels_tell_where_a_step_grew_that_nothing_else_divides():
    """Executions of a graph mark the steps, and a statistic sums their kernels up: no table tells what a step computes,
    and the kernels it lists became longer all the same."""
    sides = []
    for step, norm, product in ((1000.0, 100.0, 300.0), (1250.0, 200.0, 310.0)):
        types = [
            Fact("operator_type.time_us", Subject("operator_type", name), us)
            for name, us in (("RmsNorm", norm), ("MatMul", product))
        ]
        side = report({"step.time_us": step, "step.interval_us": 0.0, "operators.compute_us": norm + product})
        sides.append(replace(side, facts=(*side.facts, *types)))
    lines = compare(*sides).accounts
    parts = {line.part: line.difference for line in lines if line.role is ChangeRole.PART and not line.rest}
    assert parts == {"operators.compute_us": 110.0, "step.interval_us": 0.0}
    assert {line.subject.id: line.difference for line in lines if line.subject != RUN and not line.rest} == {
        "RmsNorm": 100.0
    }


def test_more_calls_of_the_same_shapes_are_more_work_and_no_other_shapes():
    """Two more layers: which of two shapes is costliest changes by itself, and the number of kernels says why."""
    sides = []
    for shapes, kernels, average in (("1024,2048;2048,5632", 170.0, 77.0), ("2048,1024;1024,5632", 222.0, 75.0)):
        side = report({"step.time_us": 60 * kernels, "operators.kernel_count": kernels, "communication.count": 6.0})
        types = [
            Fact(f"operator_type.{name}", Subject("operator_type", operator), value)
            for operator in ("MatMulV2", "MatMulV3")
            for name, value in (("shapes", shapes), ("average_us", average), ("time_us", 30 * kernels))
        ]
        sides.append(replace(side, facts=(*side.facts, *types)))
    told = [(other.what, other.before, other.after) for other in compare(*sides).obstacles]
    assert told == [("kernels", "164", "216")]


def test_runs_that_cannot_be_compared_resolve_nothing():
    """At another profiler level operators have other names: none of them is gone, and none takes no time."""
    verify = Verify("operator_type.time_us", "falls")
    told = finding("hot-operator", Subject("operator_type", "MatMulV2"), verify=verify)
    sides = []
    for level, name, found in (("Level1", "MatMulV2", (told,)), ("Level0", "aclnnMatmul_MatMulV2", ())):
        side = report({"step.time_us": 100.0, "collection.level": level}, found)
        sides.append(
            replace(side, facts=(*side.facts, Fact("operator_type.time_us", Subject("operator_type", name), 9.0)))
        )
    comparison = compare(*sides)
    assert [match.state for match in comparison.findings] == ["unjudged"]
    assert comparison.effects[0].after is None


def test_the_command_takes_profiles_and_reports_alike(profiles, tmp_path):
    """JSON reports can stand in for the profiles: the same metrics, findings and kept promises, byte for byte."""
    from advisor.cli.main import cli

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, list(arguments), standalone_mode=False)
        assert result.exit_code == 0 and result.return_value == 0
        return result.stdout

    sides = [str(profiles / name) for name in ("before", "after")]
    kept = [str(tmp_path / f"{name}.json") for name in ("before", "after")]
    for profile, file in zip(sides, kept, strict=True):
        run("advise", profile, "--format", f"json:{file}", "-q")
    fresh = run("compare", *sides, "--format", "json")
    assert json.loads(fresh)["outcome"] == "faster"
    assert run("compare", *kept, "--format", "json") == fresh
    assert run("compare", kept[0], sides[1], "--format", "json") == fresh


def test_recordings_without_steps_are_not_compared_per_step():
    """Two benchmarks of a kernel have no steps: what became shorter is the recording."""
    sides = [report({"step.time_us": us, "operators.kernel_count": 5.0}) for us in (25200.0, 10200.0)]
    sides = [replace(side, profile=replace(side.profile, has_steps=False)) for side in sides]
    comparison = compare(*sides)
    said = comparison.headline.en
    assert "recording 25.2" in said and "step" not in said
    assert "length of the recording" in render(comparison, "text")
    assert "step" not in render(comparison, "text").lower()


def test_a_promise_nobody_measured_shows_no_figures():
    """Two dashes and an arrow tell nothing: it says that neither side measured the fact."""
    verify = Verify("operator.transfer_us", "falls")
    before = report({"step.time_us": 900.0}, (finding("slow", verify=verify),))
    page = render(compare(before, report({"step.time_us": 800.0})), "text")
    assert "Neither side measured" in page and "– →" not in page


@pytest.mark.parametrize(("jitter", "count"), [(1e200, 5), (0.1, -3), (-1e200, 1)])
def test_steps_of_an_edited_report_are_no_defect(jitter: float, count: float) -> None:
    """Whoever edits a saved report may write anything; more noise claims less."""
    edited = SimpleNamespace(number=lambda name: {"step.jitter": jitter, "step.count": count}.get(name))
    assert noise_of_step(edited, edited) >= 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rated", "what", "blocks"),
    [((None, None), "clock", False), ((1800.0, 1800.0), "clock", False), ((1800.0, 1500.0), "device", True)],
)
def test_a_card_kept_below_its_clock_is_slower_and_no_other_card(rated, what, blocks):
    """Throttled cards are what makes a run slower: only what the card is rated at tells that it is another one."""
    rank = Subject("rank", "0", (0,))
    sides = []
    for us, mhz, told in ((100.0, 1800.0, rated[0]), (123.0, 1440.0, rated[1])):
        clocks = {"timeline.core_mhz_highest": mhz, "timeline.core_mhz_rated": told}
        facts = [Fact(name, rank, value) for name, value in clocks.items() if value is not None]
        side = report({"step.time_us": us})
        sides.append(replace(side, facts=(*side.facts, *facts)))
    comparison = compare(*sides)
    assert [(o.what, o.blocks) for o in comparison.obstacles] == [(what, blocks)]
    assert comparison.outcome == ("incomparable" if blocks else "slower")


def test_what_was_lost_for_no_known_reason_explains_what_no_cause_does():
    """Idle time of 80 ms that is gone is the change, though nobody found its cause; a cause that is known comes first,
    and both together are no more than the change."""
    idle = replace(finding("idle", rule="R1"), role=Role.CONTRIBUTING, at_stake=Saving(80.0, None, SAME))
    found = replace(finding("convert", rule="R2", saving=30.0), id="F2")
    before = report({"step.time_us": 100.0, "step.idle_us": 80.0}, (idle,))
    after = report({"step.time_us": 20.0, "step.idle_us": 0.0})
    assert [(c.finding.verdict, c.us) for c in compare(before, after).causes] == [("idle", -80.0)]
    passed = (*after.checked, replace(after.checked[0], rule="R2"))
    told = compare(replace(before, findings=(idle, found)), replace(after, checked=passed)).causes
    assert [(c.finding.verdict, c.us) for c in told] == [("convert", -30.0), ("idle", -50.0)]


def test_a_part_that_others_move_against_is_told_in_time_and_is_not_most_of_the_change():
    """A fused operator of 65 ms that became products of 52: five sixths of it came back, and no share of all that moved
    is one of the change."""
    sides = []
    for ffn, product in ((65.0, 20.0), (0.0, 72.0)):
        plain = report({"step.time_us": 20.0 + ffn + product, "step.computing_us": 20.0 + ffn + product})
        types = [Fact("operator_type.time_us", Subject("operator_type", kind), us)
                 for kind, us in (("FFN", ffn), ("MatMulV2", product), ("Add", 20.0))]  # fmt: skip
        sides.append(replace(plain, facts=(*plain.facts, *types)))
    comparison = compare(*sides)
    said = _accounts(comparison)
    assert "FFN: 65 µs → 0 µs (−65 µs)" in said
    assert "100 % of the change" in said
    assert "FFN" not in comparison.headline.en


def _accounts(comparison) -> str:
    """Its lines of where the change stands, with plain blanks."""
    from advisor.render.comparison.text import account_lines

    return "\n".join(account_lines(comparison, "en")).replace("\xa0", " ")
