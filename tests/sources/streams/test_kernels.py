"""Kernels at full size: what is kept of every kind of file, and what is said about the rest."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor.facts.device.kernel_time import timeline_of
from advisor.sources.base import Rank
from advisor.sources.reference import TableRef
from advisor.sources.streams import kernel_blocks as module
from advisor.sources.streams.kernels import Kernels, load_kernels, operator_name
from advisor.sources.text import csvfiles

HEADING = (
    "Step ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,"
    "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,aic_mac_ratio"
)


def row(name: str = "Default/net/MatMul-op1/MatMulV2", start: str = "1700000000000200.125\t", us: str = "300.5") -> str:
    return (
        f'1,7,2,{name},MatMulV2,dynamic,AI_CORE,{start},{us},0,24,"""32,64;64,128""",FLOAT16;FLOAT16,ND;ND,'
        '"""32,128""",FLOAT16,ND,0.61'
    )


def rank_of(path: Path, reader: str = "kernels.csv") -> Rank:
    return Rank(0, path.parent, {"kernels": TableRef("kernels", (path,), reader)}, base=path.parent)


def load(
    tmp_path: Path, *rows: str, heading: str = HEADING, end: str = "\r\n", encoding: str = "utf-8"
) -> tuple[Kernels, Rank]:
    path = tmp_path / "kernel_details.csv"
    path.write_text(end.join((heading, *rows, "")), encoding=encoding, newline="")
    rank = rank_of(path)
    found = load_kernels(rank)
    assert found is not None
    return found, rank


def test_times_keep_every_digit(tmp_path: Path) -> None:
    """Sixteen digits and three decimals are more than a float carries; a trace viewer must find the very kernel."""
    found, rank = load(tmp_path, row(), row(start="1700000000000900"), row(start='"1700000000001000.5\t"'))
    assert found.start.tolist() == [1700000000000200125, 1700000000000900000, 1700000000001000500]
    assert found.end[0] == 1700000000000500625
    assert found.signatures[0].input_shapes == "32,64;64,128" and found.streams == ["2"]
    assert rank.problems == []


def test_tasks_that_no_core_ran_are_no_kernels_that_were_lost(tmp_path: Path) -> None:
    """msprof notes tasks without name and type, one nanosecond below nothing; a kernel without a length is a loss."""
    task = "1,7,2,N/A,N/A,N/A,UNKNOWN,1700000000000100.125\t,-0.001,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A"
    found, rank = load(tmp_path, task, row(), row(start="1700000000000900"))
    assert len(found) == 2 and found.left_out == 0 and rank.problems == []
    _, rank = load(tmp_path, task.replace("UNKNOWN", "AI_CORE"), row(), row(start="1700000000000900"))
    assert any("1 kernels without a usable duration" in p.problem for p in rank.problems)


def test_kernels_that_stand_twice_are_counted_though_another_lies_between(tmp_path: Path) -> None:
    """Two kernels may start at once, on two streams; the one that stands there again need not follow itself."""
    found, _ = load(tmp_path, row("a"), row("b"), row("a"), row("c"))
    assert found.repeated == 1


@pytest.mark.parametrize("bad", ["N/A", "", "nan", "inf", "-3.0", "abc"])
def test_unusable_durations_are_left_out_and_told(tmp_path: Path, bad: str) -> None:
    """NaN, infinite, negative and missing durations never enter a sum, and the user learns of them."""
    found, rank = load(tmp_path, row(), row(us=bad))
    assert len(found) == 1 and found.duration.sum() == 300.5
    assert any("1 kernels without a usable duration" in p.problem for p in rank.problems)


@pytest.mark.parametrize("shown", ['"2,300.5"', "2\u202f300.5", "2'300.5"])
def test_durations_in_groups_of_three_digits_count(tmp_path: Path, shown: str) -> None:
    """Spreadsheets show long kernels so; without these what is left would be short ones."""
    found, rank = load(tmp_path, row(), row(us=shown))
    assert found.duration.sum() == 300.5 + 2300.5 and rank.problems == []


@pytest.mark.parametrize(("cell", "told"), [("N/A", False), ("", False), ("-", False), ("1,5", True), ("12ms", True)])
def test_cells_of_numbers_that_hold_something_else_are_told(tmp_path: Path, cell: str, told: bool) -> None:
    """Commas lose half of a column, and the rest would pass for all of it. A word for nothing is no loss."""
    damaged = row().replace(",300.5,0,", f',300.5,"{cell}",')
    found, rank = load(tmp_path, row(), damaged)
    assert len(found) == 2
    assert any("1 of the first 2 values of Wait Time(us) are not numbers" in p.problem for p in rank.problems) is told


def test_rows_whose_cells_were_moved_are_told(tmp_path: Path) -> None:
    """Types stand in the column of shapes then; nothing of that kernel's shapes is known."""
    moved = row().replace('"""32,64;64,128""",', "")
    _, rank = load(tmp_path, row(us="12.5"), moved + ",")
    assert [p.problem for p in rank.problems] == [
        "1 kernels have something else in a column of shapes, types of data or cores: cells were moved"
    ]


