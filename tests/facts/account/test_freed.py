"""What some ranks alone have gives back what the others, and other stages, leave of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusters import facts_of

from advisor.facts.account.freed import without
from advisor.facts.cluster.accounts import accounts
from benchmarks.simulator import Fault, Scenario


@pytest.mark.parametrize("kernels", [True, False], ids=["replayed", "by the schedule"])
def test_what_one_of_even_stages_has_the_others_leave_nothing_of(tmp_path: Path, kernels: bool) -> None:
    """The first of three even stages computes a tenth less: the step still lasts as long as the other two compute, and
    gains no more than that stage's part of filling and draining, for one micro-batch of eight."""
    even = Scenario(data=1, pipeline=3, micro_batches=8, layers=2, kernel_us=600.0, steps=4, kernels=kernels)
    _, run = facts_of(even, tmp_path)
    balance = accounts(run)
    assert balance is not None
    less = 0.1 * float(balance.compute[0].mean())
    gained = without(run, (0,), less)
    assert gained is not None and 0 <= gained < 0.3 * less


def test_what_the_longest_rank_alone_has_the_step_gains(tmp_path: Path) -> None:
    """Of four ranks that do the same work one computes a quarter longer: all of it is gained, and never more."""
    late = Scenario(data=4, layers=4, steps=4, kernel_us=600.0, faults=(Fault("slow_compute", 2, 0.25),))
    _, run = facts_of(late, tmp_path)
    balance = accounts(run)
    assert balance is not None
    more = float(balance.above_others("compute", 2).mean())
    gained = without(run, (2,), more)
    assert gained is not None and 0.85 * more < gained <= more
    assert without(run, (2,), 2 * more) == pytest.approx(gained, rel=0.15), "the next rank is as long as the others"
