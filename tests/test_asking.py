"""The tool never asks its reader for what it has read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from asking import asked_in_vain
from clusters import PIPELINE, SMALL

from advisor.engine.judge import judge
from advisor.model import Report
from advisor.pipeline import Options, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate, write_profile

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
CASES = sorted(path for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []
FAULTS = {
    "slow card": replace(SMALL, faults=(Fault("slow_compute", 1, 0.35),)),
    "slow data": replace(SMALL, faults=(Fault("slow_data", 1, 0.4),), framework="pytorch"),
    "uneven stages": replace(PIPELINE, faults=(Fault("stage_imbalance", 1, 0.6),)),
    "steps only": replace(SMALL, faults=(Fault("slow_compute", 1, 0.35),), kernels=False, level=0),
}


def _asked(folder: Path) -> tuple[Report, list[str]]:
    measured = measure([folder], None, Options(jobs=1))
    report = judge(measured, load_rules(strict=False))
    return report, list(asked_in_vain(report, measured.facts))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_nobody_is_asked_for_a_file_at_hand(case):
    """Over real profiles: no doubt, remedy, headline or missing evidence names a file that every rank has."""
    assert _asked(case)[1] == []


@pytest.mark.parametrize("name", FAULTS)
def test_nobody_is_asked_for_a_file_at_hand_in_simulated_runs(name, tmp_path):
    """The same where the fault is known; and without kernels the comparison of operators is asked for."""
    write_profile(simulate(FAULTS[name]), tmp_path)
    report, asked = _asked(tmp_path)
    assert asked == []
    remedies = {remedy.id for finding in report.findings for remedy in finding.remedies}
    assert ("compare-rank-operators" in remedies) == (name == "steps only")


def test_a_slow_card_is_concluded(tmp_path):
    """All operator types slower by alike factors: the card, with the factors, and the command to look at it."""
    write_profile(simulate(FAULTS["slow card"]), tmp_path)
    report, _ = _asked(tmp_path)
    found = next(finding for finding in report.findings if finding.verdict == "slow-compute-rank")
    assert "the card is slow, not its work" in found.message.en and "卡本身变慢" in found.message.zh
    assert [remedy.id for remedy in found.remedies] == ["inspect-slow-device"]
    assert "what the profile does not record" in found.remedies[0].action.en
