"""Reading the older MindSpore files: units, variants, averages that are no steps, damage."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.config import load_config
from advisor.facts.recording.sums import aicpu_of
from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from advisor.sources.layouts.legacy import find_ranks
from advisor.sources.older.legacy_communication import globalise
from advisor.sources.older.legacy_files import read_sheet
from advisor.sources.readers import read_table
from advisor.sources.reference import TableRef

STEPS = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"


def read(table: str, path: Path, text: str | bytes, columns: list[str] | None = None, **options: Any) -> Any:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    notes: list[str] = []
    reader = {"step_phases_average": "step_average", "kernels": "timeline"}.get(table, table)
    frame = read_table(
        TableRef(table, (path,), f"legacy.{reader}", options), columns, lambda file, text, *_: notes.append(text)
    )
    return frame, notes


def test_average_row_is_no_step(tmp_path: Path) -> None:
    """Ticks of 10 ns become microseconds; the row called `-` is the average, kept apart."""
    second = "1000,3000,2000,2000,2900,1000,900,100"
    text = f"{STEPS}\n1,0,1000,1000,0,900,0,900,100\n2,{second}\n-,{second}\n"
    frame, notes = read("step_phases", tmp_path / "t.csv", text)
    assert list(frame["step"]) == ["1", "2"]
    assert frame.iloc[1][["total_us", "interval_us", "fp_bp_us", "tail_us"]].tolist() == [20.0, 10.0, 9.0, 1.0]
    assert notes == []
    average, _ = read("step_phases_average", tmp_path / "t.csv", text)
    assert list(average["interval_us"]) == [10.0]


@pytest.mark.parametrize("name", ["-", "", "0"])
def test_every_spelling_of_the_average_is_left_out(tmp_path: Path, name: str) -> None:
    """Versions call the average row differently."""
    frame, _ = read("step_phases", tmp_path / "t.csv", f"{STEPS}\n1,0,10,10,0,5,0,5,5\n{name},0,10,10,0,5,3,5,5\n")
    assert list(frame["step"]) == ["1"]


def test_a_number_that_no_training_counts_to_is_no_step(tmp_path: Path) -> None:
    """An average whose mark was spoilt would be a further step."""
    text = f"{STEPS}\n1,0,10,10,0,5,0,5,5\n99999999999999999999999,0,10,10,0,5,0,5,5\n"
    frame, notes = read("step_phases", tmp_path / "t.csv", text)
    assert list(frame["step"]) == ["1"] and any("rows have no step number" in note for note in notes)


def test_gap_of_a_lone_first_step_is_unknown_not_zero(tmp_path: Path) -> None:
    """One step has no measured iteration gap: zero would read as a healthy data pipeline."""
    frame, notes = read("step_phases", tmp_path / "t.csv", f"{STEPS}\n1,0,1000,1000,0,900,0,900,100\n")
    assert frame["interval_us"].isna().all()
    assert any("not measured" in note for note in notes)


def test_average_row_filled_with_zeros_keeps_only_what_it_tells(tmp_path: Path) -> None:
    """Zeros of an average without a total are unknown; a row of zeros only is no average at all."""
    frame, _ = read("step_phases_average", tmp_path / "t.csv", f"{STEPS}\n1,0,9,9,0,5,0,5,4\n0,0,0,0,0,0,1200,0,0\n")
    assert frame["interval_us"].tolist() == [12.0]
    assert frame["total_us"].isna().all()
    frame, _ = read("step_phases_average", tmp_path / "t.csv", f"{STEPS}\n1,0,9,9,0,5,0,5,4\n0,0,0,0,0,0,0,0,0\n")
    assert frame is None


def test_inference_trace_has_no_tail(tmp_path: Path) -> None:
    """Inference writes fp and neither bp nor tail; these stay unknown."""
    header = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"
    text = f"{header}\n1,0,100,100,0,0,100\n2,100,250,150,130,30,120\n"
    frame, _ = read("step_phases", tmp_path / "t.csv", text)
    assert frame["fp_bp_us"].tolist() == [1.0, 1.2]
    assert frame["tail_us"].isna().all() and frame["bp_end_us"].isna().all()


def test_phases_that_do_not_add_up_are_mended_or_left_out(tmp_path: Path) -> None:
    """A number cut or edited must not move time between phases."""
    text = f"{STEPS}\n1,0,1000,1000,0,900,0,900,100\n2,1000,3000,2000,2000,2900,1000,900,1\n3,3000,2000,500,1,2,9,9,9\n"
    frame, notes = read("step_phases", tmp_path / "t.csv", text)
    assert list(frame["step"]) == ["1", "2"]
    assert frame["tail_us"].tolist() == [1.0, 1.0]
    assert len(notes) == 2


def test_collectives_of_the_step_trace(tmp_path: Path) -> None:
    """Triples come in two orders; stream and counter are taken off the name so that ranks can be compared."""
    text = (
        f"{STEPS},stream_4_0_AllReduce-op7,stream_4_0_AllReduce-op7_start_point,stream_4_0_AllReduce-op7_end_point,"
        "stream_5_parallel_0_start_point,stream_5_parallel_0_end_point,stream_5_parallel_0\n"
        "1,0,10,10,0,5,0,5,5,300,100,400,1,3,2\n2,10,20,10,10,15,0,5,5,300,100,450,11,12,1\n-,0,0,0,0,0,0,0,0,1,1,2,1,2,1\n"
    )
    frame, notes = read("step_collectives", tmp_path / "t.csv", text)
    rows = frame[["step", "name", "stream", "duration_us"]].values.tolist()
    assert ["1", "AllReduce-op7", "4", 3.0] in rows
    assert ["2", "stream_5_parallel_0", "5", 0.01] in rows
    assert len(rows) == 3 and "disagree" in notes[0]


def test_columns_of_collectives_are_found_whatever_their_letters(tmp_path: Path) -> None:
    """As all other columns: without them a tail that holds gradients was a slow update."""
    heading = f"{STEPS},stream_5_parallel_0_start_point,stream_5_parallel_0_end_point,stream_5_parallel_0"
    row = "1,0,400,400,100,300,100,200,100,310,390,80"
    for text in (heading, heading.upper()):
        frame, _ = read("step_collectives", tmp_path / "t.csv", f"{text}\n{row}\n")
        assert frame["duration_us"].tolist() == [pytest.approx(0.8)]


def test_what_two_columns_tell_needs_no_third(tmp_path: Path) -> None:
    """Without the point where backward ends, or one of a collective's three columns, both are still known: a tail that
    holds communication must not be taken for a slow update."""
    text = (
        "step_num,start_point,total,fp_point,iteration_interval,fp_and_bp,tail,"
        "stream_4_0_AllReduce-op7_end_point,stream_4_0_AllReduce-op7,stream_5_0_AllReduce-op8_start_point\n"
        "1,100,1000,200,100,500,400,900,150,950\n2,1100,1000,1200,100,500,400,1900,150,1950\n"
    )
    phases, _ = read("step_phases", tmp_path / "t.csv", text)
    collectives, notes = read("step_collectives", tmp_path / "t.csv", text)
    assert phases[["bp_end_us", "end_us"]].values.tolist() == [[7.0, 11.0], [17.0, 21.0]]
    assert collectives[["start_us", "end_us", "duration_us"]].values.tolist() == [[7.5, 9.0, 1.5], [17.5, 19.0, 1.5]]
    assert not notes


@pytest.mark.parametrize(("percents", "shares"), [(("25", "50"), [0.25, 0.5]), (("0.25", "0.5"), [0.25, 0.5])])
def test_percent_of_types_is_a_share_in_either_unit(
    tmp_path: Path, percents: tuple[str, str], shares: list[float]
) -> None:
    """Some versions write 0..1, others 0..100; types that the file leaves out make it more than the rows tell."""
    text = f"op_type,execution_time,execution_frequency,percent\nMatMul,0.5,5,{percents[0]}\nCast,1.0,2,{percents[1]}\n"
    frame, _ = read("operator_types", tmp_path / "aicore_intermediate_0_type.csv", text)
    assert frame["share"].tolist() == shares
    assert frame["total_us"].tolist() == [500.0, 1000.0]
    assert frame["avg_us"].tolist() == [100.0, 500.0]


@pytest.mark.parametrize(("cells", "what"), [("5,25,", "percent of it"), ("0.5,,", "number of executions")])
def test_types_whose_cells_moved_up_are_told_and_left_out(tmp_path: Path, cells: str, what: str) -> None:
    """A count that stands where the time was would weigh the types by how often they ran."""
    text = f"kernel_type,execution_time,execution_frequency,percent\nMatMul,{cells}\nCast,1.0,2,50\n"
    frame, notes = read("operator_types", tmp_path / "aicore_intermediate_0_type.csv", text)
    assert frame["type"].tolist() == ["Cast"]
    assert any(f"1 of 2 operators have a time and no {what}" in note for note in notes)


def test_pynative_types_tell_the_average_of_a_call(tmp_path: Path) -> None:
    """PyNative knows no steps: the table holds the whole profile, its percent weighs no calls, and nothing is of one
    step."""
    text = "op_type,execution_time,execution_frequency,percent\nCeil,200,6,90\nMatMul,20,192,10\n"
    frame, notes = read("operator_types", tmp_path / "pynative_op_intermediate_0_type.csv", text)
    assert dict(zip(frame["type"], frame["total_us"], strict=True)) == {"Ceil": 1.2e6, "MatMul": 3.84e6}
    assert frame["avg_us"].tolist() == [2e5, 2e4] and frame[["share", "steps"]].isna().all(axis=None) and not notes
    report = advise([tmp_path], load_rules(config=load_config(None)))
    assert report.profile.recording != "training_steps" and report.summary.step_time_us is None
    share = next(f for f in report.facts if f.name == "operator_type.compute_share" and f.subject.id == "MatMul")
    assert share.value == pytest.approx(3.84 / 5.04)


def test_fetching_a_batch_is_no_part_of_computing(tmp_path: Path) -> None:
    """GetNext waits for data: of what computes it has no share, however long it takes."""
    text = "op_type,execution_time,execution_frequency,percent\nGetNext,59,2,98\nMatMul,0.12,4,2\n"
    (tmp_path / "pynative_op_intermediate_0_type.csv").write_text(text)
    report = advise([tmp_path], load_rules(config=load_config(None)))
    shares = {f.subject.id: f.value for f in report.facts if f.name == "operator_type.compute_share"}
    assert shares == {"MatMul": pytest.approx(1)} and not report.problems


@pytest.mark.parametrize("kind", ["NaN", "", "-"])
def test_operators_without_a_type_are_told(tmp_path: Path, kind: str) -> None:
    """Every operator has one; a word for nothing would be the type of all of them."""
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "full_kernel_time,execution_time,execution_frequency\nDefault/net/MatMul-op3,0.25,4\n"
    )
    (tmp_path / "framework_raw_0.csv").write_text(
        f"task_id,full_kernel_name,kernel_type,op_info\n1,Default/net/MatMul-op3,{kind},{{}}\n"
    )
    (rank,) = find_ranks(tmp_path, tmp_path)
    rank.read("operators")
    assert any("1 of 1 operators have no type" in problem.problem for problem in rank.problems)


def test_operators_without_a_number_of_executions_are_told(tmp_path: Path) -> None:
    """Where times were lost and counts moved into their column, nobody knows how long anything took."""
    table = "full_kernel_time,execution_time,execution_frequency\nDefault/net/MatMul-op3,4,\nDefault/Cast-op1,0.2,1\n"
    frame, notes = read("operators", tmp_path / "aicore_intermediate_0_detail.csv", table)
    assert frame["name"].tolist() == ["Default/Cast-op1"]
    assert any("1 of 2 operators have a time and no number of executions" in note for note in map(str, notes))


@pytest.mark.parametrize(("name", "told"), [("abc", True), ("Default/MatMul-op{}", False)])
def test_operators_that_bear_one_name_are_told(tmp_path: Path, name: str, told: bool) -> None:
    """Their types are in their names: a column that holds one text tells none, and nothing is heavy."""
    rows = "".join(f"{name.format(number)},0.{number + 1},1\n" for number in range(4))
    table = "full_kernel_time,execution_time,execution_frequency\n" + rows
    _, notes = read("operators", tmp_path / "aicore_intermediate_0_detail.csv", table)
    assert any("4 of 4 operators bear one name" in note for note in map(str, notes)) is told


@pytest.mark.parametrize("name", ["\ufffd", "-", "inf", "0.4"])
def test_operators_without_a_name_are_told(tmp_path: Path, name: str) -> None:
    """One sign, or a number, in place of every name would make one operator of all of them."""
    table = f"full_op_time,execution_time,execution_frequency\n{name},0.4,1\nDefault/Cast-op1,0.2,1\n"
    frame, notes = read("operators", tmp_path / "aicore_intermediate_0_detail.csv", table)
    assert frame["name"].tolist() == ["Default/Cast-op1"]
    assert any("1 of 2 operators have no name" in note for note in map(str, notes))


def test_operators_take_shapes_from_framework_raw(tmp_path: Path) -> None:
    """Times are per execution, so frequency multiplies them; shapes and types lie in another file."""
    info = json.dumps({"input_0": {"data_type": "NUMBER_TYPE_FLOAT32", "shape": "32,64"},
                       "input_1": {"data_type": "INT32", "shape": [64, 128]},
                       f"input_{'9' * 5000}": {}, "output_0": {}})  # fmt: skip
    cell = info.replace('"', '""')
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "full_kernel_time,execution_time,execution_frequency\nDefault/net/MatMul-op3,0.25,4\nDefault/Cast-op1,x,4\n"
    )
    (tmp_path / "framework_raw_0.csv").write_text(
        f'task_id,full_kernel_name,kernel_type,op_info,block_dim\n1,Default/net/MatMul-op3,MatMulV2,"{cell}",24\n'
        '2,Default/a,A,"{",\n3,Default/b,B,11,\n'
    )
    (rank,) = find_ranks(tmp_path, tmp_path)
    frame = rank.read("operators")
    assert frame is not None
    assert frame.drop(columns="graph").iloc[0].tolist() == [
        "Default/net/MatMul-op3",
        "MatMulV2",
        "AI_CORE",
        4.0,
        1000.0,
        "32,64;64,128",
        "FLOAT;INT32",
        24.0,
    ]
    assert len(frame) == 1
    assert {problem.file for problem in rank.problems} == {"aicore_intermediate_0_detail.csv", "framework_raw_0.csv"}
    assert any(problem.problem.startswith("2 of 3 op_info cells") for problem in rank.problems)  # 11 describes nothing


def test_aicpu_operators_without_a_name_are_told(tmp_path: Path) -> None:
    """Where a cell was lost a number stands in the column of names: that operator no longer counts as itself, nor as
    one of this name, which would be blamed for what data operators wait."""
    table = "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end\n"
    frame, notes = read("aicpu", tmp_path / "a.csv", f"{table}1,GetNext,1,2,3,4,5\nGetNext,1,2,3,4,5,\n")
    assert frame["name"].tolist() == ["GetNext"]
    assert any("1 of 2 operators have no name" in note for note in map(str, notes))


@pytest.mark.parametrize(
    ("cells", "told"),
    [("0.9,0.1,0.7,1000,1700", False), ("0.282,0.078,0.22,1000,1220", False), ("0.1,0.7,1000,1700,", True)],
)
def test_an_operator_of_the_ai_cpu_takes_no_less_than_its_parts(tmp_path: Path, cells: str, told: bool) -> None:
    """Where a cell was lost and the others moved up, one part stands in the place of the whole: nothing that rests on
    the table is certain then."""
    table = "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end\n"
    (tmp_path / "aicpu_intermediate_0.csv").write_text(f"{table}1,GetNext,{cells}\n2,GetNext,0.9,0.1,0.7,2000,2700\n")
    (rank,) = find_ranks(tmp_path, tmp_path)
    assert len(aicpu_of(rank)) == 2
    found = [
        problem for problem in rank.problems if "1 of 2 operators take less time than their parts" in problem.problem
    ]
    assert bool(found) is told


def test_aicpu_text_and_csv_say_the_same(tmp_path: Path) -> None:
    """Before the CSV there was a text table with rules and a total line."""
    text = (
        "serial_number  node_type_name  total_time(ms)  dispatch_time(ms)  run_start  run_end\n"
        "-------------  --------------  --------------  -----------------  ---------  -------\n"
        "1  InitData  1.5  0.1  1000  1130\n\nAI CPU Total Time(ms): 1.5\n"
    )
    table = "serial_number,kernel_type,total_time,dispatch_time,run_start,run_end\n1,InitData,1.5,0.1,1000,1130\n"
    first, _ = read("aicpu", tmp_path / "a.txt", text)
    second, _ = read("aicpu", tmp_path / "a.csv", table)
    assert first.equals(second)
    assert first[["name", "total_us", "dispatch_us", "compute_us"]].values.tolist() == [
        ["InitData", 1500.0, 100.0, 130.0]
    ]


def test_rows_of_a_text_table_that_lost_their_number_are_told(tmp_path: Path) -> None:
    """Headings, rules and totals are no rows; what has all their cells is one, and an operator less is said."""
    text = (
        "serial_number  node_type_name  total_time(ms)  dispatch_time(ms)  run_start  run_end\n"
        "-------------  --------------  --------------  -----------------  ---------  -------\n"
        "1  InitData  1.5  0.1  1000  1130\n{}2  GetNext  0.9  0.1  2000  2130\nAI CPU Total Time(ms): 1.5\n"
    )
    whole, notes = read("aicpu", tmp_path / "a.txt", text.format(""))
    assert len(whole) == 2 and not notes
    damaged, notes = read("aicpu", tmp_path / "a.txt", text.format("x" * 9))
    assert damaged["name"].tolist() == ["InitData"]
    assert notes == ["1 rows do not begin with a number, as the others do, and were left out"]


def test_cluster_phases_leave_the_average_out(tmp_path: Path) -> None:
    """Milliseconds; the last row is the writer's mean; both spellings of the collective column count."""
    header = "computation_time,communication_alone_time,stage_time,receive_alone_time,collective_communication_time"
    text = f"{header}\n1,2,3,4,5\n3,4,5,6,7\n2,3,4,5,6\n"
    frame, notes = read("cluster_phases", tmp_path / "c.csv", text)
    assert frame.values.tolist() == [["1", 1e3, 2e3, 3e3, 4e3, 5e3], ["2", 3e3, 4e3, 5e3, 6e3, 7e3]]
    frame, notes = read("cluster_phases", tmp_path / "c.csv", "computation,communication_alone_time\n6.5,1.5")
    assert frame["step"].tolist() == ["1"] and "one row" in notes[0]


