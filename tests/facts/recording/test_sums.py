"""Sums of a step table that hold whatever the training did."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.recording.sums import moved_rows, statistic_of, tell_overlap, tell_sums
from advisor.model import RUN
from advisor.pipeline import Options, measure


def noted(framework, frame, time_us, marks=()):
    """What is told of a rank that has this step table alone, or a timeline with these marks beside it."""
    notes = []
    rank = SimpleNamespace(
        framework=framework, has=lambda table: table == "trace" and bool(marks),
        once=lambda key, make: SimpleNamespace(steps=marks), note=lambda *entry: notes.append(entry), relative=str,
        tables={"steps": SimpleNamespace(paths=("step_trace_time.csv",))},
        headings=lambda table, *columns: columns,
    )  # fmt: skip
    tell_sums(rank, frame, time_us)
    if "overlapped_us" in frame:
        tell_overlap(rank, frame["overlapped_us"].to_numpy(), frame["computing_us"].to_numpy(), time_us)
    return notes


@pytest.mark.parametrize(("last", "told"), [(80.0, 0), (None, 1)])
def test_a_cell_that_one_row_lacks_is_told(last, told):
    """Where a cell was lost, those behind it moved up, and the row's last one is empty; a column that no row fills is a
    version's."""
    frame = pd.DataFrame({"step": ["1", "2"], "free_us": [44.0, 45.0], "preparing_us": [90.0, last], "stage_us": None})
    notes = noted("pytorch", frame, np.full(2, 13e3))
    assert len(notes) == told and all("1 of 2 rows lack preparing_us" in text for _, text in notes)


@pytest.mark.parametrize(("exposed", "overlapped", "told"), [(8e3, 1e3, 0), (1e3, 8e3, 1)])
def test_the_bubble_is_a_part_of_the_exposed_time(exposed, overlapped, told):
    """Exposed and overlapped communication make the same sum under each other's headings; what is left of the exposed
    time without the bubble tells which is which. Receives that wait side by side leave less than nothing."""
    frame = pd.DataFrame({
        "computing_us": [22e3], "exposed_us": exposed, "overlapped_us": overlapped, "communication_us": 9e3,
        "free_us": 200.0, "bubble_us": 12e3, "exposed_without_receive_us": -4e3,
    })  # fmt: skip
    notes = noted("mindspore", frame, np.array([30e3]))
    assert len(notes) == told and all("exposed_without_receive_us + bubble_us is not" in text for _, text, _ in notes)


def test_rows_whose_cells_were_moved_are_no_steps():
    """They lack their last cell, and what they compute and wait for does not make their length: a step that shrinks to
    a hundredth of the others would pass for jitter. A row that merely lacks a cell is a step."""
    frame = pd.DataFrame({
        "step": ["1", "2", "3"], "computing_us": [23e3, 23e3, 22e3], "exposed_us": [0.0, 0.0, 100.0],
        "free_us": [23e3, 190.0, 150.0], "stage_us": [0.0, 23190.0, 22250.0], "bubble_us": [160.0, 0.0, 0.0],
        "preparing_us": [None, 105.0, None],
    })  # fmt: skip
    notes = []
    rank = SimpleNamespace(
        framework="pytorch", note=lambda *entry: notes.append(entry), relative=str,
        tables={"steps": SimpleNamespace(paths=("step_trace_time.csv",))},
    )  # fmt: skip
    assert moved_rows(rank, frame, np.array([46e3, 23190.0, 22250.0])).tolist() == [True, False, False]
    assert [text for _, text, _ in notes] == ["1 of 3 rows lack a cell and have sums that cannot be; left out"]


@pytest.mark.parametrize(("framework", "told"), [("mindspore", 0), ("pytorch", 1)])
def test_receives_that_wait_side_by_side_are_no_contradiction(framework, told):
    """MindSpore's Bubble adds up what every receive lasts, maybe more than the step; torch_npu's is a part of it."""
    frame = pd.DataFrame(
        {"computing_us": [22e3], "exposed_us": [33e3], "free_us": [200.0], "stage_us": [8e3], "bubble_us": [57e3]}
    )
    assert len(noted(framework, frame, np.array([55.2e3]))) == told


@pytest.mark.parametrize(("lasts_us", "told"), [(4_200_100, 0), (35, 1)])
def test_a_lone_step_is_set_up_as_long_as_its_mark_lasts(lasts_us, told):
    """The profiler's own mark is a witness: what the host did before the only step's first kernel is no damage."""
    frame = pd.DataFrame({"computing_us": [29.0], "exposed_us": [0.0], "free_us": [1.5], "preparing_us": [4_200_031.0]})
    assert len(noted("pytorch", frame, np.array([30.5]), [("1", 0, lasts_us * 1000)])) == told


@pytest.mark.parametrize(("order", "told"), [((0, 1, 2), 0), ((2, 1, 0), 1)])
def test_a_collective_may_overlap_what_later_steps_compute(order, told):
    """Writers count a collective whole in the step in which it begins; behind the last step nothing computes."""
    overlapped = np.array([44e3, 8e3, 0.0])[list(order)]
    frame = pd.DataFrame({"computing_us": [30e3] * 3, "exposed_us": 50e3, "overlapped_us": overlapped})
    assert len(noted("mindspore", frame, np.full(3, 80e3))) == told


