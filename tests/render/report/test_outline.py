"""The order in which findings are told."""

from __future__ import annotations

from dataclasses import replace

from fake_reports import cluster, data_bound, healthy, reports
from hypothesis import given

from advisor.model import COLLECTION, Direction, Fact, Finding, MissingEvidence, Role, Severity, Subject
from advisor.render.report.outline import branches, in_full, next_collection


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


def test_no_setting_is_asked_for_that_was_on():
    """Who recorded with Level1 and a schedule lost a file on the way; the same settings bring nothing new."""
    on = (Fact("collection.level", COLLECTION, "Level1"), Fact("collection.has_schedule", COLLECTION, True))
    told = next_collection(replace(data_bound(), facts=(*data_bound().facts, *on))).en
    assert "Level1" not in told and "its folder lacks" in told
    alone = Fact("collection.database_only", COLLECTION, True)
    told = next_collection(replace(data_bound(), facts=(*data_bound().facts, *on, alone))).en
    assert "export_type" in told and "its folder lacks" not in told, "text that nobody asked for is not lost"
    host = Fact("collection.records_device", COLLECTION, False)
    told = next_collection(replace(data_bound(), facts=(*data_bound().facts, *on, host))).en
    assert "ProfilerActivity.NPU" in told and "its folder lacks" not in told, "what was not to be recorded is not lost"


def test_older_mindspore_is_asked_in_its_own_words():
    """MindSpore up to 2.2 knows neither schedules nor profiler levels."""
    profile = replace(data_bound().profile, layout="mindspore_legacy")
    missing = (
        MissingEvidence("hccl_raw_*.csv", "mindspore.profiler.Profiler(profile_communication=True)", ("COMM040",)),
    )
    told = next_collection(replace(data_bound(), profile=profile, missing_evidence=missing)).en
    assert "mindspore.profiler.Profiler(" in told and "schedule" not in told and "Level1" not in told


def test_what_is_merely_remarked_is_not_told_as_what_holds_a_healthy_run_back():
    """A large operator that nothing is known to be wrong with stands in the list, behind everything that costs."""
    one = cluster().findings[0]
    remark = replace(
        one, id="R", verdict="operator-hotspot", role=Role.CONTRIBUTING, severity=Severity.LOW, saving=None, explains=()
    )
    fine = replace(healthy(), findings=(remark,))
    assert in_full(fine, branches(fine)) == [] and len(branches(fine)) == 1
    slow = replace(cluster(), findings=(remark, one))
    assert [branch.finding.id for branch in branches(slow)] == ["F1", "R"]
    assert [branch.finding.id for branch in in_full(slow, branches(slow))] == ["F1"]


def test_the_suspect_that_the_headline_names_stands_first():
    """More time is lost to a late rank than the surest cause gives back: who reads that on top reads of it first."""
    report = cluster()
    surest, late = report.findings[:2]
    assert surest.saving is not None
    surest = replace(
        surest, id="F1", role=Role.ROOT_CAUSE, severity=Severity.MEDIUM, direction=Direction.COMPUTATION, explains=()
    )
    more = replace(surest.saving, us_per_step=10 * surest.saving.us)
    late = replace(
        late, id="F2", role=Role.CONTRIBUTING, severity=Severity.LOW, direction=Direction.SCHEDULING, saving=more,
        because=(), explains=(),
    )  # fmt: skip
    for direction, first in (("scheduling", "F2"), ("computation", "F1"), ("communication", "F1")):
        summary = replace(report.summary, direction=direction)
        told = branches(replace(report, findings=(surest, late), summary=summary))
        assert told[0].finding.id == first
    behind = replace(late, saving=replace(more, after_others_us=0.0))
    summary = replace(report.summary, direction="scheduling")
    told = branches(replace(report, findings=(surest, behind), summary=summary))
    assert told[0].finding.id == "F1", "what is over once the cause is repaired stands behind it"


def test_the_type_that_the_headline_names_is_told_first_and_in_full():
    """Of a table of sums that promises nothing: a conversion of 7 % does not stand before a scatter of 85 %."""
    one = replace(cluster().findings[0], severity=Severity.LOW, saving=None, at_stake=None, explains=(), because=())

    def taking(name: str, share: float, verdict: str, role: Role) -> Finding:
        subject = Subject("operator_type", name)
        shown = replace(one.evidence[0], fact="operator_type.compute_share", value=share, subject=subject)
        return replace(one, id=name, verdict=verdict, role=role, subject=subject, evidence=(shown,))

    summary = replace(cluster().summary, direction="undetermined")
    for share, first in ((0.85, ["Scatter", "Cast"]), (0.3, ["Cast"])):
        findings = (
            taking("Cast", 0.07, "conversion-overhead", Role.ROOT_CAUSE),
            taking("Scatter", share, "operator-hotspot", Role.CONTRIBUTING),
        )
        report = replace(cluster(), findings=findings, summary=summary)
        assert [branch.finding.id for branch in in_full(report, branches(report))] == first
