"""Where nothing marks steps, passes of the same kernels are laid over each other to see where a device idles."""

from __future__ import annotations

import pytest

from advisor.model import RUN
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"


def _report(folder, gaps, passes=12, first=0):
    """`gaps`: microseconds behind each kernel of a pass; the recording begins at its kernel number `first`."""
    lines, at = [], 1_700_000_000_000_000.0
    for number in range(first, first + passes * len(gaps)):
        place = number % len(gaps)
        kind = "ArgMax" if not place else f"Kind{place % 7}"
        lines.append(f"0,aclnn{kind}_{kind},{kind},AI_VECTOR_CORE,{at:.3f},10,0,40")
        at += 10 + gaps[place]
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
    return advise([folder], load_rules(), Options())


def _of_run(report):
    return {f.name: f.value for f in report.facts if f.subject == RUN}


@pytest.mark.parametrize("first", [0, 70])
def test_late_launches_in_one_part_of_each_pass_are_placed_there(tmp_path, first):
    """Thirty of a hundred kernels have gaps of 30 us: half of a pass, wherever the recording begins."""
    report = _report(tmp_path, [1.0] * 60 + [30.0] * 30 + [1.0] * 10, first=first)
    values = _of_run(report)
    assert values["timeline.idle_part_passes"] == 11
    assert values["timeline.idle_part_share"] == pytest.approx(0.58, abs=0.06)
    (finding,) = (f for f in report.findings if f.rule == "SCHED014")
    assert "of each of the 11 passes" in finding.message.en and "spread over the whole time" not in finding.message.en


def test_even_gaps_lie_everywhere(tmp_path):
    """Each kernel waits for its launch alike."""
    report = _report(tmp_path, [10.0] * 100)
    assert _of_run(report)["timeline.idle_part_share"] == pytest.approx(0.9, abs=0.02)
    (finding,) = (f for f in report.findings if f.rule == "SCHED014")
    assert "spread over the whole time" in finding.message.en
