"""Same bytes, same answer: what a browser or a file manager adds to a file's name changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL
from judged import findings_of, report_on

from advisor.sources.folders import plain_name
from benchmarks.simulator import Fault, simulate, write_profile

WAYS: tuple[Callable[[Path], str], ...] = (
    lambda path: f"{path.stem} (1){path.suffix}",
    lambda path: f"{path.stem} - Copy{path.suffix}",
    lambda path: f"{path.stem} copy 2{path.suffix}",
    lambda path: f"{path.stem} - 副本{path.suffix}",
    lambda path: f"Copy of {path.name}",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_copys_name_is_the_originals(way: Callable[[Path], str]) -> None:
    for name in ("step_trace_raw_0_detail_time.csv", "profiler_info_3.json", "ascend_pytorch_profiler_0.db"):
        assert plain_name(way(Path(name))) == name
        assert plain_name(name) == name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_profile(simulate(replace(SMALL, faults=(Fault("slow_compute", 1, 0.5),))), folder, trace=True)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_copies_alone_are_judged_as_the_originals(tmp_path: Path, whole: Path, way: Callable[[Path], str]) -> None:
    copied = Path(shutil.copytree(whole, tmp_path / "copied"))
    for path in [path for path in copied.rglob("*") if path.is_file()]:
        path.rename(path.with_name(way(path)))
    assert findings_of(report_on(copied)) == findings_of(report_on(whole))
