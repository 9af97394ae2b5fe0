"""An update that nobody fused has no name: it is what recurs for each weight behind the backward pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model import RUN, Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

ADAM = ("Mul", "Mul", "Add", "Mul", "AddcMul", "Sqrt", "Div", "Sub")
NAMES = ["operators.update_chain", "operators.update_fused", "operators.update_compute_share", "operators.update_count"]
NAMES += ["operators.update_late_us"]


def _facts(folder: Path, backward: Sequence[str], behind: Sequence[str], apart: int = 0):  # type: ignore[no-untyped-def]
    """Four steps; the kernels behind the backward pass start `apart` microseconds after each other's end."""
    rows = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes"]
    for step in range(4):
        at = 1_000_000 + 100_000 * step
        for kind, core, length in [
            *(("MatMulV2", "AI_CORE", 500) for _ in range(4)),
            *((kind, "AI_VECTOR_CORE", 50) for kind in backward),
            *((kind, "AI_VECTOR_CORE", 30) for kind in behind),
        ]:
            rows.append(f'{step},{kind.lower()},{kind},{core},{at}.000,{length},0,"1024,1024"')
            at += length + (apart if length == 30 else 0)
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return measure([folder], NAMES, Options(jobs=1)).facts


def test_what_the_update_moves_is_counted_by_shapes(tmp_path: Path) -> None:
    """Of two Foreach kernels for each group one reads and writes it, the other reads thrice and writes once."""
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Output Shapes"
    rows, at = [heading], 1_000_000
    for step in range(3):
        for kind, reads in [("MatMulV2", 2), *[("ForeachMulScalar", 1), ("ForeachAddcmulScalar", 3)] * 12]:
            core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
            shapes = ";".join(["1000"] * reads)
            rows.append(f'{step},{kind.lower()},{kind},{core},{at}.000,100,0,"{shapes}","1000"')
            at += 100
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], [*NAMES, "operators.update_passes"], Options(jobs=1)).facts
    assert facts.number("operators.update_passes", RUN) == pytest.approx(2 + 4)


SGD = [("ForeachAddList", 2), ("ForeachMulScalar", 1), ("ForeachAddList", 2), ("ForeachAddList", 2)]
LISTS_OF_ADAM = [("ForeachLerpScalar", 2), ("ForeachMulScalar", 1), ("ForeachAddcmulScalar", 3), ("ForeachSqrt", 1),
                 ("ForeachDivScalar", 1), ("ForeachAddScalar", 1), ("ForeachAddcdivScalarList", 3)]  # fmt: skip


@pytest.mark.parametrize(
    ("operations", "times", "plain"),
    [(SGD, 3 * 3 + 2, True), (LISTS_OF_ADAM, 3 + 2 + 4 + 2 + 2 + 2 + 4, False)],
    ids=["momentum", "adam"],
)
def test_an_operation_that_a_step_does_several_times_writes_the_weights_as_often(
    tmp_path: Path, operations: list[tuple[str, int]], times: int, plain: bool
) -> None:
    """Decay, momentum and step of SGD add lists thrice, and nothing else than sums and products is needed: what is
    called fused runs the same. Adam takes a root, and one kernel does all of it."""
    heading = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Output Shapes"
    rows, at = [heading], 1_000_000
    for step in range(3):
        for kind, reads in [("MatMulV2", 2), *operations]:
            core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
            read = ";".join(["1000;200,20"] * reads)
            rows.append(f'{step},{kind.lower()},{kind},{core},{at}.000,100,0,"{read}","1000;200,20"')
            at += 100
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names = ["operators.update_passes", "operators.update_plain"]
    facts = measure([tmp_path], names, Options(jobs=1)).facts
    assert facts.number("operators.update_passes", RUN) == pytest.approx(times)
    assert facts.value("operators.update_plain", RUN) is plain


@pytest.mark.parametrize(("into", "out_of", "share"), [("FLOAT", "DT_BF16", 0.75), ("DT_BF16", "FLOAT", None)])
def test_weights_that_are_written_back_belong_to_the_update(
    tmp_path: Path, into: str, out_of: str, share: float | None
) -> None:
    """Behind a fused update three casts write the weights for the network; one in its middle is the network's own."""
    kinds = ["Input Data Types", "Output Data Types"]
    heading = ",".join(["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)", *kinds])
    rows, at = [heading], 1_000_000
    for step in range(3):
        for kind in ["MatMulV2", "Cast", "MatMulV2", "ApplyAdamWV2", *["Cast"] * 3]:
            core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
            rows.append(f"{step},{kind.lower()},{kind},{core},{at}.000,100,0,{into},{out_of}")
            at += 100
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], ["operator_type.written_back_share"], Options(jobs=1)).facts
    assert facts.value("operator_type.written_back_share", Subject("operator_type", "Cast")) == share


