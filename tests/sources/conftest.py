"""Small profiles on disk, and a notebook for what readers say about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STEP_HEADING = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"


class Notes(list):
    """Collects (file, problem) pairs; `text` is all problems in one."""

    def __call__(self, file: str, problem: str, doubted: tuple[str, ...] = ()) -> None:
        self.append((file, problem))

    @property
    def text(self) -> str:
        return "\n".join(problem for _, problem in self)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def make_rank(tmp_path: Path) -> Callable[..., Path]:
    """make_rank("r0_ascend_pt", rank=0, **{"step_trace_time.csv": text}) -> the rank folder."""

    def make(name: str, rank: int | None = None, info: dict[str, Any] | None = None, **files: str) -> Path:
        folder = tmp_path / name
        output = folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        for file, text in {"step_trace_time.csv": f"{STEP_HEADING}\n1,10,5,1,6,3\n", **files}.items():
            (output / file).write_text(text)
        if rank is not None:
            content = {"config": {"common_config": {}, "experimental_config": {}}, "rank_id": rank, **(info or {})}
            (folder / f"profiler_info_{rank}.json").write_text(json.dumps(content))
        return folder

    return make
