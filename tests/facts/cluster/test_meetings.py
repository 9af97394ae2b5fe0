"""Where ranks meet: a replay needs to know who waited for whom."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.profiles import write_originals
from benchmarks.simulator import Fault, Scenario, simulate, write_profile


def test_collectives_that_one_rank_does_not_name_are_not_replayed(tmp_path: Path) -> None:
    """Without names nobody knows which collectives a rank took part in: no gain of nothing is promised, and who waits
    for the slow rank is still told."""
    write_originals(tmp_path, corpus=False)
    file = next((tmp_path / "db").rglob("ascend_pytorch_profiler_0.db"))
    with sqlite3.connect(file) as connection:
        connection.execute("ALTER TABLE COMMUNICATION_OP RENAME COLUMN opName TO other")
    report = advise([tmp_path / "db"], load_rules())
    roots = {f.verdict: f for f in report.findings if f.role.value == "root_cause"}
    assert "slow-compute-rank" in roots and "exposed-communication" not in roots
    saving = roots["slow-compute-rank"].saving
    assert saving is not None and "comparison" in saving.basis.en and (saving.us or 0) > 1000


def test_ranks_that_send_to_each_other_are_not_compared_as_peers(tmp_path: Path) -> None:
    """With kernels alone the transfers tell that there are stages: more work of the second one accuses no rank."""
    run = simulate(Scenario(pipeline=2, micro_batches=4, steps=4, layers=4, faults=(Fault("stage_imbalance", 1, 0.5),)))
    write_profile(run, tmp_path)
    for path in sorted(tmp_path.rglob("*")):
        if path.is_file() and path.name != "kernel_details.csv" and not path.name.startswith("profiler_info"):
            path.unlink()
    verdicts = {finding.verdict for finding in advise([tmp_path], load_rules()).findings}
    assert "slow-compute-rank" not in verdicts, verdicts