def test_flops_units(tmp_path: Path) -> None:
    """Millions, billions a second and percent; the second version's rate has no meaning and is left out."""
    frame, _ = read("flops", tmp_path / "f.json", '{"FLOPs": 2.0, "FLOPS": 3.0, "FLOPS_Utilization": 4.0}')
    assert frame.values.tolist() == [[2e6, 3e9, 0.04]]
    frame, _ = read(
        "flops", tmp_path / "f.json", '{"cube_FLOPs": 2.0, "cube_FLOPS": 3.0, "vec_FLOPs": 1, "vec_FLOPS": 1}'
    )
    assert frame["flop"].tolist() == [3e6] and frame["flop_per_s"].isna().all()
    for beyond in ("NaN", "1e19"):  # of millions
        frame, notes = read("flops", tmp_path / "f.json", f'{{"FLOPs": {beyond}}}')
        assert frame is None and notes
    frame, notes = read("flops", tmp_path / "f.json", '{"FLOPs": 0, "FLOPS": 5385.5}')
    assert frame is None and "without any FLOPs" in notes[0]
    text = "full_kernel_name, MFLOPs(10^6 cube), GFLOPS(10^9 cube), MFLOPs(10^6 vector)\na, 1, 9, 2\nb, 3, 9, 4\n"
    frame, _ = read("flops", tmp_path / "f.txt", text)
    assert frame["flop"].tolist() == [10e6]


