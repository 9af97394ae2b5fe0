"""A rank whose file of collectives is absent is no absent rank: its kernels tell when it arrived."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

SLOW = Scenario(data=4, layers=3, steps=4, framework="pytorch", faults=(Fault("slow_compute", 1, 0.3),))


def _without_files(root: Path, ranks: set[int]) -> Path:
    write_profile(simulate(SLOW), root)
    for rank, folder in enumerate(sorted(path for path in root.iterdir() if path.is_dir())):
        if rank in ranks:
            for name in ("communication.json", "communication_matrix.json"):
                for path in folder.rglob(name):
                    path.unlink()
    return root


def test_ranks_of_another_level_are_compared_with_the_rest(tmp_path: Path) -> None:
    """Two of four ranks were recorded without collectives, the slow one among them: nobody waits for a rank without a
    profile, and the slow one costs what it costs where all files are there."""
    savings = []
    for name, ranks in (("whole", set[int]()), ("half", {0, 1})):
        report = advise([_without_files(tmp_path / name, ranks)], load_rules(), Options(jobs=1))
        slow = next(f for f in report.findings if f.verdict == "slow-compute-rank")
        assert slow.subject.id == "1" and slow.saving is not None
        savings.append(slow.saving.us)
    assert savings[1] == pytest.approx(savings[0], rel=0.1)
    facts = measure([tmp_path / "half"], None, Options(jobs=1)).facts
    assert not facts.number("communication.absent_wait_us", RUN)


@pytest.mark.parametrize("told", [True, False])
def test_where_no_rank_has_such_a_file_names_tell_who_met(tmp_path: Path, told: bool) -> None:
    """Kernels name a communicator by the end of its number: metadata tell its members, else the ranks whose kernels
    bear one number are. Nobody knows then whether others are absent, and the verdict says so."""
    run = replace(SLOW, level=0, metadata=told, gradient_mb_per_layer=60.0, faults=(Fault("unsplit_allreduce"),))
    write_profile(simulate(run), tmp_path)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("communication.exposed_wait_share", RUN) is not None
    assert facts.value("communication.members_assumed", RUN) is not told
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    found = next(f for f in report.findings if f.verdict == "allreduce-not-overlapped")
    assert found.confidence == ("high" if told else "medium")


def test_ranks_alone_in_their_groups_are_not_all(tmp_path: Path) -> None:
    """Nobody exchanges with itself: where a number is in the names of one rank alone, others are absent, and how long
    it waited for them nobody knows."""
    run = replace(SLOW, data=2, tensor=2, level=0, metadata=False)
    write_profile(simulate(run), tmp_path)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    whole = measure([tmp_path], None, Options(jobs=1)).facts
    assert whole.number("communication.exposed_transfer_us", RUN) is not None
    for folder in folders[2:]:
        shutil.rmtree(folder)
    half = measure([tmp_path], None, Options(jobs=1)).facts
    assert half.number("communication.exposed_transfer_us", RUN) is None


def test_timelines_alone_tell_their_collectives(tmp_path: Path) -> None:
    """A timeline draws every collective with its name and times: gradients reduced behind the backward pass are found
    there without any other file, as its kernels are."""
    faults = (Fault("unsplit_allreduce"),)
    run = replace(SLOW, metadata=False, gradient_mb_per_layer=60.0, faults=faults)
    write_profile(simulate(run), tmp_path, trace=True)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "trace_view.json"]:
        path.unlink()
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert "allreduce-not-overlapped" in {f.verdict for f in report.findings}


def test_stages_of_a_pipeline_are_no_peers_though_timelines_alone_tell(tmp_path: Path) -> None:
    """Ranks that send to each other are stages: the one with most layers is no slow card among its peers."""
    run = Scenario(data=1, pipeline=4, layers=2, micro_batches=8, steps=3, framework="pytorch", pairwise=True,
                   metadata=False, faults=(Fault("stage_imbalance", 1, 1.0),))  # fmt: skip
    write_profile(simulate(run), tmp_path, trace=True)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "trace_view.json"]:
        path.unlink()
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("parallelism.pipeline", RUN) == 4
    verdicts = {f.verdict for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    assert "stage-imbalance" in verdicts and "slow-compute-rank" not in verdicts


def test_without_its_members_files_a_collective_among_kernels_tells_nothing(tmp_path: Path) -> None:
    """Whoever is alone at hand may have waited in it for all that it lasted."""
    write_profile(simulate(replace(SLOW, level=0)), tmp_path)
    one = min(path for path in tmp_path.iterdir() if path.is_dir())
    facts = measure([one], None, Options(jobs=1)).facts
    assert facts.number("communication.exposed_transfer_us", RUN) is None
