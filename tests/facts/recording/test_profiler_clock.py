"""The profiler's own marks of its beginning and end are a witness of how much of the recording is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.api import advise
from advisor.model import RUN
from advisor.pipeline import Options, measure

HEAD = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types"
BEGIN_NS = 497_417_552_446_300


def _write(root: Path, ran_ms: float, schedule: dict[str, int], extra: dict[str, Any] | None = None) -> Path:
    """200 kernels of 0.3 ms one behind the other, most of them casts, of a profiler that ran so many milliseconds."""
    output = root / "host_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [HEAD]
    for place in range(200):
        kind = "MatMulV2" if place % 5 == 0 else "Cast"
        core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
        rows.append(f'aclnn{kind}_{kind},{kind},{core},{1_000_000 + 300 * place}.000,300,0,"4096,{place + 64}",FLOAT16')
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    info: dict[str, Any] = {
        "config": {"common_config": {"activities": ["ProfilerActivity.NPU"], "schedule": schedule}},
        "start_info": {"start_monotonic": BEGIN_NS},
        "end_info": {"MonotonicTimeEnd": BEGIN_NS + int(ran_ms * 1e6)},
        "rank_id": "0",
    }
    (output.parent / "profiler_info_0.json").write_text(json.dumps({**info, **(extra or {})}))
    return root


@pytest.mark.parametrize(
    ("ran_ms", "schedule", "extra", "share"),
    [
        (6000.0, {}, None, 0.01),
        (100.0, {}, None, 0.6),
        (30.0, {}, None, 1.0),
        (6000.0, {"wait": 0, "warmup": 3, "active": 1}, None, None),
        (6000.0, {}, {"end_info": {"MonotonicTimeEnd": "never"}}, None),
        (6000.0, {}, {"end_info": {"MonotonicTimeEnd": BEGIN_NS - 1}}, None),
    ],
    ids=["a hundredth", "most of it", "more than all", "a schedule ends it", "damaged", "ends before it begins"],
)
def test_what_kernels_span_of_the_time_that_the_profiler_ran(
    tmp_path: Path, ran_ms: float, schedule: dict[str, int], extra: dict[str, Any] | None, share: float | None
) -> None:
    """A profiler with a schedule is at work long before its first step, so its clock tells nothing."""
    root = _write(tmp_path / "run", ran_ms, schedule, extra)
    facts = measure([root], ["recording.clock_share"], Options(jobs=1)).facts
    told = facts.number("recording.clock_share", RUN)
    assert told is None if share is None else told == pytest.approx(share, rel=0.01)
    report = advise(root)
    casts = next(f for f in report.findings if f.subject.id == "Cast")
    doubted = any("profiler ran many times as long" in doubt.en for doubt in casts.doubts)
    assert doubted == (share is not None and share < 0.5)
    assert not doubted or (casts.severity.value, casts.confidence.value) == ("low", "low")
    assert any("that the profiler ran" in problem.problem for problem in report.problems) == doubted