def test_the_same_kernels_for_each_weight_are_the_update(tmp_path: Path) -> None:
    """Ten weights with eight kernels each: an update of its own, which is not fused."""
    facts = _facts(tmp_path, ["RmsNormGrad"], ADAM * 10)
    assert facts.value("operators.update_chain", RUN) == len(ADAM)
    assert facts.value("operators.update_fused", RUN) is False
    assert facts.number("operators.update_count", RUN) == 80
    assert facts.number("operators.update_compute_share", RUN) == pytest.approx(2400 / (2000 + 50 + 2400))


@pytest.mark.parametrize("apart", [0, 25])
def test_what_the_update_waits_for_its_own_launches_is_told(tmp_path: Path, apart: int) -> None:
    """Eighty kernels of 30 us, each launched when the one before is long done: a fused update launches few."""
    facts = _facts(tmp_path, ["RmsNormGrad"], ADAM * 10, apart)
    assert facts.number("operators.update_late_us", RUN) == pytest.approx(79 * apart)


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(sorted(set(ADAM))), min_size=3, max_size=8, unique=True),
    st.integers(4, 40),
    st.lists(st.sampled_from(("ForeachNorm", "ForeachNonFiniteCheckAndUnscale")), max_size=2),
)
def test_looking_at_gradients_first_changes_nothing_about_the_update(
    tmp_path_factory: pytest.TempPathFactory, chain: list[str], weights: int, before: list[str]
) -> None:
    """The norm of the gradients bears the optimizer's name and is no update: whichever elementwise kernels come again
    for each weight behind it are."""
    facts = _facts(tmp_path_factory.mktemp("update"), ["RmsNormGrad"], (*before, *chain * weights))
    assert facts.value("operators.update_chain", RUN) == len(chain)
    assert facts.number("operators.update_count", RUN) == len(chain) * weights


def test_a_norm_of_gradients_alone_is_no_update(tmp_path: Path) -> None:
    """Nobody is told to fuse an optimizer of which nothing was seen."""
    assert _facts(tmp_path, ["RmsNormGrad"], ["ForeachNorm"] * 6).value("operators.update_fused", RUN) is None


def test_a_fused_update_needs_no_chain(tmp_path: Path) -> None:
    """What recurs behind a fused update is an average of weights, say: the update is what its name tells."""
    facts = _facts(tmp_path, ["RmsNormGrad"], ("ForeachNorm", *("ApplyAdamWV2",) * 6, *("Mul", "Add") * 20))
    assert facts.value("operators.update_fused", RUN) is True
    assert facts.value("operators.update_chain", RUN) is None


@pytest.mark.parametrize(
    ("backward", "behind"),
    [
        ([], ADAM * 10),  # nothing is trained
        (["RmsNormGrad"], ("Mul", "Add", "Sqrt", "Sub", "Div")),  # single operations, for no weight again and again
        (["RmsNormGrad"], ("Mul",) * 40),  # gradients are scaled, which is no update
        (["RmsNormGrad"], ("SoftmaxV2", "LayerNormV3", "TopKV2", *ADAM) * 5 + ("ReduceSum",) * 60),
        (["RmsNormGrad"], ("ApplyAdamWV2",) * 6),  # its name tells
    ],
)
def test_other_work_behind_the_backward_pass_is_no_unfused_update(
    tmp_path: Path, backward: Sequence[str], behind: Sequence[str]
) -> None:
    """A recurring sequence of several elementwise kernels in training it must be, and most of what is there."""
    assert _facts(tmp_path, backward, behind).value("operators.update_chain", RUN) is None


def _small(folder: Path, kernels: int, us: float, elements: int) -> Path:
    """Three steps of 2 ms of multiplications and these updates, one for each weight of so many elements."""
    rows = [
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types,"
        "Output Shapes,Output Data Types"
    ]
    for step in range(3):
        at = 1_000_000 + 10_000.0 * step
        work = [("MatMulV2", "AI_CORE", 500.0, 1024 * 1024)] * 4
        for kind, core, length, size in [*work, *[("ApplyAdamW", "AI_VECTOR_CORE", us, elements)] * kernels]:
            rows.append(
                f'{step},{kind.lower()},{kind},{core},{at:.3f},{length},0,"{size};{size}",BF16;BF16,"{size}",BF16'
            )
            at += length
    folder.mkdir(exist_ok=True)
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


