"""What another cause gives while a data loader that is behind sets the pace, and once it keeps up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine.concluding.joint import tell_jointly
from advisor.engine.concluding.paced import at_the_loaders_pace
from advisor.facts.base import FactSet
from advisor.model import RUN, Confidence, Direction, Fact, Finding, Role, Saving, Severity, Text

SAME = Text("x", "x")
STEP = 1000.0


def _finding(number: int, verdict: str, direction: Direction, us: float, lone: str = "") -> Finding:
    return Finding(
        f"F{number}", f"R{number}", verdict, direction, Role.ROOT_CAUSE, Severity.HIGH, Confidence.HIGH, RUN, SAME,
        SAME, saving=Saving(us, us / STEP, SAME, lone_step=lone, of_steps=6 if lone else 1),
    )  # fmt: skip


LOADER = _finding(1, "data-starved-rank", Direction.SCHEDULING, 90.0, "12")
CARD = _finding(2, "slow-compute-rank", Direction.COMPUTATION, 150.0)
FACTS = FactSet([Fact("step.time_us", RUN, STEP), Fact("loaders.held_share", RUN, 0.6)])


def test_a_loader_takes_back_what_a_slow_card_gives():
    """Alone the card gives what the loader leaves; once that keeps up, all of it, and the loader is no mere event."""
    joint = tell_jointly(at_the_loaders_pace([LOADER, CARD], FACTS), FACTS, None, STEP)
    loader, card = joint.findings
    assert card.saving.us == pytest.approx(60.0)
    assert card.saving.after_others_us == pytest.approx(150.0)
    assert not loader.saving.lone_step
    times = joint.whatif.step_time_us
    assert (times["F2"], times["F1"], times["F1,F2"]) == pytest.approx((940.0, 910.0, 760.0))


def test_without_a_loader_that_is_certainly_behind_nothing_is_taken_back():
    """Nor are events of one step, which no later batch can eat."""
    doubtful = replace(LOADER, confidence=Confidence.LOW)
    assert at_the_loaders_pace([doubtful, CARD], FACTS) == [doubtful, CARD]
    once = replace(CARD, saving=replace(CARD.saving, lone_step="14"))
    assert at_the_loaders_pace([LOADER, once], FACTS) == [LOADER, once]
