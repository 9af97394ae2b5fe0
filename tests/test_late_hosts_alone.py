"""Hosts that are late for collectives: what step rows of a recording tell, and what collectives add to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.model import Finding, Report
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules

ROW = ",".join((
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble",
    "Communication(Not Overlapped and Exclude Receive),Preparing",
))  # fmt: skip
CALLS, COMPUTING_US, IDLE_US, MOVING_US = 40, 400_000.0, 500_000.0, 20.0


def recorded(folder: Path, late_us: list[list[float]], collectives: bool) -> Path:
    """Ranks (one row each) that come so late to each collective of one recording without steps, idling before it."""
    begins = [max(each) for each in zip(*late_us, strict=True)]
    for rank, own in enumerate(late_us):
        output = folder / f"node_{100 + rank}_20260108093239559_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "world_size": 4}))
        waits = [begin - us for begin, us in zip(begins, own, strict=True)]
        exposed, idle = sum(waits) + CALLS * MOVING_US, IDLE_US + sum(own)
        cells = (rank, "", COMPUTING_US, exposed, 0, exposed, idle, COMPUTING_US + exposed + idle, 0, exposed, 0)
        (output / "step_trace_time.csv").write_text(f"{ROW}\n{','.join(map(str, cells))}\n")
        told = {
            f"hcom_allReduce__503_{i}_1@5862276106100383503": {
                "Communication Time Info": {
                    "Start Timestamp(us)": 1e15 + 3e4 * i + own[i], "Elapse Time(ms)": (wait + MOVING_US) / 1000,
                    "Transit Time(ms)": MOVING_US / 1000, "Wait Time(ms)": wait / 1000, "Idle Time(ms)": 0.0,
                },
                "Communication Bandwidth Info": {},
            }
            for i, wait in enumerate(waits)
        }  # fmt: skip
        if collectives:
            (output / "communication.json").write_text(json.dumps({"step": {"p2p": {}, "collective": told}}))
    return folder


def of_hosts(first: float, second: float, *, in_turn: bool) -> list[list[float]]:
    """How late four ranks come to each collective: the second and third of them, in turn or together."""
    ahead = [first if not in_turn or i % 2 else 0.0 for i in range(CALLS)]
    behind = [second if not in_turn or not i % 2 else 0.0 for i in range(CALLS)]
    return [[0.0] * CALLS, ahead, behind, [0.0] * CALLS]


def judged(folder: Path) -> tuple[Report, Finding]:
    report = advise([folder], load_rules(), Options())
    return report, next(f for f in report.findings if f.rule == "CLUS040")


@pytest.mark.parametrize(("in_turn", "waited"), [(True, 440_000.0), (False, 240_000.0)])
def test_hosts_that_are_late_in_turn_gain_the_sum(tmp_path, in_turn, waited):
    """240 and 200 ms for different collectives: the others wait 440 ms. For the same ones they wait for the later."""
    part = 2 if in_turn else 1
    late = of_hosts(part * 240_000 / CALLS, part * 200_000 / CALLS, in_turn=in_turn)
    _, found = judged(recorded(tmp_path, late, collectives=True))
    assert found.subject.ranks == (1, 2) and found.saving is not None
    assert found.saving.us == pytest.approx(waited, rel=0.02)
    assert f"The other ranks wait {waited / 1000:.0f} ms" in found.message.en.replace("\N{NO-BREAK SPACE}", " ")


def test_where_only_step_rows_tell_of_late_hosts_what_they_may_come_to_is_said(tmp_path):
    """The rows do not show who comes last in which collective: the lesser is promised, the sum is named."""
    late = of_hosts(2 * 240_000 / CALLS, 2 * 200_000 / CALLS, in_turn=True)
    _, found = judged(recorded(tmp_path, late, collectives=False))
    assert found.saving is not None and found.saving.us == pytest.approx(240_000, rel=0.02)
    assert any("up to 440" in doubt.en for doubt in found.doubts)


def test_what_late_hosts_idle_longer_is_not_lost_twice(tmp_path):
    """The mean of 610 ms idle time holds what the late ones idle longer; 500 ms of it no rank on time is rid of."""
    late = of_hosts(2 * 240_000 / CALLS, 2 * 200_000 / CALLS, in_turn=True)
    report, _ = judged(recorded(tmp_path, late, collectives=True))
    idle = next(f for f in report.findings if f.rule == "SCHED020")
    assert idle.at_stake is not None and idle.at_stake.us == pytest.approx(IDLE_US, rel=0.02)
