"""Recordings of which only communication is there: fragments of a training, and benchmarks of communication."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.api import advise

LATE, ON_TIME = 1.0, 41.0
"""Milliseconds in a collective of 1 ms: of the rank that comes last, and of those that wait for it."""


def _operation(start_us: float, elapsed_ms: float, transit_ms: float, packet_mb: float = 100.0) -> dict[str, object]:
    size = packet_mb * max(round(100 / packet_mb), 1)
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": start_us, "Elapse Time(ms)": elapsed_ms, "Transit Time(ms)": transit_ms,
            "Wait Time(ms)": elapsed_ms - transit_ms, "Synchronization Time(ms)": 0.0, "Idle Time(ms)": 0.0,
        },
        "Communication Bandwidth Info": {
            "RDMA": {
                "Transit Size(MB)": size, "Transit Time(ms)": transit_ms, "Bandwidth(GB/s)": size / transit_ms,
                "Large Packet Ratio": 0, "Size Distribution": {str(packet_mb): [round(size / packet_mb), transit_ms]},
            }
        },
    }  # fmt: skip


def _write(folder: Path, operations: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True)
    named = {f"hcom_allReduce__055_{i}_1@1055": one for i, one in enumerate(operations)}
    document = {"step1": {"p2p": {}, "collective": named}}
    (folder / "communication.json").write_text(json.dumps(document))


def test_communication_files_alone_name_the_rank_that_always_comes_last(tmp_path: Path) -> None:
    """Nobody knows what a step takes, but who keeps the others waiting is plain; it accuses nobody at medium."""
    for rank in range(4):
        lasts = LATE if rank == 1 else ON_TIME
        begin = 0.0 if rank != 1 else 40_000.0
        _write(tmp_path / f"rank_{rank}", [_operation(1e9 + i * 90_000 + begin, lasts, LATE) for i in range(6)])
    report = advise(tmp_path)
    found = {f.rule: f for f in report.findings}
    assert found["CLUS044"].subject.id == "1" and found["CLUS044"].severity == "low"
    assert report.summary.direction == "undetermined"
    assert "240" in found["CLUS044"].message.en


def test_files_that_name_the_late_rank_are_not_said_to_tell_nothing(tmp_path: Path) -> None:
    """Without a single transport nothing is known of the links; who is late stands in the same files all the same."""
    for rank in range(2):
        begin, lasts = (0.0, ON_TIME) if rank != 1 else (40_000.0, LATE)
        each = [_operation(1e9 + i * 90_000 + begin, lasts, LATE) for i in range(6)]
        for operation in each:
            operation["Communication Bandwidth Info"] = {}
        _write(tmp_path / f"rank_{rank}", each)
    report = advise(tmp_path)
    assert "CLUS044" in {f.rule for f in report.findings} and report.summary.direction == "undetermined"
    assert "told nothing" not in report.summary.headline.en and "rank 1" in report.summary.headline.en


def test_one_rank_that_waits_is_told_without_a_name(tmp_path: Path) -> None:
    """Of one rank's files nobody knows who is late; that its collectives are all waiting can be said."""
    _write(tmp_path / "rank_0", [_operation(1e9 + i * 90_000, ON_TIME, LATE) for i in range(6)])
    assert [f.rule for f in advise(tmp_path).findings if f.direction == "communication"] == ["CLUS043"]


def test_slow_small_packets_are_told_without_a_step(tmp_path: Path) -> None:
    """100 MB in packets of 0.25 MB at a fifteenth of what the network carries."""
    _write(tmp_path / "rank_0", [_operation(1e9 + i * 90_000, 80.0, 79.0, packet_mb=0.25) for i in range(6)])
    assert [f.rule for f in advise(tmp_path).findings if f.direction == "communication"] == ["COMM071"]


def test_large_packets_at_full_speed_are_no_finding(tmp_path: Path) -> None:
    """100 MB in 6 ms are what such a network carries: nothing to say."""
    _write(tmp_path / "rank_0", [_operation(1e9 + i * 90_000, 6.1, 6.0) for i in range(6)])
    assert not [f for f in advise(tmp_path).findings if f.direction == "communication"]


def _benchmark(folder: Path, computing_us: float) -> None:
    """A rank whose kernels are collectives, 15 us apart, and a step table that knows of this much computing."""
    output = folder / "node_4000_20260101120000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / "profiler_info_0.json").write_text('{"rank_id": 0, "config": {}}')
    rows = ["Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"]
    kind = "hcom_allReduce_,COMMUNICATION"
    rows += [f"hcom_allReduce__300_{i}_1,{kind},{1e12 + i * 45:.3f},30.0,15.0" for i in range(200)]
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    table = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
    (output / "step_trace_time.csv").write_text(f"{table}0,,{computing_us},6000,0,6000,3000,{9000 + computing_us},0\n")


def test_collectives_without_computing_are_a_benchmark(tmp_path: Path) -> None:
    """Nothing computes, as both tables say: there is nothing to overlap and nothing lost, and the rows are complete."""
    _benchmark(tmp_path, 0)
    report = advise(tmp_path)
    assert report.profile.recording == "kernel_benchmark"
    assert not [f for f in report.findings if f.direction == "communication"]
    assert not [p for p in report.problems if "missing between" in p.problem]


def test_collectives_that_a_table_was_cut_to_are_none(tmp_path: Path) -> None:
    """The step table knows of computing: whoever kept only the collectives' rows recorded a program."""
    _benchmark(tmp_path, 40_000)
    report = advise(tmp_path)
    assert report.profile.recording != "kernel_benchmark"
    assert [p for p in report.problems if "collectives alone" in p.problem]
