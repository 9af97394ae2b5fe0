"""Whose idle time it is: the host's that waited for a result, or the host's that launches too slowly."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.host.synchronised import synchronised_us
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules


def timeline(calls: list[tuple[str, int, int]]) -> SimpleNamespace:
    """Host events (name, start, end), nanoseconds."""
    names = sorted({name for name, _, _ in calls})
    columns = {"name": np.array([names.index(name) for name, _, _ in calls], np.int64)}
    columns |= {key: np.array([call[at] for call in calls], np.int64) for key, at in (("start", 1), ("end", 2))}
    return SimpleNamespace(host=SimpleNamespace(names=names, **columns))


def told(calls: list[tuple[str, int, int]], gaps: list[tuple[int, int]]) -> float:
    start, end = (np.array([gap[at] for gap in gaps], np.int64) for at in (0, 1))
    return float(synchronised_us(timeline(calls), start, end, np.zeros(len(gaps), np.int64), 1, 1000.0)[0])  # type: ignore[arg-type]


def test_idle_time_belongs_to_the_wait_that_returns_in_it():
    """It waited while the device still ran, and returns when the device is empty; or asked again at once."""
    gap = (100_000, 250_000)
    assert told([("aclrtSynchronizeStream", 20_000, 105_000)], [gap]) == 150.0
    assert told([("aten::add", 20_000, 105_000)], [gap]) == 0.0, "no wait"
    assert told([("aclrtSynchronizeStream", 110_000, 112_000)], [gap]) == 150.0, "it asked again"
    assert told([("aclrtSynchronizeStream", 20_000, 90_000)], [gap]) == 0.0, "kernels ran after it"
    assert told([("aclrtSynchronizeStream", 20_000, 105_000)], [(100_000, 5_000_000)]) == 0.0, "something else"


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=8), st.integers(0, 10**6))
def test_no_more_idle_time_is_behind_waits_than_there_is(spans, moved):
    """Whatever the calls are, and wherever the clocks begin."""
    gaps = [(at, at + 40_000) for at in range(0, 10**6, 100_000)]
    calls = [("aclrtSynchronizeDevice", min(span), max(span)) for span in spans]
    found = told(calls, gaps)
    assert 0.0 <= found <= 40.0 * len(gaps)
    later = [(name, start + moved, end + moved) for name, start, end in calls]
    assert told(later, [(start + moved, end + moved) for start, end in gaps]) == found


def test_a_blocking_copy_waits_for_the_device_where_it_began_while_that_worked():
    """One that begins on an idle device brings it its input."""
    gap = (100_000, 250_000)
    assert told([("AscendCL@aclrtMemcpy", 20_000, 105_000)], [gap]) == 150.0
    assert told([("aten::_local_scalar_dense", 20_000, 105_000)], [gap]) == 150.0
    assert told([("AscendCL@aclrtMemcpy", 110_000, 130_000)], [gap]) == 0.0, "it copies to the device"
    assert told([("AscendCL@aclrtMemcpyAsync", 20_000, 105_000)], [gap]) == 0.0, "it waits for nothing"
    assert told([("AscendCL@aclrtMemcpy", 20_000, 90_000)], [gap]) == 0.0, "kernels ran after it"


def write_reads(folder: Path, call: tuple[str, int] | None, reads: int = 4, turn_us: float = 300.0) -> None:
    """A timeline of six steps of 40 kernels, 200 us each and launched in 8 us each. After every tenth the host reads a
    result in `call` (name, process), which returns when the device is done, and needs a while to launch again. The
    last kernel of a step updates weights: it is a training."""
    events: list[dict[str, Any]] = []
    for pid, name, thread in ((1, "Python", 100), (255, "CANN", 100), (448, "Ascend Hardware", 2)):
        named = (("process_name", 0, {"name": name}), ("thread_name", thread, {"name": f"Stream {thread}"}))
        events += [{"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args} for kind, tid, args in named]

    def stamp(us: float) -> str:
        return f"{1_700_000_000_000_000 + int(us)}.{round(us % 1 * 1000):03d}"

    def add(name: str, pid: int, tid: int, begin: float, lasts: float, **args: Any) -> None:
        events.append({"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": stamp(begin), "dur": lasts, "args": args})

    host = device = 0.0
    number = 0
    for step in range(6):
        begin = host
        for _ in range(reads):
            for _ in range(10):
                number += 1
                start = max(device, host + 14)
                flow = {"name": f"HostToDevice{number}", "cat": "HostToDevice", "id": str(number)}
                add("Node@launch", 255, 100, host + 1, 6.0, connection_id=number)
                events.append({"ph": "s", "pid": 255, "tid": 100, "ts": stamp(host + 1), **flow})
                events.append({"ph": "f", "bp": "e", "pid": 448, "tid": 2, "ts": stamp(start), **flow})
                kind = "MatMulV2" if number % (10 * reads) else "ApplyAdamWV2"
                add(kind, 448, 2, start, 199.0, **{"Task Type": "AI_CORE", "connection_id": number})
                device, host = start + 200, host + 8
            if call:
                add(call[0], call[1], 100, host, device + 9 - host)
            host = device + 10 + turn_us
        add(f"ProfilerStep#{step + 2}", 1, 100, begin, host - begin)
    (folder / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("AscendCL@aclrtSynchronizeStream", 255), True),
        (("AscendCL@aclrtMemcpy", 255), True),
        (("aten::_local_scalar_dense", 1), True),
        (("aten::mm", 1), False),
        (None, False),
    ],
)
def test_reading_results_within_the_step_is_a_synchronisation(tmp_path, call, told):
    """Idle time behind a copy of a result is no slow launching; what it costs is what the host needs after it."""
    write_reads(tmp_path, call)
    found = [f for f in advise([tmp_path], load_rules()).findings if f.verdict == "host-dispatch-bound"]
    assert [f.rule for f in found] == ["SCHED016"] * told
    if told:
        assert found[0].saving.us_per_step == pytest.approx(4 * 300, rel=0.1)


def test_a_long_stretch_of_one_result_after_the_other_belongs_to_the_waits():
    """Four values are read in a row, and nothing is launched between; what else lasts long in it does not."""
    calls = [("aclrtSynchronizeStream", 400_000 * i - 5000, 400_000 * i + 8000) for i in range(5)]
    assert told(calls, [(1000, 1_700_000)]) == 1699.0
    assert told(calls, [(1000, 9_700_000)]) == 1607.0, "the rest is a copy's, say"
    assert told(calls[:1], [(1000, 9_700_000)]) == 0.0