@pytest.mark.parametrize(("shape", "told"), [('"""32,64;;1"""', False), ("N/A", False), ("a;b", True)])
def test_letters_in_shapes_are_told(tmp_path: Path, shape: str, told: bool) -> None:
    """Nothing of these kernels' shapes is known then, and the report says whose."""
    _, rank = load(tmp_path, row(), row(us="12.5").replace('"""32,64;64,128"""', shape))
    assert any("column of shapes" in p.problem for p in rank.problems) is told


@pytest.mark.parametrize(
    ("core", "told"),
    [("AI_VECTOR_CORE", False), ("DSA_SQE", False), ("a;b", True), ("[AI_CORE", True), ("x" * 500, True)],
)
def test_a_core_that_nobody_calls_so_is_told(tmp_path: Path, core: str, told: bool) -> None:
    """What ran on the AI CPU, and what is an exchange, is known by these names."""
    _, rank = load(tmp_path, row(), row(us="12.5").replace(",AI_CORE,", f",{core},"))
    assert any("types of data or cores: cells were moved" in p.problem for p in rank.problems) is told


def test_a_table_whose_cells_were_moved_before_its_times_is_not_used(tmp_path: Path) -> None:
    """A start stands in the column of cores, a length in that of starts, and a wait in that of lengths, which would
    make an operator of the set-up take nearly all of the time."""
    moved = [row(us=us).replace(",AI_CORE,", ",") + "," for us in ("12.5", "13.5", "14.5")]
    path = tmp_path / "kernel_details.csv"
    path.write_text("\n".join((HEADING, *moved, "")))
    rank = rank_of(path)
    assert load_kernels(rank) is None
    (problem,) = [p.problem for p in rank.problems if "cells were moved" in p.problem]
    assert "none was used" in problem


@pytest.mark.parametrize(("alike", "counted"), [(1, 120), (40, 240)])
def test_a_table_that_was_put_behind_itself_counts_once(tmp_path: Path, alike: int, counted: int) -> None:
    """A device starts a kernel once. Where starts were rounded, other kernels begin together, and so may these."""
    rows = [row(f"Default/net/MatMul-op{at}/MatMulV2", f"1700000000{at // alike:06}.000", "10.0") for at in range(120)]
    found, rank = load(tmp_path, *rows, *rows)
    assert len(found) == counted
    assert any("120 kernels appear a second time" in problem.problem for problem in rank.problems)


@pytest.mark.parametrize("begun", ["4294967295", "1700000000000200.125", ""])
def test_rows_with_another_row_inside_count_only_where_their_times_are_still_their_own(
    tmp_path: Path, begun: str
) -> None:
    """A writer that was stopped in a row and went on behind it: the numbers of that row are others' cells. A start
    among those of all others shows that the times stand where they should."""
    whole = [row(start=f"17000000000{at:05}.000", us="10.0") for at in range(100, 400, 100)]
    broken = row(start=begun, us="11051").replace(",AI_CORE,", ",AI_50,").replace("FLOAT16;FLOAT16", "ND;ND")
    found, rank = load(tmp_path, *whole, broken)
    own = begun.startswith("17")
    assert found.duration.sum() == (30.0 + 11051 * own)
    assert any("those that begin at another time (1) are left out" in p.problem for p in rank.problems) is not own


