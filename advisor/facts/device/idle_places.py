"""Where a device idles: behind nearly every kernel, or again and again at one place of the work.

A mean gap says nothing: one pause between two executions of a graph, divided by a thousand kernels, looks like a
thousand late launches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from advisor.basics.arrays import Floats, Ints
from advisor.basics.numbering import numbered
from advisor.facts.base import FactSet, Family, Reduction, Run, fact, kind
from advisor.facts.device.drawn import work_of, work_source
from advisor.facts.device.kernel_time import Timeline, busy, idle_stretches, sums
from advisor.facts.operators.coverage import scale
from advisor.facts.recording.counts import UNTYPED, types_of
from advisor.facts.recording.limits import section
from advisor.facts.step.times import STEPS
from advisor.model import RUN, Fact, Source
from advisor.sources.base import Rank

KINDS = (
    kind("timeline.concentrated_share", "ratio", "run", "part of the idle time that lies in few stretches",
         formula="idle time of the longest stretches, one for every twenty kernels (knowledge_base/recording.yaml), "
         "÷ all idle time", needs="kernels"),
    kind("timeline.recurring_share", "ratio", "run", "part of the idle time that lies at one place of the work",
         formula="largest sum of stretches between the same two operator types, without those shorter than half of "
         "what makes up most of it (knowledge_base/recording.yaml), ÷ all idle time", needs="kernels"),
    kind("timeline.recurring_us", "us", "run", "how long such a stretch lasts on average", needs="kernels"),
    kind("timeline.recurring_step_us", "us", "run", "what these stretches take of a step, mean over ranks",
         needs="kernels"),
    kind("timeline.recurring_count", "count", "run", "how many such stretches were recorded", needs="kernels"),
    kind("timeline.recurring_before", "text", "run", "operator type before them", needs="kernels"),
    kind("timeline.recurring_after", "text", "run", "operator type after them", needs="kernels"),
    kind("timeline.before_exchange_us", "us", "run", "idle stretches of a step that end as a collective begins, mean "
         "over ranks", needs="kernels"),
    kind("timeline.before_exchange_each_us", "us", "run", "how long such a stretch lasts on average", needs="kernels"),
    kind("timeline.before_exchange_count", "count", "run", "how many such stretches were recorded", needs="kernels"),
    kind("timeline.idle_part_share", "ratio", "run", "how much of a step holds most of its idle time",
         formula="shortest part of the steps, laid over each other, that holds nine tenths of the idle time "
         "(knowledge_base/recording.yaml), of the rank that idles most; 0.9 where it is even", needs="kernels"),
    kind("timeline.idle_part_start", "ratio", "run", "where in the step that part begins", needs="kernels"),
    kind("timeline.idle_part_passes", "count", "run", "how often the same kernels run where no steps are marked: these "
         "passes are laid over each other instead, as a ring, for nobody knows where one begins", needs="kernels"),
)  # fmt: skip


class Places(Struct, frozen=True):
    """One rank's idle stretches, microseconds."""

    idle_us: float
    longest_us: float
    """In the longest few."""
    steps: tuple[str, ...]
    recurring_us: Floats
    """In the stretches at the place where most recurs, in each step; NaN where the recording ends before it."""
    recurring: Floats
    """… and how many these are."""
    before_exchange: tuple[Floats, Floats]
    """Time and number of stretches of each step that end as a collective begins."""
    before: str
    after: str
    part: tuple[float, float]
    """Length and beginning of the part that holds most of it, as shares of a step, or of a pass."""
    passes: int
    """How often the same kernels run, where that stands for steps; 0 where steps are marked or nothing repeats."""
    sources: tuple[Source, ...]


_PLACES = 200
"""A part of a step is told to half a percent of it."""

PLACES = Reduction("idle_places", Places)


