"""Operators: what is slow, what is waste, and what is neither."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from clusters import SMALL
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.base import FactSet
from advisor.facts.operators.kinds import inserted_by_framework, is_aicpu, is_cube, is_reduction, is_update, shapes
from advisor.facts.operators.longest import LongCall, longest_of
from advisor.facts.operators.operators import explain_difference, time_by_type
from advisor.facts.operators.shapes.flops import slow_case, work
from advisor.facts.operators.shapes.work import (
    LAUNCH_US,
    SIZE_CLASS,
    MatMul,
    float32_ratio,
    matmul,
    unaligned,
    unaligned_rows,
)
from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules
from advisor.sources.streams.kernels import Signature
from benchmarks.simulator import simulate, write_profile
from tests.helpers.large import AICPU, CONVERSIONS, LAYER, Workload, write


def cube(inputs: str, output: str, dtype: str = "FLOAT16", formats: str = "ND;ND") -> Signature:
    return Signature("MatMulV2", "AI_CORE", "dynamic", inputs, f"{dtype};{dtype}", formats, output, dtype)


@pytest.mark.parametrize(
    ("inputs", "output", "sizes"),
    [
        ("32,64;64,128", "32,128", (1, 32, 64, 128)),
        ("81920,4096;8192,512", "4096,512", None),
        ("64,32;64,128", "32,128", (1, 32, 64, 128)),
        ("8,32,64;8,64,128", "8,32,128", (8, 32, 64, 128)),
        ("8,32,64;64,128", "8,32,128", (8, 32, 64, 128)),
        ("32,4096;1000,4096;1000", "32,1000", (1, 32, 4096, 1000)),
        ("", "", None),
        ("32;64", "32", None),
    ],
)
def test_sizes_of_a_multiplication_come_from_its_tensors(inputs: str, output: str, sizes: tuple | None) -> None:
    """Transposed inputs, batches and bias do not matter; what does not fit together is no multiplication."""
    found = matmul(cube(inputs, output))
    assert (None if found is None else (found.batch, found.m, found.k, found.n)) == sizes


def test_padding_is_what_the_blocks_of_16_add() -> None:
    """33 rounds up to 48: a third of the unit's work is padding; 1000 rounds up to 1008: next to nothing."""
    odd = matmul(cube("4096,33;33,512", "4096,512"))
    assert odd is not None and odd.useful == pytest.approx(33 / 48) and odd.aligned() == "k 33 → 48"
    fine = matmul(cube("32,4096;1000,4096", "32,1000"))
    assert fine is not None and fine.useful == pytest.approx(1000 / 1008)
    assert matmul(cube("4,5,16,16;5,6,16,16", "4,6,16,16", formats="FRACTAL_NZ;FRACTAL_NZ")) is None


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 4096))
def test_padding_costs_only_where_the_cube_unit_is_the_limit(m: int, k: int, n: int) -> None:
    """Never more than the blocks of 16 add; nothing where moving the bytes takes as long as computing all of them, as
    with the one row of a decoding model."""
    product, moved = MatMul(1, m, k, n), 2.0 * (m * k + k * n + m * n)
    assert -1e-9 <= product.padding(moved) <= 1 - product.useful + 1e-9
    assert product.padding(0.0) == pytest.approx(1 - product.useful)
    assert product.padding(product.flop / product.useful) == 0.0
    assert MatMul(1, 1, 2048, 11264).padding(2.0 * 2048 * 11264) == 0.0


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "reduces"),
    [("Mul", "64,128;64,128", "64,128", False), ("ReduceSumD", "64,128", "64", True), ("Square", "", "", False),
     ("BNTrainingReduce", "", "", True), ("BNTrainingUpdate", "8,64,7,7;64", "8,64,7,7", False),
     ("Custom", "64,128", "64,1", True), ("SoftmaxV2", "64,128", "64,128", True)],
)  # fmt: skip
def test_what_reduces_is_told_by_its_shapes_else_by_its_name(
    kind: str, inputs: str, outputs: str, reduces: bool
) -> None:
    """What follows it needs all of its result and is not fused with it."""
    signature = Signature(kind, "AI_VECTOR_CORE", "dynamic", inputs, "FLOAT", "ND", outputs, "FLOAT")
    assert is_reduction(signature) is reduces


def test_a_slow_shape_is_found_per_unit_of_work_only() -> None:
    """Twice the work in twice the time is no defect; the same work in three times the time is."""
    small, large = cube("4096,1024;1024,1024", "4096,1024"), cube("4096,2048;2048,1024", "4096,1024")
    odd = cube("4096,1024;1024,1023", "4096,1023")
    ratio = work(large) / work(small)
    alike = slow_case([small, large], [10, 10], [1000.0, 1000.0 * ratio])
    assert alike is None or alike.ratio == pytest.approx(1.0)
    found = slow_case([small, odd], [10, 10], [1000.0, 3000.0])
    assert found is not None and found.shape == odd.input_shapes and found.ratio == pytest.approx(3.0, rel=0.01)
    assert found.excess_us == pytest.approx(2000.0, rel=0.01)


@pytest.mark.parametrize(("us", "slow"), [(470.0, False), (1500.0, True)])
def test_what_comes_at_the_speed_of_memory_is_no_slow_shape(us: float, slow: bool) -> None:
    """A tensor beside it came out of a cache; one of 300 MB in 470 us has all that memory gives."""
    cached = Signature("Mul", "AI_VECTOR_CORE", "dynamic", "4,1024,12288;1", "FLOAT16;FLOAT16", "ND;ND",
                       "4,1024,12288", "FLOAT16")  # fmt: skip
    large = Signature("Mul", "AI_VECTOR_CORE", "dynamic", "37748736;1", "FLOAT;FLOAT", "ND;ND", "37748736", "FLOAT")
    found = slow_case([cached, large], [10, 10], [500.0, 10 * us], 6e11)
    assert (found is not None) is slow


def convolution(images: int, channels: int, side: int, kernel: int) -> Signature:
    data, weights = f"{images},{channels},{side},{side}", f"{channels},{channels},{kernel},{kernel}"
    return Signature(
        "Conv2D", "AI_CORE", "dynamic", f"{data};{weights}", "FLOAT16;FLOAT16", "NCHW;NCHW", data, "FLOAT16"
    )


