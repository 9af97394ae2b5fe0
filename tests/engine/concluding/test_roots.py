"""Roles: a cause accounts for its symptoms, once, and never a small one for a large."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.concluding.roots import assign_roles, merge
from advisor.model import Confidence, Direction, Finding, Role, Saving, Severity, Subject, Text

RUN = Subject("run", "run")
T = Text("t", "t")


def finding(rule, verdict, severity="high", saving=100.0, subject=RUN, confidence="high"):
    return Finding(
        "", rule, verdict, Direction.COMMUNICATION, Role.CONTRIBUTING, Severity(severity), Confidence(confidence),
        subject, T, T, saving=Saving(saving, None, T) if saving else None,
    )  # fmt: skip


def roles(findings, explains, kinds=None):
    return {f.rule: f for f in assign_roles(findings, explains, kinds or {})}


def test_a_symptom_names_its_cause_and_the_cause_its_symptom():
    """The exposed communication of everyone is the slow rank's doing."""
    found = roles(
        [finding("COMM", "exposed", saving=900), finding("SLOW", "slow-rank", saving=500)],
        {"SLOW": (("exposed", "any"),)},
        {"COMM": "symptom", "SLOW": "cause"},
    )
    assert found["SLOW"].role is Role.ROOT_CAUSE and found["COMM"].role is Role.SYMPTOM
    assert found["COMM"].because == (found["SLOW"].id,) and found["SLOW"].explains == (found["COMM"].id,)
    assert found["SLOW"].id == "F1"


def test_stretches_of_another_kind_stay_when_a_long_one_is_gone():
    """Launches that come late between a function's stalls are told beside it; what else the verdict means is its."""
    found = [finding("LONG", "idle", saving=900), finding("LATE", "dispatch", saving=500)]
    explains = {"LONG": (("dispatch", "any"),)}
    assert roles(found, explains)["LATE"].role is Role.SYMPTOM
    told = {f.rule: f for f in assign_roles(found, explains, {}, strangers={("LONG", "LATE")})}
    assert told["LATE"].role is told["LONG"].role is Role.ROOT_CAUSE


def test_a_trifle_does_not_explain_a_serious_symptom():
    """A rank 1 % slow is no excuse for half a step of waiting."""
    found = roles([finding("COMM", "exposed"), finding("SLOW", "slow-rank", "low")], {"SLOW": (("exposed", "any"),)})
    assert found["COMM"].role is Role.ROOT_CAUSE


def test_a_cause_that_shows_far_more_lost_is_no_symptom():
    """Slow launches of a fifth of the step do not account for three quarters that all ranks wait for an absent one,
    though nobody knows what repairing that would give."""
    waiting = finding("ABSENT", "waiting", "critical", saving=0, confidence="low")
    for lost, role in ((720.0, Role.ROOT_CAUSE), (220.0, Role.SYMPTOM)):
        found = roles(
            [finding("HOST", "dispatch", saving=195), replace(waiting, at_stake=Saving(lost, None, T))],
            {"HOST": (("waiting", "any"),)},
            {"HOST": "cause", "ABSENT": "cause"},
        )
        assert found["ABSENT"].role is role


def test_what_a_replay_gains_beside_a_cause_is_no_symptom_of_it():
    """A host that is late before the step and experts in demand within it: mending the one leaves the other."""
    slow = finding("SLOW", "slow-rank", saving=590, subject=Subject("rank", "5", (5,)))
    for removes, rank, role in (("host", 1, Role.ROOT_CAUSE), ("", 1, Role.SYMPTOM), ("host", 5, Role.SYMPTOM)):
        late = finding("HOST", "idle", saving=290, subject=Subject("rank", str(rank), (rank,)))
        late = replace(late, saving=replace(late.saving, removes=removes))
        found = roles(
            [replace(slow, saving=replace(slow.saving, removes="compute")), late],
            {"SLOW": (("idle", "any"),)},
            {"SLOW": "cause", "HOST": "cause"},
        )
        assert found["HOST"].role is role


def test_what_all_ranks_do_makes_no_rank_slow():
    """An operator on the AI CPU of one rank is why that rank is late; on all ranks it is not why one of them is."""
    slow = finding("SLOW", "slow-rank", saving=90, subject=Subject("rank", "5", (5,)))
    for ranks, role in (((5,), Role.SYMPTOM), ((4,), Role.ROOT_CAUSE), ((), Role.ROOT_CAUSE)):
        operator = finding("TYPE", "aicpu", subject=Subject("operator_type", "TopK", ranks))
        assert roles([operator, slow], {"TYPE": (("slow-rank", "named"),)})["SLOW"].role is role