@pytest.mark.parametrize(("types", "told"), [("FLOAT16", 0), ("N/A", 0), ("", 0), ("ND", 1), ("FORMAT_ND;NCHW", 1)])
def test_formats_in_the_place_of_types_are_told(tmp_path: Path, types: str, told: int) -> None:
    """What a kernel computes is judged by the types of its data; a format there shows that cells were moved."""
    _, rank = load(tmp_path, row(us="12.5"), row().replace(",FLOAT16,ND,0.61", f",{types},ND,0.61"))
    assert sum("types of data or cores: cells were moved" in p.problem for p in rank.problems) == told


@pytest.mark.parametrize(("core", "told"), [("MIX_AIC", 0), ("N/A", 0), ("", 0), ('"1,2,3"', 1), ("--", 1)])
def test_a_core_that_is_no_word_is_told(tmp_path: Path, core: str, told: int) -> None:
    """Kernels are told apart by the core they ran on: half of them on another one make other repetitions."""
    _, rank = load(tmp_path, row(us="12.5"), row().replace(",AI_CORE,", f",{core},"))
    assert sum("types of data or cores: cells were moved" in p.problem for p in rank.problems) == told


@pytest.mark.parametrize("core", ["--", "N/A", ""])
def test_a_kernel_whose_core_is_lost_is_the_one_of_its_name(tmp_path: Path, core: str) -> None:
    """A kernel that is launched again and again is one, though some rows do not tell where it ran: a benchmark of it is
    none of seven kernels in turn. On other shapes it is another one."""
    lost = row(start="1700000000000800").replace(",AI_CORE,", f",{core},")
    reshaped = lost.replace("32,64;64,128", "16,64;64,128").replace("800", "900")
    found, _ = load(tmp_path, row(), lost, reshaped, row(start="1700000000001000"))
    first, second, other, _ = (found.signatures[each] for each in found.signature.tolist())
    assert first == second and first.core == "AI_CORE" and other.core != "AI_CORE"


@pytest.mark.parametrize(("core", "told"), [("abc", 1), ("MIX_AIV", 0), ("NEW_AI_UNIT", 0), ("N/A", 0)])
def test_cores_of_which_none_is_known_are_told(tmp_path: Path, core: str, told: int) -> None:
    """Where kernels ran decides what is said of them; a name that nobody knows, beside others, may be a new one."""
    _, rank = load(tmp_path, *(row(start=f"170000000000{n}000").replace(",AI_CORE,", f",{core},") for n in range(1, 4)))
    assert sum("none by a known name" in p.problem for p in rank.problems) == told


@pytest.mark.parametrize(("stream", "told"), [("x" * 20, 1), ("-1", 1), ("17", 0), ("N/A", 0), ("", 0)])
def test_a_stream_that_is_no_number_is_told(tmp_path: Path, stream: str, told: int) -> None:
    """Who runs before and after a conversion is told by streams: those that a damaged column made up are no streams."""
    _, rank = load(tmp_path, row(), row(start="1700000000000900").replace(",7,2,", f",7,{stream},"))
    assert sum("1 kernels are of a stream that is no number" in p.problem for p in rank.problems) == told


@pytest.mark.parametrize(("kind", "told"), [("MatMulV2", 0), ("abc", 1), ('""""', 1)])
def test_one_name_bears_one_type(tmp_path: Path, kind: str, told: int) -> None:
    """What stands in a damaged cell may look like a type; the other kernels of that name know better."""
    rows = [row(start=f"1700000000000{at}00") for at in range(2, 5)]
    _, rank = load(tmp_path, *rows, row(start="1700000000000700").replace(",MatMulV2,dynamic", f",{kind},dynamic"))
    assert sum("1 kernels bear another type than most of their name" in p.problem for p in rank.problems) == told


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_no_kernels(tmp_path: Path, end: str) -> None:
    """An editor or a merge of files leaves them; nothing is missing."""
    found, rank = load(tmp_path, "", row(), "", "", row(us="12.5"), "", end=end)
    assert found.duration.tolist() == [300.5, 12.5] and rank.problems == []


def test_numbers_with_tabs_and_quotes_are_numbers(tmp_path: Path) -> None:
    """Some exporters put tabs behind durations, or the number in quotes."""
    found, _ = load(tmp_path, row(us='"300.5\t"'), row(us="12.5\t"))
    assert found.duration.tolist() == [300.5, 12.5]


