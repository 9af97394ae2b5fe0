"""A list of batches that was cut is told: half of the batches at the whole time's figures look like another loop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


@pytest.mark.parametrize(("kept", "told"), [(1.0, False), (0.5, True)])
def test_batches_that_the_statistic_counts_are_missed(tmp_path: Path, kept: float, told: bool) -> None:
    """Nothing of such a profile is healthy, and the file is named."""
    recording = next(path.parents[1] for path in sorted(RECORDINGS.rglob("dataset_iterator_profiling_*.txt")))
    shutil.copytree(recording, tmp_path / recording.name)
    (path,) = tmp_path.rglob("dataset_iterator_profiling_*.txt")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: int(len(lines) * kept)]), encoding="utf-8")
    report = advise([tmp_path], load_rules())
    assert any("rows are missing" in p.problem and path.name in p.file for p in report.problems) is told
    assert not (told and report.summary.direction == "healthy")


def test_a_statistic_without_the_loop_is_missed(tmp_path: Path) -> None:
    """A pipeline's statistic that was cut before the loop's own stages clears nothing either."""
    recording = next(path.parents[1] for path in sorted(RECORDINGS.rglob("dataset_iterator_profiling_*.txt")))
    shutil.copytree(recording, tmp_path / recording.name)
    (path,) = tmp_path.rglob("dataset.csv")
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:4]), encoding="utf-8")
    report = advise([tmp_path], load_rules())
    assert any("how the loop fetched batches" in p.problem for p in report.problems)
    assert report.summary.direction != "healthy"
