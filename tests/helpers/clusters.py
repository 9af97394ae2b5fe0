"""Facts of simulated runs, for the cluster tests."""

from __future__ import annotations

import re

from advisor.facts.base import FactSet, Run
from advisor.model import Finding
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario, Simulation, simulate, write_profile

SMALL = Scenario(data=4, layers=3, steps=4, kernel_us=400.0, gradient_mb_per_layer=6.0, buckets=3, seed=3)
PIPELINE = Scenario(
    data=2, pipeline=2, layers=2, steps=4, micro_batches=4, kernel_us=300.0, gradient_mb_per_layer=4.0, seed=5
)


def forget_groups(folder):
    """Takes the communicators' numbers out of the names of collectives, in kernels and timelines."""
    for path in folder.rglob("*"):
        if path.name in ("kernel_details.csv", "trace_view.json"):
            path.write_text(re.sub(r"(hcom_\w+?)__\d+_", r"\1_", path.read_text()))


def facts_of(scenario: Scenario, folder) -> tuple[FactSet, Run]:
    """Every fact of this scenario's profile."""
    write_profile(simulate(scenario), folder)
    measured = measure([folder], None, Options(jobs=1))
    assert measured.run is not None
    return measured.facts, measured.run


def judged(scenario: Scenario, folder, trace: bool = False) -> tuple[Simulation, dict[str, Finding]]:
    """The run of this scenario, and what is found in its profile, with timelines or without, by rule."""
    run = simulate(scenario)
    write_profile(run, folder, trace=trace)
    return run, {finding.rule: finding for finding in advise([folder], load_rules(), Options(jobs=1)).findings}
