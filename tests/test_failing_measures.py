"""A defect of the advisor that keeps something from being measured clears nothing, and is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from advisor.facts import registry
from advisor.facts.base import Family
from advisor.model import RUN, Confidence, Direction, Severity
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario, simulate, write_profile

RULES = load_rules()


def _fails(*_: object) -> NoReturn:
    raise RuntimeError("a defect")


def _failing(family: Family) -> Iterator[Family]:
    """The family with a measure that fails, and with a reduction that does."""
    yield replace(family, measure=_fails)
    if family.reduce is not None:
        yield replace(family, reduce=replace(family.reduce, function=_fails))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    write_profile(simulate(Scenario(data=2, layers=2, steps=6, seed=3)), folder, trace=True)
    return folder


def test_no_family_of_facts_fails_into_health(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each family in turn: the healthy profile is not called healthy, the failure is told by name, and nobody is
    accused with certainty of what the missing facts would have refuted."""
    known = registry.families()
    whole = advise([healthy], RULES, Options(jobs=1))
    assert whole.summary.direction == "healthy"
    for family in registry.plan(RULES.uses_facts(), frozenset()):
        for failing in _failing(family):
            monkeypatch.setattr(registry, "_built_in", lambda f=failing: {**known, f.name: f})
            report = advise([healthy], RULES, Options(jobs=1))
            assert report.summary.direction != "healthy", family.name
            told = next(
                fact.value for fact in report.facts if (fact.name, fact.subject) == ("run.failed_measures", RUN)
            )
            assert told == (family.name,)
            assert [p for p in report.problems if family.name in p.problem]
            accused = [
                finding.rule
                for finding in report.findings
                if finding.direction is not Direction.EVIDENCE
                and finding.severity.rank >= Severity.MEDIUM.rank
                and finding.confidence is not Confidence.LOW
            ]
            assert accused == [], family.name


def test_what_fails_before_the_families_ends_nothing(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are held against each other before anything is measured: where that fails it is told, and the rest is
    measured, but not called healthy."""
    monkeypatch.setattr("advisor.pipeline.leave_out_foreign", _fails)
    report = advise([healthy], RULES, Options(jobs=1))
    assert report.summary.step_time_us and report.summary.direction != "healthy"
    assert any("collection.foreign could not be measured: RuntimeError" in each.problem for each in report.problems)


def test_an_extractor_that_fails_says_nothing_of_the_profile(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user adds and what fails is a problem that is told; the advisor's own checks are all made."""
    added = replace(registry.families()["run"], name="mine", kinds=(), measure=_fails, built_in=False)
    monkeypatch.setattr(registry, "_ADDED", {"mine": added})
    monkeypatch.setattr("advisor.pipeline.plan", lambda *given: [*registry.plan(*given), added])
    report = advise([healthy], RULES, Options(jobs=1))
    assert report.summary.direction == "healthy"
    assert [p for p in report.problems if "facts of mine are incomplete" in p.problem]
