"""One wait has one root: a cause that gives nothing once a larger one is repaired only contributes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine.concluding.contained import with_one_root_each
from advisor.model import RUN, Confidence, Direction, Finding, Role, Saving, Severity, Text, WhatIf

SAME = Text("x", "x")
STEP = 1000.0


def finding(number: int, us: float, **changes: object) -> Finding:
    saving = Saving(us, us / STEP, SAME, kind=str(changes.pop("kind", "estimate")))
    found = Finding(
        f"F{number}", f"R{number}", f"verdict-{number}", Direction.SCHEDULING, Role.ROOT_CAUSE, Severity.HIGH,
        Confidence.HIGH, RUN, SAME, SAME, saving=saving,
    )  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]


def whatif(gains: dict[str, float]) -> WhatIf:
    names = tuple(name for name in gains if "," not in name)
    return WhatIf(names, {"": STEP, **{key: STEP - us for key, us in gains.items()}})


def roles(findings: list[Finding]) -> dict[str, Role]:
    return {f.verdict: f.role for f in findings}


@pytest.mark.parametrize(("larger", "smaller", "both"), [(300, 290, 300), (300, 100, 301), (80, 60, 91)])
def test_what_a_larger_cause_gives_back_has_no_second_root(larger: float, smaller: float, both: float) -> None:
    """Two root causes for one wait would promise it twice."""
    told = [finding(1, larger), finding(2, smaller)]
    found = with_one_root_each(told, whatif({"F1": larger, "F2": smaller, "F1,F2": both}))
    assert roles(found) == {"verdict-1": Role.ROOT_CAUSE, "verdict-2": Role.CONTRIBUTING}
    assert (found[0].explains, found[1].because) == (("F2",), ("F1",))


@pytest.mark.parametrize(("larger", "smaller", "both"), [(300, 100, 400), (300, 100, 321), (50, 50, 100)])
def test_causes_that_add_up_stay_two_roots(larger: float, smaller: float, both: float) -> None:
    """What a second repair still gives is a cause of its own."""
    told = [finding(1, larger), finding(2, smaller)]
    assert with_one_root_each(told, whatif({"F1": larger, "F2": smaller, "F1,F2": both})) == told


def test_a_cause_that_gives_something_with_a_third_is_no_part_of_the_first() -> None:
    """Two late ranks hide each other: that one gives nothing after another says nothing while a third is late."""
    told = [finding(1, 300), finding(2, 100), finding(3, 50)]
    gains = {"F1": 300, "F2": 100, "F3": 50, "F1,F2": 300, "F1,F3": 350, "F2,F3": 150, "F1,F2,F3": 450}
    assert with_one_root_each(told, whatif(gains)) == told


@pytest.mark.parametrize(
    "changes",
    [{"confidence": Confidence.LOW}, {"kind": "upper_bound"}, {"role": Role.CONTRIBUTING}],
)
def test_what_is_less_sure_takes_nothing_from_what_is_surer(changes: dict[str, object]) -> None:
    """A suspicion, a mere bound and what is no root itself hold no cause that is known."""
    told = [finding(1, 300, **changes), finding(2, 290)]
    assert with_one_root_each(told, whatif({"F1": 300, "F2": 290, "F1,F2": 300})) == told


def test_the_report_keeps_its_order_and_its_links() -> None:
    """Root causes stand first, numbers follow the order, and every link names what it named before."""
    symptom = replace(finding(4, 0), role=Role.SYMPTOM, saving=None, because=("F2", "F3"))
    told = [finding(1, 300), finding(2, 290, explains=("F4",)), finding(3, 90, explains=("F4",)), symptom]
    gains = {"F1": 300, "F2": 290, "F3": 90, "F1,F2": 300, "F1,F3": 390, "F2,F3": 380, "F1,F2,F3": 390}
    found = with_one_root_each(told, whatif(gains))
    assert [f.id for f in found] == ["F1", "F2", "F3", "F4"]
    assert [f.verdict for f in found] == ["verdict-1", "verdict-3", "verdict-2", "verdict-4"]
    assert found[3].because == ("F2", "F3")
    assert (found[0].explains, found[2].because) == (("F3",), ("F1",))
    assert (found[1].explains, found[2].explains) == (("F4",), ("F4",))


@pytest.mark.parametrize(("smaller", "both", "role"), [
    (4, 304, Role.CONTRIBUTING), (5, 305, Role.ROOT_CAUSE), (0, 340, Role.ROOT_CAUSE),
])  # fmt: skip
def test_next_to_nothing_is_no_root_beside_a_cause_of_weight(smaller: float, both: float, role: Role) -> None:
    """Under half a percent of the step, whatever else is repaired, nobody would see; what a larger one hides counts."""
    told = [finding(1, 300), finding(2, smaller, severity=Severity.LOW)]
    found = with_one_root_each(told, whatif({"F1": 300, "F2": smaller, "F1,F2": both}))
    assert roles(found) == {"verdict-1": Role.ROOT_CAUSE, "verdict-2": role}


def test_where_all_causes_give_next_to_nothing_none_is_lesser() -> None:
    """Then there is no cause of weight beside which they could be trifles."""
    told = [finding(1, 4), finding(2, 3)]
    assert with_one_root_each(told, whatif({"F1": 4, "F2": 3, "F1,F2": 7})) == told
