"""Recordings that are no training with steps: of each simulated kind one is told rightly."""

import pytest

from advisor.pipeline import advise
from advisor.ruleset.files.loader import load_rules
from benchmarks.recordings import run
from benchmarks.simulator.recordings import RECORDINGS


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_kind_of_recording_is_told_rightly(name):
    """Kind, length, idle time and words, where all of them are known."""
    row = run(name, 1)
    assert set(row.right) == {"kind", "length", "idle", "words"}, row


def test_what_only_the_set_up_launched_is_no_operator_of_the_executions(tmp_path):
    """Kernels before the steady part are in no table, under no other kernel's type."""
    RECORDINGS["decoding"](tmp_path, 0)
    facts = advise([tmp_path], load_rules()).facts
    operators = {fact.subject.id: fact.value for fact in facts if fact.name == "operator.type"}
    assert operators and all(name.endswith(f"_{kind}") for name, kind in operators.items()), operators
