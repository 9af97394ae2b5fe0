"""A serving engine names the folders of its workers: what they recorded is no training."""

from __future__ import annotations

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

STEPS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dp0_pp0_tp{}_dcp0_ep{}_rank{}_2261_20260513152333082_ascend_pt", "inference"),
        ("dp0_pp0_tp{}_ep{}_rank{}_2261_20260513152333082_ascend_pt", "inference"),
        ("node_tp{}_{}{}_2261_20260513152333082_ascend_pt", "unmarked"),
    ],
)
def test_folders_of_a_serving_engine_tell_inference(tmp_path, name, kind):
    """Data, pipeline and tensor coordinates in this order are its workers' names; anything else is a host's."""
    for rank in range(2):
        folder = tmp_path / name.format(rank, rank, rank) / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        row = f"{rank},,2876000,5155000,0,5155000,10353000,18384000"
        (folder / "step_trace_time.csv").write_text(f"{STEPS}\n{row}\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options())
    assert report.profile.recording == kind
    exposed = next(f for f in report.findings if f.rule == "COMM010")
    assert ("shrink-serving-exchange" in [r.id for r in exposed.remedies]) == (kind == "inference")
