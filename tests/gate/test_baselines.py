"""Files in a folder that any number of pipelines write to."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.facts.base import FactSet
from advisor.gate.history.baselines import add_run, freeze, load_baseline, names_in, parse_reference, promote
from advisor.gate.sample import Sample, differences
from advisor.model import Fact, Subject
from tests.helpers.profiles import finding, runs_of, sample

OLD = Path(__file__).parent / "data" / "baseline-1.0"


def test_a_run_comes_back_as_it_was_added(tmp_path):
    """Facts and verdicts of last month decide about today's change."""
    rank = Subject("rank", "3", (3,))
    added = sample(
        100.0,
        findings=[finding()],
        metadata={"commit": "abc"},
        more=[Fact("rank.lateness_us", rank, 5.0, 4), Fact("operator_type.shapes", Subject("run", "run"), "8,8")],
    )
    reference = parse_reference(str(tmp_path / "base"))
    add_run(reference, added)
    (back,) = load_baseline(reference).runs
    assert back.key == added.key and back.metadata == added.metadata and back.digest == added.digest
    assert back.findings == added.findings and back.checked == added.checked and back.info == added.info
    assert back.facts.value("rank.lateness_us", rank) == 5.0
    assert back.facts.value("step.time_us", Subject("run", "run")) == 100_000.0


def test_a_thousand_subjects_are_cut_to_the_largest(tmp_path):
    """A baseline in a git branch must stay small on a thousand-card run."""
    facts = [Fact("operator_type.time_us", Subject("operator_type", f"T{i}"), float(i)) for i in range(1000)]
    reference = parse_reference(str(tmp_path))
    path = add_run(reference, sample(more=facts))
    assert path.stat().st_size < 20_000
    kept = load_baseline(reference).runs[0].facts.of("operator_type.time_us")
    assert Subject("operator_type", "T999") in kept and Subject("operator_type", "T5") not in kept


def _add(folder: str, count: int, worker: int) -> None:
    reference = parse_reference(folder)
    for run in runs_of(*[100.0] * count, name=f"w{worker}-"):
        add_run(reference, run)


