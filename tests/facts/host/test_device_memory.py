"""Device memory that is asked for and freed while steps run, and in how many of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.model import RUN
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"


@pytest.mark.parametrize(
    ("freeing", "says"), [((1, 2, 3, 4, 5), "in 5 of 6 steps"), (tuple(range(6)), "in every step"), ((), "")]
)
def test_device_memory_is_asked_for_in_the_steps_that_do(tmp_path: Path, freeing: tuple[int, ...], says: str) -> None:
    """Two calls of 4 ms in some of six steps are told with how many these are."""
    at, rows = 1_000_000.0, []
    events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "CANN"}}]
    for step in range(6):
        for n in range(20):
            for name in ("aclrtFree", "aclrtMalloc") if n == 10 and step in freeing else ():
                call = {"name": f"AscendCL@{name}", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 4000}
                events.append(call)
                at += 4000
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (tmp_path / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    report = advise([tmp_path], load_rules(config=load_config(None)))
    told = [finding.message.en for finding in report.findings if finding.rule == "MEM040"]
    assert bool(told) is bool(freeing) and all(says in text for text in told)
    counted = [f.value for f in report.facts if f.name == "host_api.memory_steps" and f.subject == RUN]
    assert counted == ([len(freeing)] if freeing else [])
