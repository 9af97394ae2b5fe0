"""The timeline, streamed: everything before a cut, every digit of a time, in bounded memory."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.sources import archives
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from advisor.sources.streams import trace as trace_module
from advisor.sources.streams import trace_events
from advisor.sources.streams.rank_trace import load_trace
from advisor.sources.streams.trace import Trace, short_name
from advisor.sources.streams.trace_events import nanoseconds

META = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "MindSpore"}},
    {"name": "process_name", "pid": 255, "tid": 0, "args": {"name": "CANN"}, "ph": "M"},
    {"name": "process_name", "pid": 448, "tid": 0, "args": {"name": "Ascend Hardware"}, "ph": "M"},
    {"name": "process_name", "pid": 800, "tid": 0, "args": {"name": "Overlap Analysis"}, "ph": "M"},
    {"name": "thread_name", "pid": 800, "tid": 0, "args": {"name": "Computing"}, "ph": "M"},
]


def launch(i: int) -> list[dict]:
    at, start = f"{1700000000000000 + 100 * i}.125", f"{1700000000000050 + 100 * i}.500"
    return [
        {
            "ph": "X",
            "name": f"Kernel::KernelLaunch::Default/Mul-op{i}",
            "pid": 1,
            "tid": 1,
            "ts": at,
            "dur": "20.000",
            "cat": "",
        },
        {
            "name": "Node@launch",
            "pid": 255,
            "tid": 1,
            "ts": at,
            "dur": 5,
            "args": {"x": [{"y": 1}, {"z": 2}]},
            "ph": "X",
        },
        {"name": f"HostToDevice{i}", "ph": "s", "cat": "HostToDevice", "id": str(i), "pid": 255, "tid": 1, "ts": at},
        {"name": f"HostToDevice{i}", "ph": "f", "cat": "HostToDevice", "id": str(i), "pid": 448, "tid": 2, "ts": start},
        {"name": "Computing", "pid": 800, "tid": 0, "ts": start, "dur": 30.0, "ph": "X"},
    ]


EVENTS = [*META, *(event for i in range(200) for event in launch(i))]
STEP = {
    "ph": "X",
    "name": "Python::PythonObserved::ProfilerStep#7",
    "pid": 1,
    "tid": 1,
    "ts": "1700000000000000.000",
    "dur": "20000.000",
}


def rank_of(path: Path) -> Rank:
    return Rank(0, path.parent, {"trace": TableRef("trace", (path,), "trace")}, base=path.parent)


def load(path: Path, data: bytes) -> tuple[Trace | None, list[str]]:
    path.write_bytes(data)
    rank = rank_of(path)
    return load_trace(rank), [p.problem for p in rank.problems]


def test_links_steps_and_lanes_are_found(tmp_path: Path) -> None:
    """Launch to start, the host's activities, the profiler's own lanes and the steps."""
    trace, problems = load(tmp_path / "trace_view.json", json.dumps([*EVENTS, STEP]).encode())
    assert trace is not None and problems == [] and not trace.cut
    assert trace.events == len(EVENTS) + 1 and trace.launched.size == 200
    assert set((trace.started - trace.launched).tolist()) == {50_375}
    assert trace.steps == [("7", 1700000000000000000, 1700000000020000000)]
    assert trace.activities[("MindSpore", "Kernel::KernelLaunch")].count == 200
    assert trace.activities[("CANN", "Node@launch")].total_us == 1000.0
    assert trace.computing[0].size == 200


@pytest.mark.parametrize(
    ("told", "size"),
    [
        ({"count": 1000, "data_type": "BFP16"}, 2000.0),
        ({"count": 1000, "data_type": "FP32"}, 4000.0),
        ({"count": 1000, "data_type": "RESERVED"}, None),
        ({"count": -1, "data_type": "INT8"}, None),
        ({"count": "many", "data_type": "INT8"}, None),
    ],
)
def test_collectives_tell_what_they_exchange(tmp_path: Path, told: dict[str, object], size: float | None) -> None:
    """Elements times their width; the tasks inside a collective are none, and what tells no size has none."""
    name = {"name": "process_name", "pid": 512, "tid": 0, "args": {"name": "Communication"}, "ph": "M"}
    one = {"ph": "X", "pid": 512, "tid": 0, "ts": "1700000000000000.500", "dur": 30.0, "args": told}
    inside = [dict(one, name=task) for task in ("Notify_Wait", "Memcpy", "Reduce_Inline")]
    events = [*EVENTS, name, dict(one, name="hcom_allReduce__148_2_1"), *inside]
    trace, _ = load(tmp_path / "trace_view.json", json.dumps(events).encode())
    assert trace is not None and trace.collectives.names == ["hcom_allReduce__148_2_1"]
    assert trace.collectives.start.tolist() == [1700000000000000500]
    assert (trace.collectives.end - trace.collectives.start).tolist() == [30000]
    assert trace.bytes_of.get("hcom_allReduce__148_2_1") == size


@pytest.mark.parametrize("odd", [True, "True", "abc", None, [1]])
def test_a_duration_that_is_no_number_is_told(tmp_path: Path, odd: object) -> None:
    """`true` is a number to Python; here it is a damaged event, which the others outlive."""
    events = [dict(event) for event in EVENTS]
    next(event for event in events if event["name"] == "Node@launch")["dur"] = odd
    trace, problems = load(tmp_path / "trace_view.json", json.dumps(events).encode())
    assert trace is not None and trace.activities[("CANN", "Node@launch")].count == 199
    assert len(problems) == 1


@pytest.mark.parametrize("shape", ["object", "pretty", "gzip", "crlf"])
def test_every_wrapping_gives_the_same_events(tmp_path: Path, shape: str) -> None:
    """An array, an object with traceEvents, many lines, or compressed."""
    text = json.dumps(EVENTS)
    data = {
        "object": json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "displayTimeUnit": "ns"}),
        "pretty": json.dumps(EVENTS, indent=2),
        "gzip": text,
        "crlf": text.replace("}, {", "},\r\n{"),
    }[shape].encode()
    path = tmp_path / ("trace_view.json.gz" if shape == "gzip" else "trace_view.json")
    trace, problems = load(path, gzip.compress(data) if shape == "gzip" else data)
    assert trace is not None and trace.events == len(EVENTS) and trace.launched.size == 200
    assert problems == [] and not trace.cut


def test_events_that_stand_twice_are_told(tmp_path: Path) -> None:
    """A timeline joined with itself counts every call twice: nothing certain rests on it."""
    _, problems = load(tmp_path / "trace_view.json", json.dumps([*EVENTS, *EVENTS]).encode())
    assert problems == ["holds 200 events twice: it was joined with itself, and its counts are too high"]


def test_a_second_list_of_events_is_told(tmp_path: Path) -> None:
    """Programs differ in which of two lists under one key they show; the first is read, and not without a word."""
    text = json.dumps({"traceEvents": EVENTS, "again": EVENTS}).replace("again", "traceEvents")
    trace, problems = load(tmp_path / "trace_view.json", text.encode())
    assert trace is not None and any("bytes of it are no events" in problem for problem in problems)


@given(cut=st.integers(min_value=700, max_value=60_000), block=st.sampled_from([256, 4096, 1 << 21]))
@settings(max_examples=40)
def test_a_cut_file_gives_every_event_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, cut: int, block: int
) -> None:
    """Wherever it is cut and whatever the block: all whole events before, and the user is told."""
    text = json.dumps(EVENTS)
    cut = min(cut, len(text) - 2)
    decoder = json.JSONDecoder()
    whole, at = 0, 1
    while True:
        try:
            _, at = decoder.raw_decode(text[:cut], at)
        except ValueError:
            break
        whole += 1
        at = at + 2
        if at >= cut:
            break
    before = trace_events.BLOCK
    trace_events.BLOCK = block
    try:
        trace, problems = load(tmp_path_factory.mktemp("cut") / "trace_view.json", text[:cut].encode())
    finally:
        trace_events.BLOCK = before
    assert trace is not None and trace.events == whole and trace.cut
    assert any("ends in the middle" in problem for problem in problems)


def test_a_cut_gzip_gives_what_can_be_decompressed(tmp_path: Path) -> None:
    """A compressed file that was not finished."""
    data = gzip.compress(json.dumps(EVENTS).encode(), compresslevel=0)
    trace, problems = load(tmp_path / "trace_view.json.gz", data[: len(data) // 2])
    assert trace is not None and trace.cut and trace.events > len(EVENTS) // 3
    assert any("compression is damaged" in problem for problem in problems)


def test_a_packed_timeline_that_holds_far_more_than_its_size_ends(tmp_path: Path, monkeypatch) -> None:
    """Kilobytes that become gigabytes: what comes before the limit of archives is read, and the rest is told."""
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1_000_000)
    data = gzip.compress(json.dumps(EVENTS).encode()[:-1] + b"," + b" " * 50_000_000)
    trace, problems = load(tmp_path / "trace_view.json.gz", data)
    assert trace is not None and trace.cut and trace.events > len(EVENTS) // 3
    assert any("holds far more than its own size" in problem for problem in problems)


def test_a_timeline_packed_in_many_parts_is_read_whole(tmp_path: Path, monkeypatch) -> None:
    """Parts that end anywhere in a block, one byte before its end among them."""
    monkeypatch.setattr(trace_events, "_PACKED_BLOCK", 64)
    text = json.dumps(EVENTS).encode()
    parts = b"".join(gzip.compress(text[at : at + 10], mtime=0) for at in range(0, len(text), 10))
    trace, problems = load(tmp_path / "trace_view.json.gz", parts)
    assert trace is not None and trace.events == len(EVENTS) and not trace.cut and not problems


@pytest.mark.parametrize(
    ("head", "filling"),
    [(b'[{"name":"', b"a"), (b"[", b" "), (b"[", b"} "), (b"", b"a")],
    ids=["name", "gap", "ends", "text"],
)
def test_a_timeline_without_an_event_costs_each_byte_a_few_times(tmp_path: Path, monkeypatch, head, filling) -> None:
    """Megabytes in which no event ends are not searched anew with each block."""
    monkeypatch.setattr(trace_events, "BLOCK", 1024)
    looked_at = []
    for name in ("_first_event", "_decode_most"):
        function = getattr(trace_events, name)
        monkeypatch.setattr(
            trace_events,
            name,
            lambda data, *rest, function=function: looked_at.append(len(data)) or function(data, *rest),
        )
    path = tmp_path / "trace_view.json"
    path.write_bytes(head + filling * 300_000)
    _, problems = load(path, path.read_bytes())
    assert problems and sum(looked_at) < 6 * path.stat().st_size


def test_a_defect_inside_costs_the_events_around_it_only(tmp_path: Path) -> None:
    """Garbage in the middle: what lies before and after is read."""
    text = json.dumps(EVENTS)
    middle = len(text) // 2
    trace, problems = load(tmp_path / "trace_view.json", (text[:middle] + '"}"]#garbage' + text[middle:]).encode())
    assert trace is not None and trace.events >= len(EVENTS) - 3
    assert any("left out" in problem for problem in problems)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"not json", b"[1, 2]", b'{"traceEvents": []}'])
def test_what_is_no_timeline_is_told(tmp_path: Path, data: bytes) -> None:
    """Nothing readable is no timeline, with a reason, and no exception."""
    trace, problems = load(tmp_path / "trace_view.json", data)
    assert trace is None and problems


def test_events_that_are_none_are_told_as_that(tmp_path: Path) -> None:
    """The array is there: what its entries lack is said, not that there is no array."""
    event = {"name": "aten::mm", "cat": "cpu_op", "ts": 1774670741777000, "dur": 433000, "tid": 1, "pid": 1}
    trace, problems = load(tmp_path / "trace_view.json", json.dumps({"traceEvents": [event] * 3}).encode())
    assert trace is None
    assert any("ph" in problem for problem in problems) and not any("neither" in problem for problem in problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'"1736408883694795.840"', 1736408883694795840),
        (b"1736408883694795.840", 1736408883694795840),
        (b'"1736408883694795"', 1736408883694795000),
        (b"1736408883694795840", 1736408883694795840),
        (b'"1.5"', 1500),
        (b'"x"', -1),
        (b"null", -1),
        (b"", -1),
        (b"9" * 1_000_000, -1),
        (b"1e9999999", -1),
    ],
)
def test_times_are_exact_whatever_their_spelling(text: bytes, expected: int) -> None:
    """Texts and numbers, microseconds with decimals, and nanoseconds."""
    assert nanoseconds([text]).tolist() == [expected]
    others = [b'"1736408883694795.1"', b"1736408883694795.25", b"12", b"9223372036854775.808"]
    assert nanoseconds([text, *others]).tolist() == [expected, 1736408883694795100, 1736408883694795250, 12000, -1]


def test_launches_of_all_operators_are_one_activity() -> None:
    """A name that says what it was about would make as many activities as operators."""
    assert short_name("Kernel::KernelLaunch::Default/net/MatMul-op1") == "Kernel::KernelLaunch"
    assert short_name("AscendCL@aclrtSynchronizeStream") == "AscendCL@aclrtSynchronizeStream"
    assert short_name("aten::item") == "aten::item"


def test_a_number_without_end_between_events_costs_its_neighbours_only(tmp_path):
    """A million digits among thousands of events: the others are read at once, in little memory."""
    from advisor.sources.streams.trace_events import stream

    event = '{"ph":"X","name":"a","pid":1,"ts":"1.000","dur":1}'
    for before, after in ((3000, 20), (20, 3000), (1500, 1500)):
        path = tmp_path / f"{before}.json"
        path.write_text("[" + ",".join([event] * before + ["9" * 1_000_000] + [event] * after) + "]")
        told: list[str] = []
        found = sum(len(events) for events, _ in stream(path, lambda file, text, told=told: told.append(text)))
        assert found >= before + after - 2
        assert any("no events" in text for text in told)


def test_functions_called_by_one_name_are_counted_however_many_names_there_are(tmp_path, monkeypatch):
    """Long names whose beginnings are alike are told apart, also when there are more than are remembered at once; the
    clock's samples are read from blocks that hold nothing else to describe."""
    monkeypatch.setattr(trace_module, "_KEPT", 3)
    monkeypatch.setattr(trace_events, "BLOCK", 4096)
    names = [f"megatron/core/transformer/module.py({line}): forward" for line in range(7)]
    calls = [{"ph": "X", "name": names[i % 7], "pid": 1, "tid": 1, "ts": f"{1700000000000000 + i}.000", "dur": 0.5}
             for i in range(700)]  # fmt: skip
    clock = {"ph": "C", "name": "AI Core Freq", "pid": 2, "tid": 0, "ts": "1700000000000900.000", "args": {"MHz": 800}}
    meta = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}}
    trace, notes = load(tmp_path / "trace_view.json", json.dumps([meta, *calls, clock]).encode())
    assert trace is not None and not notes
    assert {name: trace.activities["Python", name].count for name in names} == dict.fromkeys(names, 100)
    assert trace.frequency[1].tolist() == [800.0]


