"""Older files tell the same story as new ones: who is slow, from what, and what splitting gradients would save."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import PIPELINE, SMALL

from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, simulate
from benchmarks.simulator.legacy import write_legacy_profile

DATA = replace(SMALL, data=8, steps=6)
SHARDED = replace(SMALL, data=1, tensor=4, steps=6)
STAGES = replace(PIPELINE, pipeline=4, steps=6)


def roots(scenario, folder):
    """(verdict, subject) of the serious root causes."""
    write_legacy_profile(simulate(scenario), folder)
    found = advise([folder], load_rules(), Options(jobs=1)).findings
    return [
        (f.verdict, f.subject.id, f.saving.us_per_step if f.saving else None)
        for f in found
        if f.role == "root_cause" and f.severity in ("medium", "high", "critical")
    ]


@pytest.mark.parametrize("base", [DATA, SHARDED, STAGES])
def test_healthy_older_runs_are_cleared(tmp_path, base):
    """Nothing serious is said, and nothing in the files is complained of."""
    assert roots(base, tmp_path) == []
    assert measure([tmp_path], None, Options(jobs=1)).problems == []


@pytest.mark.parametrize("base", [DATA, SHARDED, STAGES])
def test_a_slow_card_in_older_runs(tmp_path, base):
    """It is the card's computation, not the waiting of the others, that is named."""
    scenario = replace(base, faults=(Fault("slow_compute", 2, 0.4),))
    found = roots(scenario, tmp_path)
    assert [f[:2] for f in found] == [("slow-compute-rank", "2")]
    gained = simulate(scenario).step_us - simulate(base).step_us
    assert found[0][2] == pytest.approx(gained, rel=0.25)


@pytest.mark.parametrize("base", [DATA, SHARDED])
def test_a_wait_before_the_step_is_no_computing_in_older_runs(tmp_path, base):
    """The computation of the older cluster analysis is the step less its exposed communication: a rank whose data is
    late is not accused of computing longer as well, and the delay counts once."""
    write_legacy_profile(simulate(replace(base, faults=(Fault("slow_data", 1, 0.3),))), tmp_path)
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    causes = {f.verdict for f in report.findings if f.role == "root_cause"}
    assert "slow-compute-rank" not in causes and "data-starved-rank" in causes
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    late = Subject("rank", "1", (1,))
    assert facts.value("rank.computing_excess_us", late) < 0.1 * facts.value("rank.data_wait_excess_us", late)


@pytest.mark.parametrize("base", [SHARDED, STAGES])
def test_the_gap_before_a_step_is_no_computation_of_older_runs(tmp_path, base):
    """The cluster analysis counts all that is not communication as computation, waiting for data with it: the card of
    a rank that waits is well, and its delay is told once."""
    scenario = replace(base, faults=(Fault("slow_data", 0, 4.0),))
    gained = simulate(scenario).step_us - simulate(base).step_us
    found = roots(scenario, tmp_path)
    assert "slow-compute-rank" not in [verdict for verdict, *_ in found]
    assert base is STAGES or sum(saving or 0.0 for *_, saving in found) <= 1.1 * gained


def test_gradients_reduced_after_backward_in_older_runs(tmp_path):
    """Transit and wait make up what a collective lasted, so the split's gain can be computed."""
    scenario = replace(DATA, gradient_mb_per_layer=80.0, layers=4, faults=(Fault("unsplit_allreduce"),))
    found = roots(scenario, tmp_path)
    assert [f[0] for f in found] == ["allreduce-not-overlapped"]
    gained = simulate(scenario).step_us - simulate(replace(scenario, faults=())).step_us
    assert found[0][2] == pytest.approx(gained, rel=0.25)


def test_a_sharded_model_s_collectives_are_no_gradients(tmp_path):
    """Where the files tell a sharded model but no groups, its collectives belong to the operators."""
    write_legacy_profile(simulate(SHARDED), tmp_path)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert not facts.of("allreduce.exposed_share")
    assert facts.value("communication.redistribution_share", RUN) > 0


def test_a_step_that_one_file_lacks_is_not_counted_against_a_rank(tmp_path):
    """ascend_cluster_analyse without its average row: the last step is unknown, not on time."""
    write_legacy_profile(simulate(replace(STAGES, faults=(Fault("slow_compute", 2, 0.4),))), tmp_path)
    for path in tmp_path.glob("ascend_cluster_analyse_*"):
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("rank.lateness_steadiness", Subject("rank", "2", (2,))) == 1


def test_cells_of_the_older_cluster_analysis_that_moved_are_told(tmp_path):
    """What computes and what communicates make up the step, as its stage and its receives do."""
    write_legacy_profile(simulate(STAGES), tmp_path)
    table = next(tmp_path.glob("ascend_cluster_analyse_*_0.csv"))
    heading, *rows = table.read_text().splitlines()
    table.write_text("\n".join([heading, *(",".join([*row.split(",")[1:], ""]) for row in rows)]) + "\n")
    problems = measure([tmp_path], None, Options(jobs=1)).problems
    assert any(p.file.endswith(table.name) and "contradicts itself" in p.problem for p in problems)


CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")
def test_a_bubble_is_not_guessed_where_one_rank_lost_its_column(tmp_path):
    """The stage's other ranks tell how long they wait for receives; what this rank's collectives last in all, hidden by
    computation or not, is no match for that."""
    shutil.copytree(CORPUS / "mindinsight-cluster_propose_pp2_4rank", tmp_path / "run")
    table = tmp_path / "run" / "ascend_cluster_analyse_pipeline-parallel_2_4_0.csv"
    bubble = "stage.bubble_us", Subject("stage", "0", (0, 1))
    told = measure([tmp_path / "run"], None, Options(jobs=1)).facts.value(*bubble)
    table.write_text(table.read_text().replace("receive_alone_time", "alone", 1))
    assert measure([tmp_path / "run"], None, Options(jobs=1)).facts.value(*bubble) == pytest.approx(told, rel=0.02)


def test_uneven_stages_of_older_runs_whose_hand_overs_hold_waiting(tmp_path):
    """What a hand-over lasts tells nothing of its transfer where so many of them do not fit into the step: the stage
    that has too much to do is named all the same, with what even stages gain."""
    scenario = replace(PIPELINE, data=2, pipeline=2, layers=4, micro_batches=8, steps=6)
    scenario = replace(scenario, faults=(Fault("stage_imbalance", 1, 0.5),))
    even = replace(scenario, layers=5, faults=())
    found = roots(scenario, tmp_path)
    assert [f[:2] for f in found] == [("stage-imbalance", "1")]
    assert found[0][2] == pytest.approx(simulate(scenario).step_us - simulate(even).step_us, rel=0.25)
