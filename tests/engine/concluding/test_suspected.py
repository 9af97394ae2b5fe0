"""While somebody is suspected, what the suspect would account for accuses nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.engine.concluding.allclear import Loss
from advisor.engine.concluding.roots import assign_roles
from advisor.engine.concluding.suspected import suspected_owner
from advisor.model import RUN, Confidence, Direction, Finding, Report, Role, Saving, Severity, Subject, Text
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

T = Text("t", "t")
EXPLAINS = {"RANK": (("exposed-communication", "any"),)}


def judged(suspect_share: float, severity: Severity, removes: str = "", kind: str = "symptom") -> Finding:
    """A finding that takes a quarter of the step, beside a cause that may account for it."""
    rank = Finding(
        "", "RANK", "slow-compute-rank", Direction.COMPUTATION, Role.CONTRIBUTING, severity, Confidence.MEDIUM,
        Subject("rank", "2", (2,)), T, T, saving=Saving(suspect_share * 1e5, suspect_share, T, removes=removes),
    )  # fmt: skip
    exposed = Finding(
        "", "COMM", "exposed-communication", Direction.COMMUNICATION, Role.CONTRIBUTING, Severity.HIGH,
        Confidence.HIGH, RUN, T, T, at_stake=Saving(25e3, 0.25, T),
    )  # fmt: skip
    return next(f for f in assign_roles([rank, exposed], EXPLAINS, {"RANK": "cause", "COMM": kind}) if f.rule == "COMM")


def test_a_symptom_of_a_suspect_is_a_suspicion() -> None:
    """A slow rank of which too little is known may be why the others wait: their communication is not to blame."""
    found = judged(0.3, Severity.LOW)
    assert (found.severity, found.role) == (Severity.LOW, Role.CONTRIBUTING)
    assert "another finding" in found.doubts[-1].en and found.doubts[-1].zh


def test_a_cause_that_a_suspect_explains_is_a_suspicion() -> None:
    """A slow link of which too little is known may be why sharded operators exchange for so long."""
    assert judged(0.3, Severity.LOW, kind="cause").severity == Severity.LOW


def test_whom_a_finding_accounts_for_is_not_suspected_of_causing_it() -> None:
    """Two that would explain each other: the one that loses more is the cause, and keeps its weight."""
    absent = Finding(
        "", "ABSENT", "waiting-on-slow-rank", Direction.COMMUNICATION, Role.CONTRIBUTING, Severity.MEDIUM,
        Confidence.LOW, RUN, T, T, at_stake=Saving(39e3, 0.39, T),
    )  # fmt: skip
    steps = replace(
        absent, rule="STEPS", verdict="exposed-communication", severity=Severity.LOW, at_stake=Saving(38.5e3, 0.385, T)
    )
    explains = {"ABSENT": (("exposed-communication", "any"),), "STEPS": (("waiting-on-slow-rank", "any"),)}
    found = {f.rule: f for f in assign_roles([absent, steps], explains, dict.fromkeys(explains, "cause"))}
    assert (found["ABSENT"].severity, found["ABSENT"].role) == (Severity.MEDIUM, Role.ROOT_CAUSE)
    assert found["STEPS"].role == Role.SYMPTOM


def test_uneven_stages_may_account_for_any_waiting() -> None:
    """Their work is moved, not removed: the others wait for far more than the step gains."""
    assert judged(0.08, Severity.LOW, "stages").severity == Severity.LOW


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_who_cannot_account_for_it_excuses_nothing(share: float) -> None:
    """A suspect that loses less than the symptom leaves it what it is."""
    found = judged(share, Severity.LOW)
    assert (found.severity, found.role) == (Severity.HIGH, Role.ROOT_CAUSE)


def test_a_cause_of_weight_explains_as_ever() -> None:
    """With evidence the suspect is the cause, and the symptom keeps its measure below it."""
    found = judged(0.3, Severity.MEDIUM)
    assert (found.severity, found.role) == (Severity.HIGH, Role.SYMPTOM)


@pytest.mark.parametrize(
    ("share", "explains", "severity", "owns"),
    [
        (0.3, ("F2",), Severity.LOW, True),
        (0.1, ("F2",), Severity.LOW, False),  # less than is lost
        (0.3, (), Severity.LOW, False),  # the loss is none of its symptoms
        (0.3, ("F2",), Severity.HIGH, False),  # a cause of weight leads without this
    ],
)
def test_the_suspect_whose_symptom_the_loss_is_gives_it_its_direction(
    share: float, explains: tuple[str, ...], severity: Severity, owns: bool
) -> None:
    """A report that calls the wait a symptom of a late host does not call it communication above."""
    late = Finding(
        "F1", "RANK", "host-dispatch-bound", Direction.SCHEDULING, Role.ROOT_CAUSE, severity, Confidence.HIGH,
        Subject("rank", "3", (3,)), T, T, saving=Saving(share * 1e5, share, T), explains=explains,
    )  # fmt: skip
    waits = replace(judged(0.02, Severity.LOW), id="F2", role=Role.SYMPTOM)
    loss = Loss("communication", 0.25, T, ("exposed-communication",))
    assert suspected_owner(loss, [late, waits]) == (late if owns else None)


def _idling(folder: Path, idle: Sequence[float]) -> Report:
    """Ranks of a job of eight in one step of 650 ms; what one idles, the others wait for it in collectives."""
    rows = [f"1,rank,{rank},240000,{400000 - us},0,0,{us},640000,0,,0" for rank, us in enumerate(idle, 4)]
    header = (
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing"
    )
    output = folder / "cluster_analysis_output"
    output.mkdir(parents=True)
    (output / "cluster_step_trace_time.csv").write_text("\n".join([header, *rows]) + "\n")
    return advise([folder], load_rules(config=load_config(None)))


def test_what_two_ranks_idle_on_average_is_the_late_ones(tmp_path: Path) -> None:
    """Rank 4 idles and rank 5 waits for it: the headline names rank 4, the idle time of their mean stands as its
    symptom, and what remains beside it is communication."""
    report = _idling(tmp_path, [300000, 4000])
    assert "rank 4" in report.summary.headline.en
    assert report.summary.direction == "scheduling"
    roles = {f.verdict: f.role for f in report.findings}
    assert roles["device-idle-gaps"] == Role.SYMPTOM
    assert report.accounting is not None
    left = report.accounting.unexplained_parts_us
    assert left["communication"] > 90000 > 10000 > left.get("idle", 0.0)


def test_what_all_ranks_idle_is_none_of_one_that_idles_more(tmp_path: Path) -> None:
    """Where the peers idle for a quarter of the step themselves, one that idles longer does not explain that."""
    report = _idling(tmp_path, [300000, *[160000] * 5])
    shown = next(f for f in report.findings if f.verdict == "device-idle-gaps")
    assert shown.role != Role.SYMPTOM
    assert {f.subject.id for f in report.findings if f.verdict == "idle-imbalance"} == {"4"}
