"""Cards with one core of both kinds in one, as profilers of their own name its counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

HEADING = (
    "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Block Dim,aicore_time(us),"
    "vec_exe_ratio,mac_exe_ratio,scalar_exe_ratio,mte2_exe_ratio,mte3_exe_ratio"
)


def _recorded(folder: Path, cores: int | None) -> str:
    """What is said of one launch of one block on a card with so many cores."""
    output = folder / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    row = "0,mul_custom,mul_custom,AI_VECTOR_CORE,1000.0,60.0,1,58.0,0.09,0.0,0.2,0.43,0.11"
    (output / "op_summary_1.csv").write_text(f"{HEADING}\n{row}\n")
    if cores is not None:
        device = output.parent / "device_0"
        device.mkdir()
        (device / "info.json.0").write_text(json.dumps({"DeviceInfo": [{"ai_core_num": cores, "aiv_num": cores}]}))
    (finding,) = advise([folder], load_rules(config=load_config(None))).findings
    return finding.message.en + " ".join(remedy.action.en for remedy in finding.remedies)


@pytest.mark.parametrize(
    ("cores", "said"), [(1, None), (8, "1 of 8 cores"), (None, "single block, which keeps only one core busy")]
)
def test_one_block_is_all_that_a_card_with_one_core_runs(tmp_path: Path, cores: int | None, said: str | None) -> None:
    """Whoever tunes a kernel for one core is not told to use the others, and its counters are read."""
    told = _recorded(tmp_path, cores)
    assert cores == 8 or "memory read unit (MTE2) at 43" in told
    assert "cube" not in told
    assert ("block" in told.replace("one block in a simulation", "")) is (said is not None)
    assert said is None or said in told
