"""Where in the account of the step a finding's time stands."""

from __future__ import annotations

import pytest

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


@pytest.mark.parametrize("rank_by_rank", [False, True])
def test_waiting_for_longer_computing_is_not_taken_from_useful_computing(tmp_path, rank_by_rank):
    """Batches of uneven size and a slow card make peers wait: what mending it gives stands in their waiting, and the
    typical rank computes no less."""
    fault = Fault("slow_compute", 1, 0.5) if rank_by_rank else Fault("uneven_work", 0, 0.5)
    write_profile(simulate(Scenario(data=8, layers=3, steps=10, seed=3, faults=(fault,))), tmp_path)
    report = advise([tmp_path], load_rules())
    account = report.accounting
    assert account is not None and account.avoidable_us
    assert account.useful_us >= 0.9 * report.summary.breakdown["computing"] * account.step_us
