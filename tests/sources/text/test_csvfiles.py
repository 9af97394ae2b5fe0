"""CSV files are read by heading, exactly, and damage is told."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.sources.text import csvfiles
from advisor.sources.text.csvfiles import match_columns, read_columns, read_file, split_heading
from advisor.tables import MEMORY, MODULE_MEMORY, OPERATOR_MEMORY, STEPS, TABLES

HEADING = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"


def read(tmp_path: Path, content: str | bytes, notes, table=STEPS, columns=None):
    path = tmp_path / "file.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_file(table, path, columns, notes)


def test_headings_are_found_whatever_their_case_blanks_marks_and_order(tmp_path, notes):
    """A version that reorders or respells columns gives the same numbers."""
    frame = read(tmp_path, '\ufefffree ,"COMPUTING",new column,communication(not overlapped)\t\n3,1,x,2\n', notes)
    assert frame[["computing_us", "exposed_us", "free_us"]].to_numpy().tolist() == [[1.0, 2.0, 3.0]]
    assert notes == []


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_text_of_any_encoding_and_line_end_is_read(tmp_path, notes, codec):
    """A file that a spreadsheet saved in the local encoding is still read, names included."""
    frame = read(tmp_path, f"{HEADING},备注\r\n第一步,1,2,0,2,3,慢\r\n".encode(codec), notes)
    assert frame["step"].tolist() == ["第一步"]
    assert frame["free_us"].tolist() == [3.0]


def test_times_of_day_keep_their_nanoseconds(tmp_path, notes):
    """Two events 1 ns apart stay apart although a float64 cannot tell them apart."""
    text = "Component,Timestamp(us),Total Allocated(MB)\nPTA,1736408883573957.920\t,1\nPTA,1736408883573957.921\t,1\n"
    frame = read(tmp_path, text, notes, MEMORY)
    assert frame["time_ns"].tolist() == [1736408883573957920, 1736408883573957921]
    assert frame["allocated_bytes"].tolist() == [1048576.0, 1048576.0]


def test_times_rounded_by_a_spreadsheet_are_not_taken_for_times(tmp_path, notes):
    """1.69512E+15 µs could be any moment within hours, so it is unknown, and the user learns why."""
    frame = read(tmp_path, "Component,Timestamp(us)\nAPP,1.69512E+15\n", notes, MEMORY)
    assert frame["time_ns"].isna().all()
    assert "spreadsheet" in notes.text


@pytest.mark.parametrize(("unit", "computing"), [("", 70.0), ("(us)", 70.0), ("(ms)", 70_000.0), (" (s)", 70e6)])
def test_a_unit_told_where_no_version_tells_one_counts(tmp_path, notes, unit, computing):
    """step_trace_time.csv names none; a table exported with (ms) in its headings is not a thousand times shorter."""
    heading = ",".join(f"{name}{unit}" for name in ("Computing", "Communication(Not Overlapped)", "Free"))
    frame = read(tmp_path, f"Step,{heading}\n1,70,20,10\n", notes)
    assert frame["computing_us"].tolist() == [computing] and frame["free_us"].tolist() == [computing / 7]
    assert notes == []


def test_a_unit_other_than_usual_is_converted(tmp_path, notes):
    """Total Reserved(MB) of one version and (KB) of another mean the same bytes."""
    mega = read(tmp_path, "Component,Timestamp(us),Total Reserved(MB)\nHCCL,1,2\n", notes, MODULE_MEMORY)
    kilo = read(tmp_path, "Component,Timestamp(us),Total Reserved(KB)\nHCCL,1,2048\n", notes, MODULE_MEMORY)
    assert mega["reserved_bytes"].tolist() == kilo["reserved_bytes"].tolist() == [2 * 1048576.0]


def test_what_is_no_measurement_is_unknown_and_counted(tmp_path, notes):
    """Text, infinities and negative durations are left out with one line each; N/A and empty cells are normal."""
    rows = "1,abc,2,0,2,3\n2,inf,2,0,2,3\n3,-4,2,0,2,3\n4,N/A,,0,2,3\n5,7,2,0,2,3\n"
    frame = read(tmp_path, f"{HEADING}\n{rows}", notes)
    assert [math.isnan(x) for x in frame["computing_us"]] == [True, True, True, True, False]
    assert len(notes) == 3
    assert "1 of 5 values of Computing are not numbers, first 'abc'" in notes.text


def test_the_difference_that_may_be_negative_is_kept(tmp_path, notes):
    """MindSpore writes a negative exposed time without receive where a send overlaps; it is no defect."""
    heading = f"{HEADING},Communication(Not Overlapped and Exclude Receive)"
    frame = read(tmp_path, f"{heading}\n1,1,2,0,2,3,-50\n", notes)
    assert frame["exposed_without_receive_us"].tolist() == [-50.0]
    assert notes == []


def test_a_missing_required_column_is_named(tmp_path, notes):
    """Who cut a column out learns which one, and the rest is still read."""
    frame = read(tmp_path, "Step,Computing,Free\n1,2,3\n", notes)
    assert frame["computing_us"].tolist() == [2.0]
    assert "lacks the column Communication(Not Overlapped); found: Step, Computing, Free" in notes.text


def test_a_heading_that_no_profiler_writes_is_told(tmp_path, notes):
    """What damage glues to a heading takes its column away: who misses the steps learns why."""
    frame = read(tmp_path, f"{'x' * 300}{HEADING}\n1,1,2,0,2,3\n", notes)
    assert frame["computing_us"].tolist() == [1.0]
    assert "a cell of 304 characters; what stands below it was not read" in notes.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (f"{HEADING}\n", "no rows"),
        ("a,b\n1,2\n", "none of the columns"),
        (b"\x00\x01\x02\xff" * 50, "none of the columns"),
    ],
)
def test_a_file_without_content_gives_nothing_and_says_so(tmp_path, notes, content, said):
    """An empty or foreign file is a problem entry, not zeros."""
    assert read(tmp_path, content, notes) is None
    assert said in notes.text


def test_a_last_row_cut_short_is_left_out(tmp_path, notes):
    """A copy that stopped half way loses only its last row, not the others."""
    frame = read(tmp_path, f"{HEADING}\n1,1,2,0,2,3\n2,1,2,0", notes)
    assert frame["step"].tolist() == ["1"]
    assert "cut short" in notes.text


@pytest.mark.parametrize("end", [b"\xe7", b"\xe7\xae"])
def test_a_last_row_cut_within_a_character_is_left_out(tmp_path, notes, end):
    """All its cells are there, and the last one is not whole; a name that is whole needs no line end."""
    whole = f"{HEADING},Stage\n1,1,2,0,2,3,算\n2,1,2,0,2,3,".encode()
    assert read(tmp_path, whole + end, notes)["step"].tolist() == ["1"]
    assert "cut short" in notes.text
    assert read(tmp_path, whole + "算".encode(), notes)["step"].tolist() == ["1", "2"]


def test_sums_of_one_name_are_nobody_s(tmp_path, notes):
    """A table of sums has one row a name: whose two are, or of which run, nobody knows."""
    rows = "0,acl,launch,5,1\n0,acl,launch,9,2\n0,acl,copy,7,1\n1,acl,copy,8,1\n"
    frame = read(tmp_path, f"Device_id,Level,API Name,Time(us),Count\n{rows}", notes, TABLES["host_api"])
    assert frame["name"].tolist() == ["copy", "copy"] and frame["total_us"].tolist() == [7.0, 8.0]
    assert "2 rows bear the name of another row" in notes.text


def test_rows_with_surplus_cells_are_not_shifted_into_other_columns(tmp_path, notes):
    """An unquoted comma in a name must not turn one column's number into another's."""
    frame = read(tmp_path, "Name,Size(KB),Device Type\na,b,1,NPU:0\nc,2,NPU:0\n", notes, OPERATOR_MEMORY)
    assert frame["name"].tolist() == ["c"]
    assert "1 rows have more cells" in notes.text


@pytest.mark.parametrize(("ends", "told"), [((",", "", ""), True), ((",", ",", ","), False), (("", "", ""), False)])
def test_single_rows_with_an_empty_cell_more_are_told(tmp_path, notes, ends, told):
    """A writer that ends each row with a mark does so in all; where one row alone has it, its cells were moved."""
    rows = "".join(f"{at},1,2,0,2,3{end}\n" for at, end in enumerate(ends))
    assert len(read(tmp_path, f"{HEADING}\n{rows}", notes)) == 3
    assert ("1 of 3 rows have an empty cell more" in notes.text) == told


def test_short_rows_keep_what_they_have(tmp_path, notes):
    """HCCL rows one column short still count; only the missing cell is unknown."""
    frame = read(tmp_path, f"{HEADING}\n1,1,2,0,2\n2,1,2,0,2,3\n", notes)
    assert math.isnan(frame["free_us"][0])
    assert frame["free_us"][1] == 3.0


def test_a_quotation_mark_never_closed_does_not_swallow_the_rest(tmp_path, notes):
    """One stray quote costs one row at most."""
    frame = read(tmp_path, f'{HEADING}\n"1,1,2,0,2,3\n2,1,2,0,2,3\n3,1,2,0,2,3\n', notes)
    assert frame["step"].tolist()[-2:] == ["2", "3"]
    assert "never closed" in notes.text


def test_line_breaks_and_doubled_quotes_inside_cells_are_text(tmp_path, notes):
    """Call stacks and shapes with quotes inside do not break the table."""
    text = 'Name,Size(KB)\n"a;\nb;\nc",1\n"""3840,588;1152""",2\n'
    frame = read(tmp_path, text, notes, OPERATOR_MEMORY)
    assert frame["name"].tolist() == ["a;\nb;\nc", "3840,588;1152"]
    assert notes == []


def test_a_huge_cell_is_read(tmp_path, notes):
    """A stack of ten million characters in one cell is no reason to lose the file."""
    frame = read(tmp_path, f'Name,Size(KB)\n"{"x" * 10_000_000}",1\nb,2\n', notes, OPERATOR_MEMORY, ["size_bytes"])
    assert frame["size_bytes"].tolist() == [1024.0, 2048.0]


def test_a_column_there_twice_is_told(tmp_path, notes):
    """Two columns of one name: the first counts and the user knows."""
    frame = read(tmp_path, f"{HEADING},Free\n1,1,2,0,2,3,99\n", notes)
    assert frame["free_us"].tolist() == [3.0]
    assert "Free 2 times" in notes.text


def test_headings_repeated_between_slices_are_no_rows(tmp_path, notes):
    """Files pasted together keep their heading in the middle."""
    frame = read(tmp_path, f"{HEADING}\n1,1,2,0,2,3\n{HEADING}\n2,1,2,0,2,3\n", notes)
    assert len(frame) == 2


def test_wanted_columns_are_always_there(tmp_path, notes):
    """A fact may ask for a column that old versions do not have and gets unknown values, not an error."""
    frame = read(tmp_path, f"{HEADING}\n1,1,2,0,2,3\n", notes, columns=["free_us", "bubble_us"])
    assert list(frame.columns) == ["free_us", "bubble_us"]
    assert frame["bubble_us"].isna().all()


def test_every_heading_of_the_tables_is_matched_by_its_own_column():
    """A synonym that another column of the table grabs first would never be read."""
    for table in TABLES.values():
        for column in table.columns:
            for heading in column.headings:
                assert match_columns(table.columns, [heading])[column.name].heading == heading
                assert split_heading(heading)[0]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(st.binary(max_size=300), st.text(alphabet='",\n\r\t;01e.-aé\x00', max_size=200)), head=st.booleans()
)
def test_no_bytes_crash_the_reader(tmp_path, notes, data, head):
    """Whatever a file holds, reading it ends with a frame of the right columns or a note."""
    content = data.encode() if isinstance(data, str) else data
    notes.clear()
    frame = read(tmp_path, (HEADING.encode() + b"\n" if head else b"") + content, notes)
    assert list(frame.columns) == list(STEPS.names) if frame is not None else notes


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(st.sampled_from(["0", "1.5", "a b", "", " ", "x\t"]), min_size=3, max_size=3), min_size=1),
    mark=st.sampled_from(["", '"', ",", "\n", "\r", "\x00", ";;;;", "é", "a,b,c\n", "   \n", "\n,,\n"]),
    at=st.integers(0, 60), end=st.sampled_from(["\n", "\r\n"]), closed=st.booleans(), once=st.booleans(),
)  # fmt: skip
def test_rows_are_the_same_whichever_way_they_are_read(tmp_path, notes, rows, mark, at, end, closed, once):
    """What is cut into columns as a whole is what the reader that looks at each row would have found and told."""
    text = end.join(map(",".join, [["a", "b", "c"], *rows])) + end * closed
    path = tmp_path / "file.csv"
    path.write_bytes((text[:at] + mark + text[at:]).encode())
    found = []
    for plain in (csvfiles.read_plain, lambda path, once: None):
        notes.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csvfiles, "read_plain", plain)
            found.append((read_columns(path, notes, lambda heading: [*range(len(heading))], once=once), [*notes]))
    assert found[0] == found[1]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_exact_times_survive_writing_and_reading(tmp_path, notes, times):
    """Any nanosecond written as µs with three decimals comes back as itself."""
    rows = "".join(f"APP,{t // 1000}.{t % 1000:03d}\t\n" for t in times)
    frame = read(tmp_path, "Component,Timestamp(us)\n" + rows, notes, MEMORY)
    assert frame["time_ns"].tolist() == times


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize(
    ("written", "shape"),
    [
        (lambda value: f"{value:.2f}".replace(".", ","), "32,1024"),
        (lambda value: f"{value:,.2f}", "8,512"),
        (lambda value: f"{value:,.2f}".translate(str.maketrans(",.", ".,")), "32,102"),
    ],
    ids=["decimal comma", "grouped by commas", "grouped by points"],
)
def test_numbers_of_every_spreadsheet_are_the_same_numbers(tmp_path, notes, delimiter, written, shape):
    """A spreadsheet in another language saves 15431.2 as 15431,2, 15,431.20 or 15.431,20; shapes keep their commas."""
    values = [15431.2, 0.25, 1718098.75, 3101.0]
    heading = delimiter.join(("Name", "Start Time(us)", "Duration(us)", "Input Shapes"))
    rows = [delimiter.join(("mm", written(1e6 + value), written(value), shape)) for value in values]
    frame = read(tmp_path, "\n".join((heading, *rows, "")), notes, TABLES["kernels"])
    assert frame["duration_us"].tolist() == values
    assert frame["start_ns"].tolist() == [round((1e6 + value) * 1000) for value in values]
    assert set(frame["input_shapes"]) == {shape} and notes == []


@pytest.mark.parametrize(("core", "told"), [("AI_CORE", ""), ("--", "1 of 2"), ("", "1 of 2")])
def test_a_type_of_operator_without_its_core_is_told(tmp_path, notes, core, told):
    """What runs on AI CPUs is a finding; where the core of some types is not told, more may."""
    rows = f"0,Sort,AI_CPU,2,80,40\n0,IndexPut,{core},2,10,5\n"
    heading = "Device_id,OP Type,Core Type,Count,Total Time(us),Avg Time(us)"
    read(tmp_path, f"{heading}\n{rows}", notes, TABLES["operator_types"])
    assert notes.text.count("operator types name no core") == bool(told) and told in notes.text


def test_text_cut_within_a_character_lost_the_end_of_its_last_row(tmp_path, notes):
    """The last row of a UTF-16 file has all its cells, and the last of them half its digits."""
    text = f"{HEADING}\n1,1,2,0,2,3\n2,1,2,0,2,345\n".encode("utf-16")
    frame = read(tmp_path, text[:-5], notes)
    assert frame["step"].tolist() == ["1"] and "cut short" in notes.text
