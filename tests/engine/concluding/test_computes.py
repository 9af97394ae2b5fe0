"""Nearly all of the time is computation: that is a direction, however weak the evidence for its cause."""

from __future__ import annotations

from pathlib import Path

from advisor.config import load_config
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules

HEADING = (
    "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types,"
    "aicore_time(us),aic_mac_ratio,aic_mte2_ratio"
)


def _write(folder: Path, longest: float) -> Path:
    output = folder / "h_1_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows, at = [], 1_000_000.0
    for number, (kind, lasts) in enumerate(
        [("Add", 10.0), ("Conv2D", longest), *[(f"Cast{n}", 11.0) for n in range(9)]]
    ):
        rows.append(
            f'0,{kind}{number},{kind},AI_CORE,{at:.3f},{lasts},0,"3840,1,14;72,16,16",FLOAT16,{lasts},0.33,0.45'
        )
        at += lasts
    (output / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return folder


def test_one_operator_that_takes_all_the_time_has_its_direction(tmp_path: Path) -> None:
    """A handful of kernels, one of them 98 % of the time: computation, with the suspect and its low confidence."""
    report = advise([_write(tmp_path, 8000.0)], load_rules(config=load_config(None)))
    assert report.summary.direction == "computation"
    assert "is computation" in report.summary.headline.en and "low confidence" in report.summary.headline.en


def test_nobody_asks_one_device_for_collectives(tmp_path: Path) -> None:
    """A device that communicates with nobody lacks no communication.json."""
    report = advise([_write(tmp_path, 8000.0)], load_rules(config=load_config(None)))
    assert not [entry for entry in report.missing_evidence if entry.evidence.startswith("communication")]
