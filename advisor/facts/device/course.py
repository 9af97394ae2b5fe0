"""The course of one rank's steps on its device, reduced: where it idled, how fast its kernels were, and one step as a
chain of computing segments and collectives that `replay.py` can run again.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import complement, measure, subtract, union
from advisor.basics.middle import middle_mean, middle_means
from advisor.basics.numbering import beginnings
from advisor.facts.base import Reduction
from advisor.facts.device.forward import communicator, gradients, in_forward, rounds
from advisor.facts.device.hops import Hops
from advisor.facts.device.kernel_time import timeline_of
from advisor.facts.device.waiting import owned
from advisor.facts.operators.kinds import is_fused_exchange, is_over_cache
from advisor.facts.recording.counts import is_cut
from advisor.knowledge.measuring import limit
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, Signature

MOST_WORDS = 48
"""Kernel signatures kept for comparing speed: the most expensive ones."""
ENDS = (
    limit("lateness", "shortest"), limit("lateness", "short"), limit("lateness", "long"), limit("lateness", "longest"),
)  # fmt: skip
"""Quantiles of a signature's calls that tell whether all of them are slower, or whether more are of the long kind."""
MOST_EXCHANGES = 3000
"""A step with more collectives is not replayed."""
ROUNDING_US = limit("course", "rounding_us")
"""Ends are start + duration, both rounded: what follows may seem to start a little before."""
RELEASE_NS = 60_000
"""A kernel that starts this soon after a collective's end, after idling, was waiting for it."""
AWAITED_SHARE, AWAITED_MOST_US = limit("course", "awaited_share"), limit("course", "awaited_most_us")
"""And so was one that starts within this part of the collective's own time, up to so much: the host itself waited."""


def is_data_fetch(signature: Signature) -> bool:
    """GetNext and its kin take the batch from the queue: their time is waiting for data, not computation."""
    return "getnext" in signature.type.lower().replace("_", "")


@dataclass(frozen=True)
class Chain:
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

    @property
    def working(self) -> Floats:
        """`busy` without waiting for data."""
        return self.busy - self.fetching if self.fetching.size else self.busy

    @property
    def computes(self) -> Mask:
        """Which events are computing segments."""
        return np.array([not name for name in self.name], bool)


