"""How many cores a card has where no file tells: as many as most types of operators have blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, advise, measure
from advisor.ruleset.files.loader import load_rules

HEAD = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Num"


def _idle(tmp_path: Path, blocks: dict[str, int]) -> dict[str, float | None]:
    rows, at = [HEAD], 0
    for step in range(3):
        for kind, count in blocks.items():
            rows.append(f"{step},{kind}_{step},{kind},AI_VECTOR_CORE,{1_000_000 + at},100,{count}")
            at += 110
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([tmp_path], None, Options(jobs=1)).facts
    return {kind: facts.number("operator_type.core_idle_share", Subject("operator_type", kind)) for kind in blocks}


def test_a_type_on_one_of_the_cores_that_others_use_leaves_the_rest_idle(tmp_path: Path) -> None:
    """Three types run 48 blocks, one a single block; one of more blocks than cores runs in rounds that nobody knows."""
    idle = _idle(tmp_path, {"Add": 48, "Mul": 48, "RmsNorm": 48, "TopKV2": 1, "Cast": 96})
    assert idle["TopKV2"] == pytest.approx(47 / 48)
    assert idle["Add"] == 0 and idle["Cast"] == 0


@pytest.mark.parametrize(
    "blocks", [{"Add": 48, "Mul": 48, "TopKV2": 1}, {"Add": 8, "Mul": 16, "Cast": 32, "TopKV2": 1}]
)
def test_too_few_types_that_agree_tell_nothing(tmp_path: Path, blocks: dict[str, int]) -> None:
    """Tilings of two types, or of types that differ, are no witness of the card."""
    assert set(_idle(tmp_path, blocks).values()) <= {None, 0.0}


LONG_HEAD = f"{HEAD},Input Shapes"


def _profile(tmp_path: Path, kernels: list[tuple[str, str, int, float, str]], steps: int = 3) -> Path:
    """Steps of these kernels: (type, core, blocks, microseconds, shapes)."""
    tmp_path.mkdir(exist_ok=True)
    rows, at = [LONG_HEAD], 0.0
    for step in range(steps):
        for number, (kind, core, blocks, us, shapes) in enumerate(kernels):
            rows.append(f'{step},{kind}_{number},{kind},{core},{1_000_000 + at},{us},{blocks},"{shapes}"')
            at += us + 10
    (tmp_path / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


VECTOR = [("Gelu", "AI_VECTOR_CORE", 48, 90.0, "4096,4096"), ("LayerNormV3", "AI_VECTOR_CORE", 48, 90.0, "4096,4096")]
WIDE = ("MatMulV3", "AI_CORE", 24, 600.0, "4096,4096;4096,4096")
NARROW = ("MatMulV3", "AI_CORE", 2, 600.0, "32,16384;16384,512")


def test_kernels_on_all_cores_are_no_excuse_for_those_of_another_shape(tmp_path: Path) -> None:
    """Nine products use all cores, one shape uses two of them; two vector types witness the cube cores."""
    facts = measure([_profile(tmp_path, [*VECTOR, *[WIDE] * 9, NARROW])], None, Options(jobs=1)).facts
    product = Subject("operator_type", "MatMulV3")
    assert facts.number("operator_type.core_idle_share", product) == pytest.approx(22 / 24)
    assert facts.number("operator_type.few_cores_share", product) == pytest.approx(0.1)
    assert facts.value("operator_type.few_cores_shape", product) == "32,16384;16384,512"
    assert facts.value("operator_type.few_cores_blocks", product) == 2
    assert facts.value("operator_type.few_cores_count", product) == 24


def test_kinds_of_cores_that_do_not_fit_are_no_witness_of_each_other(tmp_path: Path) -> None:
    """Beside 20 cube cores there are no 48 vector cores: nobody knows how many of either there are."""
    facts = measure([_profile(tmp_path, [*VECTOR, (*WIDE[:2], 20, *WIDE[3:]), NARROW])], None, Options(jobs=1)).facts
    assert facts.number("operator_type.core_idle_share", Subject("operator_type", "MatMulV3")) is None


COUNTERS = ",aic_mac_ratio,aiv_vec_ratio,aiv_mte2_ratio"


def test_a_card_that_counts_its_vector_cores_has_at_least_as_many_cores_as_the_smallest_of_its_kind(
    tmp_path: Path,
) -> None:
    """Two types are too few to tell the cores. With counters that only larger cards have, a product on 2 of them is a
    finding, though others of its type use more; without these counters nobody knows."""
    folder = _profile(tmp_path / "untold", [("SwiGlu", "AI_VECTOR_CORE", 48, 90.0, "4096,4096"), WIDE, *[NARROW] * 4])
    assert "COMP086" not in {each.rule for each in advise([folder], load_rules(), Options(jobs=1)).findings}
    table = folder / "kernel_details.csv"
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    counted = [f"{row},{'0,0.4,0.3' if 'VECTOR' in row else '0.9,0,0'}" for row in rows]
    table.write_text("\n".join([head + COUNTERS, *counted]) + "\n", encoding="utf-8")
    found = {each.rule: each for each in advise([folder], load_rules(), Options(jobs=1)).findings}
    assert "2 blocks on at least 20 cores" in found["COMP086"].message.en
    assert found["COMP086"].subject.id == "MatMulV3"


def test_kernels_that_only_start_and_stop_gain_nothing_by_more_cores(tmp_path: Path) -> None:
    short = [("Add", "AI_VECTOR_CORE", 1, 4.0, "1")] * 40
    facts = measure([_profile(tmp_path, [*VECTOR, WIDE, *short])], None, Options(jobs=1)).facts
    assert facts.number("operator_type.core_idle_share", Subject("operator_type", "Add")) == 0


def test_one_kernel_that_is_told_by_its_type_and_its_name_is_one_finding(tmp_path: Path) -> None:
    """It takes half of the step on one block: the block is the finding, its time a symptom of it."""
    folder = _profile(tmp_path, [*VECTOR, *[WIDE] * 9, ("Sort", "AI_VECTOR_CORE", 1, 6000.0, "1,131072")])
    report = advise([folder], load_rules(), Options(jobs=1))
    about = [each for each in report.findings if "Sort" in each.subject.id and not each.because]
    assert [each.rule for each in about] == ["COMP086"]
    assert "1 block on 48 cores" in about[0].message.en


@pytest.mark.parametrize(
    ("blocks", "core_us", "used", "cores", "idle"),
    [(64, 65.343, 74.169, 20, 0.2), (16, 100.0, 100 * 16 / 24, 24, 1 / 3), (64, 65.343, 60.0, None, None)],
)
def test_counters_of_the_cores_tell_how_many_the_card_has(
    tmp_path: Path, blocks: int, core_us: float, used: float, cores: int | None, idle: float | None
) -> None:
    """A core's time is that of the rounds, the utilisation that of all cores: 64 blocks that had 80 places ran in four
    rounds on 20 cores. Places that no card can have tell nothing."""
    us = 70.48 if blocks == 64 else 100.0
    head = f"{HEAD},aicore_time(us),aiv_time(us),aic_mac_ratio,aiv_vec_ratio,aiv_mte2_ratio,cube_utilization(%)"
    rows = [f"{n},m_{n},my_matmul,MIX_AIC,{1_000_000 + 400 * n},{us},{blocks},{core_us},{us},0.2,0.1,0.1,{used:.3f}"
            for n in range(3)]  # fmt: skip
    (tmp_path / "kernel_details.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    facts, subject = measure([tmp_path], None, Options(jobs=1)).facts, Subject("operator_type", "my_matmul")
    assert facts.number("operator_type.core_count", subject) == cores
    assert facts.number("operator_type.core_idle_share", subject) == (idle and pytest.approx(idle, abs=1e-3))
