"""Sums of a step table that hold whatever the training did."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from advisor.facts.recording.sums import tell_sums
from advisor.model import Source


@pytest.mark.parametrize(("framework", "told"), [("mindspore", 0), ("pytorch", 1)])
def test_receives_that_wait_side_by_side_are_no_contradiction(framework, told):
    """MindSpore's Bubble adds up what every receive lasts, maybe more than the step; torch_npu's is a part of it."""
    frame = pd.DataFrame(
        {"computing_us": [22e3], "exposed_us": [33e3], "free_us": [200.0], "stage_us": [8e3], "bubble_us": [57e3]}
    )
    notes = []
    rank = SimpleNamespace(
        framework=framework, note=lambda *entry: notes.append(entry), relative=str,
        tables={"steps": SimpleNamespace(paths=("step_trace_time.csv",))},
        source=lambda table, *columns: Source(table, columns),
    )  # fmt: skip
    tell_sums(rank, frame, np.array([55.2e3]))
    assert len(notes) == told
