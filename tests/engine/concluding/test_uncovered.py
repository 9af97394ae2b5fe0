"""What shorter kernels give once the collectives that they hid are waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine.concluding.joint import Gains, tell_jointly
from advisor.engine.concluding.paced import beside_collectives
from advisor.facts.base import FactSet
from advisor.knowledge.savings import usual_error
from advisor.model import RUN, Confidence, Direction, Fact, Finding, Role, Saving, Severity, Subject, Text

SAME = Text("x", "x")
STEP = 1000.0
PRODUCTS, CASTS = Subject("operator_type", "MatMul"), Subject("operator_type", "Cast")
HIDDEN = Fact("step.overlapped_us", RUN, 300.0)
FACTS = FactSet([
    HIDDEN, Fact("step.time_us", RUN, STEP), Fact("step.computing_us", RUN, 800.0),
    Fact("step.kept_ratios", RUN, (1.0, 0.8, 0.6, 0.5)),
    Fact("operator_type.time_us", PRODUCTS, 600.0), Fact("operator_type.kept_ratios", PRODUCTS, (0.9, 0.8, 0.6, 0.5)),
    Fact("operator_type.time_us", CASTS, 100.0), Fact("operator_type.kept_ratios", CASTS, (0.0, 0.0, 0.0, 0.0)),
])  # fmt: skip


def _finding(subject: Subject, us: float, rule: str = "R1", **saving: object) -> Finding:
    told = replace(Saving(us, us / STEP, SAME), **saving)  # type: ignore[arg-type]
    return Finding(
        f"F{rule}", rule, "float32-heavy", Direction.COMPUTATION, Role.ROOT_CAUSE, Severity.CRITICAL, Confidence.HIGH,
        subject, SAME, SAME, saving=told,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("us", "left"),
    [(60.0, 54.0), (300.0, 240.0), (375.0, 255.0), (600.0, 300.0), (900.0, 450.0)],
    ids=["less than the first part", "a part", "between two", "all", "more than there is"],
)
def test_a_type_gives_what_the_replay_of_its_part_leaves(us: float, left: float) -> None:
    """Between two parts that were replayed gains lie on the line between theirs; the rest stays lost to the cause."""
    (finding,) = beside_collectives([_finding(PRODUCTS, us)], FACTS)
    saving = finding.saving
    assert saving is not None
    assert saving.us == pytest.approx(left) and saving.share_of_step == pytest.approx(left / STEP)
    assert saving.shortened_us == us and saving.loses_us == us
    assert "waited for" in finding.message.en and "等待" in finding.message.zh


def test_a_bound_holds_what_the_replay_is_off() -> None:
    """No more than a replay with its usual error says; and it is told as the most."""
    (finding,) = beside_collectives([_finding(PRODUCTS, 300.0, kind="upper_bound")], FACTS)
    assert finding.saving is not None and finding.saving.us == pytest.approx(240.0 * (1 + usual_error("replay")))
    assert "at most" in finding.message.en and "至多" in finding.message.zh


def test_what_hides_all_of_a_type_leaves_no_severe_finding() -> None:
    """Conversions beside reductions that queue anyway give nothing, however long they are."""
    (finding,) = beside_collectives([_finding(CASTS, 100.0)], FACTS)
    assert finding.saving is not None and finding.saving.us == 0.0
    assert finding.severity is Severity.LOW


def test_an_operator_is_judged_by_its_type_and_a_run_by_all_kernels() -> None:
    """The one call lies where its type lies; what fuses operators of several types shortens the step anywhere."""
    call = Subject("operator", "MatMul-op1")
    facts = FactSet([*FACTS, Fact("operator.type", call, "MatMul")])
    of_call, of_run = beside_collectives([_finding(call, 300.0), _finding(RUN, 400.0)], facts)
    assert of_call.saving is not None and of_call.saving.us == pytest.approx(240.0)
    assert of_run.saving is not None and of_run.saving.us == pytest.approx(320.0)


def test_what_one_setting_puts_right_goes_at_once() -> None:
    """Two types that one setting makes shorter uncover more together than each alone."""
    other = Subject("operator_type", "BatchMatMul")
    facts = FactSet([
        *FACTS, Fact("operator_type.time_us", other, 300.0),
        Fact("operator_type.kept_ratios", other, (0.9, 0.8, 0.6, 0.5)),
    ])  # fmt: skip
    both = [_finding(PRODUCTS, 150.0), _finding(other, 150.0)]
    apart, together = (beside_collectives(both, facts, rules) for rules in ((), ("R1",)))
    for alone, joint in zip(apart, together, strict=True):
        assert alone.saving is not None and joint.saving is not None
        assert joint.saving.us < alone.saving.us


@pytest.mark.parametrize(
    "finding",
    [
        _finding(PRODUCTS, 300.0, removes="compute"),
        _finding(PRODUCTS, 300.0, lone_step="7"),
        _finding(Subject("rank", "3", (3,)), 300.0),
        replace(_finding(PRODUCTS, 300.0), direction=Direction.COMMUNICATION),
        replace(_finding(PRODUCTS, 300.0), saving=None),
    ],
    ids=["replayed by itself", "of one step", "of a rank", "of communication", "without a saving"],
)
def test_other_findings_stay_as_they_are(finding: Finding) -> None:
    """Nothing is taken back twice, nor from what shortens no kernels of all ranks."""
    assert beside_collectives([finding], FACTS) == [finding]


@pytest.mark.parametrize(("hidden", "kind"), [(60.0, "estimate"), (60.1, "upper_bound"), (0.0, "estimate")])
def test_what_no_replay_weighs_is_a_bound_where_much_is_hidden(hidden: float, kind: str) -> None:
    """Up to what an estimate is off anyway it stays one; beyond, collectives may take it back."""
    facts = FactSet([Fact("step.overlapped_us", RUN, hidden)])
    (finding,) = beside_collectives([_finding(PRODUCTS, 300.0)], facts)
    assert finding.saving is not None and finding.saving.kind == kind and finding.saving.us == 300.0
    assert ("take a part of it back" in finding.saving.basis.en) == (kind == "upper_bound")


def test_as_much_as_a_replay_is_off_is_not_told() -> None:
    """What is gained but for a few per cent is gained."""
    facts = FactSet([Fact("operator_type.time_us", PRODUCTS, 600.0),
                     Fact("operator_type.kept_ratios", PRODUCTS, (1.0, 1.0, 1.0, 0.94))])  # fmt: skip
    finding = _finding(PRODUCTS, 600.0)
    assert beside_collectives([finding], facts) == [finding]


def test_beside_a_slow_link_the_replay_of_both_counts() -> None:
    """What kernels take less is replayed with what else is put right, not added as far as it counted alone."""
    (products,) = beside_collectives([_finding(PRODUCTS, 600.0)], FACTS)
    link = replace(
        _finding(Subject("link", "0-1", (0, 1)), 200.0, "R2", removes="links"), direction=Direction.COMMUNICATION
    )
    asked: list[list[tuple[str, float]]] = []

    def replay(cures):  # type: ignore[no-untyped-def]
        asked.append([(cure.removes, cure.us) for cure in cures])
        return 650.0

    assert Gains(FACTS, STEP, replay).of([link, products]) == pytest.approx(650.0)
    assert asked == [[("links", 0.0), ("kernels", 600.0)]]
    assert Gains(FACTS, STEP, lambda cures: None).of([link, products]) == pytest.approx(500.0)
    joint = tell_jointly([link, products], FACTS, None, STEP)
    assert joint.whatif is not None
