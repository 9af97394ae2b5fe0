"""Real profiles: every table reads, and the numbers are those a person reads in the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.sources.discover import load_profile

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")
CASES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []
OWN = ("csv.", "json.", "db.", "cluster.")


@pytest.mark.parametrize("case", CASES)
def test_every_table_of_every_profile_reads(case):
    """No real file of any version ends in "cannot be read"."""
    profile = load_profile([CORPUS / case])
    assert profile.ranks
    for rank in profile.ranks:
        for name, ref in rank.tables.items():
            if ref.reader.startswith(OWN):
                assert rank.read(name) is not None, (rank.rank, name)
        assert not [problem for problem in rank.problems if "cannot be read" in problem.problem]


def test_the_database_twin_says_the_same_as_the_text():
    """The same job exported twice: equal structure, near numbers (it ran twice)."""
    text, database = (load_profile([CORPUS / f"pt-{kind}-ddp-alexnet-level1"]) for kind in ("text", "db"))
    assert text.world_size == database.world_size == 8
    for a, b in zip(text.ranks, database.ranks, strict=True):
        # of the framework's operators the database holds the calls themselves
        assert set(a.tables) - {"trace", "l2_cache", "framework_operators"} == set(b.tables)
        left, right = a.read("steps").iloc[0], b.read("steps").iloc[0]
        for column in ("computing_us", "exposed_us", "overlapped_us", "free_us", "preparing_us"):
            assert left[column] == pytest.approx(right[column], rel=0.2), column
        for table, key in (("operator_types", ["type", "core", "count"]), ("collectives", ["step", "kind"]),
                           ("transports", ["transport", "size_bytes", "packets"]), ("host_api", ["level", "name"]),
                           ("links", ["source", "destination", "transport", "aggregate"])):  # fmt: skip
            rows = [
                frame[key].astype(str).sort_values(key).to_numpy().tolist() for frame in (a.read(table), b.read(table))
            ]
            assert rows[0] == rows[1], table


def test_phases_computed_from_tasks_equal_the_step_table():
    """The fallback for databases without a step table gives CANN's own numbers."""
    from advisor.sources.database.databasesteps import steps_from_tasks
    from advisor.sources.database.dbfile import open_database

    for rank in load_profile([CORPUS / "pt-db-ddp-alexnet-level1"]).ranks:
        (path,) = rank.tables["kernels"].paths
        with open_database(path) as database:
            computed = steps_from_tasks(database, lambda *_: None)
        stated = rank.read("steps").iloc[0]
        for column in ("computing_us", "exposed_us", "overlapped_us", "free_us", "preparing_us"):
            assert computed[column][0] == pytest.approx(stated[column], abs=0.01)


def test_the_cluster_output_has_sixteen_ranks_in_two_stages():
    """Rank rows only; stage 1's exposed time and bubble as in the file."""
    profile = load_profile([CORPUS / "msinsight-cluster-output"])
    assert (len(profile.ranks), profile.world_size, profile.parallelism.pipeline) == (16, 16, 2)
    assert profile.groups["stage 1"] == tuple(range(8, 16))
    assert profile.ranks[11].read("steps")["bubble_us"].tolist() == [195498.28]


def test_text_profile_numbers_are_those_of_the_files():
    """Four allReduces, of whose 106 ms 3.7 ms are transit, over links 0-0 to 0-7."""
    rank = load_profile([CORPUS / "pt-text-ddp-alexnet-level1"]).ranks[0]
    operations, links = rank.read("collectives"), rank.read("links")
    assert operations["elapsed_us"].sum() == pytest.approx(105991.88, abs=1)
    assert operations["transit_us"].sum() == pytest.approx(3683.4, abs=1)
    assert set(links["destination"]) == set(range(8))
    transports = rank.read("transports")
    assert transports.loc[transports["transport"] == "HCCS", "size_bytes"].sum() == pytest.approx(427.6e6, rel=1e-3)
