"""The judged step as a trace."""

from __future__ import annotations

import json

import pytest
from fake_reports import SAMPLES, cluster, data_bound

from advisor.render import render


@pytest.mark.parametrize("name", SAMPLES)
def test_a_trace_is_what_viewers_open(name):
    """Chrome's format: complete events with start and duration, metadata and instants, nothing else."""
    events = json.loads(render(SAMPLES[name](), "trace"))["traceEvents"]
    assert {event["ph"] for event in events} <= {"X", "M", "i"}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_the_findings_are_marks_on_their_rank():
    """Whoever opens it sees where to look."""
    events = json.loads(render(cluster(), "trace"))["traceEvents"]
    slow = next(f for f in cluster().findings if f.verdict == "slow-compute-rank")
    mark = next(event for event in events if event["ph"] == "i" and event["name"].startswith(f"{slow.id} "))
    assert mark["pid"] == 3
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names[3] == "rank 3" and "critical path" in names.values()


def test_one_rank_has_its_step_too():
    """Without a cluster the step of usual length is there."""
    events = json.loads(render(data_bound(), "trace", "zh"))["traceEvents"]
    assert any(event["ph"] == "X" for event in events)