def reduce(rank: Rank) -> Places | None:
    """None without kernels, where rows are missing between them, or where nothing is idle."""
    timeline = work_of(rank)
    if timeline is None or not timeline.whole or not (timeline.kernels.start >= 0).any():
        return None
    windows = timeline.windows
    start, end, step = idle_stretches(busy(timeline), windows.start, windows.end)
    length = (end - start) / 1000
    if not length.size or not length.sum() > 0:
        return None
    few = max(1, round(section("idle_places")["few_share"] * len(timeline.kernels)))
    longest = float(np.sort(length)[-few:].sum())
    names, of = types_of(timeline.kernels)
    before, after = _kernels_around(timeline, start, end)
    named = np.array([name != UNTYPED for name in names])[of]
    place = named[before] & named[after]  # between kernels that nobody named is none
    pairs, pair = numbered(of[before] * len(names) + of[after])
    most = int(np.bincount(pair, length * place).argmax())
    top, here = int(pairs[most]), (pair == most) & place
    here &= length >= _of_one_kind(length[here])
    recurring = sums(step[here], length[here], len(windows.names))
    if len(recurring) > 1 and (end[here] >= windows.end[step[here]]).all():
        recurring[-1] = np.nan  # it lies between two steps, and none follows the last one
    talks = timeline.communication[after]
    meets = sums(step[talks], length[talks], len(windows.names)), sums(step[talks], None, len(windows.names))
    part, passes = _part(windows.start, windows.end, start, end, step), _passes(timeline)
    if passes is not None:
        part = _part(*passes, *idle_stretches(busy(timeline), *passes), ring=True)
    return Places(
        float(length.sum()), longest, windows.names, recurring, sums(step[here], here[here], len(windows.names)), meets,
        names[top // len(names)], names[top % len(names)], part, 0 if passes is None else len(passes[0]),
        (work_source(rank, "start_ns", "duration_us", "type"),),
    )  # fmt: skip


def _before(at: Floats, since: Floats, weight: Ints) -> Floats:
    """How long, in sum, what begins at each of `since` has lasted at each of `at`."""
    order = np.argsort(since, kind="stable")
    since, weight = since[order], weight[order]
    begun = np.searchsorted(since, at, side="right")
    number = np.concatenate(([0.0], np.cumsum(weight, dtype=np.float64)))
    moment = np.concatenate(([0.0], np.cumsum(weight * since)))
    return number[begun] * at - moment[begun]


def _passes(timeline: Timeline) -> tuple[Ints, Ints] | None:
    """Where the passes of what repeats start and end, nanoseconds; None where steps are marked, or nothing repeats."""
    steady = timeline.placed.steady if timeline.placed is not None else None
    found, start = None if steady is None else steady.repetition, timeline.kernels.start
    if steady is None or found is None or found.length < 2 or (start < 0).any():
        return None
    firsts = np.sort(start)[found.first - steady.first : found.last - steady.first + 1 : found.length]
    return firsts[:-1], firsts[1:]


def _part(begin: Ints, stop: Ints, start: Ints, end: Ints, step: Ints, *, ring: bool = False) -> tuple[float, float]:
    """Length and beginning of the shortest part of the steps, laid over each other, that holds most of what idles; of a
    `ring` it may lie across the beginning."""
    at = np.linspace(0, 1, _PLACES + 1)
    first, whole = begin[step], np.maximum(stop - begin, 1)[step]
    since, until = (start - first) / whole, (end - first) / whole
    idle = _before(at, since, whole) - _before(at, until, whole)
    most = section("idle_places")["most"] * idle[-1]
    if ring:
        idle = np.concatenate((idle, idle[-1] + idle[1:]))
    reached = np.searchsorted(idle, (idle[: _PLACES + 1] + most) * (1 - 1e-9))
    length = np.where(reached < idle.size, reached - np.arange(_PLACES + 1), _PLACES + 1)
    best = int(length.argmin())
    return float(length[best]) / _PLACES, best / _PLACES


def _of_one_kind(length: Floats) -> float:
    """How long a stretch at one place is at least to be of the kind that has most of the time there: of sixty stretches
    of 9 ms among a thousand of 25 us the mean is nobody's."""
    if not length.size:
        return 0.0
    ranked = np.sort(length)
    middle = ranked[int(np.searchsorted(np.cumsum(ranked), ranked.sum() / 2))]
    return float(middle) * section("idle_places")["alike"]


def _kernels_around(timeline: Timeline, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The places of the kernels that end before and start after each stretch."""
    kernels = timeline.kernels
    known = np.flatnonzero(kernels.start >= 0)
    by_end = known[np.argsort(kernels.end[known], kind="stable")]
    last = np.clip(np.searchsorted(kernels.end[by_end], start, side="right") - 1, 0, by_end.size - 1)
    first = np.clip(np.searchsorted(kernels.start[known], end), 0, known.size - 1)
    return by_end[last], known[first]


def measure(run: Run, facts: FactSet) -> Iterator[Fact]:
    """Over all ranks: idle time together; the place is that of the rank whose idle time recurs most."""
    del facts
    ranks = run.each(PLACES)
    found = list(ranks.values())
    idle = sum(one.idle_us for one in found)
    if not idle > 0:
        return
    sources = found[0].sources
    yield from fact("timeline.concentrated_share", RUN, sum(one.longest_us for one in found) / idle, *sources)
    longest = max(found, key=lambda one: one.idle_us)
    length, begins = longest.part
    yield from fact("timeline.idle_part_share", RUN, length, *sources)
    yield from fact("timeline.idle_part_passes", RUN, longest.passes or None, *sources)
    yield from fact("timeline.idle_part_start", RUN, begins, *sources)
    if met := sum(float(one.before_exchange[1].sum()) for one in found):
        lost = sum(scale(run, rank, one.steps).per_step(one.before_exchange[0]) for rank, one in ranks.items())
        yield from fact("timeline.before_exchange_us", RUN, lost / len(found), *sources)
        each = sum(float(one.before_exchange[0].sum()) for one in found) / met
        yield from fact("timeline.before_exchange_each_us", RUN, each, *sources)
        yield from fact("timeline.before_exchange_count", RUN, met, *sources)
    top = max(found, key=lambda one: float(np.nansum(one.recurring_us)))
    if _happened_once(top.recurring_us):
        return
    same = {rank: one for rank, one in ranks.items() if (one.before, one.after) == (top.before, top.after)}
    recurring, count, per_step = 0.0, 0, 0.0
    for rank, one in same.items():
        per = scale(run, rank, one.steps)
        counted = (per.chosen > 0) & np.isfinite(one.recurring_us)
        if counted.any():
            us = one.recurring_us[counted]
            recurring += float(us.sum())
            count += int(one.recurring[counted].sum())
            per_step += per.per_step(np.nan_to_num(one.recurring_us, nan=float(us.mean())))
    if not count:
        return
    there = sum(float(np.nansum(one.recurring_us)) for one in same.values())
    yield from fact("timeline.recurring_share", RUN, there / idle, *sources)
    yield from fact("timeline.recurring_us", RUN, recurring / count, *sources)
    yield from fact("timeline.recurring_step_us", RUN, per_step / len(found), *sources)
    yield from fact("timeline.recurring_count", RUN, count, *sources)
    yield from fact("timeline.recurring_before", RUN, top.before or None, *sources)
    yield from fact("timeline.recurring_after", RUN, top.after or None, *sources)


def _happened_once(us: Floats) -> bool:
    """Whether one step has most of what the place idles in all of them: a checkpoint, say, which recurs nowhere."""
    told = us[np.isfinite(us)]
    return len(told) > 1 and bool(told.max() > section("idle_places")["one_step"] * told.sum())


FAMILIES = (Family("idle_places", KINDS, measure, PLACES.by(reduce), ("kernels", "trace"), uses=(STEPS,)),)
