"""Where facts were read: each can be looked up in a file of the profile."""

from __future__ import annotations

from pathlib import Path

from advisor.config import Config
from advisor.facts.base import Run, kind
from advisor.facts.origins import Origins
from advisor.model import RUN, Fact, Source, Subject
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.base import Profile, Rank
from advisor.sources.reference import TableRef

EXAMPLE = Path(__file__).parents[2] / "examples" / "slow-rank-pipeline"


def _run(tmp_path: Path) -> Run:
    def table(folder: Path) -> dict[str, TableRef]:
        return {"pipeline_ops": TableRef("pipeline_ops", (folder / "raw.csv",), "x")}

    folders = [tmp_path / "r0", tmp_path / "r1"]
    return Run(
        Profile(str(tmp_path), [Rank(n, folder, table(folder), base=tmp_path) for n, folder in enumerate(folders)])
    )


def test_a_fact_without_a_file_is_told_with_the_table_it_needs(tmp_path):
    """That of its own rank, with the headings of the file."""
    needed = kind("queue.x", "ratio", "rank", "x", needs="batches|pipeline_ops")
    fact = Fact("queue.x", Subject("rank", "1", (1,)), 0.5)
    (source,) = Origins(_run(tmp_path)).traced(fact, needed).sources
    assert source.file == "r1/raw.csv" and "output_queue_size" in source.columns


def test_columns_are_filled_in_and_what_stands_is_kept(tmp_path):
    """A file that a family names stays the one; so do its columns."""
    origins = Origins(_run(tmp_path))
    (filled,) = origins.traced(Fact("a.b", RUN, 1, 1, (Source("r0/raw.csv"),)), None).sources
    assert filled.file == "r0/raw.csv" and "op_type" in filled.columns
    whole = Fact("a.b", RUN, 1, 1, (Source("r0/raw.csv", ("op_id",)),))
    assert origins.traced(whole, None) is whole


def test_who_took_part_is_told_by_the_metadata(tmp_path):
    """Or, without any, by the folder."""
    run = _run(tmp_path)
    fact, told = Fact("run.rank_count", RUN, 2), kind("run.rank_count", "count", "run", "x")
    assert Origins(run).traced(fact, told).sources == (Source("r0"),)
    run.ranks[0].info_files["profiler_metadata"] = tmp_path / "r0" / "profiler_metadata.json"
    (source,) = Origins(run).traced(fact, told).sources
    assert source.file == "r0/profiler_metadata.json" and source.columns


def test_all_evidence_of_a_report_names_a_file_that_is_there():
    """The reader goes from the number to the file; a script does too."""
    report = advise([EXAMPLE], load_rules(config=Config()))
    for finding in report.findings:
        for item in finding.evidence:
            assert item.source is not None and (EXAMPLE / item.source.file).exists(), item
            assert item.source.columns, item
