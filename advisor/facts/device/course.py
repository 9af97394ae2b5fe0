"""The course of one rank's steps on its device, reduced: where it idled, how fast its kernels were, and one step as a
chain of computing segments and collectives that `replay.py` can run again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import Intervals, complement, measure, subtract, union
from advisor.facts.base import Reduction
from advisor.facts.collectives.exchanges import kind_of, reduce_exchanges
from advisor.facts.device.chain import MOST_EXCHANGES, RELEASE_NS, Chain, chain_of
from advisor.facts.device.drawn import drawn_alone, work_of, work_source
from advisor.facts.device.forward import communicator, gradients, in_forward, rounds
from advisor.facts.device.hops import Hops
from advisor.facts.device.kernel_time import Timeline
from advisor.facts.device.speeds import expected, speeds
from advisor.facts.device.waiting import owned
from advisor.facts.operators.kinds import is_fused_exchange, is_over_cache
from advisor.facts.recording.counts import is_cut
from advisor.model import Source
from advisor.sources.base import Rank
from advisor.sources.streams.kernels import Kernels, Signature


def is_data_fetch(signature: Signature) -> bool:
    """GetNext and its kin take the batch from the queue: their time is waiting for data, not computation."""
    return "getnext" in signature.type.lower().replace("_", "")


_Key = TypeVar("_Key", str, tuple[str, str])


class Course(Struct, frozen=True):
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
    """Per step: collective -> exposed microseconds; empty where kernels are missing that may have hidden it. Of a rank
    whose collectives are thinned, those that are kept, each step's longest and the hops of a ring."""
    exposed_else: tuple[dict[tuple[str, str], float], ...] = ()
    """Per step: (kind, communicator) -> exposed microseconds of all the others."""
    collectives: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Per step: how many collectives it has; empty as `exposed_by_name`."""
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

    def exposed_else_in(self, steps: Container[str]) -> dict[tuple[str, str], float]:
        """(kind, communicator) -> what is exposed of those that `exposed_in` does not name."""
        return self._mean(self.exposed_else, steps)

    def beside_in(self, steps: Container[str]) -> dict[str, float]:
        """Hop of a ring -> microseconds of attention a step that it could run beside, the mean over these steps."""
        return self._mean(self.beside_by_name, steps)

    def _mean(self, by_name: tuple[dict[_Key, float], ...], steps: Container[str]) -> dict[_Key, float]:
        found: dict[_Key, float] = {}
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


def _alike(found: dict[int, Course]) -> dict[int, Course]:
    """Without those that timelines alone tell, where tables tell others: kernels of which nobody knows the shapes are
    like none whose shapes are told."""
    tables = {rank: course for rank, course in found.items() if not drawn_alone(course.sources)}
    return tables or found


COURSE = Reduction("replay", Course, settle=_alike)


class _Phases(NamedTuple):
    """One step's times, microseconds, as the fields of `Course`; `ends_ns` is when its last kernel ends."""

    computing: float
    fetching: float
    lead: float
    gap: float
    exposed: float
    kernels: int
    awaiting: float
    by_name: dict[str, float]
    beside: dict[str, float]
    ends_ns: int

    def named(self, kept: Container[str] | None) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """What is exposed of those collectives that are asked for by name, and by kind and communicator of all else;
        `kept` are the names that collectives have without their path, None for all."""
        if kept is None:
            return self.by_name, {}
        longest = max(self.by_name, key=self.by_name.__getitem__, default="")
        named, others = {}, defaultdict[tuple[str, str], float](float)
        for name, us in self.by_name.items():
            own = name.rpartition("/")[2]
            if own in kept or name in self.beside or name == longest:
                named[name] = us
            else:
                others[kind_of(own), communicator(own)] += us
        return named, dict(others)


