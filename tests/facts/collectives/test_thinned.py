"""Many collectives of a rank: a part of them is kept, and tells what all of them tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL, facts_of

from advisor.facts.collectives.exchanges import EXCHANGES
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault

LAYERS = replace(SMALL, layers=6)


@pytest.mark.parametrize(
    "scenario",
    [
        replace(LAYERS, data=2, tensor=2, buckets=4),
        replace(LAYERS, data=2, tensor=2, buckets=4, faults=(Fault("slow_compute", 2, 0.4),)),
        replace(LAYERS, data=2, tensor=2, faults=(Fault("small_packets"),)),
        replace(LAYERS, data=4, tensor=2, faults=(Fault("redistribution"),)),
    ],
    ids=["sharded layers", "a slow rank", "small packets", "resharding"],
)
def test_a_part_of_them_leads_to_the_same_findings(scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording of a few hundred collectives is judged as one of thousands, of which one step and every second or
    fourth of the others are kept: no other cause, and savings that differ by a tenth at most."""
    _, run = facts_of(scenario, tmp_path)
    of_a_step = max(len(ex.name) / len(ex.steps) for ex in run.each(EXCHANGES).values())
    found = []
    for most in (4096, round(1.2 * of_a_step)):
        monkeypatch.setattr("advisor.facts.collectives.exchanges.MOST_OPERATIONS", most)
        report = advise([tmp_path], load_rules(), Options(jobs=1))
        found.append({(f.rule, f.subject.kind, f.severity): f.saving.us if f.saving else 0.0 for f in report.findings})
        found[-1]["direction"] = report.summary.direction
    whole, part = found
    direction = whole.pop("direction")
    assert part.pop("direction") == direction
    assert part == pytest.approx(whole, rel=0.1, abs=50)


def test_a_recording_of_one_step_is_thinned_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without marks of steps all collectives are of one, which no replay needs whole: there may be any number."""
    facts_of(replace(LAYERS, data=2, tensor=2, steps=1), tmp_path)
    monkeypatch.setattr("advisor.facts.collectives.exchanges.MOST_OPERATIONS", 10)
    run = measure([tmp_path], None, Options(jobs=1)).run
    assert run is not None
    for ex in run.each(EXCHANGES).values():
        assert len(ex.name) <= 10 < ex.weight.sum()