@given(
    st.lists(st.builds(convolution, st.just(64), st.sampled_from([128, 256, 512]), st.sampled_from([14, 28]),
                       st.sampled_from([1, 3])), min_size=3, max_size=6, unique=True),
    st.integers(0, 5), st.floats(2.5, 20), st.floats(1e-4, 1e-2),
)  # fmt: skip
def test_a_convolution_is_slow_with_a_shape_by_what_it_computes(
    shapes: list[Signature], place: int, times: float, pace: float
) -> None:
    """Time in proportion to the work tells of no shape, however different these are; a shape that takes longer is named
    with what that costs wherever another of its size tells."""
    lasts = [work(shape) * pace for shape in shapes]
    assert slow_case(shapes, [1] * len(shapes), lasts) is None
    place %= len(shapes)
    normal, lasts[place] = lasts[place], lasts[place] * times
    found = slow_case(shapes, [1] * len(shapes), lasts)
    if found is not None:
        assert found.shape == shapes[place].input_shapes
        assert (found.ratio, found.excess_us) == (pytest.approx(times), pytest.approx(lasts[place] - normal))
    else:
        alone = [other for other in shapes if other is not shapes[place]]
        sizes = [work(other) / work(shapes[place]) for other in alone]
        assert normal * times < LAUNCH_US or not any(
            1 / SIZE_CLASS <= size <= SIZE_CLASS and work(other) * pace >= LAUNCH_US
            for size, other in zip(sizes, alone, strict=True)
        )


def test_half_precision_calls_show_what_float32_costs() -> None:
    """Four times as long for the same FLOP is ratio 4, whatever the bytes; a call of another size is no measure."""
    full, half = (cube("4096,1024;1024,1024", "4096,1024", kind) for kind in ("FLOAT", "DT_BF16"))
    tiny = cube("256,256;256,256", "256,256", "DT_BF16")
    assert float32_ratio([full, half], [10, 10], [4000.0, 1000.0]) == pytest.approx((4000.0, 1000.0))
    assert float32_ratio([full, half], [10, 10], [800.0, 1000.0]) == pytest.approx((800.0, 800.0))
    assert float32_ratio([full, tiny], [10, 10], [4000.0, 1000.0]) is None
    assert float32_ratio([half, tiny], [10, 10], [4000.0, 1000.0]) is None


def test_rows_off_the_bursts_of_memory_are_told_with_how_busy_the_cube_is() -> None:
    """1023 half-precision numbers start inside a burst of 32 bytes; calls that memory limits are no evidence."""
    odd, even = cube("4096,1023;1023,4096", "4096,4096"), cube("4096,1024;1024,4096", "4096,4096")
    thin = cube("4096,9;9,4096", "4096,4096")
    assert unaligned_rows(odd) == {1023: 1024} and unaligned_rows(even) == {}
    assert unaligned_rows(cube("64,24;24,64", "64,64", "FLOAT")) == {}
    found = unaligned([odd, even, thin], [10, 10, 10], [3000.0, 1000.0, 9000.0], [0.2, 0.8, 0.1])
    assert found is not None and (found.us, found.mac_ratio, found.aligned_ratio) == (3000.0, 0.2, 0.8)
    assert unaligned([odd], [10], [3000.0], [float("nan")]) is None, "nothing to compare with"
    by_speed = unaligned([odd, even, thin], [10, 10, 10], [3000.0, 1000.0, 9000.0], [float("nan")] * 3)
    assert by_speed is not None and by_speed.mac_ratio is None and by_speed.us == 3000.0
    assert by_speed.speed_ratio == pytest.approx(1 / 3, rel=0.01)
    assert unaligned([even, thin], [10, 10], [1000.0, 9000.0], [0.8, 0.1]) is None


def test_all_that_multiply_with_a_vocabulary_that_is_off_are_unaligned() -> None:
    """The logits are written in rows of 50257 and read again, transposed where the weights' gradient is computed: all
    three products are compared with aligned ones of their size, whatever small ones reach."""
    vocabulary = [cube("2048,2048;50257,2048", "2048,50257"), cube("2048,50257;50257,2048", "2048,2048"),
                  cube("50257,2048;2048,2048", "50257,2048")]  # fmt: skip
    even = [cube("2048,2048;11008,2048", "2048,11008"), cube("2048,2048;32000,2048", "2048,32000")]
    small = cube("512,512;512,512", "512,512")
    found = unaligned([*vocabulary, *even, small], [6] * 6, [28_000.0] * 3 + [2800.0, 8000.0, 5600.0],
                      [0.39] * 3 + [0.84, 0.86, 0.3])  # fmt: skip
    assert found is not None and found.us == pytest.approx(84_000)
    assert found.mac_ratio == pytest.approx(0.39) and found.aligned_ratio == pytest.approx(0.86)
    assert found.align == "50257 → 50272"


def test_an_odd_number_of_tokens_makes_no_row_of_them() -> None:
    """Only a result tells how it lies: the tokens that a gradient sums over lie one after the other, row by row."""
    forward, gradient = cube("2047,4096;4096,4096", "2047,4096"), cube("4096,2047;2047,4096", "4096,4096")
    found = unaligned([forward, gradient], [10, 10], [3000.0, 3000.0], [0.8, 0.7])
    assert found is not None and (found.us, found.aligned_ratio) == (3000.0, 0.8)


def test_short_calls_say_nothing_about_their_shape() -> None:
    """A kernel of 5 us mostly starts and stops."""
    a, b = cube("16,16;16,16", "16,16"), cube("16,32;32,16", "16,16")
    assert slow_case([a, b], [10, 10], [50.0, 150.0]) is None


def test_words_of_operators() -> None:
    """Types, cores and names are understood in all their spellings."""
    assert is_cube(Signature("BatchMatMulV2", "AI_CORE", *[""] * 6))
    assert not is_cube(Signature("MatMulV2", "AI_CPU", *[""] * 6))
    assert is_update("ApplyMomentum") and is_update("ForeachAddList") and not is_update("Add")
    assert not is_update("ApplyRotaryPosEmb") and is_update("ApplyAdamWV2")
    assert is_aicpu(Signature("Cast", "AI_CPU", *[""] * 6))
    assert not is_aicpu(Signature("GetNext", "AI_CPU", *[""] * 6))
    assert inserted_by_framework("trans_TransData_12") and not inserted_by_framework("aclnnInplaceCopy_Cast")
    assert shapes("2,3;;4") == ((2, 3), (), (4,)) and shapes("a,b") is None


def test_types_that_explain_a_difference_come_first() -> None:
    """A slow rank against a usual one: which types account for it (S37)."""
    rows = explain_difference({"MatMul": 130.0, "Add": 10.0, "Cast": 5.0}, {"MatMul": 100.0, "Add": 11.0})
    assert rows == [("MatMul", 30.0), ("Cast", 5.0), ("Add", -1.0)]


def profile(tmp_path: Path, **changes: object) -> Path:
    load = replace(Workload(ranks=1, steps=4, kernels=260, collective_every=65), **changes)
    return write(load, tmp_path / "profile")


def measured(path: Path):  # type: ignore[no-untyped-def]
    return measure([path], None, Options(jobs=1))