@dataclass(frozen=True)
class Course:
    """One rank, step by step."""

    steps: tuple[str, ...]
    computing_us: Floats
    fetching_us: Floats
    """Time in which GetNext kernels ran alone, waiting for the data queue; part of computing."""
    lead_us: Floats
    """Idle before the first kernel, from the end of the step before; NaN for the first step, and where something ran
    in between that belongs to no step, or a step is missing."""
    gap_us: Floats
    """Idle inside the step, with neither kernel nor collective running."""
    exposed_us: Floats
    kernels: Ints
    speed: dict[tuple[str, str], tuple[float, float]]
    """(type, input shapes) -> (kernels a step, usual microseconds: the mean of the middle third)."""
    exposed_by_name: tuple[dict[str, float], ...] = ()
    """Per step: collective -> exposed microseconds; empty where kernels are missing that may have hidden it."""
    chain: Chain | None = None
    sources: tuple[Source, ...] = ()
    expected_us: Floats = field(default_factory=lambda: np.zeros(0))
    """What the step's kernels take, each at what its type and shapes usually take, attention over a cache apart; NaN
    where shapes are not told."""
    measured_us: Floats = field(default_factory=lambda: np.zeros(0))
    """What these kernels took."""

    complete: bool = True
    """The profiler's own statistic counts no more kernels than these."""
    marked: bool = True
    """Steps are told apart, by the kernels or a timeline; else the whole recording is the step "0"."""
    awaiting_us: Floats = field(default_factory=lambda: np.zeros(0))
    """Time in kernels that compute and communicate in one, part of computing: waiting for the others is inside."""
    in_forward: dict[str, float] = field(default_factory=dict)
    """Communicator -> the part of its reductions that forward passes start, where kernels tell."""
    forward_us: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    """Start and end of each forward pass of the chain's step, microseconds from its origin, where names tell."""
    updates: int = 0
    """How often the chain's step updates the weights, a forward pass before each; 0 where no names tell."""
    trains: Mask = field(default_factory=lambda: np.zeros(0, bool))
    """Per step: whether a kernel of it has the name of a gradient or of an update."""
    ends: dict[tuple[str, str], Floats] = field(default_factory=dict)
    """(type, input shapes), as in `speed` -> microseconds at `ENDS`: what its shortest and its longest calls take."""
    rest_us: dict[str, float] = field(default_factory=dict)
    """Type -> microseconds a step in signatures that `speed` leaves out."""
    beside_by_name: tuple[dict[str, float], ...] = ()
    """As `exposed_by_name`: hop of a ring -> microseconds of attention that it could run beside (`Hops.beside`)."""

    @property
    def passes(self) -> int:
        """Forward passes of the chain's step; 0 where no names tell."""
        return len(self.forward_us)

    @property
    def span_us(self) -> Floats:
        """Per step: from its first kernel to the end of its last one."""
        return self.computing_us + self.exposed_us + self.gap_us

    def exposed_in(self, steps: Container[str]) -> dict[str, float]:
        """Collective -> exposed microseconds a step, the mean over these of the course's steps."""
        return self._mean(self.exposed_by_name, steps)

    def beside_in(self, steps: Container[str]) -> dict[str, float]:
        """Hop of a ring -> microseconds of attention a step that it could run beside, the mean over these steps."""
        return self._mean(self.beside_by_name, steps)

    def _mean(self, by_name: tuple[dict[str, float], ...], steps: Container[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        told = zip(self.steps, by_name, strict=True) if by_name else ()
        chosen = [names for step, names in told if step in steps]
        for names in chosen:
            for name, us in names.items():
                found[name] = found.get(name, 0.0) + us / len(chosen)
        return found

    def pace(self, steps: Sequence[str]) -> Floats:
        """For each of these steps, how many times as long as at their usual the same kernels take; NaN where nothing
        tells."""
        place = {step: i for i, step in enumerate(self.steps)}
        rows = [place.get(step, -1) for step in steps]
        return np.array([
            self.measured_us[i] / self.expected_us[i] if i >= 0 and self.expected_us[i] > 0 else np.nan for i in rows
        ])  # fmt: skip


COURSE = Reduction("replay", Course)


def reduce_course(rank: Rank) -> Course | None:
    """The course from kernel_details.csv; None where it holds no kernel with a start."""
    timeline = timeline_of(rank)
    if timeline is None or not len(timeline.kernels):
        return None
    kernels, windows = timeline.kernels, timeline.windows
    communication = timeline.communication
    placed = kernels.start >= 0
    if not placed.any():
        return None
    whole = timeline.whole
    interrupted = {int(i) + 1 for i in np.flatnonzero(windows.end[:-1] < windows.start[1:])}
    by_step = _by_step(kernels, placed)
    order = list(by_step)
    fetch = np.array([is_data_fetch(s) for s in kernels.signatures])[kernels.signature]
    fused = np.array([is_fused_exchange(s.type) for s in kernels.signatures])[kernels.signature]
    rows: list[tuple[float, ...]] = []
    exposed_by_name: list[dict[str, float]] = []
    beside_by_name: list[dict[str, float]] = []
    hops = Hops(kernels)
    reductions = np.array(["reduce" in name.lower() for name in kernels.names], bool)
    previous = None
    for step, inside in by_step.items():
        talking = communication[inside]
        work, talks = inside[~talking], inside[talking]
        busy = union(kernels.start[work], kernels.end[work])
        fetched = fetch[work]
        other = work[~fetched]
        fetching = measure(busy) - measure(union(kernels.start[other], kernels.end[other])) if fetched.any() else 0
        talk = union(kernels.start[talks], kernels.end[talks])
        every = union(np.concatenate((busy[0], talk[0])), np.concatenate((busy[1], talk[1])))
        low, high = int(every[0][0]) if every[0].size else 0, int(every[1][-1]) if every[1].size else 0
        lead = np.nan if previous is None or step in interrupted else max(low - previous, 0) / 1000
        gap = measure(complement(every, low, high)) / 1000
        alone = subtract(talk, busy)
        rows.append(
            (
                measure(busy) / 1000,
                fetching / 1000,
                lead,
                gap,
                measure(alone) / 1000,
                len(work),
                float(kernels.duration[inside[fused[inside]]].sum()),
            )
        )
        previous = high
        talks = _once(kernels, talks[: 4 * MOST_EXCHANGES])
        sums = reductions[kernels.name[talks]]
        exposed = owned(kernels.start[talks], kernels.end[talks], busy, RELEASE_NS, sums) / 1000
        by_name: dict[str, float] = {}
        for name, own in zip(kernels.name[talks].tolist(), exposed.tolist(), strict=True):
            by_name[kernels.names[name]] = by_name.get(kernels.names[name], 0.0) + own
        exposed_by_name.append(by_name)
        beside_by_name.append(hops.beside(work, talks, exposed))
    columns = np.array(rows, float).T
    working = placed & ~communication & ~fetch & ~fused
    told = working & ~np.array([is_over_cache(s.type) for s in kernels.signatures], bool)[kernels.signature]
    steps = tuple(kernels.steps[s] or "0" for s in order)
    middle = order[len(order) // 2]
    computing = np.flatnonzero(placed & ~communication)
    gradient = gradients(kernels, computing)
    trains = np.array([bool(gradient[inside].any()) for inside in by_step.values()], bool)
    speed, ends, rest = _speeds(kernels, working, len(order)) if whole else ({}, {}, {})
    # ranks meet inside of fused kernels, which no chain of segments and collectives tells
    chain, forward_us, updates = None, np.zeros((0, 2)), 0
    if whole and not fused.any():
        inside = by_step[middle]
        chain = _chain(kernels, communication, inside, kernels.steps[middle] or "0")
        if chain is not None and fetch[inside].any():
            chain = replace(chain, fetching=_fetching(chain, kernels, inside[fetch[inside]]))
    if whole:
        passes, updates = rounds(kernels, gradient, by_step[middle][~communication[by_step[middle]]])
        forward_us = (passes - (chain.origin_ns if chain is not None else 0)) / 1000
    return Course(
        steps, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5].astype(np.int64),
        speed, tuple(exposed_by_name) if whole else (), chain,
        (rank.source("kernels", "duration_us", "start_ns", "step", steps=steps),), *_expected(kernels, told, order),
        not is_cut(rank, kernels), timeline.placed is not None and bool(timeline.placed.marks),
        columns[6],
        # names tell it where rows are missing, too
        in_forward(kernels, gradient, computing, np.flatnonzero(placed & communication)),
        forward_us, updates, trains, ends, rest, tuple(beside_by_name) if whole else (),
    )  # fmt: skip


def _fetching(chain: Chain, kernels: Kernels, fetches: Ints) -> Floats:
    """What these kernels take of each computing segment in which they start, microseconds."""
    segments = np.flatnonzero(chain.computes)
    begin = (kernels.start[fetches] - chain.origin_ns) / 1000
    at = segments[np.maximum(np.searchsorted(chain.start[segments], begin + ROUNDING_US, "right") - 1, 0)]
    return np.minimum(np.bincount(at, kernels.duration[fetches], len(chain.name)), chain.busy)


def _by_step(kernels: Kernels, placed: Mask) -> dict[int, Ints]:
    """Step -> places of its kernels, the steps in the order in which they begin."""
    at = np.flatnonzero(placed)
    at = at[np.argsort(kernels.step[at], kind="stable")]
    parts = np.split(at, np.flatnonzero(np.diff(kernels.step[at])) + 1)
    return {int(kernels.step[part[0]]): part for part in sorted(parts, key=lambda part: int(part[0]))}


def _once(kernels: Kernels, rows: Ints) -> Ints:
    """The rows without those that repeat another one's name and times: the same time is exposed once."""
    columns = kernels.name[rows], kernels.start[rows], kernels.end[rows]
    order = np.lexsort(columns)  # of equal ones, the first stays first
    new = np.ones(len(rows), bool)
    new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    return np.sort(rows[order[new]])


def _speeds(
    kernels: Kernels, chosen: Mask, steps: int
) -> tuple[dict[tuple[str, str], tuple[float, float]], dict[tuple[str, str], Floats], dict[str, float]]:
    """The most expensive signatures with their count a step and usual duration, and with `Course.ends`, and
    `Course.rest_us` of the others. Where no type is told (Level 0), the kernels' names tell which are alike, and their
    shapes are unknown."""
    typed = np.array([bool(s.type) for s in kernels.signatures], bool)[kernels.signature[chosen]]
    if 2 * typed.sum() > typed.size:
        keys, of = [(s.type, s.input_shapes) for s in kernels.signatures], kernels.signature
    else:
        operators, operator = kernels.operators()
        keys, of = [(name, "") for name in operators], operator[kernels.name]
    alike, duration = of[chosen], kernels.duration[chosen]
    totals = np.bincount(alike, weights=duration, minlength=len(keys))
    found, ends = {}, {}
    rest: dict[str, float] = {}
    ranked = np.argsort(-totals)
    for index in ranked[MOST_WORDS:]:
        if totals[index] > 0:
            rest[keys[index][0]] = rest.get(keys[index][0], 0.0) + float(totals[index]) / steps
    for index in ranked[:MOST_WORDS]:
        mine = duration[alike == index]
        if mine.size and totals[index] > 0:
            found[keys[index]] = (mine.size / steps, middle_mean(mine))
            ends[keys[index]] = np.quantile(mine, ENDS)
    return found, ends, rest


def _expected(kernels: Kernels, chosen: Mask, order: list[int]) -> tuple[Floats, Floats]:
    """Per step: the kernels at what their type and shapes usually take, and as measured. A larger batch raises both, a
    slower card only what is measured."""
    shaped = kernels.shaped()
    if not (chosen & shaped).sum() > chosen.sum() / 2:
        return np.full(len(order), np.nan), np.full(len(order), np.nan)
    at = np.flatnonzero(chosen & shaped)
    at = at[np.lexsort((kernels.duration[at], kernels.signature[at]))]
    signature, duration = kernels.signature[at], kernels.duration[at]
    first = beginnings(signature)
    usual = np.repeat(middle_means(duration, first), np.diff(np.append(first, len(signature))))
    step = kernels.step[at]
    size = int(max(order)) + 1
    sums = [np.bincount(step, values, size).astype(np.float64)[order] for values in (usual, duration)]
    return sums[0], sums[1]


def _soon(begin: Floats, end: Floats) -> Floats:
    """How long behind each collective's end an event may start that it released."""
    soon: Floats = np.clip(AWAITED_SHARE * (end - begin), RELEASE_NS / 1000, AWAITED_MOST_US)
    return soon


def _releasing(begin: Floats, end: Floats, soon: Floats, computed: float, start: float) -> Ints:
    """Of the collectives, in order of start, those whose end may have let an event start: later than the computation
    before it, so `soon` before. What follows computation at once waited for no end behind its own start."""
    before = int(begin.searchsorted(start))
    end, soon = end[:before], soon[:before]
    rounded = ROUNDING_US if start - computed > ROUNDING_US else 0.0
    near = (end <= start + rounded) & (start - end < soon)
    return ((end > computed) & near).nonzero()[0]


def _alone(begin: Floats, ends: Floats, start: float, end: float) -> bool:
    """Whether no kernel runs beside a collective: computing had ended when it started and waits for its end. Such a one
    was released by the computing before it, however soon it follows another of its communicator."""
    before = int(np.searchsorted(begin, start + ROUNDING_US, "right"))
    until = int(np.searchsorted(begin, end - ROUNDING_US, "left"))
    return until <= before and (not before or float(ends[before - 1]) <= start + ROUNDING_US)


def _chain(kernels: Kernels, communication: Mask, inside: Ints, step: str) -> Chain | None:
    """One step as segments and collectives; None where it has no collective, or too many."""
    talks, work = inside[communication[inside]], inside[~communication[inside]]
    if not 0 < len(talks) <= MOST_EXCHANGES or not len(work):
        return None
    origin = int(min(kernels.start[talks[0]], kernels.start[work[0]]))
    begin, end = (kernels.start - origin) / 1000, (kernels.end - origin) / 1000
    talk_begin, talk_end = begin[talks], end[talks]
    soon = _soon(talk_begin, talk_end)
    events: list[tuple[float, str, float, float, float, int]] = []
    """(start, name, busy, gap, lag, place of the releasing collective among `talks`)"""
    at = 0
    ends = np.maximum.accumulate(end[work])
    starts, stops, frees = begin[work].tolist(), end[work].tolist(), ends.tolist()
    # what a collective's end lets start lies behind that end, though rounding has it start a little before
    parted = np.searchsorted(np.sort(talk_begin), begin[work], "right")
    between = (parted + np.searchsorted(np.sort(talk_end), begin[work] + ROUNDING_US, "right")).tolist()
    while at < len(work):
        first = at
        start = starts[first]
        free = frees[first - 1] if first else 0.0
        busy, gap = stops[at] - start, 0.0
        while at + 1 < len(work) and between[at + 1] == between[first]:
            pause = starts[at + 1] - frees[at]
            if pause >= 0:
                gap += pause
                busy += stops[at + 1] - starts[at + 1]
            else:
                busy += max(stops[at + 1] - frees[at], 0.0)
            at += 1
        releasing = _releasing(talk_begin, talk_end, soon, free, start)
        if len(releasing):
            by = int(releasing[np.argmax(talk_end[releasing])])
            events.append((start, "", busy, gap, max(start - float(talk_end[by]), 0.0), by))
        else:
            events.append((start, "", busy, gap, max(start - free, 0.0), -1))
        at += 1
    segments = len(events)
    groups = np.array([communicator(kernels.names[kernels.name[i]]) for i in talks], object)
    work_begin = begin[work]
    released: list[int] = [e[5] for e in events]
    for i in talks:
        label = kernels.names[kernels.name[i]].rpartition("/")[2]
        start = float(begin[i])
        done = int(np.searchsorted(ends, start, "right"))
        computed = float(ends[done - 1]) if done else -np.inf
        # a communicator runs its operations one by one: what starts right after another of them was queued behind it
        queued = _releasing(talk_begin, talk_end, soon, -np.inf, start)
        same = groups[queued] == communicator(label)
        follows = (talk_end[queued] > computed) & (same | (talk_end[queued] <= start))
        # behind a longer pause whatever computing ended in between let it start
        beside = (start - talk_end[queued] <= RELEASE_NS / 1000) & (not _alone(work_begin, ends, start, float(end[i])))
        queued = queued[(beside & same) | follows]
        if len(queued):
            released.append(int(queued[np.argmax(talk_end[queued])]))
            lag = max(start - float(talk_end[released[-1]]), 0.0)
        else:
            released.append(-1)
            lag = max(start - computed, 0.0) if done else start
        events.append((start, label, float(end[i] - begin[i]), 0.0, lag, 0))
    order = sorted(range(len(events)), key=lambda n: (events[n][0], n < segments))
    place = {n - segments: at for at, n in enumerate(order) if n >= segments}
    after = np.array([place[released[n]] if released[n] >= 0 else -1 for n in order], np.int64)
    events = [events[n] for n in order]
    lags, computed = [e[4] for e in events], 0.0
    for number, (start, label, busy, gap, _, _) in enumerate(events):
        if not label:
            computed = start + busy + gap
        elif after[number] < 0:
            # below 0 where a kernel launched before the collective runs on beside it
            lags[number] = start - computed
    return Chain(
        step, tuple(e[1] for e in events), np.array([e[0] for e in events]), np.array([e[2] for e in events]),
        np.array([e[3] for e in events]), np.array(lags), after, origin,
    )  # fmt: skip
