"""Garbage collection: what it stalls, and in how many steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.model import RUN
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"


@pytest.mark.parametrize(("collecting", "says"), [((3,), "in 1 of 6 steps"), (tuple(range(6)), "of each step")])
def test_a_collection_in_one_step_is_none_of_each_step(tmp_path: Path, collecting: tuple[int, ...], says: str) -> None:
    """180 ms under gc.collect in one of six steps is told with the steps it hits, not as 30 ms of each."""
    at, rows = 1_000_000.0, []
    events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]
    for step in range(6):
        for n in range(20):
            if n == 10 and step in collecting:
                events.append({"name": "gc.collect", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 180_000})
                at += 180_000
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (tmp_path / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("timeline.gc_stall_steps", RUN) == len(collecting)
    report = advise([tmp_path], load_rules(config=load_config(None)))
    told = [finding.message.en for finding in report.findings if finding.rule == "SCHED060"]
    assert told and all(says in text for text in told), [f.message.en for f in report.findings]


def test_what_is_collected_before_each_first_kernel_is_told_of_every_step_and_of_its_rank(tmp_path: Path) -> None:
    """Rank 1 collects for 30 ms before each of four steps: the first lies before all kernels, and nothing follows the
    last step. The three in between show what each step loses."""
    for rank in (0, 1):
        at, rows = 1_000_000.0, []
        events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]
        for step in range(4):
            name = "gc.collect" if rank else "loop"
            events.append({"name": name, "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 30_000})
            at += 30_000
            for n in range(20):
                rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
                at += 2000
        output = tmp_path / f"host_{rank}_20260101000000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / f"profiler_info_{rank}.json").write_text("{}", encoding="utf-8")
        (output / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
        (output / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.value("timeline.gc_ranks", RUN) == "1"
    assert facts.number("timeline.gc_stall_steps", RUN) == facts.number("step.count", RUN)
    assert facts.number("timeline.gc_stall_us", RUN) == pytest.approx(30_000, rel=0.01)
    (told,) = [f for f in advise([tmp_path], load_rules(config=load_config(None))).findings if "garbage" in f.title.en]
    assert (told.subject.kind, told.subject.ranks) == ("rank", (1,)) and "rank 1" in told.message.en
    assert told.saving is not None and told.saving.us == pytest.approx(30_000, rel=0.01)


def test_what_most_steps_lack_the_last_lacks_too(tmp_path: Path) -> None:
    """Two collections of 120 ms before the first kernels of two of eight steps are 30 ms a step: that nothing follows
    the last step does not make its share as large as that of the others."""
    at, rows = 1_000_000.0, []
    events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]
    for step in range(8):
        if step in (2, 5):
            events.append({"name": "gc.collect", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at:.1f}", "dur": 120_000})
            at += 120_000
        for n in range(20):
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at:.1f},2000")
            at += 2000
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (tmp_path / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    assert facts.number("timeline.gc_stall_steps", RUN) == 2
    assert facts.number("timeline.gc_stall_us", RUN) == pytest.approx(30_000, rel=0.01)