def test_conversions_are_found_with_what_feeds_them(tmp_path: Path) -> None:
    """TransData behind every layer: its time alone, its share of the step, its neighbours, and who inserted it."""
    found = measured(profile(tmp_path, layer=(*LAYER, *CONVERSIONS))).facts
    subject = Subject("operator_type", "TransData")
    assert found.value("operator_type.category", subject) == "conversion"
    assert found.value("operator_type.step_share", subject) > 0.05
    assert str(found.value("operator_type.fed_by", subject)).startswith("Add (")
    assert str(found.value("operator_type.feeds", subject)).startswith("Cast (")
    total = found.value("operators.conversion_us", RUN)
    parts = [found.value("operator_type.exposed_us", Subject("operator_type", t)) for t in ("TransData", "Cast")]
    assert total == pytest.approx(sum(parts))


def test_ai_cpu_operators_are_found_with_their_dtypes(tmp_path: Path) -> None:
    """An Index of int64 runs on the AI CPU: what it costs and what to use instead."""
    found = measured(profile(tmp_path, layer=(*LAYER, *AICPU))).facts
    subject = Subject("operator_type", "Index")
    assert found.value("operator_type.category", subject) == "aicpu"
    assert found.value("operator_type.aicpu_replacement", subject) == "INT64 → INT32"
    assert found.value("operators.aicpu_share", RUN) > 0.1
    types = {s.id: f.value for s, f in found.of("operator.type").items()}
    kinds = {s.id: f.value for s, f in found.of("operator.category").items()}
    assert kinds and all((kinds[o] == "aicpu") == (types[o] == "Index") for o in kinds)


def test_an_operator_on_the_ai_cpu_of_one_rank_is_priced_there(tmp_path: Path) -> None:
    """The others wait for that rank: a mean over all of them would promise half of what the step loses."""
    everywhere = profile(tmp_path / "all", ranks=2, layer=(*LAYER, *AICPU))
    both = measured(everywhere).facts
    plain = profile(tmp_path / "none", ranks=2, layer=LAYER)
    first = min(each.name for each in everywhere.iterdir())
    shutil.rmtree(everywhere / first)
    shutil.copytree(plain / min(each.name for each in plain.iterdir()), everywhere / first)
    one = measured(everywhere).facts
    alone, shared = Subject("operator_type", "Index", (1,)), Subject("operator_type", "Index")
    for name in ("operator_type.aicpu_us", "operator_type.aicpu_alone_us"):
        assert one.value(name, alone) == pytest.approx(both.value(name, shared), rel=0.01)
    assert one.value("operator_type.aicpu_ranks", alone) == "1" and one.value("operators.aicpu_us", RUN) > 0
    assert both.value("operator_type.aicpu_ranks", shared) is None


def test_calls_that_read_the_same_are_one_case() -> None:
    """A mask of random bits is as long as its output: what it reads tells nothing of its work."""
    bits = [Signature("DSAGenBitMask", "DSA", "", "1;;1;2", "INT64;UINT64", "ND;ND", size, "") for size in ("1", "64")]
    assert slow_case(bits, [10, 10], [1000.0, 63000.0]) is None


def test_what_is_asked_of_the_same_inputs_makes_calls_differ() -> None:
    """A sum over the first axis is slow, one over the last is not: no shape and no data type, which both have in
    common, is blamed, however fast another data type is."""

    def squares(outputs: str, dtype: str) -> Signature:
        return Signature("SquareSum", "AI_VECTOR_CORE", "dynamic", "2024,3000", dtype, "ND", outputs, dtype)

    last, first, full = squares("2024,1", "FLOAT16"), squares("1,3000", "FLOAT16"), squares("2024,1", "FLOAT")
    found = slow_case([last, first, full], [10, 10, 10], [430.0, 77_000.0, 440.0])
    assert found is not None
    assert (found.shape, found.reference) == ("2024,3000 → 1,3000", "2024,3000 → 2024,1 FLOAT16")
    assert found.ratio == pytest.approx(179.0, rel=0.01)


def test_the_slow_rank_is_explained_by_its_types(tmp_path: Path) -> None:
    """Every type of a rank that computes 25 % slower takes 25 % longer there."""
    result = measured(profile(tmp_path, ranks=2, slow_rank=1))
    times = {rank: time_by_type(result.run, rank) for rank in (0, 1)}
    (worst, more), *_ = explain_difference(times[1], times[0])
    assert worst == "MatMulV3" and more == pytest.approx(0.25 * times[0]["MatMulV3"], rel=0.02)


def test_shares_of_types_add_up(tmp_path: Path) -> None:
    """The shares of kernel time of all types are one; the run's compute time is their sum."""
    found = measured(profile(tmp_path)).facts
    assert sum(f.value for f in found.of("operator_type.compute_share").values()) == pytest.approx(1.0)
    times = sum(f.value for f in found.of("operator_type.time_us").values())
    assert times == pytest.approx(found.value("operators.compute_us", RUN))


def test_sums_over_the_profile_are_divided_by_its_steps(tmp_path: Path) -> None:
    """op_statistic.csv knows no steps: four steps' sums are a quarter of it per step, like the kernels'."""
    path = profile(tmp_path)
    subject = Subject("operator_type", "MatMulV3")
    expected = measured(path).facts.value("operator_type.time_us", subject)
    for file in (*path.rglob("kernel_details.csv"), *path.rglob("trace_view.json")):
        file.unlink()
    assert measured(path).facts.value("operator_type.time_us", subject) == pytest.approx(expected, rel=0.01)


def test_a_statistic_of_fewer_calls_than_steps_tells_of_other_steps(tmp_path: Path) -> None:
    """What runs in a step is counted once a step at least: a table in which nothing is comes from another run, and no
    type of it takes a part of these steps."""
    path = profile(tmp_path)
    for file in (*path.rglob("kernel_details.csv"), *path.rglob("trace_view.json")):
        file.unlink()
    for file in path.rglob("op_statistic.csv"):
        head, *rows = csv.reader(file.read_text().splitlines())
        place = head.index("Count")
        few = [[*row[:place], "1", *row[place + 1 :]] for row in rows]
        file.write_text("\n".join(",".join(row) for row in [head, *few]) + "\n")
    found = measured(path)
    assert not found.facts.of("operator_type.time_us")
    assert any("other steps" in problem.problem for problem in found.problems)


def test_the_longest_call_of_a_type_can_be_found_in_a_viewer(tmp_path: Path) -> None:
    """Operator, step and start: what one types into the viewer's search and time fields."""
    long = replace(LAYER[0], name="Long", type="Long", us=4000.0)
    profile = write(Workload(ranks=1, steps=2, kernels=30, layer=(*LAYER, long)), tmp_path)
    found = measure([profile], ["operator_type.longest_call"], Options(jobs=1))
    text = found.facts.value("operator_type.longest_call", Subject("operator_type", "Long"))
    name, step, start = str(text).split(", ")
    table = next(profile.glob("*/ASCEND_PROFILER_OUTPUT/kernel_details.csv")).read_text().splitlines()
    row = next(line for line in table if start.removesuffix("\xa0µs") in line)
    assert f"{name}/Long" in row and row.startswith(step.removeprefix("step ") + ",")


