"""What one side could not measure is neither resolved nor new, no remedy worked by it, and no time changed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.compare import Comparison, compare, read_report
from advisor.model import (
    RUN,
    Check,
    Confidence,
    Direction,
    Evidence,
    Fact,
    Finding,
    Outcome,
    ProfileInfo,
    Remedy,
    Report,
    Role,
    Saving,
    Severity,
    Source,
    Subject,
    Summary,
    Text,
    Value,
    Verify,
)
from advisor.pipeline import Options
from advisor.render.comparison.text import render_text
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

SAME = Text("x", "x")
JUDGED = ("kept", "partly", "moved", "not_applied", "opposite")
RUNS = {
    "mindspore": Scenario(data=2, steps=4, layers=2, faults=(Fault("slow_compute", 1, 0.5),)),
    "pytorch": Scenario(
        data=2, steps=4, layers=2, framework="pytorch", gradient_mb_per_layer=30.0, faults=(Fault("slow_host", 0, 0.6),)
    ),
}


def judged(folder: Path) -> Report:
    return read_report(str(folder), load_rules(strict=False), Options(jobs=1))


def claims(found: Comparison) -> list[str]:
    """Whatever is said to have changed, save what the collection itself lacks now."""
    matched = [m for m in (*found.of("resolved"), *found.of("new")) if not m.reason]
    told = [m for m in matched if (m.after or m.before).direction != Direction.EVIDENCE]
    return [
        *(f"{m.state} {m.verdict} {m.subject}" for m in told),
        *(f"{e.outcome} {e.remedy.id} {e.fact}" for e in found.effects if e.outcome in JUDGED),
        *(f"moved {m.fact}" for m in found.metrics if m.moved),
        *([found.outcome] if found.outcome in ("faster", "slower") else []),
    ]


@pytest.mark.parametrize("kind", RUNS)
def test_a_file_that_is_gone_has_changed_nothing(kind: str, tmp_path: Path) -> None:
    """Each file of each rank is taken away in turn: whichever side lacks it, nothing is resolved, new, worked or of
    another length."""
    whole = tmp_path / "whole"
    write_profile(simulate(RUNS[kind]), whole)
    before = judged(whole)
    assert before.findings
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    for file in files:
        part = tmp_path / "part"
        shutil.copytree(whole, part)
        (part / file).unlink()
        after = judged(part)
        assert claims(compare(before, after)) == [], f"without {file}"
        assert claims(compare(after, before)) == [], f"now with {file}"
        shutil.rmtree(part)


@pytest.mark.parametrize("column", ["Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Free"])
def test_a_column_that_one_rank_lacks_is_no_change(column: str, tmp_path: Path) -> None:
    """The parts of a step are told otherwise where one of them is missing at the slow rank."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder in (whole, part):
        write_profile(simulate(RUNS["mindspore"]), folder)
    (table,) = part.glob("*_4001_*/ASCEND_PROFILER_OUTPUT/step_trace_time.csv")
    rows = [line.split(",") for line in table.read_text().splitlines()]
    place = rows[0].index(column)
    table.write_text("\n".join(",".join(row[:place] + row[place + 1 :]) for row in rows) + "\n")
    assert claims(compare(judged(whole), judged(part))) == []


def of_type(name: str) -> Subject:
    return Subject("operator_type", name)


def measured(name: str, subject: Subject, value: Value, table: str = "kernels") -> Fact:
    return Fact(name, subject, value, sources=(Source(f"{table}.csv", table=table),))


def a_report(
    times: dict[str, float], *found: Finding, facts: tuple[Fact, ...] = (), outcome: Outcome = Outcome.PASS,
    tables: tuple[str, ...] = ("kernels", "steps"), cut: tuple[str, ...] = (), step: float = 10_000.0,
) -> Report:  # fmt: skip
    rank = Subject("rank", "0", (0,))
    made = [measured("operator_type.time_us", of_type(name), us) for name, us in times.items()]
    made += [measured("step.time_us", RUN, step, "steps"), Fact("rank.tables", rank, tables), *facts]
    made += [Fact("rank.cut_tables", rank, cut)] if cut else []
    checks = (Check("R1", Outcome.FAIL if found else outcome, () if outcome != Outcome.NO_DATA else ("x.y",)),)
    return Report(ProfileInfo("p", ranks=(0,)), Summary("healthy", SAME), found, checks, facts=tuple(made))


def a_finding(name: str, *evidence: Evidence, verify: str = "operator_type.time_us", remedy: str = "look") -> Finding:
    remedies = (Remedy(remedy, SAME, SAME, verify=Verify(verify, "falls")),)
    subject = of_type(name)
    return Finding(
        "F1", "R1", "operator-hotspot", Direction.COMPUTATION, Role.ROOT_CAUSE, Severity.HIGH, Confidence.HIGH, subject,
        SAME, SAME, tuple(replace(each, subject=subject) for each in evidence), saving=Saving(5000.0, 0.5, SAME),
        remedies=remedies,
    )  # fmt: skip


