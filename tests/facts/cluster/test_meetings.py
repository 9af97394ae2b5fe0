"""Where ranks meet: a replay needs to know who waited for whom."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.mutants.profiles import write_originals


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
