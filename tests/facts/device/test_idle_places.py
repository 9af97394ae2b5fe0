"""Where a device idles: behind every kernel, or again and again at one place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

HEADING = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
NAMES = ("timeline.concentrated_share", "timeline.recurring_share", "timeline.recurring_count", "timeline.recurring_us",
         "timeline.recurring_before", "timeline.recurring_after")  # fmt: skip


def _write(folder: Path, inner: float, between: float, executions: int = 8, length: int = 40) -> Path:
    """A graph of `length` kernels of 5 us executed again and again: `inner` us after each kernel, `between` executions
    as much more."""
    at, rows = 1_000_000.0, []
    for _ in range(executions):
        for n in range(length):
            rows.append(f"Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.3f},5")
            at += 5 + inner
        at += between
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return folder


def test_a_pause_between_two_executions_is_no_slow_launch(tmp_path: Path) -> None:
    """Kernels of a graph follow each other at once; the half millisecond between two graphs is told with its place."""
    folder = _write(tmp_path, 0.0, 100.0)
    facts = measure([folder], NAMES, Options(jobs=1)).facts
    assert facts.number("timeline.concentrated_share", RUN) == pytest.approx(1.0)
    assert facts.number("timeline.recurring_count", RUN) == 7 and facts.number("timeline.recurring_us", RUN) == 100
    assert (facts.value(NAMES[4], RUN), facts.value(NAMES[5], RUN)) == ("Op39", "Op0")
    report = advise([folder], load_rules(config=load_config(None)))
    assert not [finding for finding in report.findings if finding.verdict == "host-dispatch-bound"]
    assert any("recurs at one place, after Op39 and before Op0" in finding.message.en for finding in report.findings)


def test_what_lies_between_steps_is_told_for_a_step_although_none_follows_the_last(tmp_path: Path) -> None:
    """Three steps and two pauses of 10 ms: a step loses 10 ms, not two thirds of it."""
    at, rows = 1_000_000.0, []
    for step in range(3):
        for n in range(40):
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.3f},250")
            at += 250
        at += 10_000
    (tmp_path / "kernel_details.csv").write_text("\n".join([f"Step Id,{HEADING}", *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1))
    assert facts.facts.number("timeline.recurring_step_us", RUN) == pytest.approx(10_000)
    assert facts.facts.number("timeline.recurring_us", RUN) == pytest.approx(10_000)
    assert not facts.problems


def test_what_happened_once_does_not_recur(tmp_path: Path) -> None:
    """A checkpoint of 40 ms before one of five steps, 0.2 ms before the others: a mean of 8 ms a step is nobody's."""
    for pause, recurs in ((40_000.0, False), (200.0, True)):
        at, rows = 1_000_000.0, []
        for step in range(5):
            rows += [f"{step},Op{n},Op{n},AI_VECTOR_CORE,{at + 100 * n:.1f},100" for n in range(20)]
            at += 2000 + (pause if step == 2 else 200.0)
        (tmp_path / "kernel_details.csv").write_text("\n".join([f"Step Id,{HEADING}", *rows]) + "\n")
        facts = measure([tmp_path], NAMES, Options(jobs=1)).facts
        assert (facts.number("timeline.recurring_count", RUN) is not None) is recurs


@pytest.mark.parametrize(("long", "times"), [((9000.0,) * 6, 6), ((112_000.0,), 1)])
def test_what_recurs_is_of_one_kind(tmp_path: Path, long: tuple[float, ...], times: int) -> None:
    """Six stretches of 9 ms among a hundred of 25 us at one place are six, and one among them does not recur: the mean
    over unlike stretches is a gap that does not exist."""
    at, rows = 1_000_000.0, []
    for n in range(100):
        rows += [f"A{n},A,AI_CORE,{at:.1f},100", f"B{n},B,AI_CORE,{at + 100:.1f},100"]
        at += 200 + (long[n // 10 - 1] if n and n % 10 == 0 and n // 10 <= len(long) else 25.0)
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], NAMES, Options(jobs=1)).facts
    assert facts.number("timeline.recurring_count", RUN) == times
    assert facts.number("timeline.recurring_us", RUN) == pytest.approx(long[0])


