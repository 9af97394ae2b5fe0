"""Links whose time is gone are told: the rest alone would make the slow one vanish."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from advisor.facts.collectives.link_speed import reduce_links
from advisor.model import Source


@pytest.mark.parametrize(("time", "told"), [([2.0, 3.0], 0), ([2.0, None], 1), ([None, None], 1)])
def test_a_link_with_a_size_and_no_time_is_told(time, told):
    """A profiler writes both or neither."""
    frame = pd.DataFrame({
        "source": [0, 1], "destination": [1, 2], "transport": "HCCS", "size_bytes": [1e6, 2e6],
        "time_us": pd.array(time, dtype="Float64"), "aggregate": "total",
    })  # fmt: skip
    notes: list[tuple[str, ...]] = []
    rank = SimpleNamespace(
        read=lambda table: frame, relative=str, note=lambda *entry: notes.append(entry),
        tables={"links": SimpleNamespace(paths=(Path("communication_matrix.json"),))},
        source=lambda table, *columns: Source(table, columns),
        once=lambda _key, _make: None,  # no list of collectives
    )  # fmt: skip
    reduce_links(rank)
    assert sum("no time" in text for _, text, *_ in notes) == told
