"""Pass, fail, or could not tell."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.compare.changes import Role
from advisor.gate.changes import explain
from advisor.gate.model import Result, Verdict
from advisor.model import RUN, Check, Confidence, Evidence, Fact, Outcome, Severity, Source, Subject
from advisor.render.decision.phrases import headline
from tests.helpers.profiles import GOOD, finding, judge, policy, runs_of, sample

HISTORY = runs_of(*GOOD, name="old")
SLOW = (107.0, 106.5, 107.5, 106.8, 107.2)
FINE = (100.0, 100.5, 99.5, 100.3, 99.7)
PARTS = (
    "step.computing_us", "step.exposed_communication_us", "step.idle_us", "step.interval_us", "step.fp_bp_us",
    "step.tail_us",
)  # fmt: skip


def test_unchanged_runs_pass_and_slower_ones_fail():
    """The gate's whole purpose."""
    assert judge(runs_of(*FINE), HISTORY).verdict is Verdict.PASS
    decision = judge(runs_of(*SLOW), HISTORY)
    assert decision.verdict is Verdict.FAIL
    assert [judgement.name for judgement in decision.of(Result.FAIL)] == ["step.time_us"]


def test_a_confirming_run_decides():
    """Red once and not again is a disturbed machine, not a regression."""
    assert judge(runs_of(*SLOW), HISTORY, confirming=runs_of(100.0, name="c")).verdict is Verdict.PASS
    assert judge(runs_of(*SLOW), HISTORY, confirming=runs_of(107.0, name="c")).verdict is Verdict.FAIL


@pytest.mark.parametrize(("again", "verdict"), [((), Verdict.INCONCLUSIVE), ((100.0,), Verdict.PASS)])
def test_runs_that_are_divided_are_no_pass(again, verdict):
    """Three of five runs are 8 % slower: measure again, and know. The headline names what was not confirmed."""
    decision = judge(runs_of(100.0, 100.5, 108.0, 108.2, 107.9), HISTORY, confirming=runs_of(*again, name="c"))
    assert decision.verdict is verdict
    assert ("step time" if again else "3 of 5 runs") in headline(decision, "en")
    assert len(decision.unsteady) == 2


def test_slower_runs_below_the_limit_are_not_called_variation():
    """All runs above all of the baseline: the policy lets 2.5 % through, and nobody is told that it is chance."""
    quiet = runs_of(*(100 + 0.1 * (i % 5) for i in range(10)), name="old")
    decision = judge(runs_of(*(102.5 + 0.1 * i for i in range(5))), quiet)
    assert decision.verdict is Verdict.PASS
    assert decision.of(Result.PASS)[0].reason == "slight"
    assert "+2.5" in headline(decision, "en") and "no regression beyond run-to-run variation" not in headline(
        decision, "en"
    )
    alike = judge(runs_of(*(100.05 + 0.1 * i for i in range(5))), quiet)
    assert (alike.of(Result.PASS)[0].reason, alike.verdict) == ("same", Verdict.PASS)


def test_a_pass_that_could_see_nothing_says_so():
    """A history that varies by a third hides a regression of a fifth."""
    noisy = runs_of(100.0, 82.0, 118.0, 95.0, 130.0, 88.0, 107.0, 121.0, 79.0, 101.0, name="old")
    told = headline(judge(runs_of(*(120.0 + i for i in range(5))), noisy), "en")
    assert "cannot be seen" in told
    assert "cannot be seen" not in headline(judge(runs_of(*FINE), HISTORY), "en")


def test_too_few_runs_cannot_tell_on_either_side():
    """One run against ten is wrong in one of twelve cases: not enough to turn a pipeline red or green."""
    few = judge(runs_of(150.0), HISTORY)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert few.of(Result.NOT_JUDGED)[0].reason == "few_runs"
    young = judge(runs_of(*SLOW), HISTORY[:2])
    assert young.verdict is Verdict.INCONCLUSIVE
    assert young.of(Result.NOT_JUDGED)[0].reason == "few_history"
    assert judge(runs_of(150.0), HISTORY, rules=policy(min_runs=1)).verdict is Verdict.FAIL


