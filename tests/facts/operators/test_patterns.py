"""Odd calls: one that is far above others of its kind, not a kind that has two ways of working."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from advisor.engine.judge import judge
from advisor.model import RUN, Subject
from advisor.pipeline import Options, measure
from advisor.ruleset.files.loader import load_rules

COLUMNS = (
    "Step ID", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Input Shapes",
    "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats",
)  # fmt: skip


def profile(folder: Path, calls: list[tuple[str, str, float, str]], steps: int = 4) -> Path:
    """A card's kernel table: name, type, microseconds and shape of each call of a step; a name with a number in front,
    as "2:Odd", comes in that step only."""
    out = folder / "host_1_20260601142437309_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    out.mkdir(parents=True)
    with (out / "kernel_details.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        now = 1_000_000.0
        for step in range(steps):
            for name, type_name, us, shape in calls:
                only, _, plain = name.rpartition(":")
                if only and int(only) != step:
                    continue
                kinds = "FLOAT16" if shape else "N/A"
                rows.writerow(
                    [step, plain, type_name, "AI_VECTOR_CORE", f"{now:.3f}", us, *(shape or "N/A", kinds, "ND") * 2]
                )
                now += us + 1
    return folder


def test_one_long_call_is_odd_and_a_second_way_of_working_is_none(tmp_path):
    """Attention takes thirty times as long where its mask is full, in every step; one Mul did so once."""
    usual = [("aclnnFlash", "FlashAttentionScore", 15.0, "64,64")] * 6 + [("aclnnMul", "Mul", 20.0, "64,64")] * 4
    extra = [("aclnnFlash", "FlashAttentionScore", 450.0, "64,64")] * 2 + [("2:aclnnMul", "Mul", 600.0, "64,64")]
    facts = measure([profile(tmp_path, usual + extra)], None).facts
    assert facts.value("operator.slowest_us", Subject("operator", "aclnnMul")) == 600.0
    assert facts.value("operator.slowest_us", Subject("operator", "aclnnFlash")) is None
    assert facts.value("operators.compute_us", RUN)


def test_without_shapes_only_calls_of_one_name_are_alike(tmp_path):
    """A level that records neither types nor shapes says of no two operators that they do the same."""
    calls = [("aclnnAdd", "N/A", 4.0, "")] * 20 + [("aclnnApplyAdamWV2", "N/A", 80.0, "")] * 2
    facts = measure([profile(tmp_path, calls)], None).facts
    assert facts.value("operator.slowest_us", Subject("operator", "aclnnApplyAdamWV2")) is None


@pytest.mark.parametrize(("given", "fusible"), [("512,64", True), ("64,512", True), ("1000,64", False), ("", True)])
def test_a_chain_hands_on_what_the_next_one_takes(tmp_path, given, fusible):
    """Kernels in a row are fused where one takes what the one before gives, in whatever view; equal kernels that each
    fill a table of their own have nothing to hand on."""
    folder = profile(tmp_path, [("aclnnAny", "ScatterLike", 10.0, "512,64")] * 8)
    table = next(folder.rglob("kernel_details.csv"))
    rows = list(csv.reader(table.read_text().splitlines()))
    for row in rows[1:]:
        row[9] = given or "N/A"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    count = measure([folder], ["operators.fusible_count"]).facts.value("operators.fusible_count", RUN)
    assert bool(count) == fusible


@pytest.mark.parametrize(("between", "fusible"), [("Cast", 24), ("TransData", 0), ("Transpose", 0)])
def test_no_chain_goes_through_a_change_of_layout(tmp_path, between, fusible):
    """Fused kernels keep each element in its place, in whatever data type; a conversion of the layout moves it, and
    what it costs is no chain's."""
    calls = [("aclnnMul", "Mul", 6.0, "64,64"), (f"aclnn{between}", between, 6.0, "64,64")] * 3
    measured = measure([profile(tmp_path, [*calls, ("aclnnMm", "SoftmaxV2", 90.0, "64,64")])], None)
    count = measured.facts.value("operators.fusible_count", RUN)
    assert (count or 0) * 4 == fusible


_SMALL = st.sampled_from([(kind, us) for kind in ("Mul", "Cast", "TransData") for us in (3.0, 9.0, 18.0)])
_LARGE = st.sampled_from([("Cast", 60.0), ("Softmax", 80.0)])


RULES = load_rules()


@settings(max_examples=10, deadline=None)
@drawn(st.lists(st.one_of(_SMALL, _SMALL, _SMALL, _LARGE), min_size=8, max_size=30), st.sampled_from((1, 20)))
def test_one_cost_has_one_root(tmp_path_factory, block, repeats):
    """Conversions within a sequence of small kernels go when it is fused: where that is told, conversions promise what
    stands outside of sequences alone."""
    calls = [(f"aclnn{kind}", kind, us, "64,64") for kind, us in block] * repeats
    measured = measure([profile(tmp_path_factory.mktemp("runs"), calls)], None)
    told = [f for f in judge(measured, RULES).findings if f.rule in ("COMP020", "COMP060")]
    fused = any(f.rule == "COMP060" for f in told)
    outside = 0.0
    for kind in ("Cast", "TransData"):
        part = measured.facts.number("operator_type.fusible_share", Subject("operator_type", kind)) or 0.0
        outside += sum(us for _, each, us, _ in calls if each == kind) * (1 - part * fused)
    assert sum(f.saving.us for f in told if f.rule == "COMP020") <= outside * 1.001
    assert sum(f.saving.us for f in told) <= sum(us + 1 for _, kind, us, _ in calls if kind != "Softmax")


@pytest.mark.parametrize(("steps", "odd"), [(1, 0), (4, 1)])
def test_calls_of_one_name_without_shapes_are_alike_only_from_step_to_step(tmp_path, steps, odd):
    """Level0 tells no shapes: within one step a product that lasts longer may be a larger one."""
    rows, now = ["Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)"], 1000
    for step in range(steps):
        for place in range(12):
            us = 2200 if place == 7 and step == 0 else 400
            rows.append(f"{step},aclnnMatmul_MatMulV3,MatMulV3,AI_CORE,{now},{us}")
            now += us
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    found = measure([tmp_path], None, Options(jobs=1)).facts.of("operator.slowest_ratio")
    assert len(found) == odd
