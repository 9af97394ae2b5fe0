"""The kernels with a link to their launch: when the host launched each, and since when its device had nothing to do."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import Intervals, union
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.device.kernel_time import Timeline
from advisor.facts.recording.counts import types_of
from advisor.facts.step.from_kernels import reduce as reduce_steps
from advisor.knowledge.measuring import limit
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.rank_trace import device_lanes
from advisor.sources.streams.trace import Trace

UNDER_WAY = limit("launches", "under_way")
"""A kernel that starts within this many launch intervals of its launch had no other one queued before it: the host was
not ahead, even if it began the launch before the device ran dry (each launch takes longer than a kernel)."""

_ROUNDING_NS = 1000
"""Links and tasks tell one start with their own rounding."""


class Linked(Struct, frozen=True):
    """The computing kernels with a link to their launch, and the steps they are in; nanoseconds."""

    launched: Ints
    start: Ints
    before: Ints
    """When all earlier work had ended; the kernel's start where none is before it."""
    step: Ints
    names: tuple[str, ...]
    lengths_us: Floats
    """Each step with the wait before it."""
    ends: Ints
    kernel_us: float
    source: Source
    duration_us: Floats = field(default_factory=lambda: np.zeros(0))
    """Of each kernel; empty, as the two below, where lanes alone tell of the device."""
    kinds: tuple[str, ...] = ()
    kind: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Operator types, and each kernel's among them."""
    exchanges: bool = False
    """Whether collectives run on the device as well."""


class Turns(Struct, frozen=True):
    """Of each kernel: idle microseconds before it, whether it lay in the device's queue, and whether it came late."""

    gap_us: Floats
    ahead: Mask
    late: Mask
    turn_us: float
    """What the device takes from one queued kernel to the next."""


class Awaited(Struct, frozen=True):
    """The work that anything waits for; all other work could be done sooner, and the next launch would come no sooner
    for it."""

    kernels: Mask
    us: Floats
    """Per step: how long it is waited for."""
    between_us: float
    """How long none of these kernels ran within that work."""


def linked_of(rank: Rank, trace: Trace) -> Linked | None:
    """The rank's kernels with their launches; None where there are none."""
    timeline = work_of(rank)
    found = _on_lanes(rank, trace) if timeline is None else _among_kernels(rank, timeline, trace)
    return found if found is not None and found.start.size else None


def turns(linked: Linked) -> Turns:
    """Whether the host was ahead, kernel by kernel."""
    gap = np.maximum(linked.start - linked.before, 0) / 1000
    lead = (linked.start - linked.launched) / 1000
    interval = np.diff(np.sort(linked.launched)) / 1000
    near = lead <= UNDER_WAY * float(np.median(interval)) if interval.size else np.zeros(lead.size, bool)
    ahead = (linked.launched < linked.before) & ~near
    turn = float(np.median(gap[ahead])) if ahead.any() else 0.0
    return Turns(gap, ahead, ~ahead & (gap > turn), turn)


def awaited(linked: Linked, late: Mask, waits: Intervals) -> Awaited:
    """Walked back from the end of the recording: through the device's work to a kernel that was launched late, from its
    launch on the host to the last call before it that `waits` for what the device was doing, and on from there."""
    order = np.argsort(linked.start, kind="stable")
    start, launched = linked.start[order], linked.launched[order]
    until = np.append(linked.before[order][1:], linked.ends.max())
    opens = np.maximum.accumulate(np.where(late[order], np.arange(start.size), 0))
    by_end = np.argsort(waits[1], kind="stable")
    begun, ended = waits[0][by_end], waits[1][by_end]
    last = np.searchsorted(start, ended, side="right") - 1
    done = np.minimum(until[last], ended)
    waited = (last >= 0) & (done > begun)  # the device still ran: else nobody waited for that
    begun, ended, last, done = begun[waited], ended[waited], last[waited], done[waited]
    found, us, spans = np.zeros(start.size, bool), np.zeros(len(linked.names)), 0.0
    at, since, end, left = start.size - 1, start[0], until[-1], len(ended)
    while True:
        first = opens[at]
        found[first : at + 1] = True
        us[linked.step[order[at]]] += max(end - max(start[first], since), 0) / 1000
        spans += (end - start[first]) / 1000
        left = int(np.searchsorted(ended[:left], launched[first], side="right")) - 1 if first else -1
        if left < 0:
            break
        at, since, end = min(last[left], first - 1), begun[left], done[left]
    kernels = np.zeros(start.size, bool)
    kernels[order] = found
    ran = float(linked.duration_us[kernels].sum()) if linked.duration_us.size else 0.0
    return Awaited(kernels, us, max(spans - ran, 0.0))


