"""Steps in which nothing is communicated: micro-batches recorded as steps, and weights that are averaged seldom."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from advisor.facts.base import FactSet
from advisor.model import RUN
from advisor.pipeline import Options, measure
from benchmarks.simulator import Fault, Scenario, simulate, write_profile

REDUCING = ("12", "15")
"""Of the six recorded steps."""


def _told(folder: Path, updating: bool) -> FactSet:
    """Gradients are reduced behind every third backward pass; weights are updated there, or in all steps."""
    write_profile(simulate(Scenario(data=2, steps=6, faults=(Fault("unsplit_allreduce"),))), folder)
    for output in folder.glob("*/ASCEND_PROFILER_OUTPUT"):
        for name in ("communication_matrix.json", "op_statistic.csv"):
            (output / name).unlink()
        file = output / "communication.json"
        steps = json.loads(file.read_text())
        file.write_text(
            json.dumps({step: told for step, told in steps.items() if step.removeprefix("step") in REDUCING})
        )
        with (output / "kernel_details.csv").open() as lines:
            head, *rows = csv.reader(lines)
        kind = head.index("Type")
        gone = ("hcom_", "allReduce", *(() if updating else ("Apply",)))
        kept = [row for row in rows if row[0] in REDUCING or not row[kind].startswith(gone)]
        assert len(kept) < len(rows)
        _write(output / "kernel_details.csv", head, kept)
        with (output / "step_trace_time.csv").open() as lines:
            head, *rows = csv.reader(lines)
        for row in rows:
            if row[0] not in REDUCING:
                idle = float(row[head.index("Free")]) + float(row[head.index("Communication")])
                row[2:6] = ["0", "0", "0", str(idle)]
        _write(output / "step_trace_time.csv", head, rows)
    return measure([folder], None, Options(jobs=1)).facts


def _write(file: Path, head: list[str], rows: list[list[str]]) -> None:
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows([head, *rows])


def test_what_some_steps_reduce_is_told_of_the_mean_step(tmp_path: Path) -> None:
    """Nothing hides the reductions of two steps in six; the mean step has a third of one, as it is exposed."""
    facts = _told(tmp_path, updating=False)
    exposed = facts.number("step.exposed_communication_us", RUN)
    assert facts.number("allreduce.transfer_us", RUN) == pytest.approx(exposed, rel=0.1)
    assert facts.number("communication.transfer_share", RUN) == pytest.approx(
        facts.number("step.exposed_communication_share", RUN), rel=0.1
    )
    assert facts.number("allreduce.count", RUN) == pytest.approx(1 / 3)
    assert facts.number("allreduce.hidden_share", RUN) == pytest.approx(0.0, abs=0.02)
    assert not facts.has("communication.averages_weights")


def test_weights_that_are_averaged_now_and_then_are_no_gradients(tmp_path: Path) -> None:
    """Steps that update weights and reduce nothing train them apart: no backward pass could hide what follows."""
    facts = _told(tmp_path, updating=True)
    assert facts.value("communication.averages_weights", RUN) is True
    assert not facts.has("allreduce.saving_us")
    assert facts.number("communication.edge_us", RUN) == pytest.approx(
        facts.number("step.exposed_communication_us", RUN), rel=0.1
    )