def test_another_key_is_not_comparable_and_says_why():
    """After an upgrade of the driver the old level means nothing."""
    old = runs_of(*GOOD, name="old", key={"model": "m", "versions.cann": "8.1"})
    new = runs_of(*SLOW, key={"model": "m", "versions.cann": "8.2"})
    decision = judge(new, old)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert [(d.field, d.before, d.after) for d in decision.differences] == [("versions.cann", "8.1", "8.2")]
    ignoring = judge(new, old, rules=policy(key={"ignore": ["versions.*"]}))
    assert ignoring.verdict is Verdict.FAIL


def test_not_comparable_stays_open_though_budgets_hold():
    """Whoever names a baseline wants to know that it compared nothing."""
    old = runs_of(*GOOD, name="old", key={"model": "other"})
    rules = policy(budgets={"step.time_us": "1 s"})
    assert judge(runs_of(*FINE), old, rules=rules).verdict is Verdict.INCONCLUSIVE
    assert judge(runs_of(*FINE), old, rules=policy(budgets={"step.time_us": "10 ms"})).verdict is Verdict.FAIL
    only_budgets = policy(budgets={"step.time_us": "1 s"}, metrics={"step.time_us": False})
    assert judge(runs_of(*FINE), old, rules=only_budgets).verdict is Verdict.INCONCLUSIVE


def test_only_runs_of_the_same_key_are_compared():
    """One folder may hold the baselines of many models."""
    other = runs_of(*[5.0] * 10, name="other", key={"model": "small"})
    decision = judge(runs_of(*SLOW), [*other, *HISTORY])
    assert decision.verdict is Verdict.FAIL
    assert len(decision.history) == len(HISTORY)
    assert ("others", {"count": "10", "all": "20"}) in decision.notes


def test_single_run_without_history_is_judged_by_budgets_and_findings():
    """The first pipeline run has no history and still has a memory limit."""
    rules = policy(budgets={"memory.peak_bytes": "58 GB"}, fail_on="high")
    one = sample(facts={"memory.peak_reserved_bytes": 50e9})
    for baseline, verdict in ((None, Verdict.PASS), ("base#main", Verdict.INCONCLUSIVE)):
        decision = judge([one], baseline=baseline, rules=rules)
        assert decision.verdict is verdict, "a baseline that was named and is empty is never a pass"
        assert "step.time_us" in [judgement.name for judgement in decision.of(Result.NOT_JUDGED)]
    big = sample(facts={"memory.peak_reserved_bytes": 60e9})
    assert judge([big], rules=rules).verdict is Verdict.FAIL
    assert judge([sample(findings=[finding()])], rules=policy(fail_on="high")).verdict is Verdict.FAIL


def test_nothing_measured_never_passes():
    """Recording switched off by accident must not look like health."""
    empty = sample(None, checked=[Check("ACME001", Outcome.NO_DATA)])
    assert judge([empty]).verdict is Verdict.INCONCLUSIVE
    assert judge([empty] * 5, HISTORY).verdict is Verdict.INCONCLUSIVE
    assert judge([sample()], baseline=None).verdict is Verdict.INCONCLUSIVE
    assert judge([empty], baseline=None, rules=policy(fail_on="high")).verdict is Verdict.INCONCLUSIVE
    budget = policy(budgets={"memory.peak_bytes": "58 GB"})
    assert judge(runs_of(*FINE), HISTORY, rules=budget).verdict is Verdict.INCONCLUSIVE
    named = policy(metrics={"step.idle_us": 0.1})
    assert judge(runs_of(*FINE), HISTORY, rules=named).verdict is Verdict.INCONCLUSIVE