@pytest.mark.parametrize("odd", [1e300, "abc", None, [3], [{"op_name": "x", "shape_info": "nan", "dur": 2}]])
def test_steps_without_operators_are_told(odd: Any, tmp_path: Path) -> None:
    """What stands in place of a step's operators is lost, which changes how often shapes seem to change."""
    whole = [{"op_name": "a", "op_type": "Add", "shape_info": [[32, 1]], "dur": 3.5}]
    frame, notes = read("dynamic_shapes", tmp_path / "d.json", json.dumps({"operator": {"1": whole, "2": odd}}))
    assert frame["step"].tolist() == ["1"]
    assert "1 of 2 operators have no usable duration or shapes" in notes[0]


def hccl(*rows: tuple[str, dict[str, Any]]) -> str:
    lines = ["step_num,communication_cost,wait_cost,link_info,communication_operator_cost"]
    for step, operations in rows:
        links: dict[str, Any] = {}
        for operation in operations.values():
            links.update(operation[3])
        cells = [json.dumps(part).replace('"', '""') for part in (links, operations)]
        lines.append(f'{step},1,1,"{cells[0]}","{cells[1]}"')
    return "\n".join(lines) + "\n"


def test_links_of_a_second_stage_are_global_ranks(tmp_path: Path) -> None:
    """Rank 2's "1-0" is 3 -> 2, not 1 -> 0, else links of two stages become one; a receive comes from stage 0."""
    links = {"1-0": {"SDMA": [2.0, 4.0, 777.0]}, "0-0": {"SDMA": [1.0, 2.0, 5.0]}}
    operations = {
        "stream_8_0_AllReduce-op1": ["1", 2.5, 7.5, links],
        "stream_9_0_Receive-op2": ["1", 0.5, 90.0, {"0-0": {"SDMA": [0.5, 100.0, 1.0]}}],
    }
    frame, notes = read(
        "links",
        tmp_path / "h.csv",
        hccl(("1", operations), ("-", operations)),
        rank=2,
        ids="local",
        stages=((0, 1), (2, 3)),
    )
    ends = frame[["name", "source", "destination", "size_bytes", "time_us"]].values.tolist()
    assert ends == [
        ["AllReduce-op1", 3, 2, 4000.0, 2000.0],
        ["AllReduce-op1", 2, 2, 2000.0, 1000.0],
        ["Receive-op2", 0, 2, 100000.0, 500.0],
    ]
    assert notes == []
    frame, _ = read("collectives", tmp_path / "h.csv", hccl(("1", operations), ("-", operations)))
    assert frame[["step", "name", "kind", "transit_us", "wait_us"]].values.tolist() == [
        ["1", "AllReduce-op1", "collective", 2500.0, 7500.0],
        ["1", "Receive-op2", "p2p", 500.0, 90000.0],
    ]


