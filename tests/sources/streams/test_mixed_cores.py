"""Kernels that use cube and vector cores: a ratio is a share of its own core's time, not of the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model import Subject
from advisor.pipeline import Options, measure
from advisor.sources.discover import load_profile
from advisor.sources.streams.kernels import load_kernels

HEADING = (
    "Name,Type,Accelerator Core,Start Time(us),Duration(us),aicore_time(us),aic_mac_ratio,aic_scalar_ratio,"
    "aiv_time(us),aiv_vec_ratio,aiv_mte2_ratio"
)


def _write(folder: Path, cube: float, vector: float, core: str = "MIX_AIC") -> Path:
    rows = [f"k_{i},k,{core},{1000 + 230 * i}.000,226,{cube},0.0,0.87,{vector},0.53,0.81" for i in range(9)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return folder


def test_a_cube_core_that_only_starts_the_others_limits_nothing(tmp_path: Path) -> None:
    """2 of 226 us on the cube core, 87 % of them scalar, and 222 us on the vector cores: reading is the limit."""
    facts = measure([_write(tmp_path, 1.9, 222.0)], ["operator_type.pipe", "operator_type.pipe_ratio"], Options(jobs=1))
    subject = Subject("operator_type", "k")
    assert facts.facts.value("operator_type.pipe", subject) == "memory (read)"
    assert facts.facts.number("operator_type.pipe_ratio", subject) == pytest.approx(0.81 * 222 / 226)


@pytest.mark.parametrize(("cube", "vector"), [(0.0, 222.0), (0.0, 0.0), (222.0, 0.0)])
def test_kernels_of_one_kind_of_core_keep_their_ratios(tmp_path: Path, cube: float, vector: float) -> None:
    """Where one kind of core worked, or times were not counted, ratios stand as they are in the file."""
    (rank,) = load_profile([_write(tmp_path, cube, vector)]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None
    assert kernels.pipes["aiv_mte2_ratio"][0] == pytest.approx(0.81 * kernels.piped["aiv_mte2_ratio"][0])


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 400), st.floats(0, 400))
def test_no_core_is_busier_than_its_own_ratio(tmp_path_factory, cube: float, vector: float) -> None:
    """However long cores worked, a share of the kernel's time never exceeds the share of the core's."""
    (rank,) = load_profile([_write(tmp_path_factory.mktemp("k"), round(cube, 3), round(vector, 3))]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None
    for pipe, most in (("scalar_ratio", 0.87), ("aiv_mte2_ratio", 0.81)):
        assert 0 <= kernels.pipes[pipe][0] <= most * kernels.piped[pipe][0] + 1e-6


def test_a_cube_core_waits_in_its_scalar_unit(tmp_path: Path) -> None:
    """Where both kinds of core work all the time, the cube core's scalar share tells nothing: it holds its waiting."""
    facts = measure([_write(tmp_path, 220.0, 222.0)], ["operator_type.pipe"], Options(jobs=1)).facts
    assert facts.value("operator_type.pipe", Subject("operator_type", "k")) == "memory (read)"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(10, 400), st.integers(10, 400), st.integers(0, 9)), min_size=1, max_size=20),
    st.booleans(),
)
def test_two_rows_of_one_kernel_are_one_kernel(tmp_path_factory, halves, swapped: bool) -> None:
    """One row for the cube cores and one for the vector cores, begun together or shortly after: one invocation each."""
    cores = ("MIX_AIV", "MIX_AIC") if swapped else ("MIX_AIC", "MIX_AIV")
    at, rows = 1000, []
    for number, (first, second, late) in enumerate(halves):
        rows.append(f"k_{number},k,{cores[0]},{at}.000,{first}")
        rows.append(f"k_{number},k,{cores[1]},{at + late}.000,{second}")
        at += 1000
    folder = tmp_path_factory.mktemp("halves")
    heading = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    (folder / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    (rank,) = load_profile([folder]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None
    assert kernels.duration.tolist() == [max(first, second) for first, second, _ in halves]


def test_one_kernel_after_another_on_other_cores_are_two(tmp_path: Path) -> None:
    """What begins when the other has ended is an invocation of its own, as is what bears another name."""
    heading = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
    rows = ["k,k,MIX_AIC,1000.000,50", "k,k,MIX_AIV,1050.000,50", "a,a,MIX_AIC,2000.000,50", "b,b,MIX_AIV,2010.000,50"]
    (tmp_path / "kernel_details.csv").write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    (rank,) = load_profile([tmp_path]).ranks
    kernels = load_kernels(rank)
    assert kernels is not None and len(kernels) == 4
