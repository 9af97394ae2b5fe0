"""Communication files: units, names, kinds, global ranks, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.sources.metadata import read_metadata
from advisor.sources.readers import read_table, read_tables
from advisor.sources.reference import TableRef
from advisor.sources.text import communication
from advisor.sources.text.jsonfiles import communication_frames, links_frame
from advisor.sources.text.jsontext import decode, load_json, salvage

OPERATION = {
    "Communication Time Info": {
        "Start Timestamp(us)": 1736408883732241.5, "Elapse Time(ms)": 79.5, "Transit Time(ms)": 0.25,
        "Wait Time(ms)": 5.0, "Synchronization Time(ms)": 4.0, "Idle Time(ms)": 74.25,
    },
    "Communication Bandwidth Info": {
        "RDMA": {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Large Packet Ratio": 0,
                 "Size Distribution": {}},
        "HCCS": {"Transit Size(MB)": 4.0, "Transit Time(ms)": 0.5, "Bandwidth(GB/s)": 8.0, "Large Packet Ratio": 0.25,
                 "Size Distribution": {"1.0": [4, 0.5]}},
    },
}  # fmt: skip


def profile(name: str = "hcom_allReduce__586_0_1@17", section: str = "collective") -> dict:
    return {"step5": {"p2p": {}, "collective": {}, section: {name: OPERATION, "Total Op Info": OPERATION}}}


def link(megabytes: float = 2.0, milliseconds: float = 0.5, transport: str = "HCCS") -> dict:
    return {"Transport Type": transport, "Transit Size(MB)": megabytes, "Transit Time(ms)": milliseconds}


def test_collectives_are_in_canonical_units_and_counted_once(notes):
    """ms become µs, the start exact ns, and Total Op Info is not a second operation."""
    frame = communication_frames(profile(), "f", notes)[0]
    row = frame.iloc[0]
    assert len(frame) == 1
    assert (row["step"], row["name"], row["group"], row["kind"]) == ("5", "hcom_allReduce__586_0_1", "17", "collective")
    assert (row["elapsed_us"], row["idle_us"], row["start_ns"]) == (79500.0, 74250.0, 1736408883732241500)


@pytest.mark.parametrize("name", ["hcom_send__1_0@g", "hcom_receive__1_0@g", "hcom_batchSendRecv__1_0@g", "Send-op1@g"])
def test_sends_are_p2p_wherever_the_file_puts_them(notes, name):
    """MindSpore files hcom_send under collective; it is still a point-to-point operation."""
    assert communication_frames(profile(name), "f", notes)[0]["kind"].tolist() == ["p2p"]


def test_transports_hold_what_moved_in_bytes_and_leave_out_what_did_not(notes):
    """A transport of zero bytes is no row, so no bandwidth of nothing is ever computed."""
    _, frame, packets = communication_frames(profile(), "f", notes)
    row = frame.iloc[0]
    assert frame["transport"].tolist() == ["HCCS"]
    assert (row["size_bytes"], row["time_us"], row["packets"], row["small_packets"]) == (4e6, 500.0, 4.0, 3.0)
    assert packets.to_numpy().tolist() == [["HCCS", 1e6, 4.0, 500.0]]


def test_links_get_the_global_ranks_of_their_group(notes):
    """Number 1 of the group (3, 7) is rank 7; naming rank 1 would accuse a card that took no part."""
    data = {"step5": {"p2p": {}, "collective": {"allreduce-total@17": {"0-0": link(), "0-1": link()}}}}
    frame = links_frame(data, "f", None, notes, rank=3, groups={"17": (3, 7)}, world_size=8)
    assert frame[["source", "destination"]].to_numpy().tolist() == [[3, 3], [3, 7]]
    assert frame["aggregate"].tolist() == ["total", "total"]
    assert frame["name"].tolist() == ["allreduce", "allreduce"]


def test_links_of_an_unknown_group_name_nobody(notes):
    """Where the members of a group are unknown, the peer is unknown, and a note says so."""
    data = {"step5": {"collective": {"hcom_allReduce__1_0@17": {"0-0": link(), "0-1": link()}}}}
    frame = links_frame(data, "f", None, notes, rank=0, groups={}, world_size=16)
    assert frame["source"].tolist() == [0, 0]
    assert frame["destination"].isna().tolist() == [False, True]
    assert "without saying which ranks" in notes.text


def test_links_of_a_group_as_large_as_the_world_are_numbered_by_rank(notes):
    """Plain data parallelism needs no metadata: number and rank are the same."""
    data = {"step5": {"collective": {"a@17": {"1-1": link(), "1-0": link(), "1-3": link()}}}}
    frame = links_frame(data, "f", None, notes, rank=1, groups={}, world_size=4)
    assert frame["destination"].tolist() == [1, 0, 3]


def test_a_name_with_group_and_aggregate_is_taken_apart(notes):
    """MindSpore writes hcom_send__101_1_1@g-top1@g for operations whose type it does not know."""
    data = {"step1": {"collective": {"hcom_send__101_1_1@g-top1@g": {"0-1": link()}}}}
    frame = links_frame(data, "f", None, notes)
    assert frame[["name", "group", "aggregate"]].to_numpy().tolist() == [["hcom_send__101_1_1", "g", "top1"]]


def test_a_file_cut_short_keeps_the_operations_before_the_cut(tmp_path, notes):
    """A full disk at the end of profiling costs the last operation, not the file."""
    data = {"step5": {"collective": {f"op{i}@g": OPERATION for i in range(10)}}}
    path = tmp_path / "communication.json"
    path.write_text(json.dumps(data)[:-600])
    frame = read_table(TableRef("collectives", (path,), "json.communication"), None, notes)
    assert frame["name"].tolist()[:9] == [f"op{i}" for i in range(9)]
    assert "cut short" in notes.text


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_a_file_that_cannot_be_read_costs_no_other(tmp_path, notes):
    """It can be opened, but its first byte is none: it is told by its own name, whichever of several it is."""
    whole, odd = tmp_path / "communication.json", tmp_path / "communication_2.json"
    whole.write_text(json.dumps({"step5": {"collective": {"op@g": OPERATION}}}))
    odd.symlink_to("/proc/self/mem")
    frame = read_table(TableRef("collectives", (whole, odd), "json.communication"), None, notes)
    assert frame is not None and len(frame) == 1
    assert [file for file, _ in notes] == [str(odd)]


@pytest.mark.parametrize(
    "text", ["", "   ", "nonsense", "[" * 100_000, '{"a":' * 100_000, "42", "null", "[1,2]", '"x"']
)
def test_what_is_no_communication_file_gives_nothing_and_a_note(tmp_path, notes, text):
    """Wrong, empty and endlessly nested JSON is a problem entry."""
    path = tmp_path / "communication.json"
    path.write_text(text)
    assert read_table(TableRef("collectives", (path,), "json.communication"), None, notes) is None
    assert len(notes) == 1


def test_numbers_that_are_none_are_unknown(notes):
    """NaN, Infinity, text and negative times are left out and told, the operation stays."""
    data = profile()
    times = dict(OPERATION["Communication Time Info"])
    times.update({"Elapse Time(ms)": float("inf"), "Wait Time(ms)": "slow", "Transit Time(ms)": float("nan")})
    data["step5"]["collective"] = {"op@g": {"Communication Time Info": times}}
    frame = communication_frames(data, "f", notes)[0]
    assert frame[["elapsed_us", "wait_us", "transit_us"]].isna().all(axis=None)
    assert len(notes) == 3


def test_packets_that_are_no_numbers_are_told(notes):
    """Sizes that were left out change the mean packet."""
    data = json.loads(json.dumps(profile()))
    bands = data["step5"]["collective"]["hcom_allReduce__586_0_1@17"]["Communication Bandwidth Info"]
    bands["HCCS"]["Size Distribution"] = {"2.0": [1, "x"]}
    communication_frames(data, "f", notes)
    assert "numbers or times of packets" in notes.text


def test_links_that_are_no_objects_are_told(notes):
    """A number in place of a link is not the same as no link."""
    links_frame({"step5": {"collective": {"op@g": {"0-1": link(), "1-0": 10**400}}}}, "f", None, notes)
    assert "nothing usable of 1 links" in notes.text


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["step1", "p2p", "collective", "a@g", "0-1", "Communication Time Info", "HCCS",
                         "Communication Bandwidth Info", "Size Distribution", "Transit Size(MB)", "Elapse Time(ms)"]),
        inner, max_size=4,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=json_values)
def test_no_structure_crashes_the_readers(notes, data):
    """JSON of any shape ends in frames or nothing, never in an exception."""
    communication_frames(data, "f", notes)
    links_frame(data, "f", None, notes)


@settings(max_examples=100)
@given(data=json_values, cut=st.floats(0, 1))
def test_salvage_of_a_valid_prefix_is_valid(data, cut):
    """Cutting any document anywhere gives something decodable or nothing."""
    text = json.dumps(data)
    salvage(text[: int(len(text) * cut)])


def test_salvage_keeps_complete_values_only():
    """A number cut in the middle would be a wrong number, so it is dropped."""
    assert salvage('{"a": 1, "b": [2, 34') == {"a": 1, "b": [2]}
    assert salvage('{"a": {"x": 1}, "b": "un') == {"a": {"x": 1}}
    assert salvage("12") is None


def test_a_byte_order_mark_is_no_damage(tmp_path: Path, notes):
    """Editors on Windows add one."""
    path = tmp_path / "x.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert load_json(path, notes) == {"a": 1}
    assert notes == []


numbers = st.none() | st.integers(0, 10**6) | st.floats(0, 1e9)
bands = st.dictionaries(
    st.sampled_from(["HCCS", "RDMA", "SDMA"]),
    st.fixed_dictionaries(
        {"Transit Size(MB)": numbers, "Transit Time(ms)": numbers, "Large Packet Ratio": st.floats(0, 2)},
        optional={"Size Distribution": st.dictionaries(
            st.sampled_from(["2.064384", "0.000512", "4", "x"]), st.tuples(st.integers(0, 99), st.floats(0, 9)),
            max_size=3,
        )},
    ),
)  # fmt: skip
operations = st.fixed_dictionaries(
    {},
    optional={
        "Communication Time Info": st.dictionaries(
            st.sampled_from([*OPERATION["Communication Time Info"], "Wait Time Ratio"]), numbers | st.just("slow")
        ),
        "Communication Bandwidth Info": bands,
    },
)
files = st.dictionaries(
    st.sampled_from(["step5", "ProfilerStep#6", "7", ""]),
    st.dictionaries(
        st.sampled_from(["p2p", "collective"]),
        st.dictionaries(st.sampled_from(["hcom_send__1_0@g", "hcom_allReduce__1_1@17", "a", "Total Op Info"]),
                        operations),
    ),
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=files)
def test_decoding_in_one_piece_gives_what_looking_at_each_value_gives(tmp_path: Path, data: dict) -> None:
    """Files as profilers write them take the quick way, all others the careful one: the same rows, the same words."""
    path = tmp_path / "communication.json"
    path.write_text(json.dumps(data))
    found = []
    for decoded in (communication.decode_communication(path), None):
        told: list[tuple[str, str]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("advisor.sources.text.jsonfiles.decode_communication", lambda _, decoded=decoded: decoded)
            reference = TableRef("collectives", (path,), "json.communication")
            found.append((read_tables(reference, None, lambda *note, told=told: told.append(note)), told))
    (quick, words), (careful, others) = found
    assert sorted(words) == sorted(others)
    for table, frame in careful.items():
        assert (frame is None) == (quick[table] is None)
        if frame is not None:
            pd.testing.assert_frame_equal(quick[table], frame)


@pytest.mark.parametrize("part", list(OPERATION))
def test_parts_of_an_operation_that_are_no_objects_are_told(notes, part):
    """A number in place of its times is not the same as no times."""
    data = profile()
    (name, *_) = data["step5"]["collective"]
    data["step5"]["collective"][name] = {**OPERATION, part: 10**400}
    communication_frames(data, "f", notes)
    assert "entries that are not" in notes.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"a": 1, "b": {"a": 2}}', {"a": 1, "b": {"a": 2}}),
        ('{"a": 1, "a": 1.0}', {"a": 1}),
        ('{"b": [{"a": 1, "a": 2, "c": 3}]}', {"b": [{"c": 3}]}),
    ],
)
def test_a_key_with_two_values_has_none(tmp_path, notes, text, kept):
    """Readers disagree on which of them counts: neither is known, and the report says so."""
    path = tmp_path / "file.json"
    path.write_text(text)
    assert load_json(path, notes) == kept
    assert ("has the key 'a' twice in one object" in notes.text) is (kept != json.loads(text))


def _members(data, place=()):
    """The place of every member of a document."""
    for key, value in data.items() if isinstance(data, dict) else ():
        yield (*place, key)
        yield from _members(value, (*place, key))


MATRIX = {"step5": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@17": {"0-1": link(), "1-0": link(4.0)}}}}


@pytest.mark.parametrize(
    ("reader", "content", "place"),
    [(reader, content, place) for reader, content in (("communication", profile()), ("links", MATRIX))
     for place in _members(content) if place[-1] not in ("p2p", "Bandwidth(GB/s)")],
)  # fmt: skip
def test_whatever_stands_twice_in_a_communication_file_is_told(tmp_path, notes, reader, content, place):
    """What files of communication hold is decoded at once, which keeps the last of two values without a word."""
    content = json.loads(json.dumps(content))
    owner = content
    for key in place[:-1]:
        owner = owner[key]
    given = owner[place[-1]]
    another = [1, 2] if isinstance(given, list) else 4242
    owner[place[-1] + "#"] = ({} if given else {"1.0": [1, 2]}) if isinstance(given, dict) else another
    path = tmp_path / "communication.json"
    path.write_text(json.dumps(content).replace('#"', '"'))
    read_tables(TableRef("links" if reader == "links" else "collectives", (path,), f"json.{reader}"), None, notes)
    assert f"has the key {place[-1]!r} twice" in notes.text


def test_a_rank_that_is_told_twice_is_the_one_of_the_file_name(tmp_path, notes):
    """The last of two numbers would blame another rank than the one that is slow."""
    path = tmp_path / "profiler_info_3.json"
    path.write_text('{"rank_id": 3, "config": {}, "rank_id": 31}')
    assert read_metadata([path], [], notes).rank == 3
    assert "has the key 'rank_id' twice" in notes.text


def test_half_a_character_harms_nobody():
    """Writers that cut names leave one of two escapes; what no file can be written with is a mark, the rest is text."""
    assert decode(r'{"a": "x\ud800", "b": "\ud83d\ude00", "c": "\udc00y"}') == {"a": "x�", "b": "😀", "c": "�y"}
