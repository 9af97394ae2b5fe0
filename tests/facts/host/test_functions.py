"""Idle time by what the host was in during it: every owner of a stretch has its own part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.config import load_config
from advisor.facts.base import FactSet
from advisor.model import RUN, Finding
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

HEADING = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STEPS = 5


def loop(folder: Path, *before: tuple[str, int], within: Sequence[tuple[str, int]] = ()) -> Path:
    """A loop whose host does these things, one after the other, before each step of 40 ms, and `within` it; µs."""
    at, rows = 1_000_000, []
    events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]

    def does(things: Sequence[tuple[str, int]]) -> None:
        nonlocal at
        for name, us in things:
            if name:
                events.append({"name": name, "ph": "X", "pid": 1, "tid": 1, "ts": f"{at}.0", "dur": us})
            at += us

    for step in range(STEPS):
        does(before)
        for n in range(20):
            if n == 10:
                does(within)
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at}.0,2000")
            at += 2000
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (folder / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    return folder


def facts_of(folder: Path) -> FactSet:
    """What is measured of it."""
    return measure([folder], None, Options(jobs=1)).facts


def told(folder: Path, rule: str) -> list[Finding]:
    """What this rule finds."""
    return [f for f in advise([folder], load_rules(config=load_config(None))).findings if f.rule == rule]


def test_a_function_before_the_loader_has_its_own_part_of_the_stretch(tmp_path: Path) -> None:
    """The loop logs for 4 ms, then waits 7 ms for its batch, in one idle stretch: each is told with its own time. The
    logging gives it once the loader keeps up: until then the loop waits for its batch by as much longer."""
    facts = facts_of(loop(tmp_path, ("wandb.log", 4000), (LOADER, 7000)))
    assert facts.number("timeline.loader_stall_us", RUN) == pytest.approx(7000, rel=0.01)
    assert facts.number("timeline.function_stall_us", RUN) == pytest.approx(4000, rel=0.01)
    assert facts.value("timeline.function_names", RUN) == "wandb.log"
    (waits,), (logs,) = told(tmp_path, "DATA023"), told(tmp_path, "SCHED094")
    assert waits.saving is not None and logs.saving is not None
    gains = waits.saving.us, logs.saving.keeping_up_us
    assert gains == (pytest.approx(7000, rel=0.01), pytest.approx(4000, rel=0.01))
    assert logs.saving.us < 1000


def test_a_function_around_another_has_what_that_leaves(tmp_path: Path) -> None:
    """What lies within a callback's own logging counts once, and what the loader or garbage collection take of a
    function is theirs."""
    folder = loop(tmp_path, (LOADER, 6000), ("log", 3000), ("", 0))
    events = json.loads((folder / "trace_view.json").read_text(encoding="utf-8"))
    around = [
        {**event, "name": "callback", "dur": int(str(event["dur"])) + 2000}
        for event in events if event["name"] == "log"
    ]  # fmt: skip
    (folder / "trace_view.json").write_text(json.dumps([*events, *around]), encoding="utf-8")
    assert facts_of(folder).number("timeline.function_stall_us", RUN) == pytest.approx(3000, rel=0.01)


def test_many_short_functions_gain_what_all_of_them_take(tmp_path: Path) -> None:
    """Twenty callbacks of 200 µs, none of which owns the stretch: together they are the cause, with their number."""
    (found,) = told(loop(tmp_path, *((f"callback_{n}", 200) for n in range(20))), "SCHED094")
    assert found.saving is not None and found.saving.us == pytest.approx(4000, rel=0.01)
    assert "20 functions" in found.message.en and "20个函数" in found.message.zh


def test_what_nothing_recorded_covers_has_no_owner(tmp_path: Path) -> None:
    """Of what the loader leaves, a function has its own part where it covers half of that, and none below."""
    for silent, part in ((2000, 2500.0), (3000, None)):
        folder = tmp_path / str(silent)
        folder.mkdir()
        found = facts_of(loop(folder, (LOADER, 6000), ("", silent), ("log", 2500)))
        assert found.value("timeline.function_stall_us", RUN) == (
            part if part is None else pytest.approx(part, rel=0.01)
        )


def test_a_function_that_owns_the_stretches_alone_is_told_once(tmp_path: Path) -> None:
    """It has a rule of its own, and no second one for the same time."""
    folder = loop(tmp_path, ("wandb.log", 9000))
    assert facts_of(folder).value("timeline.function_stall_us", RUN) is None
    assert [f.rule for f in told(folder, "SCHED023")] == ["SCHED023"] and not told(folder, "SCHED094")


def test_calls_of_the_runtime_are_no_functions_of_the_loop(tmp_path: Path) -> None:
    """Freeing memory and waiting for the device have rules of their own."""
    free, waits = "AscendCL@aclrtFree", "AscendCL@aclrtSynchronizeStreamWithTimeout"
    facts = facts_of(loop(tmp_path, (LOADER, 6000), within=((free, 3000), (waits, 3000))))
    assert facts.value("timeline.function_stall_us", RUN) is None


def test_garbage_and_functions_are_two_losses_of_one_verdict(tmp_path: Path) -> None:
    """Each is measured under its owner: told one after the other, they gain the sum."""
    folder = loop(tmp_path, ("log", 4000), (LOADER, 5000), within=(("gc.collect", 5000),))
    (found,) = [f for rule in ("SCHED060", "SCHED094") for f in told(folder, rule)]
    assert found.saving is not None and found.saving.keeping_up_us == pytest.approx(9000, rel=0.01)
    assert "garbage" in found.message.en and "while the host is in log" in found.message.en
    assert {remedy.id for remedy in found.remedies} >= {"tune-garbage-collection", "take-work-off-the-path"}


def test_a_function_and_values_read_one_after_the_other_have_their_own_time(tmp_path: Path) -> None:
    """The loop copies for 9 ms before each step, and within it reads four values in a row: two causes, two gains."""
    wait = "AscendCL@aclrtSynchronizeStream"
    reads = [(wait, 8), ("aten::item", 500)] * 4
    folder = loop(tmp_path, ("aten::copy_", 9000), within=reads)
    facts = facts_of(folder)
    assert facts.number("timeline.gap_owner_us", RUN) == pytest.approx(9000, rel=0.01)
    assert facts.number("timeline.synchronised_us", RUN) == pytest.approx(2032, rel=0.01)
    (copying,) = told(folder, "SCHED023")
    assert copying.saving is not None and copying.saving.us == pytest.approx(9000, rel=0.01)
    assert "other places" not in copying.message.en


def test_a_long_row_of_values_is_waiting_and_no_other_work(tmp_path: Path) -> None:
    """Where all that the host does in a stretch is reading one value after the other, that is what is told of it."""
    wait = "AscendCL@aclrtSynchronizeStream"
    facts = facts_of(loop(tmp_path, within=[(wait, 8), ("aten::item", 500)] * 8))
    whole, waits = (facts.number(f"timeline.gap_owner_{name}", RUN) for name in ("us", "waits_us"))
    assert whole == waits == pytest.approx(4000, rel=0.02)


def test_a_loader_holds_the_loop_also_where_something_else_has_most_of_each_stretch(tmp_path: Path) -> None:
    """The loop compiles for 22 ms, then waits 7 ms for its batch: the workers had all that time, and were not done."""
    facts = facts_of(loop(tmp_path, ("AscendCL@opCompile", 22_000), (LOADER, 7000)))
    assert facts.number("loaders.held_share", RUN) == pytest.approx(1.0, abs=0.25)
    other = LOADER.replace("_MultiProcessing", "_SingleProcess")
    assert not facts_of(loop(tmp_path, ("AscendCL@opCompile", 22_000), (other, 7000))).number("loaders.held_share", RUN)


def test_a_function_at_many_places_of_the_step_is_told_with_all_it_has(tmp_path: Path) -> None:
    """A compiled graph that breaks again and again, behind other operators each time: no place has half of it."""
    at, rows = 1_000_000, []
    events: list[dict[str, object]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]
    for step in range(STEPS):
        for n in range(20):
            if n % 4 == 0:
                what = {"name": "TorchDynamo Cache Lookup", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at}.0", "dur": 1500}
                events.append(what)
                at += 1500
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at}.0,2000")
            at += 2000
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (tmp_path / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    (found,) = told(tmp_path, "SCHED096")
    assert found.saving is not None and found.saving.us == pytest.approx(7500, rel=0.05)
    assert [remedy.id for remedy in found.remedies][:1] == ["mend-graph-breaks"]
    assert not told(tmp_path, "SCHED023")


@pytest.mark.parametrize(
    ("owner", "advice"),
    [
        ("Optimizer.step#DeepSpeedCPUAdam.step", "update-on-device"),
        ("train.py(88): log_loss", "take-work-off-the-path"),
    ],
)
def test_what_is_advised_follows_from_what_the_host_does(tmp_path: Path, owner: str, advice: str) -> None:
    """An optimizer that runs on the host reads no value back and prepares no launch."""
    (found,) = told(loop(tmp_path, (owner, 9000)), "SCHED023")
    assert advice in [remedy.id for remedy in found.remedies]
    assert {"update-on-device", "take-work-off-the-path"} - {remedy.id for remedy in found.remedies}


@pytest.mark.parametrize(("more", "grows"), [(2000, True), (0, False)])
def test_a_function_that_takes_longer_each_time_is_what_grows(tmp_path: Path, more: int, grows: bool) -> None:
    """A list of metrics gets longer with every step, and walking through it takes 2 ms more each time: that is what the
    steps grow by, as its first time tells."""
    at, rows, events = 1_000_000, [], [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Python"}}]
    for step in range(10):
        us = 6000 + more * step
        events.append({"name": "metrics.update", "ph": "X", "pid": 1, "tid": 1, "ts": f"{at}.0", "dur": us})
        at += us
        for n in range(20):
            rows.append(f"{step},Op{n}_1,Op{n},AI_VECTOR_CORE,{at}.0,2000")
            at += 2000
    (tmp_path / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    (tmp_path / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    facts = facts_of(tmp_path)
    assert facts.value("timeline.gap_owner", RUN) == "metrics.update"
    growth = facts.number("timeline.gap_owner_growth_us", RUN)
    assert growth is not None and (growth > 5000 if grows else growth == 0)
    assert facts.number("timeline.gap_owner_least_us", RUN) == facts.number("timeline.gap_owner_us", RUN)