def test_kernels_without_start_count_in_sums_only(tmp_path: Path) -> None:
    """A spreadsheet's 1.69512E+15 is no time of day; its duration still is one."""
    found, rank = load(tmp_path, row(), row(start="1.69512E+15"))
    assert found.start.tolist() == [-1, 1700000000000200125] and len(found) == 2
    assert any("no usable start" in p.problem for p in rank.problems)


def test_short_rows_and_communication_are_kept(tmp_path: Path) -> None:
    """Rows of collectives can be one cell short and hold N/A nearly everywhere."""
    short = "1,N/A,N/A,hcom_allReduce__1_0_1,hcom_allReduce_,N/A,HCCL,1700000000000450.000\t,150.0,0,0" + ",N/A" * 6
    found, _ = load(tmp_path, short, row())
    assert found.duration.sum() == 450.5
    assert {s.core for s in found.signatures} == {"HCCL", "AI_CORE"}


def test_a_call_stack_with_line_breaks_survives_any_block_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """with_stack puts line breaks inside quotes; a block must not end there."""
    name = '"Default/net/Mul-op2/Mul\r\nfile.py(12): construct;\r\nnet.py(3): run"'
    starts = [f"{1700000000000200 + 400 * i}.000\t" for i in range(40)]
    rows = [row(name, start=start) if i % 2 else row(start=start) for i, start in enumerate(starts)]
    expected, _ = load(tmp_path, *rows)
    for size in (64, 200, 333, 1000):
        monkeypatch.setattr(module, "BLOCK", size)
        found, rank = load(tmp_path, *rows)
        assert len(found) == len(expected) == 40 and found.names == expected.names
        assert rank.problems == []


def test_a_file_cut_in_the_middle_gives_its_whole_rows(tmp_path: Path) -> None:
    """The training died while the file was written: everything before the cut counts."""
    path = tmp_path / "kernel_details.csv"
    path.write_text("\n".join((HEADING, row(), row(), row(us="2.5")[:40])))
    found = load_kernels(rank_of(path))
    assert found is not None and found.duration.tolist() == [300.5, 300.5]


def test_a_file_cut_within_its_last_name_says_so(tmp_path: Path) -> None:
    """All cells of the last row are there, and the last one ends within a character: what came after it is gone."""
    path = tmp_path / "kernel_details.csv"
    path.write_bytes("\n".join((HEADING, row(), row()[:-4] + "算")).encode()[:-1])
    rank = rank_of(path)
    found = load_kernels(rank)
    assert found is not None and len(found) == 1
    assert any(p.problem.startswith("is cut short") for p in rank.problems)


def test_lines_may_end_in_three_ways(tmp_path: Path) -> None:
    """Files that were joined from several machines; each line is a kernel."""
    path = tmp_path / "kernel_details.csv"
    path.write_bytes("\n".join((HEADING, row(), row() + "\r" + row(), row() + "\r", "")).encode())
    found = load_kernels(rank_of(path))
    assert found is not None and len(found) == 4


@pytest.mark.parametrize("wait", ["[", "inf"])
def test_a_column_of_waits_without_a_number_is_told(tmp_path: Path, wait: str) -> None:
    """Where the profiler's own waits are lost, what rests on them goes without a word; nobody waits for ever."""
    _, rank = load(tmp_path, *[row().replace(",0,24,", f",{wait},24,")] * 2)
    assert any("holds no number in the column Wait Time(us)" in p.problem for p in rank.problems)


def test_numbers_with_grouped_digits_are_read_in_every_column(tmp_path: Path) -> None:
    """A spreadsheet writes "1,242.4" where waits are long and leaves short ones as they are."""
    found, _ = load(tmp_path, row(), row(start="1700000000001900.125").replace(",0,24,", ',"1,242.4",24,'))
    assert np.nanmax(found.wait) == pytest.approx(1242.4)


def test_what_is_no_step_among_steps_is_told(tmp_path: Path) -> None:
    """One kernel of step 0x10 among those of step 1: it makes no step of its own."""
    found, rank = load(tmp_path, row(), row(), row().replace("1,", "0x10,", 1))
    assert len(found) == 2 and [step for step in found.steps if step] and found.left_out == 1
    assert any("1 kernels have a step that is no number" in p.problem for p in rank.problems)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "gb18030"])
