"""When nothing was found: an all-clear needs evidence."""

from __future__ import annotations

import pytest

from advisor import advise
from advisor.engine.concluding.allclear import objection
from advisor.engine.concluding.summary import summarise
from advisor.facts.base import Fact, FactSet
from advisor.model import RUN, Check, Confidence, Direction, Finding, Outcome, Role, Saving, Severity, Subject, Text

WELL = {"run.world_size": 8, "step.time_us": 1e5, "step.idle_share": 0.02, "step.exposed_communication_share": 0.08}


def facts(**changed: float | None) -> FactSet:
    values = {**WELL, **{name.replace("__", "."): value for name, value in changed.items()}}
    return FactSet(Fact(name, RUN, value, 5) for name, value in values.items() if value is not None)


def direction(known: FactSet) -> str:
    return summarise([], [Check("X001", Outcome.PASS)], known).direction


def test_a_measured_run_without_findings_is_healthy():
    """Idle time and exposed communication were seen, and are small."""
    assert direction(facts()) == "healthy"


@pytest.mark.parametrize("unseen", ["step.idle_share", "step.exposed_communication_share"])
def test_what_was_not_measured_is_not_cleared(unseen):
    """One file of many shows neither waiting nor idling: silence about them is no all-clear."""
    assert direction(facts(**{unseen: None})) == "undetermined"


def test_one_rank_alone_has_no_communication_to_clear():
    """A single card is healthy without any figure on communication."""
    assert direction(facts(run__world_size=1, step__exposed_communication_share=None)) == "healthy"


def test_a_step_that_is_mostly_waiting_is_not_healthy_because_no_rule_knows_why():
    """One rank of a pipeline that waits 92 % of its step, all others missing."""
    lost = facts(step__exposed_communication_share=0.92)
    assert direction(lost) == "undetermined"
    assert "94 %" in objection(lost).en


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


def test_a_pipelines_bubble_and_sharded_layers_are_explained():
    """What the schedule and the sharding need is no riddle."""
    known = facts(
        step__exposed_communication_share=0.5,
        communication__exposed_without_bubble_share=0.25,
        communication__redistribution_share=0.2,
    )
    assert direction(known) == "healthy"


@pytest.mark.parametrize(
    ("link", "en", "zh"),
    [("3-*", "all links of rank 3", "rank 3的所有链路"), ("*-3", "all links into rank 3", "进入rank 3的所有链路"),
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
    if content is not None:
        (output / "dataset.csv").write_text(content)
    report = advise(tmp_path)
    assert report.summary.direction == verdict
    assert content is None or "dataset.csv" in report.summary.headline.en
