"""How batches reach the loop: interval, wait, queue, and what the interval is when the pipeline rests."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Mask
from advisor.facts.data.getnext import cold_fetches
from advisor.facts.data.getnext import reduce as read_fetches
from advisor.facts.data.pauses import Pauses, find_pauses
from advisor.facts.data.pipeline_tree import Queue, measure_queue
from advisor.facts.recording.limits import section
from advisor.knowledge.measuring import limit
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import load_trace
from advisor.sources.streams.trace import BATCH_FETCH

DRAIN_BATCHES = int(limit("queueing", "drained"))
"""Fewer batches than this in a row without a new one are chance, not a pipeline at rest."""

ROUNDING_US = 1000.0
"""The files of batches cut their times to whole milliseconds."""

CUT_TIMES = 3
"""An interval and the two parts of it that the sending thread is busy: three times, each cut by less than that."""


class BatchTimes(Struct, frozen=True):
    """Batches of one rank, microseconds. Means and medians are of the steady part: without the batches that filled the
    queue, and without the last ones, which only emptied it."""

    mode: str
    batches: int
    step_us: float | None = None
    step_mean_us: float | None = None
    wait_us: float | None = None
    wait_p95_us: float | None = None
    wait_longest_us: float | None = None
    wait_spread: float | None = None
    push_us: float | None = None
    first_wait_us: float | None = None
    jitter: float | None = None
    pauses: Pauses | None = None
    """Of a loop that reads an iterator; a sending thread has no part of its own."""
    undisturbed_us: float | None = None
    """Median interval of batches during which the pipeline delivered nothing more. Iterator only: a sending thread runs
    ahead of the device then, so its interval is no step."""
    wall_us: float | None = None
    late_share: float | None = None
    """Part of the device's time in fetches that began before their batch was sent: the rest waits for no batch."""
    fetch_us: float | None = None
    """Mean time that the device is in a fetch: for no batch does it wait longer."""
    total_wait_us: float = 0.0
    steady: int = 0
    queue: Queue | None = None
    is_ahead: bool = False
    """All were sent as one queue has room for them: the sending thread may never have waited for the device, and its
    pushes mark no steps."""


def as_fetched(times: BatchTimes, pushed_us: Floats, starts_us: Floats, ends_us: Floats) -> BatchTimes:
    """Sunk batches paced by the device's fetches, where each of these took one of them.

    A push is production: the sending thread runs ahead as far as the data queue has room. The step is the interval of
    fetches, and what fills the queue early is waited for by nobody. Clocks of host and device differ; no fetch ends
    before its batch was sent, and the largest shift that keeps this calls no batch early that may have been late.
    Fetches that waited while the pipeline started are no steady state of those that never wait again.
    """
    n = len(starts_us)
    if not (1 - section("witness")["cut_share"]) * times.batches <= n <= times.batches or n < 2:
        return times
    cold = cold_fetches(starts_us, ends_us)
    begin = max(cold, 1)
    intervals = np.diff(starts_us)[cold:]
    late, lasted = None, (ends_us - starts_us)[begin:]
    if len(pushed_us) >= n and np.isfinite(pushed_us[:n]).all() and lasted.sum() > 0:
        shift = float((ends_us - pushed_us[:n]).min())
        waited = pushed_us[begin:n] + ROUNDING_US + shift > starts_us[begin:]
        late = float(lasted[waited].sum() / lasted.sum())
    return replace(
        times, step_us=float(np.median(intervals)), step_mean_us=float(intervals.mean()), late_share=late,
        is_ahead=False, wall_us=max(float(ends_us[-1] - starts_us[0]), times.wall_us or 0.0), jitter=_jitter(intervals),
        fetch_us=float(lasted.mean()),
    )  # fmt: skip


def _column(frame: Any, name: str) -> Floats:
    values: Floats = frame[name].to_numpy(float, na_value=np.nan)
    return values


def _rests(intervals: Floats, busy_us: Floats) -> bool:
    """Whether the sending thread rests behind most batches: the queue on the device is full, which paces it."""
    return 2 * int((intervals - np.nan_to_num(busy_us[1:]) >= CUT_TIMES * ROUNDING_US).sum()) > len(intervals)


def _filled(intervals: Floats, busy_us: Floats) -> int:
    """How many batches were sent before the sending thread first rested, where it rests behind most batches from then
    on: until then it fills the queue on the device and runs ahead of it, and afterwards the device sets the pace. 1
    where it is waited for itself, or never rests for longer than cut times can hide."""
    rests = intervals - np.nan_to_num(busy_us[1:]) >= CUT_TIMES * ROUNDING_US
    first = int(rests.argmax()) + 1
    behind = rests[first:]
    return first + 1 if behind.size >= DRAIN_BATCHES and 2 * behind.sum() > behind.size else 1


def _drained(sizes: Floats) -> int:
    """How many batches at the end found the queue smaller each time: nothing arrived."""
    count = 0
    for before, after in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
        if not after < before:
            break
        count += 1
    return count


