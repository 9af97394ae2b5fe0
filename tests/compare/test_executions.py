"""Recordings that hold another number of executions, and operators whose work goes on under another name."""

from __future__ import annotations

import pytest

from advisor.compare import compare
from advisor.model import (
    RUN,
    Check,
    Confidence,
    Direction,
    Fact,
    Finding,
    Outcome,
    ProfileInfo,
    Report,
    Role,
    Saving,
    Severity,
    Subject,
    Summary,
    Text,
)

SAME = Text("x", "x")
PROFILE = ProfileInfo("p", "pytorch", "files", (0,), 1, has_steps=False)
TYPES = {"MatMul": 70.0, "RmsNorm": 5.0, "Cast": 2.0, "Attention": 90.0, "Add": 3.0, "Gather": 4.0}


def recorded(executions: int, slower: float = 1.0, odd: float = 1.0, step: bool = False) -> Report:
    """Sums over so many executions of twenty calls of each type, microseconds; `odd` is what one type's calls are
    multiplied by."""
    facts = []
    for name, us in TYPES.items():
        calls = executions * 20 * (odd if name == "Attention" else 1.0)
        subject = Subject("operator_type", name)
        facts.append(Fact("operator_type.count", subject, calls))
        facts.append(Fact("operator_type.time_us", subject, calls * us * slower))
    facts.append(Fact("operators.compute_us", RUN, sum(f.value for f in facts if f.name.endswith("time_us"))))
    if step:
        facts.append(Fact("step.time_us", RUN, 1e6))
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
        (recorded(100, step=True), recorded(50, step=True)),
    ],
)
def test_sums_stay_what_they_are_where_nothing_tells_of_more_executions(before: Report, after: Report):
    told = compare(before, after)
    assert not [each for each in told.obstacles if each.what == "executions"]
    values = {fact.name: fact.value for fact in after.facts if fact.subject == RUN}
    assert [each.after for each in told.metrics if each.fact == "operators.compute_us"] in (
        [values["operators.compute_us"]], [],
    )  # fmt: skip


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
        facts = (Fact("step.time_us", RUN, 1e3 * length), Fact("timeline.longest_gap_us", RUN, 1e3 * gap))
        sides.append(Report(PROFILE, Summary("undetermined", SAME), facts=facts))
    told = compare(*sides)
    assert told.outcome == outcome
    assert ("one pause" in told.headline.en) == (outcome == "unknown") == ("No difference" not in told.headline.en)


def test_a_pause_that_went_is_a_change():
    """What was waited for, and is not any more, made the recording shorter."""
    before, after = (
        Report(PROFILE, Summary("undetermined", SAME), facts=(
            Fact("step.time_us", RUN, length), Fact("timeline.longest_gap_us", RUN, gap),
        ))
        for length, gap in ((574e3, 500e3), (74e3, 1e3))
    )  # fmt: skip
    assert compare(before, after).outcome == "faster"