@settings(max_examples=60)
@given(
    runs=st.lists(st.none() | st.floats(90, 120), min_size=1, max_size=6),
    history=st.lists(st.none() | st.floats(90, 120), max_size=8),
    fail_on=st.sampled_from([None, "low", "critical"]),
    outcome=st.sampled_from(list(Outcome)),
    named=st.booleans(),
)
def test_a_pass_always_rests_on_something_judged(runs, history, fail_on, outcome, named):
    """Whatever is missing, green means that something was measured and held."""
    checks = [Check("ACME001", outcome)]
    decision = judge(
        [sample(step, checked=checks, name=f"n{i}") for i, step in enumerate(runs)],
        [sample(step, checked=checks, name=f"o{i}") for i, step in enumerate(history)],
        baseline="base#main" if named else None,
        fail_on=fail_on,
    )
    if decision.verdict is Verdict.PASS:
        assert decision.of(Result.PASS, Result.NOT_CONFIRMED, Result.WAIVED)
        assert not any(
            judgement.required for judgement in decision.of(Result.NOT_JUDGED) if judgement.reason not in ("few_runs",)
        )


def test_only_new_findings_fail():
    """A known problem is work for tomorrow, not a red pipeline for everybody today."""
    rules = policy(fail_on="high")
    known = runs_of(*GOOD, name="old", findings=[finding()])
    assert judge(runs_of(*FINE, findings=[finding()]), known, rules=rules).verdict is Verdict.PASS
    assert judge(runs_of(*FINE, findings=[finding()]), HISTORY, rules=rules).verdict is Verdict.FAIL
    everything = policy(fail_on="high", findings="all")
    assert judge(runs_of(*FINE, findings=[finding()]), known, rules=everything).verdict is Verdict.FAIL
    worse = runs_of(*GOOD, name="old", findings=[finding(severity=Severity.MEDIUM)])
    assert judge(runs_of(*FINE, findings=[finding()]), worse, rules=rules).verdict is Verdict.FAIL


def test_findings_of_a_minority_of_runs_do_not_fail():
    """A straggler in one of five runs is a disturbed node."""
    rules = policy(fail_on="high")
    runs = [*runs_of(*FINE[:3]), *runs_of(*FINE[3:], name="bad", findings=[finding()])]
    assert judge(runs, HISTORY, rules=rules).verdict is Verdict.PASS


def test_experimental_uncertain_and_mild_findings_never_gate():
    """New rules are tried in public without breaking anybody's build."""
    rules = policy(fail_on="high")
    for found in (
        finding(status="experimental", severity=Severity.CRITICAL),
        finding(confidence=Confidence.LOW),
        finding(severity=Severity.MEDIUM),
    ):
        assert judge(runs_of(*FINE, findings=[found]), HISTORY, rules=rules).verdict is Verdict.PASS


def test_a_rule_the_baseline_never_judged_is_no_regression():
    """An update of the advisor brings new rules; the code under test has not changed."""
    old = runs_of(*GOOD, name="old", checked=[Check("OTHER", Outcome.PASS)])
    decision = judge(runs_of(*FINE, findings=[finding()]), old, rules=policy(fail_on="high"))
    assert decision.verdict is Verdict.PASS
    assert "first_judged" in [judgement.reason for judgement in decision.of(Result.WATCHED)]


@pytest.mark.parametrize("tables, version, result", [
    (("steps", "trace"), "1", Result.FAIL), (("steps",), "1", Result.WATCHED),
    (("steps", "trace"), "0", Result.WATCHED),
])  # fmt: skip
def test_an_event_that_never_happened_before_is_new(tables, version, result):
    """No garbage was collected in the baseline, so nothing was measured of it: where its timelines are there, and the
    advisor is the same, that is no lack of evidence."""

    def of(names, us=None):  # fmt: skip
        read = Source("trace_view.json", table="trace")
        told = [Fact("rank.tables", Subject("rank", "0", (0,)), names)]
        return told + [Fact("timeline.gc_us", RUN, us, 4, (read,))] * (us is not None)

    found = replace(finding(), evidence=(Evidence("timeline.gc_us", 50.0, "us", "> 0"),))
    blind = [Check("ACME001", Outcome.NO_DATA, ("timeline.gc_us",))]
    old = runs_of(*GOOD, name="old", checked=blind, more=of(tables), version=version)
    now = runs_of(*FINE, findings=[found], more=of(("steps", "trace"), 50.0), version="1")
    judged = judge(now, old, rules=policy(fail_on="high")).judgements
    assert [judgement.result for judgement in judged if judgement.finding is not None] == [result]