def test_unknown_group_leaves_the_other_end_unknown() -> None:
    """In a stage of four, "1-0" may be any pair: naming one would accuse a healthy link."""
    ends = {"1-0": (1, 0), "0-0": (0, 0)}
    stages = [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert globalise(ends, 4, stages, "collective") == {"1-0": (None, 4), "0-0": (4, 4)}
    mesh = {f"{other}-1": (other, 1) for other in range(4)}
    assert globalise(mesh, 5, stages, "collective")["3-1"] == (7, 5)
    assert globalise({"1-0": (1, 0)}, 7, stages, "p2p") == {"1-0": (None, 7)}
    assert globalise({"1-0": (1, 0)}, 6, [], "collective") == {"1-0": (None, None)}


def test_ids_that_match_every_rank_are_global(tmp_path: Path) -> None:
    """One server of data parallelism: each rank's own id is its rank, so partners are named as they stand."""
    for rank in range(3):
        other = (rank + 1) % 3
        operations = {
            "stream_1_0_AllReduce-op1": [
                "1",
                1,
                1,
                {f"{other}-{rank}": {"SDMA": [1, 1, 1]}, f"{rank}-{rank}": {"SDMA": [1, 1, 1]}},
            ]
        }
        (tmp_path / f"hccl_raw_{rank}.csv").write_text(hccl(("1", operations)))
    ranks = find_ranks(tmp_path, tmp_path)
    frame = ranks[2].read("links")
    assert frame is not None
    assert frame[["source", "destination"]].values.tolist() == [[0, 2], [2, 2]]


def test_a_step_with_broken_json_costs_only_itself(tmp_path: Path) -> None:
    """hccl_raw cells hold whole documents; one cut short must not lose the other steps."""
    operations = {"stream_1_0_AllReduce-op1": ["1", 1.0, 2.0, {"x": {"SDMA": [1]}, "1-0": {"RDMA": ["fast", 1]}}]}
    text = hccl(("1", operations)) + '2,1,1,{},"{""stream_1_0_AllRed\n'
    frame, notes = read("collectives", tmp_path / "h.csv", text)
    assert frame["step"].tolist() == ["1"]
    assert notes
    frame, notes = read("links", tmp_path / "h.csv", text, rank=0)
    assert frame is None and any("links" in note for note in notes)


def test_a_step_told_twice_is_told_by_its_first_row(tmp_path: Path) -> None:
    """Rows of another rank that were put behind these: a step has one."""
    first, other = ({f"stream_1_0_AllReduce-op{at}": ["1", 1.0, 2.0, {"1-0": {"RDMA": [1, 1, 1]}}]} for at in (1, 2))
    frame, notes = read("collectives", tmp_path / "h.csv", hccl(("1", first), ("1", other)))
    assert frame["name"].tolist() == ["AllReduce-op1"]
    assert any("step 1 more than once" in note for note in notes)


def test_collectives_of_a_number_that_no_training_counts_to_are_told(tmp_path: Path) -> None:
    """They would be those of a further step, which no other table has."""
    operations = {"stream_1_0_AllReduce-op1": ["1", 1.0, 2.0, {"1-0": {"RDMA": [1, 1, 1]}}]}
    frame, notes = read("collectives", tmp_path / "h.csv", hccl(("1", operations), ("9" * 23, operations)))
    assert frame["step"].tolist() == ["1"] and any("a row has no step number" in note for note in notes)


def test_a_trace_that_lost_most_of_its_collectives_tells_of_none(tmp_path: Path) -> None:
    """The rest would pass for all of them, and hide or expose what they never did."""
    names = [f"stream_4_{at}_AllReduce-op{at}" for at in range(3)]
    heading = ",".join(f"{name},{name}_start_point,{name}_end_point" for name in names)
    text = f"{STEPS},{heading}\n1,0,10,10,0,5,0,5,5,300,100,400,300,500,100,400,900,100\n"
    frame, notes = read("step_collectives", tmp_path / "t.csv", text)
    assert (frame is None or frame.empty) and "none was used" in notes[0]


def test_dynamic_shapes_in_both_forms(tmp_path: Path) -> None:
    """Ascend writes by type with quotes taken off the shapes, GPU by step."""
    by_type = {
        "MatMul": [{"MatMul-op1": {"op_exe_time": [5.0, 7.5], "op_exe_occurrences": 2, "op_shape": [
            "{input_0: {format: ND, data_type: FLOAT, shape: 2,3}, output_0: {shape: 9}}",
            "{input_0: {format: ND, data_type: FLOAT, shape: [4, 3]}, input_1: {shape: 7}}"]}}],
        "op_type": {"MatMul": [5.0, 7.5]},
    }  # fmt: skip
    frame, notes = read("dynamic_shapes", tmp_path / "d.json", json.dumps(by_type))
    assert frame.values.tolist() == [
        ["1", "MatMul-op1", "MatMul", "2,3", 5.0],
        ["2", "MatMul-op1", "MatMul", "4,3;7", 7.5],
    ]
    good = {"op_name": "Add-op6", "op_type": "Add", "dur": 75.6, "shape_info": ["[32, 1]", "[8]"]}
    by_step = {"operator": {"3": [good, {"op_name": "Bad", "dur": "long"}]}}
    frame, notes = read("dynamic_shapes", tmp_path / "d.json", json.dumps(by_step))
    assert frame.values.tolist() == [["3", "Add-op6", "Add", "32,1;8", 75.6]]
    assert "1 of 2" in notes[0]


@pytest.mark.parametrize("shapes", [7, True, {"0": "2,3"}, "2,3"])
def test_shapes_of_another_type_cost_the_shapes_alone(tmp_path: Path, shapes: object) -> None:
    """How long the operators ran is known all the same."""
    by_type = {"MatMul": [{"MatMul-op1": {"op_exe_time": [5.0], "op_shape": shapes}}]}
    frame, _ = read("dynamic_shapes", tmp_path / "d.json", json.dumps(by_type))
    assert frame["duration_us"].tolist() == [5.0] and frame["shapes"].isna().all()


def test_timeline_gives_kernels_and_nothing_else(tmp_path: Path) -> None:
    """Merged rows and scopes are no kernels, communication is; a cut file gives what precedes the cut."""
    events = [
        {"name": "Cast-op1", "ph": "X", "tid": "519", "ts": 10.5, "dur": 3.0, "pid": 1, "args": {"type": "Cast"}},
        {"name": "GetNext", "ph": "X", "tid": "0", "ts": 1.0, "dur": 2.0, "pid": 9000},
        {"name": "Compute", "ph": "X", "tid": "7999", "ts": 1.0, "dur": 2.0, "pid": 12000},
        {"name": "AllReduce", "ph": "X", "tid": "3", "ts": 1.0, "dur": 2.0, "pid": 10000},
    ]
    text = json.dumps(events)
    frame, notes = read("kernels", tmp_path / "t.json", text, ["name", "type", "core", "start_ns", "duration_us"])
    assert frame.values.tolist() == [
        ["Cast-op1", "Cast", "AI_CORE", 10500, 3.0],
        ["GetNext", "GetNext", "AI_CPU", 1000, 2.0],
        ["AllReduce", "AllReduce", "HCCL", 1000, 2.0],
    ]
    assert notes == []
    frame, notes = read("kernels", tmp_path / "t.json", text[:150])
    assert frame["name"].tolist() == ["Cast-op1"] and "cut" in notes[0]


def test_a_kernel_whose_operator_is_no_text_is_left_out_and_told(tmp_path: Path) -> None:
    """What updates weights is known by its operator: a number there is nobody's type."""
    events = [
        {
            "name": "Momentum",
            "ph": "X",
            "tid": "17",
            "ts": 1.0,
            "dur": 5.0,
            "pid": 0,
            "args": {"op_full_name": operator},
        }
        for operator in ("Default/optimizer-M/ApplyMomentum-op5", -1e300)
    ]
    frame, notes = read("kernels", tmp_path / "gpu_timeline_display_0.json", json.dumps(events), ["type"])
    assert frame["type"].tolist() == ["ApplyMomentum"] and "1 kernels" in notes[0]


@pytest.mark.parametrize("name", ["ascend_timeline_display_1.json", "timeline_display_1.json"])
def test_a_timeline_alone_tells_when_the_device_worked(tmp_path: Path, name: str) -> None:
    """The file that people attach to an issue: its operators and collectives are the device's course. Collectives go on
    to the end of the run, operators to the size the writer allows; what lies behind them is nobody's idle time, and the
    last execution of the graph that it lists is none to count on."""
    events: list[dict[str, object]] = []
    for step in range(20):
        events.append({"name": "AllReduce", "ph": "X", "tid": 3, "ts": 1000.0 * step + 600, "dur": 300.0, "pid": 10000})
        if step < 10:
            events.append({"name": "MatMul-op1", "ph": "X", "tid": 5, "ts": 1000.0 * step, "dur": 600.0, "pid": 1,
                           "args": {"type": "MatMul"}})  # fmt: skip
    (tmp_path / name).write_text(json.dumps(events), encoding="utf-8")
    report = advise([tmp_path], load_rules(config=load_config(None)))
    shares = {fact.name: fact.value for fact in report.facts if fact.subject.kind == "run"}
    assert shares["step.time_us"] == pytest.approx(1000) and shares["step.idle_share"] == pytest.approx(0.1)
    assert any("11 collectives" in problem.problem for problem in report.problems)


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["A-op1", "B-op2", "C-op3"] * 3, ["1"] * 3 + ["2"] * 3 + ["3"] * 3),
        (["A-op1", "B-op2", "C-op3"] * 2 + ["A-op1"], ["1"] * 3 + ["2"] * 3 + [None]),
        (["A-op1", "B-op2", "C-op3"], [None] * 3),
        (["A-op1", "B-op2", "A-op1", "C-op3", "A-op1"], [None] * 5),
        (["MatMul", "Add"] * 3, [None] * 6),
    ],
)
def test_an_operator_of_a_graph_runs_once_in_an_execution_of_it(
    tmp_path: Path, names: list[str], steps: list[str | None]
) -> None:
    """Whoever runs three times ran in three steps: the whole file is none. A last one in which operators are missing is
    no step, and what bears no node's name, or runs several times in a step, tells nothing."""
    events = [{"name": name, "ph": "X", "tid": 5, "ts": 10.0 * i, "dur": 5.0, "pid": 1} for i, name in enumerate(names)]
    frame, _ = read("kernels", tmp_path / "timeline_display_0.json", json.dumps(events))
    assert [step or None for step in frame["step"]] == steps


