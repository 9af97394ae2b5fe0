"""Work that may be meant is told, and accuses nobody."""

from __future__ import annotations

from functools import cache

import pytest

from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.model import RUN, Fact, Finding, Role, Value
from advisor.ruleset.files.loader import RuleSet, load_rules


@cache
def rules() -> RuleSet:
    return load_rules(strict=False)


def judged(share: float, slow: int, **told: Value) -> list[Finding]:
    """What is said of step times in a run of 20 steps of 50 ms, so many of which are slow and cost this share."""
    cost = 50_000.0 * share
    facts: dict[str, Value] = {
        "count": 20, "time_us": 50_000.0, "usual_us": 50_000.0 - cost, "slow_count": slow, "slow_cost_us": cost,
        "slow_cost_share": share, "slow_extra_us": 20 * cost / slow, "slow_steps": "3, 5", "slow_pattern": "scattered",
        **told,
    }  # fmt: skip
    found = decide(rules(), FactSet(Fact(f"step.{name}", RUN, value) for name, value in facts.items())).findings
    return [finding for finding in found if finding.verdict == "step-jitter"]


@pytest.mark.parametrize(("share", "slow", "origin"), [(0.04, 1, "all"), (0.2, 6, "mixed"), (0.7, 3, "all")])
def test_steps_with_more_to_compute_only_contribute(share: float, slow: int, origin: str) -> None:
    """Prefill among decode steps, a validation: however much it takes, it is no cause and promises nothing."""
    found = judged(share, slow, slow_part="work", slow_origin=origin, slow_kernel_ratio=1.0)
    assert [(f.role, f.saving) for f in found] == [(Role.CONTRIBUTING, None)]


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_without_kernels_nobody_is_accused_either(share: float) -> None:
    """Taking kernel_details.csv away makes of more work a longer computation, and of a contribution no cause."""
    found = judged(share, 2, slow_part="compute", slow_origin="all")
    assert [f.role for f in found] == [Role.CONTRIBUTING]


@pytest.mark.parametrize(
    "told",
    [
        {"slow_part": "work", "slow_origin": "rank", "slow_ranks": "2"},
        {"slow_part": "host", "slow_origin": "all"},
        {"slow_part": "compute", "slow_origin": "all", "slow_kernel_ratio": 1.5},
    ],
    ids=["one rank has more work", "a pause", "the same work takes longer"],
)
def test_what_nobody_means_is_a_cause(told: dict[str, Value]) -> None:
    """One rank's work that all wait for, pauses and slower kernels cost what they cost."""
    found = judged(0.2, 4, **told)
    assert [f.role for f in found] == [Role.ROOT_CAUSE]
    assert found[0].saving is not None