SHARE = Evidence("operator_type.compute_share", 0.6, "ratio")


def test_what_a_cut_table_does_not_hold_is_not_gone() -> None:
    """Rows are missing on one side, or on both: an operator among the lost ones took whatever time it took."""
    large = a_finding("Attention", Evidence("operator_type.time_us", 6000.0, "us"))
    whole, rest = {"Attention": 6000.0, "Add": 400.0}, {"Add": 400.0}
    assert [m.state for m in compare(a_report(whole, large), a_report(rest)).findings] == ["resolved"]
    for then, now in (((), ("kernels",)), (("kernels",), ()), (("kernels",), ("kernels",))):
        found = compare(a_report(whole, large, cut=then), a_report(rest, cut=now))
        assert [(m.state, m.reason) for m in found.findings] == [("unjudged", "operator_type.time_us")]
        assert [e.outcome for e in found.effects] == ["unmeasured"]
        assert [o.what for o in found.obstacles] == ["cut files"]
        assert "kernel_details.csv" in render_text(found)


def test_a_length_from_another_table_is_no_change_of_length() -> None:
    """The step table is gone, and what is left of the kernels spans a seventieth of the step."""
    before = a_report({"Add": 400.0}, step=561_000.0)
    alone = a_report({"Add": 400.0}, tables=("kernels",))
    kept = tuple(f for f in alone.facts if f.name != "step.time_us")
    after = replace(alone, facts=(*kept, measured("step.time_us", RUN, 8_180.0)))
    found = compare(before, after)
    assert found.outcome == "unknown" and not found.accounts
    assert "step_trace_time.csv" in found.headline.en
    assert compare(before, replace(before, facts=before.facts)).outcome == "same"


def test_an_operator_that_another_one_replaced_is_resolved() -> None:
    """The remedy was to replace it: its type is gone, the new one takes a hundredth of its time, and no fact about it
    can be measured any more."""
    patch = Evidence("operator_type.patch_us", 8000.0, "us")
    conv = a_finding("Conv2D", patch, verify="operator_type.patch_us", remedy="multiply-patches")
    of_conv = tuple(
        measured(f"operator_type.{name}", of_type("Conv2D"), value) for name, value in (("patch_us", 8e3), ("count", 1))
    )
    before = a_report({"Conv2D": 8000.0, "Add": 400.0}, conv, facts=of_conv)
    count = measured("operator_type.count", of_type("MatMul"), 1)
    after = a_report({"MatMul": 80.0, "Add": 400.0}, outcome=Outcome.NO_DATA, facts=(count,), step=2_000.0)
    found = compare(before, after)
    assert [m.state for m in found.findings] == ["resolved"]
    assert [(e.outcome, e.after, e.gained_us) for e in found.effects] == [("kept", 0.0, 8000.0)]
    renamed = compare(before, a_report({"Conv2DV2": 7900.0, "Add": 400.0}, outcome=Outcome.NO_DATA, facts=(count,)))
    assert [m.state for m in renamed.findings] == ["unjudged"]
    assert [e.outcome for e in renamed.effects] == ["unmeasured"]


def test_operators_that_were_fused_are_neither_resolved_nor_new() -> None:
    """One type takes the time of those that went, or of a part of what one still takes."""
    before = a_report({"Quant": 500.0, "MatMul": 300.0, "Add": 50.0}, a_finding("Quant", SHARE))
    for left in (0.0, 100.0):
        times = {"Super": 780.0 - left, "Add": 50.0} | ({"Quant": left} if left else {})
        found = compare(before, a_report(times, a_finding("Super", SHARE)))
        assert {m.state for m in found.findings} == {"unjudged"} and len(found.findings) == 2
        assert [e.outcome for e in found.effects] == ["unmeasured"]
        assert [o.after for o in found.obstacles if o.what == "operators"] == ["Super"]


@pytest.mark.parametrize(("after", "state"), [(5000.0, "resolved"), (9470.0, "remaining"), (5950.0, "remaining")])
def test_what_takes_as_long_as_before_is_not_resolved(after: float, state: str) -> None:
    """Its share fell below the limit because the others grew, or by a little: nobody repaired it."""
    share = measured("operator_type.compute_share", of_type("Sum"), 0.6)
    before = a_report({"Sum": 6000.0, "Add": 4000.0}, a_finding("Sum", SHARE), facts=(share,))
    lower = measured("operator_type.compute_share", of_type("Sum"), 0.2)
    other = a_report({"Sum": after, "Add": 30_000.0}, facts=(lower,))
    assert [m.state for m in compare(before, other).findings] == [state]
    back = "new" if state == "resolved" else state
    assert [m.state for m in compare(other, before).findings] == [back]


def test_steps_that_one_side_alone_marks_are_not_compared() -> None:
    """The length of a whole recording is no step."""
    marked = a_report({"Add": 400.0})
    unmarked = replace(marked, profile=replace(marked.profile, has_steps=False))
    assert not compare(marked, unmarked).comparable and compare(unmarked, unmarked).comparable
