"""What the only recorded step waits for its batch stands in no row, and is told all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

WAIT_US, STEP_US = 33_000, 98_000
TYPES = ("MatMul", "MatMulGrad", "SoftmaxV2", "ApplyAdamW")
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _write(folder: Path, steps: int, ends_us: int) -> None:
    """A loop that fetches and then launches; its marks end so long after the last kernel."""
    output = folder / "a_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    table = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Preparing"]
    rows, begin, host = (
        ["Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us)"],
        1_000_000,
        {"pid": 1, "tid": 1},
    )
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}}]
    for step in range(7, 7 + steps):
        first = begin + WAIT_US
        rows += [
            f"{step},{TYPES[n % 4]}{n},{TYPES[n % 4]},AI_CORE,{first + n * 1000}.0,1000" for n in range(STEP_US // 1000)
        ]
        mark = {"ph": "X", "name": f"ProfilerStep#{step}", "dur": WAIT_US + STEP_US + ends_us}
        events += [{**host, "ts": f"{begin}.0", **each} for each in (mark, {"ph": "X", "name": LOADER, "dur": WAIT_US})]
        stage = STEP_US + (WAIT_US if step < 6 + steps else 0)
        table.append(f"0,{step},{STEP_US},0,0,0,{stage - STEP_US},{stage},{WAIT_US}")
        begin += WAIT_US + STEP_US + max(ends_us, 0)
    (output / "step_trace_time.csv").write_text("\n".join(table) + "\n")
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    (output / "trace_view.json").write_text(json.dumps(events))


@pytest.mark.parametrize(("steps", "ends_us", "rule"), [(1, 20, "DATA101"), (1, -50_000, None), (4, 20, "DATA023")])
def test_the_wait_before_a_lone_step_is_told_where_the_host_did_not_run_ahead(
    tmp_path: Path, steps: int, ends_us: int, rule: str | None
) -> None:
    """Where the mark ends before its kernels the step before may still have run; several steps hold their waits."""
    _write(tmp_path, steps, ends_us)
    found = advise([tmp_path], load_rules(), Options(jobs=1)).findings
    waits = [f for f in found if f.verdict == "data-processing-bottleneck"]
    assert [f.rule for f in waits] == ([rule] if rule else [])
    for finding in waits:
        assert finding.saving is not None
        assert finding.saving.us_per_step == pytest.approx(WAIT_US, rel=0.05)
    few = next((f.message.en for f in found if f.rule == "COLL020"), "")
    assert ("one more step would show" in few) is (steps == 1 and rule is None)