def test_without_a_start_a_type_counts_by_its_share_of_all_device_time(tmp_path: Path) -> None:
    """A sixth of the computation is little where nearly all of the device's time is communication."""
    rows = [
        "Name,Type,Accelerator Core,Start Time(us),Duration(us)",
        *(f"a{i},MatMul,AI_CORE,-5,40" for i in range(10)), "b,TransData,AI_VECTOR_CORE,-5,80",
        "hcom_allReduce_,hcom_allReduce_,HCCL,-5,9520",
    ]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    conversion = Subject("operator_type", "TransData")
    assert facts.value("operator_type.compute_share", conversion) == pytest.approx(80 / 480)
    assert facts.value("operator_type.stake_share", conversion) == pytest.approx(0.008)
    found = [
        f for f in advise([tmp_path], load_rules(), Options(jobs=1)).findings if f.verdict == "conversion-overhead"
    ]
    assert [f.severity.value for f in found] == ["low"]


def test_types_without_a_start_are_weighed_against_a_step_that_another_table_times(tmp_path: Path) -> None:
    """All of a millisecond's computation in float32 is nothing in a step of a tenth of a second."""
    rows = ["Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Data Types",
            *(f"a{i},MatMul,AI_CORE,-5,100,FLOAT;FLOAT" for i in range(10))]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    (tmp_path / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n7,1000,0,0,0,99000\n"
    )
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    assert [f.severity.value for f in report.findings if f.verdict == "float32-heavy"] == ["low"]


def test_older_tables_that_sum_up_tell_by_their_names_how_many_steps_they_hold(tmp_path: Path) -> None:
    """A full name runs once in a step: what most of them ran three times is the sum of three steps, and what ran in one
    of them counts a third."""
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(
        "kernel_type,total_time,execution_frequency,percent\nMatMul,7.0,7,70\nConv2D,3.0,3,30\n"
    )
    rows = ["Default/net/MatMul-op1,1.0,3", "Default/net/MatMul-op2,1.0,3", "Default/net/MatMul-op3,1.0,1"]
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "\n".join(["full_kernel_name,execution_time,execution_frequency", *rows, "Default/net/Conv2D-op4,1.0,3"]) + "\n"
    )
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    facts = {(fact.name, fact.subject.id): fact.value for fact in report.facts}
    assert facts["operator_type.time_us", "MatMul"] == pytest.approx(7000 / 3)
    assert facts["operator_type.count", "MatMul"] == pytest.approx(7 / 3)
    assert "hold 3 executions" in str(report.profile.recording_reason)


def test_older_tables_hold_one_step_and_name_inputs_and_the_ai_cpu(tmp_path: Path) -> None:
    """execution_time is a step's average whatever number of steps was recorded; framework_raw tells the data types, and
    the AI CPU's operators lie in a table of their own."""
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(
        "op_type,execution_time,execution_frequency,percent\nMatMul,9.0,24,75\nConv2D,3.0,6,25\n"
    )
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "full_op_name,execution_time\nDefault/net/MatMul-op1,9.0\nDefault/net/Conv2D-op2,3.0\n"
    )
    shape = ', ""shape"": ""64,64""'
    info = '"{""input_0"": {""data_type"": ""NUMBER_TYPE_%s""' + shape + '}}"'
    (tmp_path / "framework_raw_0.csv").write_text(
        "task_id,full_op_name,op_name,op_type,subgraph,op_info\n"
        f"1,Default/net/MatMul-op1,MatMul-op1,MatMul,Default,{info % 'FLOAT32'}\n"
        f"2,Default/net/Conv2D-op2,Conv2D-op2,Conv2D,Default,{(info % 'FLOAT16').replace(shape, '')}\n"
    )
    aicpu = [f"{n},{kind},3.0,0.1,2.9,{n * 100},{n * 100 + 3}" for n in range(4) for kind in ("GetNext", "Unique")]
    head = "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end"
    (tmp_path / "aicpu_intermediate_0.csv").write_text("\n".join([head, *aicpu]) + "\n")
    rows = [f"{n},{n * 10**6},{(n + 1) * 10**6},1000000,{n * 10**6},{n * 10**6 + 9},0,900000,100000" for n in range(5)]
    head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text("\n".join([head, *rows]) + "\n")
    measured = measure([tmp_path], None, Options(jobs=1))
    assert not [p for p in measured.problems if "incomplete" in p.problem]
    facts = measured.facts
    matmul_type, unique = Subject("operator_type", "MatMul"), Subject("operator_type", "Unique")
    assert facts.value("operator_type.time_us", matmul_type) == pytest.approx(9000)
    assert facts.value("operator_type.count", matmul_type) == 24
    assert facts.value("operator_type.float32_share", matmul_type) == 1.0
    assert facts.value("operator_type.float32_call", matmul_type) == "Default/net/MatMul-op1, 64,64"
    assert facts.value("operator_type.float32_share", Subject("operator_type", "Conv2D")) == 0.0
    assert facts.value("operator_type.aicpu_us", unique) == pytest.approx(3000)
    assert facts.value("operator_type.aicpu_us", Subject("operator_type", "GetNext")) is None


def test_sums_of_several_executions_hold_the_ai_cpu_and_a_fused_update(tmp_path: Path) -> None:
    """Older tables that add up the steps say how many: the AI CPU's calls are of as many, and an optimizer of one
    kernel for each tensor is no optimizer of separate operations."""
    names = ["MatMul-op1", "MatMul-op2", "ApplyAdamW-op3", "ApplyAdamW-op4"]
    rows = [f"Default/net/{name},{4.0 if 'MatMul' in name else 1.0},5" for name in names]
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "\n".join(["full_kernel_name,execution_time,execution_frequency", *rows]) + "\n"
    )
    aicpu = [f"{n},Unique,1.5,0.1,1.4,{n * 100},{n * 100 + 3}" for n in range(5)]
    head = "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end"
    (tmp_path / "aicpu_intermediate_0.csv").write_text("\n".join([head, *aicpu]) + "\n")
    ends = [(n * 12 * 10**5, (n + 1) * 12 * 10**5) for n in range(5)]
    steps = [f"{n},{a},{b},{b - a},{a},{a + 9},0,995000,205000" for n, (a, b) in enumerate(ends)]
    head = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text("\n".join([head, *steps]) + "\n")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    facts = {(fact.name, fact.subject.id): fact.value for fact in report.facts}
    assert facts["operator_type.aicpu_us", "Unique"] == pytest.approx(1500)
    assert facts["operators.compute_us", "run"] == pytest.approx(11_500)
    assert facts["operators.update_fused", "run"] is True
    assert facts["operators.update_us", "run"] == pytest.approx(2000)
    assert facts["operators.update_count", "run"] == pytest.approx(2)
    (told,) = [each for each in report.findings if each.verdict == "update-tail-slow"]
    assert told.rule == "COMP072" and told.saving is None