def test_damaged_numbers_are_left_out_and_noted(tmp_path: Path) -> None:
    """Text, NaN and negative times never become zero; the rows around them stay."""
    text = "kernel_type,total_time,execution_frequency,percent\nA,abc,1,1\nB,nan,1,1\nC,-1,1,1\nD,2,1,97\nE,3"
    frame, notes = read("operator_types", tmp_path / "a.csv", text)
    assert frame["type"].tolist() == ["D"]
    assert any("3 of 4 values of total_time" in note for note in notes)
    assert any("cut short" in note for note in notes)


TABLES = (
    "step_phases", "step_phases_average", "step_collectives", "cluster_phases", "operator_types", "operators", "aicpu",
    "flops", "collectives", "links", "kernels", "dynamic_shapes",
)  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\x00\xff\xfe\x01", b"a,b\n", b"[]", b"{}", b"[1, 2", b'{"operator": 3}']
)
def test_rubbish_is_noted_and_never_raises(tmp_path: Path, table: str, content: bytes) -> None:
    """Whatever stands in a file of this name, the analysis goes on and says why this file gave nothing."""
    for ending in ("csv", "json", "txt"):
        frame, notes = read(table, tmp_path / f"x.{ending}", content, rank=0)
        assert frame is None or frame.empty
        assert notes or table == "step_phases_average"


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(*[st.integers(0, 10**8)] * 2, st.integers(1, 10**8)), min_size=2, max_size=8
    ),
    st.integers(0, 10**13),
)  # fmt: skip
def test_step_phases_add_up_to_the_step(steps: list[tuple[int, int, int]], start: int) -> None:
    """For every trace, gap + forward and backward + tail is the step, and no tick is lost on the way."""
    lines, at = [STEPS], start
    for number, (gap, middle, tail) in enumerate(steps, 1):
        gap = gap if number > 1 else 0
        end = at + gap + middle + tail
        lines.append(f"{number},{at},{end},{end - at},{at + gap},{end - tail},{gap},{middle},{tail}")
        at = end
    with tempfile.TemporaryDirectory() as folder:
        frame, notes = read("step_phases", Path(folder) / "t.csv", "\n".join(lines))
    assert notes == []
    parts = frame["interval_us"] + frame["fp_bp_us"] + frame["tail_us"]
    assert (parts - frame["total_us"]).abs().max() < 1e-3
    assert abs(frame["total_us"].sum() - (at - start) * 0.01) < 1e-2


