"""How a profile was collected: settings that differ, rounds that are cut, raw data that nobody parsed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.model import COLLECTION
from advisor.pipeline import Options, measure
from benchmarks.simulator import Scenario, simulate, write_profile


def facts_of(folder: Path):
    return measure([folder], None, Options(jobs=1)).facts


@pytest.fixture
def profile(tmp_path):
    write_profile(simulate(Scenario(data=2, seed=1)), tmp_path)
    return tmp_path


def change(folder: Path, rank: int, **parameters) -> None:
    path = next(folder.rglob(f"profiler_info_{rank}.json"))
    document = json.loads(path.read_text())
    document["profiler_parameters"].update(parameters)
    path.write_text(json.dumps(document))


def test_ranks_with_the_same_settings_do_not_differ(profile):
    """The rank's own number is no setting."""
    facts = facts_of(profile)
    assert facts.value("collection.settings_differ", COLLECTION) == ()
    assert facts.value("collection.steps_expected", COLLECTION) == facts.value("collection.steps_recorded", COLLECTION)
    assert facts.value("collection.bytes_per_rank", COLLECTION) > 1000


def test_a_setting_of_one_rank_is_named(profile):
    """Call stacks slow the rank that records them: it would look like a slow rank."""
    change(profile, 1, with_stack=True)
    facts = facts_of(profile)
    assert facts.value("collection.settings_differ", COLLECTION) == ("with_stack",)
    assert not facts.of("rank.own_settings")  # of two ranks neither is the odd one


def test_the_rank_with_a_setting_of_its_own_is_known(tmp_path):
    """What slows down one rank of four may be the profiler."""
    write_profile(simulate(Scenario(data=4, seed=1)), tmp_path)
    change(tmp_path, 1, with_stack=True)
    told = {fact.subject.id: fact.value for fact in facts_of(tmp_path).of("rank.own_settings").values()}
    assert told == {"1": ("with_stack",)}


def test_a_schedule_out_of_range_is_told_as_written(profile):
    """active=0 and negative entries are replaced by defaults without much ado."""
    change(profile, 0, schedule={"wait": -1, "active": 0, "warmup": 0, "repeat": 1, "skip_first": 0})
    assert facts_of(profile).value("collection.invalid_schedule", COLLECTION) == ("active=0", "wait=-1")


def test_each_rank_is_held_to_its_own_schedule(profile):
    """One rank was asked for more steps than the others and has them all: nobody lacks any."""
    usual = facts_of(profile).number("collection.steps_recorded", COLLECTION)
    assert usual is not None
    change(profile, 0, schedule={"wait": 1, "active": int(usual), "warmup": 1, "repeat": 1, "skip_first": 0})
    change(profile, 1, schedule={"wait": 1, "active": 2, "warmup": 1, "repeat": 1, "skip_first": 0})
    for table in profile.rglob("step_trace_time.csv"):
        if (table.parents[1] / "profiler_info_1.json").exists():
            table.write_text("\n".join(table.read_text().splitlines()[:3]) + "\n")
    facts = facts_of(profile)
    assert facts.value("collection.step_counts_differ", COLLECTION) is True
    assert facts.value("collection.steps_recorded", COLLECTION) == facts.value("collection.steps_expected", COLLECTION)
    change(profile, 1, schedule={"wait": 1, "active": 3, "warmup": 1, "repeat": 1, "skip_first": 0})
    facts = facts_of(profile)
    assert facts.value("collection.steps_recorded", COLLECTION) == 2
    assert facts.value("collection.steps_expected", COLLECTION) == 3


def test_only_a_database_was_exported(profile):
    """Then there is no step table."""
    change(profile, 0, export_type=["db"])
    change(profile, 1, export_type=["db"])
    assert facts_of(profile).value("collection.database_only", COLLECTION) is True


def test_unparsed_folders_are_named_as_the_user_knows_them(tmp_path):
    """The call that parses them needs the folder, not a file inside."""
    root = tmp_path / "host_1_20260101000000000_ascend_ms"
    (root / "PROF_000001_20260101000000000_ABC" / "device_0").mkdir(parents=True)
    (root / "FRAMEWORK").mkdir()
    facts = facts_of(tmp_path)
    assert facts.value("collection.unparsed_ranks", COLLECTION) == 1
    assert facts.value("collection.unparsed_folders", COLLECTION) == (root.name,)


def test_a_recording_without_steps_lacks_none_of_those_that_were_asked_for(profile):
    """Where only the device was recorded, the one row of the step table names no step: how many it holds nobody knows,
    and more training steps are not what is missing."""
    for table in profile.rglob("step_trace_time.csv"):
        heading, first, *_ = table.read_text().splitlines()
        place = heading.split(",").index("Step")
        cells = first.split(",")
        cells[place] = ""
        table.write_text(f"{heading}\n{','.join(cells)}\n")
    facts = facts_of(profile)
    assert facts.value("collection.steps_recorded", COLLECTION) is None
