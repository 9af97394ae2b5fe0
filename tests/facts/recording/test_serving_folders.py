"""A serving engine names the folders of its workers, and its interfaces serve: what they recorded is no training."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.folders import parallelism_of

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
    told = report.profile.parallelism
    assert ((told.data, told.tensor, told.pipeline) == (1, 2, 1)) is (kind == "inference")
    doubts = [doubt.en for doubt in exposed.doubts]
    assert any("may be a pipeline bubble" in doubt for doubt in doubts) is (kind == "unmarked")
    assert ("shrink-serving-exchange" in [r.id for r in exposed.remedies]) == (kind == "inference")


@pytest.mark.parametrize(
    ("places", "sizes"),
    [
        (["dp0_pp0_tp0", "dp0_pp0_tp1", "dp0_pp1_tp0", "dp0_pp1_tp1"], (1, 2, 2)),
        (["dp0_pp0_tp0", "dp0_pp0_tp1", "dp0_pp1_tp0"], None),  # a worker is missing
        (["dp0_pp0_tp0"], None),  # others may have run beside it
        (["dp0_pp0_tp0", "node"], None),
    ],
)
def test_names_of_workers_tell_the_partition(places, sizes):
    """Nothing else in such a profile says that there is no pipeline, and so no bubble to doubt about."""
    folders = [Path(f"/x/{place}_dcp0_ep0_rank{i}_9_20260513152333082_ascend_pt") for i, place in enumerate(places)]
    told = parallelism_of(folders)
    assert (None if told is None else (told.data, told.tensor, told.pipeline)) == sizes


@pytest.mark.parametrize(("overlapped", "said"), [(3_000_000, True), (1_000_000, False)])
def test_who_exchanges_beside_computation_is_not_told_to(tmp_path, overlapped, said):
    """Where more communication is hidden than not, one half of the batch computes while the other exchanges already."""
    for rank in range(2):
        name = f"dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}_2261_20260513152333082_ascend_pt"
        folder = tmp_path / name / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        row = f"{rank},,6400000,2000000,{overlapped},{2000000 + overlapped},1200000,9600000"
        (folder / "step_trace_time.csv").write_text(f"{STEPS}\n{row}\n", encoding="utf-8")
    exposed = next(f for f in advise([tmp_path], load_rules(), Options()).findings if f.rule == "COMM010")
    action = next(remedy.action.en for remedy in exposed.remedies if remedy.id == "shrink-serving-exchange")
    assert ("is hidden already" in action) is said
    assert ("Let one part of the batch compute" in action) is not said


@pytest.mark.parametrize(
    ("interfaces", "kind"),
    [
        (["aclnnInnerFusedInferAttentionScore", "aclnnMatmul"], "inference"),
        (["aclnnInnerFusedInferAttentionScore", "aclnnFlashAttentionScoreGrad"], "unmarked"),
        (["aclnnMatmul"], "unmarked"),
        (["FusedInferAttentionScoreTiling"], "unmarked"),
    ],
)
def test_interfaces_that_only_inference_calls_tell_it_where_no_kernel_is_named(tmp_path, interfaces, kind):
    """A table of steps and the host's calls are all there is; what also computes gradients does not only serve."""
    folder = tmp_path / "node_0_2261_20260513152333082_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    (folder / "step_trace_time.csv").write_text(f"{STEPS}\n0,,6400000,0,0,0,1200000,9600000\n", encoding="utf-8")
    calls = "".join(f"host,acl,{name},83700,1088,76.9,38.4,3000,1479\n" for name in interfaces)
    heading = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
    (folder / "api_statistic.csv").write_text(heading + calls, encoding="utf-8")
    assert advise([tmp_path], load_rules(), Options()).profile.recording == kind