def test_a_rank_that_is_slow_itself_is_late_for_no_link_between_others():
    """Its own card explains that the others wait for it; where it has no cause of its own, the slow link may."""
    late = finding("LATE", "waiting", "medium", saving=40, subject=Subject("rank", "1", (1,)))
    link = finding("LINK", "slow-link", saving=90, subject=Subject("link", "2-7", (2, 7)))
    host = finding("HOST", "busy-host", saving=80)
    kinds = {"LATE": "symptom", "LINK": "cause", "CARD": "cause", "HOST": "cause"}
    explains = dict.fromkeys(("LINK", "CARD", "HOST"), (("waiting", "any"),))
    for ranks, told in (((1,), {"CARD", "HOST"}), ((4,), {"CARD", "LINK", "HOST"})):
        card = finding("CARD", "slow-card", saving=50, subject=Subject("rank", str(ranks[0]), ranks))
        found = roles([late, link, card, host], explains, kinds)
        by_id = {each.id: each.rule for each in found.values()}
        assert found["LATE"].role is Role.SYMPTOM and {by_id[i] for i in found["LATE"].because} == told
        assert (found["LATE"].id in found["LINK"].explains) is ("LINK" in told)


def test_time_that_was_measured_under_its_owner_is_no_symptom_of_another_cause():
    """A loader and a collector of garbage keep the device waiting, each in its own place of the step."""
    loader, garbage = finding("LOAD", "data", saving=70), finding("GC", "idle", saving=50)
    kinds = {"LOAD": "cause", "GC": "cause"}
    explains = {"LOAD": (("idle", "any"),)}
    for owned, role in (({"GC"}, Role.ROOT_CAUSE), ((), Role.SYMPTOM)):
        found = {f.rule: f for f in assign_roles([loader, garbage], explains, kinds, owned=owned)}
        assert found["GC"].role is role and found["LOAD"].role is Role.ROOT_CAUSE


def test_two_causes_that_explain_each_other_leave_one_root():
    """Explaining is no circle: the larger saving stands above."""
    found = roles(
        [finding("A", "a", saving=10), finding("B", "b", saving=20)], {"A": (("b", "any"),), "B": (("a", "any"),)}
    )
    assert found["B"].role is Role.ROOT_CAUSE and found["A"].role is Role.SYMPTOM


def test_what_is_told_of_several_ranks_is_about_each_of_them():
    """Copies of one host's cards are slow: that its hosts only wait for them is no cause beside, of whichever of its
    ranks either is told."""
    group = (4, 5, 6, 7)
    copies, host = (
        finding(rule, verdict, subject=Subject("rank", one, ranks))
        for rule, verdict, one, ranks in (("COPY", "copies", "7", group), ("HOST", "hosts", "4", group))
    )
    elsewhere = finding("HOST", "hosts", subject=Subject("rank", "2", (2,)))
    found = assign_roles([copies, host, elsewhere], {"COPY": (("hosts", "same"),)}, {"COPY": "cause", "HOST": "cause"})
    assert {f.subject.id: f.role for f in found} == {
        "7": Role.ROOT_CAUSE, "4": Role.SYMPTOM, "2": Role.ROOT_CAUSE,
    }  # fmt: skip


def test_one_verdict_about_one_subject_is_one_finding():
    """Eight processes that see the same slow map, or two rules that agree, make one finding about all ranks."""
    merged = merge([finding("A", "v", subject=Subject("pipeline_op", "Map(1)", (rank,))) for rank in range(3)])
    assert [f.subject.ranks for f in merged] == [(0, 1, 2)]
    both = merge([finding("A", "v", confidence="low"), finding("B", "v", confidence="high")])
    assert [f.rule for f in both] == ["B"]


def test_who_tells_all_late_ranks_in_one_finding_speaks_for_them():
    """A host that launches late is named, not one of its ranks, however severe the ranks' own findings are."""
    saving = Saving(5.0, None, T, removes="host")
    each = [
        replace(finding("RANK", "v", "critical", subject=Subject("rank", str(r), (r,))), saving=saving) for r in (2, 3)
    ]
    host = finding("HOST", "v", "medium", subject=Subject("rank", "2", (2, 3)))
    merged = merge([*each, host], origins={f.subject: (2, 3) for f in each})
    assert [(f.rule, f.subject.ranks) for f in merged] == [("HOST", (2, 3))]


def test_of_a_single_late_rank_the_surest_finding_speaks():
    """Its clock drops as well: that it computes longer than its peers is surer, and says what the others wait for."""
    late = replace(
        finding("RANK", "v", subject=Subject("rank", "2", (2,))), saving=Saving(5.0, None, T, removes="late")
    )
    clock = finding("CLOCK", "v", confidence="medium", subject=Subject("rank", "2", (2,)), saving=8.0)
    for findings in ([late, clock], [clock, late]):
        assert [f.rule for f in merge(findings, origins={late.subject: (2,)})] == ["RANK"]


