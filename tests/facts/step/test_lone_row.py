"""One row of a step table around a whole run is no step, and what lies before its first iteration is set-up."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from advisor.model import RUN, Report, Severity
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.simulator import Scenario, simulate, write_profile

RULES = load_rules()


def whole_run(folder: Path, scenario: Scenario, *, marked: bool, set_up_us: int = 0, batches: bool = True) -> Report:
    """The report on a run whose steps stand in one row "0", which kernels and timeline know as their only step where it
    is `marked`; `set_up_us` before its first kernel it makes some random numbers. Unless `batches` are told nothing
    counts its iterations."""
    for rank in write_profile(simulate(scenario), folder, trace=True):
        output = rank / "ASCEND_PROFILER_OUTPUT"
        for path in output.glob("communication*.json"):
            path.unlink()
        if not batches:
            (output / "dataset.csv").unlink(missing_ok=True)
        _rewrite_steps(output / "step_trace_time.csv", set_up_us)
        _rewrite_kernels(output / "kernel_details.csv", marked, set_up_us)
        _rewrite_trace(output / "trace_view.json", marked, batches)
    return advise([folder], RULES, Options(jobs=1))


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return head, rows


def _write(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def _rewrite_steps(path: Path, set_up_us: int) -> None:
    head, rows = _table(path)
    whole = [f"{sum(float(row[i]) for row in rows):.3f}" for i in range(len(head))]
    whole[head.index("Step")] = "0"
    whole[head.index("Free")] = str(float(whole[head.index("Free")]) + set_up_us)
    _write(path, head, [whole])


def _rewrite_kernels(path: Path, marked: bool, set_up_us: int) -> None:
    head, rows = _table(path)
    start, wait, step = head.index("Start Time(us)"), head.index("Wait Time(us)"), head.index("Step ID")
    first = min(rows, key=lambda row: row[start])
    fill = list(first)
    fill[head.index("Type")] = "StatelessRandomNormalV2"
    fill[head.index("Name")], fill[head.index("Duration(us)")], fill[wait] = "Default/init-op1", "10.000", "0.000"
    fill[start] = f"{int(first[start].split('.')[0]) - set_up_us}.000\t"
    if set_up_us:
        first[wait] = f"{set_up_us - 10}.000"
        rows.insert(0, fill)
    if marked:
        _write(path, head, [[*row[:step], "0", *row[step + 1 :]] for row in rows])
    else:
        _write(path, [*head[:step], *head[step + 1 :]], [[*row[:step], *row[step + 1 :]] for row in rows])


def _rewrite_trace(path: Path, marked: bool, batches: bool) -> None:
    events = json.loads(path.read_text())
    marks = [event for event in events if "ProfilerStep#" in event["name"]]
    events = [event for event in events if event not in marks and (batches or "Dataset" not in event["name"])]
    if marked:
        end = float(marks[-1]["ts"]) + float(marks[-1]["dur"])
        name = marks[0]["name"].split("#")[0] + "#0"
        events.append({**marks[0], "name": name, "dur": end - float(marks[0]["ts"])})
    path.write_text(json.dumps(events))


def value(report: Report, name: str) -> object:
    """A fact of the run."""
    return next((fact.value for fact in report.facts if (fact.name, fact.subject) == (name, RUN)), None)


EIGHT = Scenario(data=1, layers=4, steps=8, seed=3)


@pytest.mark.parametrize("marked", [True, False])
def test_set_up_before_the_iterations_of_a_whole_run_is_no_idle_step(tmp_path: Path, marked: bool) -> None:
    """A second of compilation in the only row, which batches divide into eight steps: the steps are what the kernels
    say, and nobody is accused of the second."""
    scenario = EIGHT
    report = whole_run(tmp_path, scenario, marked=marked, set_up_us=1_000_000)
    assert value(report, "step.time_us") == pytest.approx(simulate(scenario).mean_us, rel=0.02)
    assert value(report, "step.idle_share") < 0.05  # type: ignore[operator]
    assert [f.rule for f in report.findings if f.severity.rank >= Severity.MEDIUM.rank] == []


def test_one_mark_around_many_updates_is_no_step(tmp_path: Path) -> None:
    """Without anything that counts iterations there are no steps to tell of, on one rank and on two."""
    for ranks in (1, 2):
        scenario = Scenario(data=ranks, layers=4, steps=8, seed=3)
        report = whole_run(tmp_path / str(ranks), scenario, marked=True, batches=False)
        assert report.summary.step_time_us is None
        assert value(report, "recording.has_steps") is False


def test_micro_batches_of_one_step_are_one_step(tmp_path: Path) -> None:
    """The same kernels eight times, and one update behind them."""
    scenario = Scenario(data=1, layers=4, steps=1, micro_batches=8, seed=3)
    report = whole_run(tmp_path, scenario, marked=True, batches=False)
    assert value(report, "recording.has_steps") is True
