"""The packs that judge as other tools do: every recorded answer of MindInsight's own helpers is reached again."""

import json
import os
import re
from pathlib import Path

import pytest

from advisor.config import Config
from advisor.pipeline import advise, measure
from advisor.ruleset.cases import run_cases
from advisor.ruleset.lint import lint
from advisor.ruleset.loader import load_rules, rule_files
from advisor.ruleset.packs import shipped_packs

CORPUS = os.environ.get("ADVISOR_CORPUS")
needs_corpus = pytest.mark.skipif(not CORPUS, reason="ADVISOR_CORPUS names no folder of profiles")
ORACLE = Path(CORPUS or "") / "mindinsight-oracle_minddata_helper"
CASES = sorted(path.parent.name for path in ORACLE.glob("*/mindinsight_output.json")) if CORPUS else []
OPERATIONS = {
    "minddata_pipeline-general": "mindinsight/pipeline-general",
    "minddata_pipeline-dataset_op": "mindinsight/pipeline-dataset-op",
    "minddata_pipeline-map_op": "mindinsight/pipeline-map-op",
    "minddata_pipeline-batch_op": "mindinsight/pipeline-batch-op",
}


def judged(folder):
    """(verdict, subject) of every finding of the pack."""
    report = advise([folder], load_rules(config=Config(extend=("mindinsight-compat",))))
    return {(f.verdict, f.subject.id) for f in report.findings}, report


def expected(answer):
    """The verdicts that the helper's labels stand for."""
    found = set()
    for label, verdict in OPERATIONS.items():
        for name in answer.get(label, ()):
            found.add((verdict, re.sub(r"^(\w+)Op_(\d+)$", r"\1(\2)", name)))
    if "step_trace-iter_interval" in answer:
        found.add(("mindinsight/step-interval", "1"))
    if "device_queue_warning" in answer:
        found.add(("mindinsight/device-queue-warning", "1"))
    elif "minddata_device_queue_rate" in answer:
        rate = answer["minddata_device_queue_rate"]
        kind = "process" if rate["empty_rate"] > rate["empty_warning_threshold"] else "transmission"
        found.add((f"mindinsight/data-{kind}", "1"))
    return found


@needs_corpus
@pytest.mark.parametrize("name", CASES)
def test_the_helper_says_the_same(name):
    """At its thresholds the helper's strict and lenient comparisons and its gating are ours."""
    answer = json.loads((ORACLE / name / "mindinsight_output.json").read_text())
    found, report = judged(ORACLE / name)
    if "EXCEPTION" in answer:
        outcomes = {check.rule: check.outcome.value for check in report.checked}
        assert {outcomes[rule] for rule in ("MI030", "MI031", "MI032")} == {"no_data"}, "where it divides by zero"
        return
    assert found == expected(answer)
    if "minddata_device_queue" in answer:
        facts = measure([ORACLE / name], ["mindinsight.host_batches"]).facts
        rank = facts.subjects("rank")[0]
        empty, batches = answer["minddata_device_queue"][:2]
        assert facts.value("mindinsight.host_empty_count", rank) == empty
        assert facts.value("mindinsight.host_batches", rank) == batches


@needs_corpus
def test_every_oracle_case_is_tried():
    """A corpus without the recorded answers would prove nothing."""
    assert len(CASES) == 14


@needs_corpus
def test_the_cluster_helper_says_the_same():
    """Its seven checks on a real run of two unequal stages, with the numbers its own tests assert."""
    found, report = judged(Path(CORPUS) / "mindinsight-cluster_propose_pp2_4rank")
    assert found == {
        ("mindinsight/cluster-step-interval", "2"),
        ("mindinsight/pipeline-between-stage", "run"),
        ("mindinsight/pipeline-within-stage", "0"),
        ("mindinsight/pipeline-flops", "1"),
    }, "0-based stages; a link is not named: its bandwidths are sums of rates"
    values = {e.fact: e.value for f in report.findings for e in f.evidence}
    assert values["mindinsight.interval_excess"] == pytest.approx(0.2223, abs=1e-4)
    assert values["mindinsight.receive_rate"] == pytest.approx(0.2582, abs=1e-4)
    assert values["mindinsight.collective_rate"] == pytest.approx(0.6029851045963494)
    assert values["mindinsight.stage_flop_excess"] == pytest.approx(0.5094, abs=1e-4)


@pytest.mark.parametrize("name", sorted(set(shipped_packs()) - {"default"}))
def test_every_shipped_pack_is_sound(name):
    """Packs that come with the advisor have no defect, and their own cases hold."""
    folder = shipped_packs()[name]
    assert [str(error) for error in lint([folder]) if error.level == "error"] == []
    assert [result for result in run_cases(rule_files(folder)) if not result.passed] == []
    assert load_rules(config=Config(extend=(name,))).rules