def test_a_type_whose_core_is_lost_is_no_vector_operator(tmp_path: Path) -> None:
    """What kind of work it is, is unknown where the table tells the cores of others; a name tells a matrix product."""
    rows = [
        "Name,Type,Accelerator Core,Start Time(us),Duration(us)",
        *(f"net/MatMulV2-op{i},,AI_CORE,{100 * i},40" for i in range(10)),
        "a,Foo,,2000,80", "b,Bar,AI_VECTOR_CORE,2100,80",
    ]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    categories = measure([tmp_path], None, Options(jobs=1)).facts.of("operator_type.category")
    assert {s.id: f.value for s, f in categories.items()} == {"MatMulV2": "cube", "Bar": "vector"}


def test_a_launch_of_several_operators_is_of_no_kind(tmp_path: Path) -> None:
    """A super kernel holds products and vector work: its counters are those of the longest, and it is no vector
    operator of which a network has too much."""
    head = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),aicore_time(us),aic_mac_ratio,aiv_vec_ratio"
    rows = [f"sk_0_start_{n},SuperKernel,MIX_AIC,{1000 * n},600,590,0.007,0.49" for n in range(1, 30)]
    rows += [f"quant_{n},DynamicQuant,AI_VECTOR_CORE,{1000 * n + 650},300,0,0.0,0.5" for n in range(1, 30)]
    (tmp_path / "op_summary_1.csv").write_text("\n".join([head, *rows]) + "\n")
    categories = measure([tmp_path], None, Options(jobs=1)).facts.of("operator_type.category")
    assert {s.id: f.value for s, f in categories.items()} == {"DynamicQuant": "vector"}


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ({"BatchMatMul": 40, "SoftmaxV2": 20, "DropOutDoMask": 20, "Transpose": 60}, "SoftmaxV2, DropOutDoMask"),
        ({"BatchMatMul": 40, "SoftmaxV2": 20, "MaskedFill": 20, "SwiGlu": 9}, "SoftmaxV2, MaskedFill"),
        ({"BatchMatMul": 40, "SoftmaxV2": 20, "FlashAttentionScore": 2}, None),
        ({"MatMul": 40, "SoftmaxV2": 20}, None),
        ({"BatchMatMul": 20, "SoftmaxV2": 20}, None),
        ({"BatchMatMul": 40, "SoftmaxCrossEntropyWithLogits": 20}, None),
    ],
)
def test_an_attention_that_is_not_fused_shows_in_the_statistic_of_types(
    tmp_path: Path, types: dict[str, int], told: str | None
) -> None:
    """Two products for each softmax, and no fused attention; a classifier's softmax or a loss is none."""
    rows = [
        f"{name},AI_CORE,{count},{(100 - place) * count},1,2,3,0" for place, (name, count) in enumerate(types.items())
    ]
    head = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    output = tmp_path / "node0_1_20240101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "op_statistic.csv").write_text("\n".join([head, *rows]) + "\n")
    facts = measured(tmp_path).facts
    assert facts.value("operators.attention_types", RUN) == told
    assert (facts.number("operators.attention_us", RUN) is not None) == (told is not None)


def test_dropout_behind_every_projection_is_no_part_of_the_attention(tmp_path: Path) -> None:
    """Twenty softmaxes and their gradients have forty masks beside them: of hundred and twenty, the other eighty stand
    elsewhere, and none of the forty takes longer than the longest."""
    rows = [
        f"{name},AI_CORE,{count},{total},1.0,{total / count},{longest},0"
        for name, count, total, longest in (
            ("BatchMatMul", 80, 8000, 150), ("SoftmaxV2", 20, 2000, 110), ("SoftmaxGrad", 20, 2200, 120),
            ("DropOutDoMask", 120, 1200, 16),
        )
    ]  # fmt: skip
    head = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    output = tmp_path / "node0_1_20240101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "op_statistic.csv").write_text("\n".join([head, *rows]) + "\n")
    assert measured(tmp_path).facts.value("operators.attention_us", RUN) == pytest.approx(2000 + 2200 + 40 * 16)


ATTENTION = ("MatMulV2", "Transpose", "BatchMatMulV2", "Muls", "Add", "SoftmaxV2", "Cast", "BatchMatMulV2", "Muls")


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (ATTENTION, "SoftmaxV2, Add, Muls, Cast"),
        (("BatchMatMulV2", "DropOutDoMask", "SoftmaxGrad", "Muls", "BatchMatMulV2", *ATTENTION[2:-1]),
         "SoftmaxV2, SoftmaxGrad, DropOutDoMask, Add, Muls, Cast"),
        ((*ATTENTION, "FlashAttentionScore"), None),
        (("BatchMatMulV2", "Muls", "MatMulV2", "SoftmaxV2", "BatchMatMulV2"), None),
    ],
)  # fmt: skip
def test_all_that_runs_between_the_products_of_an_attention_belongs_to_it(
    tmp_path: Path, layer: tuple[str, ...], told: str | None
) -> None:
    """Scaling, mask, conversion and dropout are written out with the softmax; the same types elsewhere are not."""
    lasts = {"SoftmaxV2": 60, "SoftmaxGrad": 55, "DropOutDoMask": 53, "Add": 50, "Muls": 20, "Cast": 10}
    rows, at = ["Name,Type,Accelerator Core,Start Time(us),Duration(us)"], 0
    for number in range(10):
        for place, kind in enumerate(layer):
            core = "AI_CORE" if "MatMul" in kind else "AI_VECTOR_CORE"
            rows.append(f"l{number}/{kind}-op{place},{kind},{core},{at},{lasts.get(kind, 40)}")
            at += 70
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    if told is not None:
        assert facts.value("operators.attention_types", RUN) == told
        between = sum(10 * lasts[kind] for kind in layer[layer.index("BatchMatMulV2") : -1] if kind in lasts)
        assert facts.number("operators.attention_us", RUN) == between
    else:
        parts = facts.of("operator_type.attention_share")
        assert not any(fact.value for fact in parts.values())


@pytest.mark.parametrize("core", ["COMMUNICATION", "HCCL", "AI_CPU", "AI_CORE", "N/A"])
def test_a_collective_is_no_operator_that_computes(tmp_path: Path, core: str) -> None:
    """Whatever carries it out: nothing is said of its time as an operator's or a type's, and no rule of computation
    ever names it."""
    write_profile(simulate(replace(SMALL, data=2, steps=3)), tmp_path)
    for path in tmp_path.rglob("kernel_details.csv"):
        path.write_text(path.read_text().replace(",COMMUNICATION,", f",{core},"))
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    named = {fact.subject.id for fact in report.facts if fact.subject.kind in ("operator", "operator_type")}
    assert any("MatMul" in name for name in named)
    assert not [name for name in named if "hcom" in name.lower()]
    assert not [f for f in report.findings if f.direction == "computation" and "hcom" in f.subject.id]