@settings(max_examples=25)
@given(st.integers(0, 400))
def test_a_trace_cut_anywhere_keeps_its_whole_rows(cut: int) -> None:
    """Cutting a file loses at most the rows after the cut, and never alters a row before it."""
    rows = [STEPS] + [
        f"{n},{n * 1000},{n * 1000 + 1000},1000,{n * 1000 + 100},{n * 1000 + 900},100,800,100" for n in range(1, 6)
    ]
    text = "\n".join(rows) + "\n"
    whole = max(0, text[:cut].count("\n") - 1)
    with tempfile.TemporaryDirectory() as folder:
        frame, _ = read("step_phases", Path(folder) / "t.csv", text[:cut])
    totals = [] if frame is None else frame["total_us"].tolist()
    assert len(totals) >= whole - (0 if whole else 1)
    assert all(total == 10.0 for total in totals[:whole])
    assert len(totals) <= whole + 1


@pytest.mark.parametrize("table", ["step_phases", "cluster_phases"])
def test_a_heading_of_a_hundred_thousand_cells_is_told_and_not_built(tmp_path: Path, table: str) -> None:
    """A column costs more than a cell: millions of them took minutes."""
    frame, notes = read(table, tmp_path / "t.csv", "\t" * 100_000 + f"{STEPS}\n1,0,1000,1000,0,900,0,900,100\n")
    assert frame is None or frame.empty
    assert any("100001 cells" in note for note in notes)