def test_other_encodings_give_the_same_kernels(tmp_path: Path, encoding: str) -> None:
    """A spreadsheet saves UTF-16, a Windows tool a mark in front: the tolerant reader takes over."""
    found, _ = load(tmp_path, row("网络/MatMul-op1/MatMulV2"), row(), encoding=encoding)
    assert found.duration.sum() == 601.0 and found.start.min() > 0


@pytest.mark.parametrize("quoted", [False, True])
def test_both_readers_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quoted: bool) -> None:
    """The fast and the tolerant way through a file end in the same arrays, also where every cell stands in quotes."""
    rows = [row(us=f"{i}.25", start=f"{1700000000000200 + i}.{i:03d}\t") for i in range(1, 50)] + [row(us="N/A")]
    heading = HEADING
    if quoted:
        table = pd.read_csv(io.StringIO("\n".join((heading, *rows))), dtype=str, keep_default_na=False)
        heading, *rows = table.to_csv(index=False, quoting=csv.QUOTE_ALL).splitlines()
    with monkeypatch.context() as only_fast:
        only_fast.setattr(csvfiles, "read_file", None)
        fast, _ = load(tmp_path, *rows, heading=heading)
    monkeypatch.setattr(module, "_fast_columns", lambda path: None)
    slow, _ = load(tmp_path, *rows, heading=heading)
    for name in ("start", "end", "duration", "block"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name
    assert fast.signatures == slow.signatures and fast.names == slow.names and fast.steps == slow.steps
    assert fast.pipes["mac_ratio"] == pytest.approx(slow.pipes["mac_ratio"])


def test_a_heading_behind_half_a_row_does_not_make_a_kernel_of_two(tmp_path: Path) -> None:
    """A table joined with itself, or written on while it is read: the row that was cut is no kernel, and what it had of
    a start is no part of the next row, whose numbers would stand under other headings."""
    whole, cut = row(us="300.5"), row(start="1700000000001000.5").partition("1700000000001000")[0] + "17000000000"
    found, rank = load(tmp_path, whole, HEADING, cut + HEADING, row(start="1700000000002000.5", us="200"))
    assert found.duration.tolist() == [300.5, 200.0] and found.start[-1] == 1700000000002000500
    assert any("1 kernels without a usable duration" in problem.problem for problem in rank.problems)


def test_slices_are_one_table(tmp_path: Path) -> None:
    """op_summary comes in slices; texts seen in one are the same texts in the next."""
    heading = HEADING.replace("Name", "Op Name").replace("Duration(us)", "Task Duration(us)")
    paths = []
    for i in (0, 1):
        path = tmp_path / f"op_summary_{i}.csv"
        path.write_text("\n".join((heading, row(start=f"170000000000{i}200.125"), "")))
        paths.append(path)
    rank = Rank(0, tmp_path, {"kernels": TableRef("kernels", tuple(paths), "kernels.csv")}, base=tmp_path)
    found = load_kernels(rank)
    assert found is not None and len(found) == 2 and len(found.signatures) == 1 and len(found.names) == 1


def test_no_file_tells_what_was_before_its_first_kernel(tmp_path: Path) -> None:
    """One export a file, an iteration each: a wait of 0 at a file's begin does not deny the gap since the file before,
    so that no kernel is reported missing between them."""
    paths = []
    for i in range(5):
        path = tmp_path / f"op_summary_0_1_{i}.csv"
        rows = [f"k,MatMul,AI_CORE,{1000 + 1000 * i + 60 * k}.000,50,{10 if k else 0}.0" for k in range(5)]
        path.write_text("\n".join(("Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)",
                                   *rows, "")))  # fmt: skip
        paths.append(path)
    rank = Rank(0, tmp_path, {"kernels": TableRef("kernels", tuple(paths), "kernels.csv")}, base=tmp_path)
    found = load_kernels(rank)
    assert found is not None and np.isnan(found.wait[::5]).all() and (found.wait[1:5] == 10).all()
    timeline = timeline_of(rank)
    assert timeline is not None and timeline.whole and rank.problems == []


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("Kernel::KernelLaunch::Default/net/MatMul-op1/MatMulV2", "Default/net/MatMul-op1"),
        ("Default/net/MatMul-op1/MatMulV2\nnet.py(3): construct", "Default/net/MatMul-op1"),
        ("Default/net/MatMul-op1|/home/user/net.py(3): construct|/main.py(9): run", "Default/net/MatMul-op1"),
        ("hcom_allReduce__586_0_1@group", "hcom_allReduce__586_0_1"),
        ("aclnnMatmul_MatMulCommon_MatMulV2", "aclnnMatmul_MatMulCommon_MatMulV2"),
        ("Default/net/Mul-op7_step12", "Default/net/Mul-op7"),
        ("trans_TransData_0", "trans_TransData_0"),
    ],
)
def test_an_operator_is_not_split_by_what_is_appended_to_its_name(name: str, operator: str) -> None:
    """Call stacks, launch ranges, groups and step suffixes are no part of an operator (S48)."""
    assert operator_name(name) == operator


