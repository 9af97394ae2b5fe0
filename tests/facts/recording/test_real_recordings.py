"""Public recordings whose kind, step and tables are known (ADVISOR_CORPUS names their folder)."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from advisor.model import RUN, Role
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")


@cache
def report_on(name):
    return advise([CORPUS / name], load_rules())


def value(report, name, subject=RUN):
    return next((f.value for f in report.facts if f.name == name and f.subject == subject), None)


def share_of_type(report, name):
    facts = (f for f in report.facts if f.name == "operator_type.compute_share" and f.subject.id == name)
    return next((f.value for f in facts), None)


def told(report):
    """All sentences of the report, English."""
    texts = [report.summary.headline, *(t for f in report.findings for t in (f.title, f.message, *f.doubts))]
    return [text.en for text in texts]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("real-msprof-first-launch", "kernel_benchmark"),
        ("real-msprof-rows-cut", "kernel_benchmark"),
        ("real-pt-moe-rank0-cut", "unmarked"),
        ("real-pt-trace-only", "training_steps"),
        ("real-ms-old-allreduce-tail", "training_steps"),
        ("real-msprof-device-timelines", "training_steps"),
        ("pt-text-ddp-alexnet-level1", "training_steps"),
        ("mindspore-healthy", "training_steps"),
    ],
)
def test_what_was_recorded_is_told(name, kind):
    """The kind of each recording, with a reason in both languages."""
    profile = report_on(name).profile
    assert profile.recording == kind
    assert profile.recording_reason.en
    assert profile.recording_reason.zh


@pytest.mark.parametrize("name", ["real-msprof-first-launch", "real-msprof-rows-cut", "real-pt-moe-rank0-cut"])
def test_without_marks_nothing_is_per_step(name):
    """Neither a length nor a saving nor a sentence speaks of steps, and no schedule is asked for."""
    report = report_on(name)
    assert report.summary.step_time_us is None
    assert all(f.saving is None or f.saving.us_per_step is None for f in report.findings)
    assert not [text for text in told(report) if " step" in text.lower()]
    assert "too-few-samples" not in {f.verdict for f in report.findings}


def test_first_launch_is_set_up():
    """168 ms of compilation are no state of the program; nobody owns them, and no framework is advised."""
    report = report_on("real-msprof-first-launch")
    assert report.summary.recording_us == pytest.approx(813, rel=0.01)
    assert value(report, "recording.set_up_us") > 168_000
    assert report.summary.direction not in ("scheduling", "healthy")
    assert "mindspore" not in " ".join(remedy.snippet for f in report.findings for remedy in f.remedies).lower()


def test_seven_rows_tell_no_idle_time():
    """op_statistic.csv counts 2,246 kernels: it tells the shares, and nothing tells of gaps."""
    report = report_on("real-msprof-rows-cut")
    assert share_of_type(report, "matmul_kernel") == pytest.approx(0.99997, abs=1e-4)
    assert value(report, "step.idle_share") is None
    assert value(report, "timeline.idle_share") is None


def test_step_rows_of_torch_hold_the_wait_already():
    """Five recorded steps of 2.24 ms; one figure for the idle time."""
    report = report_on("real-pt-mlp-5steps")
    assert report.summary.step_time_us == pytest.approx(2240, rel=0.02)
    assert report.summary.breakdown["idle"] == pytest.approx(0.984, abs=0.002)
    assert value(report, "timeline.idle_share") == value(report, "step.idle_share")
    first = report.findings[0]
    assert (first.verdict, first.role) == ("host-dispatch-bound", Role.ROOT_CAUSE)


def test_whole_tables_beat_a_cut_one():
    """200 of 58,235 kernels are at hand: shares by type are those of the statistic."""
    report = report_on("real-pt-moe-rank0-cut")
    assert report.summary.recording_us == pytest.approx(31.4e6, rel=0.01)
    assert report.summary.breakdown["idle"] == pytest.approx(0.878, abs=0.002)
    assert share_of_type(report, "MatMulV2") == pytest.approx(0.51, abs=0.01)
    assert share_of_type(report, "Cast") == pytest.approx(0.16, abs=0.005)
    assert not [p for p in report.problems if "contradict the gaps" in p.problem]


def test_timeline_alone_is_enough_for_idle_time():
    """A single timeline without communication: 84 % idle, of torch, and no exception's name in the problems."""
    report = report_on("real-pt-trace-only")
    assert report.profile.framework == "pytorch"
    assert report.summary.breakdown["idle"] == pytest.approx(0.84, abs=0.01)
    assert report.summary.direction == "scheduling"
    assert not [p for p in report.problems if "Error" in p.problem]


def test_every_stream_column_is_communication():
    """The tail of the older trace holds 49 ms of collectives, and no slow update. The timeline beside it tells that
    others are exposed before, that the rest of the tail computes, and that backward itself waits for the last one."""
    report = report_on("real-ms-old-allreduce-tail")
    assert report.summary.step_time_us == pytest.approx(205_400, rel=0.01)
    assert value(report, "step.tail_exposed_us") == pytest.approx(49_300, rel=0.02)
    assert value(report, "step.exposed_communication_share") == pytest.approx(0.37, abs=0.015)
    assert value(report, "step.computing_share") == pytest.approx(0.62, abs=0.01)
    assert value(report, "step.tail_operator").endswith("UnsortedSegmentSum-op199")
    assert value(report, "step.tail_operator_us") == pytest.approx(37_240, rel=0.01)
    assert value(report, "step.tail_handed_us") == pytest.approx(49_300, rel=0.02)
    assert report.summary.direction == "communication"
    assert not {f.verdict for f in report.findings if f.role == Role.ROOT_CAUSE} & {"update-tail-slow", "slow-link"}


def test_older_timelines_are_parsed_data():
    """Ten iterations, the first of them warm-up, 61 % of a step in one AllReduce that nothing hides."""
    report = report_on("real-msprof-device-timelines")
    assert [step for step, _ in report.profile.excluded_steps] == ["1"]
    assert report.summary.breakdown["exposed_communication"] == pytest.approx(0.61, abs=0.015)
    assert report.summary.direction == "communication"
    assert not {f.verdict for f in report.findings} & {"unparsed-profile", "slow-link"}
    (cause,) = [f for f in report.findings if f.verdict == "allreduce-not-overlapped"]
    assert cause.role == Role.ROOT_CAUSE
    (snippet,) = [r.snippet for r in cause.remedies if r.snippet and "all_reduce_fusion_config" in r.snippet]
    assert snippet.endswith(", 16])")