@pytest.mark.parametrize("duration", ['"1e19"', "-5", "1e300"])
def test_a_duration_that_can_be_none_is_told_and_left_out(tmp_path: Path, duration: str) -> None:
    """An event that lasts longer than any training would own every idle stretch of the file."""
    events = [
        f'{{"ph":"X","name":"a{i}","pid":1,"tid":1,"ts":"{1700000000000000 + i}.000","dur":{duration}}}'
        for i in range(3)
    ]
    trace, notes = load(tmp_path / "trace_view.json", f"[{json.dumps(META)[1:-1]},{','.join(events)}]".encode())
    assert trace is not None and not trace.host.start.size
    assert any("no usable duration" in note for note in notes)


@pytest.mark.parametrize("start", ["null", "-1", '"x"', "1e30"])
def test_a_start_that_is_none_is_told_and_left_out(tmp_path: Path, start: str) -> None:
    """Long events and ends of links without a place in time belong to no idle stretch, and the report says so."""
    events = [
        f'{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{start},"dur":5000}}',
        f'{{"ph":"s","name":"HostToDevice1","id":"1","pid":1,"tid":1,"ts":{start},"cat":"HostToDevice"}}',
    ]
    trace, notes = load(tmp_path / "trace_view.json", f"[{json.dumps(META)[1:-1]},{','.join(events)}]".encode())
    assert trace is not None and not trace.host.start.size and not trace.launched.size
    assert any(note.startswith("2 of its") and "no usable start" in note for note in notes), notes