def test_rows_with_a_cell_of_megabytes_are_left_out_and_told(tmp_path: Path) -> None:
    """As a name of an operator type it would go into every text about it."""
    path = tmp_path / "aicore_intermediate_0_type.csv"
    head = "op_type,execution_time,execution_frequency,percent"
    lines = (head, "MatMul,9.1,6,61", "\\" * 2_000_000 + "Mul,1.6,30,11")
    path.write_text("\n".join(lines) + "\n")
    problems: list[str] = []
    frame = read_sheet(path, lambda _, problem, *_rest: problems.append(problem))
    assert frame is not None and list(frame["op_type"]) == ["MatMul"]
    assert len(problems) == 1 and problems[0].startswith("1 rows hold more than")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_wide_heading_is_compared_whole_whatever_the_order_of_its_columns(tmp_path: Path, backwards: bool) -> None:
    """Hundreds of reductions before the step's own columns hide none of them; one that is gone is told by name."""
    names = STEPS.split(",")
    for rank, reductions in enumerate((1, 400)):
        cells = dict(zip(names, ["1", "0", "1000", "1000", "0", "900", "0", "900", "100"], strict=True))
        for i in range(reductions):
            name = f"stream_48_{i}_AllReduce-op{10_000 + i}"
            cells |= {f"{name}_start_point": "910", f"{name}_end_point": "990", name: "80"}
        order = list(cells)[::-1] if backwards else list(cells)
        rows = [order, [cells[name] for name in order], [cells[name] for name in order]]
        text = "\n".join(",".join(row) for row in rows) + "\n"
        (tmp_path / f"step_trace_raw_{rank}_detail_time.csv").write_text(text)
    told = [p.problem for p in advise([tmp_path], load_rules(config=load_config(None))).problems]
    assert not any("of other ranks have" in text for text in told)
    path = tmp_path / "step_trace_raw_1_detail_time.csv"
    path.write_text(path.read_text().replace("tail", "rest"))
    told = [p.problem for p in advise([tmp_path], load_rules(config=load_config(None))).problems]
    assert any("lacks tail, which the files of other ranks have" in text for text in told)