def reduce_course(rank: Rank) -> Course | None:
    """The course from kernel_details.csv; None where it holds no kernel with a start."""
    timeline = work_of(rank)
    if timeline is None or not len(timeline.kernels):
        return None
    kernels, communication = timeline.kernels, timeline.communication
    placed = kernels.start >= 0
    if not placed.any():
        return None
    by_step = _by_step(kernels, placed)
    order = list(by_step)
    fetch = np.array([is_data_fetch(s) for s in kernels.signatures])[kernels.signature]
    fused = np.array([is_fused_exchange(s.type) for s in kernels.signatures])[kernels.signature]
    phases = list(_phases(timeline, by_step, fetch, fused))
    working = placed & ~communication & ~fetch & ~fused
    told = working & ~np.array([is_over_cache(s.type) for s in kernels.signatures], bool)[kernels.signature]
    computing = np.flatnonzero(placed & ~communication)
    gradient = gradients(kernels)
    usual, ends, rest = speeds(kernels, working, len(order)) if timeline.whole else ({}, {}, {})
    middle = order[len(order) // 2]
    inside = by_step[middle]
    chain, forward_us, updates = None, np.zeros((0, 2)), 0
    # ranks meet inside of fused kernels, which no chain of segments and collectives tells
    if timeline.whole and not fused.any():
        chain = chain_of(kernels, communication, inside, fetch, kernels.steps[middle] or "0")
    if timeline.whole:
        passes, updates = rounds(kernels, gradient, inside[~communication[inside]])
        forward_us = (passes - (chain.origin_ns if chain is not None else 0)) / 1000
    steps = tuple(kernels.steps[s] or "0" for s in order)
    expected_us, measured_us = expected(kernels, told, order)
    listed = reduce_exchanges(rank)
    kept = None if listed is None or listed.is_whole else {name.rpartition("/")[2] for name in listed.names}
    alone = [each.named(kept) for each in phases if timeline.whole]
    return Course(
        steps,
        computing_us=np.array([each.computing for each in phases]),
        fetching_us=np.array([each.fetching for each in phases]),
        lead_us=np.array([each.lead for each in phases]),
        gap_us=np.array([each.gap for each in phases]),
        exposed_us=np.array([each.exposed for each in phases]),
        kernels=np.array([each.kernels for each in phases], np.int64),
        speed=usual,
        exposed_by_name=tuple(named for named, _ in alone),
        exposed_else=tuple(others for _, others in alone),
        collectives=np.array([len(each.by_name) for each in phases if timeline.whole], np.int64),
        chain=chain,
        sources=(work_source(rank, "duration_us", "start_ns", "step", steps=steps),),
        expected_us=expected_us,
        measured_us=measured_us,
        complete=not is_cut(rank, kernels),
        marked=timeline.placed is not None and bool(timeline.placed.marks),
        awaiting_us=np.array([each.awaiting for each in phases]),
        # names tell it where rows are missing, too
        in_forward=in_forward(kernels, gradient, computing, np.flatnonzero(placed & communication)),
        forward_us=forward_us,
        updates=updates,
        trains=np.array([bool(gradient[each].any()) for each in by_step.values()], bool),
        ends=ends,
        rest_us=rest,
        beside_by_name=tuple(each.beside for each in phases) if timeline.whole else (),
    )


def _phases(timeline: Timeline, by_step: dict[int, Ints], fetch: Mask, fused: Mask) -> Iterator[_Phases]:
    """Each step in turn. `fetch` are the kernels that wait for data, `fused` those that compute and communicate."""
    kernels, windows, hops = timeline.kernels, timeline.windows, Hops(timeline.kernels)
    interrupted = {int(i) + 1 for i in np.flatnonzero(windows.end[:-1] < windows.start[1:])}
    before_ns = None
    for step, inside in by_step.items():
        talking = timeline.communication[inside]
        work, talks = inside[~talking], inside[talking]
        busy, talk = _union(kernels, work), _union(kernels, talks)
        fetched = fetch[work]
        fetching = measure(busy) - measure(_union(kernels, work[~fetched])) if fetched.any() else 0
        every = union(np.concatenate((busy[0], talk[0])), np.concatenate((busy[1], talk[1])))
        low, high = int(every[0][0]) if every[0].size else 0, int(every[1][-1]) if every[1].size else 0
        follows = before_ns is not None and step not in interrupted
        told = _once(kernels, talks[: 4 * MOST_EXCHANGES])
        exposed = _exposed(kernels, told, busy)
        yield _Phases(
            measure(busy) / 1000,
            fetching / 1000,
            max(low - (before_ns or 0), 0) / 1000 if follows else np.nan,
            measure(complement(every, low, high)) / 1000,
            measure(subtract(talk, busy)) / 1000,
            len(work),
            float(kernels.duration[inside[fused[inside]]].sum()),
            _by_name(kernels, told, exposed),
            hops.beside(work, told, exposed),
            high,
        )
        before_ns = high


def _union(kernels: Kernels, rows: Ints) -> Intervals:
    return union(kernels.start[rows], kernels.end[rows])


def _exposed(kernels: Kernels, talks: Ints, busy: Intervals) -> Floats:
    """Microseconds in which computing waits for each of these collectives, while nothing else computes (`busy`)."""
    reduces = np.array(["reduce" in kernels.names[name].lower() for name in kernels.name[talks].tolist()], bool)
    return np.asarray(owned(kernels.start[talks], kernels.end[talks], busy, RELEASE_NS, reduces) / 1000)


def _by_name(kernels: Kernels, rows: Ints, us: Floats) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, own in zip(kernels.name[rows].tolist(), us.tolist(), strict=True):
        found[kernels.names[name]] = found.get(kernels.names[name], 0.0) + own
    return found


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
