"""Nobody is asked for what the profiler at hand never writes (knowledge_base/writers.yaml)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.concluding.evidence import needless, waiting_for
from advisor.facts.base import FactSet
from advisor.facts.registry import catalogue
from advisor.knowledge.writers import called_later, called_there, written_by
from advisor.model import RUN, Fact
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.discover import load_profile
from advisor.tables import FILES

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
WRITERS = (
    ("ascend_pt", "pytorch"), ("ascend_ms", "mindspore"), ("mindspore_legacy", "mindspore"), ("msprof", "unknown"),
    ("cluster", "unknown"), ("files", "mindspore"),
)  # fmt: skip
NOT_ASKED = {"kernels", "cluster_phases", "cluster_phases_average", "dynamic_shapes", "operators", "tasks"}
"""Tables that older MindSpore left on other devices, that its cluster analysis made of several ranks, that a host or a
task list tells beside better ones."""


@given(st.data(), st.sampled_from(WRITERS))
def test_what_is_asked_for_is_written_and_would_do(data: st.DataObject, writer: tuple[str, str]) -> None:
    """Whatever facts rules lack: files and settings are this profiler's, and a rule is only named where what is asked
    for brings all that it lacks."""
    names = st.lists(st.sampled_from(sorted(catalogue())), max_size=4)
    rules = {f"R{i}": lacks for i, lacks in enumerate(data.draw(st.lists(names, max_size=6)))}
    at_hand = data.draw(st.sets(st.sampled_from(sorted(FILES)), max_size=8))
    writes = written_by(*writer)
    asked = waiting_for(rules.items(), catalogue(), at_hand, writes)
    known = {(each.file, each.setting) for each in writes.values()}
    assert {(entry.evidence, entry.setting) for entry in asked} <= known
    for rule, lacks in rules.items():
        brought = {
            t for t, each in writes.items() for entry in asked if rule in entry.rules and each.file == entry.evidence
        }
        if any(rule in entry.rules for entry in asked):
            needs = [need.split("|") for name in lacks for need in catalogue()[name].needs]
            assert all({*need} & (at_hand | brought) for need in needs)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("file", sorted(set(FILES.values())))
def test_a_file_of_today_is_named_as_there(writer: tuple[str, str], file: str) -> None:
    """By the name that its profiler gives it, or not at all; a remark on its columns stays."""
    there = called_there(file, *writer)
    assert not there or there in {each.file for each in written_by(*writer).values()}
    assert called_there(f"{file} (Name)", *writer) == (f"{there} (Name)" if there else "")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("file", sorted(set(FILES.values())))
def test_what_a_later_version_writes_has_its_name_and_version(writer: tuple[str, str], file: str) -> None:
    """Only older MindSpore has successors; what they write is known of them."""
    later = called_later(file, *writer)
    assert later is None or (writer[0] == "mindspore_legacy" and "2.3" in later[1].en and "2.3" in later[1].zh)
    if later is not None:
        assert later[0] in {each.file for each in written_by("ascend_ms", "mindspore").values()}


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"step.exposed_communication_share": 0.0}, False),
        ({"step.exposed_communication_share": 0.2}, True),
        ({}, True),
        ({"step.fp_bp_share": 0.9}, False),
        ({"step.fp_bp_share": 0.9, "step.unplaced_share": 0.1}, True),
        ({"step.fp_bp_share": 0.9, "run.world_size": 8}, True),
        ({"step.fp_bp_share": 0.9, "communication.count": 3}, True),
    ],
)
def test_a_single_device_that_exchanges_nothing_has_no_links(told: dict[str, float], asked: bool) -> None:
    """Where the steps are told and no collective is among them; the older step trace has a column for each."""
    facts = FactSet(
        Fact(name, RUN, value) for name, value in {"run.world_size": 1, "run.rank_count": 1, **told}.items()
    )
    assert ("links" not in needless(facts)) is asked


@pytest.mark.parametrize(("layout", "framework"), [("ascend_pt", "pytorch"), ("ascend_ms", "mindspore")])
def test_where_a_database_alone_was_asked_for_the_timeline_comes_as_text(layout: str, framework: str) -> None:
    """Its activities were recorded: asking for them again would bring the same database."""
    usual, alone = (written_by(layout, framework, database_only) for database_only in (False, True))
    assert alone["trace"].file == usual["trace"].file and "Text" in alone["trace"].setting
    assert alone["links"] == usual["links"] and "Text" not in usual["trace"].setting


@pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")
@pytest.mark.parametrize(
    "name", sorted(path.name for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []
)
def test_what_real_profilers_wrote_is_known_of_them(name: str) -> None:
    """Tables of the corpus are listed with their writers, and none of its reports asks for what is not."""
    profile = load_profile([CORPUS / name])
    written = written_by(profile.layout, profile.framework)
    if profile.layout in ("ascend_pt", "ascend_ms", "mindspore_legacy"):
        assert {table for rank in profile.ranks for table in rank.tables} <= written.keys() | NOT_ASKED
    if profile.ranks:
        report = advise([CORPUS / name], load_rules())
        assert {entry.evidence for entry in report.missing_evidence} <= {each.file for each in written.values()}
