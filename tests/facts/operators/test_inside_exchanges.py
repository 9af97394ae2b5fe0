"""Kernels that compute and exchange in one: their AI CPU half is no operator, and waiting lies inside of them."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.model import Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

HEADING = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
STEPS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def _collective(step: int, wait_ms: float, transit_ms: float) -> dict[str, dict[str, object]]:
    """One reduction at the end of a step, in which hardly anybody waits."""
    times = {
        "Start Timestamp(us)": 1e15 + step * 1e6 + 960_000, "Elapse Time(ms)": wait_ms + transit_ms + 0.1,
        "Transit Time(ms)": transit_ms, "Wait Time(ms)": wait_ms, "Synchronization Time(ms)": wait_ms,
        "Idle Time(ms)": 0.1, "Wait Time Ratio": 0.0, "Synchronization Time Ratio": 0.0,
    }  # fmt: skip
    sent = {"Transit Size(MB)": 500.0, "Transit Time(ms)": transit_ms, "Bandwidth(GB/s)": 500.0 / transit_ms}
    return {"Communication Time Info": times, "Communication Bandwidth Info": {"HCCS": sent}}


def _report(folder: Path, inside_us: list[float], late: bool = True) -> Report:
    """Ranks of a layer-sharded training of three steps of 1 s, each with what its fused kernels take a step; those of
    which these take less idle as much longer, if `late`, or compute as much more by themselves."""
    for rank, inside in enumerate(inside_us):
        product = 440_000.0 if late else 940_000.0 - inside
        idle = 960_000 - product - inside
        output = folder / f"host_{rank}_20260901000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / f"profiler_info_{rank}.json").write_text(f'{{"rank_id": {rank}}}', encoding="utf-8")
        group = {"group_name": "tp", "group_rank": rank, "global_ranks": list(range(len(inside_us)))}
        metadata = json.dumps({"parallel_group_info": {"group": group}})
        (output.parent / "profiler_metadata.json").write_text(metadata, encoding="utf-8")
        rows = [
            ("AllGatherMatmul", "MIX_AIC", 1920, inside * 3),
            ("AllGatherMatmulAicpu", "AI_CPU", 1920, 900_000.0),
            ("MatMul", "AI_CORE", 3000, product * 3),
        ]
        whole = sum(us for *_, us in rows)
        lines = [f"0,{n},{c},{k},{us},{us / k},{us / k},{us / k},{100 * us / whole}" for n, c, k, us in rows]
        (output / "op_statistic.csv").write_text("\n".join([HEADING, *lines]) + "\n", encoding="utf-8")
        steps = [f"0,{n},{960_000 - idle},40000,0,40000,{idle},1000000,0,40000,100" for n in (5, 6, 7)]
        (output / "step_trace_time.csv").write_text("\n".join([STEPS, *steps]) + "\n", encoding="utf-8")
        exchanged = {
            f"step{n}": {"p2p": {}, "collective": {f"hcom_allReduce__1_{n}_1@group": _collective(n, 0.1, 30.0)}}
            for n in (5, 6, 7)
        }
        (output / "communication.json").write_text(json.dumps(exchanged), encoding="utf-8")
    return advise([folder], load_rules(), Options(jobs=1))


def test_the_half_that_exchanges_on_the_ai_cpu_is_no_operator_to_replace(tmp_path: Path) -> None:
    report = _report(tmp_path, [500_000.0] * 4)
    assert not [f for f in report.findings if f.rule == "COMP050"]


def test_whoever_comes_last_to_an_exchange_is_waited_for_inside_of_it(tmp_path: Path) -> None:
    """The collectives between them show no waiting."""
    report = _report(tmp_path, [500_000.0, 510_000.0, 500_000.0, 300_000.0])
    (finding,) = (f for f in report.findings if f.rule == "CLUS050")
    assert finding.subject.id == "3" and finding.saving is not None
    assert 190_000 <= finding.saving.us <= 210_000
    assert "AllGatherMatmul" in finding.message.en


def test_one_that_does_not_idle_is_not_late(tmp_path: Path) -> None:
    """Its own products take longer instead."""
    report = _report(tmp_path, [500_000.0, 510_000.0, 500_000.0, 300_000.0], late=False)
    assert not [f for f in report.findings if f.rule == "CLUS050"]
