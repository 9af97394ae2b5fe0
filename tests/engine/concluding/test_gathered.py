"""What one setting puts right is told once, with a list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.concluding.gathered import at_once, members_of
from advisor.engine.concluding.roots import assign_roles, merge
from advisor.model import Confidence, Direction, Evidence, Finding, Role, Saving, Severity, Subject, Text

BASIS = Text("x", "x")


def finding(name: str, us: float, rule: str = "R1", severity: Severity = Severity.LOW) -> Finding:
    return Finding(
        "", rule, "float32-heavy", Direction.COMPUTATION, None, severity, Confidence.MEDIUM,  # type: ignore[arg-type]
        Subject("operator_type", name), BASIS, Text(f"{name} computes.", f"{name}计算。"),
        saving=Saving(us, us / 1e6, BASIS, kind="upper_bound"),
    )  # fmt: skip


def test_types_of_one_origin_are_one_finding_with_their_gains_summed():
    """One switch for all of them: one finding about the heaviest, the others by name, all that they give together."""
    found = [finding("Conv2D", 500.0), finding("MatMulV2", 800.0, severity=Severity.MEDIUM), finding("Conv3D", 20.0)]
    (one,) = merge(found, together={"R1"})
    assert one.subject.id == "MatMulV2"
    assert one.severity is Severity.MEDIUM
    assert one.saving is not None and (one.saving.us, one.saving.kind) == (1320.0, "upper_bound")
    assert one.message.en == "MatMulV2 computes. The same holds for Conv2D (up to 500\xa0µs), Conv3D (up to 20\xa0µs)."
    assert one.message.zh == "MatMulV2计算。同样情况还有：Conv2D（至多500\xa0µs）、Conv3D（至多20\xa0µs）。"


def test_the_sum_is_as_sure_as_its_parts_are_by_their_weight() -> None:
    """From the least of all of them to the most: one small type of which little is known widens no large one."""
    sure, unsure = finding("MatMulV3", 900.0), finding("Attention", 100.0)
    assert sure.saving is not None and unsure.saving is not None
    parts = [(sure, replace(sure.saving, error_share=0.1)), (unsure, replace(unsure.saving, error_share=0.5))]
    (one,) = merge([replace(each, saving=saving) for each, saving in parts], together={"R1"})
    assert one.saving is not None and one.saving.error_share == pytest.approx(0.14)


def test_of_findings_that_promise_nothing_the_largest_is_told() -> None:
    """Operator tables without steps promise nothing: the type that takes most is the one in the title."""
    small, large = (
        replace(finding(name, 0.0), saving=None, evidence=(Evidence("operator_type.compute_share", share, "ratio"),))
        for name, share in (("Cast", 0.06), ("TransData", 0.22))
    )
    (one,) = merge([small, large], together={"R1"})
    assert one.subject.id == "TransData"


def test_what_a_clause_saw_of_the_run_does_not_tell_which_is_the_largest() -> None:
    """A condition may name the run's facts first; they are the same for all types. What it saw of a type decides."""
    small, large = (
        replace(
            finding(name, 0.0), saving=None,
            evidence=(
                Evidence("operators.update_compute_share", 0.0, "ratio"),
                Evidence("operator_type.compute_share", share, "ratio", subject=Subject("operator_type", name)),
            ),
        )
        for name, share in (("Cast", 0.06), ("Transpose", 0.22))
    )  # fmt: skip
    (one,) = merge([small, large], together={"R1"})
    assert one.subject.id == "Transpose"


def test_other_rules_keep_a_finding_for_each_subject():
    """Two hot types are two places to look."""
    found = [finding("Conv2D", 500.0), finding("MatMulV2", 800.0)]
    assert len(merge(found)) == 2
    mixed = merge([*found, finding("Conv2D", 1.0, rule="R2")], together={"R2"})
    assert [f.subject.id for f in mixed] == ["Conv2D", "MatMulV2"]


def test_ranks_of_one_origin_are_one_finding_about_all_of_them():
    """One variable of the job, seen by eight processes, is told once, with the ranks."""
    each = [replace(finding(str(n), 0.0), subject=Subject("rank", str(n), (n,)), saving=None) for n in range(8)]
    (one,) = merge(each, together={"R1"})
    assert one.subject.ranks == tuple(range(8))
    assert one.message.en == "0 computes. The same holds for ranks 1-7."


@given(st.lists(st.tuples(st.integers(0, 7), st.floats(1, 1000)), min_size=1, max_size=12))
def test_ranks_of_one_stage_lose_time_at_once(told):
    """Eight ranks that stall alike cost each stage one stall, however many replicas it has; stages come in turn."""
    stages = {rank: f"stage {rank // 2}" for rank in range(8)}
    weighed = [(Subject("rank", str(rank), (rank,)), us) for rank, us in told]
    whole = at_once(weighed, stages)
    assert max(us for _, us in told) <= whole <= sum(us for _, us in told) + 1e-6
    per_rank = [sum(us for other, us in told if other == rank) for rank in range(8)]
    assert whole == pytest.approx(sum(max(per_rank[i : i + 2]) for i in range(0, 8, 2)))
    assert at_once([(Subject("run", "run"), 5.0), *weighed], stages) == pytest.approx(whole + 5.0)


def test_of_many_the_heaviest_are_named():
    """A list of forty types fits no sentence."""
    (one,) = merge([finding(f"Type{n:02}", 100.0 - n) for n in range(40)], together={"R1"})
    assert one.message.en.endswith("and 33 more.")


def test_one_finding_about_several_types_accounts_for_each_of_them():
    """One switch mends all types, so that none of them is a cause of its own below it."""
    hot = [
        replace(finding(name, 10.0, rule="HOT"), verdict="operator-hotspot") for name in ("Conv2D", "MatMulV2", "Sort")
    ]
    found = [finding("Conv2D", 500.0), finding("MatMulV2", 800.0), *hot]
    done = assign_roles(
        merge(found, together={"R1"}), {"R1": (("operator-hotspot", "same"),)}, {"R1": "cause", "HOT": "symptom"},
        members=members_of(found, {"R1"}),
    )  # fmt: skip
    roles = {f.subject.id: f.role for f in done if f.rule == "HOT"}
    assert roles["Conv2D"] is roles["MatMulV2"] is Role.SYMPTOM and roles["Sort"] is not Role.SYMPTOM
