"""Real recordings that every clone has: the fault that was built in is found, and nothing else of weight."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Role, Severity
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "tests" / "data" / "recordings"

BUILT_IN = {
    RECORDINGS / "map_py_gil_threads": ("DATA011", "Map(1)"),
    RECORDINGS / "over_parallel_cpp": ("DATA013", "Map(2)"),
    RECORDINGS / "user_code_between": ("DATA022", "run"),
    ROOT / "examples" / "slow-generator": ("DATA010", "Generator(2)"),
}


@pytest.fixture(scope="module")
def rules():
    return load_rules()


def _serious(report):
    return [f for f in report.findings if f.severity.rank >= Severity.MEDIUM.rank]


@pytest.mark.parametrize("folder", BUILT_IN, ids=lambda path: path.name)
def test_what_was_built_in_is_the_root_cause(folder, rules):
    """The one cause named is the fault of the recording, on the operation that has it."""
    report = advise([folder], rules)
    roots = [(f.rule, f.subject.id) for f in _serious(report) if f.role == Role.ROOT_CAUSE]
    assert roots == [BUILT_IN[folder]]
    assert report.summary.direction == "scheduling"


def test_a_healthy_recording_stays_quiet(rules):
    """Where the pipeline keeps up, nothing is blamed."""
    report = advise([RECORDINGS / "healthy"], rules)
    assert _serious(report) == [] and report.summary.direction == "undetermined"  # of the device nothing was recorded


def test_no_rule_fails_on_a_recording(rules):
    """Files as MindSpore writes them are read without a problem, and every rule is judged or says what it lacks."""
    for folder in (*BUILT_IN, RECORDINGS / "healthy"):
        report = advise([folder], rules)
        assert [check for check in report.checked if check.outcome.value == "error"] == []
        assert report.problems == ()
