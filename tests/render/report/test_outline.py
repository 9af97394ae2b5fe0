"""The order in which findings are told."""

from __future__ import annotations

from dataclasses import replace

from fake_reports import cluster, data_bound, reports
from hypothesis import given

from advisor.model import Role
from advisor.render.report.outline import branches, next_collection


@given(reports)
def test_every_finding_stands_in_one_place(report):
    """Whatever findings claim about each other, none is lost and none is told twice."""
    told = [found.id for branch in branches(report) for found in (branch.finding, *branch.below())]
    assert sorted(told) == sorted(finding.id for finding in report.findings)


def test_causes_stay_on_top_even_if_they_name_a_cause():
    """A root cause is never folded away under another."""
    report = data_bound()
    findings = (replace(report.findings[0], because=("F4",)), *report.findings[1:])
    assert [branch.finding.id for branch in branches(replace(report, findings=findings))] == ["F1", "F4"]


def test_symptoms_that_blame_each_other():
    """A cycle is cut, not followed forever."""
    a, b = (replace(cluster().findings[2], id=i, because=(j,), role=Role.SYMPTOM) for i, j in (("A", "B"), ("B", "A")))
    assert [branch.finding.id for branch in branches(replace(cluster(), findings=(a, b)))] == ["B"]


def test_the_next_collection_is_one_run():
    """What to change next time, not a list of settings that exclude one another."""
    assert "Level1" in next_collection(data_bound()).en
    assert next_collection(replace(data_bound(), missing_evidence=())) is None