def _among_kernels(rank: Rank, timeline: Timeline, trace: Trace) -> Linked:
    kernels = timeline.kernels
    known = np.flatnonzero(kernels.start >= 0)
    at = _matching(kernels.start[known], trace.started)
    found = at >= 0
    index, launched = known[at[found]], trace.launched[found]
    computing = ~timeline.communication[index]
    index, launched = index[computing], launched[computing]
    busy_until = np.maximum.accumulate(kernels.end)
    before = np.where(index > 0, busy_until[np.maximum(index - 1, 0)], kernels.start[index])
    before = np.where(before < 0, kernels.start[index], before)
    kinds, kind = types_of(kernels)
    return Linked(
        launched, kernels.start[index], before, timeline.windows.of[index], timeline.windows.names,
        _lengths(timeline, busy_until), timeline.windows.end,
        float(kernels.duration[index].mean()) if index.size else 0.0, work_source(rank, "start_ns", "duration_us"),
        kernels.duration[index], tuple(kinds), kind[index], bool(timeline.communication.any()),
    )  # fmt: skip


def _on_lanes(rank: Rank, trace: Trace) -> Linked | None:
    """The same where the timeline alone tells of the device: its lanes show when it ran dry, and the links which task
    came next."""
    lanes, found = device_lanes(rank), reduce_steps(rank)
    if lanes is None or found is None or not found.steps:
        return None
    (begin, end), (talk_begin, talk_end) = lanes
    first, last = (np.array([getattr(row, name) for row in found.steps], np.int64) for name in ("start_ns", "end_ns"))
    talks = _within(trace.started, talk_begin, talk_end) & ~_within(trace.started, begin, end)
    step = np.searchsorted(first, trace.started, side="right") - 1
    inside = ~talks & (step >= 0) & (trace.started <= last[np.maximum(step, 0)])
    start, launched, step = trace.started[inside], trace.launched[inside], step[inside]
    low, high = union(np.concatenate((begin, talk_begin)), np.concatenate((end, talk_end)))
    place = np.searchsorted(low, start + _ROUNDING_NS, side="right") - 1
    opening = (place > 0) & (start - low[np.maximum(place, 0)] <= _ROUNDING_NS)
    before = np.where(opening, high[np.maximum(place - 1, 0)], start)
    lengths = np.zeros(len(first))
    for i in np.unique(step).tolist():
        mine = np.flatnonzero(step == i)
        lengths[i] = max(int(high[place[mine]].max()) - int(min(start[mine[0]], before[mine[0]])), 0) / 1000
    return Linked(
        launched, start, before, step, tuple(row.step for row in found.steps), lengths, last,
        float((end - begin).sum()) / 1000 / max(len(start), 1), found.sources[0], exchanges=bool(talk_begin.size),
    )  # fmt: skip


def _within(times: Ints, begin: Ints, end: Ints) -> Mask:
    """Which times lie in one of these intervals, which are sorted and apart."""
    if not begin.size:
        return np.zeros(times.size, bool)
    place = np.searchsorted(begin, times + _ROUNDING_NS, side="right") - 1
    return np.asarray((place >= 0) & (times <= end[np.maximum(place, 0)]))


def _lengths(timeline: Timeline, busy_until: Ints) -> Floats:
    """Each step with the wait before it, which its first kernel ends: from the end of all work before to that of its
    own, microseconds."""
    kernels, of = timeline.kernels, timeline.windows.of
    result = np.zeros(len(timeline.windows.names))
    for step in range(len(result)):
        own = np.flatnonzero((of == step) & (kernels.start >= 0))
        if own.size:
            begin = int(kernels.start[own[0]])
            before = int(busy_until[own[0] - 1]) if own[0] else -1
            begin = min(begin, before) if before >= 0 else begin
            result[step] = (int(kernels.end[own].max()) - begin) / 1000
    return result


def _matching(starts: Ints, wanted: Ints) -> Ints:
    """Position in sorted `starts` of each wanted start, -1 where there is none within a microsecond."""
    if not starts.size:
        return np.full(wanted.size, -1, np.int64)
    right = np.minimum(np.searchsorted(starts, wanted), starts.size - 1)
    left = np.maximum(right - 1, 0)
    best = np.where(np.abs(starts[left] - wanted) < np.abs(starts[right] - wanted), left, right)
    return np.where(np.abs(starts[best] - wanted) <= _ROUNDING_NS, best, -1)
