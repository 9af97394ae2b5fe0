"""Recordings that are no training with steps: of each simulated kind one is told rightly."""

import pytest

from benchmarks.recordings import run
from benchmarks.simulator.recordings import RECORDINGS


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_kind_of_recording_is_told_rightly(name):
    """Kind, length, idle time and words, where all of them are known."""
    row = run(name, 1)
    assert set(row.right) == {"kind", "length", "idle", "words"}, row