def test_a_gap_behind_every_kernel_is_slow_launching(tmp_path: Path) -> None:
    """The same idle time spread over all kernels is the host's dispatch."""
    report = advise([_write(tmp_path, 4.0, 0.0)], load_rules(config=load_config(None)))
    assert [finding for finding in report.findings if finding.verdict == "host-dispatch-bound"]


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 20), st.floats(0, 900))
def test_parts_of_the_idle_time_are_parts(tmp_path_factory, inner: float, between: float) -> None:
    """Neither the longest stretches nor those at one place are more than all idle time."""
    folder = _write(tmp_path_factory.mktemp("run"), round(inner, 3), round(between, 3))
    facts = measure([folder], NAMES, Options(jobs=1)).facts
    for name in NAMES[:2]:
        share = facts.number(name, RUN)
        assert share is None or 0 < share <= 1 + 1e-9


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize(("broadcast", "part", "begins"), [(0, 0.9, 0.0), (6000, 0.36, 0.6)])
def test_the_part_in_which_a_device_idles_is_told(
    tmp_path: Path, broadcast: int, part: float, begins: float, times: int
) -> None:
    """Gaps behind every kernel that come only after a long broadcast are not spread over the whole time; this is a
    matter of proportions, not of microseconds."""
    rows, at = [f"hcom_broadcast_1,hcom_broadcast,HCCL,1000000,{broadcast * times}"] if broadcast else [], broadcast
    for n in range(200):
        rows.append(f"Op{n},Op{n},AI_CORE,{1_000_000 + at * times},{10 * times}")
        at += 20
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("timeline.idle_part_share", RUN) == pytest.approx(part, abs=0.01)
    assert facts.number("timeline.idle_part_start", RUN) == pytest.approx(begins, abs=0.06 if not broadcast else 0.05)


def test_kernels_without_names_repeat_nothing(tmp_path: Path) -> None:
    """A table without names and types: alike kernels are then nobody's, no sequence and no place."""
    at, rows = 1_000_000.0, []
    for n in range(200):
        rows.append(f"{'' if n % 10 else 'Mul_1'},{'' if n % 10 else 'Mul'},AI_VECTOR_CORE,{at:.1f},100")
        at += 100 + (500.0 if n % 10 == 5 else 0.0)
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], (*NAMES, "recording.repeats"), Options(jobs=1)).facts
    assert facts.value("recording.repeats", RUN) is None and facts.number("timeline.recurring_count", RUN) is None


@pytest.mark.parametrize("after", ["hcom_allReduce_", "MatMulV3"])
def test_waits_for_a_collective_to_begin_are_told_apart(tmp_path: Path, after: str) -> None:
    """Eight times a step the device stands still for 300 us: before a collective that is a launch which no kernel
    shows, before a kernel it is that kernel's."""
    at, rows = 1_000_000.0, []
    for step in range(4):
        for n in range(8):
            exchange = after.startswith("hcom")
            name, core = (f"{after}_{step}{n}", "COMMUNICATION") if exchange else (after, "AI_CORE")
            rows.append(f"{step},{name},{after},{core},{at:.1f},50")
            rows.append(f"{step},Mul,Mul,AI_VECTOR_CORE,{at + 50:.1f},50")
            at += 400
    (tmp_path / "kernel_details.csv").write_text("\n".join([f"Step Id,{HEADING}", *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], ("timeline.before_exchange_us",), Options(jobs=1)).facts
    told = [facts.number(f"timeline.before_exchange_{part}", RUN) for part in ("us", "each_us", "count")]
    if after == "MatMulV3":
        assert told == [None, None, None]
    else:
        assert told == [pytest.approx(2400, rel=0.05), pytest.approx(300), 31]
