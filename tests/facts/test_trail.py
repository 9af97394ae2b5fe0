"""Evidence leads to the rows it was measured from."""

from __future__ import annotations

import csv
from dataclasses import replace

from clusters import SMALL

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile


def test_the_rows_of_the_evidence_are_those_of_its_steps(tmp_path):
    """File and lines as told hold exactly the steps that the evidence names."""
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_compute", 1, 0.4),), warm_up=True)), tmp_path)
    report = advise([tmp_path], load_rules(strict=False), Options(jobs=1))
    sources = {i.source for f in report.findings for i in f.evidence if i.source and i.source.rows}
    steps = [source for source in sources if source.file.endswith("step_trace_time.csv")]
    assert steps
    for source in steps:
        with (tmp_path / source.file).open(encoding="utf-8", newline="") as stream:
            lines = list(csv.reader(stream))
        first, last = source.rows
        at = lines[0].index("Step")
        assert [row[at] for row in lines[first - 1 : last]] == list(source.steps)
