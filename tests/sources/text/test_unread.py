"""Files of profilers that cannot be judged alone are named for what they are, with those that can."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

GPU = '{"deviceProperties": [{"name": "A100"}], "traceEvents": [{"ph": "X", "name": "cudaLaunchKernel", "ts": 1}]}'


@pytest.mark.parametrize("named", ["file", "folder", "folder above"])
@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("operator_details.csv", "Name,Host Self Duration(us)\naten::add,3\n", "kernel_details.csv"),
        ("hccl_0_2_3.json", '[{"ph": "X", "ts": 1, "dur": 2, "name": "Notify"}]', "msprof_*.json"),
        ("output_timeline_data_1.txt", "op_name, stream_id, start_time(ms), duration(ms)\n", "step_trace_raw_*"),
        ("kernels.xlsx", "PK", "save the sheet as CSV"),
        ("pt.trace.json", GPU, "timeline of a GPU"),
    ],
)
def test_whoever_has_one_file_learns_which_other_one_to_bring(
    tmp_path: Path, named: str, file: str, content: str, told: str
) -> None:
    """A file that a profiler wrote is not told to be none: its neighbours can be judged."""
    folder = tmp_path / "run" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    (folder / file).write_text(content)
    place = {"file": folder / file, "folder": folder, "folder above": tmp_path}[named]
    report = advise([place], load_rules(strict=False))
    assert any(problem.file.endswith(file) and told in problem.problem for problem in report.problems)


def test_an_empty_folder_is_no_fragment_of_a_recording(tmp_path: Path) -> None:
    """Nothing was recorded there, so that no table of it lacks anything."""
    report = advise([tmp_path], load_rules(strict=False))
    assert report.profile.recording_reason is not None
    assert "recognised" in report.profile.recording_reason.en


def test_a_closed_folder_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder of a rank cannot be looked into, the report says so instead of the command ending."""
    (tmp_path / "a_ascend_ms" / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    whole = Path.is_dir

    def closed(path: Path) -> bool:
        if path.name == "ASCEND_PROFILER_OUTPUT":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "is_dir", closed)
    assert advise([tmp_path], load_rules(strict=False)).problems