def test_a_second_finding_of_the_same_verdict_is_new_and_another_rule_is_not():
    """Two rules may reach one verdict about one subject: each is held against the history; a rule that took the place
    of another has found nothing new."""
    known, rules = runs_of(*GOOD, name="old", findings=[finding(rule="ACME001")]), policy(fail_on="high")
    checked = [Check(rule, Outcome.PASS) for rule in ("ACME001", "ACME002")]
    known = [replace(run, checked=tuple(checked)) for run in known]
    assert judge(runs_of(*FINE, findings=[finding(rule="ACME002")]), known, rules=rules).verdict is Verdict.PASS
    both = [finding(rule="ACME001"), finding(rule="ACME002")]
    decision = judge(runs_of(*FINE, findings=both), known, rules=rules)
    assert [told.finding.rule for told in decision.of(Result.FAIL) if told.finding is not None] == ["ACME002"]


def test_evidence_that_is_gone_is_no_all_clear():
    """Whoever stops recording the timeline hides what the baseline's rules saw; a rule that some runs of the baseline
    could not judge either is nothing lost, nor one that asks for more than it did."""
    blind = [Check("ACME001", Outcome.PASS), Check("ACME002", Outcome.NO_DATA, ("step.idle_us",))]
    seeing = [Check("ACME001", Outcome.PASS), Check("ACME002", Outcome.PASS)]
    old = runs_of(*GOOD, name="old", checked=seeing, facts={"step.idle_us": 20.0})
    now = runs_of(*FINE, checked=blind)
    decision = judge(now, old, rules=policy(fail_on="high"))
    assert decision.verdict is Verdict.INCONCLUSIVE
    lost = next(judgement for judgement in decision.of(Result.NOT_JUDGED) if judgement.reason == "evidence_lost")
    assert lost.values["rules"] == "ACME002"
    assert judge(now, old).verdict is Verdict.PASS
    mixed = [*old, *runs_of(100.0, name="older", checked=blind)]
    assert judge(now, mixed, rules=policy(fail_on="high")).verdict is Verdict.PASS
    before_the_rule_asked = runs_of(*GOOD, name="old", checked=seeing)
    assert judge(now, before_the_rule_asked, rules=policy(fail_on="high")).verdict is Verdict.PASS


def test_without_a_baseline_nothing_was_compared():
    """What is severe enough and not certain enough does not fail, and is not hidden either."""
    doubtful = finding(severity=Severity.CRITICAL, confidence=Confidence.LOW)
    decision = judge(runs_of(100.0, findings=[doubtful]), baseline=None, fail_on="critical")
    assert decision.verdict is Verdict.PASS
    assert [judgement.reason for judgement in decision.of(Result.WATCHED)] == ["unsure"]
    assert "nothing was compared" in headline(decision, "en")


def test_collectives_keep_their_identity_across_runs():
    """The hash of a communication group differs from run to run; the finding is the same."""
    before = finding(subject=Subject("collective", "hcom_allReduce__952_7_1", (0,)))
    after = finding(subject=Subject("collective", "hcom_allReduce__117_3_1", (0,)))
    known = runs_of(*GOOD, name="old", findings=[before])
    assert judge(runs_of(*FINE, findings=[after]), known, rules=policy(fail_on="high")).verdict is Verdict.PASS


def test_waivers_hold_until_their_day():
    """An exception without an end is a hole; one past its end says so."""
    entry = {"finding": "acme/*", "reason": "fixed by the next driver", "until": datetime.date(2026, 3, 1)}
    runs = runs_of(*FINE, findings=[finding()])
    valid = judge(runs, HISTORY, rules=policy(fail_on="high", waivers=[entry]))
    assert valid.verdict is Verdict.PASS
    assert valid.of(Result.WAIVED)[0].waiver.reason == "fixed by the next driver"
    over = {**entry, "until": datetime.date(2026, 2, 28)}
    expired = judge(runs, HISTORY, rules=policy(fail_on="high", waivers=[over]))
    assert expired.verdict is Verdict.FAIL
    assert expired.of(Result.FAIL)[0].waiver is not None
    unused = judge(runs_of(*FINE), HISTORY, rules=policy(fail_on="high", waivers=[over]))
    assert unused.verdict is Verdict.PASS
    assert unused.notes[0][0] == "waiver_over"
    elsewhere = {**entry, "subject": "rank 3"}
    assert judge(runs, HISTORY, rules=policy(fail_on="high", waivers=[elsewhere])).verdict is Verdict.FAIL
    metric = {"metric": "step.time_us", "reason": "bigger model", "until": datetime.date(2027, 1, 1)}
    assert judge(runs_of(*SLOW), HISTORY, rules=policy(waivers=[metric])).verdict is Verdict.PASS


