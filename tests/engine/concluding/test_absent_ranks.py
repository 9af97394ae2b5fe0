"""Where a step waits for ranks without a profile, what ranks at hand lose is no sure gain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Finding, Subject, Value
from advisor.render.wording import gain
from advisor.ruleset.files.loader import load_rules

STEP = 100_000.0
CONVOLUTION = Subject("operator_type", "Conv2D")
FLOAT: dict[str, Value] = {
    "category": "cube", "float32_share": 1.0, "compute_share": 0.5, "step_share": 0.34, "stake_share": 0.34,
    "exposed_us": 34_000.0, "time_us": 34_000.0, "count": 40, "dtypes": "FLOAT;FLOAT",
}  # fmt: skip
SLOW: dict[str, Value] = {
    "count": 10, "slow_cost_us": 12_000.0, "slow_cost_share": 0.12, "slow_count": 3, "slow_extra_us": 40_000.0,
    "usual_us": 90_000.0, "slow_steps": "3, 5, 8", "slow_pattern": "scattered", "slow_part": "communication",
}  # fmt: skip


def reached(rule: str, behind_us: float | None, more: Sequence[Fact] = ()) -> Finding:
    told = [Fact("step.time_us", RUN, STEP), Fact("communication.absent_wait_share", RUN, 0.4)]
    told += [Fact(f"operator_type.{name}", CONVOLUTION, value) for name, value in FLOAT.items()]
    told += [Fact(f"step.{name}", RUN, value) for name, value in SLOW.items()]
    told += [] if behind_us is None else [Fact("communication.behind_absent_us", RUN, behind_us)]
    told += more
    return next(f for f in decide(load_rules(strict=False), FactSet(told)).findings if f.rule == rule)


@pytest.mark.parametrize(("behind_us", "said"), [(3_000.0, "more than 3"), (0.0, "only if the ranks"), (9e4, "")])
def test_what_lies_before_the_wait_is_gained_only_if_the_absent_lose_it_as_well(behind_us: float, said: str) -> None:
    """Severity stays; the promise becomes "up to", and says how much of it hangs on ranks that nobody recorded."""
    sure, doubtful = reached("COMP010", None), reached("COMP010", behind_us)
    assert sure.saving is not None and doubtful.saving is not None and doubtful.severity == sure.severity
    assert sure.saving.kind == "estimate" and sure.saving.without_absent_us is None
    assert doubtful.saving.kind == "upper_bound" and doubtful.saving.us == sure.saving.us
    assert doubtful.saving.without_absent_us == min(behind_us, sure.saving.us)
    told = gain(doubtful.saving, "en")
    assert told.startswith("up to") and (said in told if said else "only if" not in told)


@pytest.mark.parametrize(
    ("own_us", "computed_us", "sure_us"), [(0.0, 2_300.0, 0.0), (None, 2_300.0, 2_300.0), (900.0, 2_300.0, 900.0)]
)
def test_a_type_of_operators_gives_for_certain_only_what_it_takes_behind_the_wait(
    own_us: float | None, computed_us: float, sure_us: float
) -> None:
    """The wait ends 3 ms before the step: of these other kernels take some, and some is idle."""
    told = {"communication.behind_absent_idle_us": 700.0, "communication.behind_absent_computing_us": computed_us}
    more = [Fact(name, RUN, us) for name, us in told.items()]
    more += [] if own_us is None else [Fact("operator_type.behind_absent_us", CONVOLUTION, own_us)]
    saving = reached("COMP010", 3_000.0, more).saving
    assert saving is not None and saving.without_absent_us == sure_us
    assert ("only if the ranks" in gain(saving, "en")) == (sure_us < saving.us)


def test_late_launches_give_for_certain_only_what_is_idle_behind_the_wait() -> None:
    """What kernels take there stays, however soon they are launched."""
    more = [Fact("communication.behind_absent_idle_us", RUN, 700.0)]
    told = {"host_api.single_op_share": 0.11, "host_api.single_op_us": 11_000.0, "dispatch.starved_idle_share": 0.12,
            "dispatch.starved_idle_us": 12_000.0, "dispatch.starved_share": 0.3}  # fmt: skip
    saving = reached("SCHED013", 3_000.0, [*more, *(Fact(name, RUN, value) for name, value in told.items())]).saving
    assert saving is not None and saving.us == 11_000.0 and saving.without_absent_us == 700.0


def test_whole_steps_compared_with_whole_steps_are_everyones() -> None:
    """Slow steps are slow on all ranks, whoever made them so: that promise hangs on nobody."""
    assert reached("SCHED070", 3_000.0).saving == reached("SCHED070", None).saving
