"""Two graphs in one table: what the training's step runs, and what evaluates it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure
from advisor.sources.older.legacy_graphs import begin_of_evaluation

LAYERS = [f"Default/net/layer_{n}/MatMul" for n in range(4)]
TRAINING = ["Default/AssignAdd-op90", *(f"{name}-op{n}" for n, name in enumerate(LAYERS)),
            *(f"Gradients/{name}-op{20 - n}" for n, name in enumerate(LAYERS)), "Default/Adam/Adam-op40"]  # fmt: skip
EVALUATION = ["Default/AssignAdd-op101", *(f"{name}-op{110 + n}" for n, name in enumerate(LAYERS))]


def test_the_evaluation_begins_anew_and_repeats_the_layers() -> None:
    """The counter of the loop comes first in either graph, and no number of the later is below one of the earlier."""
    assert begin_of_evaluation([*TRAINING, *EVALUATION, "Default/Predict/Sigmoid-op130"]) == len(TRAINING)


@pytest.mark.parametrize(
    "names",
    [
        TRAINING,
        [*TRAINING, *(name.replace("-op1", "-op") for name in EVALUATION)],  # numbers of the training's own nodes
        [*TRAINING, *(f"Gradients/{name}" for name in EVALUATION)],
        [*TRAINING, "Default/AssignAdd-op101", *(f"Default/other_{n}/MatMul-op{110 + n}" for n in range(4))],
        [*EVALUATION, *(name.replace("-op1", "-op2") for name in EVALUATION)],  # one layer used twice
        ["MatMul", "Add"],
        ["Default/MatMul-op1", f"Default/MatMul-op{'9' * 5000}"],  # Python refuses to read that many digits
        [],
    ],
)
def test_one_graph_stays_one(names: list[str]) -> None:
    """A layer that a network uses twice is no second graph."""
    assert begin_of_evaluation(names) is None


def test_a_share_is_one_of_the_trainings_step(tmp_path: Path) -> None:
    """No step runs both graphs: Adam's part of the training is not made smaller by an evaluation beside it, and a
    statistic of types, which sums up both, is not asked."""
    rows = [f"{name},{2.0 if 'Adam' in name else 1.0}" for name in (*TRAINING, *EVALUATION)]
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text("\n".join(["full_op_name,execution_time", *rows]) + "\n")
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(
        "op_type,execution_time,execution_frequency,percent\nMatMul,12.0,12,75\nAssignAdd,2.0,2,12.5\nAdam,2.0,1,12.5\n"
    )
    found = measure([tmp_path], None, Options(jobs=1))
    share = found.facts.value("operator_type.compute_share", Subject("operator_type", "Adam"))
    assert share == pytest.approx(2 / 11)
    assert found.facts.value("operator_type.count", Subject("operator_type", "MatMul")) == 8
    (problem,) = [each.problem for each in found.problems if "evaluates" in each.problem]
    assert "5 operators (5\xa0ms)" in problem
