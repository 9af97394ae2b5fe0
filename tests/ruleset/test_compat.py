"""The packs that judge as other tools do: every recorded answer of MindInsight's own helpers is reached again."""

import json
import os
import re
from pathlib import Path

import pytest

from advisor.authoring.cases import given_finding, run_cases
from advisor.authoring.lint import lint
from advisor.config import Config
from advisor.engine.judge import decide
from advisor.facts.base import FactSet
from advisor.pipeline import advise, measure
from advisor.ruleset.files.found import rule_files
from advisor.ruleset.files.loader import load_rules
from advisor.ruleset.files.packs import shipped_packs

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


@needs_corpus
def test_a_real_run_without_data_is_judged_the_same():
    """AlexNet that starves: what the helper's own test asserts, number by number."""
    found, report = judged(Path(CORPUS) / "mindinsight-run2_alexnet_data_starved")
    assert found == {
        ("mindinsight/step-interval", "1"),
        ("mindinsight/pipeline-general", "ImageFolder(3)"),
        ("mindinsight/pipeline-dataset-op", "ImageFolder(3)"),
        ("mindinsight/data-process", "1"),
        ("mindinsight/cpu-usage", "1"),
    }
    values = {e.fact: e.value for f in report.findings for e in f.evidence}
    assert values["mindinsight.interval_us"] == pytest.approx(12432.1, abs=0.1)
    assert values["mindinsight.cpu_busy_percent"] == 90


@needs_corpus
def test_operations_of_four_pipelines_are_flagged_the_same():
    """Gap to a child, low source, none where all are well filled: the trees of the analyser's own test."""
    rules = load_rules(config=Config(extend=("mindinsight-compat",), select=("MI020",)))
    facts = measure([Path(CORPUS) / "mindinsight-minddata_pipeline_ut"], rules.uses_facts()).facts
    given = [
        given_finding({"verdict": "mindinsight/step-interval", "subject": {"rank": str(rank)}}, facts)
        for rank in range(4)
    ]
    flagged = {(f.subject.ranks, f.subject.id) for f in _separately(rules, facts, given)}
    sources = ("TFReader(2)", "TFReader(3)")
    assert flagged == {
        ((0,), "Shuffle(4)"), *(((0,), name) for name in sources),
        ((1,), "Shuffle(1)"), *(((3,), name) for name in sources),
    }  # fmt: skip


def _separately(rules, facts, given):
    """Findings of each rank by itself: like ones of several ranks are merged in a report."""
    for finding in given:
        ranks = finding.subject.ranks
        own = FactSet(fact for fact in facts if fact.subject.ranks == ranks)
        yield from decide(rules, own, given=[finding]).findings


@pytest.mark.parametrize("name", sorted(set(shipped_packs()) - {"default"}))
def test_every_shipped_pack_is_sound(name):
    """Packs that come with the advisor have no defect, and their own cases hold."""
    folder = shipped_packs()[name]
    assert [str(error) for error in lint([folder]) if error.level == "error"] == []
    assert [result for result in run_cases(rule_files(folder)) if not result.passed] == []
    assert load_rules(config=Config(extend=(name,))).rules