def test_of_one_verdict_who_loses_clearly_more_speaks():
    """Hosts that pause in turn cost a twentieth of the step, launches on all of them most of it: the second is the
    answer, and what it gives; a suspicion, or a finding about as heavy, takes no place."""
    sure, whole = finding("TURN", "v", saving=10.0), finding("ALL", "v", "critical", saving=120.0, confidence="medium")
    (one,) = merge([replace(sure, saving=Saving(10.0, None, T, removes="host")), whole])
    assert (one.rule, one.confidence, one.saving and one.saving.us) == ("ALL", Confidence.MEDIUM, 120.0)
    for other in (replace(whole, confidence=Confidence.LOW), replace(whole, saving=Saving(12.0, None, T))):
        assert [f.rule for f in merge([sure, other])] == ["TURN"]


def test_an_upper_bound_that_its_own_rule_calls_slight_takes_no_place():
    """All that sharded layers exchange may be 15 ms, told as low; that their groups span hosts is known to cost 7."""
    placed, all_of_it = (
        finding("PLACED", "v", "medium", saving=7.0),
        finding("ALL", "v", "low", 15.0, confidence="medium"),
    )
    (one,) = merge([all_of_it, placed])
    assert (one.rule, one.severity, one.saving and one.saving.us) == ("PLACED", Severity.MEDIUM, 7.0)


@given(st.permutations(range(5)))
def test_the_order_in_which_findings_are_reached_is_irrelevant(order):
    """The same findings give the same report, however they came about."""
    findings = [finding(f"R{i}", f"v{i}", saving=float(i)) for i in range(5)]
    explains = {"R4": (("v1", "any"),), "R1": (("v0", "any"),)}
    assert assign_roles([findings[i] for i in order], explains, {}) == assign_roles(findings, explains, {})


def test_beside_a_cause_of_weight_a_trifle_only_contributes():
    """The first screen names what matters; alone, even a small cause is the cause."""
    both = roles([finding("A", "a"), finding("B", "b", "low", saving=1)], {}, {"A": "cause", "B": "cause"})
    assert both["A"].role is Role.ROOT_CAUSE and both["B"].role is Role.CONTRIBUTING
    assert roles([finding("B", "b", "low", saving=1)], {}, {"B": "cause"})["B"].role is Role.ROOT_CAUSE


def test_what_is_wrong_with_a_type_accounts_for_its_operator():
    """One long multiplication and its unaligned type are one cause; a call that was odd once is another."""
    found = [
        finding("ROWS", "unaligned", "medium", subject=Subject("operator_type", "MatMul")),
        finding("LONG", "hotspot", saving=0, subject=Subject("operator", "net/MatMul-op1")),
        finding("ODD", "hotspot", saving=10, subject=Subject("operator", "net/MatMul-op2")),
        finding("SORT", "hotspot", saving=0, subject=Subject("operator", "net/Sort-op3")),
    ]
    kinds = {"ROWS": "cause", "LONG": "symptom", "ODD": "cause", "SORT": "symptom"}
    types = {"net/MatMul-op1": "MatMul", "net/MatMul-op2": "MatMul", "net/Sort-op3": "Sort"}
    by_rule = {f.rule: f.role for f in assign_roles(found, {"ROWS": (("hotspot", "same"),)}, kinds, types)}
    assert by_rule["LONG"] is Role.SYMPTOM
    assert {rule for rule, role in by_rule.items() if role is Role.ROOT_CAUSE} == {"ROWS", "ODD", "SORT"}


def test_more_work_and_a_slow_card_on_one_rank_are_two_findings():
    """Balancing the work leaves the card slow: each keeps its own saving and its own remedy."""
    rank = Subject("rank", "2", (2,))
    work, card = (
        replace(
            finding(rule, "slow-compute-rank", saving=us, subject=rank), saving=Saving(us, None, T, removes=removes)
        )
        for rule, us, removes in (("WORK", 11.0, "compute"), ("CARD", 14.0, "speed"))
    )
    merged = merge([work, card], origins={rank: (2, 5)})
    assert {f.rule: (f.saving and f.saving.us, f.subject.ranks) for f in merged} == {
        "WORK": (11.0, (2, 5)), "CARD": (14.0, (2,)),
    }  # fmt: skip


def test_who_counts_the_same_again_joins_the_part_that_saves_most_and_no_other():
    """Chains that share no kernel are told one by one, each with its own saving, also beside a rule that counts the
    kernels of all of them."""
    rotary, norm, copies = (
        finding(rule, "v", saving=us) for rule, us in (("ROTARY", 30.0), ("NORM", 20.0), ("C", 90.0))
    )
    copies = replace(copies, saving=None, at_stake=copies.saving)
    merged = merge([finding("SMALL", "v", saving=25.0), copies, norm, rotary], disjoint=("ROTARY", "NORM", "C"))
    told = {f.rule: f.saving and f.saving.us for f in merged}
    assert told == {"ROTARY": 30.0, "NORM": 20.0, "C": None}