def test_numbers_beyond_any_measure_are_unknown(tmp_path: Path) -> None:
    """1e300 as a wait or a number of blocks fits no column; the kernel counts all the same."""
    path = tmp_path / "kernel_details.csv"
    path.write_text("Name,Type,Duration(us),Wait Time(us),Block Dim\na,A,1,1e300,1e300\nb,B,2,3,4\n")
    found = load_kernels(rank_of(path))
    assert found is not None and found.duration.tolist() == [1, 2]
    assert np.isnan(found.wait[0]) and np.isnan(found.block[0]) and found.wait[1] == 3


def test_a_line_of_a_million_cells_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would cost gigabytes; a call of as many bytes in one cell is kept, and the rows around them too."""
    monkeypatch.setattr(module, "LONG_LINE", 1 << 16)
    found, rank = load(tmp_path, row(), "," * (1 << 20), row(name="x" * (1 << 17)), row())
    assert len(found) == 3
    assert any("more than 10000 cells" in p.problem for p in rank.problems)


def test_a_part_that_cannot_be_parsed_counts_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels around it are not all there were, so that nothing is said of idle time."""
    parse = module._parse
    monkeypatch.setattr(module, "BLOCK", 4096)
    monkeypatch.setattr(module, "_parse", lambda data, *others: None if b"odd" in data else parse(data, *others))
    rows = [row(start=f"1700000000{at:06}.000") for at in range(160)]
    found, rank = load(tmp_path, *rows[:80], *[row(name="odd")] * 10, *rows[80:])
    assert found.left_out >= 10
    assert any("is no CSV" in p.problem for p in rank.problems)


def test_tasks_that_only_wait_are_no_kernels(tmp_path: Path) -> None:
    """Some tables list what orders the streams beside the kernels: the time in it is nobody's work."""
    heading = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
    rows = ["mm,MatMulV2,AI_CORE,1000.000,50,0"]
    cores = ("NOTIFY_WAIT_SQE", "EVENT_WAIT", "DAVID_EVENT_WAIT", "EVENT_RECORD_SQE", "PLACE_HOLDER_SQE")
    for place, core in enumerate(cores):
        rows.append(f"N/A,N/A,{core},{1100 + 100 * place}.000,90,0")
    rows.append("add,Add,AI_VECTOR_CORE,1700.000,10,0")
    path = tmp_path / "kernel_details.csv"
    path.write_text("\n".join([heading, *rows]) + "\n")
    kernels = load_kernels(rank_of(path))
    assert kernels is not None
    assert [kernels.names[i] for i in kernels.name] == ["mm", "add"]
    assert not np.isfinite(kernels.wait).any()  # noted since the waiting, which is left out


def test_a_file_that_holds_nothing_but_one_endless_row_ends_in_no_fault(tmp_path: Path) -> None:
    """The disk wrote nonsense: the row is left out and told, and a block without any other row is an empty one."""
    path = tmp_path / "kernel_details.csv"
    path.write_text(f"{HEADING}\n{',' * 8_000_000}{row()}\n")
    rank = rank_of(path)
    assert not load_kernels(rank)
    assert any("more than 10000 cells" in problem.problem for problem in rank.problems)
