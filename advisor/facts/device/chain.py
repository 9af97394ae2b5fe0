"""One step of a rank as a chain of computing segments and collectives, which a replay can run again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.facts.device.forward import communicator
from advisor.knowledge.measuring import limit
from advisor.sources.streams.kernels import Kernels

MOST_EXCHANGES = 3000
"""A step with more collectives is not replayed."""
ROUNDING_US = limit("course", "rounding_us")
"""Ends are start + duration, both rounded: what follows may seem to start a little before."""
RELEASE_NS = 60_000
"""A kernel that starts this soon after a collective's end, after idling, was waiting for it."""
NOTABLE = limit("course", "notable_type")
"""Part of the step's computing from which on it is told where kernels of one type lie."""
AWAITED_SHARE, AWAITED_MOST_US = limit("course", "awaited_share"), limit("course", "awaited_most_us")
"""And so was one that starts within this part of the collective's own time, up to so much: the host itself waited."""


class Chain(Struct, frozen=True):
    """One step as a list of events in order of start: computing segments and collectives, microseconds.

    A segment is kernels that run on end with nothing but `gap` between them. `after` is the collective (its place in
    the list) whose end let the event start, −1 for none; `lag` the time from there, or else from the end of the
    computation before, to the start.
    """

    step: str
    name: tuple[str, ...]
    """Empty for a computing segment."""
    start: Floats
    busy: Floats
    gap: Floats
    lag: Floats
    after: Ints
    origin_ns: int = 0
    """When the first event started, on the host's clock."""
    fetching: Floats = field(default_factory=lambda: np.zeros(0))
    """What of `busy` GetNext takes, which waits for data; empty where no kernel fetches any."""
    of_type: dict[str, Floats] = field(default_factory=dict)
    """Operator type -> what of `busy` its kernels take, of the types that take a notable part of the step."""

    @property
    def working(self) -> Floats:
        """`busy` without waiting for data."""
        return self.busy - self.fetching if self.fetching.size else self.busy

    @property
    def computes(self) -> Mask:
        """Which events are computing segments."""
        return np.array([not name for name in self.name], bool)


class _Event(NamedTuple):
    """A segment (without a name) or a collective; microseconds from the chain's origin."""

    start: float
    name: str
    busy: float
    gap: float
    lag: float
    released_by: int
    """The place of the collective whose end let it start, among the step's; −1 for none."""


class _Step(Struct, frozen=True):
    """The kernels of a step that compute, and its collectives, in order of start; microseconds from the origin."""

    begin: Floats
    """Starts of what computes; `end` its ends, `free` the latest end so far."""
    end: Floats
    free: Floats
    talk_begin: Floats
    talk_end: Floats
    label: tuple[str, ...]
    """Names of the collectives, without scopes."""
    soon: Floats
    """How long behind each collective's end an event may start that it released."""

    def releasing(self, computed: float, start: float) -> Ints:
        """Of the collectives those whose end may have let an event start: later than the computation before it, so
        `soon` before. What follows computation at once waited for no end behind its own start."""
        before = int(self.talk_begin.searchsorted(start))
        end, soon = self.talk_end[:before], self.soon[:before]
        rounded = ROUNDING_US if start - computed > ROUNDING_US else 0.0
        near = (end <= start + rounded) & (start - end < soon)
        return ((end > computed) & near).nonzero()[0]

    def last(self, places: Ints) -> int:
        """Which of these collectives ends last; −1 for none."""
        return int(places[np.argmax(self.talk_end[places])]) if len(places) else -1

    def is_alone(self, start: float, end: float) -> bool:
        """Whether no kernel runs beside a collective: computing had ended when it started and waits for its end. Such a
        one was released by the computing before it, however soon it follows another of its communicator."""
        before = int(np.searchsorted(self.begin, start + ROUNDING_US, "right"))
        until = int(np.searchsorted(self.begin, end - ROUNDING_US, "left"))
        return until <= before and (not before or float(self.free[before - 1]) <= start + ROUNDING_US)


def chain_of(kernels: Kernels, communication: Mask, inside: Ints, fetch: Mask, step: str) -> Chain | None:
    """One step as segments and collectives; None where it has no collective, or too many. `inside` are its kernels,
    `fetch` which of all wait for data."""
    talks, work = inside[communication[inside]], inside[~communication[inside]]
    if not 0 < len(talks) <= MOST_EXCHANGES or not len(work):
        return None
    origin = int(min(kernels.start[talks[0]], kernels.start[work[0]]))
    begin, end = (kernels.start - origin) / 1000, (kernels.end - origin) / 1000
    soon: Floats = np.clip(AWAITED_SHARE * (end - begin)[talks], RELEASE_NS / 1000, AWAITED_MOST_US)
    labels = tuple(kernels.names[i].rpartition("/")[2] for i in kernels.name[talks].tolist())
    parts = _Step(begin[work], end[work], np.maximum.accumulate(end[work]), begin[talks], end[talks], labels, soon)
    segments = _segments(parts)
    chain = _joined(step, segments, _collectives(parts), origin)
    fetches = inside[fetch[inside]]
    if len(fetches):
        chain = replace(chain, fetching=_lying_in(chain, kernels, fetches))
    return replace(chain, of_type=_by_type(chain, kernels, work[~fetch[work]]))