def counted(folder: Path, types: dict[str, int]) -> FactSet:
    """Facts of a statistic that alone tells how often each of these vector types ran, 2 µs a call."""
    rows = [f"{name},AI_VECTOR_CORE,{count},{2 * count},2,2,2,0" for name, count in types.items()]
    head = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    output = folder / "node0_1_20240101000000000_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "op_statistic.csv").write_text("\n".join([head, *rows]) + "\n")
    return measured(folder).facts


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ({"MatMulV2": 112, "Split": 28, "Swish": 28, "Mul": 84}, "Split → Swish → Mul"),
        ({"MatMulV2": 112, "StridedSliceD": 60, "Silu": 28, "Mul": 28}, "StridedSliceD → Silu → Mul"),
        ({"MatMulV2": 112, "Split": 28, "Swish": 28, "Mul": 84, "SwiGlu": 28}, None),
        ({"MatMulV2": 112, "Swish": 28, "Mul": 84}, None),
        ({"MatMulV2": 112, "Split": 28, "Swish": 28, "Mul": 20}, None),
        ({"MatMulV2": 112, "Split": 28, "Swish": 28, "Muls": 84}, None),
        ({"MatMulV2": 112, "Split": 28, "Gelu": 28, "Mul": 84}, "Split → Gelu → Mul"),
        ({"MatMulV2": 112, "Split": 28, "SwishGrad": 28, "Mul": 84}, None),
    ],
)
def test_a_gated_activation_that_is_not_fused_shows_in_the_statistic_of_types(
    tmp_path: Path, types: dict[str, int], told: str | None
) -> None:
    """As often as tensors are activated they are cut and multiplied: only so many calls of each count as chains."""
    facts = counted(tmp_path, types)
    assert facts.value("operators.gate_types", RUN) == told
    assert facts.number("operators.gate_us", RUN) == (None if told is None else pytest.approx(3 * 28 * 2.0))
    assert facts.number("operators.gate_count", RUN) == (None if told is None else 28)


@pytest.mark.parametrize(
    ("types", "calls"),
    [
        ({"Pow": 51, "ReduceMean": 51, "Adds": 51, "Rsqrt": 51, "Mul": 102, "Cast": 105}, 8),  # all that belongs to it
        ({"Pow": 51, "ReduceMean": 51, "Rsqrt": 51, "Mul": 60, "Cast": 20}, 4),  # no second product, no conversions
        ({"Square": 51, "ReduceMeanD": 51, "Rsqrt": 51, "Mul": 40}, None),  # not multiplied as often
        ({"Square": 51, "ReduceSum": 51, "Sqrt": 51, "Mul": 60}, None),  # a norm of gradients
        ({"RmsNorm": 51, "Mul": 60, "Cast": 100}, None),  # fused
    ],
)
def test_a_normalisation_that_is_not_fused_shows_in_the_statistic_of_types(
    tmp_path: Path, types: dict[str, int], calls: int | None
) -> None:
    """As often as reciprocal roots are taken something is squared, averaged and multiplied: so many calls count."""
    facts = counted(tmp_path, types)
    assert facts.number("operators.norm_us", RUN) == (None if calls is None else pytest.approx(calls * 51 * 2.0))


@pytest.mark.parametrize(
    ("layer", "count", "activation"),
    [
        (("Split", "Swish", "Mul"), 12, "silu"),
        (("Split", "Gelu", "Cast", "Mul"), 12, "gelu"),  # a conversion between them changes nothing
        (("Split", "Gelu", "MatMulV2", "Mul"), None, None),  # something else is multiplied
        (("Split", "Gelu", "Muls"), None, None),  # a number gates nothing
    ],
)
def test_the_order_of_kernels_tells_whether_an_activation_gates(
    tmp_path: Path, layer: tuple[str, ...], count: int | None, activation: str | None
) -> None:
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    kernels = [kind for _ in range(24) for kind in layer]
    rows = [f"{n * 2 // len(kernels)},{kind}{n},{kind},AI_VECTOR_CORE,{1_000_000 + 12 * n}.0,10"
            for n, kind in enumerate(kernels)]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    facts = FactSet(report.facts)
    fused = {"silu": "fuse-gated-activation", "gelu": "fuse-gelu-gate"}
    advice = [remedy.id for f in report.findings if f.rule == "COMP062" for remedy in f.remedies]
    assert advice == ([fused[activation]] if activation else [])
    assert facts.number("operators.gate_count", RUN) == count
    assert facts.value("operators.gate_activation", RUN) == activation
    assert facts.value("operators.gate_ordered", RUN) == (None if count is None else True)


def launches(folder: Path, kind: str, core: str, us: float, cells: str, counters: str = "") -> None:
    """Ten launches of one kernel, five a step and 10 us apart, with these cells of shapes and types."""
    heading = ("Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,"
               f"Output Shapes,Output Data Types{counters}")  # fmt: skip
    starts = [1_000_000 + (us + 10) * n for n in range(10)]
    rows = [f"{n // 5},k{n},{kind},{core},{start:.3f},{us},{cells}" for n, start in enumerate(starts)]
    (folder / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("inputs", "output", "share"), [("1,4096;4096,4096", "1,4096", 1.0), ("4096,4096;4096,4096", "4096,4096", None)]
)
def test_shapes_tell_what_memory_limits(tmp_path: Path, inputs: str, output: str, share: float | None) -> None:
    """One row by a matrix reads each weight for one product: no busier cube unit makes that faster."""
    launches(tmp_path, "MatMulV2", "AI_CORE", 40, f'"{inputs}",FLOAT16;FLOAT16,"{output}",FLOAT16')
    facts = measure([tmp_path], ["operator_type.memory_bound_share"], Options(jobs=1)).facts
    assert facts.value("operator_type.memory_bound_share", Subject("operator_type", "MatMulV2")) == share


def test_bytes_and_time_tell_how_fast_memory_answers(tmp_path: Path) -> None:
    """Two tensors of 32 MB in 4 ms are 17 GB/s, a hundredth of what the memory of any card carries."""
    launches(tmp_path, "Transpose", "AI_VECTOR_CORE", 4000, '"4096,4096",FLOAT16,"4096,4096",FLOAT16')
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    subject = Subject("operator_type", "Transpose")
    assert facts.number("operator_type.bytes_per_s", subject) == pytest.approx(2 * 2 * 4096**2 / 4e-3)
    assert 0.005 < (facts.number("operator_type.memory_speed_share", subject) or 0.0) < 0.05