@given(planes=st.integers(1, 8), copied=st.integers(10, 500), reduced=st.integers(0, 500), waited=st.integers(0, 900))
@settings(max_examples=20)
def test_the_share_of_reduction_does_not_depend_on_the_number_of_planes(
    tmp_path_factory: pytest.TempPathFactory, planes: int, copied: int, reduced: int, waited: int
) -> None:
    """Copies run side by side on the links: what they take is the time in which any runs, however many there are, and
    waiting for a late rank is no part of it."""
    events = [{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "HCCL"}}]

    def add(name: str, plane: int, start: int, lasts: int) -> None:
        events.append({"ph": "X", "name": name, "pid": 7, "tid": plane, "ts": f"{10_000 + start}", "dur": lasts})

    add("hcom_allReduce__586_0_1", 99, 0, waited + copied + reduced)
    add("Notify_Wait", 0, 0, waited)
    for plane in range(planes):
        add("Memcpy", plane, waited, copied)
    add("Reduce_TBE", 0, waited + copied, reduced)
    trace, _ = load(tmp_path_factory.mktemp("planes") / "trace_view.json", json.dumps(events).encode())
    assert trace is not None
    assert trace.reducing_us == pytest.approx(reduced)
    assert trace.moving_us == pytest.approx(copied + reduced)
