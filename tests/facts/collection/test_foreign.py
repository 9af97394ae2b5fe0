"""Tables of two runs in one folder: what tells of other steps is left out, and the step table stands."""

import json
from pathlib import Path

import pytest

from advisor.facts.base import Measured
from advisor.model import RUN
from advisor.pipeline import Options, measure

STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
TYPES = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us)"


def folder(tmp_path: Path, computing: float = 1000.0, exposed: float = 3000.0) -> Path:
    """Two steps of 5 ms, of which one computes and three exchange."""
    output = tmp_path / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    length = computing + exposed + 1000
    rows = [f"{step},{computing},{exposed},0,{exposed},1000,{length},0" for step in (1, 2)]
    (output / "step_trace_time.csv").write_text("\n".join([STEPS, *rows]) + "\n")
    return output


def statistic(output: Path, *types: tuple[str, int, float], whole: float = 0.0) -> None:
    """Types with calls and time; where the `whole` is told, with their shares of it."""
    rows = [
        f"{name},AI_VECTOR_CORE,{count},{us},{us / count / 2},{us / count},{us / count * 2}"
        + (f",{100 * us / whole:.3f}" if whole else "")
        for name, count, us in types
    ]
    heading = TYPES + (",Ratio(%)" if whole else "")
    (output / "op_statistic.csv").write_text("\n".join([heading, *rows]) + "\n")


def kernels(output: Path, us: float, steps: tuple[str, ...] = ("1", "2"), types: tuple[str, ...] = ("Mul",)) -> None:
    """Ten kernels of so many microseconds in each of the steps of 5 ms, the types in turn."""
    rows = [
        f"{step},{types[n % len(types)]}_{n},{types[n % len(types)]},AI_VECTOR_CORE,{5000 * i + 490 * n}.000,{us},0"
        for i, step in enumerate(steps)
        for n in range(10)
    ]
    (output / "kernel_details.csv").write_text("\n".join([KERNELS, *rows]) + "\n")


def left_out(tmp_path: Path) -> tuple[list[str], Measured]:
    """(files that were left out, what was measured); whatever the steps tell is certain."""
    found = measure([tmp_path], None, Options(jobs=1))
    files = [Path(problem.file).name for problem in found.problems if "left out" in problem.problem]
    told = found.facts.get("step.exposed_communication_share", RUN)
    assert not files or (told is not None and not told.doubted)
    return files, found


@pytest.mark.parametrize(("us", "left"), [(3000.0, False), (3001.0, True)])
def test_a_type_runs_no_longer_than_the_steps_compute(tmp_path: Path, us: float, left: bool) -> None:
    """The steps compute for 2 ms. Less than the steps last says nothing: the device idled and exchanged in them."""
    statistic(folder(tmp_path), ("Mul", 31, us))
    files, found = left_out(tmp_path)
    assert files == ["op_statistic.csv"] * left
    assert any(fact.name == "operator_type.time_us" for fact in found.facts) is not left


@pytest.mark.parametrize(
    ("us", "whole", "left", "told"),
    [
        (1900.0, 0.0, False, False), (800.0, 0.0, True, False), (800.0, 800.0, False, True),
        (800.0, 2000.0, False, False), (800.0, 1200.0, True, False),
    ],
)  # fmt: skip
def test_sums_of_less_than_the_steps_compute_lack_rows(
    tmp_path: Path, us: float, whole: float, left: bool, told: bool
) -> None:
    """Where shares say that all rows are there, one of the two tables is wrong, and nobody knows which; where they say
    of how much those at hand are a part, and that is what the steps compute, it is of these steps."""
    statistic(folder(tmp_path), ("Mul", 31, us), whole=whole)
    files, found = left_out(tmp_path)
    assert files == ["op_statistic.csv"] * left
    assert any("all kernels take" in problem.problem for problem in found.problems) is told


@pytest.mark.parametrize(
    ("us", "steps", "left"),
    [
        (100.0, ("51", "52"), False), (149.0, ("51", "52"), False), (151.0, ("51", "52"), True),
        (66.0, ("51", "52"), True), (400.0, ("1", "2"), False), (149.0, ("", ""), False), (151.0, ("", ""), True),
    ],
)  # fmt: skip
def test_kernels_of_other_steps_are_of_another_run_where_they_compute_otherwise(
    tmp_path: Path, us: float, steps: tuple[str, ...], left: bool
) -> None:
    """Who counts steps from elsewhere computes as much in each; without step ids, kernels that run for far longer than
    all steps compute ran in others. Kernels that bear the steps' names are believed to be theirs."""
    kernels(folder(tmp_path), us, steps)
    assert left_out(tmp_path)[0] == ["kernel_details.csv"] * left


@pytest.mark.parametrize(("step", "us", "left"), [("step1", 9000, False), ("step51", 3000, False), ("step51", 9, True)])
def test_collectives_of_another_run_are_left_out(tmp_path: Path, step: str, us: float, left: bool) -> None:
    """Steps of other names exchange as much in each, where they are of one run."""
    times = {"Start Timestamp(us)": 1.0, "Elapse Time(ms)": us / 1000, "Transit Time(ms)": us / 1000}
    told = {step: {"p2p": {}, "collective": {"hcom_allReduce__1_0_1@1": {"Communication Time Info": times}}}}
    (folder(tmp_path) / "communication.json").write_text(json.dumps(told))
    assert left_out(tmp_path)[0] == ["communication.json"] * left


@pytest.mark.parametrize(("mark", "us", "left"), [(1, 9000, False), (51, 4900, False), (51, 9000, True)])
def test_a_timeline_of_another_run_is_left_out(tmp_path: Path, mark: int, us: int, left: bool) -> None:
    """Its marks of steps bear other names and last otherwise."""
    events = [{"ph": "X", "name": f"ProfilerStep#{mark}", "pid": 1, "tid": 1, "ts": "10.000", "dur": us, "args": {}}]
    (folder(tmp_path) / "trace_view.json").write_text(json.dumps(events))
    assert left_out(tmp_path)[0] == ["trace_view.json"] * left


@pytest.mark.parametrize(("listed", "left"), [(("Mul", "Cast"), False), (("MatMul", "Cast"), True)])
def test_a_table_that_was_cut_is_a_part_of_the_whole(tmp_path: Path, listed: tuple[str, ...], left: bool) -> None:
    """A statistic counts fifty times as many kernels as stand one by one: those are a part of them, unless it does not
    know their type. Without a step table nobody knows which run was asked about."""
    output = folder(tmp_path)
    (output / "step_trace_time.csv").unlink()
    kernels(output, 100.0)
    statistic(output, *((name, 300, us) for name, us in zip(listed, (30_000.0, 300.0), strict=True)))
    found = measure([tmp_path], None, Options(jobs=1))
    assert any("left out" in problem.problem for problem in found.problems) is left
    assert any("rows are missing" in problem.problem for problem in found.problems) is not left
    assert bool(found.facts.doubted) is left
