"""What a symptom costs lives on in its cause."""

from __future__ import annotations

from advisor.engine.concluding.roots import assign_roles, merge
from advisor.model import Confidence, Direction, Finding, Saving, Severity, Subject, Text

SAME = Text("x", "x")


def finding(rule: str, verdict: str, subject: Subject, saving: Saving | None = None, at_stake: Saving | None = None):
    return Finding(
        "", rule, verdict, Direction.COMMUNICATION, None, Severity.HIGH, Confidence.HIGH, subject, SAME, SAME,  # type: ignore[arg-type]
        saving=saving, at_stake=at_stake,
    )  # fmt: skip


def test_an_in_house_cause_has_the_saving_of_what_it_explains():
    """A cause rule that states none must not erase the number from the report: a replayed one counts first."""
    run = Subject("run", "run")
    found = [
        finding("ACME001", "acme/wrong-switch", run),
        finding("R1", "slow-link", run, Saving(30.0, 0.03, SAME, removes="links")),
        finding("R2", "exposed-communication", run, at_stake=Saving(90.0, 0.09, SAME)),
    ]
    explains = {"ACME001": (("slow-link", "any"), ("exposed-communication", "any"))}
    told = assign_roles(found, explains, dict.fromkeys(("ACME001", "R1", "R2"), "cause"), heirs={"ACME001"})
    cause = next(f for f in told if f.rule == "ACME001")
    assert cause.saving is not None and cause.saving.us == 30.0
    assert all(f.saving is None for f in told if f.role.value == "symptom")
    only = assign_roles(found[::2], explains, dict.fromkeys(("ACME001", "R2"), "cause"), heirs={"ACME001"})
    assert only[0].saving is not None and (only[0].saving.us, only[0].saving.kind) == (90.0, "upper_bound")


def test_ranks_late_from_one_thing_are_one_finding_with_one_saving():
    """Three slow ranks of sixteen are one cause: its list of ranks is whole, its saving counted once."""
    saving = Saving(30.0, 0.03, SAME, removes="compute")
    ranks = {r: Subject("rank", str(r), (r,)) for r in (2, 7, 12)}
    found = [finding("R1", "slow-compute-rank", subject, saving) for subject in list(ranks.values())[:2]]
    (one,) = merge(found, origins=dict.fromkeys(ranks.values(), (2, 7, 12)))
    assert one.subject.ranks == (2, 7, 12)
    assert one.saving == saving


def test_two_witnesses_of_one_verdict_about_one_rank_promise_once():
    """A rank that waits for data by its device and by its host's files is one finding with the replayed saving."""
    rank = Subject("rank", "9", (9,))
    found = [
        finding("R1", "data-starved-rank", rank, Saving(14.5, 0.3, SAME, removes="data")),
        finding("R2", "data-starved-rank", rank, Saving(11.5, 0.24, SAME)),
    ]
    (one,) = merge(found, origins={rank: (9,)})
    assert one.saving == found[0].saving
    (other,) = merge(found[::-1], origins={rank: (9,)})
    assert other.saving == found[0].saving
