"""What the only recorded step waits for its batch stands in no row, and is told all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_loop import TorchLoop

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

WAIT_US, STEP_US = 33_000, 98_000
TYPES = ("MatMul", "MatMulGrad", "SoftmaxV2", "ApplyAdamW")
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _write(folder: Path, steps: int, ends_us: int) -> None:
    """A loop that fetches and then launches; its marks end so long after the last kernel."""
    loop, begin = TorchLoop(), 1_000_000
    for step in range(7, 7 + steps):
        for n in range(STEP_US // 1000):
            loop.launch(step, TYPES[n % 4], n, begin + WAIT_US + n * 1000, 1000)
        loop.call(f"ProfilerStep#{step}", begin, WAIT_US + STEP_US + ends_us)
        loop.call(LOADER, begin, WAIT_US)
        loop.row(step, STEP_US, STEP_US + (WAIT_US if step < 6 + steps else 0), WAIT_US)
        begin += WAIT_US + STEP_US + max(ends_us, 0)
    loop.write(folder)


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