SMALL = ["operators.update_small_count", "operators.update_small_us", "operators.update_moving_us"]


def test_updates_of_small_weights_take_their_time_whatever_their_size(tmp_path: Path) -> None:
    """A thousand elements in 12 µs move 6 kB: nearly all of that time one kernel for all weights would not need."""
    facts = measure([_small(tmp_path, 300, 12.0, 1024)], SMALL, Options(jobs=1)).facts
    assert facts.number("operators.update_small_count", RUN) == 300
    assert facts.number("operators.update_small_us", RUN) == pytest.approx(3600)
    assert facts.number("operators.update_moving_us", RUN) == pytest.approx(300 * 3 * 2 * 1024 / 1.6e6, rel=0.6)


def test_a_table_of_operators_tells_of_small_weights_as_kernels_do(tmp_path: Path) -> None:
    """Of 300 weights a quarter of a million elements each take 14 us, of which their bytes need a fourth; one weight of
    millions is limited by memory."""
    inputs = {"format": "DefaultFormat", "data_type": "NUMBER_TYPE_FLOAT32"}
    rows, shapes = [], []
    for number in range(301):
        size, us = (262_144, 14.0) if number else (20_000_000, 200.0)
        name = f"Default/optimizer-Momentum/ApplyMomentum-op{number}"
        told = {f"input_{place}": {**inputs, "shape": str(size)} for place in range(2)}
        text = json.dumps(told).replace('"', '""')
        shapes.append(f'{number},0,1,{name},ApplyMomentum-op{number},ApplyMomentum,Default,"{text}"')
        rows.append(f"{name},{us / 1000}")
    head = "task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info"
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text("\n".join(["full_op_name,execution_time", *rows]))
    (tmp_path / "framework_raw_0.csv").write_text("\n".join([head, *shapes]))
    facts = measure([tmp_path], SMALL, Options(jobs=1)).facts
    assert facts.number("operators.update_small_count", RUN) == 300
    assert facts.number("operators.update_small_us", RUN) == pytest.approx(300 * 14)
    assert facts.number("operators.update_moving_us", RUN) == pytest.approx(300 * 3.5, rel=0.01)


@pytest.mark.parametrize(("us", "elements"), [(12.0, 2_000_000), (300.0, 1024)])
def test_updates_that_memory_limits_or_that_last_long_are_not_small(tmp_path: Path, us: float, elements: int) -> None:
    """12 MB in 12 µs is what the memory carries; what lasts for 300 µs does more than start and stop."""
    facts = measure([_small(tmp_path, 300, us, elements)], SMALL, Options(jobs=1)).facts
    assert all(facts.number(name, RUN) is None for name in SMALL)


@pytest.mark.parametrize(("kernels", "told"), [(300, True), (20, False)])
def test_many_small_weights_are_a_cause_even_where_the_device_never_idles(
    tmp_path: Path, kernels: int, told: bool
) -> None:
    """Two thirds of a step without a gap go into three hundred starts; twenty of them are found in every network."""
    report = advise([_small(tmp_path, kernels, 12.0, 1024)], load_rules(), Options(jobs=1))
    found = [f for f in report.findings if f.rule == "COMP075"]
    assert bool(found) is told
    if told:
        (finding,) = found
        assert finding.saving is not None
        assert finding.saving.us == pytest.approx(3600, rel=0.02)
        assert report.summary.direction == "computation"


@pytest.mark.parametrize(("backward", "share"), [("MulGrad", 0.5), ("", None)])
def test_products_behind_the_update_are_the_optimizers(tmp_path: Path, backward: str, share: float | None) -> None:
    """Two of four float32 products stand behind both the backward pass and the update; the network's own stand before
    it. In a recording without a backward pass, what follows an update may be the next pass."""
    heading = (
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types"
    )
    rows, at = [heading], 1_000_000
    for step in range(3):
        for kind in ["MatMulV2", backward or "Mul", "MatMulV2", "ApplyAdamWV2", "MatMulV2", "MatMulV2"]:
            core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
            rows.append(f'{step},{kind.lower()},{kind},{core},{at}.000,100,0,"64,64;64,64",FLOAT;FLOAT')
            at += 110
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], ["operator_type.optimizer_share"], Options(jobs=1)).facts
    assert facts.number("operator_type.optimizer_share", Subject("operator_type", "MatMulV2")) == share