def test_shapes_that_hold_more_than_was_read_damage_no_file(tmp_path: Path) -> None:
    """The room for all tokens of an expert is 150 MB, of which an operator reads the rows that its group list names, in
    9 us: no memory carries 17 TB/s, so the shapes tell no rate, and the file is as sound as before."""
    launches(tmp_path, "DequantSwigluQuant", "AI_VECTOR_CORE", 9, '"9216,4096;1,4096",INT32;FLOAT,"9216,2048",INT8')
    measured = measure([tmp_path], None, Options(jobs=1))
    assert measured.facts.value("operator_type.bytes_per_s", Subject("operator_type", "DequantSwigluQuant")) is None
    assert not [problem for problem in measured.problems if "bytes" in str(problem)]


def test_kernels_of_one_name_side_by_side_are_no_more_than_the_step(tmp_path: Path) -> None:
    """One launch that a runtime carries out on three streams at once stands in three rows, whose sum exceeds the time
    that passes. That is no contradiction."""
    rows = ["Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID"]
    for call in range(20):
        for stream, (later, us) in enumerate(((0, 60), (1, 105), (14, 85))):
            rows.append(f"add_kernel,N/A,N/A,{1_000_000 + 110 * call + later},{us},{40 + stream}")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    measured = measure([tmp_path], None, Options(jobs=1))
    assert measured.facts.number("operator.step_share", Subject("operator", "add_kernel")) == 1
    assert not [problem for problem in measured.problems if "cannot be above" in str(problem)]


def test_shapes_and_units_of_a_type_are_those_of_one_rank(tmp_path: Path) -> None:
    """One rank generates, row by row, the other trains: the cube that idles in the one has none of the other's work."""
    heading = ("Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,"
               "Output Shapes,Output Data Types,aic_mac_ratio,aic_mte2_ratio")  # fmt: skip
    few, many = '"1,4096;4096,4096",FLOAT16;FLOAT16,"1,4096",FLOAT16,0.02,0.9', (
        '"4096,4096;4096,4096",FLOAT16;FLOAT16,"4096,4096",FLOAT16,0.8,0.4'
    )  # fmt: skip
    for rank, (cells, us) in enumerate(((few, 60), (many, 50))):
        folder = tmp_path / f"rank_{rank}" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        rows = [f"{n // 5},mm{n},MatMulV2,AI_CORE,{1_000_000 + 100 * n}.000,{us},{cells}" for n in range(10)]
        (folder / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    subject = Subject("operator_type", "MatMulV2")
    assert facts.value("operator_type.mac_ratio", subject) == pytest.approx(0.02)
    assert facts.value("operator_type.memory_bound_share", subject) == 1.0


@pytest.mark.parametrize(("us", "idle"), [(40, 0.0), (100, 0.55)])
def test_what_comes_at_the_speed_of_memory_is_no_idle_unit(tmp_path: Path, us: int, idle: float) -> None:
    """34 MB in 40 us are 840 GB/s, which nobody reads much faster; in 100 us the counter of the unit decides."""
    cells = '"1,4096;4096,4096",FLOAT16;FLOAT16,"1,4096",FLOAT16,0.17,0.45'
    launches(tmp_path, "MatMulV2", "AI_CORE", us, cells, ",aic_mac_ratio,aic_mte2_ratio")
    facts = measure([tmp_path], ["operator_type.memory_idle_share"], Options(jobs=1)).facts
    found = facts.number("operator_type.memory_idle_share", Subject("operator_type", "MatMulV2"))
    assert found == pytest.approx(idle)


@pytest.mark.parametrize("typed", [True, False])
def test_kernels_of_unknown_types_have_no_slow_shape(tmp_path: Path, typed: bool) -> None:
    """A long product beside short sums, of which the table lost names and types, is no operator with a slow shape."""
    rows = ["Step Id,Type,Accelerator Core,Duration(us),Input Shapes,Input Data Types,Output Shapes,Output Data Types"]
    for number in range(40):
        shape, us = ('"4096,4096"', 900) if number % 2 else ('"4096,2048"', 50)
        kind = "Add,AI_VECTOR_CORE" if typed else ","
        rows.append(f"{number // 10},{kind},{us},{shape},FLOAT16,{shape},FLOAT16")
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], ["operator_type.slow_ratio"], Options(jobs=1)).facts
    assert bool(facts.of("operator_type.slow_ratio")) == typed


def test_the_longest_call_told_is_one_of_the_steps_that_count() -> None:
    """A first step that is excluded gives no example."""
    early, late = LongCall(620, "a", "1"), LongCall(519, "b", "3")
    assert longest_of([early, late], {"2", "3"}) == late
    assert longest_of([early], {"2", "3"}) is None


def test_the_longest_call_on_the_ai_cpu_is_none_on_the_vector_core(tmp_path: Path) -> None:
    """An operator's slow call on the vector core is no evidence against the AI CPU."""
    slow, small = (replace(LAYER[0], name=f"Cast{core}", type="Cast", core=core, us=us) for core, us in _TWO_CORES)
    found = measured(write(Workload(ranks=1, steps=2, kernels=30, layer=(*LAYER, slow, small)), tmp_path))
    cast = Subject("operator_type", "Cast")
    assert "CastAI_VECTOR_CORE" in str(found.facts.value("operator_type.longest_call", cast))
    assert "CastAI_CPU" in str(found.facts.value("operator_type.aicpu_longest_call", cast))


_TWO_CORES = (("AI_VECTOR_CORE", 4000.0), ("AI_CPU", 900.0))


def _step_table(folder: Path, length: int) -> Path:
    """Three steps of PyTorch, of which five sixths compute."""
    output = folder / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = [f"{step},{5 * length / 6},0,0,0,{length / 6},{length},0" for step in (1, 2, 3)]
    heading = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
    (output / "step_trace_time.csv").write_text("\n".join([heading, *rows]) + "\n")
    return output


def test_a_statistic_of_more_than_the_steps_is_spread_over_what_they_compute(tmp_path: Path) -> None:
    """100 ms of kernels cannot run in three steps of 6 ms: they are twenty steps' of 5 ms, and that is told."""
    output = _step_table(tmp_path, 6000)
    (output / "op_statistic.csv").write_text(
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "MatMulV2,AI_CORE,300,70000,100,233.333,300,70\nCast,AI_VECTOR_CORE,600,30000,20,50,60,30\n"
    )
    measured = measure([tmp_path], [], Options(jobs=1))
    subject = Subject("operator_type", "Cast")
    assert measured.facts.number("operator_type.time_us", subject) == pytest.approx(1500)
    assert measured.facts.number("operator_type.count", subject) == pytest.approx(30)
    (problem,) = measured.problems
    assert (
        "covers about 20 such steps" in problem.problem and measured.facts.get("operator_type.time_us", subject).doubted
    )


