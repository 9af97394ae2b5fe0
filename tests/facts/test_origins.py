"""Where facts were read: each can be looked up in a file of the profile."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from headings import cells, headings

from advisor.config import Config
from advisor.facts.base import Run, kind
from advisor.facts.origins import Origins
from advisor.facts.registry import catalogue
from advisor.model import RUN, Fact, Source, Subject
from advisor.pipeline import Options, measure
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Profile, Rank
from advisor.sources.reference import TableRef

EXAMPLE = Path(__file__).parents[2] / "examples" / "slow-rank-pipeline"


def _run(tmp_path: Path) -> Run:
    def table(folder: Path) -> dict[str, TableRef]:
        folder.mkdir(exist_ok=True)
        (folder / "raw.csv").write_text("op_id,Output_Queue_Size\n0,[1]\n")
        return {"pipeline_ops": TableRef("pipeline_ops", (folder / "raw.csv",), "x")}

    folders = [tmp_path / "r0", tmp_path / "r1"]
    return Run(
        Profile(str(tmp_path), [Rank(n, folder, table(folder), base=tmp_path) for n, folder in enumerate(folders)])
    )


def test_a_fact_without_a_file_is_told_with_the_table_it_needs(tmp_path):
    """That of its own rank, with the headings as they stand in the file and no others."""
    needed = kind("queue.x", "ratio", "rank", "x", needs="batches|pipeline_ops")
    fact = Fact("queue.x", Subject("rank", "1", (1,)), 0.5)
    (source,) = Origins(_run(tmp_path)).traced(fact, needed).sources
    assert source.file == "r1/raw.csv" and source.columns == ("op_id", "Output_Queue_Size")


def test_what_a_family_names_stays(tmp_path):
    """It knows better than the catalogue which files it read."""
    whole = Fact("a.b", RUN, 1, 1, (Source("r0/raw.csv", ("op_id",)),))
    assert Origins(_run(tmp_path)).traced(whole, None) is whole
    needed = kind("a.b", "ratio", "run", "x", needs="pipeline_ops")
    assert Origins(_run(tmp_path)).traced(whole, needed) is whole


def test_who_took_part_is_told_by_the_metadata(tmp_path):
    """Or, without any, by the folder."""
    run = _run(tmp_path)
    fact, told = Fact("run.rank_count", RUN, 2), kind("run.rank_count", "count", "run", "x")
    assert Origins(run).traced(fact, told).sources == (Source("r0"),)
    (tmp_path / "r0" / "profiler_metadata.json").write_text('{"distributed_args": {}}')
    run.ranks[0].info_files["profiler_metadata"] = tmp_path / "r0" / "profiler_metadata.json"
    (source,) = Origins(run).traced(fact, told).sources
    assert source.file == "r0/profiler_metadata.json" and source.columns == ("distributed_args",)


def _profiles():
    yield EXAMPLE
    yield Path(__file__).parents[2] / "examples" / "slow-generator"
    corpus = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
    yield from sorted(path for path in corpus.iterdir() if path.is_dir()) if corpus.is_dir() else ()


@pytest.mark.parametrize("profile", list(_profiles()), ids=lambda path: path.name)
def test_all_evidence_of_a_report_can_be_looked_up(profile):
    """Each file that evidence names is in the profile, each column in the file, as it is written there; and a fact
    names every table at hand that it cannot be measured without."""
    measured = measure([profile], load_rules(config=Config()).uses_facts(), Options(jobs=1))
    holds: dict[str, set[str]] = {}
    for rank in measured.run.ranks:
        for table, reference in rank.tables.items():
            for path in reference.paths:
                holds.setdefault(rank.relative(path), set()).add(table)
    at_hand, kinds, known = set().union(*holds.values()), catalogue(), cache(headings)
    for fact in measured.facts:
        for source in fact.sources:
            assert (profile / source.file).exists(), fact
            assert set(source.columns) <= (known(profile / source.file) or set()), fact
        named = set().union(*(holds.get(source.file, set()) for source in fact.sources))
        for need in kinds[fact.name].needs:
            tables = set(need.split("|"))
            assert named & tables or not at_hand & tables or fact.subject.ranks, (fact, need)


_SUMMED = {
    "step.time_us": "step_trace_time",
    "host.cores": "minddata_cpu_utilization",
    "pipeline_op.workers": "pipeline_profiling",
}
"""Facts that are a cell of the file, or the sum of what the columns named hold in a row, mean over rows of steps."""


@pytest.mark.parametrize("profile", list(_profiles()), ids=lambda path: path.name)
def test_plain_numbers_stand_in_the_columns_named(profile):
    """Who adds up what evidence names, by hand, finds the value."""
    for fact in measure([profile], _SUMMED, Options(jobs=1)).facts:
        if fact.name not in _SUMMED or fact.subject.kind == "run" or len(fact.sources) > 1:
            continue
        source = fact.sources[0]
        if Path(source.file).name.partition(".")[0].rstrip("_0123456789") != _SUMMED[fact.name]:
            continue
        values = cells(profile / source.file, source.columns, source.steps)
        total = sum(values) / (len(source.steps) or 1)  # steps that overlap are told apart, which moves their ends
        assert fact.value in values or total == pytest.approx(fact.value, rel=5e-3), fact