def _segments(step: _Step) -> list[_Event]:
    """What computes on end, no collective starting or ending in between."""
    # what a collective's end lets start lies behind that end, though rounding has it start a little before
    parted = np.searchsorted(np.sort(step.talk_begin), step.begin, "right")
    ended = np.searchsorted(np.sort(step.talk_end), step.begin + ROUNDING_US, "right")
    between = (parted + ended).tolist()
    starts, stops, frees = step.begin.tolist(), step.end.tolist(), step.free.tolist()
    events, at = [], 0
    while at < len(starts):
        first, start = at, starts[at]
        computed = frees[first - 1] if first else 0.0
        busy, gap = stops[at] - start, 0.0
        while at + 1 < len(starts) and between[at + 1] == between[first]:
            pause = starts[at + 1] - frees[at]
            if pause >= 0:
                gap += pause
                busy += stops[at + 1] - starts[at + 1]
            else:
                busy += max(stops[at + 1] - frees[at], 0.0)
            at += 1
        by = step.last(step.releasing(computed, start))
        behind = computed if by < 0 else float(step.talk_end[by])
        events.append(_Event(start, "", busy, gap, max(start - behind, 0.0), by))
        at += 1
    return events


def _collectives(step: _Step) -> list[_Event]:
    """The collectives, each with the one that it was queued behind."""
    groups = np.array([communicator(label) for label in step.label], object)
    events = []
    each = zip(step.label, groups, step.talk_begin.tolist(), step.talk_end.tolist(), strict=True)
    for label, group, start, end in each:
        done = int(np.searchsorted(step.free, start, "right"))
        computed = float(step.free[done - 1]) if done else -np.inf
        # a communicator runs its operations one by one: what starts right after another of them was queued behind it
        queued = step.releasing(-np.inf, start)
        same, ends = groups[queued] == group, step.talk_end[queued]
        rounded = ROUNDING_US if start - computed > ROUNDING_US else 0.0
        follows = (ends > computed) & (same | (ends <= start + rounded))
        # behind a longer pause whatever computing ended in between let it start
        beside = (start - ends <= RELEASE_NS / 1000) & (not step.is_alone(start, end))
        by = step.last(queued[(beside & same) | follows])
        behind = float(step.talk_end[by]) if by >= 0 else computed if done else 0.0
        lag = start - behind if by < 0 and not done else max(start - behind, 0.0)
        events.append(_Event(start, label, end - start, 0.0, lag, by))
    return events


def _joined(step: str, segments: list[_Event], collectives: list[_Event], origin_ns: int) -> Chain:
    """All events in order of start; of those that start at once segments stand behind collectives."""
    both = [*segments, *collectives]
    order = sorted(range(len(both)), key=lambda n: (both[n].start, n < len(segments)))
    place = {n - len(segments): at for at, n in enumerate(order) if n >= len(segments)}
    events = [both[n] for n in order]
    after = [place[event.released_by] if event.released_by >= 0 else -1 for event in events]
    lags, computed = [event.lag for event in events], 0.0
    for number, event in enumerate(events):
        if not event.name:
            computed = event.start + event.busy + event.gap
        elif after[number] < 0:
            # below 0 where a kernel launched before the collective runs on beside it
            lags[number] = event.start - computed
    return Chain(
        step, tuple(event.name for event in events), np.array([event.start for event in events]),
        np.array([event.busy for event in events]), np.array([event.gap for event in events]), np.array(lags),
        np.array(after, np.int64), origin_ns,
    )  # fmt: skip


def _lying_in(chain: Chain, kernels: Kernels, rows: Ints) -> Floats:
    """What these kernels take of each computing segment in which they start, microseconds."""
    segments = np.flatnonzero(chain.computes)
    begin = (kernels.start[rows] - chain.origin_ns) / 1000
    at = segments[np.maximum(np.searchsorted(chain.start[segments], begin + ROUNDING_US, "right") - 1, 0)]
    return np.minimum(np.bincount(at, kernels.duration[rows], len(chain.name)), chain.busy)


def _by_type(chain: Chain, kernels: Kernels, work: Ints) -> dict[str, Floats]:
    """The same of the kernels of each notable type."""
    types, of = np.unique([signature.type for signature in kernels.signatures], return_inverse=True)
    each = of[kernels.signature[work]]
    took = np.bincount(each, kernels.duration[work], len(types))
    notable = np.flatnonzero(took >= max(NOTABLE * float(took.sum()), 1e-9))
    return {str(types[one]): _lying_in(chain, kernels, work[each == one]) for one in notable.tolist()}