@pytest.mark.parametrize(("last", "told"), [(40, "covers about 20 such steps"), (41, "left out")])
def test_a_statistic_of_whole_executions_is_not_damaged(tmp_path: Path, last: int, told: str) -> None:
    """Six types that all ran a multiple of twenty times were summed up over twenty steps: nothing of that is wrong.
    Where one did not, they are sums of other steps, and say nothing about these."""
    output = _step_table(tmp_path, 6000)
    rows = "".join(f"Type{n},AI_VECTOR_CORE,{20 * n},10000,1,{500 / n},1000,10\n" for n in range(1, 6))
    (output / "op_statistic.csv").write_text(
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        f"MatMulV2,AI_CORE,{last},50000,10,{50000 / last},3000,50\n{rows}"
    )
    measured = measure([tmp_path], [], Options(jobs=1))
    (problem,) = measured.problems
    assert told in problem.problem and not measured.facts.doubted
    assert (measured.facts.get("operator_type.time_us", Subject("operator_type", "Type1")) is None) is (last == 41)


@pytest.mark.parametrize(("first", "count"), [(150, 24.0), (149, 3600 / 71)])
def test_counts_tell_the_executions_of_a_graph_whose_iterations_were_cut(
    tmp_path: Path, first: int, count: float
) -> None:
    """Ten iterations of 10.7 ms are left; kernels of 745 ms are of seventy at least. Where one type ran 150 times and
    all others a multiple of that, they are of 150."""
    types = {"Add": first, "Sub": 150, "Mul": 300, "GatherV2": 300, "Rotary": 3600, "Norm": 7050, "Attention": 3600}
    output = tmp_path / "PROF_000001_20260101000000000_ABC" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    rows = [
        f"{name},AI_VECTOR_CORE,{n},{745_000 / 7},1,{745_000 / 7 / n},{745_000 / 7},14" for name, n in types.items()
    ]
    head = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    (output / "op_statistic_20260101000000.csv").write_text("\n".join([head, *rows]) + "\n")
    rows = [f"0,{n},N/A,N/A,{1_700_000_000_000_000 + 10_700 * n}.0,10700.0,N/A,N/A,N/A,1" for n in range(1, 11)]
    head = "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    head += "Iteration Refresh(us),Data Aug Bound(us),Model ID"
    (output / "step_trace_20260101000000.csv").write_text("\n".join([head, *rows]) + "\n")
    facts = measured(tmp_path).facts
    assert facts.value("operator_type.count", Subject("operator_type", "Attention")) == pytest.approx(count)


def test_kernels_of_several_streams_fill_more_than_their_steps(tmp_path: Path) -> None:
    """20 ms of kernels in three steps of 6 ms: some ran beside others, and the table is of these steps."""
    output = _step_table(tmp_path, 6000)
    (output / "op_statistic.csv").write_text(
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "MatMulV2,AI_CORE,300,14000,10,46.667,90,70\nCast,AI_VECTOR_CORE,600,6000,5,10,20,30\n"
    )
    measured = measure([tmp_path], [], Options(jobs=1))
    assert measured.facts.number("operator_type.time_us", Subject("operator_type", "Cast")) == pytest.approx(2000)
    assert not measured.problems


def test_nothing_is_a_share_of_a_step_that_its_kernels_contradict(tmp_path: Path) -> None:
    """Kernels that take 11 ms one after the other are no shares of steps of 6 ms; the contradiction is told once."""
    output = _step_table(tmp_path, 6000)
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    rows, at = [heading], 1e6
    for step in (1, 2, 3):
        for number in range(100):
            kind, core, us = ("MatMulV2", "AI_CORE", 180) if number % 2 else ("Cast", "AI_VECTOR_CORE", 40)
            rows.append(f"{step},aclnn{kind}_{number % 2},{kind},{core},{at},{us}")
            at += us
    (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    measured = measure([tmp_path], [], Options(jobs=1))
    facts = measured.facts
    assert not any(facts.has(name) for name in ("operator_type.step_share", "operator.step_share"))
    assert facts.has("operator_type.compute_share")
    assert len(measured.problems) == 1 and "contradicts kernel_details.csv" in measured.problems[0].problem


def test_products_of_another_data_type_are_slow_for_another_reason() -> None:
    """Half-precision products of an odd size and even ones in float32: the odd size costs its own excess, and what the
    data type costs is told as that."""
    even, odd = cube("2048,2048;2048,2048", "2048,2048"), cube("2047,2047;2047,2049", "2047,2049")
    full = cube("2048,2048;2048,2048", "2048,2048", dtype="FLOAT")
    alone = slow_case([even, odd], [10, 10], [1000.0, 9000.0])
    both = slow_case([even, odd, full], [10, 10, 10], [1000.0, 9000.0, 8000.0])
    assert alone is not None and both is not None
    assert both.excess_us == pytest.approx(alone.excess_us) and both.dtype == odd.input_dtypes


def test_products_too_small_for_a_fast_peer_are_slow_like_those_that_have_one() -> None:
    """All products of the layers are as slow as one another, only that of the vocabulary is fast: what the smaller ones
    cost counts as well. One that is no slower than small products are stays out."""
    fast, large, small = (cube(f"4096,2048;2048,{n}", f"4096,{n}") for n in (32000, 11264, 4096))
    least = cube("2048,2048;2048,4096", "2048,4096")
    pace = 2200.0 / work(fast)
    lasts = [2200.0, 3 * pace * work(large), 3 * pace * work(small), 1.8 * pace * work(least)]
    found = slow_case([fast, large, small, least], [1] * 4, lasts)
    assert found is not None and found.ratio == pytest.approx(3.0) and found.shape == large.input_shapes
    assert found.excess_us == pytest.approx((lasts[1] + lasts[2]) * 2 / 3)
    assert slow_case([fast, small, least], [1] * 3, [lasts[0], *lasts[2:]]) is None


def test_sums_of_a_fetch_are_no_share_of_the_step(tmp_path: Path) -> None:
    """The fetch before the first step, which is left out, waited until the pipeline had filled its buffers: summed up
    it may be more than all steps, and the file that says so is not damaged."""
    rows = [
        "Name,Type,Accelerator Core,Start Time(us),Duration(us)",
        *(f"a{i},MatMul,AI_CORE,-5,40" for i in range(10)), "b,TransData,AI_VECTOR_CORE,-5,80",
        "Default/GetNext-op1,GetNext,AI_CPU,-5,9000",
    ]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows))
    (tmp_path / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
        + "".join(f"{step},240,0,0,0,10,0,0\n" for step in (5, 6))
    )
    report = advise([tmp_path], load_rules(), Options(jobs=1))
    facts = FactSet(report.facts)
    assert facts.value("operator_type.stake_share", Subject("operator_type", "TransData")) is not None
    assert not [problem.problem for problem in report.problems if "stake_share" in problem.problem]
