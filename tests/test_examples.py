"""The worked examples of docs/examples.md: from profile to remedy to verified effect, on simulated trainings."""

from __future__ import annotations

import pytest

from advisor.api import load_rules
from advisor.basics.resources import resource
from advisor.compare import compare, read_report
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

EXAMPLES = {
    "slow_rank": (
        Scenario(data=4, seed=1, faults=(Fault("slow_compute", 2, 0.4),)),
        Scenario(data=4, seed=1),
        ("slow-compute-rank", "2"),
        "rank.computing_excess_us",
    ),
    "uneven_stages": (
        Scenario(data=2, pipeline=2, micro_batches=8, layers=4, seed=1, faults=(Fault("stage_imbalance", 1, 0.5),)),
        Scenario(data=2, pipeline=2, micro_batches=8, layers=5, seed=1),
        ("stage-imbalance", "1"),
        "pipeline.work_spread",
    ),
    "unsplit_gradients": (
        Scenario(data=4, gradient_mb_per_layer=60.0, seed=1, faults=(Fault("unsplit_allreduce"),)),
        Scenario(data=4, gradient_mb_per_layer=60.0, seed=1),
        ("allreduce-not-overlapped", "run"),
        "allreduce.exposed_us",
    ),
}
"""name: training before, after the remedy, the root cause, the fact its remedy moves"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path):
    """The cause is found first, its remedy keeps its promise, and nothing new appears."""
    before, after, cause, watched = EXAMPLES[name]
    write_profile(simulate(before), tmp_path / "before")
    write_profile(simulate(after), tmp_path / "after")
    rules = load_rules()
    first, then = (read_report(str(tmp_path / side), rules) for side in ("before", "after"))
    assert (first.findings[0].verdict, first.findings[0].subject.id) == cause
    comparison = compare(first, then)
    assert comparison.comparable and comparison.outcome == "faster"
    assert cause in {(m.verdict, m.subject.id) for m in comparison.of("resolved")}
    assert not comparison.of("new")
    effects = [e for e in comparison.effects if e.finding.verdict == cause[0] and e.fact == watched]
    # A card that was swapped leaves no sign in a profile: what it gave is seen, not credited.
    outcome = "moved" if name == "slow_rank" else "kept"
    assert effects and all(effect.outcome == outcome for effect in effects)


def test_the_examples_are_told():
    """Each example stands in the documentation, with the fact that shows its effect."""
    page = resource("docs", "examples.md")
    if not page.is_file():
        pytest.skip("installed without docs")
    text = page.read_text(encoding="utf-8")
    for name, (_, _, cause, watched) in EXAMPLES.items():
        assert name in text and cause[0] in text and watched in text