@pytest.mark.parametrize(("computing", "told"), [(900.0, 0), (5000.0, 1)])
def test_steps_compute_no_longer_than_all_kernels_take(computing, told):
    """The profiler's statistic sums every kernel of the recording, its shares those of the rows that were cut off; idle
    time under the heading of computation is more than all of them."""
    steps = pd.DataFrame({"computing_us": [computing, computing], "exposed_us": [0.0, 0.0], "free_us": [100.0, 100.0]})
    statistic = pd.DataFrame({"total_us": [500.0, 500.0], "share": [0.25, 0.25]})
    notes = []
    rank = SimpleNamespace(
        framework="mindspore", has=lambda table: True, read=lambda *_: statistic, once=lambda key, make: make(),
        relative=lambda path: path.name,
        note=lambda *entry: notes.append(entry), headings=lambda table, *columns: columns,
        tables={name: SimpleNamespace(paths=(Path(name),)) for name in ("steps", "operator_types")},
    )  # fmt: skip
    tell_sums(rank, steps, np.array([computing + 100.0] * 2))
    assert len(notes) == told


@pytest.mark.parametrize("factor", [1.0, 1.01, 1000.0, 0.001])
def test_times_and_shares_of_a_statistic_tell_of_one_whole(factor):
    """Older statistics tell neither counts times means nor kernels one by one: a part of the column in another unit
    shows in its shares alone, which nothing but rounding moves."""
    whole = pd.DataFrame({"type": ["MatMul", "TransData", "Cast", "Add"], "total_us": [1085.0, 121.8, 53.4, 7.28]})
    statistic = whole.assign(share=(whole["total_us"] / 1470.0).round(4))
    statistic.loc[1:, "total_us"] *= factor
    notes = []
    rank = SimpleNamespace(
        has=lambda table: True, read=lambda *_: statistic, once=lambda key, make: make(), relative=str,
        note=lambda *entry: notes.append(entry), headings=lambda table, *columns: columns,
        tables={"operator_types": SimpleNamespace(paths=(Path("type.csv"),))},
    )  # fmt: skip
    assert len(statistic_of(rank)) == 4
    told = [tables for _, text, tables in notes if "total_us and share do not agree in" in text]
    assert told == ([] if factor in (1.0, 1.01) else [("operator_types",)])


@pytest.mark.parametrize(("row", "told"), [(0, 0), (1, 1)])
def test_a_graph_is_compiled_before_the_first_step(row, told):
    """What precedes the first row lies before the recording and may take any time; behind it, it is another unit."""
    preparing = np.full(5, 100.0)
    preparing[row] = 900e3
    frame = pd.DataFrame({"computing_us": [9e3] * 5, "exposed_us": 0.0, "free_us": 100.0, "preparing_us": preparing})
    assert len(noted("pytorch", frame, np.full(5, 9.1e3))) == told


@pytest.mark.parametrize(("free", "told"), [([0.2e3, 307.8e3, 0.2e3], 0), ([0.2e3, 0.2e3, 0.2e3], 1)])
def test_a_long_wait_stands_in_the_row_before_it(free, told):
    """torch_npu: what a step waits is idle time of the row before, however many times the step's own row it is; a wait
    that stands in no row is in another unit."""
    frame = pd.DataFrame({"computing_us": [11e3] * 3, "free_us": free, "preparing_us": [0.1e3, 0.1e3, 307.6e3]})
    time = np.array(free) + 11.5e3
    assert len(noted("pytorch", frame, time)) == told


@given(st.lists(st.floats(1e3, 1e6), min_size=2, max_size=20), st.floats(0.0, 1.0), st.floats(0, 1e6))
def test_a_host_leads_by_what_was_recorded_since_its_first_step(lengths, part, first):
    """Where stages of a pipeline run ahead of their devices, Preparing grows beyond any step: their rows are intact."""
    time = np.array(lengths)
    first = min(first, 10 * time[0])
    preparing = np.concatenate(([first], first + part * np.cumsum(time)[:-1]))
    frame = pd.DataFrame({"computing_us": time, "preparing_us": preparing, "free_us": np.zeros(len(time))})
    assert noted("mindspore", frame, time) == []


@pytest.mark.parametrize(("columns", "total"), [(("count", "avg_us"), [500.0, 40.0]), (("count",), None), ((), None)])
def test_a_statistic_tells_how_long_its_types_took(columns, total):
    """Calls and their mean make the total that a table lacks; names and shares alone are no statistic, and nothing is
    told of what its list of names lacks."""
    whole = pd.DataFrame({"type": ["MatMul", "Cast"], "count": [5.0, 4.0], "avg_us": [100.0, 10.0]})
    table = whole[["type", *columns]].assign(total_us=np.nan, share=[0.5, 0.04])
    rank = SimpleNamespace(
        has=lambda table: True, read=lambda *_: table, once=lambda key, make: make(), relative=str,
        note=lambda *entry: None, headings=lambda table, *columns: columns,
        tables={"operator_types": SimpleNamespace(paths=(Path("type.csv"),))},
    )  # fmt: skip
    found = statistic_of(rank)
    assert (None if found is None else found["total_us"].tolist()) == total


def test_a_table_that_was_refused_makes_no_inference(tmp_path):
    """Seven names without gradients among them are no training without gradients."""
    output = tmp_path / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [f"{step},3187700,3584300,0,3584300,164395,6936395,0" for step in (19, 20, 21)]
    heading = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
    (output / "step_trace_time.csv").write_text("\n".join([heading, *rows]) + "\n")
    types = ["Slice,AI_VECTOR_CORE,36.53", "GroupedMatmul,MIX_AIC,14.87", "Cast,AI_VECTOR_CORE,9.10"]
    (output / "op_statistic.csv").write_text("\n".join(["OP Type,Core Type,Ratio(%)", *types]) + "\n")
    assert measure([tmp_path], None, Options(jobs=1)).facts.value("recording.kind", RUN) == "training_steps"