def test_a_section_that_can_never_apply_is_told():
    """`modle = …` would silently switch its limits off."""
    rules = policy(when=[{"match": {"modle": "m"}, "fail_on": "low"}])
    assert ("unknown_attribute", {"name": "modle"}) in judge(runs_of(*FINE), HISTORY, rules=rules).notes


def test_a_failure_names_the_operator_type_that_accounts_for_it():
    """ "7 % slower" without a culprit is a bug report nobody can use."""
    matmul, other = Subject("operator_type", "MatMul"), Subject("operator_type", "Add")

    def with_parts(step: float, name: str) -> object:
        return sample(
            step,
            name=name,
            facts={"step.computing_us": 1000 * step - 20_000, "step.idle_us": 20_000.0},
            more=[
                Fact("operator_type.time_us", matmul, 1000 * step - 50_000),
                Fact("operator_type.time_us", other, 30_000.0),
            ],
        )

    old = [with_parts(step, f"old{i}") for i, step in enumerate(GOOD)]
    new = [with_parts(step, f"new{i}") for i, step in enumerate(SLOW)]
    changes = judge(new, old).changes
    assert next(change.fact for change in changes) == "step.computing_us"
    assert changes[1].subject == matmul
    assert 0.9 < changes[1].share < 1.1
    assert other not in [change.subject for change in changes]
    assert_adds_up(changes, 7_000.0)


def assert_adds_up(changes, total):
    """Parts add up to the change, members to their part, unless they overlap: then nothing is left over."""
    parts = [change for change in changes if change.role is Role.PART]
    assert sum(change.difference for change in parts) == pytest.approx(total)
    for part in parts:
        members = [change for change in changes if change.role is Role.MEMBER and change.part == part.part]
        if part.overlaps:
            assert members and not any(change.rest for change in members)
        else:
            assert not members or sum(change.difference for change in members) == pytest.approx(part.difference)


NUMBER = st.floats(0, 200_000)


@settings(max_examples=80, deadline=None)
@given(
    old=st.fixed_dictionaries({}, optional=dict.fromkeys(PARTS, NUMBER)),
    new=st.fixed_dictionaries({}, optional=dict.fromkeys(PARTS, NUMBER)),
    members=st.lists(st.tuples(NUMBER, NUMBER), max_size=5),
    steps=st.tuples(st.floats(50, 200), st.floats(50, 200)),
)
def test_what_accounts_for_a_change_adds_up(old, new, members, steps):
    """Whatever was measured: parts and their rest are the change, members and theirs the part, nothing twice."""

    def side(facts, index):
        more = [
            Fact("operator_type.time_us", Subject("operator_type", f"T{i}"), pair[index])
            for i, pair in enumerate(members)
        ]
        return [sample(steps[index], facts=facts, more=more, name=f"side{index}")]

    changes = explain(side(old, 0), side(new, 1), 0.0).changes
    if changes:
        assert_adds_up(changes, 1000 * (steps[1] - steps[0]))
        assert len({change.part for change in changes if change.role is Role.PART}) <= len(PARTS)


def test_another_batch_is_another_amount_of_work():
    """Twice the batch takes twice the time: no regression, and no key says so."""
    matmul = Subject("operator_type", "MatMul")
    shapes = lambda batch: [  # noqa: E731
        Fact("operator_type.shapes", matmul, f"{batch},1024;1024,1024"),
        Fact("operator_type.time_us", matmul, 50_000.0),
    ]
    old = runs_of(*GOOD, name="old", more=shapes(8))
    decision = judge(runs_of(*[200.0] * 5, more=shapes(16)), old)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert decision.differences[0].field == "batch"
