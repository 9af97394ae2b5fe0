"""Whose idle time it is: the host's that waited for a result, or the host's that launches too slowly."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.host.synchronised import synchronised_us


def timeline(calls: list[tuple[str, int, int]]) -> SimpleNamespace:
    """Host events (name, start, end), nanoseconds."""
    names = sorted({name for name, _, _ in calls})
    columns = {"name": np.array([names.index(name) for name, _, _ in calls], np.int64)}
    columns |= {key: np.array([call[at] for call in calls], np.int64) for key, at in (("start", 1), ("end", 2))}
    return SimpleNamespace(host=SimpleNamespace(names=names, **columns))


def told(calls: list[tuple[str, int, int]], gaps: list[tuple[int, int]]) -> float:
    start, end = (np.array([gap[at] for gap in gaps], np.int64) for at in (0, 1))
    return float(synchronised_us(timeline(calls), start, end, np.zeros(len(gaps), np.int64), 1, 1000.0)[0])  # type: ignore[arg-type]


def test_idle_time_belongs_to_the_wait_that_returns_in_it():
    """It waited while the device still ran, and returns when the device is empty; or asked again at once."""
    gap = (100_000, 250_000)
    assert told([("aclrtSynchronizeStream", 20_000, 105_000)], [gap]) == 150.0
    assert told([("aten::add", 20_000, 105_000)], [gap]) == 0.0, "no wait"
    assert told([("aclrtSynchronizeStream", 110_000, 112_000)], [gap]) == 150.0, "it asked again"
    assert told([("aclrtSynchronizeStream", 20_000, 90_000)], [gap]) == 0.0, "kernels ran after it"
    assert told([("aclrtSynchronizeStream", 20_000, 105_000)], [(100_000, 5_000_000)]) == 0.0, "something else"


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=8), st.integers(0, 10**6))
def test_no_more_idle_time_is_behind_waits_than_there_is(spans, moved):
    """Whatever the calls are, and wherever the clocks begin."""
    gaps = [(at, at + 40_000) for at in range(0, 10**6, 100_000)]
    calls = [("aclrtSynchronizeDevice", min(span), max(span)) for span in spans]
    found = told(calls, gaps)
    assert 0.0 <= found <= 40.0 * len(gaps)
    later = [(name, start + moved, end + moved) for name, start, end in calls]
    assert told(later, [(start + moved, end + moved) for start, end in gaps]) == found
