"""A rank is surely late where all who do its work are at hand, whoever else is absent."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import PIPELINE, SMALL

from advisor.model import RUN, Finding
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

STAGES = replace(PIPELINE, data=4, steps=6, ranks_per_host=4, faults=(Fault("slow_compute", 6, 0.4),))
"""Ranks 0 to 3 are the first stage, 4 to 7 the second."""


def judged(folder: Path, scenario: Scenario, gone: tuple[int, ...] = (), lost: dict[int, str] | None = None):
    """The report on a run of which these ranks' folders, and of these ranks this file, are not there."""
    write_profile(simulate(scenario), folder)
    for entry in folder.glob("*_ascend_*"):
        rank = int(next(entry.glob("profiler_info_*.json")).stem.rpartition("_")[2])
        if rank in gone:
            shutil.rmtree(entry)
        elif lost and rank in lost:
            next(entry.rglob(lost[rank])).unlink()
    return advise([folder], load_rules(strict=False), Options(jobs=1))


def slow_rank(report) -> Finding:
    return next(f for f in report.findings if f.verdict == "slow-compute-rank")


def test_absent_ranks_of_another_stage_take_nothing_from_the_finding(tmp_path: Path) -> None:
    """Its own stage is whole: severity, confidence, headline and direction are those of the whole profile."""
    whole = judged(tmp_path / "whole", STAGES)
    part = judged(tmp_path / "part", STAGES, gone=(0, 1, 2, 3))
    for report in (whole, part):
        found = slow_rank(report)
        assert found.subject.ranks == (6,) and found.confidence.value == "high" and not found.doubts
        assert report.summary.direction == "computation" and "rank 6" in report.summary.headline.en
    assert slow_rank(part).severity == slow_rank(whole).severity
    told = slow_rank(whole).saving
    assert told is not None and slow_rank(part).saving.us == pytest.approx(told.us, rel=0.1)


def test_ranks_of_cut_pipelines_are_not_compared(tmp_path: Path) -> None:
    """One communicator for each pair of stages: of three ranks of three stages the last, with the loss, has more work,
    and nothing tells that they would be of one stage."""
    scenario = replace(PIPELINE, pipeline=4, pairwise=True, faults=(Fault("stage_imbalance", 3, 0.5),))
    report = judged(tmp_path, scenario, gone=(1, 2, 4, 5, 7))
    stages = {f.subject.ranks[0]: f.value for f in report.facts if f.name == "rank.stage"}
    assert len(set(stages.values())) == len(stages) == 3
    assert not any(f.subject.kind == "rank" and f.direction == "computation" for f in report.findings)


def test_who_waits_for_nobody_came_last_whoever_is_absent(tmp_path: Path) -> None:
    """One of its own stage is not at hand, which may be as slow: the cause keeps its weight, at medium confidence."""
    report = judged(tmp_path, STAGES, gone=(7,))
    found = slow_rank(report)
    assert found.subject.ranks == (6,) and found.severity.value in ("high", "critical")
    assert found.confidence.value == "medium" and report.summary.direction == "computation"
    assert "rank 6" in report.summary.headline.en


def test_an_absent_rank_of_its_own_stage_may_be_the_later_one(tmp_path: Path) -> None:
    """The slowest at hand waits for one that is not: a suspicion, which names no direction of its own."""
    slower = replace(STAGES, faults=(Fault("slow_compute", 6, 0.15), Fault("slow_compute", 7, 0.4)))
    report = judged(tmp_path, slower, gone=(7,))
    assert all(f.severity.value == "low" for f in report.findings if f.verdict == "slow-compute-rank")
    assert report.summary.direction != "computation"


def test_ranks_that_are_seen_to_wait_need_no_step_table(tmp_path: Path) -> None:
    """Whose step table is lost cannot be compared, but its collectives tell that it came before the late one."""
    late = replace(SMALL, steps=6, faults=(Fault("slow_compute", 2, 0.4),))
    found = slow_rank(judged(tmp_path / "seen", late, lost={3: "step_trace_time.csv"}))
    assert found.subject.ranks == (2,) and found.severity.value in ("high", "critical") and not found.doubts


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_what_runs_behind_the_last_wait_for_an_absent_rank(tmp_path: Path, framework: str) -> None:
    """All gradients wait for a slow rank without files: behind that only the update runs. Where nobody absent is late
    there is no such wait."""
    heavy = replace(SMALL, framework=framework, missing_ranks=(2, 3))
    write_profile(simulate(replace(heavy, faults=(Fault("slow_compute", 2, 0.6),))), tmp_path / "late")
    write_profile(simulate(heavy), tmp_path / "even")
    late, even = (measure([tmp_path / name], None, Options(jobs=1)).facts for name in ("late", "even"))
    behind, step = late.number("communication.behind_absent_us", RUN), late.number("step.time_us", RUN)
    assert behind is not None and step is not None and 0 < behind < 0.1 * step
    parts = [late.number(f"communication.behind_absent_{part}_us", RUN) for part in ("idle", "computing")]
    assert all(us is not None and 0 <= us <= behind for us in parts)
    each = {subject.id: fact.value for subject, fact in late.of("operator_type.behind_absent_us").items()}
    assert max(each.values()) <= parts[1] and any(us == 0 for us in each.values())
    assert even.number("communication.behind_absent_us", RUN) is None


@pytest.mark.parametrize(("slow", "accused"), [(2, True), (3, False)])
def test_two_stages_of_four_tell_whether_one_of_them_sets_the_pace(tmp_path: Path, slow: int, accused: bool) -> None:
    """Stages 1 and 2 are at hand. Where stage 2's card is slow it hardly waits, and is told by its weight; where an
    absent stage is slow both wait, and nobody at hand is accused by more than a suspicion."""
    scenario = replace(PIPELINE, data=1, pipeline=4, micro_batches=12, faults=(Fault("slow_compute", slow, 0.5),))
    report = judged(tmp_path, scenario, gone=(0, 3))
    loud = [f for f in report.findings if f.subject.ranks == (2,) and f.severity.rank > 0 and f.saving is not None]
    assert bool(loud) is accused
    waits = {f.subject.ranks[0]: f.value for f in report.facts if f.name == "rank.unneeded_wait_share"}
    assert (waits[2] < 0.05) is accused and waits[1] > 0.05
