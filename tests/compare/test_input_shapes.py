"""Input shapes of an operator type, one by one: a mean over them tells of none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.compare import compare, read_report
from advisor.compare.changes import Role
from advisor.model import RUN, Fact, ProfileInfo, Report, Subject, Summary, Text
from advisor.render import render
from advisor.ruleset.files.loader import load_rules

SAME = Text("x", "x")
KIND = Subject("operator_type", "MatMul")
SHAPES = ("4096,2048;16000,2048", "4096,2048;6144,2048", "64,64;64,64")


def _report(times: tuple[float, ...], calls: tuple[int, ...] = (1, 30, 30), shapes: tuple[str, ...] = SHAPES) -> Report:
    of_type = sum(us * n for us, n in zip(times, calls, strict=True))
    facts = [
        *(Fact(name, RUN, of_type + 5000.0) for name in ("step.time_us", "step.computing_us")),
        Fact("operator_type.time_us", KIND, of_type),
        Fact("operator_type.inputs_shapes", KIND, shapes),
        Fact("operator_type.inputs_calls", KIND, calls),
        Fact("operator_type.inputs_times", KIND, times),
    ]
    return Report(ProfileInfo("p", "pytorch", "files", (0,), 1), Summary("healthy", SAME), (), (), facts=tuple(facts))


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ((3000.0, 300.0, 10.0), [SHAPES[0]]),
        ((3000.0, 305.0, 20.0), [SHAPES[0], SHAPES[2]]),  # what costs the step more comes first
        ((2000.0, 600.0, 20.0), []),  # twice as long on all of them: it is the type, not its inputs
    ],
)
def test_the_inputs_on_which_a_type_became_slower_are_named(after, told):
    """Only the product of the head is slower: whoever looks for its tiling must not search all products."""
    comparison = compare(_report((1000.0, 300.0, 10.0)), _report(after))
    assert [line.inputs for line in comparison.accounts if line.inputs] == told
    assert all(line.role is Role.SEEN_AT for line in comparison.accounts if line.inputs)
    page = render(comparison, "text").replace("\u00a0", " ")
    assert (f"MatMul {SHAPES[0]}, average time of a call on these inputs: 1 ms → 3 ms" in page) is bool(told)


TWICE = ("8192,2048;16000,2048", "8192,2048;6144,2048", "2048,8192;8192,6144")


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (TWICE, ["batch"]),
        ((TWICE[2], TWICE[0], TWICE[1]), ["batch"]),  # another one is the costliest now
        (("4096,2048;6144,2048", "4096,2048;16000,2048", "2048,4096;4096,6144"), []),  # only this changed
    ],
)
def test_a_batch_twice_as_large_is_another_batch_whichever_product_is_the_costliest(after, what):
    """Every product has twice the rows: that a step takes longer is no news, and no two steps may be compared."""
    before = ("4096,2048;16000,2048", "4096,2048;6144,2048", "2048,4096;4096,6144")
    sides = []
    for shapes, us in ((before, 300.0), (after, 590.0)):
        side = _report((us, us, us), (10, 10, 10), shapes)
        sides.append(replace(side, facts=(*side.facts, Fact("operator_type.shapes", KIND, shapes[0]))))
    comparison = compare(*sides)
    assert [o.what for o in comparison.obstacles if o.blocks] == what
    assert comparison.comparable is not bool(what)


@pytest.mark.parametrize(("calls", "told"), [((30, 30, 30), []), ((10, 60, 30), ["shapes"])])
def test_two_products_as_costly_that_changed_places_are_no_other_work(calls, told):
    """By noise another one is the costliest: the same calls stay comparable. Called more often on one than on the
    other, they are other work."""
    sides = []
    for order, times in (((0, 1, 2), (300.0, 299.0, 10.0)), ((1, 0, 2), (301.0, 299.0, 10.0))):
        of_each = (30, 30, 30) if not sides else calls
        side = _report(times, of_each, tuple(SHAPES[i] for i in order))
        sides.append(replace(side, facts=(*side.facts, Fact("operator_type.shapes", KIND, SHAPES[order[0]]))))
    assert [o.what for o in compare(*sides).obstacles] == told


HEADING = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Input Shapes"


def _benchmark(folder: Path, times: dict[str, float]) -> Report:
    folder.mkdir()
    rows, start = [], 1000.0
    for i, (shape, us) in enumerate(list(times.items()) * 4):
        rows.append(f'0,norm_{i},my_norm,AI_VECTOR_CORE,{start},{us},0,40,"{shape}"')
        start += us + 3.0
    (folder / "kernel_details.csv").write_text("\n".join([HEADING, *rows]) + "\n", encoding="utf-8")
    return read_report(str(folder), load_rules())


def test_a_measured_kernel_is_told_on_each_of_its_inputs(tmp_path):
    """Launches on other shapes are other measurements: the middle one is no verdict on the kernel, and where they are
    not the same ones on both sides that is said."""
    before = _benchmark(tmp_path / "a", {"2,64": 5.6, "2,1024": 15.6, "2,2048": 38.6})
    after = _benchmark(tmp_path / "b", {"2,64": 4.4, "2,1024": 12.6, "2,2048": 35.5})
    comparison = compare(before, after)
    assert {line.inputs: (pytest.approx(line.before), pytest.approx(line.after)) for line in comparison.accounts} == {
        "2,64": (5.6, 4.4), "2,1024": (15.6, 12.6), "2,2048": (38.6, 35.5),
    }  # fmt: skip
    assert not comparison.obstacles
    other = compare(before, _benchmark(tmp_path / "c", {"2,64": 5.6, "2,512": 9.0, "2,2048": 38.6}))
    assert [(o.what, o.before, o.after) for o in other.obstacles] == [("shapes", "my_norm 2,1024", "my_norm 2,512")]
