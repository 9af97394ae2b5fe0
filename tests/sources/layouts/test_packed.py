"""A file that somebody compressed by itself is named, never passed over in silence."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from advisor.sources.discover import load_profile
from advisor.sources.layouts.packed import ENDINGS, NOT_READ

RANK = "h_1_20250101000000000_ascend_pt"
KERNELS = "Name,Type,Start Time(us),Duration(us)\nMatMul,MatMul,1,2\n"


def told(*paths: Path) -> set[str]:
    """The names of the files of which the profile says that they are compressed and not read."""
    profile = load_profile(paths)
    problems = [*profile.problems, *(p for rank in profile.ranks for p in rank.problems)]
    return {Path(entry.file).name for entry in problems if entry.problem == NOT_READ}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "name",
    ["kernel_details.csv", "communication.json", "ascend_pytorch_profiler_1.db", "minddata_pipeline_raw_1.csv",
     "cluster_step_trace_time.csv", "profiler_info_1.json", "trace_view (1).json"],
)  # fmt: skip
def test_each_compressed_file_of_a_rank_is_named(make_rank, name, ending):
    """Beside a table that is read lies one that is not: the report says which."""
    if (name, ending) == ("trace_view (1).json", "gz"):
        pytest.skip("timelines are read as they are")
    folder = make_rank(RANK, 1, **{f"{name}.{ending}": ""})
    assert told(folder) == {f"{name}.{ending}"}


def test_tables_and_databases_of_every_folder_of_a_rank_are_named(make_rank):
    """What lies in the folders of the raw data as well, where nothing else tells the same."""
    folder = make_rank(RANK, 1)
    raw = folder / "PROF_1" / "mindstudio_profiler_output"
    raw.mkdir(parents=True)
    (raw / "op_summary_20250101.csv.gz").write_bytes(gzip.compress(KERNELS.encode()))
    (folder / "PROF_1" / "msprof_20250101.db.xz").write_bytes(b"")
    assert told(folder) == {"op_summary_20250101.csv.gz", "msprof_20250101.db.xz"}


def test_what_another_folder_tells_is_not_missed(make_rank):
    """The export in a folder of raw data repeats what the rank's own tables say: nothing was lost."""
    folder = make_rank(RANK, 1, **{"kernel_details.csv": KERNELS})
    raw = folder / "PROF_1" / "mindstudio_profiler_output"
    raw.mkdir(parents=True)
    (raw / "op_summary_20250101.csv.gz").write_bytes(b"")
    assert told(folder) == set()


def test_a_part_of_a_table_beside_the_other_is_named(make_rank):
    """Of two slices one is read: half of the kernels is no whole table."""
    folder = make_rank(RANK, 1, **{"op_summary_slice_0.csv": KERNELS, "op_summary_slice_1.csv.gz": ""})
    assert told(folder) == {"op_summary_slice_1.csv.gz"}


def test_the_packed_twin_of_a_file_is_not_missed(make_rank):
    """gzip -k leaves both."""
    folder = make_rank(RANK, 1, **{"kernel_details.csv": KERNELS, "kernel_details.csv.gz": ""})
    assert told(folder) == set()


def test_a_folder_of_nothing_else_and_a_single_file_say_why_nothing_was_read(tmp_path):
    """No profile is recognised there; the reason is not that nothing lies in it."""
    (tmp_path / "flops_1.txt.gz").write_bytes(b"")
    (tmp_path / "kernel_details.csv.gz").write_bytes(b"")
    (tmp_path / "holiday.json.gz").write_bytes(b"")
    assert told(tmp_path) == {"flops_1.txt.gz", "kernel_details.csv.gz"}
    assert told(tmp_path / "kernel_details.csv.gz") == {"kernel_details.csv.gz"}


def test_timelines_are_read_compressed(make_rank):
    """They are told by no word, since nothing was left out."""
    folder = make_rank(RANK, 1)
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json.gz").write_bytes(gzip.compress(b"[]"))
    assert told(folder) == set()