def read_batches(rank: Rank) -> BatchTimes | None:
    """The rank's batches; None where none were recorded."""
    frame = rank.read("batches")
    if frame is None or frame.empty:
        return None
    mode = str(frame["mode"].iloc[0])
    sizes, capacity = _column(frame, "queue_size"), _column(frame, "queue_capacity")
    wait, push, time = (_column(frame, name) for name in ("pipeline_us", "push_us", "time_ns"))
    room = int(np.nanmedian(capacity)) if np.isfinite(capacity).any() else None
    found = _times_of(mode, time / 1e3, wait, push, sizes, room, _in_a_row(frame))
    if mode == "sink" and room and len(time) <= room and not _rests(np.diff(time / 1e3), wait + push):
        found = replace(found, step_us=None, step_mean_us=None, jitter=None, is_ahead=True)
    fetches = read_fetches(rank) if mode == "sink" else None
    if fetches is None or fetches.starts_us is None or fetches.ends_us is None:
        return found
    return as_fetched(found, time / 1e3 if found.wall_us else np.empty(0), fetches.starts_us, fetches.ends_us)


def fetched_batches(rank: Rank, room: int | None) -> BatchTimes | None:
    """The rank's batches as its timeline shows the loop's calls for them, with a queue of `room` before the loop; None
    where it shows none. How full the queue was is not in it."""
    trace = load_trace(rank) if rank.has("trace") else None
    if trace is None:
        return None
    start, end = trace.host.called(BATCH_FETCH)
    time, wait = end / 1e3, (end - start) / 1e3
    unknown = np.full(len(time), np.nan)
    follows = np.ones(max(len(time) - 1, 0), bool)
    return _times_of("iterator", time, wait, unknown, unknown, room, follows) if len(time) > 1 else None


def _in_a_row(frame: Any) -> Mask:
    """Which batches follow the one before, by their numbers: behind rows that were lost lies no interval of one
    batch."""
    apart = np.nan_to_num(np.diff(_column(frame, "batch")), nan=1.0)
    found: Mask = apart <= max(1.0, float(np.median(apart)) if apart.size else 1.0)
    return found


def _times_of(
    mode: str, time: Floats, wait: Floats, push: Floats, sizes: Floats, room: int | None, follows: Mask
) -> BatchTimes:
    """What times of delivery, waits, pushes (microseconds) and queue sizes, one for each batch, say together. `follows`
    tells which of them are the next one behind the batch before."""
    n = len(time)
    timed = bool(np.isfinite(time).all()) and n > 1 and time[-1] > time[0]
    lead = 1
    if room and n > 3 * (room + 1):
        lead = room + 1
    if mode == "sink" and timed:
        lead = max(lead, _filled(np.diff(time), wait + push))
    tail = _drained(sizes)
    tail = tail if DRAIN_BATCHES <= tail < n - lead - DRAIN_BATCHES else 0
    steady = slice(lead if n > lead else 0, n - tail)
    queue = None
    if np.isfinite(sizes).any():
        # the first batch always finds an empty queue; where it is the only one, it is all there is
        known = sizes[np.isfinite(sizes)]
        queue = measure_queue(known[1:] if mode == "iterator" and len(known) > 1 else known, room, table="batches")
    intervals = np.diff(time) if timed else np.empty(0)
    first = max(steady.start, 1)
    one_apart = follows[first - 1 : steady.stop - 1] if timed else np.empty(0, bool)
    usable = intervals[first - 1 : steady.stop - 1][one_apart]
    waits = wait[steady][np.isfinite(wait[steady])]
    pushes = push[steady][np.isfinite(push[steady])]
    return BatchTimes(
        mode, n,
        step_us=float(np.median(usable)) if usable.size else None,
        step_mean_us=float(usable.mean()) if usable.size else None,
        wait_us=float(waits.mean()) if waits.size else None,
        wait_p95_us=float(np.percentile(waits, 95)) if waits.size else None,
        wait_longest_us=float(waits.max()) if waits.size else None,
        wait_spread=_participation(waits),
        push_us=float(pushes.mean()) if pushes.size else None,
        first_wait_us=float(wait[0]) if np.isfinite(wait[0]) else None,
        jitter=_jitter(usable),
        pauses=find_pauses(usable, wait[first : steady.stop][one_apart]) if mode == "iterator" and timed else None,
        undisturbed_us=float(np.median(intervals[-tail:])) if tail and timed and mode == "iterator" else None,
        wall_us=float(time[-1] - time[0] + (wait[0] if np.isfinite(wait[0]) else 0.0)) if timed else None,
        total_wait_us=float(np.nansum(wait)), steady=int(waits.size), queue=queue,
    )  # fmt: skip


def _participation(waits: Floats) -> float | None:
    """(Σw)² ÷ (n Σw²): 1 where every batch waits alike, 1/k where every k-th carries all of it."""
    if waits.size == 0 or not waits.any():
        return None
    return float(waits.sum() ** 2 / (waits.size * (waits**2).sum()))


def _jitter(intervals: Floats) -> float | None:
    """(95th percentile − median) ÷ median, as for steps; five intervals at least."""
    if intervals.size < 5 or np.median(intervals) <= 0:
        return None
    middle = np.median(intervals)
    return float((np.percentile(intervals, 95) - middle) / middle)
