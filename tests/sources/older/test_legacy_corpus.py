"""Real files of older MindSpore with known contents (needs ADVISOR_CORPUS)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from advisor.sources.base import Rank
from advisor.sources.layouts.legacy import find_ranks

CORPUS = Path(os.environ.get("ADVISOR_CORPUS", "/nowhere"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="ADVISOR_CORPUS names no folder")


def ranks_of(name: str) -> dict[int, Rank]:
    folder = CORPUS / name
    return {rank.rank: rank for rank in find_ranks(folder, folder)}


def table(rank: Rank, name: str) -> Any:
    frame = rank.read(name)
    assert frame is not None, (name, rank.problems)
    return frame


PIPELINE = "mindinsight-cluster_propose_pp2_4rank"


def test_pipeline_run_names_stages_and_averages() -> None:
    """Step intervals and FLOPs of the four ranks as the source states them."""
    ranks = ranks_of(PIPELINE)
    assert [rank.info["stage"] for rank in ranks.values()] == [0, 0, 1, 1]
    gaps = [table(rank, "step_phases_average")["interval_us"].iloc[0] / 1e3 for rank in ranks.values()]
    assert gaps == pytest.approx([1.5722, 1.5588, 2.4318, 2.3954], abs=1e-4)
    flops = [table(rank, "flops").iloc[0].tolist() for rank in ranks.values()]
    assert [round(row[0] / 1e6, 3) for row in flops] == [107146.763, 107145.034, 329608.369, 329612.4]
    assert [round(row[2], 5) for row in flops] == [0.0023, 0.00229, 0.00725, 0.00725]


def test_pipeline_run_computation_by_stage() -> None:
    """14.7 ms against 122.7 ms: five steps each, the average row left out."""
    ranks = ranks_of(PIPELINE)
    frames = {number: table(rank, "cluster_phases") for number, rank in ranks.items()}
    assert all(len(frame) == 5 for frame in frames.values())
    assert frames[0]["computation_us"].iloc[1:].mean() == pytest.approx(14_776, rel=1e-3)
    assert frames[2]["receive_us"].iloc[0] == pytest.approx(1_989_431)
    assert frames[2]["receive_us"].iloc[1:].mean() == pytest.approx(2_895, rel=2e-2)


@pytest.mark.parametrize(
    ("rank", "ends", "rate"), [(0, (1, 0), 20.9), (1, (0, 1), 5.06), (2, (3, 2), 17.4), (3, (2, 3), 19.4)]
)
def test_pipeline_run_links_by_size_over_time(rank: int, ends: tuple[int, int], rate: float) -> None:
    """Rates follow from size and time, in GB/s, and stage 1 has its own ranks.

    The rates known count links by the ids in the file, which file ranks 0's and 3's receives under the same link.
    """
    frame = table(ranks_of(PIPELINE)[rank], "links")
    receives = frame["name"].str.startswith("Receive")
    counted = (frame["source"] == ends[0]) & (frame["destination"] == ends[1])
    if rank in (0, 3):
        counted |= receives
    between = frame[counted]
    assert between["size_bytes"].sum() / between["time_us"].sum() / 1e3 == pytest.approx(rate, rel=0.03)
    assert set(frame.loc[receives, "source"]) == {(rank + 2) % 4}
    assert frame["source"].notna().all() and frame["destination"].notna().all()


def test_pipeline_run_waits_rather_than_communicates() -> None:
    """Rank 0, step 1: 2.60 ms transfer against 270.3 ms wait, and elapsed times of the step trace beside them."""
    frame = table(ranks_of(PIPELINE)[0], "collectives")
    first = frame[frame["step"] == "1"]
    assert first["transit_us"].sum() == pytest.approx(2600.18)
    assert first["wait_us"].sum() == pytest.approx(270_250.56)
    assert first["elapsed_us"].notna().all()
    assert (first["elapsed_us"] >= first["transit_us"] + first["wait_us"] - 1).all()
    assert set(frame["step"]) == {"1", "2", "3", "4", "5", "6"}


def test_interval_bound_steps() -> None:
    """Total 130.46 ms of which the gap takes 90.35: means over all steps but the first, ranks 0 and 10."""
    ranks = ranks_of("mindinsight-step_trace_interval_bound")
    assert list(ranks) == [0, 1, 10]
    for number, total, gap, count in ((0, 130.4561, 90.3536, 20), (10, 130.4972, 90.3735, 40)):
        frame = table(ranks[number], "step_phases")
        assert len(frame) == count
        assert frame["interval_us"].iloc[0] == 0
        assert frame["total_us"].iloc[1:].mean() / 1e3 == pytest.approx(total, abs=1e-3)
        assert frame["interval_us"].iloc[1:].mean() / 1e3 == pytest.approx(gap, abs=1e-3)
    assert table(ranks[0], "flops").iloc[0].tolist() == pytest.approx([8167.743e6, 9868.936e9, 0.03765])


def test_lenet_operators() -> None:
    """MatMul is 57.6 % of the core time although the rows present sum up to 71.1 %."""
    (rank,) = ranks_of("mindinsight-run1_lenet_operators").values()
    types = table(rank, "operator_types").set_index("type")
    assert len(types) == 24
    assert types.loc["MatMul", ["count", "total_us", "share"]].tolist() == pytest.approx([25, 2807.82, 0.576])
    assert types.loc["MatMul", "avg_us"] == pytest.approx(112.313, abs=1e-3)
    operators = table(rank, "operators").set_index("name")
    found = operators[operators["type"] == "AssignAdd"]
    assert (found["total_us"] / found["count"]).tolist() == pytest.approx([1.79, 1.283], abs=1e-3)
    assert operators["input_shapes"].notna().any()


def test_alexnet_operators_and_aicpu() -> None:
    """AI CPU totals, operator types and the one step of a starved run."""
    (rank,) = ranks_of("mindinsight-run2_alexnet_data_starved").values()
    aicpu = table(rank, "aicpu").groupby("name")["total_us"].sum()
    assert aicpu.to_dict() == pytest.approx({"InitData": 7906.0, "GetNext": 1181.0, "EndOfSequence": 607.0})
    types = table(rank, "operator_types").set_index("type")
    assert types.loc["MatMul", ["total_us", "share"]].tolist() == pytest.approx([20657.74, 0.8947])
    step = table(rank, "step_phases").iloc[0]
    assert [step["fp_bp_us"], step["tail_us"], step["total_us"]] == pytest.approx([23668.08, 40.97, 23709.05])
    assert step["interval_us"] != step["interval_us"]
    assert table(rank, "step_phases_average")["interval_us"].iloc[0] == pytest.approx(12432.11)
    assert "kernels" not in rank.tables  # the timeline keeps a part of them, the tables beside it are whole
    assert rank.info["fp_start"] == "Default/EndOfSequence-op131"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mindinsight-run3_model_parallel_min", [651905.1, 1293123.1, None, None, None]),
        ("mindinsight-run4_pipeline_parallel_min", [651905.1, 1293123.1, 1577123.4, 368776.6, 227123.4]),
    ],
)
def test_smallest_cluster_files(name: str, expected: list[float | None]) -> None:
    """A single row is the only thing there is: it is used, and said to be perhaps an average."""
    (rank,) = ranks_of(name).values()
    row = table(rank, "cluster_phases").iloc[0].tolist()
    assert row[0] == "1"
    assert [None if value != value else value for value in row[1:]] == pytest.approx(expected)
    assert any("average" in problem.problem for problem in rank.problems)


def test_strategy_of_two_ranks() -> None:
    """One stage with both devices; the settings of rank 0 hold for rank 1."""
    ranks = ranks_of("mindinsight-parallel_strategy_2rank")
    assert [rank.info["stage_devices"] for rank in ranks.values()] == [[[0, 1]], [[0, 1]]]
    assert ranks[1].info["rank_size"] == 2
    assert {rank.info["parallel_mode"] for rank in ranks.values()} == {"auto_parallel"}


def test_dynamic_shapes_of_a_real_run() -> None:
    """Nine steps; the first Add takes 75.6 us on two columns of 32."""
    (rank,) = ranks_of("mindinsight-gpu_dynamic_shape").values()
    frame = table(rank, "dynamic_shapes")
    row = frame[(frame["step"] == "1") & (frame["type"] == "Add")].iloc[0]
    assert row.tolist() == ["1", "Add-op6", "Add", "32,1;32,1", 75.616]
    assert frame["step"].nunique() == 9


def test_old_text_of_the_ai_cpu() -> None:
    """InitData, GetNext and TruncatedNormal: 4.122 ms together."""
    (rank,) = ranks_of("mindinsight-legacy_raw_json/JOB_AICPU/expect").values()
    frame = table(rank, "aicpu")
    assert frame["total_us"].tolist() == pytest.approx([1567.0, 989.0, 1566.0])
    assert frame["dispatch_us"].tolist() == pytest.approx([100.0, 87.0, 105.0])


def test_old_unit_test_data() -> None:
    """Unrelated devices 0, 1, 6 and 10; device 6 spends 16 % of a step after backward, in one AllReduce."""
    ranks = ranks_of("ms-old-ut-profiler/profiler")
    assert list(ranks) == [0, 1, 6, 10]
    steps = table(ranks[6], "step_phases")
    assert (steps["tail_us"] / steps["total_us"]).tolist() == pytest.approx([0.164, 0.163], abs=1e-3)
    assert table(ranks[6], "step_collectives")["duration_us"].tolist() == [4540.8, 4540.8]
    links = table(ranks[6], "links")
    assert links["source"].isna().sum() == 2 and set(links["destination"]) == {6}
    assert table(ranks[1], "operator_types").set_index("type").loc["TransData", "share"] == pytest.approx(0.0823)


@pytest.mark.parametrize("folder", sorted(p.name for p in CORPUS.glob("mindinsight-*")) if CORPUS.is_dir() else [])
def test_every_folder_reads_without_a_failure(folder: str) -> None:
    """Every table found in a real folder can be read, and no reader gives up with an error."""
    for path in [CORPUS / folder, *(p for p in (CORPUS / folder).rglob("*") if p.is_dir())]:
        for rank in find_ranks(path, CORPUS / folder):
            for name in rank.tables:
                rank.read(name)
            assert not [p for p in rank.problems if "cannot be read" in p.problem]
