"""Ranks of which only sums by operator type are at hand: what one calls that the others do not is more work."""

from __future__ import annotations

import json

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

COMMON = {"MatMulV3": (800, 800.0), "RmsNorm": (400, 50.0), "Add": (600, 100.0)}
"""Type -> (calls in the recording, microseconds a call)."""
HEAD = {"MatMulV2": (16, 5000.0), "Exp": (16, 2000.0)}
LATE = Subject("rank", "3", (3,))


def _write(folder, slower: float, head: bool, listed: int | None = None, hosts: int = 1):
    """Four ranks and two steps each; the last one's products take so many times as long, or it has a head. Of several
    hosts two ranks each, and so both of the last."""
    ranks, late = (4, {3}) if hosts == 1 else (2 * hosts, {2 * hosts - 2, 2 * hosts - 1})
    for rank in range(ranks):
        types = {**COMMON, **(HEAD if head and rank in late else {})}
        if rank in late:
            types["MatMulV3"] = (800, 800.0 * slower)
        sums = {name: calls * us for name, (calls, us) in types.items()}
        host = "host" if hosts == 1 else f"host{rank // 2}"
        out = folder / f"{host}_{rank}_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        out.mkdir(parents=True)
        busy, whole = sum(sums.values()) / 2, sum(c * us for c, us in (*COMMON.values(), *HEAD.values()))
        rows = ["Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
                "Communication(Not Overlapped and Exclude Receive),Preparing"]  # fmt: skip
        for step in (3, 4):
            rest = whole - busy
            rows.append(f"0,{step},{busy},{rest},0,{rest},2000,{busy + rest + 2000},0,{rest},500")
        (out / "step_trace_time.csv").write_text("\n".join(rows) + "\n")
        rows = ["Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
        for name in sorted(sums, key=lambda name: -sums[name])[:listed]:
            calls, us = types[name]
            share = 100 * sums[name] / sum(sums.values())
            rows.append(f"0,{name},AI_CORE,{calls},{sums[name]},{us},{us},{us},{share}")
        (out / "op_statistic.csv").write_text("\n".join(rows) + "\n")
        info = {"config": {"common_config": {"with_stack": False}}, "rank_id": rank}
        (out.parent / f"profiler_info_{rank}.json").write_text(json.dumps(info))


def test_types_that_only_the_late_rank_runs_are_more_work_and_no_slow_card(tmp_path):
    """A last stage computes the loss: its card is not accused, and dealt out anew it keeps its part of it."""
    _write(tmp_path, 1.0, head=True)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("rank.extra_work_us", LATE) == pytest.approx(8 * 7000.0)
    assert facts.value("rank.saving_us", LATE) == pytest.approx(0.75 * 8 * 7000.0)
    found = {finding.rule: finding for finding in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    assert "CLUS010" not in found
    assert "MatMulV2, Exp" in found["CLUS014"].message.en and "kernel_details.csv" in found["CLUS014"].message.en


def test_the_same_calls_that_take_longer_are_no_more_work(tmp_path):
    """As often called, each takes longer: the card, or larger inputs, which no table of sums tells."""
    _write(tmp_path, 1.3, head=False)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("rank.extra_work_us", LATE) == pytest.approx(0)
    assert facts.value("rank.slow_operators", LATE) == ("MatMulV3 +30\u00a0%",)


def test_both_are_told_apart(tmp_path):
    """Of a slow card that has the head as well, more work is no other card's gain."""
    _write(tmp_path, 1.3, head=True)
    found = {finding.rule: finding for finding in advise([tmp_path], load_rules(), Options(jobs=1)).findings}
    assert "calls or shapes that the peers do not have (MatMulV2, Exp)" in found["CLUS010"].message.en
    over = 0.3 * 800 * 400 + 8 * 7000.0
    assert found["CLUS010"].saving.us == pytest.approx(over - 8 * 7000.0 / 4)


def test_a_list_of_the_largest_types_tells_nothing_of_what_others_lack(tmp_path):
    """What is missing in a table that was cut may have run all the same."""
    _write(tmp_path, 1.0, head=True, listed=2)
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("rank.extra_work_us", LATE) == 0.0
    assert facts.value("rank.work_by_types", LATE) is False


@pytest.mark.parametrize(("head", "slower"), [(True, 1.0), (False, 1.13)])
def test_a_host_whose_ranks_have_more_work_is_not_sent_to_its_fans(tmp_path, head, slower):
    """Both ranks of the last host compute longer: types that the others do not run make no card slow, longer calls
    may."""
    _write(tmp_path, slower, head=head, hosts=4)
    found = next(f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.rule == "CLUS011")
    told = {remedy.id for remedy in found.remedies}
    assert ("even-rank-work" in told, "inspect-slow-host-cards" in told) == (head, not head)
    assert ("MatMulV2, Exp" in found.message.en) is head