def test_concurrent_adds_lose_nothing(tmp_path):
    """Ten nightly jobs end in the same minute on a shared disk."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add, args=(str(tmp_path), 10, worker)) for worker in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    baseline = load_baseline(parse_reference(str(tmp_path)))
    assert len(baseline.runs) == 60 and not baseline.problems


def test_a_killed_add_leaves_no_half_file(tmp_path):
    """A cancelled pipeline must not break everybody else's gate."""
    context = multiprocessing.get_context("fork")
    folder = tmp_path / "main"
    for wanted in (3, 11, 25):
        worker = context.Process(target=_add, args=(str(tmp_path), 2000, 0))
        worker.start()
        deadline = time.monotonic() + 60
        while len(list(folder.glob("[0-9]*"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(10)
    baseline = load_baseline(parse_reference(str(tmp_path)))
    assert baseline.problems == ()
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    assert len(visible) == len(baseline.runs) + baseline.copies >= 25
    for path in visible:
        json.loads(path.read_text(encoding="utf-8"))


def test_damaged_and_future_files_are_named_and_the_rest_counts(tmp_path):
    """One bad file is a note, not the end of the gate, and never silently dropped."""
    reference = parse_reference(str(tmp_path))
    good = add_run(reference, sample())
    folder = tmp_path / "main"
    document = {k: v for k, v in json.loads(good.read_text(encoding="utf-8")).items() if k != "seal"}
    (folder / "20990101T000000.000000Z-a.json").write_text(good.read_text(encoding="utf-8")[:200], encoding="utf-8")
    (folder / "20990101T000000.000000Z-b.json").write_text(json.dumps({**document, "schema_version": "2.0"}))
    (folder / "20990101T000000.000000Z-c.json").write_bytes(b"\xff\x00")
    (folder / "20990101T000000.000000Z-d.json").write_text("[1]")
    newer = {**document, "schema_version": "1.7", "something": {"new": 1}, "digest": "another run"}
    (folder / "20990101T000000.000000Z-e.json").write_text(json.dumps(newer))
    baseline = load_baseline(reference)
    assert len(baseline.runs) == 2
    assert [problem.file[-6] for problem in baseline.problems] == ["a", "b", "c", "d"]
    assert "2.0" in baseline.problems[1].problem


def test_files_of_the_first_schema_stay_readable():
    """An update of the advisor must not throw away a year of history."""
    baseline = load_baseline(parse_reference(str(OLD)))
    assert baseline.problems == () and len(baseline.runs) == 2
    assert baseline.frozen == "release 1"
    assert baseline.runs[0].facts.value("step.time_us", Subject("run", "run")) == 100_000.0
    assert baseline.runs[0].findings[0].verdict == "acme/exposed"


def test_freeze_refuses_runs_until_thawed(tmp_path):
    """A reference that moves with every merge cannot show slow decay."""
    reference = parse_reference(f"{tmp_path}#release")
    with pytest.raises(UsageError):
        freeze(reference, "empty")
    add_run(reference, sample())
    freeze(reference, "release 2.1")
    with pytest.raises(UsageError, match=r"release 2\.1"):
        add_run(reference, sample())
    freeze(reference, "", thaw=True)
    add_run(reference, sample(name="another"))
    assert len(load_baseline(reference).runs) == 2


def test_promotion_starts_a_new_level(tmp_path):
    """After an intended change the old level no longer counts, and nothing is deleted."""
    main, change = parse_reference(f"{tmp_path}#main"), parse_reference(f"{tmp_path}#pr-12")
    for run in runs_of(100.0, 101.0):
        add_run(main, run)
    with pytest.raises(UsageError, match=r"no such baseline; there are: main"):
        promote(change, main, "wider model")
    for run in runs_of(120.0, 121.0, 122.0, name="new"):
        add_run(change, run)
    assert promote(change, main, "wider model") == 3
    add_run(main, sample(123.0))
    baseline = load_baseline(main)
    assert [run.summary.step_time_us for run in baseline.runs] == [120e3, 121e3, 122e3, 123e3]
    (history,) = baseline.histories
    assert len(baseline.earlier) == 2 and history.accepted[-1].reason == "wider model"
    assert names_in(tmp_path) == ["main", "pr-12"]
    later = parse_reference(f"{tmp_path}#pr-13")
    add_run(later, sample(90.0))
    promote(later, main, "fused kernels")
    assert [run.summary.step_time_us for run in load_baseline(main).runs] == [90e3]


def test_a_promotion_that_was_killed_changes_nothing(tmp_path):
    """Half a new level would judge against runs that nobody chose."""
    main, change = parse_reference(f"{tmp_path}#main"), parse_reference(f"{tmp_path}#pr-12")
    add_run(main, sample(100.0))
    add_run(change, sample(120.0))
    promote(change, main, "wider model")
    mark = sorted((tmp_path / "main").glob("*.json"))[-1]
    assert json.loads(mark.read_text(encoding="utf-8"))["kind"] == "promote"
    mark.unlink()
    assert [run.summary.step_time_us for run in load_baseline(main).runs] == [100e3]


@pytest.mark.parametrize("text", ["", "#main", "base#..", "base#a b", "base#"])
def test_names_that_could_leave_the_folder_are_refused(text):
    """A pull request's title must not choose where files are written."""
    with pytest.raises(UsageError):
        parse_reference(text)


def test_reference_has_a_name_or_is_main(tmp_path):
    """FOLDER alone is the common case."""
    assert str(parse_reference("a/b")) == "a/b#main"
    assert str(parse_reference("a#1/b#pr-7")) == "a#1/b#pr-7"
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is no folder"):
        parse_reference(str(tmp_path / "file"))


def test_differences_of_keys_name_the_fields():
    """ "Not comparable" without a reason sends people searching."""
    before = {"model": "a", "versions.cann": "8.1", "profiler.level": "Level1"}
    after = {"model": "a", "versions.cann": "8.2"}
    found = differences(before, after)
    assert [(d.field, d.before, d.after) for d in found] == [
        ("profiler.level", "Level1", None),
        ("versions.cann", "8.1", "8.2"),
    ]
    assert differences(before, after, ["versions.*", "profiler.level"]) == []
    assert isinstance(Sample("x", before, sample().info, sample().summary, FactSet()).attributes, dict)
