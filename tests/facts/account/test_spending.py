"""The step is accounted for part by part, before anything is judged."""

from __future__ import annotations

import pytest
from clusters import facts_of
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.account.spending import LOST, UNAVOIDABLE, USEFUL, measure, spend
from advisor.facts.base import FactSet, Run
from advisor.model import RUN, Fact
from advisor.sources.base import Profile
from benchmarks.simulator import Scenario

STEP = 1000.0


def facts(**values: float) -> FactSet:
    named = {name.replace("__", "."): value for name, value in values.items()}
    return FactSet([Fact(name, RUN, value) for name, value in {"step.time_us": STEP, **named}.items()])


HALF_EXPOSED = {"step__computing_share": 0.3, "step__exposed_communication_share": 0.5, "step__idle_share": 0.2}
share = st.floats(0.0, 1.2)


@given(share, share, share, share, share, share, share)
def test_the_parts_sum_to_the_step_whatever_the_tables_say(computing, exposed, idle, bubble, transfer, wait, absent):
    """No part is below nothing, and no table that says too much makes the step longer."""
    parts = spend(
        facts(
            step__computing_share=computing, step__exposed_communication_share=exposed, step__idle_share=idle,
            pipeline__bubble_minimum_share=bubble, communication__exposed_transfer_share=transfer,
            communication__exposed_wait_share=wait, communication__absent_wait_us=absent * STEP,
            communication__exposed_without_bubble_share=exposed / 2,
        )
    )  # fmt: skip
    assert parts is not None
    assert set(parts) == {USEFUL, *UNAVOIDABLE, *LOST}
    assert all(us >= 0 for us in parts.values())
    assert sum(parts.values()) == pytest.approx(STEP)


def test_half_a_step_of_exposed_communication_is_told_part_by_part():
    """Whoever sees 50 % exposed communication learns what of it moves data and who is waited for."""
    parts = spend(
        facts(
            **HALF_EXPOSED, communication__exposed_transfer_share=0.1, communication__exposed_wait_share=0.35,
            communication__absent_wait_us=300.0,
        )
    )  # fmt: skip
    assert parts is not None
    told = {name: parts[name] for name in ("transfer", "absent_wait", "late_wait", "communication", "idle")}
    assert told == pytest.approx(
        {"transfer": 100, "absent_wait": 300, "late_wait": 50, "communication": 50, "idle": 200}
    )


def test_what_stages_and_sharded_operators_must_exchange_is_not_lost(tmp_path):
    """A healthy pipeline of sharded stages passes large activations on: their bytes, and those between its operators,
    at the links' speed are nobody's loss."""
    healthy = Scenario(
        data=2, tensor=4, pipeline=4, layers=2, micro_batches=8, kernel_us=400, activation_mb=16, steps=4, seed=3
    )
    found, _ = facts_of(healthy, tmp_path)
    lost, unavoidable, step = (found.number(name, RUN) or 0.0 for name in
                               ("account.lost_us", "account.unavoidable_us", "step.time_us"))  # fmt: skip
    assert lost < 0.06 * step
    assert unavoidable > 0.5 * step


def test_rules_see_what_is_lost_before_any_finding_explains_it():
    """Useful, unavoidable and lost are facts, and sum to the step."""
    measured = facts(**HALF_EXPOSED, communication__exposed_transfer_share=0.1)
    told = {item.name: item.value for item in measure(Run(Profile("p")), measured)}
    assert told["account.lost_us"] == pytest.approx(600)
    assert told["account.useful_us"] + told["account.unavoidable_us"] + told["account.lost_us"] == pytest.approx(STEP)


def test_without_computing_nothing_is_accounted_for():
    """A table whose computing includes idle time gives no account instead of a wrong one."""
    assert spend(facts(step__idle_share=0.2)) is None
    mixed = FactSet([*facts(**HALF_EXPOSED), Fact("step.computing_includes_idle", RUN, True)])
    assert spend(mixed) is None


@given(st.integers(2, 1000))
def test_a_row_of_many_batches_is_accounted_for_batch_by_batch(batches):
    """A recording without a schedule is one row: its parts are those of a step, of which the report speaks."""
    absent = {"communication__absent_wait_us": 0.2 * STEP}
    row = spend(facts(**HALF_EXPOSED, **absent))
    each = spend(facts(**HALF_EXPOSED, **absent, step__count=1, data__step_us=STEP / batches, data__batches=batches))
    assert row is not None and each is not None
    assert each == pytest.approx({part: us / batches for part, us in row.items()})
